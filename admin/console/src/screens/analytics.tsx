// Analytics: one measure by one group, against the time before, and the same as a table. One question to the interface answers
// all of it, of one moment; what is measured, by what, and of which calls stands in the address.
import { useEffect } from "preact/hooks";
import { post } from "../api/call";
import { useLoaded } from "../api/loaded";
import { may, workspace } from "../api/session";
import { t } from "../i18n";
import { AsText } from "../kit/as_text";
import { PeriodChoice } from "../kit/period";
import { Denied, Empty, Part } from "../kit/states";
import { clock } from "../kit/words";
import { asText, fromAddress, toQuery, type Filter } from "../nav/filters";
import { period, periodKey } from "../nav/period";
import { param, setParams } from "../nav/query";
import { place } from "../nav/router";
import { Course } from "./analytics/course";
import { GroupChoice } from "./analytics/group_choice";
import { groupingNamed, MEASURES, MEASURE_NAMES, measureNamed, type Grouping, type MeasureName } from "./analytics/measures";
import { Sheet } from "./analytics/sheet";
import { GroupTable } from "./analytics/table";
import { MeasureTiles } from "./analytics/tiles";
import type { Graph, Groups } from "./analytics/types";
import { FilterBar } from "./logs/filter_bar";

const MAX_ROWS = 50;
const COLUMNS = ["cost", "total_tokens", "p95_latency", "error_count"];

interface Figures {
  graphs: Record<MeasureName, Graph>;
  groups: Groups;
}

/** A graph for each tile, the chosen one by its groups, and the table. */
function question(measure: MeasureName, grouping: Grouping, filters: Filter[]) {
  const { column } = MEASURES[measure];
  const graphs = MEASURE_NAMES.map((name) => ({
    graph: MEASURES[name].graph,
    // Percentiles of groups do not add up, so latency is drawn for all calls together.
    ...(name === measure && name !== "latency" && grouping.name ? { group_by: grouping.name } : {}),
  }));
  const groups = { group: grouping.group, top: MAX_ROWS, order_by_type: "desc", include_total: true };
  // Groups by metadata have columns of their own.
  const columns = grouping.name ? { columns: COLUMNS, order_by: column } : { order_by: column === "cost" ? "cost" : "requests" };
  return { period: period(), compare: "previous", filters: toQuery(filters), questions: [...graphs, { ...groups, ...columns }] };
}

async function figures(measure: MeasureName, grouping: Grouping, filters: Filter[]): Promise<Figures> {
  const { answers } = await post("/analytics/query", question(measure, grouping, filters));
  return { graphs: Object.fromEntries(MEASURE_NAMES.map((name, index) => [name, answers[index]])) as Record<MeasureName, Graph>, groups: answers.at(-1) };
}

export default function Analytics() {
  const texts = t().analytics;
  useEffect(() => {
    document.title = `${texts.title} · Portcullis`;
  }, []);
  const [measure, grouping] = [measureNamed(param("measure")), groupingNamed(param("by"))];
  const filters = fromAddress(place.value.query);
  const key = `analytics ${workspace.value} ${periodKey()} ${measure} ${grouping.text} ${filters.map(asText).join(" ")}`;
  const loaded = useLoaded<Figures>(may("analytics.view") ? key : null, () => figures(measure, grouping, filters));
  const state = loaded.state.value;
  return (
    <>
      <div class="head">
        <h1>{texts.title}</h1>
        <GroupChoice grouping={grouping} />
        <PeriodChoice />
        <AsText method="POST" path="/analytics/query" body={question(measure, grouping, filters)} />
        {may("analytics.view") && <Sheet grouping={grouping} filters={filters} columns={COLUMNS} />}
        {state.at && <span class="quiet">{t().state.asOf(clock(state.at))}</span>}
      </div>
      <FilterBar filters={filters} />
      {may("analytics.view") ? (
        <Part state={state} again={loaded.reload} lines={12}>
          {(found) => (found.graphs.requests.summary.total === 0 ? <NoCalls filters={filters} /> : <All figures={found} measure={measure} grouping={grouping} />)}
        </Part>
      ) : (
        <Denied />
      )}
    </>
  );
}

function All({ figures: { graphs, groups }, measure, grouping }: { figures: Figures; measure: MeasureName; grouping: Grouping }) {
  const texts = t().analytics;
  return (
    <>
      <MeasureTiles graphs={graphs} chosen={measure} />
      <section class="panel">
        <header>
          <h2>{texts.measures[measure]}</h2>
          {measure !== "latency" && <span class="quiet">{texts.before}</span>}
        </header>
        <div class="inside">
          <Course graph={graphs[measure]} measure={measure} grouping={grouping} />
        </div>
        <GroupTable groups={groups} measure={measure} grouping={grouping} />
      </section>
    </>
  );
}

function NoCalls({ filters }: { filters: Filter[] }) {
  const texts = t().logs;
  return (
    <section class="panel">
      {filters.length > 0 ? (
        <Empty title={texts.nothing}>{texts.nothingWhy}</Empty>
      ) : (
        <Empty title={texts.empty} action={<button type="button" class="button" onClick={() => setParams({ from: "-30d", to: null })}>{texts.longer}</button>}>
          {texts.emptyWhy}
        </Empty>
      )}
    </section>
  );
}
