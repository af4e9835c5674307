//! The caller behind a session's cookie: a person, with all scopes of a user key, narrowed by their roles as a key of
//! theirs would be. Owners and admins act for the whole organisation, too: on operations that only admin keys may call,
//! and on others when they name all workspaces (`x-gateway-workspace: *`). Each call looks session and role up, so that
//! what ends a session, or changes a role, counts for the next call.
//!
//! The token changes while it is used. An answer can be lost on its way, and with it the new token, so the one before
//! counts until the new one was used, and a minute more for calls that are under way; but no more than five times in a row.
//! When it comes back after that, or one that was replaced before it was used, two people have one, and the session has to
//! end for both: who is told so here (`AuthFailure::replayed`) ends it and leaves a row in the audit trail.

mod acting;

pub use acting::{SessionPerson, effective_scopes, named_workspace};

use crate::http::{ApiError, RECENT_MINUTES};
use crate::identity::Caller;
use crate::identity::caller::{AuthFailure, ReplayedSession};
use crate::identity::cookies::{CallerSession, Cookie, CookieNames, SameSite};
use crate::identity::csrf;
use acting::{ActingRights, OVER, rights};
use axum::http::{HeaderMap, HeaderValue};
use shared::headers::header_prefix::Aliases;
use shared::identity::api_key::{self, KeyHash};
use shared::model::{AccessStatus, ApiKey};
use shared::routes::{Method, SessionReach};
use std::sync::Arc;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Row};
use uuid::Uuid;

/// What of a request decides about its cookie.
pub struct CookieRequest<'a> {
    pub method: Method,
    pub headers: &'a HeaderMap,
    pub cookies: CookieNames,
    pub aliases: &'a Aliases,
    pub public_url: &'a str,
    pub reach: SessionReach,
}

struct FoundSession {
    id: Uuid,
    organisation_id: Uuid,
    user_id: Uuid,
    csrf_token: String,
    is_current: bool,
    /// The newest token was used.
    is_confirmed: bool,
    /// The token before the newest still counts.
    is_in_overlap: bool,
    is_live: bool,
    is_due: bool,
    is_stale: bool,
    /// Begun by a sign-in that is not long ago.
    is_recent: bool,
}

pub async fn authenticate(
    request: &CookieRequest<'_>,
    token: &str,
    db: &impl GenericClient,
) -> Result<Caller, AuthFailure> {
    let hash = KeyHash::from_key(token.as_bytes());
    let Some(found) = find(&hash, db).await? else { return Err(OVER.into()) };
    if !found.is_live {
        end(&found, db).await?;
        return Err(OVER.into());
    }
    if !found.is_current && !found.is_in_overlap {
        return Err(AuthFailure { replayed: Some(found.replayed()), ..OVER.into() });
    }
    if request.method != Method::Get {
        if !csrf::is_own_site(request.headers, request.public_url) {
            return Err(ApiError::Forbidden("A session may be used only by pages of the gateway's own address").into());
        }
        if !csrf::is_repeated(request.headers, request.aliases, &found.csrf_token) {
            return Err(ApiError::Forbidden(
                "A call with a session must repeat its csrf_token (GET /v1/auth/session) in x-gateway-csrf-token",
            )
            .into());
        }
    }
    let renewed = renew(request.cookies, &found, &hash, db).await?;
    let (csrf_token, is_recent) = (found.csrf_token.clone(), found.is_recent);
    let session = CallerSession { id: found.id, csrf_token, is_recent, renewed };
    let workspace = named_workspace(request.headers, request.aliases);
    let mut caller = caller(&found, hash, rights(found.person(), request.reach, workspace, db).await?);
    caller.session = Some(Arc::new(session));
    Ok(caller)
}

/// The same of a request that was let in before, for an answer that lasts: the session is not renewed by it, and not used.
pub async fn authenticate_again(
    before: &Caller,
    reach: SessionReach,
    workspace: Option<&str>,
    db: &impl GenericClient,
) -> Result<Caller, AuthFailure> {
    let Some(session) = &before.session else { return Err(OVER.into()) };
    let found = read(BY_ID, &[&before.key.hash.0.as_slice(), &i32::from(RECENT_MINUTES), &session.id], db).await?;
    let Some(found) = found.filter(|found| found.is_live) else { return Err(OVER.into()) };
    let mut caller = caller(&found, before.key.hash, rights(found.person(), reach, workspace, db).await?);
    caller.session = Some(session.clone());
    Ok(caller)
}

const BY_TOKEN: &str = "s.hash = $1 OR s.previous_hash = $1 OR s.superseded_hash = $1";
const BY_ID: &str = "s.id = $3";

async fn find(hash: &KeyHash, db: &impl GenericClient) -> Result<Option<FoundSession>, ApiError> {
    read(BY_TOKEN, &[&hash.0.as_slice(), &i32::from(RECENT_MINUTES)], db).await
}

/// `which` is a condition of this file, never a text that somebody sent.
async fn read(
    which: &'static str,
    values: &[&(dyn ToSql + Sync)],
    db: &impl GenericClient,
) -> Result<Option<FoundSession>, ApiError> {
    const FIND: &str = "SELECT s.id, s.organisation_id, s.user_id, s.csrf_token, s.hash = $1 AS is_current,
            s.confirmed_at IS NOT NULL AS is_confirmed,
            coalesce(s.previous_hash = $1, false) AND (
                s.confirmed_at IS NULL AND (s.lost_rotations < 4 OR s.rotated_at > now() - interval '15 minutes')
                OR greatest(s.rotated_at, s.confirmed_at) > now() - interval '1 minute') AS is_in_overlap,
            s.rotated_at < now() - interval '15 minutes' AS is_due,
            s.last_used_at < now() - interval '1 minute' AS is_stale,
            s.created_at > now() - make_interval(mins => $2) AS is_recent,
            u.status = 'active'
            AND s.created_at > now() - make_interval(secs =>
                coalesce((o.auth_settings #>> '{session_settings,max_session_ttl}')::float8, 86400))
            AND s.last_used_at > now() - make_interval(secs =>
                coalesce((o.auth_settings #>> '{session_settings,idle_timeout}')::float8, 28800)) AS is_live
        FROM sessions s
        JOIN users u ON u.id = s.user_id AND u.organisation_id = s.organisation_id
        JOIN organisations o ON o.id = s.organisation_id
        WHERE";
    let row = db.query_opt(&format!("{FIND} {which}"), values).await?;
    Ok(row.as_ref().map(FoundSession::from_row).transpose()?)
}

impl FoundSession {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            user_id: row.try_get("user_id")?,
            csrf_token: row.try_get("csrf_token")?,
            is_current: row.try_get("is_current")?,
            is_confirmed: row.try_get("is_confirmed")?,
            is_in_overlap: row.try_get("is_in_overlap")?,
            is_live: row.try_get("is_live")?,
            is_due: row.try_get("is_due")?,
            is_stale: row.try_get("is_stale")?,
            is_recent: row.try_get("is_recent")?,
        })
    }

    const fn person(&self) -> SessionPerson {
        SessionPerson { organisation_id: self.organisation_id, user_id: self.user_id }
    }

    const fn replayed(&self) -> ReplayedSession {
        ReplayedSession { id: self.id, organisation_id: self.organisation_id, user_id: self.user_id }
    }
}

/// Of a session whose time is over.
async fn end(found: &FoundSession, db: &impl GenericClient) -> Result<(), ApiError> {
    const END: &str = "DELETE FROM sessions WHERE id = $1 AND organisation_id = $2";
    db.execute(END, &[&found.id, &found.organisation_id]).await?;
    Ok(())
}

/// Replaces the token when it is due, also one that counts because its successor was never used. Of two calls at once,
/// one does it, and the other goes on with the token that it has.
async fn renew(
    cookies: CookieNames,
    found: &FoundSession,
    hash: &KeyHash,
    db: &impl GenericClient,
) -> Result<Option<HeaderValue>, ApiError> {
    const CONFIRM: &str = "UPDATE sessions SET confirmed_at = now(), last_used_at = now()
        WHERE id = $1 AND hash = $2 AND confirmed_at IS NULL";
    const ROTATE: &str = "UPDATE sessions SET previous_hash = $3, hash = $2, rotated_at = now(), confirmed_at = NULL,
            superseded_hash = CASE WHEN hash = $3 THEN NULL ELSE hash END,
            lost_rotations = CASE WHEN hash = $3 THEN 0 ELSE lost_rotations + 1 END, last_used_at = now()
        WHERE id = $1 AND (hash = $3 OR previous_hash = $3 AND confirmed_at IS NULL AND lost_rotations < 4)
          AND rotated_at < now() - interval '15 minutes'";
    const TOUCH: &str = "UPDATE sessions SET last_used_at = now() WHERE id = $1";
    let sent = hash.0.as_slice();
    // No successor is replaced sooner: an answer that is slow may still bring it.
    if found.is_due && (found.is_current || !found.is_confirmed) {
        let token = api_key::generate("");
        let new = KeyHash::from_key(token.as_bytes());
        let rotated = db.execute(ROTATE, &[&found.id, &new.0.as_slice(), &sent]).await?;
        let mut line = cookies.set(Cookie::Session, &token, SameSite::Lax, None);
        line.set_sensitive(true);
        return Ok((rotated == 1).then_some(line));
    }
    if found.is_current && !found.is_confirmed {
        db.execute(CONFIRM, &[&found.id, &sent]).await?;
    } else if found.is_stale {
        db.execute(TOUCH, &[&found.id]).await?;
    }
    Ok(None)
}

/// The key that the session stands for is stored nowhere.
fn caller(found: &FoundSession, hash: KeyHash, rights: ActingRights) -> Caller {
    let scopes = rights.effective_scopes().into();
    let key = ApiKey {
        id: found.id.into(),
        organisation_id: found.organisation_id.into(),
        workspace_id: rights.workspace_id.map(Into::into),
        user_id: Some(found.user_id.into()),
        kind: rights.kind,
        hash,
        scopes: rights.scopes.iter().map(|scope| (*scope).to_owned()).collect(),
        status: AccessStatus::Active,
        expires_at: None,
        previous: None,
        limits: None,
        defaults: None,
    };
    let own_workspaces = rights.own_workspaces.map(Into::into);
    Caller { scopes, own_workspaces, ..Caller::new(key, Some(rights.standing)) }
}
