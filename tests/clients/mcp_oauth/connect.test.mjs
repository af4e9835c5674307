// A person connects to an MCP server whose tokens come from a real authorisation server: discovery, registration, PKCE,
// consent, refresh, revocation. What the server sees of the person is what the gateway stored for them, and nobody else.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { control, origin as ORIGIN } from "../mcp/gateway.mjs";
import { Browser } from "./browser.mjs";
import { start } from "./issuer.mjs";

const { GATEWAY_ADMIN_KEY, GATEWAY_WORKSPACE_KEY } = process.env;
// Next to the programs of the stack, whose database it reads from the environment.
const GATEWAY_ADMIN = process.env.GATEWAY_ADMIN ?? "../../../target/debug/gateway-admin";
const SLUG = `owned-${process.pid}`;
let behind, owner, person, workspace;

// The public address of a link may be another than the one that is tested.
const here = (url) => ORIGIN + new URL(url).pathname + new URL(url).search;

// A browser with a session of the owner, by a one-time link.
async function signedIn() {
  const { stdout } = await promisify(execFile)(GATEWAY_ADMIN, ["login-link", "--email", owner.email]);
  const [, token] = /#token=(\S+)/.exec(stdout);
  const browser = new Browser();
  const answer = await browser.open(`${ORIGIN}/v1/auth/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ token }),
  });
  assert.equal(answer.status, 200, await answer.text());
  return browser;
}

async function connect(key, login) {
  const browser = await signedIn();
  const { authorization_url } = await control("GET", `/mcp-servers/${SLUG}/connect`, key);
  const link = here(authorization_url);
  const page = await browser.open(link);
  assert.equal(page.status, 200);
  const [, csrf_token] = /name="csrf_token" value="([^"]+)"/.exec(await page.text());
  const state = new URL(link).searchParams.get("state");
  const sent = await browser.submit(`${ORIGIN}/mcp-oauth/start`, { state, csrf_token }, { "sec-fetch-site": "same-origin" });
  assert.equal(sent.status, 303);
  const callback = await browser.signIn(sent.headers.get("location"), login, new URL("/mcp-oauth/", authorization_url).href);
  const done = await browser.open(here(callback));
  assert.equal(done.status, 200, await done.text());
  // The way back serves once.
  assert.equal((await browser.open(here(callback))).status, 400);
}

const test_of = (key) => control("POST", `/mcp-servers/${SLUG}/test`, key, {});

before(async () => {
  behind = await start();
  workspace = (await control("GET", "/api-keys/self", GATEWAY_WORKSPACE_KEY)).workspace_id;
  const users = await control("GET", "/admin/users", GATEWAY_ADMIN_KEY);
  owner = users.data.find((user) => user.role === "owner");
  const key = await control("POST", "/api-keys/workspace/user", GATEWAY_ADMIN_KEY, {
    name: SLUG,
    workspace_id: workspace,
    user_id: owner.id,
    scopes: ["mcp.invoke", "mcp_servers.read", "mcp_servers.update"],
  });
  person = key.key;
  await control("POST", "/mcp-integrations", GATEWAY_ADMIN_KEY, {
    name: SLUG,
    slug: SLUG,
    url: behind.resource,
    auth_type: "oauth_auto",
    transport: "http",
    workspace_id: workspace,
  });
  await control("POST", "/mcp-servers", GATEWAY_ADMIN_KEY, {
    name: SLUG,
    slug: SLUG,
    mcp_integration_id: SLUG,
    workspace_id: workspace,
  });
});

after(() => behind.stop());

test("a person signs in, and the server behind knows them by their own token", async () => {
  assert.equal((await test_of(person)).success, false);
  await connect(person, "ada");
  assert.equal((await test_of(person)).success, true);
  assert.equal((await test_of(GATEWAY_WORKSPACE_KEY)).success, false, "a key that acts for nobody has no token");
  const synced = await control("POST", `/mcp-servers/${SLUG}/capabilities/sync`, person, {});
  assert.equal(synced.details.tools, 1, JSON.stringify(synced));
  const shown = await control("GET", `/mcp-servers/${SLUG}/tokens`, person);
  assert.match(shown.access_token, /^.{2}\*{5}.{3}$/);
  assert.match(shown.refresh_token, /^.{2}\*{5}.{3}$/);
});

const call = async (method, id, params = {}) => {
  const answer = await fetch(`${ORIGIN}/${SLUG}/mcp`, {
    method: "POST",
    headers: {
      "x-gateway-api-key": person,
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      "mcp-protocol-version": "2025-06-18",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id, method, params }),
  });
  return answer.text();
};
const whoami = () => call("tools/call", 2, { name: "whoami", arguments: {} });

// What is asked for, once it is so: proxies learn of a change within a second.
async function until(question, expected) {
  const end = Date.now() + 30_000;
  for (;;) {
    const said = await question();
    if (expected.test(said)) return;
    if (Date.now() > end) assert.match(said, expected);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

test("a call through the gateway carries the person's token", async () => {
  const clientInfo = { name: "t", version: "1" };
  const greeting = { protocolVersion: "2025-06-18", capabilities: {}, clientInfo };
  await until(() => call("initialize", 1, greeting), /"owned"/);
  await until(whoami, /"text":"ada"/);
});

test("tokens are refreshed before they end, and the new ones are used", async () => {
  await behind.refreshed;
  await until(whoami, /"text":"ada"/);
  assert.equal((await test_of(person)).success, true);
});

test("ending the connection revokes the tokens at the authorisation server", async () => {
  const revoked = [];
  behind.provider.on("access_token.destroyed", (token) => revoked.push(token.kind));
  behind.provider.on("refresh_token.destroyed", (token) => revoked.push(token.kind));
  behind.provider.on("grant.revoked", () => revoked.push("Grant"));
  await control("DELETE", `/mcp-servers/${SLUG}/connections`, person);
  assert.ok(revoked.length > 0, "the authorisation server was told");
  assert.equal((await test_of(person)).success, false);
  const listed = await control("GET", `/mcp-servers/${SLUG}/connections`, person);
  assert.equal(listed.total, 0);
});

test("somebody can connect again, as somebody else there", async () => {
  await connect(person, "bob");
  assert.equal((await test_of(person)).success, true);
});
