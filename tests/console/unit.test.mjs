// What needs no browser: filters in their three forms, periods, messages of foreign bodies, and whether colours can be read.
import assert from "node:assert/strict";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { posix } from "node:path";
import { test } from "node:test";

const CONSOLE = new URL("../../admin/console/", import.meta.url);
const { buildSync } = createRequire(new URL("package.json", CONSOLE))("esbuild");

/** A module of the console, bundled for here. */
async function load(path) {
  globalThis.navigator ??= { languages: ["en"] };
  globalThis.location ??= { pathname: "/console", search: "", origin: "http://localhost" };
  const { outputFiles } = buildSync({
    entryPoints: [new URL(`src/${path}`, CONSOLE).pathname], bundle: true, write: false, format: "esm", jsx: "automatic", jsxImportSource: "preact",
  });
  return import(`data:text/javascript;base64,${Buffer.from(outputFiles[0].contents).toString("base64")}`);
}

test("filters are read as they are written, and asked as the interface takes them", async () => {
  const { parse, toQuery, asText, fromAddress, nameInAddress } = await load("nav/filters.ts");
  for (const [text, query] of [
    ["status:5xx model:gpt-4o user:ada", { status_class: "5xx", ai_model: "gpt-4o", metadata: '{"_user":"ada"}' }],
    ["-provider:mock -status:200,429", { "-virtual_keys": "mock", "-status_code": "200,429" }],
    ["took>2s cost>1c", { response_time_min: 2000, cost_min: 1 }],
    ["took<500ms cost<0.5$", { response_time_max: 500, cost_max: 50 }],
    ['user:"Ada Lovelace"', { metadata: '{"_user":"Ada Lovelace"}' }],
    ["status:failed", { is_success: false }],
    ["-status:failed", { is_success: true }],
    ["meta:team=red user:ada", { metadata: '{"team":"red","_user":"ada"}' }],
  ]) {
    const { filters, unknown } = parse(text);
    assert.equal(unknown, null, text);
    assert.deepEqual(toQuery(filters), query, text);
    assert.deepEqual(parse(filters.map(asText).join(" ")).filters, filters, text);
    const search = new URLSearchParams(filters.map((filter) => [nameInAddress(filter), filter.value]));
    assert.deepEqual(fromAddress(new URLSearchParams(search.toString())), filters, text);
  }
  for (const text of ["modle:x", "status:banana", "took>2d", "-user:ada", "meta:team", "-meta:team=red", "hello", "constructor:x"]) assert.notEqual(parse(text).unknown, null, text);
});

test("a thousand random filters come back from the address as they went", async () => {
  const { FILTERS, fromAddress, nameInAddress, parse, asText } = await load("nav/filters.ts");
  const names = Object.keys(FILTERS).filter((name) => !["status", "took", "cost", "meta"].includes(name));
  let seed = 42;
  const random = (below) => (seed = (seed * 1103515245 + 12345) % 2147483648) % below;
  const letters = "abcXYZ019 ._-/:@äß漢=&?#+%<>";
  for (let run = 0; run < 1000; run += 1) {
    const value = Array.from({ length: 1 + random(12) }, () => letters[random(letters.length)]).join("").trim() || "x";
    const filter = { name: names[random(names.length)], value, isExcluded: false };
    const address = new URLSearchParams({ [nameInAddress(filter)]: value }).toString();
    assert.deepEqual(fromAddress(new URLSearchParams(address)), [filter]);
    if (!/^[<>]/.test(value)) assert.deepEqual(parse(asText(filter)).filters, [filter], asText(filter));
  }
});

test("a filter takes the place of the one before, and each name of metadata has its own", async () => {
  const { parse, withFilters, withoutFilter } = await load("nav/filters.ts");
  const address = (text, query) => decodeURIComponent(withFilters(new URLSearchParams(query), parse(text).filters).toString());
  assert.equal(address("meta:team=red", "by=model&meta=feature=chat"), "by=model&meta=feature=chat&meta=team=red");
  assert.equal(address("meta:team=red", "meta=team=blue&meta=feature=chat"), "meta=feature=chat&meta=team=red");
  assert.equal(address("meta:team=red meta:feature=chat -model:x", "model=y"), "model=y&meta=team=red&meta=feature=chat&-model=x");
  assert.equal(address("model:x", "model=y"), "model=x");
  const [filter] = parse("meta:team=red").filters;
  assert.equal(decodeURIComponent(withoutFilter(new URLSearchParams("meta=team=red&meta=feature=chat&page=2"), filter).toString()), "meta=feature=chat&page=2");
});

test("periods of an address are times, and nonsense is none", async () => {
  const { moment } = await load("nav/period.ts");
  const now = new Date("2026-03-10T12:00:00Z");
  for (const [text, expected] of [["-15m", "2026-03-10T11:45:00.000Z"], ["-7d", "2026-03-03T12:00:00.000Z"], ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"]]) {
    assert.equal(moment(text, now).toISOString(), expected);
  }
  for (const text of ["", "-5x", "yesterday", "-99999d", "--1h"]) assert.equal(moment(text, now), null, text);
});

test("what looks like a secret is no id", async () => {
  const { isLikeSecret } = await load("nav/palette.tsx");
  for (const text of ["sk-proj-abc", "pk_3fA9zQ7L", "pk-lf-1", "Bearer abc", "bearer x", "eyJhbGciOi"]) assert.ok(isLikeSecret(text), text);
  for (const text of ["0199b3c1-0000-7000-8000-000000000000", "checkout-1", "task-1", "spk_1"]) assert.ok(!isLikeSecret(text), text);
});

/** Answers the fetches of one test, and what was asked. */
function answering(t, answer) {
  const asked = [];
  t.mock.method(globalThis, "fetch", async (address, { method, headers }) => {
    asked.push({ address, method, headers });
    return answer(asked.length);
  });
  return asked;
}

test("a change whose token is from before is sent once more, and nothing else is", async (t) => {
  const { acting, call } = await load("api/call.ts");
  const refused = () => Response.json({ message: "no" }, { status: 403 });
  let isNew = true;
  acting.csrf = "old";
  acting.hasNewToken = async () => {
    acting.csrf = "new";
    return isNew;
  };
  const asked = answering(t, (number) => (number === 1 ? refused() : Response.json({ is: "done" })));
  assert.deepEqual(await call("POST", "/x"), { is: "done" });
  assert.deepEqual(asked.map(({ headers }) => headers["x-gateway-csrf-token"]), ["old", "new"]);
  for (const [method, known, times] of [["POST", false, 1], ["POST", true, 2], ["GET", true, 1]]) {
    isNew = known;
    t.mock.restoreAll();
    const asked = answering(t, refused);
    await assert.rejects(call(method, "/x"), { status: 403 });
    assert.equal(asked.length, times, `${method} ${known}`);
  }
});

test("a question keeps the workspace where it was asked while it waits for its turn", async (t) => {
  const { acting, get } = await load("api/call.ts");
  let where = "one";
  acting.workspace = () => where;
  const asked = answering(t, () => Response.json({}));
  const answers = [1, 2, 3].map(() => get("/logs"));
  where = "two";
  await Promise.all(answers);
  assert.deepEqual(asked.map(({ headers }) => headers["x-gateway-workspace"]), ["one", "one", "one"]);
});

test("a stream goes on behind the last event, and stops at once", async (t) => {
  const { follow } = await load("api/events.ts");
  let cancelled;
  const isCancelled = new Promise((resolve) => (cancelled = resolve));
  const body = new ReadableStream({
    start: (stream) => stream.enqueue(new TextEncoder().encode("id: 7-1\nevent: log\ndata: {}\n\n: still here\n\n")),
    cancel: () => cancelled(true),
  });
  const asked = answering(t, () => new Response(body));
  const end = new AbortController();
  const events = [];
  const onEvent = (event) => {
    events.push(event);
    // Nothing more comes: only a stop can end this.
    setTimeout(() => end.abort());
  };
  await follow("/logs/tail", {}, { lastId: "6-1", stop: end.signal, onOpen: () => events.push("open"), onEvent });
  assert.deepEqual(events, ["open", { id: "7-1", type: "log", data: "{}" }]);
  assert.equal(asked[0].headers["last-event-id"], "6-1");
  assert.ok(await isCancelled);
});

test("money and time have as many digits as matter", async () => {
  const { dollars, duration, visible } = await load("kit/words.ts");
  assert.deepEqual([0, 812.4, 0.0032, 0.000021, 1234567].map(dollars), ["$0.00", "$812.40", "$0.0032", "$0.000021", "$1,234,567.00"]);
  assert.deepEqual([null, 0, 0.4, 620, 1240, 61_000, 90_000].map(duration), ["–", "0 ms", "<1 ms", "620 ms", "1.24 s", "1 min", "1.5 min"]);
  assert.equal(visible("a\u202eb\u0000c\nd"), "a⟨U+202E⟩b␀c\nd");
});

test("messages are found in bodies of every vendor, and what is no message breaks nothing", async () => {
  const { requested, replied } = await load("screens/log/conversation.tsx");
  const roles = (pieces) => pieces.map(({ role }) => role);
  assert.deepEqual(roles(requested({ system: "s", messages: [{ role: "user", content: [{ type: "text", text: "x" }] }] })), ["system", "user"]);
  assert.deepEqual(roles(requested({ contents: [{ role: "user", parts: [{ text: "x" }] }] })), ["user"]);
  assert.deepEqual(requested({ input: "x" }), [{ role: "user", parts: [{ text: "x" }] }]);
  assert.deepEqual(replied({ choices: [{ message: { role: "assistant", content: null, tool_calls: [{ function: { name: "f", arguments: '{"a":1}' } }] } }] }), [{ role: "assistant", parts: [{ tool: "f", data: { a: 1 } }] }]);
  assert.deepEqual(roles(replied({ error: { message: "no" } })), ["error"]);
  for (const body of [null, undefined, 1, "x", [], {}, { messages: [null, 1, { content: 5 }] }, { choices: [null, { message: 3 }] }, { output: [null] }, { messages: [{ role: { toString: 1 }, content: [{ name: { toString: 1 }, input: 1 }], tool_calls: [{ function: { name: { toString: 1 } } }] }] }]) {
    requested(body);
    replied(body);
  }
});

test("prices have the names of the price list, and one that is not known is not nothing", async () => {
  const { lines } = await load("screens/log/usage.tsx");
  const shown = (metrics) => lines(metrics).map(({ tokens, price }) => [tokens, price]);
  assert.deepEqual(shown({ req_units: 10, res_units: 5, unit_prices: { request_token: "0.5", response_token: null } }), [[10, 0.5], [5, null]]);
  const text = { request_text_token: "1", response_text_token: "2" };
  assert.deepEqual(shown({ req_units: 10, res_units: 5, cache_read_tokens: 4, unit_prices: text }), [[6, 1], [4, 1], [5, 2]]);
  assert.deepEqual(shown({ req_units: 10, res_units: 5, cache_read_tokens: 4, unit_prices: { ...text, cached_text_input_token: "0.1" } }), [[6, 1], [4, 0.1], [5, 2]]);
  assert.deepEqual(shown({ req_units: 10, res_units: 5, cache_write_tokens: 4, unit_prices: { ...text, cache_write_1h: null } }), [[6, 1], [4, null], [5, 2]]);
  assert.deepEqual(shown({ req_units: 10, res_units: 5, reasoning_tokens: 3, unit_prices: { ...text, reasoning_token: "7" } }), [[10, 1], [2, 2], [3, 7]]);
  assert.deepEqual(shown({ req_units: 10, res_units: 5, reasoning_tokens: 3, unit_prices: text }), [[10, 1], [5, 2]]);
  assert.deepEqual(shown({ req_units: 10, res_units: 5, unit_prices: null }), [[10, null], [5, null]]);
});

test("spans in a circle end, and children lie below their parents", async () => {
  const { depths } = await load("screens/trace.tsx");
  const spans = (pairs) => pairs.map(([span_id, parent_span_id]) => ({ span_id, parent_span_id }));
  assert.deepEqual(depths(spans([["a", null], ["b", "a"], ["c", "b"], ["d", "elsewhere"]])), [0, 1, 2, 0]);
  assert.ok(depths(spans([["a", "b"], ["b", "a"]])).every((depth) => depth <= 12));
});

/** sRGB of an OKLCH colour, by the formulas of CSS Color 4. */
function rgb([lightness, chroma, hue]) {
  const [a, b] = [chroma * Math.cos((hue * Math.PI) / 180), chroma * Math.sin((hue * Math.PI) / 180)];
  const [l, m, s] = [lightness + 0.3963377774 * a + 0.2158037573 * b, lightness - 0.1055613458 * a - 0.0638541728 * b, lightness - 0.0894841775 * a - 1.291485548 * b].map((one) => one ** 3);
  return [4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s, -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s, -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s].map((one) => Math.min(1, Math.max(0, one)));
}

const luminance = (colour) => rgb(colour).reduce((sum, value, index) => sum + value * [0.2126, 0.7152, 0.0722][index], 0);
const contrast = (one, other) => {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
};

test("texts and lines stand out from what they stand on, in both themes", async () => {
  const css = await readFile(new URL("src/style/tokens.css", CONSOLE), "utf8");
  const pairs = [...css.matchAll(/--([a-z-]+): light-dark\(oklch\(([\d. ]+)\), oklch\(([\d. ]+)\)\)/g)];
  const themes = [2, 3].map((index) => Object.fromEntries(pairs.map((found) => [found[1], found[index].split(" ").map(Number)])));
  for (const tokens of themes) {
    for (const [text, backs] of [
      ["text", ["page", "panel", "raised", "chosen"]], ["soft", ["page", "panel", "raised"]], ["accent", ["page", "panel", "raised", "chosen"]],
      ["ok", ["ok-back", "panel"]], ["warn", ["warn-back", "panel"]], ["bad", ["bad-back", "panel"]], ["on-accent", ["accent"]],
    ]) {
      for (const back of backs) assert.ok(contrast(tokens[text], tokens[back]) >= 4.5, `${text} on ${back}: ${contrast(tokens[text], tokens[back]).toFixed(2)}`);
    }
    for (const back of ["page", "panel"]) assert.ok(contrast(tokens.control, tokens[back]) >= 3, `control on ${back}`);
  }
});

test("every language has every text, and screens have none of their own", async () => {
  const walk = (value, path = "") => (typeof value === "object" && !Array.isArray(value) ? Object.entries(value).flatMap(([key, one]) => walk(one, `${path}.${key}`)) : [path]);
  const [{ en }, { de }] = [await load("i18n/en.ts"), await load("i18n/de.ts")];
  assert.deepEqual(walk(de), walk(en));
});

/** Each file of the console with the files that it names, types too. */
async function imports() {
  const names = (await readdir(new URL("src", CONSOLE), { recursive: true })).filter((name) => /\.tsx?$/.test(name));
  const found = new Map();
  for (const name of names) {
    const text = await readFile(new URL(`src/${name}`, CONSOLE), "utf8");
    const targets = [...text.matchAll(/(?:from |import\()"(\.[^"]+)"/g)].map(([, path]) => posix.join(posix.dirname(name), path));
    found.set(name, targets.map((path) => [`${path}.ts`, `${path}.tsx`, `${path}/index.ts`].find((one) => names.includes(one)) ?? path));
  }
  return found;
}

/** The first way from a file back to itself. */
function circle(graph) {
  const finished = new Set();
  const walk = (name, way) => {
    if (way.includes(name)) return [...way.slice(way.indexOf(name)), name];
    if (finished.has(name)) return null;
    for (const next of graph.get(name) ?? []) {
      const found = walk(next, [...way, name]);
      if (found) return found;
    }
    finished.add(name);
    return null;
  };
  for (const name of graph.keys()) {
    const found = walk(name, []);
    if (found) return found;
  }
  return null;
}

test("files import each other in no circle, and only what is there", async () => {
  const graph = await imports();
  assert.deepEqual([...graph.values()].flat().filter((name) => !graph.has(name)), []);
  assert.ok(graph.get("main.tsx").includes("shell.tsx"), "imports of the first use are seen");
  assert.equal(circle(graph)?.join(" → "), undefined);
  assert.deepEqual(circle(new Map([["a", ["b"]], ["b", ["c"]], ["c", ["b"]]])), ["b", "c", "b"]);
});

test("a group of the address is asked as the interface names it, and a value narrows by a filter of logs", async () => {
  const { groupingNamed, measureNamed, narrowedTo } = await load("screens/analytics/measures.ts");
  const { FILTERS } = await load("nav/filters.ts");
  for (const [text, group, value, filter] of [
    ["", "model", "gpt-4o", ["model", "gpt-4o"]],
    ["api_key", "api_key", "id", ["key", "id"]],
    ["status_code", "status_code", "503", ["status", "503"]],
    ["metadata.team", "metadata/team", "red", ["meta", "team=red"]],
    ["prompt", "prompt", "p", null],
    ["constructor", "model", "", null],
  ]) {
    const grouping = groupingNamed(text);
    assert.equal(grouping.group, group, text);
    assert.deepEqual(narrowedTo(grouping, value), filter && { name: filter[0], value: filter[1], isExcluded: false }, text);
    if (filter) assert.ok(FILTERS[filter[0]](filter[1], false), text);
  }
  assert.equal(measureNamed("toString"), "requests");
});

test("a line has a gap where there is no value", async () => {
  const { stretches } = await load("kit/line_chart.tsx");
  const slots = [null, 1, 2, null, 3].map((value) => ({ at: new Date(0), values: [value] }));
  assert.deepEqual(stretches(slots, 0, (index, value) => `${index}:${value}`), [["1:1", "2:2"], ["4:3"]]);
});

test("a path of a config has the line where it begins, and text that is no JSON has the place where it ends", async () => {
  const { places, lineOf } = await load("screens/routing/places.ts");
  const config = { strategy: { mode: "fallback" }, targets: [{ provider: "@a\n\"" }, { retry: { attempts: 2, on: [1, 2.5e3, null, true] } }], "": {}, list: [] };
  const text = JSON.stringify(config, null, 2);
  const found = places(text);
  assert.equal(found.wrong, null);
  for (const [path, piece] of [["strategy.mode", '"mode"'], ["targets[1].retry", '"retry"'], ["targets[1].retry.attempts", '"attempts"'], ["targets[1].retry.nothing", '"retry"'], ["targets[7]", '"targets"'], ["nothing", "{"]]) {
    assert.equal(lineOf(found, path), text.split("\n").findIndex((line) => line.includes(piece)) + 1, path);
  }
  for (const [wrong, line] of [["", 1], ["{", 1], ["[1,\n]", 2], ['{"a":\n\n01}', 3], ["{}\n{}", 2], ['{"a" 1}', 1], ["'a'", 1], ["[\u00a0]", 1], ['"\n"', 1], ["[".repeat(100_000), 1]]) {
    assert.equal(places(wrong).wrong?.line, line, JSON.stringify(wrong.slice(0, 20)));
    assert.throws(() => JSON.parse(wrong));
  }
});

test("differences are named by their paths, and equal values have none", async () => {
  const { differences } = await load("kit/difference.ts");
  const before = { a: 1, b: { c: [1, { d: 2 }] }, gone: null };
  assert.deepEqual(differences(before, structuredClone(before)), []);
  assert.deepEqual(differences(before, { a: "1", b: { c: [1, { d: 3 }, 4] }, new: [] }), [
    { path: "a", before: 1, after: "1" }, { path: "b.c[1].d", before: 2, after: 3 }, { path: "b.c[2]", before: undefined, after: 4 },
    { path: "gone", before: null, after: undefined }, { path: "new", before: undefined, after: [] },
  ]);
  assert.deepEqual(differences(null, { a: 1 }), [{ path: "", before: null, after: { a: 1 } }]);
  assert.deepEqual(differences({}, { constructor: 1, toString: 2 }).map(({ path, before }) => [path, before]), [["constructor", undefined], ["toString", undefined]]);
});

test("what YAML could take for something else is quoted", async () => {
  const { yaml } = await load("kit/yaml.ts");
  assert.equal(yaml({ kind: "config", spec: { list: [{ a: 1, b: [] }, "x"], none: null, empty: {} } }), "kind: config\nspec:\n  list:\n    - a: 1\n      b: []\n    - x\n  none: null\n  empty: {}\n");
  for (const text of ["true", "No", "null", "1", "1e3", "@a", "- a", "a: b", "a #b", "", " a", "*", "&a", "!a", "{a", "0x1", "a\nb", "2026-01-01", "\u2028", "~", "=", "${env:A}"]) {
    assert.equal(yaml({ a: text }), `a: ${JSON.stringify(text)}\n`, text);
  }
});

test("the tree of a config says order and shares, and any JSON has one", async () => {
  const { tree } = await load("screens/routing/tree.tsx");
  const { targets } = tree({ strategy: { mode: "loadbalance" }, targets: [{ provider: "@a", weight: 3 }, { weight: 1, strategy: { mode: "fallback" }, targets: [{ provider: "@b" }] }] });
  assert.deepEqual(targets.map(({ text }) => text), ["75 % · @a", "25 % · fallback"]);
  assert.equal(targets[1].targets[0].text, "1. · @b");
  let deep = {};
  for (let level = 0; level < 1000; level += 1) deep = { targets: [deep] };
  for (const odd of [null, 1, "x", [], { targets: 5 }, { targets: [null] }, { strategy: 1, retry: { attempts: {} }, targets: [{ weight: "x" }] }, deep]) tree(odd);
});

test("a change of a limit sends what can be set, keeps the other limits, and an empty field takes it away", async () => {
  const { amountsOf, budgetSettings, changedBudget, perMinute, repetitionOf, sentParts, withPerMinute } = await load("screens/limits/types.ts");
  const now = new Date("2026-03-10T12:00:00Z");
  const next = { next_usage_reset_at: "2026-03-16T00:00:00.000Z" };
  const counted = { type: "cost", credit_limit: 50, periodic_reset: "weekly", ...next, strict: true, alert_threshold: null, current_usage: 3, status: "active", unconfirmed: 0 };
  const settings = { type: "cost", credit_limit: 50, periodic_reset: "weekly", strict: true };
  const sent = { ...settings, ...next };
  assert.deepEqual(budgetSettings(counted), settings);
  assert.deepEqual(sentParts(counted, now), sent);
  assert.deepEqual(sentParts(counted, new Date("2026-03-17T00:00:00Z")), settings, "a date that has passed is not sent");
  assert.deepEqual([null, undefined, { ...counted, credit_limit: null }].map((one) => sentParts(one, now)), [null, null, null]);
  const amounts = { credit_limit: 75, alert_threshold: null };
  assert.deepEqual(changedBudget(sent, amounts, repetitionOf(sent)), { ...sent, credit_limit: 75 }, "the next reset keeps its date");
  assert.deepEqual(changedBudget(sent, amounts, { reset: "monthly", days: null }), { type: "cost", strict: true, credit_limit: 75, periodic_reset: "monthly" });
  assert.deepEqual(changedBudget(sent, amounts, { reset: "", days: null }), { type: "cost", strict: true, credit_limit: 75 });
  assert.deepEqual(changedBudget(null, { credit_limit: 10, alert_threshold: 5 }, { reset: "monthly", days: null }), { type: "cost", credit_limit: 10, alert_threshold: 5, periodic_reset: "monthly" });
  assert.equal(changedBudget(sent, { ...amounts, credit_limit: null }, repetitionOf(sent)), null);
  const ofDays = { type: "tokens", credit_limit: 500, alert_threshold: 400, periodic_reset: null, periodic_reset_days: 10, ...next };
  assert.deepEqual([repetitionOf(ofDays), amountsOf(ofDays)], [{ reset: "days", days: 10 }, { credit_limit: 500, alert_threshold: 400 }]);
  const sentOfDays = sentParts(ofDays, now);
  assert.deepEqual(changedBudget(sentOfDays, amountsOf(ofDays), { reset: "monthly", days: 10 }), { type: "tokens", credit_limit: 500, alert_threshold: 400, periodic_reset: "monthly" });
  assert.deepEqual(changedBudget(sentOfDays, amountsOf(ofDays), { reset: "days", days: 10 }), sentOfDays);
  assert.deepEqual(changedBudget(sentOfDays, amountsOf(ofDays), { reset: "days", days: 11 }), { type: "tokens", credit_limit: 500, alert_threshold: 400, periodic_reset_days: 11 });
  const rates = [{ type: "tokens", unit: "rph", value: 5 }, { type: "requests", unit: "rpm", value: 600 }];
  assert.equal(perMinute(rates), 600);
  assert.deepEqual(withPerMinute(rates, 60), [{ type: "requests", unit: "rpm", value: 60 }, rates[0]]);
  assert.deepEqual([withPerMinute(rates, null), withPerMinute(null, null)], [[rates[0]], []]);
});

test("a raised budget sends the numbers that its owner takes, and keeps the date of its reset", async () => {
  const { minAmount, ownerOf } = await load("screens/budgets/owner.ts");
  const stored = { type: "cost", credit_limit: 5, periodic_reset: "monthly", next_usage_reset_at: "9999-01-01T00:00:00.000Z", current_usage: 1 };
  const raised = { type: "cost", credit_limit: 9, periodic_reset: "monthly", next_usage_reset_at: stored.next_usage_reset_at };
  const amounts = { credit_limit: 9, alert_threshold: null };
  for (const kind of ["api_key", "provider"]) assert.deepEqual(ownerOf({ kind }).body({ usage_limits: stored }, amounts), { usage_limits: raised }, kind);
  assert.deepEqual(ownerOf({ kind: "workspace" }).body({ usage_limits: [stored] }, amounts), { usage_limits: [raised] });
  const { body } = ownerOf({ kind: "policy" });
  assert.deepEqual(body({ credit_limit: 5, alert_threshold: null }, amounts), { credit_limit: 9 });
  assert.deepEqual(body({ credit_limit: 5, alert_threshold: 4 }, amounts), { credit_limit: 9, alert_threshold: null });
  assert.deepEqual([ownerOf({ kind: "constructor" }), minAmount({ kind: "policy", type: "tokens" }), minAmount({ kind: "workspace", type: "tokens" })], [undefined, 100, 1]);
});

test("a sheet of several pages has one head, and says when it is cut", async () => {
  const { allPages } = await load("screens/analytics/sheet.tsx");
  const page = (number, rows) => `model,cost\n${Array.from({ length: rows }, (_, index) => `"a ${number}\n""${index}""",1`).join("\n")}`;
  const sizes = [100, 100, 3];
  const { text, isWhole } = await allPages(async (number) => page(number, sizes[number]));
  assert.equal(isWhole, true);
  assert.deepEqual([text.match(/model,cost\n/g).length, text.match(/"a \d\n""\d+""",1\n/g).length], [1, 203]);
  let asked = 0;
  const endless = await allPages(async (number) => page(number, ++asked && 100));
  assert.deepEqual([endless.isWhole, asked], [false, 20]);
  assert.equal((await allPages(async (number) => page(number, number === 0 ? 100 : 0))).text, `${page(0, 100)}
`, "a full page may be the last");
});

test("days of settings are seconds for the interface", async () => {
  const { bodyOf } = await load("screens/settings/organisation.tsx");
  assert.deepEqual(bodyOf({ name: "a", service_api_key_ttl: "1.5", debug_log: true }), { name: "a", settings: { service_api_key_ttl: 129_600, debug_log: true } });
  assert.deepEqual(bodyOf({ name: "a" }), { name: "a" });
});

test("nobody gives a role above their own, and members give none", async () => {
  const { rolesUpTo } = await load("screens/people/roles.ts");
  assert.deepEqual(["member", "manager", "admin", "other"].map(rolesUpTo), [[], ["member", "manager"], ["member", "manager", "admin"], []]);
});

test("a policy says what it is for, and what it counts besides", async () => {
  const { sentence } = await load("screens/policies/sentence.ts");
  const policy = { type: "tokens", credit_limit: 1_234_567, periodic_reset_days: 10, conditions: [], group_by: [] };
  assert.equal(sentence(policy), "For all requests: at most 1,234,567 tokens, every 10 days");
  const tools = { ...policy, type: "requests", target: "mcp_tools", include_none: true, strict: true, trusted_metadata: true, conditions: [{ key: "mcp_tool", value: "search" }], group_by: [{ key: "metadata._user" }] };
  assert.equal(sentence(tools), "For calls of MCP tools with mcp_tool = search per metadata._user (those without it together): at most 1,234,567 requests, every 10 days; never overspent; only metadata of keys and workspaces counts");
});

test("a fault of a config stands at its line, with or without the name of the whole", async () => {
  const { marksOf } = await load("screens/routing/marks.ts");
  const text = JSON.stringify({ strategy: { mode: "x" }, targets: [{ provider: "@a" }] }, null, 2);
  const lines = (...paths) => marksOf(text, { fields: paths.map((path) => ({ path, message: "no" })) });
  const wanted = text.split("\n").findIndex((line) => line.includes("provider")) + 1;
  assert.deepEqual(lines("config.targets[0].provider", "targets[0].provider", "config"), [...Array(2).fill({ line: wanted, message: "targets[0].provider: no" }), { line: 1, message: "no" }]);
});

test("a text that nobody stored is asked about before the page is left, until it is dropped", async (t) => {
  const listeners = new Set();
  Object.assign(globalThis, { addEventListener: (name) => listeners.add(name), removeEventListener: (name) => listeners.delete(name) });
  t.after(() => {
    delete globalThis.addEventListener;
    delete globalThis.removeEventListener;
  });
  const { draftOf, dropDrafts, keepDraft } = await load("api/drafts.ts");
  keepDraft("ada 1", "text");
  assert.deepEqual([draftOf("ada 1"), draftOf("bob 1"), [...listeners]], ["text", null, ["beforeunload"]]);
  keepDraft("ada 1", null);
  assert.deepEqual([draftOf("ada 1"), listeners.size], [null, 0]);
  keepDraft("ada 1", "text");
  dropDrafts();
  assert.deepEqual([draftOf("ada 1"), listeners.size], [null, 0]);
});

test("a switch of rights is a role and a right", async () => {
  const { partsOf } = await load("screens/settings/rights.tsx");
  assert.deepEqual(["membersViewLogs", "organisationAdminsViewLogs", "managersUpdateWs"].map(partsOf), [{ role: "members", right: "ViewLogs" }, { role: "organisationAdmins", right: "ViewLogs" }, { role: "managers", right: "UpdateWs" }]);
  assert.deepEqual(["members", "somebodyMay", ""].map(partsOf), [null, null, null]);
});

test("a command asks for the same as the address, and nothing breaks out of its quotes", async () => {
  const { command, curl } = await load("kit/as_text.tsx");
  const asked = { method: "PUT", path: "/configs/it's", query: { dry_run: true }, body: { name: "a'b" } };
  assert.equal(command(asked), `echo '{"name":"a'\\''b"}' |\n  portcullis api PUT '/configs/it'\\''s?dry_run=true' --body -`);
  assert.ok(curl(asked).includes(`-d '{"name":"a'\\''b"}'`));
});
