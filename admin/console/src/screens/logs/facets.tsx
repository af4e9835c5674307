// The commonest values of a filter, asked when somebody opens it. They come from figures that are kept, not from the logs.
import { useSignal } from "@preact/signals";
import { get } from "../../api/call";
import { useLoaded } from "../../api/loaded";
import { workspace } from "../../api/session";
import { t } from "../../i18n";
import { Part } from "../../kit/states";
import { short, visible } from "../../kit/words";
import type { Filter } from "../../nav/filters";
import { periodKey, timeQuery } from "../../nav/period";
import { setParams } from "../../nav/query";

const GROUPS = { status: "status_code", model: "model", provider: "provider", key: "api_key", user: "user" } as const;
type Name = keyof typeof GROUPS;

type Row = { requests: number; name?: string } & Record<string, string | number>;

export function Facets({ filters }: { filters: Filter[] }) {
  return (
    <aside class="facets" aria-label={t().logs.filters}>
      {(Object.keys(GROUPS) as Name[]).map((name) => (
        <Facet key={name} name={name} chosen={filters.find((filter) => filter.name === name && !filter.isExcluded)?.value} isFirst={name === "status"} />
      ))}
    </aside>
  );
}

function Facet({ name, chosen, isFirst }: { name: Name; chosen?: string; isFirst: boolean }) {
  const isOpen = useSignal(isFirst || !!chosen);
  const group = GROUPS[name];
  const values = useLoaded(isOpen.value ? `facet ${name} ${workspace.value} ${periodKey()}` : null, async () => {
    const { data } = await get<{ data: Row[] }>(`/analytics/groups/${group}`, { ...timeQuery(), page_size: 20 });
    return data.filter((row) => row[group] !== "" && row[group] !== null);
  });
  return (
    <details open={isOpen.value} onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>{t().logs.values[name]}</summary>
      {isOpen.value && (
        <Part state={values.state.value} again={values.reload} lines={3}>
          {(rows) => (
            <ul>
              {rows.length === 0 && <li class="quiet">{t().logs.noValues}</li>}
              {rows.map((row) => {
                const value = String(row[group]);
                const isChosen = chosen === value;
                return (
                  <li key={value}>
                    <button type="button" aria-pressed={isChosen} onClick={() => setParams({ [name]: isChosen ? null : value, after: null })}>
                      <span title={value}>{visible(row.name || value)}</span>
                      <span class="quiet number">{short(row.requests)}</span>
                    </button>
                  </li>
                );
              })}
            </ul>
          )}
        </Part>
      )}
    </details>
  );
}
