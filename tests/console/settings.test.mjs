// Settings: changed by whoever runs the organisation, after a look at the difference.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { acting, inspect, launch, ORIGIN, OWNER, settled } from "./console.mjs";
import { ask, person, until, workspaceNamed } from "./seed.mjs";

const suffix = `-e${Date.now().toString(36)}`;
const mail = (name) => `${name}${suffix}@example.com`;
let browser, team;

before(async () => {
  browser = await launch();
  team = await workspaceNamed(`team${suffix}`);
  await person(mail("manager"), [{ id: team.id, role: "admin" }]);
});

after(async () => { await browser?.close(); });

const dialog = (page) => page.getByRole("dialog");
const rights = async () => (await ask("GET", "/admin/organisation/security-settings")).json;
const organisation = async () => (await ask("GET", "/admin/organisation")).json;

test("a right of members is taken and given back, and nothing else changes", () => acting(browser, OWNER, async ({ page, clicks }) => {
  const first = await rights();
  await page.getByRole("link", { name: "Settings" }).click();
  await page.getByRole("link", { name: "Rights" }).click();
  for (const isBack of [false, true]) {
    const box = page.getByLabel("Change prompts: members");
    assert.equal(await box.isChecked(), isBack ? !first.membersWritePrompts : first.membersWritePrompts);
    await box.click();
    await page.getByRole("button", { name: "Review" }).click();
    await dialog(page).getByText("The gateway would accept this.").waitFor();
    assert.equal(await dialog(page).locator(".differences tbody tr").count(), 1);
    await dialog(page).getByRole("button", { name: "Save" }).click();
    await dialog(page).waitFor({ state: "detached" });
    await page.getByText("Saved.").first().waitFor();
    const now = await rights();
    assert.deepEqual({ ...now, membersWritePrompts: null }, { ...first, membersWritePrompts: null });
    assert.equal(now.membersWritePrompts, isBack ? first.membersWritePrompts : !first.membersWritePrompts);
  }
  assert.ok(clicks.number <= 8);
}));

test("the life of keys is days here and seconds there; what somebody else changed is not overwritten", () => acting(browser, OWNER, async ({ page }) => {
  const { settings } = await organisation();
  await settled(page, "/settings");
  await page.getByLabel("Of applications, at most").fill("30");
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  // The settings are read again only once the dialog is gone: nothing can be stored twice meanwhile.
  let release;
  const isGone = new Promise((resolve) => (release = resolve));
  await page.route("**/v1/admin/organisation", async (route) => {
    if (route.request().method() === "GET") await isGone;
    await route.continue();
  });
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await dialog(page).waitFor({ state: "detached" });
  release();
  await page.unrouteAll({ behavior: "wait" });
  await until("the form has what is stored", async () => page.getByRole("button", { name: "Review" }).isDisabled());
  assert.deepEqual((await organisation()).settings, { ...settings, service_api_key_max_ttl: 30 * 86_400 });
  // An empty field is not the 0 that lifts the bound.
  await page.getByLabel("Of applications, at most").fill("");
  await page.getByRole("button", { name: "Review" }).click();
  assert.equal(await page.getByLabel("Of applications, at most").evaluate((field) => field.validity.valueMissing), true);
  assert.equal(await dialog(page).count(), 0);
  await page.getByLabel("Of applications, at most").fill("60");
  await ask("PUT", "/admin/organisation", { settings: { service_api_key_max_ttl: settings.service_api_key_max_ttl } });
  await page.getByRole("button", { name: "Review" }).click();
  assert.match(await dialog(page).getByRole("row").filter({ hasText: "service_api_key_max_ttl" }).textContent(), /30.*60/);
  await dialog(page).getByText("This was changed since it was read").waitFor();
  await dialog(page).getByRole("button", { name: "Read it again" }).click();
  await dialog(page).waitFor({ state: "detached" });
  assert.deepEqual((await organisation()).settings, settings);
}));

test("who does not run the organisation has no settings", () => acting(browser, mail("manager"), async ({ page }) => {
  assert.equal(await page.getByRole("link", { name: "Settings" }).count(), 0);
  await settled(page, "/settings/rights");
  await page.getByText("You may not see this").waitFor();
}));

test("settings at two widths and themes, and failing", async () => {
  await inspect(browser, OWNER, ["/settings", "/settings/rights", "/settings/nothing"]);
  await acting(browser, OWNER, async ({ page }) => {
    await page.route("**/v1/admin/organisation", (route) => route.fulfill({ status: 503, json: { message: "so it is", error: { type: "x" } } }));
    await page.goto(`${ORIGIN}/console/settings`);
    await page.getByText("so it is").waitFor();
  });
});
