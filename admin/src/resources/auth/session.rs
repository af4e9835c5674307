//! A person and their sessions: who am I, where am I signed in, end one, sign out. A logout ends our session at once and
//! says where the browser goes to end the identity provider's too.

use crate::app::App;
use crate::crud::{Action, Answer, Change};
use crate::http::{ApiError, Time};
use crate::identity::cookies::{CallerSession, Cookie};
use crate::identity::oidc::OidcProvider;
use crate::identity::session::{self, SessionPerson};
use crate::identity::{Call, tenancy};
use crate::resources::login::sessions;
use crate::resources::login::sessions::SessionOrigin;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use shared::secrets::seal::Secret;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Of the person's session; the gate let nobody else in.
pub(super) fn own(call: &Call) -> Result<(&CallerSession, Uuid), ApiError> {
    match (&call.caller.session, call.caller.user_id()) {
        (Some(session), Some(user)) => Ok((&**session, user)),
        _ => Err(ApiError::Unauthenticated("No session was sent")),
    }
}

pub async fn read(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let (current, user) = own(&call)?;
    let db = app.db.get().await?;
    let organisation = call.caller.organisation_id();
    let mut shown = person(&*db, organisation, user, current.id).await?;
    shown["csrf_token"] = current.csrf_token.as_str().into();
    shown["workspaces"] = workspaces(&*db, organisation, user).await?;
    let person = SessionPerson { organisation_id: organisation, user_id: user };
    let named = session::named_workspace(&call.origin.headers, &app.aliases);
    let acting = session::effective_scopes(person, named, &*db).await?;
    shown["acting"] =
        acting.map_or(Value::Null, |(workspace, scopes)| json!({ "workspace_id": workspace, "scopes": scopes }));
    // The token in it is for this page alone.
    Ok(([(header::CACHE_CONTROL, "no-store")], Json(shown)).into_response())
}

async fn person(db: &impl GenericClient, organisation: Uuid, user: Uuid, session: Uuid) -> Result<Value, ApiError> {
    const FIND: &str = "SELECT u.email, u.first_name, u.last_name, u.role, o.name, s.provider, s.created_at,
            s.created_at + make_interval(secs =>
                coalesce((o.auth_settings #>> '{session_settings,max_session_ttl}')::float8, 86400)) AS expires_at
        FROM sessions s
        JOIN users u ON u.id = s.user_id AND u.organisation_id = s.organisation_id
        JOIN organisations o ON o.id = s.organisation_id
        WHERE s.id = $1 AND s.user_id = $2 AND s.organisation_id = $3";
    let row = db.query_opt(FIND, &[&session, &user, &organisation]).await?;
    let row = row.ok_or(ApiError::Unauthenticated("The session is over; sign in again"))?;
    Ok(json!({
        "object": "session",
        "id": session,
        "provider": row.try_get::<_, &str>("provider")?,
        "user": {
            "id": user,
            "email": row.try_get::<_, &str>("email")?,
            "first_name": row.try_get::<_, Option<&str>>("first_name")?,
            "last_name": row.try_get::<_, Option<&str>>("last_name")?,
            "role": row.try_get::<_, &str>("role")?,
        },
        "organisation": { "id": organisation, "name": row.try_get::<_, &str>("name")? },
        "created_at": row.try_get::<_, Time>("created_at")?,
        "expires_at": row.try_get::<_, Time>("expires_at")?,
    }))
}

/// Where the person may act (`x-gateway-workspace`), with their role there.
async fn workspaces(db: &impl GenericClient, organisation: Uuid, user: Uuid) -> Result<Value, ApiError> {
    const FIND: &str = "SELECT w.id, w.slug, w.name,
            CASE WHEN u.role IN ('owner', 'admin') THEN 'admin' ELSE m.role END AS role
        FROM users u
        JOIN workspaces w ON w.organisation_id = u.organisation_id AND w.status = 'active'
        LEFT JOIN workspace_members m ON m.workspace_id = w.id AND m.user_id = u.id
        WHERE u.id = $1 AND u.organisation_id = $2 AND (m.role IS NOT NULL OR u.role IN ('owner', 'admin'))
        ORDER BY w.is_default DESC, w.name, w.id LIMIT 1000";
    let rows = db.query(FIND, &[&user, &organisation]).await?;
    let each = rows.iter().map(|row| {
        Ok(json!({
            "id": row.try_get::<_, Uuid>("id")?,
            "slug": row.try_get::<_, &str>("slug")?,
            "name": row.try_get::<_, &str>("name")?,
            "role": row.try_get::<_, &str>("role")?,
        }))
    });
    each.collect::<Result<Value, ApiError>>()
}

pub async fn list(State(app): State<App>, call: Call) -> Answer {
    let (session, user) = own(&call)?;
    let db = app.db.get().await?;
    let all = sessions::list(&*db, call.caller.organisation_id(), user, session.id).await?;
    Ok(Json(json!({ "object": "list", "total": all.len(), "data": all })))
}

pub async fn end(State(app): State<App>, call: Call, Path(id): Path<String>) -> Answer {
    let (_, user) = own(&call)?;
    let id = tenancy::id(&id).ok_or(ApiError::NotFound("session"))?;
    let mut db = app.db.get().await?;
    let action = Action::begin(&mut db, &app, &call).await?;
    if !sessions::end(&action.tx, action.organisation_id(), user, id).await? {
        return Err(ApiError::NotFound("session"));
    }
    action.commit(Change { resource_id: id.to_string(), ..Change::default() }).await?;
    Ok(Json(json!({})))
}

pub async fn logout(State(app): State<App>, call: Call) -> Result<Response, ApiError> {
    let (session, user) = own(&call)?;
    let organisation = call.caller.organisation_id();
    let (origin, settings) = {
        let mut db = app.db.get().await?;
        let origin = sessions::origin(&*db, &app, organisation, session.id).await?;
        let settings = auth_settings(&*db, organisation).await?;
        let action = Action::begin(&mut db, &app, &call).await?;
        sessions::end(&action.tx, organisation, user, session.id).await?;
        action.commit(Change { resource_id: session.id.to_string(), ..Change::default() }).await?;
        (origin, settings)
    };
    let logout_url = match origin {
        Some(origin) => provider_logout(&app, &origin, &settings).await,
        None => None,
    };
    let cookie = app.cookies.clear(Cookie::Session);
    Ok(([(header::SET_COOKIE, cookie)], Json(json!({ "logout_url": logout_url }))).into_response())
}

async fn auth_settings(db: &impl GenericClient, organisation: Uuid) -> Result<Value, ApiError> {
    const FIND: &str = "SELECT auth_settings FROM organisations WHERE id = $1";
    Ok(db.query_one(FIND, &[&organisation]).await?.try_get("auth_settings")?)
}

/// Where the provider ends its own session (RP-initiated logout); none where it cannot, or cannot be asked now.
async fn provider_logout(app: &App, origin: &SessionOrigin, settings: &Value) -> Option<String> {
    let provider = OidcProvider::by_issuer(settings, origin.issuer.as_deref()?)?;
    let metadata = app.oidc.metadata(&provider.issuer).await.ok()?;
    let mut url = url::Url::parse(metadata.end_session_endpoint.as_deref()?).ok()?;
    let hint = origin.id_token.as_ref().and_then(Secret::expose_text);
    url.query_pairs_mut()
        .append_pair("client_id", &provider.client_id)
        .append_pair("post_logout_redirect_uri", &format!("{}/", app.public_url))
        .extend_pairs(hint.map(|hint| ("id_token_hint", hint)));
    Some(url.into())
}
