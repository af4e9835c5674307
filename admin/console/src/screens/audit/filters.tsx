// What narrows the trail: the kind of object, one object, the action, and who did it.
import type { Query } from "../../api/call";
import { t } from "../../i18n";
import { visible } from "../../kit/words";
import { param, setParams } from "../../nav/query";

/** Names in the address, and what the interface calls them. */
const NAMES = { type: "resource_type", object: "resource_id", action: "action", by: "user_id" } as const;

export const FILTERS = Object.keys(NAMES) as (keyof typeof NAMES)[];

export const filterQuery = (): Query => Object.fromEntries(FILTERS.flatMap((name) => (param(name) ? [[NAMES[name], param(name)]] : [])));

export function AuditFilters() {
  const texts = t().audit;
  return (
    <div class="row">
      <Choice name="type" label={texts.type} every={texts.everyType} values={texts.types} />
      <Choice name="action" label={texts.action} every={texts.everyAction} values={texts.actions} />
      {(["object", "by"] as const).map((name) =>
        param(name) ? (
          <span key={name} class="chip">
            {texts[name]}: {visible(param(name))}
            <button type="button" class="button bare small" aria-label={t().logs.remove(texts[name])} onClick={() => setParams({ [name]: null, page: null })}>
              ✕
            </button>
          </span>
        ) : null,
      )}
    </div>
  );
}

function Choice({ name, label, every, values }: { name: "type" | "action"; label: string; every: string; values: Record<string, string> }) {
  const chosen = param(name);
  return (
    <select class="plain" aria-label={label} value={chosen} onChange={(event) => setParams({ [name]: event.currentTarget.value, page: null })}>
      <option value="">{every}</option>
      {Object.entries(values).map(([value, text]) => (
        <option key={value} value={value}>
          {text}
        </option>
      ))}
      {chosen && !Object.hasOwn(values, chosen) && <option value={chosen}>{visible(chosen)}</option>}
    </select>
  );
}
