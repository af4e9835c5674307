//! Sessions of people: begun by a login, ended by a logout, by an administrator, by the identity provider, or by time.
//! Each call looks its session up (`identity::session`), so that whatever deletes the row ends it at once.

use super::LoginProvider;
use crate::app::App;
use crate::http::{ApiError, Time};
use crate::identity::call::RequestOrigin;
use crate::identity::cookies::{Cookie, SameSite};
use axum::http::{HeaderValue, header};
use serde::Serialize;
use shared::identity::api_key::{self, KeyHash};
use shared::secrets::seal::{Sealed, SealedPlace};
use std::net::IpAddr;
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

/// Sessions of one person at once; the one that was used longest ago ends for a new one.
const MAX_SESSIONS: i64 = 50;

/// Whose session, and who vouched for them.
#[derive(Debug)]
pub struct NewSession<'a> {
    pub organisation_id: Uuid,
    pub user_id: Uuid,
    pub provider: LoginProvider,
    pub issuer: Option<&'a str>,
    pub subject: Option<&'a str>,
    /// What the provider calls its own session, for a logout that comes from there.
    pub provider_session: Option<&'a str>,
    /// For a logout at the provider.
    pub id_token: Option<&'a str>,
}

pub struct StartedSession {
    pub id: Uuid,
    /// For `Set-Cookie`.
    pub cookie: HeaderValue,
}

/// Begins a session with a token that nobody has seen before, whatever cookie came with the login.
pub async fn start(
    tx: &Transaction<'_>,
    app: &App,
    origin: &RequestOrigin,
    new: NewSession<'_>,
) -> Result<StartedSession, ApiError> {
    const INSERT: &str = "INSERT INTO sessions (id, organisation_id, user_id, hash, provider, issuer, subject,
            provider_session, id_token, csrf_token, client_ip, user_agent)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";
    const MAKE_ROOM: &str = "DELETE FROM sessions WHERE id IN (
            SELECT id FROM sessions WHERE user_id = $1 AND organisation_id = $2 ORDER BY last_used_at DESC OFFSET $3)";
    let (id, token, csrf_token) = (Uuid::new_v4(), api_key::generate(""), api_key::generate(""));
    let hash = KeyHash::from_key(token.as_bytes()).0.to_vec();
    let provider = new.provider.as_str();
    let id_token = sealed(tx, app, new.organisation_id, id, new.id_token).await?;
    let user_agent = origin.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
    let user_agent: Option<String> = user_agent.map(|text| text.chars().take(255).collect());
    let values: [&(dyn ToSql + Sync); 12] = [
        &id,
        &new.organisation_id,
        &new.user_id,
        &hash,
        &provider,
        &new.issuer,
        &new.subject,
        &new.provider_session,
        &id_token,
        &csrf_token,
        &origin.seen.client_ip,
        &user_agent,
    ];
    tx.execute(MAKE_ROOM, &[&new.user_id, &new.organisation_id, &(MAX_SESSIONS - 1)]).await?;
    tx.execute(INSERT, &values).await?;
    Ok(StartedSession { id, cookie: app.cookies.set(Cookie::Session, &token, SameSite::Lax, None) })
}

fn place(organisation: Uuid, row: Uuid) -> SealedPlace {
    SealedPlace { organisation, table: "sessions", row, field: "id_token" }
}

/// Without a master key there is nothing to seal with, and a logout at the provider goes without the hint.
async fn sealed(
    tx: &Transaction<'_>,
    app: &App,
    organisation: Uuid,
    session: Uuid,
    id_token: Option<&str>,
) -> Result<Option<Vec<u8>>, ApiError> {
    match id_token {
        Some(token) if app.sealer.has_master_key() => {
            let sealed = app.sealer.seal(tx, &place(organisation, session), token.as_bytes()).await?;
            Ok(Some(sealed.to_vec()))
        }
        _ => Ok(None),
    }
}

/// A session as its person sees it.
#[derive(Debug, Serialize)]
pub struct ListedSession {
    pub id: Uuid,
    pub provider: String,
    pub client_ip: Option<IpAddr>,
    pub user_agent: Option<String>,
    pub created_at: Time,
    pub last_used_at: Time,
    pub is_current: bool,
}

pub async fn list(
    db: &impl GenericClient,
    organisation: Uuid,
    user: Uuid,
    current: Uuid,
) -> Result<Vec<ListedSession>, ApiError> {
    const LIST: &str = "SELECT id, provider, client_ip, user_agent, created_at, last_used_at FROM sessions
        WHERE user_id = $1 AND organisation_id = $2 ORDER BY last_used_at DESC, id LIMIT 100";
    let rows = db.query(LIST, &[&user, &organisation]).await?;
    let listed = rows.iter().map(|row| {
        let id = row.try_get("id")?;
        Ok(ListedSession {
            id,
            provider: row.try_get("provider")?,
            client_ip: row.try_get("client_ip")?,
            user_agent: row.try_get("user_agent")?,
            created_at: row.try_get("created_at")?,
            last_used_at: row.try_get("last_used_at")?,
            is_current: id == current,
        })
    });
    listed.collect()
}

/// Ends one session of a person; false if they have no such session.
pub async fn end(db: &impl GenericClient, organisation: Uuid, user: Uuid, session: Uuid) -> Result<bool, ApiError> {
    const END: &str = "DELETE FROM sessions WHERE id = $1 AND user_id = $2 AND organisation_id = $3";
    Ok(db.execute(END, &[&session, &user, &organisation]).await? == 1)
}

/// Ends all sessions of a person, and the links by which they could begin new ones.
pub async fn end_all(db: &impl GenericClient, organisation: Uuid, user: Uuid) -> Result<u64, ApiError> {
    const LINKS: &str = "DELETE FROM login_links WHERE user_id = $1 AND organisation_id = $2";
    const SESSIONS: &str = "DELETE FROM sessions WHERE user_id = $1 AND organisation_id = $2";
    db.execute(LINKS, &[&user, &organisation]).await?;
    Ok(db.execute(SESSIONS, &[&user, &organisation]).await?)
}

/// Ends the sessions that a provider vouched for: of one of its own sessions, of one of its people, or of both.
pub async fn end_by_provider(
    db: &impl GenericClient,
    organisation: Uuid,
    issuer: &str,
    subject: Option<&str>,
    provider_session: Option<&str>,
) -> Result<Vec<Uuid>, ApiError> {
    const END: &str = "DELETE FROM sessions
        WHERE organisation_id = $1 AND issuer = $2 AND ($3::text IS NULL OR subject = $3)
          AND ($4::text IS NULL OR provider_session = $4) AND ($3 IS NOT NULL OR $4 IS NOT NULL)
        RETURNING user_id";
    let rows = db.query(END, &[&organisation, &issuer, &subject, &provider_session]).await?;
    Ok(rows.iter().map(|row| row.try_get("user_id")).collect::<Result<Vec<Uuid>, _>>()?)
}

/// How a session came to be, for a logout at the provider.
#[derive(Debug)]
pub struct SessionOrigin {
    pub issuer: Option<String>,
    pub id_token: Option<shared::secrets::seal::Secret>,
}

pub async fn origin(
    db: &impl GenericClient,
    app: &App,
    organisation: Uuid,
    session: Uuid,
) -> Result<Option<SessionOrigin>, ApiError> {
    const FIND: &str = "SELECT issuer, id_token FROM sessions WHERE id = $1 AND organisation_id = $2";
    let Some(row) = db.query_opt(FIND, &[&session, &organisation]).await? else { return Ok(None) };
    let sealed: Option<Vec<u8>> = row.try_get("id_token")?;
    let id_token = match sealed {
        Some(bytes) => app.sealer.open(db, &place(organisation, session), &Sealed::from(bytes.as_slice())).await.ok(),
        None => None,
    };
    Ok(Some(SessionOrigin { issuer: row.try_get("issuer")?, id_token }))
}
