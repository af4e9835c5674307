// Files that the gateway keeps itself, as OpenAI's SDK for Node goes about it: no provider is named.

import assert from "node:assert/strict";
import { test } from "node:test";
import OpenAI, { NotFoundError, toFile } from "openai";

const { GATEWAY_BASE_URL, GATEWAY_WORKSPACE_KEY } = process.env;
const client = new OpenAI({ baseURL: GATEWAY_BASE_URL, apiKey: GATEWAY_WORKSPACE_KEY, maxRetries: 0, timeout: 60_000 });
const rows = Buffer.from('{"custom_id":"1","method":"POST","url":"/v1/chat/completions","body":{"model":"m"}}\n'.repeat(1000));

test("a file is uploaded, listed, read and deleted", async () => {
  const made = await client.files.create({ file: await toFile(rows, "rows.jsonl"), purpose: "batch" });
  assert.match(made.id, /^gwf-/);
  assert.deepEqual([made.bytes, made.filename, made.purpose], [rows.length, "rows.jsonl", "batch"]);
  const listed = [];
  for await (const file of client.files.list({ purpose: "batch", limit: 1 })) listed.push(file.id);
  assert.ok(listed.includes(made.id));
  const content = await client.files.content(made.id);
  assert.ok(Buffer.from(await content.arrayBuffer()).equals(rows));
  assert.equal((await client.files.delete(made.id)).deleted, true);
  await assert.rejects(client.files.retrieve(made.id), NotFoundError);
});
