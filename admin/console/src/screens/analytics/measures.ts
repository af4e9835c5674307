// What can be measured, and by what it can be grouped: the words of the address, of the interface and of the filters of logs.
import { cents, duration, short } from "../../kit/words";
import type { Filter } from "../../nav/filters";

export interface Measure {
  /** The graph over time, and which of its numbers the chart and the tile show. */
  graph: string;
  value: "total" | "p90";
  /** The column of the table, by which it is ordered. */
  column: "requests" | "cost" | "total_tokens" | "p95_latency" | "error_count";
  format: (value: number) => string;
  isLessBetter?: boolean;
}

export const MEASURES = {
  requests: { graph: "requests", value: "total", column: "requests", format: short },
  cost: { graph: "cost", value: "total", column: "cost", format: cents },
  tokens: { graph: "tokens", value: "total", column: "total_tokens", format: short },
  latency: { graph: "latency", value: "p90", column: "p95_latency", format: duration, isLessBetter: true },
  errors: { graph: "errors", value: "total", column: "error_count", format: short, isLessBetter: true },
} satisfies Record<string, Measure>;

export type MeasureName = keyof typeof MEASURES;
export const MEASURE_NAMES = Object.keys(MEASURES) as MeasureName[];

/** A measure of the address; nonsense is the first one. */
export const measureNamed = (name: string): MeasureName => (Object.hasOwn(MEASURES, name) ? (name as MeasureName) : "requests");

/** Groups of the interface, each with the filter of logs that narrows to one of its values. */
const FILTER_OF_GROUP = {
  model: "model", provider: "provider", ai_service: "vendor", api_key: "key", user: "user", config: "config", status_code: "status", workspace: "", prompt: "", guardrail: "",
} as const;

export type GroupName = keyof typeof FILTER_OF_GROUP;
export const GROUP_NAMES = Object.keys(FILTER_OF_GROUP) as GroupName[];

export interface Grouping {
  /** As the address has it: the name of a group, or `metadata.` and a name of metadata. */
  text: string;
  /** As the interface is asked. */
  group: string;
  /** In which field of a row its value stands. */
  field: string;
  /** Null where values come from metadata, whose graphs the interface does not have. */
  name: GroupName | null;
}

const METADATA = "metadata.";

export function groupingNamed(text: string): Grouping {
  const key = text.startsWith(METADATA) ? text.slice(METADATA.length) : "";
  if (key) return { text, group: `metadata/${key}`, field: "metadata_value", name: null };
  const name = Object.hasOwn(FILTER_OF_GROUP, text) ? (text as GroupName) : "model";
  return { text: name, group: name, field: name, name };
}

export const byMetadata = (key: string) => METADATA + key;

/** The filter that narrows to one value; null where none does that. */
export function narrowedTo({ text, name }: Grouping, value: string): Filter | null {
  if (!value) return null;
  if (name === null) return { name: "meta", value: `${text.slice(METADATA.length)}=${value}`, isExcluded: false };
  const filter = FILTER_OF_GROUP[name];
  return filter ? { name: filter, value, isExcluded: false } : null;
}
