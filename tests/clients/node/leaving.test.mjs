// Time running out, and clients that leave: the provider must not go on working for nobody.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { ask, mock, openai } from "./client.mjs";

const client = openai();
const hour = { latency_ms: 3_600_000 };
const long = { chunks: 2000, chunk_delay_ms: 30 };

async function cancels(leave) {
  const before = (await mock.counts()).cancelled;
  await leave();
  await mock.until((counts) => counts.cancelled === before + 1);
}

// On a busy machine a short time is over before the provider is even asked, which proves nothing: then a longer one
// is tried. A provider that was not told would go on for an hour.
async function runningOutCancels(runOut) {
  const before = (await mock.counts()).cancelled;
  for (const limit of [300, 2_000, 10_000]) {
    await runOut(limit);
    if ((await mock.until((counts) => counts.in_flight === 0)).cancelled > before) return;
  }
  assert.fail("the provider was never asked");
}

test("the client's own timeout cancels the provider", () =>
  runningOutCancels((timeout) =>
    assert.rejects(client.chat.completions.create(ask(hour), { timeout }), OpenAI.APIConnectionTimeoutError)));

test("the gateway's timeout is 408 and cancels the provider", () =>
  runningOutCancels((limit) =>
    assert.rejects(
      client.chat.completions.create(ask(hour), { headers: { "x-gateway-request-timeout": `${limit}` } }),
      (error) => error instanceof OpenAI.APIError && error.status === 408 && error.code === "timeout",
    )));

test("an aborted request is cancelled upstream before its answer begins", () =>
  cancels(async () => {
    const controller = new AbortController();
    const answer = client.chat.completions.create(ask(hour), { signal: controller.signal });
    const rejected = assert.rejects(answer, OpenAI.APIUserAbortError);
    await mock.until((counts) => counts.in_flight === 1);
    controller.abort();
    await rejected;
  }));

test("a stream aborted in the middle is cancelled upstream", () =>
  cancels(async () => {
    const stream = await client.chat.completions.create({ ...ask(long), stream: true });
    let seen = 0;
    for await (const _ of stream) if (++seen === 3) stream.controller.abort();
    assert.ok(seen < 2000);
  }));

test("a stream left by break is cancelled upstream", () =>
  cancels(async () => {
    for await (const _ of await client.chat.completions.create({ ...ask(long), stream: true })) break;
  }));

test("the client can go on after leaving", async () => {
  for await (const _ of await client.chat.completions.create({ ...ask(long), stream: true })) break;
  assert.ok((await client.chat.completions.create(ask())).choices[0].message.content);
});
