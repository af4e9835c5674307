// Routing: configs are read, checked, reviewed and taken back, and nobody overwrites what somebody else stored.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { after, before, test } from "node:test";
import { acting, inspect, launch, ORIGIN, OWNER, settled } from "./console.mjs";
import { ask, catalogue, made, person, until, workspaceNamed } from "./seed.mjs";

const suffix = `-r${Date.now().toString(36)}`;
const HOSTILE = `<img src=x onerror=alert(1)>\u202e${"x".repeat(80)}`;
const mail = (name) => `${name}${suffix}@example.com`;
const TARGETS = [{ provider: `@openai-eu${suffix}` }, { provider: `@openai-us${suffix}` }];
let browser, seeded, spare;

before(async () => {
  browser = await launch();
  seeded = await catalogue(suffix);
  spare = await made("/configs", { name: `spare${suffix}`, workspace_id: seeded.workspace, config: { strategy: { mode: "fallback" }, targets: TARGETS } });
  await person(mail("manager"), [{ id: seeded.workspace, role: "manager" }]);
  await person(mail("member"), [{ id: seeded.workspace, role: "member" }]);
});

after(async () => { await browser?.close(); });

const stored = async (id) => (await ask("GET", `/configs/${id}`)).json.data.config;
const editor = (page) => page.getByLabel("Text of the config");
const write = (page, config) => editor(page).fill(JSON.stringify(config, null, 2));
const dialog = (page) => page.getByRole("dialog");

test("a route is changed in five clicks: text, difference, stored", () => acting(browser, mail("manager"), async ({ page, clicks }) => {
  await page.getByRole("link", { name: "Routing" }).click();
  await page.getByRole("link", { name: `spare${suffix}` }).click();
  await page.getByText(`1. · @openai-eu${suffix}`).waitFor();
  await write(page, { strategy: { mode: "loadbalance" }, targets: [{ ...TARGETS[0], weight: 3 }, { ...TARGETS[1], weight: 1 }] });
  await page.getByText(`75 % · @openai-eu${suffix}`).waitFor();
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  const mode = dialog(page).getByRole("row").filter({ hasText: "strategy.mode" });
  assert.match(await mode.textContent(), /fallback.*loadbalance/);
  assert.equal((await stored(spare.id)).strategy.mode, "fallback", "a trial stores nothing");
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Version 2").waitFor();
  assert.equal((await stored(spare.id)).strategy.mode, "loadbalance");
  assert.ok(clicks.number <= 5, `${clicks.number} clicks`);
}));

test("an earlier version comes back, after the same review", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, `/routing/${spare.id}`);
  await page.getByRole("button", { name: "What it changed: Version 2" }).click();
  await page.getByRole("row").filter({ hasText: "strategy.mode" }).waitFor();
  await page.getByRole("button", { name: "Go back to this: Version 1" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Version 3").waitFor();
  assert.deepEqual((await stored(spare.id)).strategy, { mode: "fallback" });
}));

test("what is wrong stands at its line, whether the text is no JSON or no config", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, `/routing/${spare.id}`);
  await editor(page).fill('{\n  "strategy": { "mode": "fallback" },\n  "targets": [\n}');
  await page.getByRole("button", { name: "Review" }).click();
  await page.getByRole("button", { name: "Line 4" }).waitFor();
  await write(page, { strategy: { mode: "fallback" }, targets: [TARGETS[0], { ...TARGETS[1], retry: { attempts: -1 } }] });
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByRole("alert").waitFor();
  assert.ok(await dialog(page).getByRole("button", { name: "Save" }).isDisabled());
  await page.keyboard.press("Escape");
  await dialog(page).waitFor({ state: "detached" });
  await page.getByText("targets[1].retry.attempts: must be").waitFor();
  const line = JSON.stringify({ strategy: { mode: "fallback" }, targets: [TARGETS[0], { ...TARGETS[1], retry: { attempts: -1 } }] }, null, 2).split("\n").findIndex((text) => text.includes("attempts")) + 1;
  await page.getByRole("button", { name: `Line ${line}` }).click();
  assert.match(await editor(page).evaluate((field) => field.value.slice(field.selectionStart, field.selectionEnd)), /attempts/);
}));

test("a new line of the editor begins where the one before did, and can be undone", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, `/routing/${spare.id}`);
  await editor(page).fill('  "a"');
  await editor(page).press("End");
  await editor(page).press("Enter");
  assert.equal(await editor(page).inputValue(), '  "a"\n  ');
  await editor(page).press("Control+z");
  assert.equal(await editor(page).inputValue(), '  "a"');
}));

test("a provider that is not there is a warning of the review", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, `/routing/${spare.id}`);
  await write(page, { strategy: { mode: "fallback" }, targets: [TARGETS[0], { provider: "@nobody" }] });
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("this workspace has no provider @nobody yet").waitFor();
}));

test("what somebody else stored meanwhile is not overwritten, and the draft stays", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, `/routing/${spare.id}`);
  await write(page, { strategy: { mode: "fallback" }, targets: [TARGETS[1]] });
  await ask("PUT", `/configs/${spare.id}`, { config: { strategy: { mode: "fallback" }, targets: [TARGETS[0]] } });
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("This was changed since it was read").waitFor();
  await dialog(page).getByRole("button", { name: "Read it again" }).click();
  await page.getByText("Version 4").waitFor();
  assert.ok((await editor(page).inputValue()).includes(TARGETS[1].provider));
  await page.getByRole("button", { name: "Review" }).click();
  await dialog(page).getByText("The gateway would accept this.").waitFor();
  assert.match(await dialog(page).locator(".differences").textContent(), new RegExp(`${TARGETS[0].provider}.*${TARGETS[1].provider}`));
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Version 5").waitFor();
  assert.deepEqual((await stored(spare.id)).targets, [TARGETS[1]]);
}));

test("a draft outlives links, another version and a session that ends, and the browser asks before it is lost", () => acting(browser, OWNER, async ({ page, context, complaints }) => {
  await settled(page, `/routing/${spare.id}`);
  await page.getByText("Version 5").waitFor();
  await write(page, { strategy: { mode: "fallback" }, targets: [{ provider: "@draft" }] });
  const isDraft = async () => (await editor(page).inputValue()).includes("@draft");
  await page.getByRole("link", { name: "All configs" }).click();
  await page.getByRole("link", { name: `spare${suffix}` }).click();
  await page.getByText("not stored yet").waitFor();
  assert.ok(await isDraft());
  await page.getByRole("button", { name: "Go back to this: Version 4" }).click();
  await dialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Version 6").waitFor();
  assert.ok(await isDraft());
  const cookies = await context.cookies();
  await context.clearCookies();
  await page.getByRole("button", { name: "Review" }).click();
  await page.waitForURL(/\/console\/login/);
  await context.addCookies(cookies);
  await page.evaluate(() => document.dispatchEvent(new Event("visibilitychange")));
  await page.waitForURL(`${ORIGIN}/console/routing/${spare.id}`);
  await page.getByText("not stored yet").waitFor();
  assert.ok(await isDraft());
  page.removeAllListeners("dialog");
  const asked = new Promise((resolve) => page.once("dialog", (question) => void question.dismiss().then(() => resolve(question.type()))));
  await page.evaluate(() => location.reload());
  assert.equal(await asked, "beforeunload");
  assert.deepEqual(complaints, []);
  await page.getByRole("button", { name: "Discard the changes" }).click();
  assert.ok(!(await isDraft()));
}));

test("something new is made in the workspace that is looked at", async () => {
  const other = await workspaceNamed(`other${suffix}`);
  const { json: space } = await ask("GET", `/workspaces/${other.id}`);
  await acting(browser, OWNER, async ({ page }) => {
    for (const path of ["/routing?new=1", "/policies?new=1", "/keys?new=1"]) {
      await settled(page, `${path}&ws=${space.slug}`);
      const choice = page.locator("main").getByLabel("Workspace", { exact: true });
      assert.deepEqual(await choice.locator("option").allTextContents(), [`other${suffix}`], path);
      await settled(page, path);
      assert.ok((await choice.locator("option").count()) > 1, path);
    }
    await settled(page, "/routing?new=1");
    await page.getByLabel("Name", { exact: true }).fill(`there${suffix}`);
    await page.locator("main").getByLabel("Workspace", { exact: true }).selectOption(space.slug);
    await page.getByRole("button", { name: "Make the config" }).click();
    await page.getByRole("heading", { name: `there${suffix}`, level: 1 }).waitFor();
    await page.locator(".facts").getByText(`other${suffix}`).waitFor();
  });
});

test("a config is made, and deleted unless something needs it", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, "/routing?new=1");
  await page.getByLabel("Name", { exact: true }).fill(`made${suffix}`);
  await write(page, { strategy: { mode: "single" }, targets: [TARGETS[0]] });
  await page.getByRole("button", { name: "Make the config" }).click();
  await page.getByRole("heading", { name: `made${suffix}`, level: 1 }).waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog(page).getByRole("button", { name: "Delete" }).click();
  await page.waitForURL(`${ORIGIN}/console/routing`);
  const needed = (await ask("GET", `/configs/${seeded.config}`)).json.id;
  await settled(page, `/routing/${needed}`);
  await page.getByRole("button", { name: "Delete" }).click();
  await dialog(page).getByRole("button", { name: "Delete" }).click();
  await dialog(page).getByText(`still in use by the API key`).waitFor();
}));

test("the file of a config is one that the command line takes", () => acting(browser, OWNER, async ({ page }) => {
  await settled(page, `/routing/${seeded.config}`);
  await page.getByText("As text", { exact: true }).click();
  const text = await page.getByLabel("As text: YAML").textContent();
  const folder = await mkdtemp(`${tmpdir()}/console-`);
  await writeFile(`${folder}/config.yaml`, text);
  execFileSync(process.env.PORTCULLIS, ["validate", "-f", folder]);
  await rm(folder, { recursive: true });
}));

test("a member reads and cannot change", () => acting(browser, mail("member"), async ({ page }) => {
  await page.getByRole("link", { name: "Routing" }).click();
  assert.equal(await page.getByRole("link", { name: "New config" }).count(), 0);
  await page.getByRole("link", { name: `spare${suffix}` }).click();
  await page.getByText("You may read this, not change it.").waitFor();
  assert.equal(await editor(page).evaluate((field) => field.readOnly), true);
  for (const name of ["Review", "Delete", /^Go back/]) assert.equal(await page.getByRole("button", { name }).count(), 0);
}));

test("who may not see configs is told so", async () => {
  const members = (mayView) => ask("PUT", "/admin/organisation/security-settings", { membersViewConfigs: mayView });
  assert.equal((await members(false)).status, 200);
  try {
    await acting(browser, mail("member"), async ({ page }) => {
      assert.equal(await page.getByRole("link", { name: "Routing" }).count(), 0);
      await settled(page, "/routing");
      await page.getByText("You may not see this").waitFor();
    });
  } finally {
    await members(true);
  }
});

test("configs at two widths and themes, with strangers' names, empty and failing", async () => {
  const odd = await made("/configs", { name: HOSTILE.slice(0, 100), workspace_id: seeded.workspace, config: { strategy: { mode: "fallback" }, targets: [{ ...TARGETS[0], name: HOSTILE }, { provider: "@nobody" }] } });
  await inspect(browser, OWNER, ["/routing", "/routing?search=no-such-config", "/routing?new=1", `/routing/${odd.id}`, "/routing/nothing", "/routing/%E0%A4%A"]);
  await acting(browser, OWNER, async ({ page }) => {
    await settled(page, `/routing/${odd.id}`);
    await page.getByText("<img src=x onerror=alert(1)>⟨U+202E⟩").first().waitFor();
    await page.route("**/v1/configs?**", (route) => route.fulfill({ status: 503, json: { message: "so it is", error: { type: "x" } } }));
    await page.goto(`${ORIGIN}/console/routing`);
    await page.getByText("so it is").waitFor();
  });
  await until("the odd one is gone", async () => (await ask("DELETE", `/configs/${odd.id}`)).status === 200);
});
