// People: who belongs where, who comes and who goes, each by whoever may.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { acting, inspect, launch, ORIGIN, OWNER, settled, signIn, visit } from "./console.mjs";
import { ask, person, until, workspaceNamed } from "./seed.mjs";

const suffix = `-p${Date.now().toString(36)}`;
const HOSTILE = `<img src=x onerror=alert(1)>${"x".repeat(60)}`;
const mail = (name) => `${name}${suffix}@example.com`;
let browser, team;

before(async () => {
  browser = await launch();
  team = await workspaceNamed(`team${suffix}`, { description: HOSTILE });
  await person(mail("manager"), [{ id: team.id, role: "manager" }]);
  await person(mail("member"), [{ id: team.id, role: "member" }]);
});

after(async () => { await browser?.close(); });

const userOf = async (email) => (await ask("GET", `/admin/users?email=${encodeURIComponent(email)}`)).json.data[0];
/** Chooses a role, which alone changes nothing, and asks for its review. */
async function changeRole(page, email, role) {
  await page.getByLabel(`Role of ${email}`).selectOption(role);
  assert.equal(await page.getByRole("dialog").count(), 0);
  await page.getByRole("button", { name: `Change the role: ${email}` }).click();
}

const row = (page, text) => page.getByRole("row").filter({ hasText: text });

test("somebody is invited in four clicks, and the link is shown once", () => acting(browser, OWNER, async ({ page, clicks }) => {
  await page.getByRole("link", { name: "People" }).click();
  await page.getByRole("link", { name: "Invitations" }).click();
  await page.getByRole("link", { name: "Invite somebody" }).first().click();
  await page.getByLabel("E-mail").fill(mail("ada"));
  await page.getByLabel(`team${suffix}`).selectOption("manager");
  await page.getByRole("button", { name: "Invite somebody" }).click();
  const link = await page.locator(".secret code").textContent();
  assert.ok(clicks.number <= 4, `${clicks.number} clicks`);
  await page.getByRole("button", { name: "Close" }).click();
  await row(page, mail("ada")).getByText("pending").waitFor();
  assert.ok(!(await page.content()).includes(link.split("token=")[1]));
  const visitor = await visit(browser);
  await visitor.page.goto(link);
  await visitor.page.getByLabel("First name").fill("Ada");
  await visitor.page.getByRole("button", { name: "Accept" }).click();
  await visitor.page.getByText("Your account is ready").waitFor();
  await visitor.context.close();
  const { json } = await ask("GET", `/workspaces/${team.id}/users?email=${encodeURIComponent(mail("ada"))}`);
  assert.equal(json.data[0].role, "manager");
}));

test("an invitation gets a new link, and is revoked", () => acting(browser, OWNER, async ({ page }) => {
  const { json } = await ask("POST", "/admin/users/invites", { email: mail("bob"), role: "member", workspaces: [] });
  await settled(page, "/people/invitations");
  await page.getByRole("button", { name: `New link: ${mail("bob")}` }).click();
  const link = await page.locator(".secret code").textContent();
  assert.notEqual(link, json.invite_link);
  await settled(page, "/people/invitations");
  await page.getByRole("button", { name: `Revoke: ${mail("bob")}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await until("it is gone", async () => (await row(page, mail("bob")).count()) === 0);
  assert.equal((await ask("POST", "/admin/users/invites/accept", { token: link.split("token=")[1], first_name: "Bob" })).status < 300, false);
}));

test("a role is reviewed before it is stored, and a change of somebody else is not overwritten", () => acting(browser, OWNER, async ({ page }) => {
  const { user_id: id } = await person(mail("carol"), []);
  await settled(page, `/people/users?search=${encodeURIComponent(mail("carol"))}`);
  await page.getByRole("link", { name: mail("carol") }).click();
  await changeRole(page, mail("carol"), "admin");
  await page.getByText("The gateway would accept this.").waitFor();
  assert.equal((await userOf(mail("carol"))).role, "member", "a trial stores nothing");
  await ask("PUT", `/admin/users/${id}`, { role: "member", first_name: "Caroline" });
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await page.getByText("This was changed since it was read").waitFor();
  await page.getByRole("button", { name: "Read it again" }).click();
  await page.getByText("Caroline").first().waitFor();
  await changeRole(page, mail("carol"), "admin");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  await until("the role is stored", async () => (await userOf(mail("carol"))).role === "admin");
  await page.getByRole("button", { name: "Remove from the organisation" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove from the organisation" }).click();
  await page.getByText("Nobody has this name").waitFor();
  const { json } = await ask("GET", `/admin/users?status=archived&email=${encodeURIComponent(mail("carol"))}`);
  assert.deepEqual(json.data.map((one) => one.id), [id]);
}));

test("a person is signed out everywhere", async () => {
  const { page, context } = await visit(browser);
  await signIn(page, mail("member"));
  await acting(browser, OWNER, async ({ page: owner }) => {
    await settled(owner, `/people/users?person=${(await userOf(mail("member"))).id}`);
    await owner.getByRole("button", { name: "Sign out everywhere" }).click();
    await owner.getByRole("dialog").getByRole("button", { name: "Sign out everywhere" }).click();
    await owner.getByText("They are not signed in anywhere.").waitFor();
  });
  await page.goto(`${ORIGIN}/console/keys`);
  await page.waitForURL(/\/console\/login/);
  await context.close();
});

test("a workspace is made, gets a member, and is archived by its name", () => acting(browser, OWNER, async ({ page }) => {
  const name = `shop${suffix}`;
  await settled(page, "/people/workspaces");
  await page.getByRole("link", { name: "New workspace" }).click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("button", { name: "New workspace" }).click();
  await page.getByRole("link", { name, exact: true }).click();
  await page.getByLabel("E-mail of somebody").fill(mail("member"));
  await page.getByRole("button", { name: "Add" }).click();
  await changeRole(page, mail("member"), "manager");
  await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
  const { id } = (await ask("GET", `/workspaces?exact_name=${name}`)).json.data[0];
  const members = async () => (await ask("GET", `/workspaces/${id}/users`)).json.data;
  await until("the role is stored", async () => (await members()).some(({ role: now }) => now === "manager"));
  await page.getByRole("button", { name: `Remove: ${mail("member")}` }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await until("the member is gone", async () => (await members()).every(({ email }) => email !== mail("member")));
  assert.ok((await page.getByLabel("Workspace", { exact: true }).textContent()).includes(name));
  await page.getByRole("button", { name: "Archive" }).click();
  const archive = page.getByRole("dialog").getByRole("button", { name: "Archive" });
  assert.ok(await archive.isDisabled());
  await page.getByLabel("Its name, once more").fill(name);
  await page.getByLabel("Also when it still holds something").check();
  await archive.click();
  await page.getByText("The workspace was archived.").waitFor();
  await until("it is gone from the bar", async () => !(await page.getByLabel("Workspace", { exact: true }).textContent()).includes(name));
}));

test("managers change roles of their workspace; members only read, and neither sees the organisation", async () => {
  for (const [email, mayChange] of [[mail("manager"), true], [mail("member"), false]]) {
    await acting(browser, email, async ({ page }) => {
      await settled(page, `?ws=${team.slug}`);
      await page.getByRole("link", { name: "People" }).click();
      await row(page, mail("manager")).first().waitFor();
      assert.equal((await page.getByLabel(/^Role of/).count()) > 0, mayChange, email);
      assert.equal(await page.getByRole("button", { name: /^Remove/ }).count() > 0, mayChange, email);
      assert.equal(await page.getByRole("link", { name: "Organisation" }).count(), 0);
      for (const part of ["users", "invitations"]) {
        await settled(page, `/people/${part}?ws=${team.slug}`);
        await page.getByText("You may not see this").waitFor();
      }
      await settled(page, `/people/workspaces?ws=${team.slug}`);
      assert.equal(await page.getByRole("link", { name: "New workspace" }).count(), 0);
    });
  }
});

test("nobody is offered what is above them", async () => {
  await person(mail("admin"), [], "admin");
  await person(mail("lead"), [{ id: team.id, role: "admin" }]);
  const { user_id: newcomer } = await person(mail("newcomer"), []);
  const roles = (page, email) => page.getByLabel(`Role of ${email}`).locator("option").allTextContents();
  await acting(browser, mail("admin"), async ({ page }) => {
    await settled(page, `/people/users?person=${(await userOf(OWNER)).id}`);
    for (const name of ["Sign out everywhere", "Remove from the organisation"]) assert.equal(await page.getByRole("button", { name }).count(), 0, name);
    await settled(page, `/people/users?person=${(await userOf(mail("member"))).id}`);
    for (const name of ["Sign out everywhere", "Remove from the organisation"]) await page.getByRole("button", { name }).waitFor();
  });
  await acting(browser, mail("manager"), async ({ page }) => {
    await settled(page, `/people?ws=${team.slug}`);
    assert.deepEqual(await roles(page, mail("member")), ["member", "manager"]);
    assert.equal(await page.getByLabel(`Role of ${mail("lead")}`).count(), 0);
    assert.equal(await page.getByRole("button", { name: `Remove: ${mail("lead")}` }).count(), 0);
  });
  // Who runs one workspace knows nobody else of the organisation, but may be told an id.
  await acting(browser, mail("lead"), async ({ page }) => {
    await settled(page, `/people?ws=${team.slug}`);
    assert.deepEqual(await roles(page, mail("member")), ["member", "manager", "admin"]);
    await page.getByLabel("Id of somebody of the organisation").fill(newcomer);
    await page.getByRole("button", { name: "Add" }).click();
    await row(page, mail("newcomer")).waitFor();
  });
});

test("an open workspace has pages of its own, and is found though its list is at another page", () => acting(browser, OWNER, async ({ page }) => {
  const asked = [];
  page.on("request", (request) => asked.push(request.url()));
  await page.route("**/v1/workspaces?**", (route) => route.fulfill({ json: { data: [], total: 51 } }));
  await settled(page, `/people/workspaces?space=${team.id}&members=2`);
  await page.locator(".side").getByText(team.slug, { exact: true }).waitFor();
  const pageOf = (part) => new URL(asked.find((url) => url.includes(part))).searchParams.get("current_page");
  await until("the members are asked for", async () => asked.some((url) => url.includes("/users?")));
  assert.deepEqual([pageOf("/v1/workspaces?"), pageOf(`/v1/workspaces/${team.slug}/users?`)], ["0", "1"]);
}));

test("every part at two widths and themes, with strangers' names, empty and failing", async () => {
  const { user_id: id } = await person(mail("eve"), [{ id: team.id, role: "member" }]);
  await ask("PUT", `/admin/users/${id}`, { role: "member", first_name: HOSTILE, last_name: "\u202eevil" });
  const quiet = await workspaceNamed(`quiet${suffix}`);
  await inspect(browser, OWNER, [
    "/people", `/people/users?person=${id}`, "/people/users?search=nobody-has-this-name", "/people/invitations", "/people/invitations?new=1", "/people/workspaces", "/people/workspaces?new=1",
    `/people/workspaces?space=${team.id}`, `/people?ws=${team.slug}`, `/people/members?ws=${quiet.slug}`, "/people/nothing",
  ]);
  await acting(browser, OWNER, async ({ page }) => {
    await settled(page, `/people/users?person=${id}`);
    await page.getByText("⟨U+202E⟩evil").first().waitFor();
    await page.route("**/v1/admin/users?**", (route) => route.fulfill({ status: 503, json: { message: "so it is", error: { type: "x" } } }));
    await page.goto(`${ORIGIN}/console/people`);
    await page.getByText("so it is").waitFor();
  });
});
