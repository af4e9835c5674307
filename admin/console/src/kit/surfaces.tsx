// What lies over the page: a panel at the side for an object, a dialog for what cannot be taken back, and short notices.
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Fault } from "../api/call";
import { t } from "../i18n";
import { useModal } from "./modal";
import { Failed } from "./states";

/** Takes the focus when it opens and gives it back when it closes; Escape closes it. */
export function Side({ title, close, actions, children }: { title: ComponentChildren; close: () => void; actions?: ComponentChildren; children: ComponentChildren }) {
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    const before = document.activeElement as HTMLElement | null;
    panel.current?.focus();
    return () => before?.isConnected && before.focus();
  }, []);
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) close();
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, [close]);
  return (
    <section class="side" ref={panel} tabIndex={-1} aria-labelledby="side-title">
      <header>
        <h2 id="side-title">{title}</h2>
        <div class="row">
          {actions}
          <button type="button" class="button small" onClick={close}>
            {t().state.close}
          </button>
        </div>
      </header>
      {/* What scrolls can be reached by the keyboard. */}
      <div class="inside" tabIndex={0} role="group" aria-labelledby="side-title">
        {children}
      </div>
    </section>
  );
}

interface ConfirmProps {
  title: string;
  text: string;
  button: string;
  isBad?: boolean;
  fault?: Fault | null;
  isBusy?: boolean;
  confirm: () => void;
  close: () => void;
}

/** Says what goes with it before it is done. */
export function Confirm({ title, text, button, isBad, fault, isBusy, confirm, close }: ConfirmProps) {
  const dialog = useModal();
  return (
    <dialog ref={dialog} onClose={close} onCancel={(event) => isBusy && event.preventDefault()} aria-labelledby="confirm-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          confirm();
        }}
      >
        <h2 id="confirm-title">{title}</h2>
        <p>{text}</p>
        {fault && <Failed fault={fault} />}
        <div class="row">
          <button type="submit" class={`button ${isBad ? "bad" : "main"}`} disabled={isBusy}>
            {button}
          </button>
          <button type="button" class="button" onClick={() => dialog.current?.close()}>
            {t().state.cancel}
          </button>
        </div>
      </form>
    </dialog>
  );
}

const notices = signal<{ id: number; text: string }[]>([]);
let last = 0;

export function notify(text: string): void {
  const id = ++last;
  notices.value = [...notices.value, { id, text }];
  setTimeout(() => (notices.value = notices.value.filter((one) => one.id !== id)), 4000);
}

export const Notices = () => (
  <div class="toasts" role="status" aria-live="polite">
    {notices.value.map(({ id, text }) => (
      <div key={id} class="toast">
        {text}
      </div>
    ))}
  </div>
);
