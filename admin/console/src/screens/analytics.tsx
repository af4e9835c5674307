// Analytics: one measure by one group, against the time before, and the same as a table. One question to the interface answers
// all of it, of one moment; what is measured, by what, and of which calls stands in the address.
import { useEffect } from "preact/hooks";
import { Fault, post } from "../api/call";
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

/** With what was asked for: figures stay until others have come. */
interface Figures {
  measure: MeasureName;
  grouping: Grouping;
  /** Why the groups are others than were asked for, in the interface's words. */
  refused?: string;
  graphs: Record<MeasureName, Graph>;
  groups: Groups;
}

/** Groups by metadata can be ordered by calls and cost alone. */
function orderOf(measure: MeasureName, grouping: Grouping): string {
  const { column } = MEASURES[measure];
  return grouping.name || column === "cost" ? column : "requests";
}

/** A graph for each tile, the chosen one by its groups, and the table. */
function question(measure: MeasureName, grouping: Grouping, filters: Filter[]) {
  const graphs = MEASURE_NAMES.map((name) => ({
    graph: MEASURES[name].graph,
    // Percentiles of groups do not add up, so latency is drawn for all calls together.
    ...(name === measure && name !== "latency" && grouping.name ? { group_by: grouping.name } : {}),
  }));
  const groups = { group: grouping.group, top: MAX_ROWS, order_by_type: "desc", include_total: true };
  // Groups by metadata have columns of their own.
  const columns = grouping.name ? { columns: COLUMNS, order_by: orderOf(measure, grouping) } : { order_by: orderOf(measure, grouping) };
  return { period: period(), compare: "previous", filters: toQuery(filters), questions: [...graphs, { ...groups, ...columns }] };
}

/** Some groups take a right of their own; without it the figures are still there, by model. */
async function figures(measure: MeasureName, grouping: Grouping, filters: Filter[]): Promise<Figures> {
  try {
    return await figuresBy(measure, grouping, filters);
  } catch (error) {
    const byModel = groupingNamed("");
    if (!(error instanceof Fault) || error.status !== 403 || grouping.text === byModel.text) throw error;
    return { ...(await figuresBy(measure, byModel, filters)), refused: error.message };
  }
}

async function figuresBy(measure: MeasureName, grouping: Grouping, filters: Filter[]): Promise<Figures> {
  const { answers } = await post("/analytics/query", question(measure, grouping, filters));
  return { measure, grouping, graphs: Object.fromEntries(MEASURE_NAMES.map((name, index) => [name, answers[index]])) as Record<MeasureName, Graph>, groups: answers.at(-1) };
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
        {may("analytics.view") && <Sheet grouping={state.data?.grouping ?? grouping} orderBy={orderOf(measure, grouping)} filters={filters} columns={COLUMNS} />}
        {state.at && <span class="quiet">{t().state.asOf(clock(state.at))}</span>}
      </div>
      <FilterBar filters={filters} />
      {may("analytics.view") ? (
        <Part state={state} again={loaded.reload} lines={12}>
          {(found) => (found.graphs.requests.summary.total === 0 ? <NoCalls filters={filters} /> : <All figures={found} chosen={measure} />)}
        </Part>
      ) : (
        <Denied />
      )}
    </>
  );
}

function All({ figures: { graphs, groups, measure, grouping, refused }, chosen }: { figures: Figures; chosen: MeasureName }) {
  const texts = t().analytics;
  return (
    <>
      {refused && (
        <p class="fault note" lang="en">
          {refused}
        </p>
      )}
      <MeasureTiles graphs={graphs} chosen={chosen} />
      <section class="panel">
        <header>
          <h2>{texts.measures[measure]}</h2>
          {measure !== "latency" && <span class="quiet">{texts.before}</span>}
        </header>
        <div class="inside">
          <Course graph={graphs[measure]} measure={measure} grouping={grouping} />
        </div>
        <GroupTable groups={groups} sums={{ requests: graphs.requests.summary.total, cost: graphs.cost.summary.total }} measure={measure} grouping={grouping} />
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
