// The language of the page: what was chosen, else the browser's. English comes with the page, others are files of their own.
// Sentences of the interface stay English and are marked so.
import { signal } from "@preact/signals";
import { en, type Texts } from "./en";

export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

const tables: Record<Language, () => Promise<Texts>> = { en: async () => en, de: async () => (await import("./de")).de };

/** What the person chose in this browser, else the first of the browser's that there is. */
export function preferred(): Language {
  let stored: string | null = null;
  try {
    stored = localStorage.getItem("language");
  } catch {
    // A browser that keeps nothing is asked each time.
  }
  const wanted = [stored ?? "", ...navigator.languages].map((one) => one.slice(0, 2));
  return (wanted.find((one) => one in tables) as Language | undefined) ?? "en";
}

/** Set by `choose`, once the texts are there. */
export const language = signal<Language>("en");
const table = signal<Texts>(en);

/** The texts; reading them subscribes to the language. */
export const t = () => table.value;

/** Where the file of a language does not come, the page stays in the language that it has. */
export async function choose(next: Language): Promise<void> {
  const texts = await tables[next]().catch(() => null);
  if (!texts) return;
  table.value = texts;
  language.value = next;
  document.documentElement.lang = next;
  try {
    localStorage.setItem("language", next);
  } catch {
    // Chosen for this page alone.
  }
}
