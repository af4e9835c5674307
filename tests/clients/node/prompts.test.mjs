// Prompts by the Node client of the product whose interface this is: made, changed, published, rendered and run.

import assert from "node:assert/strict";
import { before, test } from "node:test";
import { Portkey } from "portkey-ai";
import { mock } from "./client.mjs";

const { GATEWAY_BASE_URL, GATEWAY_WORKSPACE_KEY, GATEWAY_ADMIN_KEY, MOCK_PROVIDER_URL } = process.env;
const SLUG = "node-prompts";

const control = async (method, path, key, body) => {
  const headers = { "x-gateway-api-key": key, "content-type": "application/json" };
  const answer = await fetch(`${GATEWAY_BASE_URL}${path}`, { method, headers, body: body && JSON.stringify(body) });
  return answer.json();
};

// What the condition gives, once it gives something.
async function until(condition) {
  const end = Date.now() + 30_000;
  for (;;) {
    const found = await condition().catch((error) => {
      if (Date.now() > end) throw error;
    });
    if (found) return found;
    if (Date.now() > end) throw new Error("waited in vain for the proxy");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const messages = (content) => JSON.stringify([{ role: "user", content }]);
const asked = async () => JSON.parse((await mock.lastRequest()).body).messages[0].content;
const { prompts } = new Portkey({ baseURL: GATEWAY_BASE_URL, apiKey: GATEWAY_WORKSPACE_KEY });
let slug;

const run = (reference, options = {}) =>
  prompts.completions.create({ promptID: reference, variables: { name: "Ada" }, ...options });

before(async () => {
  const me = await control("GET", "/api-keys/self", GATEWAY_WORKSPACE_KEY);
  await control("POST", "/integrations", GATEWAY_ADMIN_KEY, {
    name: SLUG,
    slug: SLUG,
    ai_provider_id: "openai",
    key: "sk-stored",
    default_provider_slug: SLUG,
    workspace_id: me.workspace_id,
    configurations: { custom_host: MOCK_PROVIDER_URL },
  });
  const collections = await control("GET", "/collections", GATEWAY_WORKSPACE_KEY);
  const made = await prompts.create({
    name: "Greeting",
    collection_id: collections.data[0].id,
    string: messages("Greet {{name}}"),
    parameters: { model: "gpt-4o-mini", temperature: 0.5 },
    virtual_key: SLUG,
  });
  slug = made.slug;
  await until(() => run(slug));
});

test("a prompt is rendered and run", async () => {
  const rendered = await prompts.render({ promptID: slug, variables: { name: "Ada" }, max_tokens: 7 });
  assert.equal(rendered.data.messages[0].content, "Greet Ada");
  assert.equal(rendered.data.max_tokens, 7);
  const answer = await run(slug, { max_tokens: 7 });
  assert.ok(answer.choices[0].message.content);
  assert.equal(await asked(), "Greet Ada");
});

test("a run is streamed", async () => {
  let text = "";
  for await (const chunk of await run(slug, { stream: true })) text += chunk.choices[0]?.delta?.content ?? "";
  assert.ok(text);
});

test("a change is run by its number, and by default once it is published", async () => {
  await prompts.update(slug, { string: messages("Hello {{name}}"), parameters: { model: "gpt-4o-mini" } });
  await until(() => run(`${slug}@2`));
  assert.equal(await asked(), "Hello Ada");
  await run(slug);
  assert.equal(await asked(), "Greet Ada");
  await prompts.publish(slug, { version: 2 });
  await until(async () => {
    await run(slug);
    return (await asked()) === "Hello Ada";
  });
});
