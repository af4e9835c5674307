// What differs between two JSON values, path by path. Lists are compared element by element: configs name their targets by
// their place, too.

export interface Difference {
  path: string;
  before?: unknown;
  after?: unknown;
}

/** A document is shown up to here; what comes behind it is counted. */
export const MAX_DIFFERENCES = 200;

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);

export function differences(before: unknown, after: unknown, path = ""): Difference[] {
  if (Object.is(before, after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => differences(before[name], after[name], path ? `${path}.${name}` : name));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    return Array.from({ length: Math.max(before.length, after.length) }, (_, index) => differences(before[index], after[index], `${path}[${index}]`)).flat();
  }
  return [{ path, before, after }];
}
