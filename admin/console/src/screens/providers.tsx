// Providers: the handles that applications name, with how they did in this period, and the accounts behind them.
import { useEffect } from "preact/hooks";
import { get } from "../api/call";
import { forget, useLoaded } from "../api/loaded";
import { may, workspace, workspaceName } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Tag } from "../kit/basics";
import { PeriodChoice } from "../kit/period";
import { openRow } from "../kit/rows";
import { Empty, Part } from "../kit/states";
import { Side } from "../kit/surfaces";
import { cents, duration, percent, short, visible } from "../kit/words";
import { periodKey, timeQuery } from "../nav/period";
import { param, setParams, withParams } from "../nav/query";
import type { ProviderRow } from "./overview/types";
import { NewProvider } from "./providers/new_provider";
import { OneProvider } from "./providers/provider";
import { mayConnectProviders } from "./providers/rights";
import type { Provider } from "./providers/types";

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
  const refresh = () => {
    forget();
    list.reload();
  };
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
            key={found.id} of={found} changed={refresh}
            removed={() => {
              setParams({ provider: null });
              refresh();
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
                    <Tag meaning={one.status === "active" ? "ok" : "warn"}>{t().state.statuses[one.status] ?? one.status}</Tag>
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
