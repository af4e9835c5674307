// Chat through the engine lane with OpenAI's Node SDK.

import assert from "node:assert/strict";
import { channel } from "node:diagnostics_channel";
import { test } from "node:test";
import { ask, mock, openai, textOf } from "./client.mjs";

const client = openai();

test("a chat is answered and its usage counted", async () => {
  const answer = await client.chat.completions.create(ask());
  assert.ok(answer.choices[0].message.content);
  assert.equal(answer.choices[0].finish_reason, "stop");
  assert.ok(answer.usage.total_tokens > 0);
});

test("a stream says the same as the whole answer", async () => {
  const whole = await client.chat.completions.create(ask());
  const stream = await client.chat.completions.create({ ...ask(), stream: true });
  assert.equal(await textOf(stream), whole.choices[0].message.content);
});

test("the SDK's stream helper assembles the answer and its usage", async () => {
  const stream = client.chat.completions.stream({ ...ask(), stream_options: { include_usage: true } });
  const whole = await client.chat.completions.create(ask());
  assert.equal(await stream.finalContent(), whole.choices[0].message.content);
  assert.ok((await stream.totalUsage()).completion_tokens > 0);
});

test("the first chunk arrives before the last is sent", async () => {
  const stream = await client.chat.completions.create({ ...ask({ chunks: 20, chunk_delay_ms: 20 }), stream: true });
  const reader = stream[Symbol.asyncIterator]();
  await reader.next();
  assert.ok((await mock.counts()).in_flight > 0);
  for (let step = await reader.next(); !step.done; step = await reader.next());
  await mock.until((counts) => counts.in_flight === 0);
});

test("the request id is readable beside the parsed answer", async () => {
  const { data, response, request_id } = await client.chat.completions.create(ask()).withResponse();
  assert.match(response.headers.get("x-gateway-request-id"), /^[0-9a-f-]{36}$/);
  assert.equal(response.headers.get("x-gateway-provider"), "openai");
  assert.equal(request_id, data._request_id);
});

test("twenty chats and streams at once do not mix", async () => {
  const one = async (number) => {
    const chat = ask({ reply: `answer ${number}`, latency_ms: 100 });
    if (number % 2) return (await client.chat.completions.create(chat)).choices[0].message.content;
    return textOf(await client.chat.completions.create({ ...chat, stream: true }));
  };
  const numbers = Array.from({ length: 20 }, (_, number) => number);
  assert.deepEqual(await Promise.all(numbers.map(one)), numbers.map((number) => `answer ${number}`));
});

test("one connection serves many requests, errors included", async () => {
  // Warm: connections of the tests above are kept for reuse.
  await client.chat.completions.create(ask());
  let opened = 0;
  const count = ({ connectParams }) => {
    if (client.baseURL.includes(`:${connectParams.port}`)) opened += 1;
  };
  channel("undici:client:connected").subscribe(count);
  for (let number = 0; number < 12; number += 1) {
    if (number % 3 === 0) {
      await assert.rejects(client.chat.completions.create(ask(), { headers: { "x-gateway-provider": "nobody" } }));
    } else {
      await client.chat.completions.create(ask());
    }
  }
  channel("undici:client:connected").unsubscribe(count);
  assert.equal(opened, 0);
});
