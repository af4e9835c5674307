//! Who is connected to the server behind an MCP server. Managers see and end everybody's connections, members their own.

use super::{McpServer, found};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::{ApiError, PageSizes, Time};
use crate::identity::{Call, tenancy};
use crate::mcp_oauth::connection::{self, Owner};
use axum::Json;
use axum::extract::{Path, State};
use serde_json::json;
use shared::routes::Scopes;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

const SIZES: PageSizes = PageSizes { default: 100, most: 500 };
const NOBODY: ApiError = ApiError::Forbidden("This credential acts for nobody that the organisation knows");

pub async fn list(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    const LIST: &str = "SELECT user_id, created_at, last_updated_at,
               expires_at IS NULL OR expires_at > now() OR refresh_token IS NOT NULL AS is_connected
        FROM mcp_connections WHERE server_id = $1 AND organisation_id = $2 AND ($3::uuid IS NULL OR user_id = $3)
        ORDER BY created_at DESC, id DESC LIMIT $4 OFFSET $5";
    const COUNT: &str = "SELECT count(*) FROM mcp_connections
        WHERE server_id = $1 AND organisation_id = $2 AND ($3::uuid IS NULL OR user_id = $3)";
    let (size, offset) = call.query().page(SIZES)?;
    let db = app.db.get().await?;
    let server = found(&*db, &call, &name).await?;
    let asked = call.query().uuid("user_id")?;
    let person = match (asked, call.caller.user_id()) {
        (Some(asked), _) => Some(of(&call, asked, &["mcp_servers.read"])?),
        (None, Some(own)) if !call.caller.acts_for_organisation() => Some(own),
        (None, _) if call.caller.holds("mcp_servers.read") => None,
        (None, _) => return Err(NOBODY),
    };
    let values: [&(dyn ToSql + Sync); 5] = [&server.id, &server.organisation_id, &person, &size, &offset];
    let mut data = Vec::new();
    for row in db.query(LIST, &values).await? {
        data.push(json!({
            "user_id": row.try_get::<_, Uuid>("user_id")?,
            "connected": row.try_get::<_, bool>("is_connected")?,
            "created_at": row.try_get::<_, Time>("created_at")?,
            "last_updated_at": row.try_get::<_, Time>("last_updated_at")?,
        }));
    }
    let total: i64 = db.query_one(COUNT, &values[..3]).await?.try_get(0)?;
    let has_more = offset.saturating_add(i64::try_from(data.len()).unwrap_or(0)) < total;
    Ok(Json(json!({ "object": "list", "data": data, "total": total, "has_more": has_more })))
}

/// Erases tokens, and tells the authorisation server that they are not used any more.
pub async fn delete(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let body = call.object()?;
    let sent = crud::text_of(&body, "user_id")?;
    let sent = sent.as_deref().or_else(|| call.query().text("user_id"));
    let asked = sent.map(|text| tenancy::id(text).ok_or_else(|| ApiError::field("user_id", "must be a UUID")));
    let asked = asked.transpose()?;
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let server = crud::held::<McpServer>(&mut action, &name, None).await?;
    let person = match (asked, call.caller.user_id()) {
        (Some(asked), _) => of(&call, asked, &["mcp_servers.update"])?,
        (None, Some(own)) => own,
        (None, None) => return Err(ApiError::field("user_id", "is required: this credential acts for nobody")),
    };
    disconnect(&app, action, &server, person).await
}

/// Erases a person's tokens. Also done when there are none: whoever asks wants them not to be there.
pub async fn disconnect(app: &App, action: Action<'_>, server: &McpServer, person: Uuid) -> Answer {
    let owner = owner(server, person);
    let is_dry_run = action.call.origin.is_dry_run;
    let gone = connection::erase(app, &action.tx, owner).await?;
    let shown = |is_connected: bool| json!({ "user_id": person, "connected": is_connected });
    let change =
        Change { resource_id: server.id.to_string(), before: Some(shown(gone.is_some())), after: Some(shown(false)) };
    action.commit(change).await?;
    if let Some(gone) = gone.filter(|_| !is_dry_run) {
        // They are erased; that a server could not be told is logged and no reason to fail.
        let _ = connection::withdraw(app, owner, gone).await;
    }
    Ok(Json(json!({ "success": true })))
}

pub fn owner(server: &McpServer, person: Uuid) -> Owner {
    Owner { organisation: server.organisation_id, workspace: server.workspace_id, server: server.id, person }
}

/// The person behind a call, for what is only theirs.
pub fn own(call: &Call) -> Result<Uuid, ApiError> {
    call.caller.user_id().ok_or(NOBODY)
}

/// Somebody else's needs more than one's own.
fn of(call: &Call, asked: Uuid, needs: &'static [&'static str]) -> Result<Uuid, ApiError> {
    let needs = Scopes::Any(needs);
    if call.caller.user_id() == Some(asked) || needs.are_met_by(&call.caller.scopes) {
        return Ok(asked);
    }
    Err(ApiError::MissingScope { needs })
}
