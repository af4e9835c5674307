// Names and limits of keys, providers and budgets: the difference is reviewed and tried before it is stored, and what somebody
// else stored meanwhile is not overwritten.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { acting, inspect, launch, OWNER, settled } from "./console.mjs";
import { ask, catalogue, made, person, until, workspaceNamed } from "./seed.mjs";

const suffix = `-l${Date.now().toString(36)}`;
const mail = (name) => `${name}${suffix}@example.com`;
let browser, seeded, policy;

before(async () => {
  browser = await launch();
  seeded = await catalogue(suffix);
  policy = await made("/policies/usage-limits", {
    name: `a dollar a user${suffix}`, workspace_id: seeded.workspace, type: "cost", credit_limit: 1, conditions: [{ key: "metadata._user", value: "*" }], group_by: [{ key: "metadata._user" }],
  });
  await person(mail("manager"), [{ id: seeded.workspace, role: "manager" }]);
  await person(mail("member"), [{ id: seeded.workspace, role: "member" }]);
});

after(async () => { await browser?.close(); });

const dialog = (page) => page.getByRole("dialog");
const keyNow = async () => (await ask("GET", `/api-keys/${seeded.keys.checkout.id}`)).json;

async function store(page) {
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
}

test("a key's limits are changed after a look at the difference, and the others stay", () => acting(browser, mail("manager"), async ({ page }) => {
  const { id } = seeded.keys.checkout;
  const { defaults, scopes } = await keyNow();
  await settled(page, `/keys?key=${id}`);
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByLabel("Requests a minute").fill("120");
  await page.getByLabel("Dollars in a period").fill("75");
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  assert.match(await dialog(page).getByRole("row").filter({ hasText: "credit_limit" }).textContent(), /50.*75/);
  assert.equal((await keyNow()).usage_limits.credit_limit, 50, "a trial stores nothing");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  const now = await keyNow();
  assert.deepEqual([now.usage_limits.credit_limit, now.usage_limits.periodic_reset, now.rate_limits.map(({ value, unit }) => [value, unit])], [75, "monthly", [[120, "rpm"]]]);
  assert.deepEqual([now.defaults, now.scopes], [defaults, scopes]);
}));

test("a key that somebody else changed is neither changed nor deleted, but suspended", () => acting(browser, OWNER, async ({ page }) => {
  const { id } = seeded.keys["support-bot"];
  await settled(page, `/keys?key=${id}`);
  await ask("PUT", `/api-keys/${id}`, { description: "changed elsewhere" });
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByLabel("Requests a minute").fill("1");
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("This was changed since it was read").waitFor();
  assert.ok(await dialog(page).getByRole("button", { name: "Save" }).isDisabled());
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog(page).getByRole("button", { name: "Delete" }).click();
  await dialog(page).getByText("This was changed since it was read").waitFor();
  assert.equal((await ask("GET", `/api-keys/${id}`)).json.status, "active");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Suspend" }).click();
  await dialog(page).getByRole("button", { name: "Suspend" }).click();
  await until("the key is suspended", async () => (await ask("GET", `/api-keys/${id}`)).json.status === "suspended");
}));

test("a provider gets a budget, and loses it", () => acting(browser, OWNER, async ({ page }) => {
  const slug = `openai-eu${suffix}`;
  const provider = async () => (await ask("GET", `/providers/${slug}?workspace_id=${seeded.workspace}`)).json;
  await settled(page, `/providers?provider=${(await provider()).id}`);
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByLabel("Dollars in a period").fill("10");
  await store(page);
  assert.equal((await provider()).usage_limits.credit_limit, 10);
  await page.getByRole("button", { name: "Change" }).click();
  await until("the form has what is stored", async () => (await page.getByLabel("Dollars in a period").inputValue()) === "10");
  await page.getByLabel("Dollars in a period").fill("");
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await until("the budget is gone", async () => !(await provider()).usage_limits);
}));

test("a budget is raised in four clicks, where it stands in the list", () => acting(browser, OWNER, async ({ page, clicks }) => {
  // A policy has a budget once somebody was counted.
  const { key } = seeded.keys.checkout;
  await until("the policy counted somebody", async () => {
    await ask("POST", "/chat/completions", { model: "gpt-4o", messages: [{ role: "user", content: "Hello" }] }, { "x-gateway-api-key": key, "x-gateway-metadata": '{"_user":"ada"}' });
    return (await ask("GET", "/analytics/budgets?page_size=100")).json.data.some(({ id }) => id === policy.id);
  });
  await settled(page, "/budgets");
  clicks.number = 0;
  const row = page.getByRole("row").filter({ hasText: `a dollar a user${suffix}` });
  await row.getByRole("link", { name: /^Change the limit/ }).first().click();
  await page.getByLabel("Dollars in a period").fill("2.5");
  await store(page);
  assert.equal((await ask("GET", `/policies/usage-limits/${policy.id}`)).json.credit_limit, 2.5);
  assert.ok(clicks.number <= 4, `${clicks.number} clicks`);
  await row.getByText("$2.50").first().waitFor();
}));

test("a budget that is raised keeps the date when it begins anew, whoever it belongs to", async () => {
  const next_usage_reset_at = new Date(Date.now() + 40 * 86_400_000).toISOString().replace(/\.\d+Z$/, ".000Z");
  const budget = { type: "cost", credit_limit: 20, periodic_reset: "monthly", next_usage_reset_at };
  const team = await workspaceNamed(`team${suffix}`, { usage_limits: [budget] });
  const key = await made("/api-keys/workspace/service", { name: `raised${suffix}`, workspace_id: seeded.workspace, scopes: ["models.list"], usage_limits: budget });
  const slug = `openai-us${suffix}`;
  assert.equal((await ask("PUT", `/providers/${slug}`, { workspace_id: seeded.workspace, usage_limits: budget })).status, 200);
  const provider = async () => (await ask("GET", `/providers/${slug}?workspace_id=${seeded.workspace}`)).json;
  const owners = {
    [`api_key.${key.id}`]: async () => (await ask("GET", `/api-keys/${key.id}`)).json.usage_limits,
    [`provider.${(await provider()).id}`]: async () => (await provider()).usage_limits,
    [`workspace.${team.id}`]: async () => (await ask("GET", `/workspaces/${team.id}`)).json.usage_limits[0],
  };
  await acting(browser, OWNER, async ({ page }) => {
    for (const [budgetId, stored] of Object.entries(owners)) {
      await settled(page, `/budgets?budget=${budgetId}`);
      await page.getByLabel("Dollars in a period").fill("30.125");
      await page.getByLabel("Alert at").fill("25");
      await store(page);
      await until(budgetId, async () => (await stored()).credit_limit === 30.125);
      const { alert_threshold, periodic_reset, next_usage_reset_at: next } = await stored();
      assert.deepEqual([alert_threshold, periodic_reset, next], [25, "monthly", next_usage_reset_at], budgetId);
    }
  });
});

test("a budget of some days stays one, and what does not fit a step is no obstacle to a new name", () => acting(browser, OWNER, async ({ page }) => {
  const key = await made("/api-keys/workspace/service", {
    name: `days${suffix}`, workspace_id: seeded.workspace, scopes: ["models.list"], rate_limits: [{ type: "requests", unit: "rpm", value: 0 }], usage_limits: { credit_limit: 12.345, periodic_reset_days: 10 },
  });
  const stored = async () => (await ask("GET", `/api-keys/${key.id}`)).json;
  const { usage_limits: first } = await stored();
  await settled(page, `/keys?key=${key.id}`);
  await page.getByRole("button", { name: "Change" }).click();
  assert.deepEqual([await page.getByLabel("Period", { exact: true }).inputValue(), await page.getByLabel("Days of a period").inputValue()], ["days", "10"]);
  await page.getByLabel("Name", { exact: true }).fill(`renamed${suffix}`);
  await store(page);
  assert.deepEqual([(await stored()).name, (await stored()).usage_limits], [`renamed${suffix}`, first]);
  await page.locator(".side strong").getByText(`renamed${suffix}`).waitFor();
  await page.getByRole("button", { name: "Change" }).click();
  await page.getByLabel("Period", { exact: true }).selectOption("monthly");
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await until("it begins anew each month", async () => (await stored()).usage_limits.periodic_reset === "monthly");
  assert.equal((await stored()).usage_limits.periodic_reset_days, null);
}));

test("of their own key a member changes the name, and suspends it", async () => {
  const { user_id } = await person(mail("own"), [{ id: seeded.workspace, role: "member" }]);
  const rights = (mayWrite) => ask("PUT", "/admin/organisation/security-settings", { membersWriteApiKeys: mayWrite });
  const { membersWriteApiKeys: before } = (await ask("GET", "/admin/organisation/security-settings")).json;
  assert.equal((await rights(false)).status, 200);
  try {
    const key = await made("/api-keys/workspace/user", { name: `own${suffix}`, workspace_id: seeded.workspace, user_id, scopes: ["models.list"] });
    await acting(browser, mail("own"), async ({ page }) => {
      await settled(page, `/keys?key=${key.id}`);
      await page.getByRole("button", { name: "Change" }).click();
      assert.equal(await page.getByLabel("Requests a minute").count(), 0);
      await page.getByLabel("Name", { exact: true }).fill(`mine${suffix}`);
      await store(page);
      await page.getByRole("button", { name: "Suspend" }).click();
      await dialog(page).getByRole("button", { name: "Suspend" }).click();
      await page.locator(".side").getByText("suspended").waitFor();
      assert.equal(await page.getByRole("button", { name: "Resume" }).count(), 0);
      const { name, status } = (await ask("GET", `/api-keys/${key.id}`)).json;
      assert.deepEqual([name, status], [`mine${suffix}`, "suspended"]);
    });
  } finally {
    await rights(before);
  }
});

test("pages stand in the address, one behind the end leads back, and another workspace begins at the first", async () => {
  const many = await workspaceNamed(`many${suffix}`);
  const { json: space } = await ask("GET", `/workspaces/${many.id}`);
  for (let index = 0; index < 51; index += 1) await made("/api-keys/workspace/service", { name: `key ${index}`, workspace_id: many.id, scopes: ["models.list"] });
  await acting(browser, OWNER, async ({ page }) => {
    const rows = page.locator("tbody tr");
    await settled(page, `/keys?ws=${space.slug}`);
    assert.equal(await rows.count(), 50);
    await page.getByRole("link", { name: "Next page" }).click();
    await until("the last key", async () => (await rows.count()) === 1);
    await settled(page, `/keys?ws=${space.slug}&page=9`);
    await page.getByRole("link", { name: "Previous page" }).click();
    await page.waitForURL(/page=2/);
    await until("the last key", async () => (await rows.count()) === 1);
    await page.getByLabel("Workspace", { exact: true }).selectOption("*");
    await page.waitForURL((url) => url.pathname === "/console/keys" && url.search === "?ws=*");
    await until("the first page of all", async () => (await rows.count()) === 50);
  });
});

test("a member sees limits and changes none", () => acting(browser, mail("member"), async ({ page }) => {
  await settled(page, `/keys?key=${seeded.keys.checkout.id}`);
  for (const name of ["Change", "Suspend", "Rotate", "Delete"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
  await settled(page, "/budgets");
  await page.getByRole("row").nth(1).waitFor();
  assert.equal(await page.getByRole("link", { name: /^Change the limit/ }).count(), 0);
}));

test("files of objects are ones that the command line takes", () => acting(browser, OWNER, async ({ page }) => {
  const { json: provider } = await ask("GET", `/providers/openai-us${suffix}?workspace_id=${seeded.workspace}`);
  const folder = await mkdtemp(`${tmpdir()}/console-`);
  for (const [name, path] of [["key", `/keys?key=${seeded.keys.checkout.id}`], ["provider", `/providers?provider=${provider.id}`], ["policy", `/policies?policy=${policy.id}`], ["workspace", `/people/workspaces?space=${seeded.workspace}`]]) {
    await settled(page, path);
    const side = page.locator(".side");
    await side.getByText("As text", { exact: true }).first().click();
    await writeFile(`${folder}/${name}.yaml`, await side.getByLabel("As text: YAML").textContent());
  }
  execFileSync(process.env.PORTCULLIS, ["validate", "-f", folder]);
  await rm(folder, { recursive: true });
}));

test("forms of limits at two widths and themes", async () => {
  const { json: provider } = await ask("GET", `/providers/openai-us${suffix}?workspace_id=${seeded.workspace}`);
  await acting(browser, OWNER, async ({ page }) => {
    await settled(page, `/budgets?budget=policy.${policy.id}`);
    await page.getByLabel("Dollars in a period").waitFor();
    await settled(page, "/budgets?budget=nothing");
    assert.equal(await page.locator(".side").count(), 0);
  });
  await inspect(browser, OWNER, [`/keys?key=${seeded.keys.checkout.id}`, `/providers?provider=${provider.id}`, `/budgets?budget=policy.${policy.id}`, "/budgets?budget=nothing"]);
});
