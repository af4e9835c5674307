//! Refreshing tokens ahead of their end. Many servers give a new refresh token each time and take a repeated old one for
//! theft, so each row is leased by moving its due time: no two admins present the same token, and no transaction stays
//! open while a server is asked. What a person changed meanwhile is not overwritten.

use super::client::{OAuthClient, of_integration};
use super::own_token::fetch_own_token;
use super::place;
use super::store_refreshed::{LeasedRow, store_refreshed};
use super::token_endpoint::{TokenError, tokens};
use crate::app::App;
use crate::http::ApiError;
use chrono::{TimeDelta, Utc};
use shared::secrets::seal::{Sealed, Secret};
use tokio_postgres::Row;
use uuid::Uuid;

struct Leased {
    row: LeasedRow,
    failures: i32,
    client: OAuthClient,
}

/// Refreshes a connection, if that is due and nobody else is at it.
pub async fn connection(app: &App, id: Uuid) -> Result<(), ApiError> {
    let Some(leased) = lease(app, id).await? else { return Ok(()) };
    let now = Utc::now();
    let Some(token) = leased.row.refresh.expose_text() else { return give_up(app, &leased).await };
    let resource = leased.client.resource.as_str();
    let form = vec![("grant_type", "refresh_token"), ("refresh_token", token), ("resource", resource)];
    let got = tokens(&app.outbound, &leased.client, form, now).await;
    match got {
        Ok(got) => store_refreshed(app, leased.row, got, now).await,
        Err(TokenError::Dead) => give_up(app, &leased).await,
        Err(fault) => {
            tracing::warn!(%fault, connection = %leased.row.id, "tokens of an MCP connection were not refreshed");
            later(app, &leased).await
        }
    }
}

/// None when it is not due, cannot be refreshed, or is at somebody else. The lease is longer than Postgres may be away between
/// the server's answer and its being stored.
async fn lease(app: &App, id: Uuid) -> Result<Option<Leased>, ApiError> {
    const LEASE: &str = "UPDATE mcp_connections c SET refresh_due_at = clock_timestamp() + interval '10 minutes'
        FROM mcp_servers s
        WHERE c.id = $1 AND s.id = c.server_id AND c.refresh_due_at <= clock_timestamp()
          AND c.refresh_token IS NOT NULL AND c.issuer IS NOT NULL
        RETURNING c.id, c.organisation_id, c.refresh_token, c.scope, c.issuer, c.last_updated_at, c.failures,
                  s.mcp_integration_id";
    const UNDUE: &str = "UPDATE mcp_connections SET refresh_due_at = NULL WHERE id = $1";
    let db = app.db.get().await?;
    let Some(row) = db.query_opt(LEASE, &[&id]).await? else { return Ok(None) };
    let organisation: Uuid = row.try_get("organisation_id")?;
    let client = of_integration(app, &*db, organisation, row.try_get("mcp_integration_id")?).await?;
    let issuer: &str = row.try_get("issuer")?;
    // Only who gave a token gets to see it again.
    let Some(client) = client.filter(|client| client.server.issuer == issuer) else {
        db.execute(UNDUE, &[&id]).await?;
        return Ok(None);
    };
    let sealed = Sealed::from(row.try_get::<_, &[u8]>("refresh_token")?);
    let refresh = app.sealer.open(&*db, &place(organisation, "mcp_connections", id, "refresh_token"), &sealed).await?;
    Ok(Some(leased(&row, organisation, refresh, client)?))
}

fn leased(row: &Row, organisation: Uuid, refresh: Secret, client: OAuthClient) -> Result<Leased, ApiError> {
    let failures = row.try_get("failures")?;
    let row = LeasedRow {
        id: row.try_get("id")?,
        organisation,
        refresh,
        scope: row.try_get("scope")?,
        last_updated_at: row.try_get("last_updated_at")?,
    };
    Ok(Leased { row, failures, client })
}

/// The person has to connect again once the access token is over.
async fn give_up(app: &App, leased: &Leased) -> Result<(), ApiError> {
    const GIVE_UP: &str =
        "UPDATE mcp_connections SET refresh_token = NULL, refresh_due_at = NULL, failures = failures + 1
                           WHERE id = $1 AND last_updated_at = $2";
    app.db.get().await?.execute(GIVE_UP, &[&leased.row.id, &leased.row.last_updated_at]).await?;
    Ok(())
}

async fn later(app: &App, leased: &Leased) -> Result<(), ApiError> {
    const LATER: &str = "UPDATE mcp_connections SET refresh_due_at = $3, failures = failures + 1
                         WHERE id = $1 AND last_updated_at = $2";
    let again = Utc::now() + pause(leased.failures);
    app.db.get().await?.execute(LATER, &[&leased.row.id, &leased.row.last_updated_at, &again]).await?;
    Ok(())
}

/// After so many failures in a row.
fn pause(failures: i32) -> TimeDelta {
    TimeDelta::seconds(10_i64 << failures.clamp(0, 8)).min(TimeDelta::minutes(30))
}

/// Fetches the next token of client credentials, if that is due and nobody else is at it.
pub async fn own_token(app: &App, id: Uuid) -> Result<(), ApiError> {
    const LEASE: &str = "UPDATE mcp_clients SET refresh_due_at = clock_timestamp() + interval '60 seconds'
        WHERE id = $1 AND refresh_due_at <= clock_timestamp() RETURNING organisation_id, integration_id, failures";
    const LATER: &str = "UPDATE mcp_clients SET refresh_due_at = $2, failures = failures + 1 WHERE id = $1";
    let (organisation, failures, found) = {
        let db = app.db.get().await?;
        let Some(row) = db.query_opt(LEASE, &[&id]).await? else { return Ok(()) };
        let organisation: Uuid = row.try_get("organisation_id")?;
        let found = of_integration(app, &*db, organisation, row.try_get("integration_id")?).await?;
        (organisation, row.try_get::<_, i32>("failures")?, found)
    };
    let Some(found) = found else { return Ok(()) };
    if let Err(fault) = fetch_own_token(app, organisation, &found).await {
        tracing::warn!(%fault, client = %id, "the token of an MCP integration was not renewed");
        app.db.get().await?.execute(LATER, &[&id, &(Utc::now() + pause(failures))]).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_half_an_hour() {
        let pauses: Vec<i64> = [-1, 0, 1, 3, 8, i32::MAX].map(|failures| pause(failures).num_seconds()).into();
        assert_eq!(pauses, [10, 10, 20, 80, 1800, 1800]);
    }
}
