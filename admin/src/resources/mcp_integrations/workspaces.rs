//! Which workspaces may use an MCP integration of the organisation. One request may set any number of them; either all
//! of it happens or nothing does.

use super::{McpIntegration, list};
use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, Time};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_postgres::GenericClient;
use uuid::Uuid;

#[derive(Default, Deserialize)]
#[serde(default)]
struct AccessChange {
    workspaces: Option<Vec<WorkspaceChange>>,
    global_workspace_access: Option<Global>,
    override_existing_workspace_access: bool,
}

#[derive(Deserialize)]
struct WorkspaceChange {
    id: String,
    enabled: bool,
}

#[derive(Deserialize)]
struct Global {
    enabled: bool,
}

pub async fn list(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let found = list::readable(&*db, &call, &name).await?;
    let workspaces = shown(&*db, &found).await?;
    let global = json!({ "enabled": found.is_for_all });
    Ok(Json(match call.query().text("version") {
        Some(_) => json!({ "data": workspaces, "total": workspaces.len(), "global_workspace_access": global }),
        None => json!({ "object": "integration", "workspaces": workspaces, "global_workspace_access": global }),
    }))
}

pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const GLOBAL: &str = "UPDATE mcp_integrations SET is_for_all = $2, last_updated_at = now() WHERE id = $1";
    const CLOSE: &str = "UPDATE mcp_integration_workspaces SET enabled = false, last_updated_at = now()
                         WHERE integration_id = $1 AND enabled AND workspace_id <> ALL($2)";
    const EVERY: &str = "SELECT id FROM workspaces WHERE organisation_id = $1 AND status = 'active' ORDER BY id";
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let found = list::held(&mut action, &name).await?;
    if found.workspace_id.is_some() {
        return Err(ApiError::invalid("This integration belongs to one workspace and cannot be given to others"));
    }
    let sent: AccessChange = call.body()?;
    let is_for_all = sent.global_workspace_access.map(|global| global.enabled);
    if sent.workspaces.is_none() && is_for_all.is_none() {
        return Err(ApiError::field("workspaces", "is required"));
    }
    let before = shown(&action.tx, &found).await?;
    let listed = sent.workspaces.unwrap_or_default();
    let mut targets = resolved(&action, &listed).await?;
    if let Some(is_for_all) = is_for_all {
        action.tx.execute(GLOBAL, &[&found.id, &is_for_all]).await?;
    }
    let overrides = sent.override_existing_workspace_access;
    if listed.is_empty() && overrides && is_for_all == Some(true) {
        for row in action.tx.query(EVERY, &[&action.organisation_id()]).await? {
            targets.push((row.try_get("id")?, true, false));
        }
    }
    if overrides {
        let listed: Vec<Uuid> = targets.iter().map(|(id, _, _)| *id).collect();
        action.tx.execute(CLOSE, &[&found.id, &listed]).await?;
    }
    for target in targets {
        set(&action, found.id, target).await?;
    }
    let after = shown(&action.tx, &found).await?;
    let change = Change { resource_id: found.id.to_string(), before: Some(json!(before)), after: Some(json!(after)) };
    action.commit(change).await?;
    Ok(Json(json!({ "success": true })))
}

/// The workspaces by id, each once, whether they are enabled, and whether they were named by slug. In the order of ids,
/// so that two such requests cannot wait for each other.
async fn resolved(action: &Action<'_>, sent: &[WorkspaceChange]) -> Result<Vec<(Uuid, bool, bool)>, ApiError> {
    let mut targets: Vec<(Uuid, bool, bool)> = Vec::new();
    for (n, one) in sent.iter().enumerate() {
        let field = format!("workspaces[{n}].id");
        let found = tenancy::find_workspace(&action.tx, action.organisation_id(), &one.id).await?;
        let id = found.ok_or_else(|| ApiError::field(&field, "must be a workspace of the organisation"))?;
        if targets.iter().any(|(other, _, _)| *other == id) {
            return Err(ApiError::field(field, "is listed twice"));
        }
        targets.push((id, one.enabled, tenancy::id(&one.id).is_none()));
    }
    targets.sort_unstable_by_key(|(id, _, _)| *id);
    Ok(targets)
}

async fn set(action: &Action<'_>, integration: Uuid, target: (Uuid, bool, bool)) -> Result<(), ApiError> {
    const WRITE: &str = "INSERT INTO mcp_integration_workspaces
            (organisation_id, integration_id, workspace_id, enabled, is_by_slug)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (integration_id, workspace_id) DO UPDATE SET enabled = excluded.enabled,
            is_by_slug = excluded.is_by_slug, last_updated_at = now()";
    let (workspace, enabled, is_by_slug) = target;
    tenancy::hold(&action.tx, workspace).await?;
    let organisation = action.organisation_id();
    action.tx.execute(WRITE, &[&organisation, &integration, &workspace, &enabled, &is_by_slug]).await?;
    Ok(())
}

async fn shown(db: &impl GenericClient, integration: &McpIntegration) -> Result<Vec<Value>, ApiError> {
    const LIST: &str = "SELECT w.id, w.slug, g.enabled, g.is_by_slug, g.created_at, g.last_updated_at
        FROM mcp_integration_workspaces g JOIN workspaces w ON w.id = g.workspace_id
        WHERE g.integration_id = $1 AND g.organisation_id = $2 AND w.status = 'active'
        ORDER BY g.created_at DESC, g.id DESC";
    let mut workspaces = Vec::new();
    for row in db.query(LIST, &[&integration.id, &integration.organisation_id]).await? {
        let id: Uuid = row.try_get("id")?;
        let is_by_slug: bool = row.try_get("is_by_slug")?;
        let enabled: bool = row.try_get("enabled")?;
        workspaces.push(json!({
            "id": if is_by_slug { row.try_get::<_, String>("slug")? } else { id.to_string() },
            "enabled": enabled,
            "status": if enabled { "active" } else { "archived" },
            "created_at": row.try_get::<_, Time>("created_at")?,
            "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
        }));
    }
    Ok(workspaces)
}
