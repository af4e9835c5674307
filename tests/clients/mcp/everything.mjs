// Starts the reference server on a free port, registers it in the gateway, and runs the command after `--` with
// `MCP_URL` (the server through the gateway) and `MCP_MERGED_URL` (all servers of the workspace) in its environment.

import { spawn } from "node:child_process";
import { createServer } from "node:net";
import { fileURLToPath } from "node:url";
import { origin, register, until } from "./gateway.mjs";

const slug = `everything-${process.pid}`;

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
  const env = { ...process.env, MCP_URL: await register(slug, url), MCP_MERGED_URL: `${origin}/mcp`, MCP_SLUG: slug };
  const [command, ...words] = process.argv.slice(process.argv.indexOf("--") + 1);
  outcome = await new Promise((resolve) => spawn(command, words, { env, stdio: "inherit" }).on("exit", resolve));
} finally {
  server.kill();
}
process.exit(outcome ?? 1);
