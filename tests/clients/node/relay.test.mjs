// The relay lane: endpoints the gateway does not look into, for OpenAI's SDK and for Anthropic's.

import assert from "node:assert/strict";
import { test } from "node:test";
import Anthropic from "@anthropic-ai/sdk";
import { anthropic, ask, headers, mock, openai } from "./client.mjs";

const client = openai();
const claude = anthropic();
const chat = (fault) => ({ ...ask(fault), model: "claude-sonnet-5", max_tokens: 100 });

test("models are listed", async () => {
  const names = [];
  for await (const model of client.models.list()) names.push(model.id);
  assert.ok(names.includes("gpt-4o-mini"));
});

test("embeddings are numbers, one list for each input", async () => {
  const answer = await client.embeddings.create({ model: "text-embedding-3-small", input: ["one", "two"], dimensions: 8 });
  assert.deepEqual(answer.data.map((found) => found.embedding.length), [8, 8]);
});

test("a message is answered, whole and as a stream", async () => {
  const whole = await claude.messages.create(chat());
  assert.ok(whole.content[0].text);
  const stream = claude.messages.stream(chat());
  assert.equal(await stream.finalText(), whole.content[0].text);
});

test("the provider's errors keep their class in Anthropic's SDK", async () => {
  for (const [status, kind] of [[400, Anthropic.BadRequestError], [429, Anthropic.RateLimitError], [529, Anthropic.InternalServerError]]) {
    await assert.rejects(claude.messages.create(chat({ status })), (error) => error instanceof kind && error.status === status);
  }
});

test("the gateway's refusal speaks Anthropic to Anthropic's SDK", async () => {
  const stranger = anthropic({ defaultHeaders: headers("anthropic", "pk_unknown") });
  await assert.rejects(stranger.messages.create(chat()), (error) =>
    error instanceof Anthropic.AuthenticationError && error.error.error.type === "authentication_error");
});

test("a message stream left in the middle is cancelled upstream", async () => {
  const before = (await mock.counts()).cancelled;
  const stream = claude.messages.stream(chat({ chunks: 2000, chunk_delay_ms: 30 }));
  for await (const event of stream) if (event.type === "content_block_delta") break;
  await mock.until((counts) => counts.cancelled === before + 1);
});
