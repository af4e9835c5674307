// The language of the page: what was chosen, else the browser's. Sentences of the interface stay English and are marked so.
import { computed, signal } from "@preact/signals";
import { de } from "./de";
import { en, type Texts } from "./en";

export const LANGUAGES = { en: "English", de: "Deutsch" } as const;
export type Language = keyof typeof LANGUAGES;

const tables: Record<Language, Texts> = { en, de };

function chosen(): Language {
  let kept: string | null = null;
  try {
    kept = localStorage.getItem("language");
  } catch {
    // A browser that keeps nothing is asked each time.
  }
  const wanted = [kept ?? "", ...navigator.languages].map((one) => one.slice(0, 2));
  return (wanted.find((one) => one in tables) as Language | undefined) ?? "en";
}

export const language = signal<Language>(chosen());
const table = computed(() => tables[language.value]);

/** The texts; reading them subscribes to the language. */
export const t = () => table.value;

export function choose(next: Language): void {
  language.value = next;
  document.documentElement.lang = next;
  try {
    localStorage.setItem("language", next);
  } catch {
    // Chosen for this page alone.
  }
}
