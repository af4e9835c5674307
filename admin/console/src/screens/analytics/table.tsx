// The groups as a table: each with its share of the chosen measure and its change against the time before. A value narrows
// everything to itself, and leads to its calls.
import { may, workspaceName } from "../../api/session";
import { t } from "../../i18n";
import { Bar } from "../../kit/basics";
import { Change } from "../../kit/change";
import { cents, count, duration, percent, short, visible } from "../../kit/words";
import { withFilters } from "../../nav/filters";
import { addressOf } from "../../nav/query";
import { place, ROOT } from "../../nav/router";
import { MEASURES, narrowedTo, type Grouping, type Measure, type MeasureName } from "./measures";
import type { Groups, Row } from "./types";

const COLUMNS: Measure["column"][] = ["requests", "cost", "total_tokens", "p95_latency", "error_count"];
/** Whichever of them is shown, a rise of these is the worse. */
const IS_LESS_BETTER: Partial<Record<Measure["column"], boolean>> = { p95_latency: true, error_count: true };
const FORMATS = { requests: short, cost: cents, total_tokens: short, p95_latency: duration, error_count: short };

interface GroupTableProps {
  groups: Groups;
  /** Of all calls, where the groups come without totals. */
  sums: Partial<Record<Measure["column"], number>>;
  measure: MeasureName;
  grouping: Grouping;
}

export function GroupTable({ groups, sums, measure, grouping }: GroupTableProps) {
  const texts = t().analytics;
  const { data, totals, previous } = groups;
  // Groups by metadata have fewer columns.
  const columns = COLUMNS.filter((column) => data[0]?.[column] !== undefined);
  const column = columns.includes(MEASURES[measure].column) ? MEASURES[measure].column : "requests";
  const valueOf = (row: Row) => String(row[grouping.field] ?? "");
  const earlier = new Map(previous?.data.map((row) => [valueOf(row), row]));
  const hasShare = column !== "p95_latency";
  const sum = totals?.[column] ?? sums[column] ?? data.reduce((all, row) => all + (row[column] ?? 0), 0);
  return (
    <>
      <div class="scroll">
        <table class="table cards">
          <thead>
            <tr>
              <th scope="col">{grouping.name ? texts.groups[grouping.name] : visible(grouping.text)}</th>
              {hasShare && <th scope="col">{texts.share}</th>}
              <th scope="col">{texts.change}</th>
              {columns.map((one) => (
                <th key={one} scope="col" class="number" aria-sort={one === column ? "descending" : undefined}>
                  {texts.columns[one]}
                </th>
              ))}
              <th scope="col">
                <span class="hidden-visually">{t().state.actions}</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map((row) => {
              const value = valueOf(row);
              return (
                <tr key={value}>
                  <td>
                    <Value row={row} value={value} grouping={grouping} />
                  </td>
                  {hasShare && (
                    <td>
                      <span class="row">
                        <Bar share={sum > 0 ? (row[column] ?? 0) / sum : 0} />
                        <span class="quiet">{sum > 0 ? percent(((row[column] ?? 0) / sum) * 100) : "–"}</span>
                      </span>
                    </td>
                  )}
                  <td class="nowrap">
                    <Change now={row[column] ?? 0} before={earlier.get(value)?.[column]} isLessBetter={IS_LESS_BETTER[column]} isShort />
                  </td>
                  {columns.map((one) => (
                    <td key={one} class="number nowrap">
                      {FORMATS[one](row[one] ?? 0)}
                    </td>
                  ))}
                  <td>
                    <Calls value={value} grouping={grouping} />
                  </td>
                </tr>
              );
            })}
          </tbody>
          {totals && (
            <tfoot>
              <tr>
                <th scope="row">{texts.all}</th>
                {hasShare && <td />}
                <td />
                {columns.map((one) => (
                  <td key={one} class="number nowrap">
                    {FORMATS[one](totals[one] ?? 0)}
                  </td>
                ))}
                <td />
              </tr>
            </tfoot>
          )}
        </table>
      </div>
      <p class="inside quiet">{t().state.ofMany(count(data.length), count(groups.total), groups.total_is_capped)}</p>
    </>
  );
}

function Value({ row, value, grouping }: { row: Row; value: string; grouping: Grouping }) {
  const name = visible(row.name || (grouping.name === "workspace" && workspaceName(value)) || value || t().analytics.none);
  const narrowed = narrowedTo(grouping, value);
  return narrowed ? (
    <a class="row-link" title={value} href={addressOf(withFilters(place.value.query, [narrowed]))}>
      {name}
    </a>
  ) : (
    <span class="row-link">{name}</span>
  );
}

/** The calls behind a row: the same filters and period, and its value. */
function Calls({ value, grouping }: { value: string; grouping: Grouping }) {
  const narrowed = narrowedTo(grouping, value);
  if (!narrowed || !may("logs.list")) return null;
  const query = withFilters(place.value.query, [narrowed]);
  for (const name of ["measure", "by"]) query.delete(name);
  return (
    <a class="button small" href={addressOf(query, `${ROOT}/logs`)} aria-label={t().analytics.callsOf(value)}>
      {t().analytics.calls}
    </a>
  );
}
