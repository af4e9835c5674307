// The measures, each with its figure and its change; a click chooses the one that is drawn.
import { t } from "../../i18n";
import { Change } from "../../kit/change";
import { Spark } from "../../kit/chart";
import { setParams } from "../../nav/query";
import { MEASURES, MEASURE_NAMES, type Measure, type MeasureName } from "./measures";
import type { Graph } from "./types";

export function MeasureTiles({ graphs, chosen }: { graphs: Record<MeasureName, Graph>; chosen: MeasureName }) {
  return (
    <div class="tiles" role="group" aria-label={t().analytics.measure}>
      {MEASURE_NAMES.map((name) => (
        <MeasureTile key={name} name={name} graph={graphs[name]} isChosen={name === chosen} />
      ))}
    </div>
  );
}

function MeasureTile({ name, graph, isChosen }: { name: MeasureName; graph: Graph; isChosen: boolean }) {
  const { value, format, isLessBetter }: Measure = MEASURES[name];
  const now = graph.summary[value] ?? 0;
  return (
    <button type="button" class="panel tile choice" aria-pressed={isChosen} onClick={() => setParams({ measure: name === "requests" ? null : name })}>
      <span class="quiet">{t().analytics.measures[name]}</span>
      <span class="figure">{format(now)}</span>
      <span class="change">
        <Change now={now} before={graph.previous?.summary[value]} isLessBetter={isLessBetter} />
      </span>
      <Spark values={graph.data_points.map((point) => point[value] ?? 0)} />
    </button>
  );
}
