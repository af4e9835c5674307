//! The calling person's tokens at the server behind an MCP server: stored by a client that got them itself, shown as
//! masks, erased; and the link by which the gateway gets them. Nobody can name another person here.

use super::connections::{disconnect, own, owner};
use super::{McpServer, found};
use crate::app::App;
use crate::crud::{self, Action, Answer, Change};
use crate::http::{ApiError, Field, Time, time};
use crate::identity::Call;
use crate::mcp_oauth::access::may_use;
use crate::mcp_oauth::ensure::OAuthIntegration;
use crate::mcp_oauth::{Tokens, client, connection, flow, is_token};
use axum::Json;
use axum::extract::{Path, State};
use serde::Deserialize;
use serde_json::json;
use shared::identity::api_key::mask;
use shared::secrets::seal::Secret;
use uuid::Uuid;

#[derive(Deserialize)]
struct NewTokens {
    access_token: String,
    #[serde(default)]
    refresh_token: Field<String>,
    #[serde(default)]
    expires_at: Field<String>,
}

pub async fn read(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let server = found(&*db, &call, &name).await?;
    let stored = connection::load(&app, &*db, owner(&server, own(&call)?)).await?;
    let masked = |secret: Option<&Secret>| secret.and_then(Secret::expose_text).map(mask);
    Ok(Json(json!({
        "access_token": masked(stored.as_ref().map(|stored| &stored.access)),
        "refresh_token": masked(stored.as_ref().and_then(|stored| stored.refresh.as_ref())),
        "expires_at": stored.as_ref().and_then(|stored| stored.expires_at).map(Time),
    })))
}

/// What a person stores is used as it is: the gateway does not know who gave it, so it is not refreshed.
pub async fn store(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let server = crud::held::<McpServer>(&mut action, &name, None).await?;
    let person = own(&call)?;
    let sent: NewTokens = call.body()?;
    let checked = |field: &str, text: String| match is_token(&text) {
        true => Ok(Secret::from(text)),
        false => Err(ApiError::field(field, "must be 1 to 16384 visible ASCII characters")),
    };
    let tokens = Tokens {
        access: checked("access_token", sent.access_token)?,
        refresh: sent.refresh_token.value().map(|text| checked("refresh_token", text)).transpose()?,
        expires_at: sent.expires_at.value().map(|text| time::parsed("expires_at", &text)).transpose()?,
        scope: None,
    };
    refuse_without_access(&action, &server, person).await?;
    connection::store(&app, &action.tx, owner(&server, person), &tokens, None).await?;
    let after = json!({ "user_id": person, "connected": true, "expires_at": tokens.expires_at.map(Time) });
    action.commit(Change { resource_id: server.id.to_string(), before: None, after: Some(after) }).await?;
    Ok(Json(json!({ "success": true })))
}

pub async fn delete(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let server = crud::held::<McpServer>(&mut action, &name, None).await?;
    let person = own(&call)?;
    disconnect(&app, action, &server, person).await
}

/// `GET …/client-info`: the gateway's registration at the authorisation server.
pub async fn client_info(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let db = app.db.get().await?;
    let server = found(&*db, &call, &name).await?;
    let client = client::of_integration(&app, &*db, server.organisation_id, server.mcp_integration_id).await?;
    let secret = client.as_ref().and_then(|client| client.client_secret.as_ref()).and_then(Secret::expose_text);
    Ok(Json(json!({
        "client_id": client.as_ref().map(|client| &client.client_id),
        "client_secret": secret.map(mask),
    })))
}

/// `GET …/connect`: a link for the calling person, which serves once.
pub async fn connect(State(app): State<App>, call: Call, Path(name): Path<String>) -> Answer {
    let (server, person, integration) = {
        let db = app.db.get().await?;
        let server = found(&*db, &call, &name).await?;
        let person = own(&call)?;
        if !may_use(&*db, server.organisation_id, server.id, person).await? {
            return Err(NO_ACCESS);
        }
        let integration = OAuthIntegration::load(&app, &*db, server.organisation_id, server.mcp_integration_id).await?;
        (server, person, integration)
    };
    if !integration.is_per_person() {
        return Err(ApiError::invalid(format!(
            "Nobody connects to this MCP server by OAuth: its integration has the auth_type `{}`",
            integration.auth_type
        )));
    }
    let link = flow::begin(&app, owner(&server, person), &integration).await?;
    Ok(Json(json!({ "authorization_url": link.url, "expires_at": Time(link.expires_at) })))
}

const NO_ACCESS: ApiError = ApiError::Forbidden("You may not use this MCP server; PUT …/user-access decides that");

async fn refuse_without_access(action: &Action<'_>, server: &McpServer, person: Uuid) -> Result<(), ApiError> {
    if may_use(&action.tx, server.organisation_id, server.id, person).await? { Ok(()) } else { Err(NO_ACCESS) }
}
