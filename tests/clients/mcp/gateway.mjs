// The gateway under test, for those who put a server behind it: its control plane, and a server registered in it. Addresses
// and keys come from the environment.

const { GATEWAY_BASE_URL, GATEWAY_ADMIN_KEY, GATEWAY_WORKSPACE_KEY } = process.env;
export const origin = GATEWAY_BASE_URL.replace(/\/v1$/, "");

export async function control(method, path, key, body) {
  const headers = { "x-gateway-api-key": key, "content-type": "application/json" };
  const answer = await fetch(`${GATEWAY_BASE_URL}${path}`, { method, headers, body: body && JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return JSON.parse(text);
}

export async function until(what, isTrue) {
  for (let tries = 0; tries < 300; tries += 1) {
    if (await isTrue().catch(() => false)) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited in vain until ${what}`);
}

// Where clients reach the server, once the gateway knows it and has asked what it offers.
export async function register(slug, url) {
  const { workspace_id } = await control("GET", "/api-keys/self", GATEWAY_WORKSPACE_KEY);
  const shared = { name: slug, slug, workspace_id };
  await control("POST", "/mcp-integrations", GATEWAY_ADMIN_KEY, { ...shared, url, auth_type: "none", transport: "http" });
  await control("POST", "/mcp-servers", GATEWAY_ADMIN_KEY, { ...shared, mcp_integration_id: slug });
  const headers = { authorization: `Bearer ${GATEWAY_WORKSPACE_KEY}` };
  await until("the gateway knows it", async () => (await fetch(`${origin}/${slug}/mcp`, { method: "DELETE", headers })).status !== 404);
  const isSynced = async () => (await control("GET", `/mcp-integrations/${slug}`, GATEWAY_ADMIN_KEY)).metadata.sync_status === "synced";
  await until("the gateway has asked what it offers", isSynced);
  return `${origin}/${slug}/mcp`;
}
