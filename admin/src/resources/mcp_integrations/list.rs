//! Which MCP integrations a call may see: those of the organisation and of its workspaces; for a workspace, its own and
//! those that it was granted.

use super::McpIntegration;
use crate::app::App;
use crate::crud::{self, Action, Answer, Resource as _};
use crate::http::{ApiError, FieldFault};
use crate::identity::{Call, tenancy};
use axum::Json;
use axum::extract::{Path, State};
use serde_json::json;
use shared::db::table::Filter;
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub async fn list(State(app): State<App>, call: Call) -> Answer {
    let query = call.query();
    let page = query.page(McpIntegration::PAGES)?;
    let mut filter = levels(&call)?.holds("status <> 'archived'");
    if let Some(text) = query.text("search") {
        filter = filter.contains("name", text);
    }
    let db = app.db.get().await?;
    let workspace = tenancy::asked(&*db, &call.caller, query.text("workspace_id")).await?;
    let found = McpIntegration::TABLE.page(&*db, &visible(&call, workspace).join(filter), page).await?;
    let data = found.rows.iter().map(|row| Ok(McpIntegration::from_row(row)?.shown(&call)));
    let data = data.collect::<Result<Vec<_>, ApiError>>()?;
    let has_more = page.1.saturating_add(i64::try_from(data.len()).unwrap_or(0)) < found.total;
    Ok(Json(json!({ "object": "list", "total": found.total, "has_more": has_more, "data": data })))
}

pub async fn read(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    Ok(Json(readable(&*db, &call, &name).await?.shown(&call)))
}

pub async fn metadata(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    Ok(Json(readable(&*db, &call, &name).await?.metadata()))
}

pub async fn update(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let id = id_of(&app, &call, &name).await?;
    crud::update::<McpIntegration>(State(app), call, Path(id.to_string())).await
}

pub async fn delete(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let id = id_of(&app, &call, &name).await?;
    let _ = crud::delete::<McpIntegration>(State(app), call, Path(id.to_string())).await?;
    Ok(Json(json!({ "success": true })))
}

async fn id_of(app: &App, call: &Call, name: &str) -> Result<Uuid, ApiError> {
    let db = app.db.get().await?;
    Ok(found(&*db, call, name).await?.id)
}

/// The integration that a path names among those that the caller may see.
pub async fn found(db: &impl GenericClient, call: &Call, name: &str) -> Result<McpIntegration, ApiError> {
    const NOT_FOUND: ApiError = ApiError::NotFound(McpIntegration::OBJECT);
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    let named = tenancy::named(&McpIntegration::TABLE, name).ok_or(NOT_FOUND)?;
    let filter = visible(call, workspace).join(named).holds("status <> 'archived'");
    let rows = McpIntegration::TABLE.find(db, &filter).await?;
    let row = rows.first().ok_or(NOT_FOUND)?;
    if call.origin.operation.reads_object() {
        call.origin.tag(crud::tag_of(row)?);
    }
    Ok(McpIntegration::from_row(row)?)
}

pub async fn readable(db: &impl GenericClient, call: &Call, name: &str) -> Result<McpIntegration, ApiError> {
    let found = found(db, call, name).await?;
    found.may_read(call)?;
    Ok(found)
}

/// The same, held until the transaction ends, for a change.
pub async fn held(action: &mut Action<'_>, name: &str) -> Result<McpIntegration, ApiError> {
    let id = found(&action.tx, action.call, name).await?.id;
    crud::held::<McpIntegration>(action, &id.to_string(), None).await
}

fn visible(call: &Call, workspace: Option<Uuid>) -> Filter {
    let filter = Filter::default().equals("organisation_id", call.caller.organisation_id());
    match workspace {
        None => filter,
        Some(id) => filter.and(
            "(workspace_id = ? OR (workspace_id IS NULL AND EXISTS (SELECT FROM mcp_integration_workspaces g
              WHERE g.integration_id = mcp_integrations.id AND g.workspace_id = ? AND g.enabled)))",
            id,
        ),
    }
}

/// What `type` asks for, within what the caller's scopes open.
fn levels(call: &Call) -> Result<Filter, ApiError> {
    let holds = |scope: &str| call.caller.holds(scope);
    let (organisation, workspace) = match call.query().text("type") {
        None | Some("all") => (true, true),
        Some("organisation") => (true, false),
        Some("workspace") => (false, true),
        Some(other) => {
            let allowed = ["workspace", "organisation", "all"];
            return Err(ApiError::Faults(vec![FieldFault::not_among("type", other, &allowed)]));
        }
    };
    let organisation = organisation && holds("organisation_mcp_integrations.list");
    let workspace = workspace && holds("workspace_mcp_integrations.list");
    Ok(match (organisation, workspace) {
        (true, true) => Filter::default(),
        (true, false) => Filter::default().holds("workspace_id IS NULL"),
        (false, true) => Filter::default().holds("workspace_id IS NOT NULL"),
        (false, false) => Filter::default().holds("false"),
    })
}
