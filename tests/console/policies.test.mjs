// Policies: read as sentences, put together as one, first only counting, and each group with what it used.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { acting, inspect, launch, ORIGIN, OWNER, settled } from "./console.mjs";
import { ask, catalogue, made, person, until } from "./seed.mjs";

const suffix = `-q${Date.now().toString(36)}`;
const HOSTILE = `<img src=x onerror=alert(1)>\u202e${"x".repeat(80)}`;
const mail = (name) => `${name}${suffix}@example.com`;
let browser, seeded;

before(async () => {
  browser = await launch();
  seeded = await catalogue(suffix);
  await person(mail("manager"), [{ id: seeded.workspace, role: "manager" }]);
  await person(mail("member"), [{ id: seeded.workspace, role: "member" }]);
});

after(async () => { await browser?.close(); });

const dialog = (page) => page.getByRole("dialog");
const found = async (name, path = "/policies/usage-limits") => (await ask("GET", `${path}?page_size=100`)).json.data.find((one) => one.name === name);
const call = (user) => ask("POST", "/chat/completions", { model: "gpt-4o", messages: [{ role: "user", content: "Hello" }] }, { "x-gateway-api-key": seeded.keys.checkout.key, "x-gateway-metadata": JSON.stringify({ _user: user }) });

test("a budget for each user is made as a sentence, counts at first, then refuses, and begins anew", () => acting(browser, mail("manager"), async ({ page, clicks }) => {
  const name = `users${suffix}`;
  await page.getByRole("link", { name: "Policies" }).click();
  await page.getByRole("link", { name: "New policy" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Counts").selectOption("requests");
  await page.getByLabel("At most").fill("1");
  await page.getByLabel("Counted apart by").fill("metadata._user");
  await page.getByLabel("For requests with").fill("metadata._user");
  await page.locator(".side").getByText("For requests with metadata._user per metadata._user: at most 1 requests, a month").waitFor();
  await page.getByRole("button", { name: "Make the policy" }).click();
  await page.locator(".side").getByText("only counts").waitFor();
  assert.ok(clicks.number <= 5, `${clicks.number} clicks`);
  const policy = await found(name);
  assert.deepEqual([policy.dry_run, policy.credit_limit, policy.conditions[0].key, policy.group_by[0].key], [true, 1, "metadata._user", "metadata._user"]);
  await until("somebody is counted", async () => {
    assert.notEqual((await call("ada")).status, 412, "what only counts refuses nothing");
    return (await ask("GET", `/policies/usage-limits/${policy.id}/entities`)).json.data.some(({ current_usage }) => current_usage > 0);
  });
  await page.getByRole("button", { name: "Refuse from now on" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  assert.equal((await found(name)).dry_run, true, "a trial stores nothing");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await until("the policy refuses", async () => (await call("ada")).status === 412);
  await settled(page, `/policies?policy=${policy.id}`);
  await page.getByRole("button", { name: /^Begin anew/ }).click();
  await dialog(page).getByRole("button", { name: "Begin anew" }).click();
  await page.getByText("The group begins anew.").waitFor();
  await until("the group is let through again", async () => (await call("ada")).status === 200);
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog(page).getByRole("button", { name: "Delete" }).click();
  await until("the policy is gone", async () => !(await found(name)));
}));

test("a rate is made, and what the interface refuses stands at its field", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, "/policies/rates?new=1");
  await page.getByLabel("Name", { exact: true }).fill(`rate${suffix}`);
  await page.getByLabel("At most").fill("600");
  await page.getByLabel("For requests with").fill("nonsense");
  await page.getByRole("button", { name: "Make the policy" }).click();
  await page.locator(".field .wrong").waitFor();
  await page.getByLabel("For requests with").fill("model");
  await page.getByLabel("equal to").fill("gpt-4o");
  await page.getByRole("button", { name: "Make the policy" }).click();
  await page.getByRole("button", { name: "Refuse from now on" }).waitFor();
  await page.locator(".side .sentence").getByText("For requests with model = gpt-4o: at most 600 requests, a minute").waitFor();
  assert.equal((await found(`rate${suffix}`, "/policies/rate-limits")).value, 600);
}));

test("a member reads policies and changes none", async () => {
  const { id } = await made("/policies/usage-limits", { name: `read${suffix}`, workspace_id: seeded.workspace, type: "cost", credit_limit: 5, group_by: [{ key: "metadata._user" }] });
  await acting(browser, mail("member"), async ({ page }) => {
    await settled(page, `/policies?policy=${id}`);
    await page.locator(".side .sentence").waitFor();
    for (const name of ["Only count", "Refuse from now on", "Delete", "Begin anew"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
    await settled(page, "/policies?new=1");
    assert.equal(await page.getByRole("button", { name: "Make the policy" }).count(), 0);
  });
});

test("policies at two widths and themes, with strangers' names, empty and failing", async () => {
  const odd = await made("/policies/usage-limits", {
    name: HOSTILE.slice(0, 100), workspace_id: seeded.workspace, type: "tokens", credit_limit: 500, dry_run: true, conditions: [{ key: `metadata.${"y".repeat(100)}`, value: [HOSTILE, "b"] }], group_by: [{ key: "metadata._user" }],
  });
  await inspect(browser, OWNER, ["/policies", `/policies?policy=${odd.id}`, "/policies?new=1", "/policies/rates?new=1", "/policies/rates?policy=nothing", "/policies/nothing"]);
  await acting(browser, OWNER, async ({ page }) => {
    await settled(page, `/policies?policy=${odd.id}`);
    await page.getByText("<img src=x onerror=alert(1)>⟨U+202E⟩").first().waitFor();
    await page.route("**/v1/policies/usage-limits?**", (route) => route.fulfill({ status: 503, json: { message: "so it is", error: { type: "x" } } }));
    await page.goto(`${ORIGIN}/console/policies`);
    await page.getByText("so it is").waitFor();
  });
});
