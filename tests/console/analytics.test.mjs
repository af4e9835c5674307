// Analytics: the figures of the interface, by any group, narrowed by a click, and as a sheet.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import { acting, inspect, launch, ORIGIN, OWNER, settled, signIn, visit } from "./console.mjs";
import { ask, calls, catalogue, person, until, workspaceNamed } from "./seed.mjs";

const suffix = `-a${Date.now().toString(36)}`;
const blind = `blind${suffix}@example.com`;
const HOSTILE = "<img src=x onerror=alert(1)>\u202e";
let browser, seeded, empty;

before(async () => {
  browser = await launch();
  seeded = await catalogue(suffix);
  await calls(seeded, 24);
  empty = await workspaceNamed(`empty${suffix}`);
  await person(blind, [{ id: empty.id, role: "member" }]);
});

after(async () => { await browser?.close(); });

const rows = (page) => page.locator(".table.cards tbody tr");

test("cost by model is two clicks away, and is what the interface says", () => acting(browser, OWNER, async ({ page, clicks }) => {
  const asked = [];
  page.on("request", (request) => request.url().includes("/v1/analytics") && asked.push(request.url()));
  await settled(page, "");
  asked.length = 0;
  await page.getByRole("link", { name: "Analytics" }).click();
  await page.getByRole("button", { name: /^Cost/ }).click();
  await page.waitForURL(/measure=cost/);
  await page.getByRole("columnheader", { name: "Cost" }).and(page.locator("[aria-sort]")).waitFor();
  assert.ok(clicks.number <= 3);
  assert.equal(asked.length, 2, "one question for each measure");
  const [from, to] = [-86_400_000, 60_000].map((offset) => new Date(Date.now() + offset).toISOString());
  const { json } = await ask("GET", `/analytics/groups/model?columns=cost&order_by=cost&order_by_type=desc&time_of_generation_min=${from}&time_of_generation_max=${to}`);
  assert.equal(await rows(page).first().locator(".row-link").textContent(), json.data[0].model);
  assert.equal(await rows(page).count(), json.total);
}));

test("a value narrows everything to itself and leads to its calls", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, "/analytics?by=user");
  await page.getByRole("cell").getByRole("link", { name: "ada", exact: true }).click();
  await page.waitForURL(/user=ada/);
  await until("only one user", async () => (await rows(page).count()) === 1);
  await page.getByRole("link", { name: "Logs of ada" }).click();
  await page.waitForURL(/\/console\/logs\?user=ada/);
  await page.goBack();
  await page.getByLabel("Grouped by").selectOption("metadata");
  await page.getByLabel("Name of metadata").fill("feature");
  await page.getByRole("button", { name: "Group" }).click();
  await page.waitForURL(/by=metadata.feature/);
  await page.getByRole("cell").getByRole("link", { name: "chat", exact: true }).click();
  await page.waitForURL(/meta=feature%3Dchat/);
  await until("both filters hold", async () => (await rows(page).count()) === 1);
  // Two names of metadata are two filters.
  await settled(page, "/analytics?by=metadata.feature&meta=_user%3Dada");
  await page.getByRole("cell").getByRole("link", { name: "chat", exact: true }).click();
  await page.waitForURL((url) => url.searchParams.getAll("meta").join() === "_user=ada,feature=chat");
  await page.getByRole("link", { name: "Logs of chat" }).click();
  await page.waitForURL((url) => url.pathname === "/console/logs" && url.searchParams.getAll("meta").join() === "_user=ada,feature=chat");
}));

test("latency has lines of percentiles, which can be read as a table", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, "/analytics?measure=latency");
  await page.getByText("As a table").click();
  for (const name of ["p50", "p90", "p99"]) await page.getByRole("columnheader", { name, exact: true }).waitFor();
}));

test("a sheet has the groups of the table", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, "/analytics?by=provider&measure=cost");
  const saved = page.waitForEvent("download");
  await page.getByRole("button", { name: "As a sheet" }).click();
  const text = await readFile(await (await saved).path(), "utf8");
  assert.match(text, /^provider,requests,cost,/);
  assert.ok(text.includes(`openai-eu${suffix}`));
}));

test("who may not see figures has no such screen, and is told so at its address", async () => {
  const members = (mayView) => ask("PUT", "/admin/organisation/security-settings", { membersViewAnalytics: mayView });
  assert.equal((await members(false)).status, 200);
  try {
    await acting(browser, blind, async ({ page }) => {
      assert.equal(await page.getByRole("link", { name: "Analytics" }).count(), 0);
      await settled(page, "/analytics");
      await page.getByText("You may not see this").waitFor();
    });
  } finally {
    await members(true);
  }
});

test("who may not see metadata gets the figures by model, and the reason", async () => {
  const { json: space } = await ask("GET", `/workspaces/${seeded.workspace}`);
  const narrow = `narrow${suffix}@example.com`;
  await person(narrow, [{ id: seeded.workspace, role: "member" }]);
  const { membersViewLogMetadata, membersViewAllData } = (await ask("GET", "/admin/organisation/security-settings")).json;
  const rights = (sent) => ask("PUT", "/admin/organisation/security-settings", sent);
  assert.equal((await rights({ membersViewLogMetadata: false, membersViewAllData: true })).status, 200);
  const { page, context } = await visit(browser);
  try {
    await signIn(page, narrow);
    await settled(page, `/analytics?by=user&ws=${space.slug}`);
    await page.getByText("Your role may not see metadata of logs").waitFor();
    await page.getByRole("columnheader", { name: "model", exact: true }).waitFor();
    assert.ok((await rows(page).count()) > 0);
  } finally {
    await context.close();
    await rights({ membersViewLogMetadata, membersViewAllData });
  }
});

test("nothing, nonsense, too much and strangers' names are taken", async () => {
  const { key } = seeded.keys["support-bot"];
  await ask("POST", "/chat/completions", { model: `@openai-eu${suffix}/hostile`, messages: [{ role: "user", content: "x" }] }, { "x-gateway-api-key": key, "x-gateway-metadata": JSON.stringify({ _user: HOSTILE }).replace("\u202e", "\\u202e") });
  await until("its log", async () => (await ask("GET", "/logs?ai_model=hostile")).json.total > 0);
  await inspect(browser, OWNER, [
    "/analytics", "/analytics?by=user", "/analytics?measure=latency&by=api_key", "/analytics?measure=cost&by=metadata.feature", "/analytics?by=nonsense&measure=constructor", "/analytics?model=no-such-model",
    `/analytics?ws=${empty.slug}`, `/analytics?by=metadata.${encodeURIComponent(HOSTILE)}`,
  ]);
  await acting(browser, OWNER, async ({ page }) => {
    await settled(page, "/analytics?by=user");
    await page.getByText("<img src=x onerror=alert(1)>⟨U+202E⟩").first().waitFor();
    await page.route("**/v1/analytics/query", (route) => route.fulfill({ status: 503, json: { message: "so it is", error: { type: "x" } } }));
    await page.goto(`${ORIGIN}/console/analytics?by=model`);
    await page.getByText("so it is").waitFor();
  });
});

test("German too", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, "/analytics?by=provider");
  await page.getByRole("heading", { name: "Auswertung", level: 1 }).waitFor();
  await page.getByRole("button", { name: /^Kosten/ }).waitFor();
}, { locale: "de-DE" }));
