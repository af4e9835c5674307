//! Refreshes tokens at MCP servers before they end, and forgets links that nobody followed. Which row is whose is a lease
//! of the row itself (`mcp_oauth::refresh`), and no transaction is open while authorisation servers are asked.

use super::{Job, JobRun};
use crate::app::App;
use crate::mcp_oauth::refresh;
use futures::FutureExt as _;
use futures::future::{BoxFuture, join_all};
use std::time::Duration;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

pub const JOB: Job =
    Job { name: "refresh_mcp_tokens", every: Duration::from_secs(5), work: |app, tx| work(app, tx).boxed() };

const MAX_AT_ONCE: i64 = 8;
const AT_ONCE: usize = 4;

async fn work(_: &App, tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    const EXPIRED: &str = "DELETE FROM mcp_oauth_states WHERE expires_at < clock_timestamp()";
    let expired = tx.execute(EXPIRED, &[]).await?;
    let (connections, clients) = due(tx).await?;
    Ok(JobRun { items: expired, is_all: connections.len().max(clients.len()) < MAX_AT_ONCE as usize })
}

/// Each as far as nobody else is at it.
pub fn ask(app: &App) -> BoxFuture<'_, anyhow::Result<u64>> {
    async move {
        let (connections, clients) = {
            let db = app.db.get().await?;
            due(&*db).await?
        };
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
        Ok((connections.len() + clients.len()) as u64)
    }
    .boxed()
}

/// Connections and clients.
async fn due(db: &impl GenericClient) -> Result<(Vec<Uuid>, Vec<Uuid>), tokio_postgres::Error> {
    const CONNECTIONS: &str = "SELECT id FROM mcp_connections
        WHERE refresh_due_at <= clock_timestamp() ORDER BY refresh_due_at LIMIT $1";
    const CLIENTS: &str = "SELECT id FROM mcp_clients
        WHERE refresh_due_at <= clock_timestamp() ORDER BY refresh_due_at LIMIT $1";
    Ok((ids(db, CONNECTIONS).await?, ids(db, CLIENTS).await?))
}

async fn ids(db: &impl GenericClient, sql: &str) -> Result<Vec<Uuid>, tokio_postgres::Error> {
    db.query(sql, &[&MAX_AT_ONCE]).await?.iter().map(|row| row.try_get("id")).collect()
}
