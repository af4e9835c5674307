//! The server behind an MCP server: what it said of itself, greeting it, and asking it again. All of that is its
//! integration's, so a sync here serves every server of the same integration.

use super::McpServer;
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource as _, RowLock};
use crate::http::ApiError;
use crate::identity::{Call, tenancy};
use crate::resources::mcp_integrations::{McpIntegration, sync as upstream};
use axum::Json;
use axum::extract::{Path, State};
use shared::db::table::Filter;
use tokio_postgres::GenericClient;

pub async fn metadata(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let server = found(&*db, &call, &name).await?;
    let filter = Filter::default()
        .equals("organisation_id", call.caller.organisation_id())
        .equals("id", server.mcp_integration_id);
    let rows = McpIntegration::TABLE.find(&*db, &filter).await?;
    let row = rows.first().ok_or(ApiError::NotFound(McpIntegration::OBJECT))?;
    Ok(Json(McpIntegration::from_row(row)?.metadata()))
}

pub async fn test(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let target = {
        let db = app.db.get().await?;
        let server = found(&*db, &call, &name).await?;
        upstream::target_by_id(&app, &*db, (server.organisation_id, server.workspace_id), server.mcp_integration_id)
            .await?
    };
    Ok(Json(target.test(&app).await))
}

/// `POST /mcp-servers/{id}/metadata/sync` and `…/capabilities/sync`: one look at the server serves both.
pub async fn sync(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let organisation = call.caller.organisation_id();
    let target = {
        let db = app.db.get().await?;
        let server = found(&*db, &call, &name).await?;
        upstream::target_by_id(&app, &*db, (organisation, server.workspace_id), server.mcp_integration_id).await?
    };
    let learnt = target.learn(&app).await;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let server = crud::held::<McpServer>(&mut action, &name, None).await?;
    upstream::store(&action.tx, organisation, &target, &learnt).await?;
    let answer = upstream::outcome(&learnt);
    let change = Change { resource_id: server.id().to_string(), before: None, after: Some(answer.clone()) };
    action.commit(change).await?;
    Ok(Json(answer))
}

async fn found(db: &impl GenericClient, call: &Call, name: &str) -> Result<McpServer, ApiError> {
    let workspace = tenancy::asked(db, &call.caller, call.query().text("workspace_id")).await?;
    crud::find::<McpServer>(db, call, name, workspace, RowLock::No).await
}
