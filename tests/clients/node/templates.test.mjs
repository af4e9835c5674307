// Prompts rendered by the gateway against the public Mustache specification and `mustache.js`, which is asked not to
// escape for HTML: the same templates and values must become the same text, in a message and as a plain text. What was
// rendered is then sent as a chat completion, as it is.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, test } from "node:test";
import Mustache from "mustache";
import { headers, mock } from "./client.mjs";
import { generated, specification } from "./mustache_cases.mjs";

const { GATEWAY_BASE_URL } = process.env;
// Another seed tries other templates: MUSTACHE_SEED=7 MUSTACHE_CASES=1000.
const seed = Number(process.env.MUSTACHE_SEED ?? 1);
const count = Number(process.env.MUSTACHE_CASES ?? 150);
const made = [];

const call = async (method, path, body) => {
  const sent = { ...headers("openai"), authorization: "Bearer sk-mock", "content-type": "application/json" };
  const answer = await fetch(`${GATEWAY_BASE_URL}${path}`, { method, headers: sent, body: body && JSON.stringify(body) });
  assert.equal(answer.status, 200, `${method} ${path} ${JSON.stringify(body)}: ${await answer.clone().text()}`);
  return answer.json();
};

const make = async (path, body) => {
  const { slug } = await call("POST", path, body);
  made.push(`${path}/${slug}`);
  return slug;
};

// Prompts before the partials that they name.
after(async () => {
  for (const path of made.reverse()) await call("DELETE", path);
});

/** Partials are named by their slugs, in all templates of the case. */
async function stored({ template, partials }) {
  const slugs = {};
  const named = (text) =>
    Object.entries(slugs).reduce((all, [name, slug]) => all.replaceAll(new RegExp(`>(\\s*)${name}\\b`, "g"), `>$1${slug}`), text);
  const bySlug = {};
  for (const [name, text] of Object.entries(partials)) {
    const string = named(text);
    slugs[name] = await make("/prompts/partials", { name, string });
    bySlug[slugs[name]] = string;
  }
  return { template: named(template), partials: bySlug };
}

const prompt = (string) => make("/prompts", { name: "mustache", string, parameters: { model: "gpt-4o-mini" }, virtual_key: "none" });
const render = async (slug, variables) => (await call("POST", `/prompts/${slug}/render`, { variables })).data;

async function inMessage({ template, data }) {
  const slug = await prompt(JSON.stringify([{ role: "user", content: template }]));
  return render(slug, data);
}

test("the specification's own tests hold for what we support of it", async () => {
  const cases = specification();
  assert.ok(cases.length > 100, `${cases.length} cases`);
  for (const one of cases) {
    const { template } = await stored(one);
    // Values of a call are an object; the tests of `{{.}}` at the root have none, and are ours alone.
    if (typeof one.data !== "object" || Array.isArray(one.data)) continue;
    const data = await inMessage({ template, data: one.data });
    assert.equal(data.messages[0].content, one.expected, one.name);
  }
});

test("generated templates become what mustache.js makes of them", async () => {
  for (const one of generated(seed, count)) {
    const { template, partials } = await stored(one);
    const expected = Mustache.render(template, one.data, partials, { escape: String });
    const data = await inMessage({ template, data: one.data });
    assert.equal(data.messages[0].content, expected, `${one.name}: ${JSON.stringify(template)}`);
    // As a plain text, unless it could be meant as messages.
    if (!/^\s*[[{]/.test(template) && template !== "") {
      const plain = await render(await prompt(template), one.data);
      assert.equal(plain.prompt, expected, `${one.name}, as a text: ${JSON.stringify(template)}`);
    }
  }
});

test("what was rendered is taken by chat completions as it is", async () => {
  for (const one of generated(seed + 1, 30)) {
    const { template } = await stored(one);
    const data = await inMessage({ template, data: one.data });
    await call("POST", "/chat/completions", data);
    const { body_sha256 } = await mock.lastRequest();
    const sent = createHash("sha256").update(JSON.stringify(data)).digest("hex");
    assert.equal(body_sha256, sent, one.name);
  }
});
