// Whatever goes wrong reaches the user of OpenAI's Node SDK as the error class its manual promises.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI from "openai";
import { ask, mock, openai } from "./client.mjs";

const client = openai();

const caught = (promise) => promise.then(() => assert.fail("nothing was thrown"), (error) => error);

for (const [status, kind] of [
  [400, OpenAI.BadRequestError],
  [401, OpenAI.AuthenticationError],
  [403, OpenAI.PermissionDeniedError],
  [404, OpenAI.NotFoundError],
  [429, OpenAI.RateLimitError],
  [500, OpenAI.InternalServerError],
]) {
  test(`the provider's ${status} keeps its status and message`, async () => {
    for (const stream of [false, true]) {
      const error = await caught(client.chat.completions.create({ ...ask({ status }), stream }));
      assert.ok(error instanceof kind, `${error.constructor.name}`);
      assert.equal(error.status, status);
      assert.match(error.message, /mock error/);
      assert.ok(error.headers.get("x-gateway-request-id"));
    }
  });
}

for (const [header, value, kind, code] of [
  ["x-gateway-api-key", "pk_unknown", OpenAI.AuthenticationError, "invalid_api_key"],
  ["x-gateway-provider", "nobody", OpenAI.BadRequestError, "invalid_provider"],
  ["x-gateway-metadata", "no JSON", OpenAI.BadRequestError, "invalid_metadata"],
]) {
  test(`the gateway's own refusal says ${code}`, async () => {
    const error = await caught(client.chat.completions.create(ask(), { headers: { [header]: value } }));
    assert.ok(error instanceof kind, `${error.constructor.name}`);
    assert.equal(error.code, code);
  });
}

test("the SDK tries again after an error that passes", async () => {
  await mock.script({ status: 503, retry_after_ms: 1 }, { status: 429, retry_after_ms: 1 });
  const before = (await mock.counts()).served.chat.error;
  const answer = await openai({ maxRetries: 2 }).chat.completions.create(ask());
  assert.ok(answer.choices[0].message.content);
  assert.equal((await mock.counts()).served.chat.error, before + 2);
});

test("an error inside a stream that has begun is thrown, not swallowed", async () => {
  const stream = await client.chat.completions.create({ ...ask({ chunks: 10, error_after_chunks: 3 }), stream: true });
  let received = 0;
  const error = await caught((async () => { for await (const _ of stream) received += 1; })());
  assert.ok(error instanceof OpenAI.APIError && received >= 3, `${error} after ${received}`);
});

test("a stream the provider breaks off does not look complete", async () => {
  const stream = await client.chat.completions.create({ ...ask({ chunks: 50, cut_at: 4000 }), stream: true });
  let last;
  const error = await caught((async () => { for await (const chunk of stream) last = chunk; })());
  assert.ok(error instanceof OpenAI.APIError, `${error}`);
  assert.equal(last.choices[0].finish_reason, null);
});
