// Every request of the console to the public interface. The session's cookie is all that opens it; what changes something
// repeats the token that the session told this page. A fetch is never broken off: an answer nobody waits for is ignored.
import { signal } from "@preact/signals";

export type Query = Record<string, string | number | boolean | undefined | null>;
export type Json = any;

interface Options {
  query?: Query;
  body?: Json;
  /** `*` is the whole organisation; without one it is what the address names. */
  workspace?: string;
  headers?: Record<string, string>;
}

/** What the interface refused, in its own words. */
export class Fault extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly type: string,
    readonly code: string,
    readonly requestId: string,
    readonly fields: { path: string; message: string }[],
    readonly retryAfter: number | null,
  ) {
    super(message);
  }

  /** The sentence about a field of a form. */
  about(path: string): string | undefined {
    return this.fields.find((field) => field.path === path)?.message;
  }
}

/** Set by `session.ts`: the token that changes repeat, the workspace of the address, and a look whether the token is another by now. */
export const acting = { csrf: "", workspace: () => "" as string, hasNewToken: async () => false };

/** True once the interface said that nobody is signed in. */
export const isSignedOut = signal(false);

// Searches take turns in each organisation: more at once would only wait there.
const MAX_SEARCHES = 2;
let searching = 0;
const waiting: (() => void)[] = [];

async function turn(): Promise<void> {
  if (searching >= MAX_SEARCHES) await new Promise<void>((resolve) => waiting.push(resolve));
  searching += 1;
}

function finished(): void {
  searching -= 1;
  waiting.shift()?.();
}

const isSearch = (path: string) => path.startsWith("/logs") || path.startsWith("/analytics");

export async function call<T = Json>(method: string, path: string, given: Options = {}): Promise<T> {
  return (await (await request(method, path, given)).json().catch(() => null)) as T;
}

async function request(method: string, path: string, given: Options): Promise<Response> {
  // Where this is asked for is settled now: after a wait the address may name another workspace.
  const options = { ...given, workspace: given.workspace ?? acting.workspace() };
  if (!isSearch(path)) return repeated(method, path, options);
  await turn();
  try {
    return await repeated(method, path, options);
  } finally {
    finished();
  }
}

export const get = <T = Json>(path: string, query?: Query, options: Options = {}) => call<T>("GET", path, { ...options, query });
export const post = <T = Json>(path: string, body?: Json, options: Options = {}) => call<T>("POST", path, { ...options, body });

/** An object with the tag of its state: a change that repeats the tag is refused once somebody else changed the object. */
export async function getTagged<T = Json>(path: string, query?: Query, options: Options = {}): Promise<{ data: T; tag: string }> {
  const answer = await request("GET", path, { ...options, query });
  return { data: (await answer.json()) as T, tag: answer.headers.get("etag") ?? "" };
}

/** The same rows as a table of comma-separated values. */
export async function sheet(path: string, query?: Query): Promise<string> {
  return (await request("GET", path, { query, headers: { accept: "text/csv" } })).text();
}

/** The address of an operation, with the names of a query that have a value. */
export function address(path: string, query: Query = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const search = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return `/v1${path}${search ? `?${search}` : ""}`;
}

export function headersOf(method: string, options: Options): Record<string, string> {
  const workspace = options.workspace ?? acting.workspace();
  return {
    accept: "application/json",
    ...(workspace ? { "x-gateway-workspace": workspace } : {}),
    ...(method !== "GET" && acting.csrf ? { "x-gateway-csrf-token": acting.csrf } : {}),
    ...(options.body === undefined ? {} : { "content-type": "application/json" }),
    ...options.headers,
  };
}

/** A change that is refused may have come with a token from before: it is sent once more with the token of now. */
async function repeated(method: string, path: string, options: Options): Promise<Response> {
  try {
    return await sent(method, path, options);
  } catch (error) {
    const isMendable = method !== "GET" && error instanceof Fault && error.status === 403;
    if (!isMendable || !(await acting.hasNewToken().catch(() => false))) throw error;
    return sent(method, path, options);
  }
}

async function sent(method: string, path: string, options: Options): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(address(path, options.query), {
      method,
      headers: headersOf(method, options),
      body: options.body === undefined ? undefined : JSON.stringify(options.body),
      credentials: "same-origin",
    });
  } catch {
    throw new Fault(0, "", "unreachable", "", "", [], null);
  }
  if (answer.ok) return answer;
  throw faultOf(answer, await answer.json().catch(() => null));
}

export function faultOf(answer: Response, told: Json): Fault {
  const type = String(told?.error?.type ?? "");
  if (answer.status === 401 && type !== "reauthenticate") isSignedOut.value = true;
  const retryAfter = Number(answer.headers.get("retry-after"));
  return new Fault(
    answer.status,
    String(told?.message ?? told?.error?.message ?? ""),
    type,
    String(told?.error?.code ?? ""),
    String(told?.request_id ?? ""),
    Array.isArray(told?.data?.errors) ? told.data.errors : [],
    Number.isFinite(retryAfter) && retryAfter > 0 ? retryAfter : null,
  );
}
