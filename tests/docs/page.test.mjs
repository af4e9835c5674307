// The docs page in a real browser: what is shown first, what a search finds, what "try it" does, and what axe says.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";
import puppeteer from "puppeteer-core";

const { ADMIN_BASE_URL, CHROMIUM, GATEWAY_BASE_URL, GATEWAY_WORKSPACE_KEY, MOCK_PROVIDER_URL } = process.env;
const address = ADMIN_BASE_URL.replace(/\/v1$/, "/docs");
const proxyPort = new URL(GATEWAY_BASE_URL).port;
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

let browser, page;
const asked = [], complaints = [];

before(async () => {
  browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  page = await browser.newPage();
  page.on("request", (request) => asked.push(request.url()));
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
  await page.goto(address);
  await page.waitForSelector("#post_chat_completions");
});

after(async () => { await browser?.close(); });

const shown = () => page.$$eval("details:not([hidden])", (nodes) => nodes.map((node) => node.id));

async function search(text) {
  await page.$eval("#search", (input, value) => { input.value = value; input.dispatchEvent(new Event("input")); }, text);
  return shown();
}

async function open(id) {
  await page.$eval("#" + id, (node) => { node.open = true; });
  await page.waitForSelector(`#${id} > .inside`);
}

async function write(selector, value) {
  await page.$eval(selector, (node, text) => { node.value = text; node.dispatchEvent(new Event("input")); }, value);
}

test("inference comes first, and what is not built is not shown unless asked for", async () => {
  const titles = await page.$$eval("main section h2", (nodes) => nodes.map((node) => node.textContent));
  assert.deepEqual(titles.slice(0, 2), ["Your key", "inference"]);
  const built = await shown();
  assert.equal(await page.$$eval("details:not([hidden]) > summary > .todo", (nodes) => nodes.length), 0);
  await page.click("#unbuilt");
  assert.ok((await shown()).length >= built.length);
  await page.click("#unbuilt");
});

test("a search looks at words, headers and fields", async () => {
  for (const [words, found] of [
    ["fallback", "schema-ConfigStrategy"],
    ["fallback", "post_configs"],
    ["x-gateway-metadata", "post_chat_completions"],
    ["budget_percent", "schema-ConfigRetry"],
    ["max_in_flight", "post_providers"],
    ["logs.export", "get_logs_exports"],
  ]) {
    assert.ok((await search(words)).includes(found), `${words} does not find ${found}`);
  }
  assert.deepEqual(await search("nothing-is-called-so"), []);
  assert.ok((await search("")).length > 100);
});

test("a chat is tried at the proxy, whole and as a stream", async () => {
  await open("post_chat_completions");
  await write("#key", GATEWAY_WORKSPACE_KEY);
  const headers = ["x-gateway-provider: openai", `x-gateway-custom-host: ${MOCK_PROVIDER_URL}`, "authorization: Bearer sk-mock"];
  const [first, body] = await page.$$("#post_chat_completions .try textarea");
  await first.evaluate((node, text) => { node.value = text; }, headers.join("\n"));
  for (const [stream, expected] of [[false, "chat.completion"], [true, "data: [DONE]"]]) {
    const request = { model: "gpt-4o-mini", messages: [{ role: "user", content: "Hello" }], stream };
    await body.evaluate((node, text) => { node.value = text; }, JSON.stringify(request));
    await page.click("#post_chat_completions .try button");
    const told = await page.waitForFunction((text) => {
      const shown = document.querySelector("#post_chat_completions .try pre").textContent;
      return (shown.includes(text) || shown.startsWith("Nothing")) && shown;
    }, {}, expected);
    const text = await told.jsonValue();
    assert.match(text, /^200 /);
    assert.match(text, /x-gateway-request-id: /);
  }
  assert.ok(asked.some((url) => new URL(url).port === proxyPort), asked.join("\n"));
});

test("an operation of the control plane is tried here", async () => {
  await open("get_api_keys_self");
  await page.click("#get_api_keys_self .try button");
  await page.waitForFunction(() => document.querySelector("#get_api_keys_self .try pre").textContent.includes("\"object\": \"api-key\""));
});

test("forms are shown with their files, and every operation has a link", async () => {
  await open("post_audio_transcriptions");
  assert.equal(await page.$$eval("#post_audio_transcriptions input[type=file]", (nodes) => nodes.length), 1);
  const fields = await page.$eval("#post_audio_transcriptions .inside", (node) => node.textContent);
  assert.match(fields, /multipart\/form-data/);
  const link = await page.$eval("#post_audio_transcriptions .inside a", (node) => node.getAttribute("href"));
  assert.equal(link, "#post_audio_transcriptions");
  await page.evaluate(() => { location.hash = "#schema-ConfigObject"; });
  await page.waitForSelector("#schema-ConfigObject[open] > .inside");
});

test("no text has a backtick, and everything came from the two services", async () => {
  for (const id of ["post_configs", "post_explain", "get_logs", "post_policies_usage_limits"]) await open(id);
  assert.equal(await page.$eval("main", (node) => [...node.querySelectorAll("p, td, summary")].filter((one) => one.textContent.includes("`")).length), 0);
  const own = new Set([new URL(address).origin, `http://localhost:${proxyPort}`]);
  assert.deepEqual(asked.filter((url) => !own.has(new URL(url).origin)), []);
  assert.deepEqual(complaints, []);
});

test("axe finds nothing serious, in light and in dark", async () => {
  await page.evaluate(axe);
  for (const value of ["light", "dark"]) {
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value }]);
    const { violations } = await page.evaluate(() => window.axe.run());
    const serious = violations.filter((one) => ["serious", "critical"].includes(one.impact));
    assert.deepEqual(serious.map((one) => [one.id, one.nodes.slice(0, 3).map((node) => node.html.slice(0, 200))]), []);
  }
});
