// One key, and what can be done to it: each action says first what goes with it.
import { useSignal } from "@preact/signals";
import { call, getTagged, post } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import { may, workspace, workspaceName, workspaceSlug } from "../../api/session";
import { t } from "../../i18n";
import { AsText, type ManifestFile } from "../../kit/as_text";
import { Tag } from "../../kit/basics";
import { Failed, Part } from "../../kit/states";
import { Confirm, notify } from "../../kit/surfaces";
import { dateAndTime, duration, visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { historyOf, screen, setParams } from "../../nav/query";
import { LimitsForm } from "../limits/limits_form";
import { budgetSettings } from "../limits/types";
import { Limits } from "./limits";
import { Secret, type MadeKey } from "./new_key";
import { mayChangeKey, mayManageKey } from "./rights";
import { KeyStatus } from "./status";
import { MAX_NAME, type Key } from "./types";

type Action = "suspend" | "resume" | "rotate" | "remove";

/** The old secret goes on for so long after a rotation. */
const TRANSITION_MS = 3_600_000;

const BOUNDS = { name: MAX_NAME, rate: 0 };

const pathOf = (id: string) => `/api-keys/${encodeURIComponent(id)}`;

/** Files of the command line make keys of applications only. */
function fileOf({ type, name, workspace_id, description, scopes, rate_limits, usage_limits }: Key): ManifestFile | undefined {
  if (type !== "workspace-service") return undefined;
  const limits = { ...(rate_limits.length > 0 ? { rate_limits } : {}), ...(usage_limits ? { usage_limits: budgetSettings(usage_limits) } : {}) };
  return { kind: "api-key", workspace: workspaceSlug(workspace_id), name, spec: { name, ...(description ? { description } : {}), scopes, ...limits } };
}

export function KeyView({ id, changed }: { id: string; changed: () => void }) {
  const key = useLoaded<{ data: Key; tag: string }>(`key ${id} ${workspace.value}`, () => getTagged<Key>(pathOf(id)));
  return (
    <Part state={key.state.value} again={key.reload}>
      {({ data, tag }) => (
        <OneKey
          of={data} tag={tag}
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

function OneKey({ of, tag, changed }: { of: Key; tag: string; changed: () => void }) {
  const texts = t().keys;
  const asked = useSignal<Action | null>(null);
  const isChanging = useSignal(false);
  const work = useWork();
  const rotated = useSignal<MadeKey | null>(null);
  /** Refused where the key is no longer as it is shown here. */
  const ifSame = { headers: { "if-match": tag } };
  const path = pathOf(of.id);
  const run = async (action: Action) => {
    const begin = performance.now();
    const isDone = await work.run(async () => {
      if (action === "rotate") rotated.value = await post<MadeKey>(`${path}/rotate`, { key_transition_period_ms: TRANSITION_MS });
      else if (action === "remove") await call("DELETE", path, ifSame);
      // A leaked key is suspended whatever else somebody changed.
      else await call("PUT", path, { body: { status: action === "suspend" ? "suspended" : "active" } });
    });
    if (!isDone) return;
    asked.value = null;
    changed();
    if (action === "suspend" || action === "remove") notify(texts.refused(duration(performance.now() - begin)));
    if (action === "remove") setParams({ key: null });
  };
  const ask = (action: Action) => {
    work.fault.value = null;
    asked.value = action;
  };
  const action = asked.value;
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
        <dd>{of.expires_at ? dateAndTime(new Date(of.expires_at)) : t().state.never}</dd>
        <dt>{t().state.created}</dt>
        <dd>{dateAndTime(new Date(of.created_at))}</dd>
        <dt>{texts.scopes}</dt>
        <dd class="row">
          {of.scopes.map((scope) => (
            <Tag key={scope}>{scope}</Tag>
          ))}
        </dd>
      </dl>
      {rotated.value && <Secret key={rotated.value.key} made={rotated.value} isCalling={of.scopes.includes("models.list")} />}
      {isChanging.value && (
        <LimitsForm
          key={tag} of={of} bounds={BOUNDS} isNameOnly={!mayManageKey(of, "update")} close={() => (isChanging.value = false)} send={(body, isTrial) => call("PUT", path, { body, query: { dry_run: isTrial || undefined }, ...ifSame })}
          done={() => {
            isChanging.value = false;
            changed();
          }}
        />
      )}
      {work.fault.value && !asked.value && <Failed fault={work.fault.value} />}
      <div class="row">
        {mayChangeKey(of, "update") && !isChanging.value && (
          <button type="button" class="button" onClick={() => (isChanging.value = true)}>
            {t().limits.change}
          </button>
        )}
        {mayChangeKey(of, "update") && of.status === "active" && (
          <button type="button" class="button" onClick={() => ask("suspend")}>
            {texts.suspend}
          </button>
        )}
        {mayManageKey(of, "update") && of.status === "suspended" && (
          <button type="button" class="button" onClick={() => void run("resume")}>
            {texts.resume}
          </button>
        )}
        {mayChangeKey(of, "rotate") && (
          <button type="button" class="button" onClick={() => ask("rotate")}>
            {texts.rotate}
          </button>
        )}
        {mayChangeKey(of, "delete") && (
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
          <a class="button" href={historyOf(of.id)}>
            {t().audit.history}
          </a>
        )}
        <AsText path={path} file={fileOf(of)} />
      </div>
      {action && action !== "resume" && (
        <Confirm
          title={`${texts[action]}: ${visible(of.name)}`} text={texts[`${action}Why`]} button={texts[action]} isBad={action !== "rotate"} fault={work.fault.value} isBusy={work.isBusy.value}
          confirm={() => void run(action)} close={() => (asked.value = null)}
        />
      )}
    </div>
  );
}
