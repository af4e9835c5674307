// One workspace: its members, and its end.
import { useSignal } from "@preact/signals";
import { call } from "../../api/call";
import { forget } from "../../api/loaded";
import { loadSession, may } from "../../api/session";
import { t } from "../../i18n";
import { AsText } from "../../kit/as_text";
import { Field } from "../../kit/basics";
import { useModal } from "../../kit/modal";
import { Failed } from "../../kit/states";
import { notify } from "../../kit/surfaces";
import { dateAndTime, visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { historyOf, screen, setParams } from "../../nav/query";
import { Members } from "./members";
import type { WorkspaceRow } from "./types";

export function WorkspaceView({ of, changed }: { of: WorkspaceRow; changed: () => void }) {
  const texts = t().people;
  const isArchiving = useSignal(false);
  return (
    <div class="log">
      <dl class="facts">
        <dt>{texts.slug}</dt>
        <dd>
          <code>{of.slug}</code>
        </dd>
        <dt>{texts.description}</dt>
        <dd>{visible(of.description ?? "") || "–"}</dd>
        <dt>{texts.since}</dt>
        <dd>{dateAndTime(new Date(of.created_at))}</dd>
      </dl>
      <div class="row">
        <a class="button" href={screen("", { ws: of.slug })}>
          {texts.enter}
        </a>
        {may("audit_logs.list") && (
          <a class="button" href={historyOf(of.id)}>
            {t().audit.history}
          </a>
        )}
        {may("workspaces.delete") && (
          <button type="button" class="button bad" onClick={() => (isArchiving.value = true)}>
            {texts.archive}
          </button>
        )}
        <AsText path={`/workspaces/${encodeURIComponent(of.slug)}`} file={{ kind: "workspace", name: of.slug, spec: { name: of.name, ...(of.description ? { description: of.description } : {}) } }} />
      </div>
      {may("workspace_users.list") && (
        <>
          <h3>{texts.parts.members}</h3>
          <Members of={of.slug} page="members" />
        </>
      )}
      {isArchiving.value && (
        <Archive
          of={of} close={() => (isArchiving.value = false)}
          done={() => {
            setParams({ space: null, members: null });
            changed();
          }}
        />
      )}
    </div>
  );
}

/** The interface wants the name once more, and a word where the workspace still holds something. */
function Archive({ of, close, done }: { of: WorkspaceRow; close: () => void; done: () => void }) {
  const texts = t().people;
  const dialog = useModal();
  const name = useSignal("");
  const isWhole = useSignal(false);
  const work = useWork();
  const archive = async () => {
    const isDone = await work.run(async () => {
      await call("DELETE", `/workspaces/${encodeURIComponent(of.slug)}`, { body: { name: name.value, force_delete: isWhole.value } });
    });
    if (!isDone) return;
    forget();
    await loadSession().catch(() => undefined);
    notify(texts.archived);
    done();
  };
  return (
    <dialog ref={dialog} onClose={close} onCancel={(event) => work.isBusy.value && event.preventDefault()} aria-labelledby="archive-title">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void archive();
        }}
      >
        <h2 id="archive-title">
          {texts.archive}: {visible(of.name)}
        </h2>
        <p>{texts.archiveWhy}</p>
        <Field label={texts.nameAgain}>{(control) => <input {...control} required autocomplete="off" value={name.value} onInput={(event) => (name.value = event.currentTarget.value)} />}</Field>
        <label class="row">
          <input type="checkbox" checked={isWhole.value} onChange={(event) => (isWhole.value = event.currentTarget.checked)} />
          {texts.archiveWhole}
        </label>
        {work.fault.value && <Failed fault={work.fault.value} />}
        <div class="row">
          <button type="submit" class="button bad" disabled={work.isBusy.value || name.value !== of.name}>
            {texts.archive}
          </button>
          <button type="button" class="button" onClick={() => dialog.current?.close()}>
            {t().state.cancel}
          </button>
        </div>
      </form>
    </dialog>
  );
}
