//! What one MCP server shows of its integration's capabilities: a flag of its own, beside the integration's. Both must
//! be on.

use super::{McpServer, found};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::{ApiError, text};
use crate::identity::Call;
use crate::resources::mcp_integrations::capabilities::{MAX_CAPABILITIES, kind_of, listed, pages, shown};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::json;
use shared::mcp::Kind;
use tokio_postgres::types::ToSql;

#[derive(Deserialize)]
struct CapabilityFlag {
    name: String,
    #[serde(rename = "type")]
    kind: String,
    enabled: bool,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CapabilityFlags {
    capabilities: Option<Vec<CapabilityFlag>>,
}

/// Rows of both sides: a flag may precede what it is about.
const BOTH: &str = "(SELECT type, name, is_usable, definition, created_at, last_updated_at, pin_state, pinned_hash,
            definition_hash, price FROM mcp_capabilities
     WHERE integration_id = $1 AND organisation_id = $2 AND vanished_at IS NULL) c
    FULL JOIN (SELECT type, name, enabled, created_at, last_updated_at FROM mcp_server_capabilities
     WHERE server_id = $3 AND organisation_id = $2) o USING (type, name)";

pub async fn list(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let list = format!(
        "SELECT type, name, coalesce(o.enabled, true) AND coalesce(c.is_usable, true) AS enabled,
                coalesce(c.is_usable, true) AS integration_enabled, c.definition,
                coalesce(c.created_at, o.created_at) AS created_at, coalesce(c.pin_state, 'approved') AS pin_state,
                greatest(c.last_updated_at, o.last_updated_at) AS last_updated_at,
                encode(c.pinned_hash, 'hex') AS pinned_hash, encode(c.definition_hash, 'hex') AS definition_hash, c.price
         FROM {BOTH} WHERE $4::text IS NULL OR type = $4 ORDER BY type, name LIMIT $5 OFFSET $6"
    );
    let count = format!(
        "SELECT type, count(*) AS total,
                count(*) FILTER (WHERE coalesce(o.enabled, true) AND coalesce(c.is_usable, true)) AS enabled
         FROM {BOTH} GROUP BY type"
    );
    let kind = call.query().text("type").map(kind_of).transpose()?.map(Kind::as_str);
    let (size, offset) = pages(&call)?;
    let db = app.db.get().await?;
    let server = found(&*db, &call, &name).await?;
    let (integration, organisation) = (server.mcp_integration_id, server.organisation_id);
    let values: [&(dyn ToSql + Sync); 6] = [&integration, &organisation, &server.id, &kind, &size, &offset];
    let rows = db.query(&list, &values).await?;
    let data = rows.iter().map(|row| {
        let mut one = shown(row)?;
        one["integration_enabled"] = json!(row.try_get::<_, bool>("integration_enabled")?);
        Ok(one)
    });
    let data = data.collect::<Result<Vec<_>, ApiError>>()?;
    let counted = db.query(&count, &[&integration, &organisation, &server.id]).await?;
    Ok(Json(listed(data, &counted, kind, offset)?))
}

pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const PUT: &str = "INSERT INTO mcp_server_capabilities (organisation_id, server_id, type, name, enabled)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (server_id, type, name) DO UPDATE SET enabled = EXCLUDED.enabled, last_updated_at = now()";
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let server = crud::held::<McpServer>(&mut action, &name, None).await?;
    let sent = call.body::<CapabilityFlags>()?.capabilities.unwrap_or_default();
    if sent.is_empty() || sent.len() > MAX_CAPABILITIES {
        return Err(ApiError::field("capabilities", format!("must list 1 to {MAX_CAPABILITIES}")));
    }
    let mut after = Vec::new();
    for (n, one) in sent.iter().enumerate() {
        let at = |error: ApiError| error.under(&format!("capabilities[{n}]"));
        let kind = kind_of(&one.kind).map_err(at)?.as_str();
        text::sized("name", one.name.clone(), 1..=512).map_err(at)?;
        let values: [&(dyn ToSql + Sync); 5] = [&server.organisation_id, &server.id, &kind, &one.name, &one.enabled];
        action.tx.execute(PUT, &values).await?;
        after.push(json!({ "type": kind, "name": one.name, "enabled": one.enabled }));
    }
    let change =
        Change { resource_id: server.id.to_string(), before: None, after: Some(json!({ "capabilities": after })) };
    action.commit(change).await?;
    Ok(Json(json!({ "success": true })))
}
