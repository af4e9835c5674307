// One provider: whether it works, its name and limits, and its end.
import { useSignal } from "@preact/signals";
import { call, getTagged, post } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import { may, workspace, workspaceName, workspaceSlug } from "../../api/session";
import { t } from "../../i18n";
import { AsText, type ManifestFile } from "../../kit/as_text";
import { Failed } from "../../kit/states";
import { Confirm } from "../../kit/surfaces";
import { dateAndTime, visible } from "../../kit/words";
import { useWork } from "../../kit/work";
import { historyOf, screen } from "../../nav/query";
import { LimitsForm } from "../limits/limits_form";
import { budgetSettings } from "../limits/types";
import { TestResult, type Tested } from "./new_provider";
import type { Provider } from "./types";

const BOUNDS = { name: 255, rate: 1 };

function fileOf({ slug, name, workspace_id, integration_id, rate_limits, usage_limits }: Provider): ManifestFile {
  const limits = { ...(rate_limits?.length ? { rate_limits } : {}), ...(usage_limits ? { usage_limits: budgetSettings(usage_limits) } : {}) };
  return { kind: "provider", workspace: workspaceSlug(workspace_id), name: slug, spec: { name, integration_id, ...limits } };
}

interface OneProviderProps {
  of: Provider;
  changed: () => void;
  removed: () => void;
}

export function OneProvider({ of, changed, removed }: OneProviderProps) {
  const texts = t().providers;
  const tested = useSignal<Tested | null>(null);
  const isRemoving = useSignal(false);
  const isChanging = useSignal(false);
  const work = useWork();
  const path = `/providers/${encodeURIComponent(of.slug)}`;
  const query = { workspace_id: of.workspace_id };
  /** Read with its tag, so that a change is refused where somebody else was faster. */
  const provider = useLoaded<{ data: Provider; tag: string }>(may("providers.read") ? `provider ${of.id} ${workspace.value}` : null, () => getTagged<Provider>(path, query));
  const tagged = provider.state.value.data;
  const ifSame = tagged ? { headers: { "if-match": tagged.tag } } : {};
  const test = () => work.run(async () => void (tested.value = await post<Tested>(`/integrations/${encodeURIComponent(of.integration_id!)}/test`)));
  const remove = async () => {
    if (await work.run(() => call("DELETE", path, { query, ...ifSame }))) removed();
  };
  return (
    <div class="log">
      <dl class="facts">
        <dt>{t().state.name}</dt>
        <dd>
          <code>@{visible(of.slug)}</code>
        </dd>
        <dt>{texts.vendor}</dt>
        <dd>{visible(of.ai_provider_name ?? of.provider)}</dd>
        <dt>{texts.account}</dt>
        <dd>{visible(of.integration_id ?? "–")}</dd>
        <dt>{texts.workspace}</dt>
        <dd>{visible(of.workspace_name ?? workspaceName(of.workspace_id))}</dd>
        <dt>{t().state.created}</dt>
        <dd>{dateAndTime(new Date(of.created_at))}</dd>
      </dl>
      <p class="quiet">{texts.addressed(of.slug)}</p>
      {tested.value && <TestResult result={tested.value} />}
      {work.fault.value && !isRemoving.value && <Failed fault={work.fault.value} />}
      {isChanging.value && tagged && (
        <LimitsForm
          key={tagged.tag} of={tagged.data} bounds={BOUNDS} close={() => (isChanging.value = false)}
          send={(body, isTrial) => call("PUT", path, { body: { ...body, workspace_id: of.workspace_id }, query: { dry_run: isTrial || undefined }, ...ifSame })}
          done={() => {
            isChanging.value = false;
            changed();
            provider.reload();
          }}
        />
      )}
      <div class="row">
        {may("providers.update") && tagged && !isChanging.value && (
          <button type="button" class="button" onClick={() => (isChanging.value = true)}>
            {t().limits.change}
          </button>
        )}
        {of.integration_id && may("workspace_integrations.read", "organisation_integrations.read") && (
          <button type="button" class="button" disabled={work.isBusy.value} onClick={() => void test()}>
            {work.isBusy.value ? texts.testing : texts.test}
          </button>
        )}
        {may("logs.list") && (
          <a class="button" href={screen("logs", { provider: of.slug })}>
            {texts.calls}
          </a>
        )}
        {may("audit_logs.list") && (
          <a class="button" href={historyOf(of.id)}>
            {t().audit.history}
          </a>
        )}
        <AsText path={path} query={query} file={tagged && fileOf(tagged.data)} />
        {may("providers.delete") && (
          <button type="button" class="button bad" onClick={() => (isRemoving.value = true)}>
            {texts.remove}
          </button>
        )}
      </div>
      {isRemoving.value && (
        <Confirm title={`${texts.remove}: @${visible(of.slug)}`} text={texts.removeWhy} button={texts.remove} isBad fault={work.fault.value} isBusy={work.isBusy.value} confirm={() => void remove()} close={() => (isRemoving.value = false)} />
      )}
    </div>
  );
}
