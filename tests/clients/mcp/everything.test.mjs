// The official client (npm @modelcontextprotocol/sdk) through the gateway: everything that the reference server has.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";

const { MCP_URL, MCP_MERGED_URL, MCP_SLUG, GATEWAY_WORKSPACE_KEY } = process.env;
const AUTHORIZATION = { authorization: `Bearer ${GATEWAY_WORKSPACE_KEY}` };

async function connected(url, work, headers = AUTHORIZATION) {
  const capabilities = { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } };
  const client = new Client({ name: "tests", version: "1" }, { capabilities });
  const transport = new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } });
  try {
    await client.connect(transport);
    return await work(client, transport);
  } finally {
    await transport.terminateSession().catch(() => {});
    await client.close();
  }
}

test("tools, structured content, errors and images pass", () =>
  connected(MCP_URL, async (client, transport) => {
    assert.ok(transport.sessionId);
    assert.ok((await client.listTools()).tools.some((tool) => tool.name === "get-sum"));
    const sum = await client.callTool({ name: "get-sum", arguments: { a: 2, b: 3 } });
    assert.match(sum.content[0].text, /5/);
    const weather = await client.callTool({ name: "get-structured-content", arguments: { location: "Chicago" } });
    assert.ok(weather.structuredContent.temperature !== undefined, JSON.stringify(weather));
    const image = await client.callTool({ name: "get-tiny-image", arguments: {} });
    assert.ok(image.content.some((block) => block.type === "image" && block.data.length > 100));
    const unknown = await client.callTool({ name: "no-such-tool", arguments: {} }).catch((error) => error);
    assert.ok(unknown.isError || unknown.code === -32602, JSON.stringify(unknown));
  }));

test("prompts, resources, templates and completion pass", () =>
  connected(MCP_URL, async (client) => {
    const prompts = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
    assert.ok(prompts.includes("args-prompt"), prompts.join());
    const prompt = await client.getPrompt({ name: "args-prompt", arguments: { city: "Oslo", state: "Norway" } });
    assert.match(JSON.stringify(prompt.messages), /Oslo/);
    const { resources } = await client.listResources();
    const read = await client.readResource({ uri: resources[0].uri });
    assert.ok(read.contents.length > 0);
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.ok(resourceTemplates.length > 0);
    const dynamic = await client.readResource({ uri: "demo://resource/dynamic/text/1" });
    assert.equal(dynamic.contents[0].uri, "demo://resource/dynamic/text/1");
    const ref = { type: "ref/prompt", name: "completable-prompt" };
    const completed = await client.complete({ ref, argument: { name: "department", value: "E" } });
    assert.ok(Array.isArray(completed.completion.values));
  }));

test("progress comes while a tool works, and a call can be cancelled", () =>
  connected(MCP_URL, async (client) => {
    const heard = [];
    const name = "trigger-long-running-operation";
    const done = await client.callTool({ name, arguments: { duration: 1, steps: 4 } }, undefined, {
      onprogress: (progress) => heard.push(progress.progress),
      timeout: 30_000,
    });
    assert.match(done.content[0].text, /completed/i);
    assert.ok(heard.length >= 2, heard.join());
    const stop = new AbortController();
    const running = client.callTool({ name, arguments: { duration: 30, steps: 3 } }, undefined, { signal: stop.signal });
    stop.abort("enough");
    await assert.rejects(running);
    await client.ping();
  }));

test("the server may ask the client: sampling, elicitation, roots", () =>
  connected(MCP_URL, async (client) => {
    client.setRequestHandler(CreateMessageRequestSchema, async (request) => {
      const asked = JSON.stringify(request.params.messages);
      return { model: "m", role: "assistant", content: { type: "text", text: `sampled ${asked.includes("a prompt")}` } };
    });
    client.setRequestHandler(ElicitRequestSchema, async () => ({ action: "decline" }));
    client.setRequestHandler(ListRootsRequestSchema, async () => ({ roots: [{ uri: "file:///a-root", name: "a" }] }));
    const sampled = await client.callTool({ name: "trigger-sampling-request", arguments: { prompt: "a prompt", maxTokens: 5 } });
    assert.match(JSON.stringify(sampled.content), /sampled true/);
    const elicited = await client.callTool({ name: "trigger-elicitation-request", arguments: {} });
    assert.match(JSON.stringify(elicited.content), /declin/i);
  }));

test("the stream between calls brings logs", () =>
  connected(MCP_URL, async (client) => {
    const heard = new Promise((resolve) => {
      client.setNotificationHandler(LoggingMessageNotificationSchema, (notification) => resolve(notification.params));
      client.setNotificationHandler(ResourceUpdatedNotificationSchema, () => {});
    });
    await client.setLoggingLevel("debug");
    await client.callTool({ name: "toggle-simulated-logging", arguments: {} });
    assert.ok((await heard).level);
  }));

test("a session of another key is not found, and without a key nothing is", async () => {
  await connected(MCP_URL, async (client, transport) => {
    const headers = { "content-type": "application/json", accept: "application/json, text/event-stream", "mcp-session-id": transport.sessionId };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
    const answer = await fetch(MCP_URL, { method: "POST", headers, body });
    assert.equal(answer.status, 401);
    assert.match(answer.headers.get("www-authenticate"), /resource_metadata=/);
  });
  await assert.rejects(connected(MCP_URL, () => {}, { authorization: "Bearer pk_nobody" }));
});

test("the merged server has them under the slug", () =>
  connected(MCP_MERGED_URL, async (client) => {
    const { tools } = await client.listTools();
    assert.ok(tools.some((tool) => tool.name === `${MCP_SLUG}__get-sum`), tools.map((tool) => tool.name).join());
    const sum = await client.callTool({ name: `${MCP_SLUG}__get-sum`, arguments: { a: 2, b: 3 } });
    assert.match(sum.content[0].text, /5/);
    const prompt = await client.getPrompt({ name: `${MCP_SLUG}__simple-prompt` });
    assert.ok(prompt.messages.length > 0);
    const { resources } = await client.listResources();
    const own = resources.filter((resource) => resource.uri.startsWith(`mcp://${MCP_SLUG}/`));
    assert.ok(own.length > 0, JSON.stringify(resources).slice(0, 500));
    assert.ok((await client.readResource({ uri: own[0].uri })).contents.length > 0);
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.ok(resourceTemplates.some((template) => template.uriTemplate.startsWith(`mcp://${MCP_SLUG}/`)));
    const ref = { type: "ref/prompt", name: `${MCP_SLUG}__completable-prompt` };
    const completed = await client.complete({ ref, argument: { name: "department", value: "E" } });
    assert.ok(Array.isArray(completed.completion.values));
  }));
