//! The server behind an MCP server: what it said of itself, greeting it, and asking it again. All of that is its
//! integration's, so a sync here serves every server of the same integration. A server that knows people by their tokens
//! is asked with those of the person who asks for it, and with nobody else's.

use super::connections::owner;
use super::{McpServer, found};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change, Resource as _};
use crate::http::ApiError;
use crate::identity::Call;
use crate::mcp_oauth::client::is_per_person;
use crate::mcp_oauth::connection;
use crate::resources::mcp_integrations::{McpIntegration, sync as upstream};
use axum::Json;
use axum::extract::{Path, State};
use shared::db::table::Filter;

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
    let target = target(&app, &call, &name).await?;
    Ok(Json(target.test(&app).await))
}

/// `POST /mcp-servers/{id}/metadata/sync` and `…/capabilities/sync`: one look at the server serves both.
pub async fn sync(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let organisation = call.caller.organisation_id();
    let target = target(&app, &call, &name).await?;
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

/// The server behind as it is called for this caller.
async fn target(app: &App, call: &Call, name: &str) -> Result<upstream::Target, ApiError> {
    let (server, target) = {
        let db = app.db.get().await?;
        let server = found(&*db, call, name).await?;
        let place = (server.organisation_id, server.workspace_id);
        let target = upstream::target_by_id(app, &*db, place, server.mcp_integration_id).await?;
        (server, target)
    };
    let token = match call.caller.user_id() {
        Some(person) if is_per_person(&server.auth_type) => connection::bearer(app, owner(&server, person)).await?,
        _ => None,
    };
    Ok(target.with_bearer(token.as_ref()))
}
