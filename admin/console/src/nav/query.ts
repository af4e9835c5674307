// Everything that is seen stands in the address: filters, period, what is open. Reading a name subscribes to it.
import { go, place, ROOT } from "./router";

export const param = (name: string) => place.value.query.get(name) ?? "";

type Changes = Record<string, string | null | undefined>;

/** An address of a path and a query. */
export function addressOf(query: URLSearchParams, path = location.pathname): string {
  const search = query.toString();
  return path + (search ? `?${search}` : "");
}

/** The same address with other names; empty ones are left out, so that a default has one spelling. */
export function withParams(changes: Changes, path = location.pathname): string {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(changes)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  return addressOf(query, path);
}

export const setParams = (changes: Changes, options?: { replace?: boolean }) => go(withParams(changes), options);

/** What was done to an object in the last month. */
export const historyOf = (id: string) => screen("audit", { object: id, from: "-30d", to: null });

/** Another screen: only the workspace and the period go along. */
export function screen(path: string, params: Changes = {}): string {
  const query = new URLSearchParams();
  for (const name of ["ws", "from", "to"]) {
    const value = place.value.query.get(name);
    if (value) query.set(name, value);
  }
  for (const [name, value] of Object.entries(params)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  return addressOf(query, `${ROOT}${path ? `/${path}` : ""}`);
}
