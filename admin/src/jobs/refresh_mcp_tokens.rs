//! Refreshes tokens at MCP servers before they end, and forgets links that nobody followed. Which row is whose is a lease
//! of the row itself (`mcp_oauth::refresh`), so this transaction holds nothing while authorisation servers are asked.

use super::{Job, JobRun};
use crate::app::App;
use crate::mcp_oauth::refresh;
use futures::FutureExt as _;
use futures::future::join_all;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "refresh_mcp_tokens", every: Duration::from_secs(5), work: |app, tx| work(app, tx).boxed() };

/// Few enough for one transaction, also when every server is slow.
const MOST: i64 = 8;
const AT_ONCE: usize = 4;

async fn work(app: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const EXPIRED: &str = "DELETE FROM mcp_oauth_states WHERE expires_at < clock_timestamp()";
    const CONNECTIONS: &str = "SELECT id FROM mcp_connections
        WHERE refresh_due_at <= clock_timestamp() ORDER BY refresh_due_at LIMIT $1";
    const CLIENTS: &str = "SELECT id FROM mcp_clients
        WHERE refresh_due_at <= clock_timestamp() ORDER BY refresh_due_at LIMIT $1";
    let expired = tx.execute(EXPIRED, &[]).await?;
    let connections = ids(tx, CONNECTIONS).await?;
    let clients = ids(tx, CLIENTS).await?;
    let is_all = connections.len().max(clients.len()) < MOST as usize;
    let count = (connections.len() + clients.len()) as u64;
    // A row that fails waits for its next turn; it must not keep the others from theirs.
    let mut failed = 0;
    for some in connections.chunks(AT_ONCE) {
        let done = join_all(some.iter().map(|id| refresh::connection(app, *id))).await;
        failed += done.iter().filter(|one| one.is_err()).count();
    }
    for some in clients.chunks(AT_ONCE) {
        let done = join_all(some.iter().map(|id| refresh::own_token(app, *id))).await;
        failed += done.iter().filter(|one| one.is_err()).count();
    }
    if failed > 0 {
        tracing::error!(failed, "some tokens at MCP servers could not be refreshed");
    }
    Ok(JobRun { items: count + expired, is_all })
}

async fn ids(tx: &Transaction<'_>, sql: &str) -> Result<Vec<Uuid>, tokio_postgres::Error> {
    tx.query(sql, &[&MOST]).await?.iter().map(|row| row.try_get("id")).collect()
}
