// An authorisation server (oidc-provider) and an MCP server that takes nothing but its tokens.

import { createServer } from "node:http";
import Provider from "oidc-provider";

const listening = (server) =>
  new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${server.address().port}`)));

const body = async (request) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  return Buffer.concat(pieces).toString();
};

export async function start() {
  let handle;
  const issuerServer = createServer((request, response) => handle(request, response));
  const issuer = await listening(issuerServer);
  const mcpServer = createServer((request, response) => serve(request, response).catch(() => response.destroy()));
  const mcp = await listening(mcpServer);
  const resource = `${mcp}/mcp`;
  const provider = new Provider(issuer, {
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    scopes: ["openid", "offline_access", "tools"],
    features: {
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => undefined,
        useGrantedResource: () => true,
        getResourceServerInfo: (_, asked) => {
          if (asked !== resource) throw new Error("no such resource");
          return { scope: "tools", audience: resource, accessTokenFormat: "opaque", accessTokenTTL: 20 };
        },
      },
    },
    pkce: { required: () => true },
    rotateRefreshToken: true,
    issueRefreshToken: async (_, client) => client.grantTypeAllowed("refresh_token"),
    cookies: { keys: ["only for this test"] },
  });
  handle = provider.callback();
  const refreshed = new Promise((resolve) => {
    provider.on("grant.success", (ctx) => ctx.oidc.params.grant_type === "refresh_token" && resolve());
  });

  async function serve(request, response) {
    const answer = (status, value, headers = {}) =>
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
    if (request.url === "/.well-known/oauth-protected-resource/mcp") {
      return answer(200, { resource, authorization_servers: [issuer], scopes_supported: ["tools"] });
    }
    const [, sent] = (request.headers.authorization ?? "").split(" ");
    const token = sent && (await provider.AccessToken.find(sent));
    if (!token || token.isExpired || token.aud !== resource) {
      const metadata = `${mcp}/.well-known/oauth-protected-resource/mcp`;
      return answer(401, {}, { "www-authenticate": `Bearer resource_metadata="${metadata}"` });
    }
    if (request.method !== "POST") return answer(405, {});
    const asked = JSON.parse(await body(request));
    if (asked.id === undefined) return response.writeHead(202).end();
    const results = {
      initialize: {
        protocolVersion: "2025-06-18",
        capabilities: { tools: {} },
        serverInfo: { name: "owned", version: "1" },
      },
      "tools/list": { tools: [{ name: "whoami", inputSchema: { type: "object" } }] },
      "tools/call": { content: [{ type: "text", text: token.accountId }] },
    };
    return answer(200, { jsonrpc: "2.0", id: asked.id, result: results[asked.method] ?? {} });
  }

  const stop = () => [issuerServer, mcpServer].forEach((server) => server.close() && server.closeAllConnections());
  return { issuer, resource, provider, refreshed, stop };
}
