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

/** A name like `constructor` is one that every object inherits. */
const own = (object: Record<string, unknown>, name: string) => (Object.hasOwn(object, name) ? object[name] : undefined);

export function differences(before: unknown, after: unknown, path = ""): Difference[] {
  if (Object.is(before, after)) return [];
  if (isObject(before) && isObject(after)) {
    const names = [...new Set([...Object.keys(before), ...Object.keys(after)])];
    return names.flatMap((name) => differences(own(before, name), own(after, name), path ? `${path}.${name}` : name));
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    return Array.from({ length: Math.max(before.length, after.length) }, (_, index) => differences(before[index], after[index], `${path}[${index}]`)).flat();
  }
  return [{ path, before, after }];
}
