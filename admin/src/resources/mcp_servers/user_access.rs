//! Which people may use an MCP server: a default for everybody in its workspace, and exceptions for single people. Keys
//! that act for nobody are not subject to it.

use super::{McpServer, found};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::{ApiError, FieldFault};
use crate::identity::Call;
use crate::mcp_oauth::access::may_use;
use crate::resources::mcp_integrations::capabilities::pages;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::routes::Scopes;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

const MAX_USERS: usize = 1000;
const DEFAULTS: [&str; 2] = ["allow", "deny"];

#[derive(Deserialize)]
struct PersonAccess {
    user_id: Uuid,
    enabled: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessChange {
    user_access: Option<Vec<PersonAccess>>,
    default_user_access: Option<String>,
}

/// People who can act in the workspace: its members, and owners and admins of the organisation.
const PEOPLE: &str = "users u
    LEFT JOIN mcp_user_access a ON a.server_id = $1 AND a.user_id = u.id
    LEFT JOIN mcp_connections c ON c.server_id = $1 AND c.user_id = u.id
    WHERE u.organisation_id = $2 AND u.status = 'active'
      AND (u.role IN ('owner', 'admin')
           OR EXISTS (SELECT FROM workspace_members m WHERE m.workspace_id = $3 AND m.user_id = u.id))
      AND ($4::text IS NULL OR position(lower($4) IN lower(concat_ws(' ', u.first_name, u.last_name, u.email))) > 0)";

pub async fn list(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let list = format!(
        "SELECT u.id, u.first_name, u.last_name, a.enabled, c.id IS NOT NULL AS is_connected
         FROM {PEOPLE} ORDER BY u.created_at, u.id LIMIT $5 OFFSET $6"
    );
    let count = format!("SELECT count(*) FROM {PEOPLE}");
    let (size, offset) = pages(&call)?;
    let search = call.query().text("search");
    let db = app.db.get().await?;
    let server = found(&*db, &call, &name).await?;
    let default = default_access(&*db, &server).await?;
    let (id, organisation, workspace) = (server.id, server.organisation_id, server.workspace_id);
    let values: [&(dyn ToSql + Sync); 6] = [&id, &organisation, &workspace, &search, &size, &offset];
    let mut people = Vec::new();
    for row in db.query(&list, &values).await? {
        let own: Option<bool> = row.try_get("enabled")?;
        let is_connected: bool = row.try_get("is_connected")?;
        people.push(json!({
            "user_id": row.try_get::<_, Uuid>("id")?,
            "first_name": row.try_get::<_, Option<&str>>("first_name")?,
            "last_name": row.try_get::<_, Option<&str>>("last_name")?,
            "enabled": own.unwrap_or(default == "allow"),
            "has_override": own.is_some(),
            "connection_status": if is_connected { "connected" } else { "not_connected" },
        }));
    }
    let total: i64 = db.query_one(&count, &values[..4]).await?.try_get(0)?;
    let has_more = offset.saturating_add(i64::try_from(people.len()).unwrap_or(0)) < total;
    Ok(Json(json!({
        "object": "list", "data": people, "user_access": people, "default_user_access": default, "total": total,
        "has_more": has_more,
    })))
}

pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const DEFAULT: &str = "UPDATE mcp_servers SET default_user_access = $2, last_updated_at = now() WHERE id = $1";
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let server = crud::held::<McpServer>(&mut action, &name, None).await?;
    let sent: AccessChange = call.body()?;
    let people = sent.user_access.unwrap_or_default();
    if people.is_empty() && sent.default_user_access.is_none() {
        return Err(ApiError::field("user_access", "is required where the default does not change"));
    }
    if people.len() > MAX_USERS {
        return Err(ApiError::field("user_access", format!("must list at most {MAX_USERS}")));
    }
    let before = overrides(&action.tx, &server).await?;
    if let Some(default) = &sent.default_user_access {
        if !DEFAULTS.contains(&default.as_str()) {
            let fault = FieldFault::not_among("default_user_access", default, &DEFAULTS);
            return Err(ApiError::Faults(vec![fault]));
        }
        action.tx.execute(DEFAULT, &[&server.id, default]).await?;
    }
    for (n, one) in people.iter().enumerate() {
        set(&action, &server, one).await.map_err(|error| error.under(&format!("user_access[{n}]")))?;
    }
    let after = overrides(&action.tx, &server).await?;
    action.commit(Change { resource_id: server.id.to_string(), before: Some(before), after: Some(after) }).await?;
    Ok(Json(json!({ "success": true })))
}

async fn set(action: &Action<'_>, server: &McpServer, one: &PersonAccess) -> Result<(), ApiError> {
    const KNOWN: &str = "SELECT FROM users WHERE id = $1 AND organisation_id = $2 AND status = 'active' FOR SHARE";
    const PUT: &str = "INSERT INTO mcp_user_access (organisation_id, server_id, user_id, enabled)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (server_id, user_id) DO UPDATE SET enabled = EXCLUDED.enabled, last_updated_at = now()";
    if action.tx.query_opt(KNOWN, &[&one.user_id, &server.organisation_id]).await?.is_none() {
        return Err(ApiError::field("user_id", "must be a person of the organisation"));
    }
    action.tx.execute(PUT, &[&server.organisation_id, &server.id, &one.user_id, &one.enabled]).await?;
    Ok(())
}

/// `GET …/user-access/check`: whoever holds only `mcp.invoke` may ask about themselves alone.
pub async fn check(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let server = found(&*db, &call, &name).await?;
    let person = match (call.query().uuid("user_id")?, call.caller.user_id()) {
        (Some(asked), own) if own == Some(asked) || call.caller.holds("mcp_servers.read") => asked,
        (Some(_), _) => return Err(ApiError::MissingScope { needs: Scopes::Any(&["mcp_servers.read"]) }),
        (None, Some(own)) => own,
        (None, None) => return Err(ApiError::field("user_id", "is required: this credential acts for nobody")),
    };
    Ok(Json(json!({ "has_access": may_use(&*db, server.organisation_id, server.id, person).await? })))
}

async fn default_access(db: &impl GenericClient, server: &McpServer) -> Result<String, ApiError> {
    const DEFAULT: &str = "SELECT default_user_access FROM mcp_servers WHERE id = $1 AND organisation_id = $2";
    let row = db.query_opt(DEFAULT, &[&server.id, &server.organisation_id]).await?;
    Ok(row.ok_or(ApiError::NotFound("mcp-server"))?.try_get(0)?)
}

/// For the audit trail: the default, and the latest exceptions.
async fn overrides(db: &impl GenericClient, server: &McpServer) -> Result<Value, ApiError> {
    const OVERRIDES: &str = "SELECT user_id, enabled FROM mcp_user_access WHERE server_id = $1 AND organisation_id = $2
                             ORDER BY last_updated_at DESC, user_id LIMIT 1000";
    let mut people = Vec::new();
    for row in db.query(OVERRIDES, &[&server.id, &server.organisation_id]).await? {
        people.push(json!({
            "user_id": row.try_get::<_, Uuid>("user_id")?, "enabled": row.try_get::<_, bool>("enabled")?,
        }));
    }
    Ok(json!({ "default_user_access": default_access(db, server).await?, "user_access": people }))
}
