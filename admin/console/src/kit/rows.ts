// Rows that open what they stand for.

/** A click anywhere in a row is one on its link; selected text is left alone. */
export function openRow(event: MouseEvent): void {
  if ((event.target as Element).closest("a, button") || getSelection()?.toString()) return;
  (event.currentTarget as Element).querySelector<HTMLAnchorElement>(".row-link")?.click();
}
