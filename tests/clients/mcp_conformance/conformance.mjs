// Runs the protocol's conformance suite against a server of its SDK, directly and through the gateway, for the revisions that
// have a list of requirements: every check that passes directly must pass through the gateway.

import { spawn } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { register } from "../mcp/gateway.mjs";
import { forward } from "./forwarder.mjs";

const REVISIONS = ["2025-11-25", "2026-07-28"];
// Fewer would mean that the suite or the server has changed so that nothing is compared any more.
const FEWEST = { "2025-11-25": 60, "2026-07-28": 100 };
const { GATEWAY_WORKSPACE_KEY, MCP_CONFORMANCE_PORT } = process.env;

async function startServer() {
  const server = spawn(process.execPath, [fileURLToPath(import.meta.resolve("./server.mjs"))], { stdio: ["ignore", "pipe", "inherit"] });
  const port = await new Promise((resolve, reject) => {
    server.stdout.once("data", (text) => resolve(Number(text.toString())));
    server.once("exit", () => reject(new Error("the server did not start")));
  });
  return { server, url: `http://127.0.0.1:${port}/mcp` };
}

// The status of each check, by `scenario/check`; the worse where one is made twice.
async function checksOf(url, revision) {
  const folder = await mkdtemp(join(tmpdir(), "conformance-"));
  try {
    const program = fileURLToPath(import.meta.resolve("@modelcontextprotocol/conformance/dist/index.js"));
    const words = [program, "server", "--url", url, "--requirements", revision, "--output-dir", folder];
    await new Promise((resolve) => spawn(process.execPath, words, { stdio: "ignore" }).on("exit", resolve));
    const found = new Map();
    for (const entry of await readdir(folder, { recursive: true })) {
      if (!entry.endsWith("checks.json")) continue;
      const scenario = entry.split("/").at(-2).replace(/^server-/, "").replace(/-\d{4}-\d{2}-\d{2}T.*$/, "");
      for (const check of JSON.parse(await readFile(join(folder, entry)))) {
        const name = `${scenario}/${check.id}`;
        const isWorse = found.get(name)?.status === "FAILURE";
        if (!isWorse) found.set(name, { status: check.status, why: check.errorMessage });
      }
    }
    return found;
  } finally {
    await rm(folder, { recursive: true });
  }
}

const { server, url } = await startServer();
let isBroken = false;
try {
  const behind = await register(`conformance-${process.pid}`, url);
  const forwarder = await forward(Number(MCP_CONFORMANCE_PORT), behind, GATEWAY_WORKSPACE_KEY);
  for (const revision of REVISIONS) {
    const direct = await checksOf(url, revision);
    const through = await checksOf(`http://127.0.0.1:${MCP_CONFORMANCE_PORT}/mcp`, revision);
    const passing = [...direct].filter(([, { status }]) => status === "SUCCESS").map(([name]) => name);
    const lost = passing.filter((name) => through.get(name)?.status !== "SUCCESS");
    const failing = [...direct].filter(([, { status }]) => status === "FAILURE").length;
    console.log(`${revision}: ${passing.length} checks pass directly (${failing} fail), ${passing.length - lost.length} of them through the gateway`);
    for (const name of lost) console.log(`  lost: ${name}: ${through.get(name)?.why ?? through.get(name)?.status ?? "it was not made"}`);
    isBroken ||= lost.length > 0 || passing.length < FEWEST[revision];
  }
  forwarder.closeAllConnections();
  forwarder.close();
} finally {
  server.kill();
}
process.exit(isBroken ? 1 : 0);
