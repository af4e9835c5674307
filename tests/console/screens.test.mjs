// Every screen, light and dark, wide and narrow, full and empty: what axe finds, whether it is wider than its window, and what a
// keyboard alone reaches. Then the same screens with the worst that strangers can put into logs and names.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { inspect, isTooWide, launch, ORIGIN, OWNER, settled, signIn, violations, visit } from "./console.mjs";
import { ask, calls, catalogue, until } from "./seed.mjs";

const suffix = `-s${Date.now().toString(36)}`;
const WIDE = { width: 1440, height: 900 };
const NARROW = { width: 390, height: 844 };
let browser, screens;

before(async () => {
  browser = await launch();
  const seeded = await catalogue(suffix);
  await calls(seeded, 30);
  const log = (await ask("GET", "/logs?page_size=1&is_success=false")).json.data[0].id;
  const { json: empty } = await ask("POST", "/workspaces", { name: `empty${suffix}` });
  const nowhere = `ws=${(await ask("GET", `/workspaces/${empty.id ?? empty.slug}`)).json.slug}`;
  screens = [
    "", "/logs", `/logs?log=${log}`, `/logs/${log}`, "/logs?model=none", "/traces/checkout-1", "/keys", "/keys?new=1", `/keys?key=${seeded.keys.checkout.id}`,
    "/providers", "/providers?new=1", "/budgets", "/me", "/nothing", `?${nowhere}`, `/logs?${nowhere}`, `/keys?${nowhere}`, `/providers?${nowhere}`, `/budgets?${nowhere}`, "?ws=no-such-workspace",
  ];
});

after(async () => { await browser?.close(); });

test("axe finds nothing before somebody signs in", async () => {
  for (const options of [{ colorScheme: "light", viewport: WIDE }, { colorScheme: "dark", viewport: NARROW }]) {
    const { page, context, complaints } = await visit(browser, { ...options, reducedMotion: "reduce" });
    for (const path of ["/login", "/invite"]) {
      await settled(page, path);
      assert.deepEqual(await violations(page), [], path);
      assert.equal(await isTooWide(page), false, `${path} is too wide`);
    }
    assert.deepEqual(complaints, []);
    await context.close();
  }
});

test("axe finds nothing on any screen, in both themes and widths", () => inspect(browser, OWNER, screens));

test("a keyboard alone opens a log and closes it, and the focus is never lost", async () => {
  const { page, context } = await visit(browser);
  await signIn(page);
  const focus = () => page.evaluate(() => document.activeElement !== document.body);
  await page.keyboard.press("g");
  await page.keyboard.press("l");
  await page.getByRole("heading", { name: "Logs", level: 1 }).waitFor();
  await page.locator(".row-link").first().waitFor();
  await page.keyboard.press("j");
  assert.ok(await focus());
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Why" }).waitFor();
  assert.ok(await focus());
  await page.keyboard.press("Escape");
  await until("the panel is closed", async () => (await page.locator(".side").count()) === 0);
  assert.ok(await focus());
  await page.keyboard.press("Tab");
  assert.ok(await focus());
  await context.close();
});

const HOSTILE = ['<img src=x onerror=alert(1)>', '"><script>alert(1)</script>', "javascript:alert(1)", "{{7*7}}${7*7}", "\u202eevil\u202c\u200b", "x".repeat(200), "<svg/onload=alert(1)>", "'; DROP TABLE logs; --", "\ud83e\udd80漢字العربية"];

/** A header is bytes: what is beyond them is escaped, which JSON reads alike. */
const ascii = (json) => json.replace(/[^\x20-\x7e]/g, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`);

test("what strangers write is text on every screen", async () => {
  const { json: spaces } = await ask("GET", "/workspaces");
  const workspace_id = spaces.data[0].id;
  for (const [index, text] of HOSTILE.entries()) {
    const make = (name) => ask("POST", "/api-keys/workspace/service", { name, workspace_id, scopes: ["completions.write", "models.list"], usage_limits: { type: "cost", credit_limit: 1 + index } });
    let { status, json: key } = await make(text);
    // Some names the interface refuses by itself.
    if (status !== 200) ({ status, json: key } = await make(`hostile ${index}`));
    assert.equal(status, 200, JSON.stringify(key));
    await until("the proxy knows the key", async () => (await ask("GET", "/models", undefined, { "x-gateway-api-key": key.key })).status === 200);
    const mock = { "x-gateway-api-key": key.key, "x-gateway-provider": "openai", "x-gateway-custom-host": process.env.MOCK_PROVIDER_URL, authorization: "Bearer sk-mock" };
    const plain = text.replace(/[^\x20-\x7e]/g, "?");
    await ask(
      "POST", "/chat/completions",
      { model: text, messages: [{ role: "system", content: text }, { role: "user", content: [{ type: "text", text: text.repeat(50) }, { type: "image_url", image_url: { url: "data:image/png;base64,AAAA" } }] }], tools: [{ type: "function", function: { name: "f", description: text } }] },
      { ...mock, "x-gateway-metadata": ascii(JSON.stringify({ _user: text.slice(0, 128), [plain.slice(0, 100)]: plain.slice(0, 128) })), "x-gateway-trace-id": `hostile${suffix}`, "user-agent": plain },
    );
  }
  await until("hostile logs", async () => (await ask("GET", `/logs?trace_id=hostile${suffix}`)).json.total >= HOSTILE.length);
  const { page, context, complaints } = await visit(browser, { viewport: NARROW });
  await signIn(page);
  const { json } = await ask("GET", `/logs?trace_id=hostile${suffix}&page_size=50`);
  const paths = ["", "/logs", "/keys", "/budgets", `/traces/hostile${suffix}`, ...json.data.map(({ id }) => `/logs/${id}`), `/logs?user=${encodeURIComponent(HOSTILE[0])}`, `/traces/${encodeURIComponent(HOSTILE[1])}`, `/logs?model=${encodeURIComponent(HOSTILE[4])}`];
  for (const path of paths) {
    await settled(page, path);
    assert.equal(await isTooWide(page), false, `${path} is too wide`);
    for (const tab of path.startsWith("/logs/") ? ["Facts", "Raw"] : []) {
      await page.getByRole("tab", { name: tab }).click();
      assert.equal(await isTooWide(page), false, `${path} ${tab}`);
    }
    assert.equal(await page.locator("main img, main script, main iframe").count(), 0, path);
    const shown = await page.locator("body").innerText();
    assert.ok(!/[\u202a-\u202e\u200b]/.test(shown), `${path}: a character that hides or turns text is shown as it is`);
  }
  assert.deepEqual(complaints, []);
  await context.close();
});

test("the skip link leads to the content, and the address stays", async () => {
  const { page, context } = await visit(browser);
  await signIn(page);
  await page.locator(".skip").focus();
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "content");
  assert.equal(page.url(), `${ORIGIN}/console`);
  await context.close();
});

test("a part that fails takes only itself away", async () => {
  const { page, context } = await visit(browser);
  await signIn(page);
  await page.route("**/v1/analytics/budgets?**", (route) => route.fulfill({ json: { data: [{ id: 1 }], total: 1 } }));
  await page.goto(`${ORIGIN}/console/budgets`);
  await page.getByText("This part could not be shown").waitFor();
  await page.getByRole("link", { name: "Logs" }).click();
  await page.getByRole("heading", { name: "Logs", level: 1 }).waitFor();
  await context.close();
});

test("an interface that is away is said where it is missed, and coming back needs no reload", async () => {
  const { page, context } = await visit(browser);
  await signIn(page);
  await page.goto(`${ORIGIN}/console/keys`);
  await page.locator("tbody tr").first().waitFor();
  await page.route("**/v1/providers?**", (route) => route.abort());
  await page.getByRole("link", { name: "Providers" }).click();
  await page.getByText("The gateway does not answer").waitFor();
  await page.unroute("**/v1/providers?**");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.locator("tbody tr").first().waitFor();
  for (const [status, message, text] of [
    [429, "so it is", "Too much is asked at once"], [503, "so it is", "cannot answer this now"], [403, "so it is", "You may not see this"],
    [503, "The database did not finish (DATABASE_STATEMENT_TIMEOUT_MS)", "too much to look through"],
  ]) {
    await page.route("**/v1/logs?**", (route) => route.fulfill({ status, json: { message, error: { type: "x" }, request_id: "r-1" } }));
    await page.goto(`${ORIGIN}/console/logs`);
    await page.getByText(text).waitFor();
    await page.getByText(message).waitFor();
    await page.unroute("**/v1/logs?**");
  }
  await context.close();
});
