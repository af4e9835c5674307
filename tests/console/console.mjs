// A browser with somebody signed in, and what every test watches: clicks, complaints, requests to elsewhere.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { until } from "./seed.mjs";

const { CHROMIUM, DATABASE_URL, GATEWAY_ADMIN, GATEWAY_BASE_URL } = process.env;

/** The gateway's own address as people type it: sessions are for that one alone. */
export const ORIGIN = `http://localhost:${new URL(GATEWAY_BASE_URL).port}`;
export const OWNER = "owner@localhost";

const AXE = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

export const launch = () =>
  chromium.launch({
    executablePath: CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });

/** A one-time link, as the operator's command prints it. */
export function loginLink(email = OWNER) {
  const printed = execFileSync(GATEWAY_ADMIN, ["login-link", "--email", email], { env: { ...process.env, DATABASE_URL, PUBLIC_URL: ORIGIN }, encoding: "utf8" });
  return printed.match(/http\S+#token=\S+/)[0];
}

/** A page of a browser of its own. `complaints` is empty at the end of every test. */
export async function visit(browser, options = {}) {
  const context = await browser.newContext({ locale: "en-GB", viewport: { width: 1440, height: 900 }, permissions: ["clipboard-read", "clipboard-write"], ...options });
  const page = await context.newPage();
  const complaints = [];
  const clicks = { number: 0 };
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => complaints.push(`a dialog of the browser: ${dialog.message()}`));
  page.on("console", (message) => {
    // A refusal is written by the browser too; what the page did with it is looked at where it is expected.
    if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) complaints.push(message.text());
  });
  page.on("request", (request) => {
    const url = new URL(request.url());
    if (url.origin !== ORIGIN && url.protocol !== "data:") complaints.push(`a request to ${url.origin}`);
  });
  await page.exposeFunction("countClick", () => (clicks.number += 1));
  await page.addInitScript(() => {
    addEventListener("click", (event) => event.isTrusted && event.detail > 0 && window.countClick(), true);
    document.addEventListener("securitypolicyviolation", (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
  });
  return { context, page, complaints, clicks };
}

export async function signIn(page, email = OWNER) {
  await page.goto(loginLink(email));
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(`${ORIGIN}/console`);
  await page.getByRole("heading", { level: 1 }).waitFor();
}

/** Cookies by the address of who signed in before. */
const sessions = new Map();

/** As `signIn`, but with the session of before where there is one: signing in is not what most tests are about. */
async function enter(page, email) {
  if (sessions.has(email)) {
    await page.context().addCookies(sessions.get(email));
    await page.goto(`${ORIGIN}/console`);
    await page.getByRole("heading", { level: 1 }).waitFor();
    if (new URL(page.url()).pathname === "/console") return;
    await page.context().clearCookies();
  }
  await signIn(page, email);
  sessions.set(email, await page.context().cookies());
}

/** Every violation that axe finds, of any impact. */
export async function violations(page) {
  // The policy of the page forbids foreign scripts; this one comes by the debugger's own way.
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ["violations"] }));
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ target, failureSummary }) => `${target} ${failureSummary}`).slice(0, 3).join(" | ")}`);
}

/** Whether the page can be moved sideways. */
export const isTooWide = (page) => page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

/** Opens a screen and waits until nothing of it is loading. */
export async function settled(page, path) {
  await page.goto(`${ORIGIN}/console${path}`);
  await page.getByRole("heading", { level: 1 }).waitFor();
  await until(`${path} is loaded`, async () => (await page.locator('.lines, [aria-busy="true"]').count()) === 0);
}

/** Looks at screens as two people do: one at a wide and light window, one at a narrow and dark one. */
export async function inspect(browser, email, paths) {
  for (const options of [{ colorScheme: "light", viewport: { width: 1440, height: 900 } }, { colorScheme: "dark", viewport: { width: 390, height: 844 } }]) {
    const { page, context, complaints } = await visit(browser, { ...options, reducedMotion: "reduce" });
    await enter(page, email);
    for (const path of paths) {
      await settled(page, path);
      assert.deepEqual(await violations(page), [], `${path}, ${options.colorScheme}`);
      assert.equal(await isTooWide(page), false, `${path} is too wide`);
      assert.equal(await page.locator("main img, main script, main iframe").count(), 0, path);
    }
    assert.deepEqual(complaints, []);
    await context.close();
  }
}

/** Does something as somebody, in a browser of their own, where nothing may complain and nothing be refused. */
export async function acting(browser, email, work, options) {
  const visitor = await visit(browser, options);
  const refused = [];
  visitor.page.on("response", (answer) => answer.status() === 403 && refused.push(answer.url()));
  await enter(visitor.page, email);
  visitor.clicks.number = 0;
  await work(visitor);
  assert.deepEqual(visitor.complaints, []);
  assert.deepEqual(refused, []);
  await visitor.context.close();
}
