//! `POST /auth/session/key`: a key with which a page that somebody is signed in to calls models, since no cookie does. It
//! lives for a quarter of an hour and never longer than the session, serves one workspace, and does nothing but call. It
//! asks for the right to call and not for the right to make keys: there is none to keep, to hand on or to manage.

use super::session::own;
use crate::app::App;
use crate::crud::{self, Action, Change};
use crate::http::{ApiError, Time};
use crate::identity::Call;
use crate::identity::session::{self, SessionPerson};
use crate::resources::api_keys::issue::{self, NewSessionKey};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use tokio_postgres::GenericClient;
use uuid::Uuid;

const LIFE: TimeDelta = TimeDelta::minutes(15);
/// All that such a key may do, where its person may.
pub const SCOPES: [&str; 4] = ["completions.write", "models.list", "mcp.invoke", "prompts.render"];
const CALLS_MODELS: &str = "completions.write";
const OVER: ApiError = ApiError::Unauthenticated("The session is over; sign in again");

pub async fn create(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let (current, user) = own(&call)?;
    let asked = crud::text_of(&call.object()?, "workspace_id")?;
    let named = asked.as_deref().or_else(|| session::named_workspace(&call.origin.headers, &app.aliases));
    let person = SessionPerson { organisation_id: call.caller.organisation_id(), user_id: user };
    let mut db = app.db.get().await?;
    let mut action = Action::begin(&mut db, &app, &call).await?;
    let ends_at = held(&action.tx, person, current.id).await?;
    let (workspace, scopes) = allowed(&action.tx, person, named).await?;
    action.workspace_id = Some(workspace);
    let new = NewSessionKey {
        organisation: person.organisation_id,
        workspace,
        user,
        session: current.id,
        scopes: scopes.clone(),
        ends_at: ends_at.min(Utc::now() + LIFE),
    };
    let (id, key, expires_at) = issue::for_session(&action.tx, &app.api_key_prefix, new).await?;
    let mut shown = json!({
        "object": "session_key",
        "id": id,
        "workspace_id": workspace,
        "scopes": scopes,
        "expires_at": Time(expires_at),
    });
    action.commit(Change { resource_id: id.to_string(), before: None, after: Some(shown.clone()) }).await?;
    shown["key"] = key.into();
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(shown)).into_response())
}

/// Keeps the person and the session as they are until the key is made; when the session ends at the latest.
async fn held(db: &impl GenericClient, person: SessionPerson, session: Uuid) -> Result<DateTime<Utc>, ApiError> {
    const PERSON: &str = "SELECT FROM users WHERE id = $1 AND organisation_id = $2 AND status = 'active'
        FOR NO KEY UPDATE";
    const SESSION: &str = "SELECT least(
            s.created_at + make_interval(secs =>
                coalesce((o.auth_settings #>> '{session_settings,max_session_ttl}')::float8, 86400)),
            now() + make_interval(secs =>
                coalesce((o.auth_settings #>> '{session_settings,idle_timeout}')::float8, 28800))) AS ends_at
        FROM sessions s JOIN organisations o ON o.id = s.organisation_id
        WHERE s.id = $1 AND s.user_id = $2 AND s.organisation_id = $3 FOR KEY SHARE OF s";
    db.query_opt(PERSON, &[&person.user_id, &person.organisation_id]).await?.ok_or(OVER)?;
    let row = db.query_opt(SESSION, &[&session, &person.user_id, &person.organisation_id]).await?;
    Ok(row.ok_or(OVER)?.try_get("ends_at")?)
}

/// The workspace, and what the person may do there of what such a key may. Their membership stays until the key is made.
async fn allowed(
    db: &impl GenericClient,
    person: SessionPerson,
    named: Option<&str>,
) -> Result<(Uuid, Vec<String>), ApiError> {
    const MEMBER: &str = "SELECT FROM workspace_members WHERE workspace_id = $1 AND user_id = $2 FOR KEY SHARE";
    let rights = async || match session::effective_scopes(person, named, db).await? {
        None => Err(ApiError::Forbidden("This person is in no such workspace")),
        Some((None, _)) => Err(ApiError::field("workspace_id", "must name one workspace")),
        Some((Some(workspace), scopes)) => Ok((workspace, scopes)),
    };
    let (workspace, _) = rights().await?;
    db.query_opt(MEMBER, &[&workspace, &person.user_id]).await?;
    let (workspace, mut scopes) = rights().await?;
    scopes.retain(|scope| SCOPES.contains(&scope.as_str()));
    match scopes.iter().any(|scope| scope == CALLS_MODELS) {
        true => Ok((workspace, scopes)),
        false => Err(ApiError::Forbidden("Your role may not call models in this workspace")),
    }
}
