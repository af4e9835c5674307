// What a change would do, before it is done: the interface tries it without storing (`dry_run`), the difference is shown, and
// only then it can be stored. Where somebody else changed the same object meanwhile, that is said and nothing is overwritten.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Difference } from "./difference";
import { DifferenceTable } from "./difference_table";
import { t } from "../i18n";
import { useModal } from "./modal";
import { Failed } from "./states";
import { visible } from "./words";
import { useWork } from "./work";

interface ReviewProps {
  title: string;
  of: Difference[];
  /** Sends the change; a trial stores nothing and may answer with warnings. */
  send: (isTrial: boolean) => Promise<{ warnings?: string[] } | null>;
  done: () => void;
  close: () => void;
  /** Reads the object again, after somebody else changed it. */
  again?: () => void;
}

export function Review({ title, of, send, done, close, again }: ReviewProps) {
  const texts = t().review;
  const dialog = useModal();
  const work = useWork();
  const warnings = useSignal<string[] | null>(null);
  const isStoring = useSignal(false);
  useEffect(() => {
    void work.run(async () => {
      warnings.value = (await send(true))?.warnings ?? [];
    });
  }, []);
  const store = async () => {
    isStoring.value = true;
    const isDone = await work.run(async () => {
      await send(false);
    });
    isStoring.value = false;
    if (!isDone) return;
    // Closed at once: until the object is read again, a second press would store it again.
    close();
    done();
  };
  const fault = work.fault.value;
  return (
    <dialog ref={dialog} class="review" onClose={close} onCancel={(event) => isStoring.value && event.preventDefault()} aria-labelledby="review-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void store();
        }}
      >
        <h2 id="review-title">{title}</h2>
        <DifferenceTable of={of} />
        {warnings.value?.map((warning) => (
          <p key={warning} class="fault note" lang="en">
            {visible(warning)}
          </p>
        ))}
        {fault && <Failed fault={fault} />}
        <p class="quiet" role="status">
          {work.isBusy.value ? texts.trying : warnings.value && !fault ? texts.tried : ""}
        </p>
        <div class="row">
          <button type="submit" class="button main" disabled={work.isBusy.value || !warnings.value}>
            {t().state.save}
          </button>
          {fault?.status === 412 && again && (
            <button type="button" class="button" onClick={again}>
              {texts.reload}
            </button>
          )}
          <button type="button" class="button" disabled={isStoring.value} onClick={() => dialog.current?.close()}>
            {t().state.cancel}
          </button>
        </div>
      </form>
    </dialog>
  );
}
