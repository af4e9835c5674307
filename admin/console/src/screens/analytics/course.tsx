// The chosen measure over time. Sums are stacked by group with the time before as a dashed line; percentiles are lines, since
// they do not add up.
import { t } from "../../i18n";
import { Bars } from "../../kit/chart";
import type { Series } from "../../kit/chart_frame";
import { LineChart } from "../../kit/line_chart";
import { visible } from "../../kit/words";
import { withFilters } from "../../nav/filters";
import { addressOf, setParams } from "../../nav/query";
import { place } from "../../nav/router";
import { MEASURES, narrowedTo, type Grouping, type MeasureName } from "./measures";
import type { Graph, Point } from "./types";

const PERCENTILES = ["p50", "p90", "p99"] as const;
/** As many groups have colours that can be told apart. */
const COLOURS = 8;

const choose = (from: Date, to: Date) => setParams({ from: from.toISOString(), to: to.toISOString() });

export function Course({ graph, measure, grouping }: { graph: Graph; measure: MeasureName; grouping: Grouping }) {
  const label = t().analytics.measures[measure];
  const { format } = MEASURES[measure];
  if (measure === "latency") {
    const series = PERCENTILES.map((name, index) => ({ name, colour: `var(--series-${index})` }));
    // A slot without calls has no latency: a gap, not a zero.
    const slots = graph.data_points.map((point) => ({ at: new Date(point.timestamp), values: PERCENTILES.map((name) => point[name] || null) }));
    return (
      <>
        <LineChart label={label} slots={slots} series={series} format={format} choose={choose} />
        <ul class="legend below">
          {series.map(({ name, colour }) => (
            <li key={name}>
              <i style={{ background: colour }} />
              {name}
            </li>
          ))}
        </ul>
      </>
    );
  }
  return <Stacked graph={graph} label={label} grouping={grouping} format={format} />;
}

function Stacked({ graph, label, grouping, format }: { graph: Graph; label: string; grouping: Grouping; format: (value: number) => string }) {
  const texts = t().analytics;
  const groups = graph.groups ?? [{ value: null, name: label, is_rest: false, data_points: graph.data_points }];
  const nameOf = ({ value, name, is_rest }: (typeof groups)[number]) => (is_rest ? t().overview.rest : visible(name || value || texts.none));
  const series: Series[] = groups.map((group, index) => ({ name: nameOf(group), colour: group.is_rest || index >= COLOURS ? "var(--series-rest)" : `var(--series-${index})` }));
  const amount = (point?: Point) => point?.total ?? 0;
  const slots = graph.data_points.map(({ timestamp }, index) => ({ at: new Date(timestamp), values: groups.map(({ data_points }) => amount(data_points[index])) }));
  return (
    <>
      <Bars label={label} slots={slots} series={series} before={graph.previous?.data_points.map(amount)} height={190} format={format} choose={choose} />
      {graph.groups && (
        <ul class="legend below">
          {groups.map((group, index) => {
            const narrowed = group.is_rest ? null : narrowedTo(grouping, group.value ?? "");
            return (
              <li key={`${group.value}/${group.is_rest}`}>
                <i style={{ background: series[index]!.colour }} />
                {narrowed ? <a href={addressOf(withFilters(place.value.query, [narrowed]))}>{series[index]!.name}</a> : series[index]!.name}
              </li>
            );
          })}
        </ul>
      )}
    </>
  );
}
