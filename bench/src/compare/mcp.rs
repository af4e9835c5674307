//! A tool of an MCP server that is called through the gateway: what that costs beside a chat as long.

use super::request::{Request, a_kilobyte};
use serde_json::json;

/// Its name in the table.
pub const ROW: &str = "mcp";
const PATH: &str = "/bench/mcp";

/// The mock's server, at this address, for a workspace.
pub const INSERT: &str = r#"
    WITH made AS (
        INSERT INTO mcp_integrations (organisation_id, workspace_id, slug, name, url, auth_type, transport, sync_due_at)
        SELECT organisation_id, id, 'bench', 'Bench', $2::text, 'none', 'http', NULL FROM workspaces WHERE id = $1
        RETURNING id, organisation_id, workspace_id)
    INSERT INTO mcp_servers (organisation_id, workspace_id, mcp_integration_id, slug, name)
    SELECT organisation_id, workspace_id, id, 'bench', 'Bench' FROM made"#;

/// A call as long as the chat, by the same key.
pub fn request(engine: &Request) -> Request {
    let call = |text: &str| {
        let params = json!({ "name": "echo", "arguments": { "message": text } });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params })
    };
    let is_of_chat = |name: &str| matches!(name, "x-gateway-provider" | "x-gateway-custom-host" | "authorization");
    let mut headers = engine.headers.clone();
    headers.retain(|(name, _)| !is_of_chat(name));
    headers.push(("accept", "application/json, text/event-stream".into()));
    Request { address: engine.address, path: PATH, headers, body: a_kilobyte(call).into() }
}
