// One policy: its sentence, whether it refuses or only counts, its groups with what each used, and its end.
import { useSignal } from "@preact/signals";
import { call, getTagged } from "../../api/call";
import { forget, useLoaded } from "../../api/loaded";
import { may, workspace, workspaceName, workspaceSlug } from "../../api/session";
import { t } from "../../i18n";
import { AsText, type ManifestFile } from "../../kit/as_text";
import { Tag } from "../../kit/basics";
import { Review } from "../../kit/review";
import { Part } from "../../kit/states";
import { Confirm, notify } from "../../kit/surfaces";
import { dateAndTime, visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { historyOf, setParams } from "../../nav/query";
import { Groups } from "./groups";
import { sentence } from "./sentence";
import { KINDS, type Kind, type Policy } from "./types";

export function PolicyView({ kind, id, changed }: { kind: Kind; id: string; changed: () => void }) {
  const path = `${KINDS[kind]}/${encodeURIComponent(id)}`;
  const policy = useLoaded<{ data: Policy; tag: string }>(`policy ${id} ${workspace.value}`, () => getTagged<Policy>(path));
  const again = () => {
    forget();
    policy.reload();
    changed();
  };
  return (
    <Part state={policy.state.value} again={policy.reload}>
      {({ data, tag }) => <OnePolicy key={tag} kind={kind} policy={data} tag={tag} path={path} again={again} />}
    </Part>
  );
}

/** What a file says of it; what is unset is left out. */
function fileOf(kind: Kind, policy: Policy): ManifestFile {
  const { name, description, type, unit, value, credit_limit, alert_threshold, periodic_reset, periodic_reset_days, strict, unknown_price } = policy;
  const { target, conditions, group_by, include_none, trusted_metadata, dry_run } = policy;
  const parts = {
    name, description, type, unit, value, credit_limit, alert_threshold, periodic_reset, periodic_reset_days, strict, unknown_price, target, conditions, group_by, include_none, trusted_metadata, dry_run,
  };
  const spec = Object.fromEntries(Object.entries(parts).filter(([, part]) => part !== undefined && part !== null));
  return { kind: kind === "rates" ? "policy-rate-limits" : "policy-usage-limits", workspace: workspaceSlug(policy.workspace_id), name: name ?? policy.id, spec };
}

interface OnePolicyProps {
  kind: Kind;
  policy: Policy;
  tag: string;
  path: string;
  again: () => void;
}

function OnePolicy({ kind, policy, tag, path, again }: OnePolicyProps) {
  const texts = t().policies;
  const isSwitching = useSignal(false);
  const isRemoving = useSignal(false);
  const work = useWork();
  const ifSame = { headers: { "if-match": tag } };
  const inWorkspace = { workspace_id: policy.workspace_id };
  const remove = async () => {
    if (!(await work.run(() => call("DELETE", path, { query: inWorkspace, ...ifSame })))) return;
    notify(texts.removed);
    setParams({ policy: null });
    again();
  };
  const send = (isTrial: boolean) => call("PUT", path, { body: { dry_run: !policy.dry_run, ...inWorkspace }, query: { dry_run: isTrial || undefined }, ...ifSame });
  return (
    <div class="log">
      <p class="sentence">{sentence(policy)}</p>
      <dl class="facts">
        <dt>{t().state.name}</dt>
        <dd>{visible(policy.name ?? "") || "–"}</dd>
        <dt>{t().menu.workspace}</dt>
        <dd>{visible(workspaceName(policy.workspace_id))}</dd>
        <dt>{t().state.status}</dt>
        <dd class="row">
          <Tag meaning={policy.dry_run ? "warn" : "ok"}>{policy.dry_run ? texts.dryRun : texts.holds}</Tag>
          {policy.unmatched && <Tag meaning="warn">{texts.unmatched}</Tag>}
        </dd>
        <dt>{t().state.created}</dt>
        <dd>{dateAndTime(new Date(policy.created_at))}</dd>
      </dl>
      <div class="row">
        {may("policies.update") && (
          <button type="button" class="button" onClick={() => (isSwitching.value = true)}>
            {policy.dry_run ? texts.enforce : texts.onlyCount}
          </button>
        )}
        {may("audit_logs.list") && (
          <a class="button" href={historyOf(policy.id)}>
            {t().audit.history}
          </a>
        )}
        {may("policies.delete") && (
          <button type="button" class="button bad" onClick={() => (isRemoving.value = true)}>
            {texts.remove}
          </button>
        )}
        <AsText path={path} file={fileOf(kind, policy)} />
      </div>
      <h3>{texts.groups}</h3>
      <Groups kind={kind} policy={policy} path={path} />
      {isSwitching.value && (
        <Review
          title={t().review.title(visible(policy.name ?? ""))} of={[{ path: "dry_run", before: policy.dry_run, after: !policy.dry_run }]} send={send} close={() => (isSwitching.value = false)} again={again}
          done={() => {
            notify(t().review.saved);
            again();
          }}
        />
      )}
      {isRemoving.value && (
        <Confirm
          title={`${texts.remove}: ${visible(policy.name ?? "")}`} text={texts.removeWhy} button={texts.remove} isBad fault={work.fault.value} isBusy={work.isBusy.value} confirm={() => void remove()}
          close={() => (isRemoving.value = false)}
        />
      )}
    </div>
  );
}
