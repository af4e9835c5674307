// Answers from the cache, read by the Node SDKs: as they read those of a provider, whichever form they were kept from.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { anthropic, ask, headers, openai } from "./client.mjs";

const PARAMETERS = { type: "object", properties: { city: { type: "string" } } };
const TOOL = { type: "function", function: { name: "weather", parameters: PARAMETERS } };
const CLAUDES_TOOL = { name: "weather", input_schema: PARAMETERS };

// A namespace of its own, so that no other test's answers are met.
const keeping = (provider) => ({
  ...headers(provider),
  "x-gateway-cache": "simple",
  "x-gateway-cache-namespace": randomUUID(),
});
const chats = () => openai({ defaultHeaders: keeping("openai") });
const claudes = () => anthropic({ defaultHeaders: keeping("anthropic") });

const isHit = async (promise) => {
  const { response } = await promise.withResponse();
  assert.equal(response.headers.get("x-gateway-cache-status"), "HIT");
};
const streamedChat = (client, asked) =>
  client.chat.completions.stream({ ...asked, stream_options: { include_usage: true } }).finalChatCompletion();

for (const first of ["plain", "stream"]) {
  test(`a chat that was first asked for ${first} is the same from a stream and whole`, async () => {
    const client = chats();
    const ways = {
      plain: () => client.chat.completions.create(ask()),
      stream: () => streamedChat(client, ask()),
    };
    const told = ({ id, created, model, choices, usage }) => ({
      id,
      created,
      model,
      content: choices[0].message.content,
      reason: choices[0].finish_reason,
      tokens: usage.total_tokens,
    });
    const original = told(await ways[first]());
    assert.ok(original.content);
    await isHit(client.chat.completions.create(ask()));
    for (const way of Object.values(ways)) assert.deepEqual(told(await way()), original);
  });

  test(`responses that were first asked for ${first}`, async () => {
    const client = chats();
    const asked = { model: "gpt-4o-mini", input: "Hello" };
    const events = async () => {
      const all = [];
      for await (const event of await client.responses.create({ ...asked, stream: true })) all.push(event);
      return all;
    };
    const original = first === "plain" ? await client.responses.create(asked) : (await events()).at(-1).response;
    const text = ({ output }) => output.find((item) => item.type === "message").content[0].text;
    await isHit(client.responses.create(asked));
    assert.equal(text(await client.responses.create(asked)), text(original));
    const again = await events();
    assert.deepEqual(again.slice(0, 2).map((event) => event.type), ["response.created", "response.in_progress"]);
    const deltas = again.filter((event) => event.type === "response.output_text.delta");
    assert.equal(deltas.map((event) => event.delta).join(""), text(original));
    assert.equal(again.at(-1).type, "response.completed");
    assert.equal(again.at(-1).response.id, original.id);
  });

  test(`messages that were first asked for ${first}`, async () => {
    const client = claudes();
    const asked = { ...ask(), model: "claude-sonnet-5", max_tokens: 100 };
    const ways = {
      plain: () => client.messages.create(asked),
      stream: () => client.messages.stream(asked).finalMessage(),
    };
    const told = ({ id, content, stop_reason, usage }) => [id, content[0].text, stop_reason, usage.output_tokens];
    const original = told(await ways[first]());
    await isHit(client.messages.create(asked));
    for (const way of Object.values(ways)) assert.deepEqual(told(await way()), original);
  });
}

test("calls of tools come back from a stream", async () => {
  const client = chats();
  const asked = { ...ask(), tools: [TOOL], tool_choice: "required" };
  const whole = await client.chat.completions.create(asked);
  const again = await streamedChat(client, asked);
  const [one, other] = [whole, again].map((answer) => answer.choices[0].message.tool_calls[0]);
  assert.equal(other.id, one.id);
  assert.deepEqual(JSON.parse(other.function.arguments), { city: "Paris" });
});

test("Claude's uses of tools come back from a stream", async () => {
  const client = claudes();
  const asked = {
    ...ask(),
    model: "claude-sonnet-5",
    max_tokens: 100,
    tools: [CLAUDES_TOOL],
    tool_choice: { type: "any" },
  };
  const whole = await client.messages.create(asked);
  const again = await client.messages.stream(asked).finalMessage();
  const uses = ({ content }) => content.map(({ id, name, input }) => ({ id, name, input }));
  assert.deepEqual(uses(again), uses(whole));
});

test("completions and embeddings", async () => {
  const client = chats();
  const asked = { model: "gpt-3.5-turbo-instruct", prompt: "Hello" };
  const whole = await client.completions.create(asked);
  let text = "";
  for await (const chunk of await client.completions.create({ ...asked, stream: true })) text += chunk.choices[0]?.text ?? "";
  assert.equal(text, whole.choices[0].text);
  const vectors = { model: "text-embedding-3-small", input: ["a", "b"] };
  const first = await client.embeddings.create(vectors);
  await isHit(client.embeddings.create(vectors));
  assert.deepEqual((await client.embeddings.create(vectors)).data, first.data);
});
