// Batches as OpenAI's SDK for Node goes about them: upload, create, poll, download; run by the gateway itself and by a
// provider that is named.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { toFile } from "openai";

const { GATEWAY_BASE_URL, GATEWAY_WORKSPACE_KEY, MOCK_PROVIDER_URL } = process.env;
const options = { baseURL: GATEWAY_BASE_URL, maxRetries: 0, timeout: 60_000 };
const toMock = { "x-gateway-provider": "openai", "x-gateway-custom-host": MOCK_PROVIDER_URL };
const own = new OpenAI({ ...options, apiKey: GATEWAY_WORKSPACE_KEY });
const named = new OpenAI({
  ...options,
  apiKey: "sk-mock",
  defaultHeaders: { "x-gateway-api-key": GATEWAY_WORKSPACE_KEY, ...toMock },
});

const rows = [1, 2, 3]
  .map((number) => ({
    custom_id: `row-${number}`,
    method: "POST",
    url: "/v1/chat/completions",
    body: { model: "gpt-4o-mini", messages: [{ role: "user", content: `Hello ${number}` }] },
  }))
  .map((row) => `${JSON.stringify(row)}\n`)
  .join("");

async function run(client, more) {
  const file = await client.files.create({ file: await toFile(Buffer.from(rows), "rows.jsonl"), purpose: "batch" });
  const asked = { input_file_id: file.id, endpoint: "/v1/chat/completions", completion_window: "24h", ...more };
  let batch = await client.batches.create(asked);
  const ends = Date.now() + 60_000;
  while (!["completed", "failed", "expired", "cancelled"].includes(batch.status)) {
    assert.ok(Date.now() < ends, JSON.stringify(batch));
    await new Promise((done) => setTimeout(done, 200));
    batch = await client.batches.retrieve(batch.id);
  }
  assert.equal(batch.status, "completed", JSON.stringify(batch));
  const output = await (await client.files.content(batch.output_file_id)).text();
  const ids = output.trim().split("\n").map((line) => JSON.parse(line).custom_id);
  assert.deepEqual(ids.sort(), ["row-1", "row-2", "row-3"]);
  return batch;
}

for (const window of ["immediate", "24h"]) {
  test(`the gateway runs a batch (${window})`, async () => {
    const headers = { ...toMock, authorization: "Bearer sk-mock" };
    const batch = await run(own, { completion_window: window, gateway_options: headers });
    assert.match(batch.id, /^gwb-/);
    assert.equal(batch.gateway_options.authorization, "*****");
  });
}

test("a provider that is named runs its own", async () => {
  assert.doesNotMatch((await run(named, {})).id, /^gwb-/);
});
