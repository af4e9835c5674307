//! Stores tokens that a refresh has got, however long that takes. The old refresh token is used up by then: many servers take
//! one that is presented again for theft. So what Postgres did not take is kept here and tried again for as long as the
//! row is leased; only if Postgres is away for longer, or this admin ends first, is it lost.

use super::sealed_tokens::sealed;
use super::{Tokens, due};
use crate::app::App;
use crate::http::ApiError;
use chrono::{DateTime, Utc};
use shared::secrets::seal::Secret;
use std::time::{Duration, Instant};
use uuid::Uuid;

const STORE_AGAIN: Duration = Duration::from_millis(500);
const MAX_STORE_AGAIN: Duration = Duration::from_secs(5);
/// Less than the lease of the row (`refresh`), after which others present the old token.
const MAX_STORE_TIME: Duration = Duration::from_secs(9 * 60);

/// A connection whose tokens are being refreshed, as it was before.
pub struct LeasedRow {
    pub id: Uuid,
    pub organisation: Uuid,
    pub refresh: Secret,
    pub scope: Option<String>,
    pub last_updated_at: DateTime<Utc>,
}

/// Fails when they are not stored yet; they will be once Postgres takes them.
pub async fn store_refreshed(app: &App, row: LeasedRow, got: Tokens, now: DateTime<Utc>) -> Result<(), ApiError> {
    // A server that gives no new refresh token means the old one to last.
    let got = Tokens {
        refresh: got.refresh.or_else(|| Some(row.refresh.clone())),
        scope: got.scope.or_else(|| row.scope.clone()),
        ..got
    };
    let stored = store(app, &row, &got, now).await;
    if stored.is_err() {
        tracing::warn!(connection = %row.id, "refreshed tokens of an MCP connection wait to be stored");
        tokio::spawn(store_later(app.clone(), row, got, now));
    }
    stored
}

async fn store_later(app: App, row: LeasedRow, got: Tokens, now: DateTime<Utc>) {
    let (began, mut pause) = (Instant::now(), STORE_AGAIN);
    while began.elapsed() < MAX_STORE_TIME {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(MAX_STORE_AGAIN);
        if store(&app, &row, &got, now).await.is_ok() {
            return;
        }
    }
    tracing::error!(connection = %row.id, "refreshed tokens of an MCP connection could not be stored and are lost");
}

/// What a person changed meanwhile stays as it is.
async fn store(app: &App, row: &LeasedRow, got: &Tokens, now: DateTime<Utc>) -> Result<(), ApiError> {
    const STORE: &str = "UPDATE mcp_connections SET access_token = $3, refresh_token = $4, expires_at = $5, scope = $6,
            refresh_due_at = $7, failures = 0, last_updated_at = clock_timestamp()
        WHERE id = $1 AND last_updated_at = $2";
    let mut db = app.db.get().await?;
    let tx = db.transaction().await?;
    let (access, refresh) = sealed(app, &tx, row.organisation, row.id, got).await?;
    let due = due(now, got.expires_at);
    let (id, seen) = (row.id, row.last_updated_at);
    tx.execute(STORE, &[&id, &seen, &access, &refresh, &got.expires_at, &got.scope, &due]).await?;
    tx.commit().await?;
    Ok(())
}
