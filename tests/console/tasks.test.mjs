// What people come for, done with the mouse and counted: each task has a budget of clicks.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { acting, launch, loginLink, ORIGIN, OWNER, signIn, visit } from "./console.mjs";
import { ask, calls, catalogue, until } from "./seed.mjs";

const suffix = `-${Date.now().toString(36)}`;
let browser, seeded;

before(async () => {
  browser = await launch();
  seeded = await catalogue(suffix);
  await calls(seeded, 60);
});

after(async () => { await browser?.close(); });

const asOwner = (work, options) => acting(browser, OWNER, work, options);

const budget = (clicks, most) => assert.ok(clicks.number <= most, `${clicks.number} clicks of ${most}`);

test("a one-time link ends in the console, and its token stays nowhere", async () => {
  const { page, context, complaints } = await visit(browser);
  const link = loginLink();
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("heading", { name: "Overview", level: 1 }).waitFor();
  assert.equal(page.url(), `${ORIGIN}/console`);
  const token = link.split("#token=")[1];
  assert.ok(!(await page.content()).includes(token));
  assert.deepEqual(complaints, []);
  await context.close();
});

test("why did this call fail: three clicks from the overview", () => asOwner(async ({ page, clicks }) => {
  await page.getByRole("listitem").filter({ hasText: `openai-away${suffix}` }).getByRole("link", { name: "Logs" }).click();
  await page.getByRole("row").filter({ hasText: "upstream_unreachable" }).first().click();
  await page.getByText(`openai-away${suffix} failed, and the next target rescued the call. Answered by openai-us${suffix}.`).waitFor();
  budget(clicks, 3);
  // All of it is in the address: another tab shows the same.
  const again = await page.context().newPage();
  await again.goto(page.url());
  await again.getByText("and the next target rescued the call").waitFor();
  await again.close();
}));

test("a call that its limit refused says so in the gateway's own words", () => asOwner(async ({ page, clicks }) => {
  const { id, key } = seeded.keys.search;
  const call = () => ask("POST", "/chat/completions", { model: `@openai-eu${suffix}/gpt-4o`, messages: [{ role: "user", content: "Hello" }] }, { "x-gateway-api-key": key });
  await until("the limit refuses a call", async () => (await call()).status === 429);
  await until("its log", async () => (await ask("GET", `/logs?error_code=rate_limit_exceeded&api_key_ids=${id}`)).json.total > 0);
  await page.goto(`${ORIGIN}/console/logs?error=rate_limit_exceeded&key=${id}`);
  clicks.number = 0;
  await page.getByRole("row").nth(1).click();
  await page.getByText("The gateway refused the call before any provider was asked.").waitFor();
  budget(clicks, 3);
}));

test("a pasted id opens its log without a click", () => asOwner(async ({ page, clicks }) => {
  const { json } = await ask("GET", "/logs?page_size=1&status_code=200");
  await page.keyboard.press("Control+k");
  await page.keyboard.insertText(json.data[0].id);
  await page.keyboard.press("Enter");
  await page.waitForURL(`${ORIGIN}/console/logs/${json.data[0].id}`);
  await page.getByRole("heading", { name: "Why" }).waitFor();
  budget(clicks, 0);
}));

test("filters stand in the address, and Back takes them away", () => asOwner(async ({ page }) => {
  await page.goto(`${ORIGIN}/console/logs`);
  await page.getByLabel("Filter", { exact: true }).fill(`status:5xx provider:openai-away${suffix}`);
  await page.keyboard.press("Enter");
  await page.waitForURL(/status=5xx/);
  const rows = page.locator("tbody tr");
  await until("only calls that match", async () => (await rows.count()) > 0 && (await rows.allTextContents()).every((text) => text.includes(`openai-away${suffix}`)));
  await page.goBack();
  await page.waitForURL(`${ORIGIN}/console/logs`);
  await page.getByLabel("Filter", { exact: true }).fill("modle:gpt-4o");
  await page.keyboard.press("Enter");
  await page.getByText("“modle:gpt-4o” is no filter").waitFor();
}));

test("what matches nothing says which filters, and offers to remove each", () => asOwner(async ({ page }) => {
  await page.goto(`${ORIGIN}/console/logs?model=no-such-model`);
  await page.getByRole("heading", { name: "No call matches these filters" }).waitFor();
  await page.getByRole("button", { name: "Remove the filter model:no-such-model" }).last().click();
  await page.locator("tbody tr").first().waitFor();
}));

test("calls appear while somebody watches", () => asOwner(async ({ page }) => {
  await page.goto(`${ORIGIN}/console/logs`);
  const watching = page.waitForResponse((answer) => answer.url().includes("/logs/tail"));
  await page.getByRole("button", { name: "Live" }).click();
  await watching;
  const key = seeded.keys["support-bot"].key;
  const { headers } = await ask("POST", "/chat/completions", { model: `@openai-eu${suffix}/live-model`, messages: [{ role: "user", content: "Hello" }] }, { "x-gateway-api-key": key });
  assert.ok(headers.get("x-gateway-trace-id"));
  await page.getByRole("row").filter({ hasText: "live-model" }).waitFor({ timeout: 10_000 });
}));

test("a key is made, shown once and tried; its secret is nowhere afterwards", () => asOwner(async ({ page, clicks }) => {
  await page.getByRole("link", { name: "Keys" }).click();
  await page.getByRole("link", { name: "New key" }).click();
  await page.getByLabel("Name", { exact: true }).fill(`made${suffix}`);
  await page.getByRole("button", { name: "Make the key" }).click();
  await page.getByText("The gateway accepts it").waitFor();
  budget(clicks, 4);
  const secret = await page.locator(".secret code").textContent();
  const { status } = await ask("GET", "/models", undefined, { "x-gateway-api-key": secret });
  assert.equal(status, 200);
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByRole("link", { name: `made${suffix}` }).waitFor();
  const places = await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }, location.href, document.title, history.state, document.documentElement.outerHTML]));
  assert.ok(!places.includes(secret));
}));

test("a leaked key is suspended in three clicks, and refused", () => asOwner(async ({ page, clicks }) => {
  await page.goto(`${ORIGIN}/console/keys`);
  clicks.number = 0;
  const { id, key } = seeded.keys.search;
  await page.getByRole("link", { name: `search${suffix}` }).click();
  await page.getByRole("button", { name: "Suspend" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).click();
  await until("the proxy refuses the key", async () => (await ask("GET", "/models", undefined, { "x-gateway-api-key": key })).status === 401);
  budget(clicks, 3);
  assert.equal((await ask("GET", `/api-keys/${id}`)).json.status, "suspended");
  await page.getByRole("button", { name: "Resume" }).click();
  await until("the key works again", async () => (await ask("GET", "/models", undefined, { "x-gateway-api-key": key })).status === 200);
}));

test("a provider is tried before it is stored, and says why it does not work", () => asOwner(async ({ page, clicks }) => {
  await page.goto(`${ORIGIN}/console/providers`);
  clicks.number = 0;
  await page.getByRole("link", { name: "Connect a provider" }).click();
  await page.getByRole("button", { name: "OpenAI", exact: true }).click();
  await page.getByLabel("Name", { exact: true }).fill(`mine${suffix}`);
  await page.getByLabel("key", { exact: true }).fill("sk-mock-secret");
  await page.getByText("More settings").click();
  await page.getByLabel("custom_host").fill("http://127.0.0.1:1/v1");
  await page.getByRole("button", { name: "Test and save" }).click();
  await page.getByText("Does not work").waitFor();
  assert.equal((await ask("GET", `/providers?search=mine${suffix}`)).json.total, 0);
  await page.getByLabel("custom_host").fill(process.env.MOCK_PROVIDER_URL);
  await page.getByRole("button", { name: "Test and save" }).click();
  await page.getByRole("link", { name: `@mine${suffix}` }).waitFor();
  budget(clicks, 6);
  assert.ok(!(await page.content()).includes("sk-mock-secret"));
}));

test("from nothing to the first logged answer in eight clicks", () => asOwner(async ({ page, clicks }) => {
  const { json: made } = await ask("POST", "/workspaces", { name: `first${suffix}` });
  const { json: workspace } = await ask("GET", `/workspaces/${made.id ?? made.slug}`);
  await page.goto(`${ORIGIN}/console?ws=${workspace.slug}`);
  clicks.number = 0;
  const begin = Date.now();
  await page.getByRole("button", { name: "OpenAI", exact: true }).click();
  await page.getByLabel("key", { exact: true }).fill("sk-mock");
  await page.getByText("More settings").click();
  await page.getByLabel("custom_host").fill(process.env.MOCK_PROVIDER_URL);
  await page.getByRole("button", { name: "Test and save" }).click();
  await page.getByLabel("Name", { exact: true }).last().fill("first");
  await page.getByRole("button", { name: "Make the key" }).click();
  await page.getByText("The gateway accepts it").waitFor();
  const secret = await page.locator(".secret code").textContent();
  const command = await page.locator(".first pre.block").textContent();
  assert.ok(command.includes("$GATEWAY_KEY") && !command.includes(secret));
  const [, url] = /curl (\S+)/.exec(command);
  const answer = await fetch(url, { method: "POST", headers: { "content-type": "application/json", "x-gateway-api-key": secret }, body: /-d '(.+)'/.exec(command)[1] });
  assert.equal(answer.status, 200, await answer.text());
  await page.getByText("The first call has arrived.").waitFor();
  assert.ok(Date.now() - begin < 60_000);
  budget(clicks, 8);
  await page.getByRole("link", { name: "Look at it" }).click();
  await page.getByText("The first target answered.").waitFor();
}));

test("a session that ended elsewhere leads to the sign-in, and back to the same place", async () => {
  const { page, context, complaints } = await visit(browser);
  await signIn(page);
  await page.goto(`${ORIGIN}/console/logs?status=5xx`);
  await page.locator("tbody tr").first().waitFor();
  await context.clearCookies();
  await page.getByRole("link", { name: "Keys" }).click();
  await page.waitForURL(/\/console\/login/);
  await page.getByText("Your session is over").waitFor();
  const to = new URL(page.url()).searchParams.get("to");
  assert.equal(to, "/console/keys");
  // Signed in again in another tab; this one goes on.
  const other = await context.newPage();
  await signIn(other);
  await page.reload();
  await page.waitForURL(`${ORIGIN}/console/keys`);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("the sign-in leads nowhere but below the console", async () => {
  const { page, context } = await visit(browser);
  await signIn(page);
  for (const to of ["https://evil.test/", "//evil.test", "/v1/auth/session", "/consolex", "javascript:alert(1)"]) {
    await page.goto(`${ORIGIN}/console/login?to=${encodeURIComponent(to)}`);
    await page.waitForURL(`${ORIGIN}/console`);
  }
  await context.close();
});

test("who must sign in again stays at the sign-in", async () => {
  const { page, context } = await visit(browser);
  await signIn(page);
  await page.goto(`${ORIGIN}/console/login?again=1&to=%2Fconsole%2Fkeys`);
  await page.getByLabel("Work e-mail").waitFor();
  await page.waitForLoadState("networkidle");
  assert.equal(new URL(page.url()).pathname, "/console/login");
  await context.close();
});

test("an address without a way in is told the operator's command", async () => {
  const { page, context, complaints } = await visit(browser);
  await page.goto(`${ORIGIN}/console/login`);
  await page.getByLabel("Work e-mail").fill("nobody@example.com");
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByText("gateway-admin login-link --email nobody@example.com").waitFor();
  assert.deepEqual(complaints, []);
  await context.close();
});

test("an invitation is accepted in the console, and its person sees what their role may", async () => {
  const email = `ada${suffix}@example.com`;
  const { json } = await ask("POST", "/admin/users/invites", { email, role: "member", workspaces: [{ id: seeded.workspace, role: "member" }] });
  const { page, context, complaints } = await visit(browser);
  const refused = [];
  page.on("response", (answer) => answer.status() === 403 && refused.push(answer.url()));
  await page.goto(json.invite_link);
  await page.waitForURL(`${ORIGIN}/console/invite`);
  await page.getByLabel("First name").fill("Ada");
  await page.getByRole("button", { name: "Accept" }).click();
  await page.getByText("Your account is ready").waitFor();
  assert.ok(!page.url().includes("token"));
  await signIn(page, email);
  const menu = page.getByRole("navigation", { name: "Main" });
  const names = await menu.getByRole("link").allTextContents();
  assert.ok(names.includes("Logs") && !(await page.getByLabel("Workspace").textContent()).includes("All workspaces"), names.join());
  for (const name of names) {
    await menu.getByRole("link", { name, exact: true }).click();
    await page.waitForLoadState("networkidle");
  }
  assert.deepEqual(refused, []);
  assert.deepEqual(complaints, []);
  await context.close();
});

test("German is chosen by the browser, and stays English where the interface speaks", () => asOwner(async ({ page }) => {
  await page.getByRole("heading", { name: "Übersicht", level: 1 }).waitFor();
  assert.equal(await page.locator("html").getAttribute("lang"), "de");
  await page.goto(`${ORIGIN}/console/logs?log=01a00000-0000-7000-8000-000000000000`);
  await page.getByText("Dieses Log ist nicht hier").waitFor();
}, { locale: "de-DE" }));
