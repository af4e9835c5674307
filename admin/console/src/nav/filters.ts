// Filters of logs: as people type them (`status:5xx -model:gpt-4o took>2s`), as the address has them (`status=5xx`), and as the
// interface takes them (`status_class=5xx`). Pure, so that tests go round in all three.
import type { Query } from "../api/call";

type Form = (value: string, isExcluded: boolean) => Query | null;

const plain = (name: string): Form => (value, isExcluded) => ({ [(isExcluded ? "-" : "") + name]: value });
const onlyIncluded = (name: string): Form => (value, isExcluded) => (isExcluded ? null : { [name]: value });

function status(value: string, isExcluded: boolean): Query | null {
  if (value === "ok" || value === "failed") return { is_success: (value === "ok") !== isExcluded };
  const parts = value.split(",");
  if (parts.every((part) => /^[1-5]xx$/.test(part))) return isExcluded ? null : { status_class: value };
  if (parts.every((part) => /^\d{3}$/.test(part))) return { [isExcluded ? "-status_code" : "status_code"]: value };
  return null;
}

/** `team=red`: a name of metadata and its value. */
function metadata(value: string, isExcluded: boolean): Query | null {
  const found = /^([^=]+)=(.+)$/.exec(value);
  return found && !isExcluded ? { metadata: JSON.stringify({ [found[1]!]: found[2] }) } : null;
}

const UNITS: Record<string, number> = { ms: 1, s: 1000, min: 60_000, c: 1, $: 100 };

/** `>2s`, `<500ms`, `>1c`, `>0.5$`: a number without a unit is of the first one. */
function bound(name: string, units: string[]): Form {
  return (value, isExcluded) => {
    const found = /^([<>])\s*(\d+(?:\.\d+)?)\s*([a-z$]*)$/.exec(value);
    const unit = found?.[3] || units[0]!;
    if (!found || isExcluded || !units.includes(unit)) return null;
    return { [`${name}_${found[1] === ">" ? "min" : "max"}`]: Number(found[2]) * UNITS[unit]! };
  };
}

export const FILTERS: Record<string, Form> = {
  status,
  model: plain("ai_model"),
  provider: plain("virtual_keys"),
  vendor: plain("ai_org"),
  key: onlyIncluded("api_key_ids"),
  user: (value, isExcluded) => (isExcluded ? null : { metadata: JSON.stringify({ _user: value }) }),
  meta: metadata,
  error: plain("error_code"),
  path: plain("request_url"),
  trace: plain("trace_id"),
  config: plain("configs"),
  took: bound("response_time", ["ms", "s", "min"]),
  cost: bound("cost", ["c", "$"]),
};

export interface Filter {
  name: string;
  value: string;
  isExcluded: boolean;
}

export const nameInAddress = ({ name, isExcluded }: Pick<Filter, "name" | "isExcluded">) => (isExcluded ? "-" : "") + name;

/** Filters take the place of each other by this: each name of metadata is a filter of its own. */
const placeOf = (filter: Filter) => `${nameInAddress(filter)} ${filter.name === "meta" ? filter.value.split("=")[0] : ""}`;

/** The query of an address without a filter. Others of the same name stay, and everything that is no filter. */
export function withoutFilter(query: URLSearchParams, filter: Filter): URLSearchParams {
  const isSame = (key: string, value: string) => key === nameInAddress(filter) && placeOf({ ...filter, value }) === placeOf(filter);
  return new URLSearchParams([...query].filter(([key, value]) => !isSame(key, value)));
}

/** The query of an address with more filters, each in the place of the one before. */
export function withFilters(query: URLSearchParams, filters: Filter[]): URLSearchParams {
  return filters.reduce((all, filter) => {
    const next = withoutFilter(all, filter);
    next.append(nameInAddress(filter), filter.value);
    return next;
  }, query);
}

/** What stands in an address, in its order. Names that are no filters are other things of the address. */
export function fromAddress(query: URLSearchParams): Filter[] {
  return [...query].flatMap(([key, value]) => {
    const isExcluded = key.startsWith("-");
    const name = isExcluded ? key.slice(1) : key;
    return Object.hasOwn(FILTERS, name) && value ? [{ name, value, isExcluded }] : [];
  });
}

/** Whether the interface can be asked for it: an address may have anything. */
export const isValid = ({ name, value, isExcluded }: Filter) => FILTERS[name]!(value, isExcluded) !== null;

/** For the interface. What it could not take is left out here, and marked on the screen. Pairs of metadata are one filter there. */
export function toQuery(filters: Filter[]): Query {
  const parts = filters.map(({ name, value, isExcluded }) => FILTERS[name]!(value, isExcluded) ?? {});
  const pairs = parts.flatMap(({ metadata: one }) => (one ? [JSON.parse(String(one))] : []));
  return Object.assign({}, ...parts, ...(pairs.length > 0 ? [{ metadata: JSON.stringify(Object.assign({}, ...pairs)) }] : []));
}

export const asText = ({ name, value, isExcluded }: Filter) => {
  const quoted = /[\s"]/.test(value) ? `"${value.replaceAll('"', "'")}"` : value;
  return `${isExcluded ? "-" : ""}${name}${/^[<>]/.test(value) ? "" : ":"}${quoted}`;
};

/** What was typed, and the first word that is no filter. */
export function parse(text: string): { filters: Filter[]; unknown: string | null } {
  const filters: Filter[] = [];
  for (const [word] of text.matchAll(/-?[a-z]+[:<>](?:"[^"]*"|\S+)|\S+/g)) {
    const found = /^(-?)([a-z]+)(:|(?=[<>]))(.+)$/.exec(word);
    const value = found?.[4]?.replace(/^"(.*)"$/, "$1") ?? "";
    const filter = { name: found?.[2] ?? "", value, isExcluded: found?.[1] === "-" };
    if (!found || !Object.hasOwn(FILTERS, filter.name) || !FILTERS[filter.name]!(value, filter.isExcluded)) return { filters, unknown: word };
    filters.push(filter);
  }
  return { filters, unknown: null };
}
