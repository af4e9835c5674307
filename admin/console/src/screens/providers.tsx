// Providers: the handles that applications name, with how they did in this period, and the accounts behind them.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { call, Fault, get, post } from "../api/call";
import { forget, useLoaded } from "../api/loaded";
import { may, workspace, workspaceName } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Tag } from "../kit/basics";
import { PeriodChoice } from "../kit/period";
import { openRow } from "../kit/rows";
import { Empty, Failed, Part } from "../kit/states";
import { Confirm, Side } from "../kit/surfaces";
import { cents, dateAndTime, duration, percent, short, visible } from "../kit/words";
import { periodKey, timeQuery } from "../nav/period";
import { param, screen, setParams, withParams } from "../nav/query";
import type { ProviderRow } from "./overview/types";
import { NewProvider, TestResult, type Tested } from "./providers/new_provider";
import { mayConnectProviders } from "./providers/rights";

interface Provider {
  id: string;
  slug: string;
  name: string;
  status: string;
  ai_provider_name: string;
  provider: string;
  integration_id: string | null;
  workspace_id: string;
  workspace_name: string | null;
  created_at: string;
}

export default function Providers() {
  const texts = t().providers;
  const open = param("provider");
  const isNew = param("new") === "1";
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const list = useLoaded<{ data: Provider[]; total: number }>(`providers ${workspace.value}`, () => get("/providers", { page_size: 100 }));
  const health = useLoaded<Map<string, ProviderRow>>(may("analytics.view") ? `health ${workspace.value} ${periodKey()}` : null, async () => {
    const { data } = await get<{ data: ProviderRow[] }>("/analytics/groups/provider", { ...timeQuery(), columns: "cost,p95_latency,success_rate", page_size: 100 });
    return new Map(data.map((row) => [row.provider, row]));
  });
  const found = list.state.value.data?.data.find(({ id }) => id === open);
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        <PeriodChoice />
        <AsText path="/providers" query={{ page_size: 100 }} />
        {mayConnectProviders() && (
          <a class="button main" href={withParams({ new: "1", provider: null })}>
            {texts.create}
          </a>
        )}
      </div>
      <section class="panel">
        <Part state={list.state.value} again={list.reload}>
          {({ data }) =>
            data.length === 0 ? (
              <Empty title={texts.empty} action={mayConnectProviders() && <a class="button" href={withParams({ new: "1" })}>{texts.create}</a>}>
                {texts.emptyWhy}
              </Empty>
            ) : (
              <Table providers={data} health={health.state.value.data} open={open} />
            )
          }
        </Part>
      </section>
      {isNew && (
        <Side title={texts.create} close={() => setParams({ new: null })}>
          <NewProvider
            done={() => {
              list.reload();
              setParams({ new: null });
            }}
          />
        </Side>
      )}
      {found && !isNew && (
        <Side title={visible(found.name)} close={() => setParams({ provider: null })}>
          <OneProvider
            key={found.id}
            of={found}
            removed={() => {
              setParams({ provider: null });
              forget();
              list.reload();
            }}
          />
        </Side>
      )}
    </>
  );
}

function Table({ providers, health, open }: { providers: Provider[]; health?: Map<string, ProviderRow>; open: string }) {
  const texts = t().providers;
  const figures = t().overview;
  // Figures go by the short name; of one that several workspaces have they would be the sum of all.
  const isShared = (slug: string) => providers.filter((one) => one.slug === slug).length > 1;
  return (
    <>
      <div class="scroll">
        <table class="table cards">
          <thead>
            <tr>
              <th scope="col">{t().state.name}</th>
              <th scope="col">{texts.vendor}</th>
              <th scope="col">{texts.workspace}</th>
              <th scope="col">{texts.status}</th>
              <th scope="col" class="number">{figures.attempts}</th>
              <th scope="col" class="number">{figures.success}</th>
              <th scope="col" class="number">{figures.p95}</th>
              <th scope="col" class="number">{figures.cost}</th>
            </tr>
          </thead>
          <tbody>
            {providers.map((one) => {
              const row = isShared(one.slug) ? undefined : health?.get(one.slug);
              return (
                <tr key={one.id} class={`can-open ${one.id === open ? "is-open" : ""}`} onClick={openRow}>
                  <td>
                    <a class="row-link" href={withParams({ provider: one.id, new: null })}>
                      <code>@{visible(one.slug)}</code>
                    </a>
                  </td>
                  <td>{visible(one.ai_provider_name ?? one.provider)}</td>
                  <td>{visible(one.workspace_name ?? workspaceName(one.workspace_id))}</td>
                  <td>
                    <Tag meaning={one.status === "active" ? "ok" : "warn"}>{t().keys.statuses[one.status] ?? one.status}</Tag>
                  </td>
                  <td class="number">{row ? short(row.requests) : "–"}</td>
                  <td class={`number ${row && row.success_rate < 90 ? "worse" : ""}`}>{row ? percent(row.success_rate) : "–"}</td>
                  <td class="number nowrap">{row ? duration(row.p95_latency) : "–"}</td>
                  <td class="number">{row ? cents(row.cost) : "–"}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {providers.some(({ slug }) => isShared(slug)) && <p class="inside quiet">{texts.shared}</p>}
    </>
  );
}

function OneProvider({ of, removed }: { of: Provider; removed: () => void }) {
  const texts = t().providers;
  const tested = useSignal<Tested | null>(null);
  const fault = useSignal<Fault | null>(null);
  const isBusy = useSignal(false);
  const isRemoving = useSignal(false);
  const run = async (work: () => Promise<void>) => {
    isBusy.value = true;
    fault.value = null;
    try {
      await work();
    } catch (error) {
      fault.value = error as Fault;
    }
    isBusy.value = false;
  };
  const test = () => run(async () => void (tested.value = await post<Tested>(`/integrations/${encodeURIComponent(of.integration_id!)}/test`)));
  const remove = () =>
    run(async () => {
      await call("DELETE", `/providers/${encodeURIComponent(of.slug)}`, { query: { workspace_id: of.workspace_id } });
      removed();
    });
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
        <dt>{t().keys.created}</dt>
        <dd>{dateAndTime(new Date(of.created_at))}</dd>
      </dl>
      <p class="quiet">{texts.addressed(of.slug)}</p>
      {tested.value && <TestResult result={tested.value} />}
      {fault.value && !isRemoving.value && <Failed fault={fault.value} />}
      <div class="row">
        {of.integration_id && may("workspace_integrations.read", "organisation_integrations.read") && (
          <button type="button" class="button" disabled={isBusy.value} onClick={() => void test()}>
            {isBusy.value ? texts.testing : texts.test}
          </button>
        )}
        {may("logs.list") && (
          <a class="button" href={screen("logs", { provider: of.slug })}>
            {texts.calls}
          </a>
        )}
        {may("audit_logs.list") && (
          <a class="button" href={screen("audit", { object: of.id, from: "-30d" })}>
            {t().audit.history}
          </a>
        )}
        {may("providers.delete") && (
          <button type="button" class="button bad" onClick={() => (isRemoving.value = true)}>
            {texts.remove}
          </button>
        )}
      </div>
      {isRemoving.value && (
        <Confirm title={`${texts.remove}: @${visible(of.slug)}`} text={texts.removeWhy} button={texts.remove} isBad fault={fault.value} isBusy={isBusy.value} confirm={() => void remove()} close={() => (isRemoving.value = false)} />
      )}
    </div>
  );
}
