// The overview: figures of a period against the time before, what needs somebody, models and providers. One question to the
// interface answers all of it, of one moment. Before the first good call it is the way to that call instead.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, post } from "../api/call";
import { useLoaded } from "../api/loaded";
import { may, workspace } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Bars } from "../kit/chart";
import { PeriodChoice } from "../kit/period";
import { Denied, Part } from "../kit/states";
import { cents, clock, duration, percent, short, visible } from "../kit/words";
import { period, periodKey } from "../nav/period";
import { isWatched } from "../nav/presence";
import { screen, setParams } from "../nav/query";
import { go } from "../nav/router";
import { Attention } from "./overview/attention";
import { FirstRun } from "./overview/first_run";
import { NoCalls } from "./overview/no_calls";
import { Tile } from "./overview/tile";
import type { Budget, Graph, ProviderRow } from "./overview/types";

interface Figures {
  requests: Graph<{ total: number }>;
  errors: Graph<{ rate: number }>;
  latency: Graph<{ p90: number }>;
  cost: Graph<{ total: number }>;
  rescued: { summary: { retry: number; fallback: number } };
  cache: { summary: { saved_cost: number; hits: number }; previous?: { summary: { saved_cost: number } } };
  providers: ProviderRow[];
  /** Null where they could not be read. */
  budgets: Budget[] | null;
}

const QUESTIONS = [
  { graph: "requests", group_by: "model" },
  { graph: "errors/rate" },
  { graph: "latency" },
  { graph: "cost" },
  { graph: "requests/rescued" },
  { summary: "cache" },
  { group: "provider", columns: ["cost", "p95_latency", "success_rate"], top: 12 },
];

const REFRESH_MS = 30_000;

async function figures(): Promise<Figures> {
  const { from, to } = period();
  const budgets = get<{ data: Budget[] }>("/analytics/budgets", { page_size: 5 }).catch(() => null);
  const { answers } = await post("/analytics/query", { period: { from, to }, compare: "previous", questions: QUESTIONS });
  const [requests, errors, latency, cost, rescued, cache, providers] = answers;
  return { requests, errors, latency, cost, rescued, cache, providers: providers.data, budgets: (await budgets)?.data ?? null };
}

export default function Overview() {
  useEffect(() => {
    document.title = `${t().overview.title} · Portcullis`;
  }, []);
  // Without the right to figures the logs are what is left.
  useEffect(() => {
    if (!may("analytics.view") && may("logs.list")) go(screen("logs"), { replace: true });
  }, []);
  const loaded = useLoaded<Figures>(may("analytics.view") ? `overview ${workspace.value} ${periodKey()}` : null, figures);
  useEffect(() => {
    const timer = setInterval(() => isWatched() && loaded.reload(), REFRESH_MS);
    return () => clearInterval(timer);
  }, [workspace.value, periodKey()]);
  // The way to the first call stays until it is left, whatever the figures say meanwhile.
  const isFirst = useSignal(false);
  const leave = () => {
    isFirst.value = false;
    loaded.reload();
  };
  const state = loaded.state.value;
  return (
    <>
      <div class="head">
        <h1>{t().overview.title}</h1>
        <PeriodChoice />
        <AsText method="POST" path="/analytics/query" body={{ period: period(), compare: "previous", questions: QUESTIONS }} />
        {state.at && <span class="quiet">{t().state.asOf(clock(state.at))}</span>}
      </div>
      {isFirst.value ? (
        <FirstRun leave={leave} />
      ) : may("analytics.view") ? (
        <Part state={state} again={loaded.reload} lines={12}>
          {(found) => (found.requests.summary.total === 0 ? <NoCalls begin={() => (isFirst.value = true)} /> : <All figures={found} />)}
        </Part>
      ) : (
        <Denied />
      )}
    </>
  );
}

function All({ figures }: { figures: Figures }) {
  const texts = t().overview;
  const { requests, errors, latency, cost, cache } = figures;
  return (
    <>
      <div class="tiles">
        <Tile title={texts.calls} value={short(requests.summary.total)} now={requests.summary.total} before={requests.previous?.summary.total} points={requests.data_points.map(({ total }) => total)} href={screen("logs")} />
        <Tile title={texts.failed} value={percent(errors.summary.rate)} now={errors.summary.rate} before={errors.previous?.summary.rate} isPoints isLessBetter points={errors.data_points.map(({ rate }) => rate)} href={screen("logs", { status: "failed" })} />
        <Tile title={texts.latency} value={duration(latency.summary.p90)} now={latency.summary.p90} before={latency.previous?.summary.p90} isLessBetter points={latency.data_points.map(({ p90 }) => p90)} href={screen("logs")} />
        <Tile title={texts.cost} value={cents(cost.summary.total)} now={cost.summary.total} before={cost.previous?.summary.total} points={cost.data_points.map(({ total }) => total)} href={screen("budgets")} />
        <Tile title={texts.saved} value={cents(cache.summary.saved_cost)} now={cache.summary.saved_cost} before={cache.previous?.summary.saved_cost} points={[]} />
      </div>
      <Attention providers={figures.providers} budgets={figures.budgets} />
      <div class="split">
        <section class="panel">
          <header>
            <h2>{texts.byModel}</h2>
            <span class="quiet">{figures.rescued.summary.fallback > 0 && texts.rescued(short(figures.rescued.summary.fallback))}</span>
          </header>
          <div class="inside">
            <Models requests={requests} />
          </div>
        </section>
        <Providers rows={figures.providers} />
      </div>
    </>
  );
}

function Models({ requests }: { requests: Figures["requests"] }) {
  const texts = t().overview;
  const groups = requests.groups ?? [];
  const name = (value: string, isRest: boolean) => (isRest ? texts.rest : value ? visible(value) : texts.noModel);
  const series = groups.map(({ value, is_rest }, index) => ({ name: name(value, is_rest), colour: is_rest || index > 7 ? "var(--series-rest)" : `var(--series-${index})` }));
  const slots = requests.data_points.map(({ timestamp }, index) => ({ at: new Date(timestamp), values: groups.map(({ data_points }) => data_points[index]?.total ?? 0) }));
  const choose = (from: Date, to: Date) => setParams({ from: from.toISOString(), to: to.toISOString() });
  return (
    <>
      <Bars label={texts.byModel} slots={slots} series={series} height={190} choose={choose} />
      <ul class="legend below">
        {groups.map(({ value, is_rest }, index) => (
          <li key={value}>
            <i style={{ background: series[index]!.colour }} />
            {is_rest || !value ? series[index]!.name : <a href={screen("logs", { model: value })}>{series[index]!.name}</a>}
          </li>
        ))}
      </ul>
    </>
  );
}

function Providers({ rows }: { rows: ProviderRow[] }) {
  const texts = t().overview;
  return (
    <section class="panel">
      <header>
        <h2>{texts.providers}</h2>
      </header>
      <div class="scroll">
        <table class="table">
          <thead>
            <tr>
              <th scope="col">{texts.provider}</th>
              <th scope="col" class="number">{texts.attempts}</th>
              <th scope="col" class="number">{texts.success}</th>
              <th scope="col" class="number">{texts.p95}</th>
              <th scope="col" class="number">{texts.cost}</th>
            </tr>
          </thead>
          <tbody>
            {rows.filter(({ provider }) => provider).map((row) => (
              <tr key={row.provider}>
                <td>
                  <a href={screen("logs", { provider: row.provider })}>{visible(row.provider)}</a>
                </td>
                <td class="number">{short(row.requests)}</td>
                <td class={`number ${row.success_rate < 90 ? "worse" : ""}`}>{percent(row.success_rate)}</td>
                <td class="number nowrap">{duration(row.p95_latency)}</td>
                <td class="number">{cents(row.cost)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
