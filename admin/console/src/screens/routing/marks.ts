// What is wrong with the text of a config, at its line: it is no JSON, or the interface says so.
import type { Fault } from "../../api/call";
import { t } from "../../i18n";
import type { Mark } from "./editor";
import { lineOf, places } from "./places";

/** The object that a text is, or why it is none. */
export function parsed(text: string): { value: Record<string, unknown> | null; wrong: Mark[] } {
  const { wrong } = places(text);
  if (wrong) return { value: null, wrong: [{ line: wrong.line, message: t().routing.notJson }] };
  const value: unknown = JSON.parse(text);
  const isObject = typeof value === "object" && value !== null && !Array.isArray(value);
  return isObject ? { value: value as Record<string, unknown>, wrong: [] } : { value: null, wrong: [{ line: 1, message: t().routing.notObject }] };
}

/** Faults that name a field, at the lines of these fields. */
export function marksOf(text: string, fault: Fault): Mark[] {
  const found = places(text);
  return fault.fields.map(({ path, message }) => {
    // The text is the `config` of what was sent.
    const inText = path.replace(/^config(?:\.|$|(?=\[))/, "");
    return { line: lineOf(found, inText), message: inText ? `${inText}: ${message}` : message };
  });
}
