//! The end of a workspace. It is archived with everything in it, in one transaction: its keys stop working, its people
//! leave, and its logs stay readable. Its name must be repeated, and what still lives in it stops a careless delete.

use super::Workspace;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource as _};
use crate::http::ApiError;
use crate::identity::Call;
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

/// A table whose rows belong to workspaces and have a status.
struct DependentTable {
    table: &'static str,
    /// What it is called in the refusal, and which of its rows were made by people; none for what never stops a delete.
    counted: Option<(&'static str, &'static str)>,
}

/// Each new table of things in a workspace joins here.
static DEPENDENTS: &[DependentTable] = &[
    DependentTable { table: "api_keys", counted: Some(("API keys", "creation_mode <> 'auto'")) },
    DependentTable { table: "configs", counted: Some(("configs", "true")) },
    DependentTable { table: "guardrails", counted: Some(("guardrails", "true")) },
    DependentTable { table: "prompts", counted: Some(("prompts", "true")) },
    // Locked after the prompts, as labelling a version does.
    DependentTable { table: "labels", counted: None },
    DependentTable { table: "prompt_partials", counted: Some(("prompt partials", "true")) },
    DependentTable { table: "collections", counted: None },
    DependentTable { table: "rate_limits_policies", counted: Some(("rate limits policies", "true")) },
    DependentTable { table: "usage_limits_policies", counted: Some(("usage limits policies", "true")) },
    DependentTable { table: "mcp_servers", counted: Some(("MCP servers", "true")) },
    DependentTable { table: "mcp_integrations", counted: Some(("MCP integrations", "true")) },
    DependentTable { table: "scim_workspace_mappings", counted: None },
    // First the handles, then the accounts that they are on.
    DependentTable { table: "providers", counted: Some(("providers", "creation_mode <> 'auto'")) },
    DependentTable { table: "integrations", counted: Some(("integrations", "NOT is_hidden")) },
];

#[derive(Deserialize)]
struct DeletionRequest {
    name: String,
    #[serde(default)]
    force_delete: bool,
}

pub async fn archive(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let deletion: DeletionRequest = call.body()?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let workspace = crud::held::<Workspace>(&mut action, &name, None).await?;
    if workspace.is_default {
        return Err(ApiError::invalid("The default workspace cannot be deleted"));
    }
    let shown = super::naming::joined(workspace.icon.as_deref(), &workspace.name);
    if ![&workspace.name, &shown].contains(&&deletion.name) {
        return Err(ApiError::field("name", "must repeat the name of the workspace (not its slug), as a confirmation"));
    }
    if !deletion.force_delete {
        refuse_while_in_use(&action, workspace.id).await?;
    }
    archive_dependents(&action, workspace.id).await?;
    Workspace::TABLE.remove(&action.tx, workspace.id).await?;
    let before = Some(workspace.shown(&call));
    action.commit(Change { resource_id: workspace.id.to_string(), before, after: None }).await?;
    Ok(Json(json!({})))
}

async fn refuse_while_in_use(action: &Action<'_>, workspace: Uuid) -> Result<(), ApiError> {
    let mut present = Vec::new();
    for (table, kind, condition) in
        DEPENDENTS.iter().filter_map(|one| one.counted.map(|(kind, condition)| (one.table, kind, condition)))
    {
        let sql = format!(
            "SELECT EXISTS (SELECT FROM {table} WHERE workspace_id = $1 AND status <> 'archived' AND {condition})"
        );
        if action.tx.query_one(&sql, &[&workspace]).await?.try_get(0)? {
            present.push(kind);
        }
    }
    if present.is_empty() {
        return Ok(());
    }
    Err(ApiError::Conflict(format!("The workspace still has {} (force_delete archives them too)", present.join(", "))))
}

pub async fn archive_dependents(action: &Action<'_>, workspace: Uuid) -> Result<(), ApiError> {
    for DependentTable { table, .. } in DEPENDENTS {
        let sql = format!(
            "UPDATE {table} SET status = 'archived', last_updated_at = now() WHERE workspace_id = $1 AND status <> 'archived'"
        );
        action.tx.execute(&sql, &[&workspace]).await?;
    }
    action.tx.execute("DELETE FROM workspace_members WHERE workspace_id = $1", &[&workspace]).await?;
    Ok(())
}
