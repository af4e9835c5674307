// Prompts by the Node client of the product whose interface this is: made, changed, published, labelled, rendered and run, with
// the partials in them.

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
const { prompts, labels } = new Portkey({ baseURL: GATEWAY_BASE_URL, apiKey: GATEWAY_WORKSPACE_KEY });
let slug;
let collection;

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
  collection = collections.data[0].id;
  slug = await make("Greet {{name}}");
  await until(() => run(slug));
});

async function make(content) {
  const made = await prompts.create({
    name: "Greeting",
    collection_id: collection,
    string: messages(content),
    parameters: { model: "gpt-4o-mini", temperature: 0.5 },
    virtual_key: SLUG,
  });
  assert.ok(made.id && made.version_id);
  return made.slug;
}

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

test("a patch changes what it names and keeps the rest", async () => {
  const own = await make("Greet {{name}}");
  await prompts.update(own, { patch: true, string: messages("Welcome {{name}}") });
  const version = await prompts.retrieve(`${own}@latest`);
  assert.equal(version.prompt_version, 2);
  assert.deepEqual([version.parameters.temperature, version.virtual_key], [0.5, SLUG]);
  await until(async () => {
    await run(`${own}@latest`);
    return (await asked()) === "Welcome Ada";
  });
  await prompts.update(own, { name: "Renamed" });
  const versions = await prompts.versions.list(own);
  assert.deepEqual(versions.data.map((one) => one.prompt_version), [2, 1]);
  assert.equal((await prompts.versions.retrieve(own, versions.data[1].id)).string, messages("Greet {{name}}"));
  const found = await prompts.list({ search: "Renamed" });
  assert.ok(found.data.some((one) => one.slug === own));
  await prompts.delete(own);
  await until(() => run(own).then(() => false, (error) => error.status === 404));
});

test("labels are made, moved, changed and taken away", async () => {
  const own = await make("One {{name}}");
  await prompts.update(own, { patch: true, string: messages("Two {{name}}") });
  const made = await labels.create({ name: `node-${Date.now()}`, description: "by a test", color_code: "#123456" });
  const label = await labels.retrieve(made.id);
  assert.equal(label.description, "by a test");
  await labels.update(made.id, { description: "changed" });
  assert.ok((await labels.list({ page_size: 100 })).data.some((one) => one.id === made.id && one.description === "changed"));
  for (const [version, expected] of [["1", "One Ada"], ["2", "Two Ada"]]) {
    await prompts.versions.update(own, version, { label_id: made.id });
    await until(async () => {
      await run(`${own}@${label.name}`);
      return (await asked()) === expected;
    });
  }
  await labels.delete(made.id);
  await until(() => run(`${own}@${label.name}`).then(() => false, (error) => error.status === 404));
});

test("partials are made, put in, changed and published", async () => {
  const partial = await prompts.partials.create({ name: "Tone", string: "kindly" });
  const own = await make(`Greet {{name}} {{>${partial.slug}}} {{>${partial.slug}@2}}`);
  await prompts.partials.update(partial.slug, { string: "warmly", description: "warmer" });
  await until(() => run(own));
  assert.equal(await asked(), "Greet Ada kindly warmly");
  assert.equal((await prompts.partials.retrieve(partial.slug)).string, "kindly");
  const versions = await prompts.partials.versions.list(partial.slug);
  assert.deepEqual(versions.data.map((one) => [one.version, one.description]), [[2, "warmer"], [1, null]]);
  await prompts.partials.publish(partial.slug, { version: 2 });
  await until(async () => {
    await run(own);
    return (await asked()) === "Greet Ada warmly warmly";
  });
  assert.ok((await prompts.partials.list()).data.some((one) => one.slug === partial.slug));
  await prompts.delete(own);
  await prompts.partials.delete(partial.slug);
});
