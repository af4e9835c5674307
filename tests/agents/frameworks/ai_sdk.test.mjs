// The AI SDK as it is today, with providers of its own for three vendors: OpenAI's by responses, and by chats where asked.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { before, test } from "node:test";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const base = process.env.GATEWAY_BASE_URL;
const mock = process.env.MOCK_PROVIDER_URL.replace(/\/v1$/, "");
const random = () => randomUUID().replaceAll("-", "");
const city = z.object({ name: z.string(), people: z.number().int() });
const models = {};

async function ask(url, body, key) {
  const headers = { "content-type": "application/json", ...(key && { "x-gateway-api-key": key }) };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(answer.status, 200, `${url}: ${await answer.clone().text()}`);
  return answer.json();
}

const administer = (path, body) => ask(base + path, body, process.env.GATEWAY_ADMIN_KEY);

async function untilListed(slug, key) {
  for (const end = Date.now() + 30_000; ; await new Promise((go) => setTimeout(go, 100))) {
    const answer = await fetch(`${base}/models?provider=${slug}&limit=1`, { headers: { "x-gateway-api-key": key } });
    if ((await answer.json()).total > 0) return;
    assert.ok(Date.now() < end, `models of ${slug} are never listed`);
  }
}

before(async () => {
  const workspace = (await administer("/workspaces", { name: `AI SDK ${random().slice(0, 6)}` })).id;
  const scopes = ["completions.write", "models.list"];
  const { key } = await administer("/api-keys/workspace/service", { name: "AI SDK", workspace_id: workspace, scopes });
  for (const vendor of ["openai", "anthropic", "google"]) {
    const slug = `ai-sdk-${vendor}-${random().slice(0, 6)}`;
    await administer("/integrations", {
      name: slug, slug, ai_provider_id: vendor, key: "sk-stored", default_provider_slug: slug, workspace_id: workspace,
      configurations: { custom_host: process.env.MOCK_PROVIDER_URL },
    });
    await untilListed(slug, key);
  }
  const openai = createOpenAI({ baseURL: base, apiKey: key });
  models.openai = openai("gpt-5.4-mini");
  models.chat = openai.chat("gpt-5.4-mini");
  models.anthropic = createAnthropic({ baseURL: base, apiKey: key })("claude-sonnet-4-5");
  models.google = createGoogleGenerativeAI({ baseURL: `${base.replace(/\/v1$/, "")}/v1beta`, apiKey: key })("gemini-2.5-flash");
});

function turn() {
  const [word, done, number] = [`task${random()}`, `done${random()}`, random()];
  const will = (...entries) => ask(`${mock}/__mock/script`, entries.map((entry) => ({ contains: [word], ...entry })));
  return { word, done, found: `found${number}`, will, asks: `Help me. The word of this task is ${word}.` };
}

for (const vendor of ["openai", "chat", "anthropic", "google"]) {
  test(`streams: ${vendor}`, async () => {
    const { done, will, asks } = turn();
    await will({ reply: done });
    let told = "";
    for await (const piece of streamText({ model: models[vendor], prompt: asks }).textStream) told += piece;
    assert.equal(told, done);
  });

  test(`calls tools: ${vendor}`, async () => {
    const { word, done, found, will, asks } = turn();
    await will({ contains: [word, found], reply: done }, { call: { name: "look_up", arguments: { what: word } } });
    const look_up = tool({
      description: "Look something up.",
      inputSchema: z.object({ what: z.string() }),
      execute: async ({ what }) => (what === word ? found : "nothing"),
    });
    const streamed = streamText({ model: models[vendor], prompt: asks, tools: { look_up }, stopWhen: stepCountIs(3) });
    assert.equal(await streamed.text, done);
  });

  test(`answers in a structure: ${vendor}`, async () => {
    const { output } = await generateText({ model: models[vendor], prompt: turn().asks, output: Output.object({ schema: city }) });
    city.parse(output);
  });
}
