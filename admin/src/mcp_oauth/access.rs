//! Whether a person may use an MCP server: an exception for them, else the server's default, and only for whoever can act
//! in its workspace, while the workspace may use the integration.

use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn may_use(
    db: &impl GenericClient,
    organisation: Uuid,
    server: Uuid,
    person: Uuid,
) -> Result<bool, tokio_postgres::Error> {
    const ACCESS: &str = "SELECT coalesce(a.enabled, s.default_user_access = 'allow') AS is_allowed
        FROM mcp_servers s JOIN users u ON u.organisation_id = s.organisation_id AND u.id = $3 AND u.status = 'active'
        JOIN mcp_integrations i ON i.id = s.mcp_integration_id AND i.status = 'active'
        LEFT JOIN mcp_user_access a ON a.server_id = s.id AND a.user_id = u.id
        WHERE s.id = $1 AND s.organisation_id = $2 AND s.status = 'active'
          AND (u.role IN ('owner', 'admin')
               OR EXISTS (SELECT FROM workspace_members m WHERE m.workspace_id = s.workspace_id AND m.user_id = u.id))
          AND (i.workspace_id = s.workspace_id OR (i.workspace_id IS NULL AND EXISTS (
               SELECT FROM mcp_integration_workspaces g
               WHERE g.integration_id = i.id AND g.workspace_id = s.workspace_id AND g.enabled)))";
    let row = db.query_opt(ACCESS, &[&server, &organisation, &person]).await?;
    Ok(row.map(|row| row.try_get("is_allowed")).transpose()?.unwrap_or(false))
}
