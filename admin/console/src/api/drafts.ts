// Texts that somebody has written and not stored yet. They outlive the screen where they were written, so that neither a link
// nor a session that ends takes them away; the browser asks before it leaves the page. They are in this page's memory alone.
import { effect, signal } from "@preact/signals";

const drafts = signal<ReadonlyMap<string, string>>(new Map());

/** By a name that tells whose and of what it is; null where there is none. */
export const draftOf = (name: string): string | null => drafts.value.get(name) ?? null;

export function keepDraft(name: string, text: string | null): void {
  const next = new Map(drafts.value);
  if (text === null) next.delete(name);
  else next.set(name, text);
  drafts.value = next;
}

/** For another person: nothing of the one before stays, and nobody is asked. */
export function dropDrafts(): void {
  drafts.value = new Map();
}

const ask = (event: BeforeUnloadEvent) => event.preventDefault();

effect(() => {
  if (drafts.value.size > 0) addEventListener("beforeunload", ask);
  else globalThis.removeEventListener?.("beforeunload", ask);
});
