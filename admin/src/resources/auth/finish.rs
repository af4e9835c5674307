//! The end of every login by an identity provider: the person is found or made, gets what their claims give and a
//! session, and the browser goes on to where it wanted. One transaction, with its row in the audit trail; a refusal
//! leaves a row of its own.

use crate::app::App;
use crate::audit::{self, AuditRecord};
use crate::http::ApiError;
use crate::identity::call::RequestOrigin;
use crate::identity::cookies::Cookie;
use crate::resources::api_keys::issue::{self, NewMemberKey};
use crate::resources::invites;
use crate::resources::login::arrival;
use crate::resources::login::arrival::{Arrival, Arrived, JoinedWorkspace};
use crate::resources::login::sessions;
use crate::resources::login::sessions::{NewSession, StartedSession};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;
use std::time::Instant;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

/// Bytes of a query that the trail keeps whole.
const MAX_QUERY_LENGTH: usize = 8 << 10;

/// What a login brought beside the person.
#[derive(Debug, Default)]
pub struct ProviderSession<'a> {
    /// What the provider calls its session (`sid`, `SessionIndex`).
    pub id: Option<&'a str>,
    /// For a logout at the provider.
    pub id_token: Option<&'a str>,
}

/// `return_to` was checked when the login began.
pub async fn finish(
    app: &App,
    origin: &RequestOrigin,
    arrival: &Arrival,
    provider_session: ProviderSession<'_>,
    return_to: &str,
) -> Result<Response, ApiError> {
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    let (arrived, session) = match signed_in(&tx, app, origin, arrival, provider_session).await {
        Ok(done) => done,
        Err(refused) => {
            tx.rollback().await?;
            drop(db);
            record_refusal(app, origin, arrival.organisation_id, &refused).await?;
            return Err(refused);
        }
    };
    record(&tx, origin, arrival, &arrived, session.id).await?;
    tx.commit().await?;
    Ok(redirect(return_to, [session.cookie, app.cookies.clear(Cookie::Login)]))
}

async fn signed_in(
    tx: &Transaction<'_>,
    app: &App,
    origin: &RequestOrigin,
    arrival: &Arrival,
    provider_session: ProviderSession<'_>,
) -> Result<(Arrived, StartedSession), ApiError> {
    let arrived = arrival::arrive(tx, arrival).await?;
    for joined in &arrived.joined {
        give_key(tx, app, arrival.organisation_id, arrived.user_id, joined).await?;
    }
    let new = NewSession {
        organisation_id: arrival.organisation_id,
        user_id: arrived.user_id,
        provider: arrival.provider,
        issuer: Some(&arrival.issuer),
        subject: Some(&arrival.subject),
        provider_session: provider_session.id,
        id_token: provider_session.id_token,
    };
    let session = sessions::start(tx, app, origin, new).await?;
    Ok((arrived, session))
}

/// The key that was promised, or that everybody gets here. Nobody is shown its secret; its owner rotates it.
async fn give_key(
    tx: &Transaction<'_>,
    app: &App,
    organisation: Uuid,
    user: Uuid,
    joined: &JoinedWorkspace,
) -> Result<(), ApiError> {
    let promise = joined.promised_key.as_ref().and_then(invites::promised_key);
    let workspace = joined.workspace_id;
    let joiner = NewMemberKey { organisation, workspace, user, by: user, promise, is_shown: false };
    issue::for_joiner(tx, &app.api_key_prefix, joiner).await.map(drop)
}

async fn record(
    db: &impl GenericClient,
    origin: &RequestOrigin,
    arrival: &Arrival,
    arrived: &Arrived,
    session: Uuid,
) -> Result<(), ApiError> {
    let mut record = record_of(origin, arrival.organisation_id);
    record.user_id = Some(arrived.user_id);
    record.resource_id = Some(session.to_string());
    let joined: Vec<Uuid> = arrived.joined.iter().map(|one| one.workspace_id).collect();
    record.after = Some(json!({
        "user_id": arrived.user_id,
        "email": arrived.email,
        "provider": arrival.provider.as_str(),
        "issuer": arrival.issuer,
        "is_provisioned": arrived.is_new,
        "invite_id": arrived.invite_id,
        "role": arrived.new_role,
        "joined_workspaces": joined,
        "left_workspaces": arrived.left,
    }));
    Ok(audit::record(db, &record).await?)
}

/// A login that failed, in the trail of the organisation whose provider it was. Anybody can fail to sign in, so these rows
/// come out of the bound that rejected tokens have; what gets none is counted.
pub async fn record_refusal(
    app: &App,
    origin: &RequestOrigin,
    organisation: Uuid,
    refused: &ApiError,
) -> Result<(), ApiError> {
    let may_write = app.tokens.failures.lock().may_write(organisation, Instant::now());
    if !may_write {
        app.metrics.unrecorded_tokens.inc();
        return Ok(());
    }
    let db = app.db.get().await?;
    Ok(audit::record(&*db, &refusal_of(origin, organisation, refused)).await?)
}

pub fn refusal_of(origin: &RequestOrigin, organisation: Uuid, refused: &ApiError) -> AuditRecord {
    let mut record = record_of(origin, organisation);
    record.response_status_code = refused.status().as_u16().into();
    record.error = Some(format!("{} {refused}", refused.code()).replace('\0', "\u{fffd}"));
    record
}

/// A code that was refused before it was redeemed could still be. Whatever else was sent is cut: who sends it is not known.
fn record_of(origin: &RequestOrigin, organisation: Uuid) -> AuditRecord {
    let mut record = AuditRecord::for_visitor(origin, organisation);
    if record.query_params.to_string().len() > MAX_QUERY_LENGTH {
        record.query_params = json!({ "cut": format!("{} bytes", origin.uri.query().map_or(0, str::len)) });
    }
    for name in ["code", "state"] {
        if let Some(value) = record.query_params.get_mut(name) {
            *value = "*****".into();
        }
    }
    record
}

/// 303: whatever brought the browser here, it goes on with a GET.
pub fn redirect(to: &str, cookies: impl IntoIterator<Item = HeaderValue>) -> Response {
    let Ok(location) = HeaderValue::from_str(to) else { return ApiError::Internal.into_response() };
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie);
    }
    response
}
