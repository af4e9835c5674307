// Small parts that every screen uses: buttons that copy, fields with their sentence, tags with a shape beside the colour.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";
import { t } from "../i18n";

export function Copy({ text, label }: { text: string; label?: string }) {
  const outcome = useSignal<"copied" | "notCopied" | null>(null);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      outcome.value = "copied";
    } catch {
      // Browsers have no clipboard for a page without TLS, and people may forbid it.
      outcome.value = "notCopied";
    }
    setTimeout(() => (outcome.value = null), 1500);
  };
  return (
    <button type="button" class="button small" onClick={() => void copy()}>
      <span aria-live="polite">{outcome.value ? t().state[outcome.value] : (label ?? t().state.copy)}</span>
    </button>
  );
}

interface FieldProps {
  label: string;
  hint?: string;
  wrong?: string;
  /** Gets the attributes that tie the control to its words. */
  children: (control: { id: string; "aria-describedby"?: string; "aria-invalid"?: boolean }) => ComponentChildren;
}

export function Field({ label, hint, wrong, children }: FieldProps) {
  const id = useId();
  const told = wrong ?? hint;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": told ? `${id}-told` : undefined, "aria-invalid": wrong ? true : undefined })}
      {told && (
        <span id={`${id}-told`} class={wrong ? "wrong" : "hint"}>
          {told}
        </span>
      )}
    </div>
  );
}

type Meaning = "ok" | "warn" | "bad" | "";

const SHAPES: Record<Meaning, string> = { ok: "●", warn: "▲", bad: "✕", "": "" };

/** A meaning is told by a shape too, not by the colour alone. */
export function Tag({ meaning = "", children }: { meaning?: Meaning; children: ComponentChildren }) {
  return (
    <span class={`tag ${meaning}`}>
      {SHAPES[meaning] && <span aria-hidden="true">{SHAPES[meaning]}</span>}
      {children}
    </span>
  );
}

export const statusMeaning = (status: number): Meaning => (status >= 500 || status === 0 ? "bad" : status >= 400 ? "warn" : "ok");

export const Status = ({ status }: { status: number | null }) => <Tag meaning={statusMeaning(status ?? 0)}>{status ?? "–"}</Tag>;

/** How much of something is used, with the words beside it. */
export function Bar({ share, meaning = "" }: { share: number; meaning?: Meaning }) {
  return (
    <span class="bar" aria-hidden="true">
      <i class={meaning} style={{ inlineSize: `${Math.min(100, Math.max(0, share * 100))}%` }} />
    </span>
  );
}
