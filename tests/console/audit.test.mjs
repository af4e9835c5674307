// The audit trail: who changed what, found by its object, its person and its time.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { acting, inspect, launch, ORIGIN, OWNER, settled } from "./console.mjs";
import { ask, made, person, until, workspaceNamed } from "./seed.mjs";

const suffix = `-t${Date.now().toString(36)}`;
const HOSTILE = `<svg onload=alert(1)> \u202e${"x".repeat(80)}`;
const mail = (name) => `${name}${suffix}@example.com`;
let browser, team, key;

before(async () => {
  browser = await launch();
  team = await workspaceNamed(`team${suffix}`);
  await person(mail("manager"), [{ id: team.id, role: "manager" }]);
  await person(mail("member"), [{ id: team.id, role: "member" }]);
  key = await made("/api-keys/workspace/service", { name: `audited${suffix}`, workspace_id: team.id, scopes: ["models.list"] });
  await ask("PUT", `/api-keys/${key.id}`, { description: HOSTILE, status: "suspended" });
  await until("both changes are in the trail", async () => (await ask("GET", `/audit-logs?resource_id=${key.id}`)).json.total >= 2);
});

after(async () => { await browser?.close(); });

test("who changed this: two clicks from the key to what was before and after", () => acting(browser, OWNER, async ({ page, clicks }) => {
  await settled(page, `/keys?key=${key.id}`);
  clicks.number = 0;
  await page.getByRole("link", { name: "History" }).click();
  await page.waitForURL((url) => url.pathname === "/console/audit" && url.searchParams.get("object") === key.id);
  const changed = page.getByRole("row").filter({ hasText: "changed" }).first();
  await changed.click();
  await page.getByRole("heading", { name: "Before and after" }).waitFor();
  const status = page.locator(".differences tr").filter({ hasText: "status" });
  assert.match(await status.textContent(), /active.*suspended/);
  assert.ok(clicks.number <= 3);
  await page.getByRole("link", { name: "Link to this entry" }).click();
  await page.waitForURL((url) => ["from", "to"].every((name) => /^\d{4}-/.test(url.searchParams.get(name))));
  await page.locator(".differences tr").filter({ hasText: "status" }).waitFor();
  await page.getByRole("link", { name: `audited${suffix}` }).click();
  await page.waitForURL((url) => url.pathname === "/console/keys" && url.searchParams.get("key") === key.id);
}));

test("the history of a pasted id is found without a click", () => acting(browser, OWNER, async ({ page, clicks }) => {
  await page.keyboard.press("Control+k");
  await page.keyboard.insertText(key.id);
  await page.getByRole("option", { name: `History of ${key.id}` }).waitFor();
  await page.keyboard.press("ArrowUp");
  for (let step = 0; step < 4; step += 1) await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === "/console/audit" && url.searchParams.get("object") === key.id);
  assert.equal(clicks.number, 0);
}));

test("ids in a difference have their names beside them", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, `/audit?object=${key.id}&action=create`);
  await page.getByRole("row").nth(1).click();
  await page.locator(".differences tr").filter({ hasText: "workspace_id" }).getByText(`team${suffix}`).waitFor();
}));

test("filters stand in the address, and can be removed when nothing is left", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, "/audit");
  await page.getByLabel("Kind").selectOption("api_keys");
  await page.waitForURL(/type=api_keys/);
  const rows = page.locator("tbody tr");
  await until("only keys", async () => (await rows.count()) > 0 && (await rows.locator("td:nth-child(4)").allTextContents()).every((text) => text === "key"));
  await page.getByLabel("Action").selectOption("publish");
  await page.getByText("Nothing was done in this time").waitFor();
  await page.getByRole("button", { name: "Remove the filters" }).click();
  await rows.first().waitFor();
  assert.equal(new URL(page.url()).search, "");
}));

test("a manager reads what was done in their workspace, a member nothing", async () => {
  await acting(browser, mail("manager"), async ({ page }) => {
    await page.getByRole("link", { name: "Audit" }).click();
    await page.getByRole("row").filter({ hasText: `audited${suffix}` }).first().waitFor();
    const workspaces = await page.locator("tbody td:nth-child(6)").allTextContents();
    assert.deepEqual([...new Set(workspaces)], [`team${suffix}`]);
  });
  await acting(browser, mail("member"), async ({ page }) => {
    assert.equal(await page.getByRole("link", { name: "Audit" }).count(), 0);
    await settled(page, "/audit");
    await page.getByText("You may not see this").waitFor();
  });
});

test("the trail at two widths and themes, with strangers' names, empty and failing", async () => {
  const { json } = await ask("GET", `/audit-logs?resource_id=${key.id}&action=update`);
  await inspect(browser, OWNER, ["/audit", `/audit?object=${key.id}`, `/audit?entry=${json.records[0].id}&object=${key.id}`, `/audit?type=${encodeURIComponent(HOSTILE)}`, "/audit?object=nothing", "/audit?page=9999", "/audit?entry=nothing"]);
  await acting(browser, OWNER, async ({ page }) => {
    await settled(page, `/audit?entry=${json.records[0].id}&object=${key.id}`);
    await page.getByText("<svg onload=alert(1)> ⟨U+202E⟩").first().waitFor();
    await page.route("**/v1/audit-logs?**", (route) => route.fulfill({ status: 503, json: { message: "so it is", error: { type: "x" } } }));
    await page.goto(`${ORIGIN}/console/audit`);
    await page.getByText("so it is").waitFor();
  });
});
