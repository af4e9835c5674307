// The models a workspace can ask for, as OpenAI's SDK sees them with a gateway key alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import { openai } from "./client.mjs";

const { GATEWAY_ADMIN_KEY, GATEWAY_BASE_URL, GATEWAY_WORKSPACE_KEY, MOCK_PROVIDER_URL } = process.env;
const slug = "node-models";

const administer = async (method, path, body) => {
  const headers = { "x-gateway-api-key": GATEWAY_ADMIN_KEY, "content-type": "application/json" };
  const answer = await fetch(`${GATEWAY_BASE_URL}${path}`, { method, headers, body: body && JSON.stringify(body) });
  assert.equal(answer.status, 200, await answer.clone().text());
  return answer.json();
};

const names = async (client) => {
  const found = [];
  for await (const model of client.models.list()) found.push(model.id);
  return found;
};

test("what the catalogue lists can be found and asked", async () => {
  const workspace = (await administer("GET", "/workspaces")).data[0].id;
  await administer("POST", "/integrations", {
    name: slug, slug, ai_provider_id: "openai", key: "sk-mock", workspace_id: workspace,
    default_provider_slug: slug, configurations: { custom_host: MOCK_PROVIDER_URL },
  });
  try {
    const client = openai({ apiKey: GATEWAY_WORKSPACE_KEY, defaultHeaders: {} });
    const name = `@${slug}/gpt-4o-mini`;
    const end = Date.now() + 30_000;
    while (!(await names(client)).includes(name)) {
      assert.ok(Date.now() < end, "waited in vain for the provider's models");
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    assert.equal((await client.models.retrieve(name)).id, name);
    const answer = await client.chat.completions.create({ model: name, messages: [{ role: "user", content: "Hello" }] });
    assert.ok(answer.choices[0].message.content);
  } finally {
    await administer("DELETE", `/integrations/${slug}`);
  }
});
