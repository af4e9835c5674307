// Logs: the list, what narrows it, how calls are spread over time, and new ones as they arrive. The list is asked first; the
// spread and the values of a filter come from figures that are kept, so that nothing here counts all logs.
import { useComputed, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get } from "../api/call";
import { useLoaded } from "../api/loaded";
import { may, workspace } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { Bars } from "../kit/chart";
import type { Slot } from "../kit/chart_frame";
import { PeriodChoice } from "../kit/period";
import { Empty, Failed, Part } from "../kit/states";
import { Side } from "../kit/surfaces";
import { clock, short } from "../kit/words";
import { asText, fromAddress, toQuery, type Filter } from "../nav/filters";
import { periodKey, timeQuery } from "../nav/period";
import { param, setParams, screen } from "../nav/query";
import { place } from "../nav/router";
import { LogPage, LogView } from "./log";
import { useLive } from "./logs/live";
import { Facets } from "./logs/facets";
import { FilterBar, remove } from "./logs/filter_bar";
import { LogTable } from "./logs/table";
import type { LogRow } from "./logs/types";

interface Page {
  data: LogRow[];
  total: number;
  total_is_capped: boolean;
  next: string | null;
}

export default function Logs() {
  const [, id] = place.value.path.split("/");
  useEffect(() => {
    document.title = `${t().logs.title} · Portcullis`;
  }, []);
  return id ? <LogPage id={id} /> : <List />;
}

function List() {
  const texts = t().logs;
  const filters = fromAddress(place.value.query);
  const key = `logs ${workspace.value} ${periodKey()} ${filters.map(asText).join(" ")}`;
  const query = () => ({ ...timeQuery(), ...toQuery(filters) });
  const list = useLoaded<Page>(key, () => get<Page>("/logs", { ...query(), page_size: 50 }));
  const older = useSignal<{ key: string; pages: Page[]; isLoading: boolean }>({ key, pages: [], isLoading: false });
  const pages = older.value.key === key ? older.value.pages : [];
  const isLive = param("live") === "1";
  const live = useLive(isLive, key, toQuery(filters));
  const open = param("log");
  const first = list.state.value.data;
  const rows = useComputed(() => {
    const seen = new Set<string>();
    const all = [...live.rows.value, ...(list.state.value.data?.data ?? []), ...(older.value.key === key ? older.value.pages : []).flatMap(({ data }) => data)];
    return all.filter(({ id }) => !seen.has(id) && seen.add(id));
  });
  const last = pages.at(-1) ?? first;
  const more = async () => {
    if (!last?.next) return;
    older.value = { key, pages, isLoading: true };
    const page = await get<Page>("/logs", { ...query(), page_size: 50, after: last.next }).catch(() => null);
    older.value = { key, pages: page ? [...pages, page] : pages, isLoading: false };
  };
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        <button type="button" class="button" aria-pressed={isLive} title={texts.liveOff} onClick={() => setParams({ live: isLive ? null : "1" })}>
          <span aria-hidden="true">{isLive ? "●" : "○"}</span> {texts.live}
        </button>
        <PeriodChoice />
        <AsText path="/logs" query={{ ...query(), page_size: 50 }} />
        {list.state.value.at && <span class="quiet">{t().state.asOf(clock(list.state.value.at))}</span>}
      </div>
      <FilterBar filters={filters} />
      {first && may("analytics.view") && <Spread filters={filters} listKey={key} />}
      <div class="with-facets">
        {may("analytics.view") ? <Facets filters={filters} /> : <span />}
        <section class="panel" aria-busy={list.state.value.isLoading}>
          {live.fault.value && <Failed fault={live.fault.value} />}
          {live.hasGap.value && <p class="fault note">{texts.gap}</p>}
          {live.held.value > 0 && (
            <button type="button" class="button small" onClick={live.release}>
              {texts.fresh(short(live.held.value))}
            </button>
          )}
          <Part state={list.state.value} again={list.reload} lines={10}>
            {(page) =>
              rows.value.length === 0 ? (
                <Nothing filters={filters} />
              ) : (
                <>
                  <LogTable rows={rows.value} open={open} />
                  <div class="row wide" style={{ padding: "8px 12px" }}>
                    <span class="quiet">{t().state.ofMany(short(rows.value.length), short(page.total), page.total_is_capped)}</span>
                    {last?.next && (
                      <button type="button" class="button small" disabled={older.value.isLoading} onClick={() => void more()}>
                        {texts.older}
                      </button>
                    )}
                  </div>
                </>
              )
            }
          </Part>
        </section>
      </div>
      {open && (
        <Side title={t().log.title} close={() => setParams({ log: null })} actions={<a class="button small" href={screen(`logs/${open}`)} aria-label={`${t().log.title} ${open}`}>↗</a>}>
          <LogView key={open} id={open} />
        </Side>
      )}
    </>
  );
}

/** Calls over time; a slot or a stretch of them that is chosen becomes the period. */
function Spread({ filters, listKey }: { filters: Filter[]; listKey: string }) {
  const graph = useLoaded(`spread ${listKey}`, () =>
    get<Graph>("/analytics/graphs/requests", { ...timeQuery(), ...toQuery(filters), group_by: "status_code" }),
  );
  const found = graph.state.value.data;
  if (!found || found.data_points.length === 0) return <div style={{ blockSize: "114px" }} />;
  const choose = (from: Date, to: Date) => setParams({ from: from.toISOString(), to: to.toISOString() });
  const series = [
    { name: t().logs.failed, colour: "var(--bad)" },
    { name: t().logs.ok, colour: "var(--bar)" },
  ];
  return <Bars label={t().logs.perSlot} slots={slots(found)} series={series} height={80} choose={choose} />;
}

interface Graph {
  data_points: { timestamp: string; total: number }[];
  groups?: { value: string; is_rest: boolean; data_points: { total: number }[] }[];
}

function slots({ data_points, groups = [] }: Graph): Slot[] {
  const failing = groups.filter(({ value }) => /^\d+$/.test(value) && !value.startsWith("2"));
  return data_points.map(({ timestamp, total }, index) => {
    const failed = failing.reduce((sum, group) => sum + (group.data_points[index]?.total ?? 0), 0);
    return { at: new Date(timestamp), values: [failed, Math.max(0, total - failed)] };
  });
}

/** Which of the reasons it is that nothing is shown. */
function Nothing({ filters }: { filters: Filter[] }) {
  const texts = t().logs;
  if (filters.length === 0) {
    return (
      <Empty title={texts.empty} action={<button type="button" class="button" onClick={() => setParams({ from: "-30d", to: null })}>{texts.longer}</button>}>
        {texts.emptyWhy}
      </Empty>
    );
  }
  return (
    <Empty
      title={texts.nothing}
      action={
        <div class="chips">
          {filters.map((filter) => (
            <button key={asText(filter)} type="button" class="button small" onClick={() => remove(filter)}>
              {texts.remove(asText(filter))}
            </button>
          ))}
        </div>
      }
    >
      {texts.nothingWhy}
    </Empty>
  );
}
