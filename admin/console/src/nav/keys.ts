// Shortcuts of the keyboard. Single letters can be switched off, and count only where nobody writes.
import { areLettersOn } from "./letters";
import { isPaletteOpen } from "./palette_open";
import { screen } from "./query";
import { go } from "./router";

const PLACES: Record<string, string> = { o: "", l: "logs", a: "analytics", k: "keys", p: "providers", b: "budgets", r: "routing", u: "people", t: "audit" };

export function listenToKeys(): () => void {
  let isAfterG = false;
  const onKey = (event: KeyboardEvent) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      isPaletteOpen.value = true;
      return;
    }
    const target = event.target as HTMLElement;
    const isWriting = target.matches("input, select, textarea, [contenteditable]") || !!target.closest("dialog");
    if (isWriting || event.ctrlKey || event.metaKey || event.altKey || !areLettersOn.value) return;
    if (isAfterG && event.key in PLACES) go(screen(PLACES[event.key]!));
    else if (event.key === "j" || event.key === "k") step(event.key === "j" ? 1 : -1);
    else if (event.key === "/") {
      event.preventDefault();
      isPaletteOpen.value = true;
    }
    isAfterG = event.key === "g";
  };
  addEventListener("keydown", onKey);
  return () => removeEventListener("keydown", onKey);
}

/** The next or the previous row of the list in front. */
function step(direction: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>(".table .row-link")];
  const open = links.findIndex((link) => link.closest("tr")?.classList.contains("is-open"));
  const now = links.findIndex((link) => link === document.activeElement);
  const at = now >= 0 ? now : open;
  const next = links[at < 0 ? 0 : Math.min(links.length - 1, Math.max(0, at + direction))];
  next?.focus();
  if (open >= 0) next?.click();
}
