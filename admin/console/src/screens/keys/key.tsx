// One key, and what can be done to it: each deed says first what goes with it.
import { useSignal } from "@preact/signals";
import { call, Fault, get, post } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import { may, workspace, workspaceName } from "../../api/session";
import { t } from "../../i18n";
import { Tag } from "../../kit/basics";
import { Part } from "../../kit/states";
import { Confirm, notify } from "../../kit/surfaces";
import { dateAndTime, duration, visible } from "../../kit/words";
import { screen, setParams } from "../../nav/query";
import { Limits } from "./limits";
import { Secret, type MadeKey } from "./new_key";
import { mayChangeKeys } from "./rights";
import { KeyStatus } from "./status";
import type { Key } from "./types";

type Deed = "suspend" | "resume" | "rotate" | "remove";

/** The old secret goes on for so long after a rotation. */
const TRANSITION_MS = 3_600_000;

export function KeyView({ id, changed }: { id: string; changed: () => void }) {
  const key = useLoaded<Key>(`key ${id} ${workspace.value}`, () => get<Key>(`/api-keys/${id}`));
  return (
    <Part state={key.state.value} again={key.reload}>
      {(found) => (
        <OneKey
          of={found}
          changed={() => {
            forget();
            key.reload();
            changed();
          }}
        />
      )}
    </Part>
  );
}

function OneKey({ of, changed }: { of: Key; changed: () => void }) {
  const texts = t().keys;
  const asked = useSignal<Deed | null>(null);
  const fault = useSignal<Fault | null>(null);
  const isBusy = useSignal(false);
  const rotated = useSignal<MadeKey | null>(null);
  const run = async (deed: Deed) => {
    isBusy.value = true;
    fault.value = null;
    const begin = performance.now();
    try {
      if (deed === "rotate") rotated.value = await post<MadeKey>(`/api-keys/${of.id}/rotate`, { key_transition_period_ms: TRANSITION_MS });
      else if (deed === "remove") await call("DELETE", `/api-keys/${of.id}`);
      else await call("PUT", `/api-keys/${of.id}`, { body: { status: deed === "suspend" ? "suspended" : "active" } });
      asked.value = null;
      changed();
      if (deed === "suspend" || deed === "remove") notify(texts.refused(duration(performance.now() - begin)));
      if (deed === "remove") setParams({ key: null });
    } catch (error) {
      fault.value = error as Fault;
    }
    isBusy.value = false;
  };
  const ask = (deed: Deed) => {
    fault.value = null;
    asked.value = deed;
  };
  const deed = asked.value;
  return (
    <div class="log">
      <div class="row">
        <strong>{visible(of.name)}</strong>
        <KeyStatus status={of.status} />
      </div>
      <dl class="facts">
        <dt>{texts.key}</dt>
        <dd>
          <code>{of.key}</code>
        </dd>
        <dt>{texts.kind}</dt>
        <dd>{texts.kinds[of.type] ?? of.type}</dd>
        <dt>{texts.workspace}</dt>
        <dd>{visible(workspaceName(of.workspace_id)) || "–"}</dd>
        <dt>{texts.limits}</dt>
        <dd>
          <Limits of={of} />
        </dd>
        <dt>{texts.expires}</dt>
        <dd>{of.expires_at ? dateAndTime(new Date(of.expires_at)) : texts.never}</dd>
        <dt>{texts.created}</dt>
        <dd>{dateAndTime(new Date(of.created_at))}</dd>
        <dt>{texts.scopes}</dt>
        <dd class="row">
          {of.scopes.map((scope) => (
            <Tag key={scope}>{scope}</Tag>
          ))}
        </dd>
      </dl>
      {rotated.value && <Secret key={rotated.value.key} made={rotated.value} isCalling={of.scopes.includes("models.list")} />}
      <div class="row">
        {mayChangeKeys("update") && of.status === "active" && (
          <button type="button" class="button" onClick={() => ask("suspend")}>
            {texts.suspend}
          </button>
        )}
        {mayChangeKeys("update") && of.status === "suspended" && (
          <button type="button" class="button" onClick={() => void run("resume")}>
            {texts.resume}
          </button>
        )}
        {mayChangeKeys("rotate") && (
          <button type="button" class="button" onClick={() => ask("rotate")}>
            {texts.rotate}
          </button>
        )}
        {mayChangeKeys("delete") && (
          <button type="button" class="button bad" onClick={() => ask("remove")}>
            {texts.remove}
          </button>
        )}
        {may("logs.list") && (
          <a class="button" href={screen("logs", { key: of.id })}>
            {texts.calls}
          </a>
        )}
        {may("audit_logs.list") && (
          <a class="button" href={screen("audit", { object: of.id, from: "-30d" })}>
            {t().audit.history}
          </a>
        )}
      </div>
      {deed && deed !== "resume" && (
        <Confirm
          title={`${texts[deed]}: ${visible(of.name)}`} text={texts[`${deed}Why`]} button={texts[deed]} isBad={deed !== "rotate"} fault={fault.value} isBusy={isBusy.value}
          confirm={() => void run(deed)} close={() => (asked.value = null)}
        />
      )}
    </div>
  );
}
