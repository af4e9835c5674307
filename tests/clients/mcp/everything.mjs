// Starts the reference server on a free port, registers it in the gateway, and runs the command after `--` with
// `MCP_URL` (the server through the gateway) and `MCP_MERGED_URL` (all servers of the workspace) in its environment.

import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";

const { GATEWAY_BASE_URL, GATEWAY_ADMIN_KEY, GATEWAY_WORKSPACE_KEY } = process.env;
const origin = GATEWAY_BASE_URL.replace(/\/v1$/, "");
const slug = `everything-${process.pid}`;

async function control(method, path, key, body) {
  const headers = { "x-gateway-api-key": key, "content-type": "application/json" };
  const answer = await fetch(`${GATEWAY_BASE_URL}${path}`, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

async function until(what, isTrue) {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await isTrue().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited in vain until ${what}`);
}

const port = await new Promise((resolve) => {
  const probe = createServer().listen(0, "127.0.0.1", () => {
    const { port } = probe.address();
    probe.close(() => resolve(port));
  });
});
const program = fileURLToPath(import.meta.resolve("@modelcontextprotocol/server-everything/dist/index.js"));
const server = spawn(process.execPath, [program, "streamableHttp"], { env: { ...process.env, PORT: port }, stdio: "ignore" });
let outcome = 1;
try {
  const url = `http://127.0.0.1:${port}/mcp`;
  await until("the server listens", async () => (await fetch(url)).status > 0);
  const { workspace_id } = await control("GET", "/api-keys/self", GATEWAY_WORKSPACE_KEY);
  const shared = { name: slug, slug, workspace_id };
  await control("POST", "/mcp-integrations", GATEWAY_ADMIN_KEY, { ...shared, url, auth_type: "none", transport: "http" });
  await control("POST", "/mcp-servers", GATEWAY_ADMIN_KEY, { ...shared, mcp_integration_id: slug });
  const headers = { authorization: `Bearer ${GATEWAY_WORKSPACE_KEY}` };
  await until("the gateway knows it", async () => (await fetch(`${origin}/${slug}/mcp`, { method: "DELETE", headers })).status !== 404);
  const env = { ...process.env, MCP_URL: `${origin}/${slug}/mcp`, MCP_MERGED_URL: `${origin}/mcp`, MCP_SLUG: slug };
  const [command, ...words] = process.argv.slice(process.argv.indexOf("--") + 1);
  outcome = await new Promise((resolve) => spawn(command, words, { env, stdio: "inherit" }).on("exit", resolve));
} finally {
  server.kill();
}
process.exit(outcome ?? 1);
