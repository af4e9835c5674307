//! A person's tokens at the server behind an MCP server, sealed. They are read and written by person and server together,
//! so that no statement here can reach somebody else's.

use super::client::{OAuthClient, of_integration};
use super::sealed_tokens::sealed;
use super::token_endpoint::revoke;
use super::{Tokens, due, place, refresh};
use crate::app::App;
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use shared::secrets::seal::{Sealed, Secret};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

/// Whose connection it is, and to what.
#[derive(Debug, Clone, Copy)]
pub struct Owner {
    pub organisation: Uuid,
    pub workspace: Uuid,
    pub server: Uuid,
    pub person: Uuid,
}

/// A connection, opened.
#[derive(Debug)]
pub struct Connection {
    pub id: Uuid,
    pub access: Secret,
    pub refresh: Option<Secret>,
    pub expires_at: Option<DateTime<Utc>>,
    pub issuer: Option<String>,
}

/// Stores tokens for a person, over those that were there. `issuer` is who gave them, where the gateway knows it: only
/// those are refreshed.
pub async fn store(
    app: &App,
    tx: &Transaction<'_>,
    owner: Owner,
    tokens: &Tokens,
    issuer: Option<&str>,
) -> Result<(), ApiError> {
    // Server, then person, as everybody who locks both. Held, so that neither leaves tokens behind by going meanwhile,
    // and two writes come one after the other.
    const SERVER: &str = "SELECT FROM mcp_servers WHERE id = $1 AND organisation_id = $2 AND workspace_id = $3
                          AND status = 'active' FOR SHARE";
    const HOLD: &str = "SELECT FROM users WHERE id = $1 AND organisation_id = $2 AND status = 'active'
                        FOR NO KEY UPDATE";
    const FIND: &str = "SELECT id FROM mcp_connections WHERE server_id = $1 AND user_id = $2 AND organisation_id = $3
                        FOR UPDATE";
    const PUT: &str =
        "INSERT INTO mcp_connections (id, organisation_id, workspace_id, server_id, user_id, access_token,
            refresh_token, expires_at, scope, issuer, refresh_due_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
        ON CONFLICT (id) DO UPDATE SET access_token = EXCLUDED.access_token, refresh_token = EXCLUDED.refresh_token,
            expires_at = EXCLUDED.expires_at, scope = EXCLUDED.scope, issuer = EXCLUDED.issuer,
            refresh_due_at = EXCLUDED.refresh_due_at, failures = 0, last_updated_at = clock_timestamp()";
    let Owner { organisation, workspace, server, person } = owner;
    if tx.query_opt(SERVER, &[&server, &organisation, &workspace]).await?.is_none() {
        return Err(ApiError::NotFound("mcp-server"));
    }
    if tx.query_opt(HOLD, &[&person, &organisation]).await?.is_none() {
        return Err(ApiError::NotFound("user"));
    }
    let found = tx.query_opt(FIND, &[&server, &person, &organisation]).await?;
    let id = found.map(|row| row.try_get::<_, Uuid>("id")).transpose()?.unwrap_or_else(Uuid::new_v4);
    let (access, refresh) = sealed(app, tx, organisation, id, tokens).await?;
    let is_refreshed = issuer.is_some() && refresh.is_some();
    let due = due(Utc::now(), tokens.expires_at).filter(|_| is_refreshed);
    let values: [&(dyn ToSql + Sync); 11] = [
        &id,
        &organisation,
        &workspace,
        &server,
        &person,
        &access,
        &refresh,
        &tokens.expires_at,
        &tokens.scope,
        &issuer,
        &due,
    ];
    tx.execute(PUT, &values).await?;
    Ok(())
}

pub async fn load(app: &App, db: &impl GenericClient, owner: Owner) -> Result<Option<Connection>, ApiError> {
    const FIND: &str = "SELECT id, access_token, refresh_token, expires_at, issuer FROM mcp_connections
                        WHERE server_id = $1 AND user_id = $2 AND organisation_id = $3";
    let row = db.query_opt(FIND, &[&owner.server, &owner.person, &owner.organisation]).await?;
    let Some(row) = row else { return Ok(None) };
    let id: Uuid = row.try_get("id")?;
    let of = |field| place(owner.organisation, "mcp_connections", id, field);
    let access = Sealed::from(row.try_get::<_, &[u8]>("access_token")?);
    let refresh = row.try_get::<_, Option<&[u8]>>("refresh_token")?.map(Sealed::from);
    Ok(Some(Connection {
        id,
        access: app.sealer.open(db, &of("access_token"), &access).await?,
        refresh: match refresh {
            Some(sealed) => Some(app.sealer.open(db, &of("refresh_token"), &sealed).await?),
            None => None,
        },
        expires_at: row.try_get("expires_at")?,
        issuer: row.try_get("issuer")?,
    }))
}

/// The token with which a person is known to the server behind; one that is over is refreshed first.
pub async fn bearer(app: &App, owner: Owner) -> Result<Option<Secret>, ApiError> {
    let found = load(app, &*app.db.get().await?, owner).await?;
    let Some(found) = found else { return Ok(None) };
    if found.expires_at.is_none_or(|at| at > Utc::now()) {
        return Ok(Some(found.access));
    }
    refresh::connection(app, found.id).await?;
    let found = load(app, &*app.db.get().await?, owner).await?;
    Ok(found.filter(|found| found.expires_at.is_none_or(|at| at > Utc::now())).map(|found| found.access))
}

/// Erases a person's tokens; answers what was erased, so that it can be revoked once that is true.
pub async fn erase(app: &App, tx: &Transaction<'_>, owner: Owner) -> Result<Option<Connection>, ApiError> {
    const ERASE: &str = "DELETE FROM mcp_connections WHERE id = $1 AND organisation_id = $2";
    let found = load(app, tx, owner).await?;
    if let Some(found) = &found {
        tx.execute(ERASE, &[&found.id, &owner.organisation]).await?;
    }
    Ok(found)
}

/// Tells the issuer that these tokens are not used any more. They are gone here already, whatever it answers.
pub async fn withdraw(app: &App, owner: Owner, gone: Connection) -> Result<(), ApiError> {
    const INTEGRATION: &str = "SELECT mcp_integration_id FROM mcp_servers WHERE id = $1 AND organisation_id = $2";
    let Some(issuer) = &gone.issuer else { return Ok(()) };
    let client = {
        let db = app.db.get().await?;
        let Some(row) = db.query_opt(INTEGRATION, &[&owner.server, &owner.organisation]).await? else { return Ok(()) };
        of_integration(app, &*db, owner.organisation, row.try_get(0)?).await?
    };
    let Some(client) = client.filter(|client: &OAuthClient| client.server.issuer == *issuer) else { return Ok(()) };
    if let Some(token) = &gone.refresh {
        revoke(&app.outbound, &client, token, "refresh_token").await;
    }
    revoke(&app.outbound, &client, &gone.access, "access_token").await;
    Ok(())
}
