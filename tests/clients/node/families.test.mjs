// Every family of OpenAI's SDK for Node, and what Anthropic's offers beyond a plain message.

import assert from "node:assert/strict";
import { test } from "node:test";
import { toFile } from "openai";
import { anthropic, ask, mock, openai } from "./client.mjs";

const client = openai();
const claude = anthropic();
const sound = () => toFile(Buffer.alloc(30_000, 7), "a.wav");
const picture = () => toFile(Buffer.from("\x89PNG"), "a.png", { type: "image/png" });
const tool = { name: "weather", parameters: { type: "object", properties: { city: { type: "string" } } } };

const all = async (pages) => {
  const found = [];
  for await (const one of pages) found.push(one);
  return found;
};

test("a tool is called", async () => {
  const answer = await client.chat.completions.create({
    ...ask(), tools: [{ type: "function", function: tool }], tool_choice: "required",
  });
  assert.equal(answer.choices[0].message.tool_calls[0].function.name, "weather");
});

test("structured output is parsed", async () => {
  const answer = await client.chat.completions.parse({
    ...ask({ reply: '{"city":"Paris"}' }),
    response_format: { type: "json_schema", json_schema: { name: "weather", schema: tool.parameters } },
  });
  assert.equal(JSON.parse(answer.choices[0].message.content).city, "Paris");
});

test("completions", async () => {
  const asked = { model: "gpt-3.5-turbo-instruct", prompt: "Hello" };
  const whole = await client.completions.create(asked);
  let text = "";
  for await (const chunk of await client.completions.create({ ...asked, stream: true })) text += chunk.choices[0].text;
  assert.equal(text, whole.choices[0].text);
});

test("responses, whole, as a stream and stored", async () => {
  const asked = { model: "gpt-4o", input: "Hello" };
  const whole = await client.responses.create(asked);
  assert.equal(whole.status, "completed");
  const events = await all(await client.responses.create({ ...asked, stream: true }));
  assert.equal(events.at(-1).type, "response.completed");
  const text = events.filter((event) => event.type === "response.output_text.delta").map((event) => event.delta).join("");
  assert.equal(text, whole.output_text);
  assert.equal((await client.responses.retrieve("resp_1")).id, "resp_1");
  assert.equal((await all(client.responses.inputItems.list("resp_1"))).length, 1);
  await client.responses.delete("resp_1");
});

test("images", async () => {
  const made = await client.images.generate({ model: "gpt-image-1", prompt: "a cat" });
  const edited = await client.images.edit({ model: "gpt-image-1", prompt: "a hat", image: await picture() });
  const varied = await client.images.createVariation({ model: "dall-e-2", image: await picture() });
  for (const answer of [made, edited, varied]) assert.ok(answer.data[0].b64_json);
});

test("speech, transcriptions and translations", async () => {
  const spoken = await client.audio.speech.create({ model: "tts-1", voice: "alloy", input: "Hello" });
  assert.equal((await spoken.arrayBuffer()).byteLength, 40_000);
  const heard = await client.audio.transcriptions.create({ model: "whisper-1", file: await sound() });
  assert.ok(heard.text);
  const events = await all(await client.audio.transcriptions.create({ model: "gpt-4o-transcribe", file: await sound(), stream: true }));
  assert.equal(events.at(-1).text, heard.text);
  assert.equal((await client.audio.translations.create({ model: "whisper-1", file: await sound() })).text, heard.text);
});

test("moderations", async () => {
  const { results } = await client.moderations.create({ input: ["Hello", "violence"] });
  assert.deepEqual(results.map((result) => result.flagged), [false, true]);
});

test("files", async () => {
  const made = await client.files.create({ file: await toFile(Buffer.from("{}\n"), "rows.jsonl"), purpose: "batch" });
  assert.equal((await client.files.retrieve(made.id)).id, made.id);
  assert.ok((await all(client.files.list())).every((file) => file.object === "file"));
  assert.equal(await (await client.files.content(made.id)).text(), "{}\n");
  assert.ok((await client.files.delete(made.id)).deleted);
});

test("batches", async () => {
  const made = await client.batches.create({ input_file_id: "file-1", endpoint: "/v1/chat/completions", completion_window: "24h" });
  assert.equal((await client.batches.retrieve(made.id)).id, made.id);
  assert.equal((await client.batches.cancel(made.id)).status, "cancelled");
  assert.ok((await all(client.batches.list())).every((batch) => batch.object === "batch"));
});

test("fine-tuning", async () => {
  const { jobs } = client.fineTuning;
  const made = await jobs.create({ model: "gpt-4o-mini", training_file: "file-1" });
  assert.equal((await all(jobs.listEvents(made.id))).length, 1);
  assert.equal((await jobs.cancel(made.id)).status, "cancelled");
});

test("vector stores, assistants and threads", async () => {
  assert.equal((await client.vectorStores.create({ name: "notes" })).name, "notes");
  assert.equal((await client.beta.assistants.create({ model: "gpt-4o" })).object, "assistant");
  assert.equal((await mock.lastRequest()).headers["openai-beta"], "assistants=v2");
  const thread = await client.beta.threads.create();
  assert.equal((await client.beta.threads.messages.create(thread.id, { role: "user", content: "Hello" })).object, "thread.message");
});

test("a tool is used by Anthropic's SDK, and tokens are counted", async () => {
  const chat = { ...ask(), model: "claude-sonnet-5" };
  const tools = [{ name: "weather", input_schema: tool.parameters }];
  const answer = await claude.messages.create({ ...chat, max_tokens: 100, tools, tool_choice: { type: "any" } });
  assert.deepEqual([answer.stop_reason, answer.content[0].input], ["tool_use", { city: "Paris" }]);
  assert.ok((await claude.messages.countTokens(chat)).input_tokens > 0);
});
