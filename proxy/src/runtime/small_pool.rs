//! A few connections to Postgres for what is not on the way of inference: made when they are needed, every wait bounded, and
//! one on which something failed is not used again. They are shared out fairly: a tenant whose statements wait for each other
//! leaves connections to others.

use super::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use parking_lot::Mutex;
use shared::db;
use shared::settings::Database;
use shared::telemetry::{Brief, LogLimit};
use std::sync::Arc;
use std::time::Duration;
use tokio_postgres::{Client, Error};

/// For a connection, and for each statement.
const PATIENCE: Duration = Duration::from_secs(5);

/// Postgres does not answer, or not in time. What it was is in the process's own log lines.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("Postgres is away")]
pub struct PostgresAway;

impl PostgresAway {
    pub fn because(error: impl std::fmt::Display) -> Self {
        static AWAY: LogLimit = LogLimit::new();
        if let Some(skipped) = AWAY.pass() {
            tracing::warn!(error = %Brief(error), skipped, "Postgres is away");
        }
        Self
    }
}

pub struct SmallPool {
    database: Database,
    turns: Arc<TenantShare>,
    idle: Mutex<Vec<Client>>,
}

/// Whose turn it is to have one of so many connections.
pub fn turns(connections: usize) -> Arc<TenantShare> {
    TenantShare::new(connections, ShareRule::WAITING)
}

/// A connection on loan. It is used again only if it is given back, which is done when all went well.
pub struct Lent<'p> {
    pub client: Client,
    pool: &'p SmallPool,
    _turn: Holding,
}

impl SmallPool {
    pub fn new(database: Database, connections: usize) -> Self {
        Self { database, turns: turns(connections), idle: Mutex::new(Vec::new()) }
    }

    /// A connection for work of this tenant.
    pub async fn lend(&self, tenant: Tenant) -> Result<Lent<'_>, PostgresAway> {
        let turn = tokio::time::timeout(PATIENCE, self.turns.acquire(tenant, 1)).await;
        let turn = turn.map_err(PostgresAway::because)?;
        while let Some(client) = self.waiting() {
            if !client.is_closed() {
                return Ok(Lent { client, pool: self, _turn: turn });
            }
        }
        let connecting = tokio::time::timeout(PATIENCE, db::connect(&self.database)).await;
        let client = connecting.map_err(PostgresAway::because)?.map_err(PostgresAway::because)?;
        Ok(Lent { client, pool: self, _turn: turn })
    }

    /// For the gateway's own work, which takes its turns fairly before it comes here.
    pub async fn lend_own(&self) -> Result<Lent<'_>, PostgresAway> {
        self.lend(Tenant::GATEWAY).await
    }

    fn waiting(&self) -> Option<Client> {
        self.idle.lock().pop()
    }
}

impl Lent<'_> {
    pub fn give_back(self) {
        self.pool.idle.lock().push(self.client);
    }
}

/// A statement, or a transaction of a few.
pub async fn bounded<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, PostgresAway> {
    match tokio::time::timeout(PATIENCE, work).await {
        Ok(done) => done.map_err(|error| PostgresAway::because(db::explain(&error))),
        Err(elapsed) => Err(PostgresAway::because(elapsed)),
    }
}

#[cfg(test)]
mod tests {
    use crate::batches;
    use crate::batches::{files, runner};

    /// One each: changes, versions of prompts, shipping, leases, packs of bodies, rejected tokens, the deployment, changed MCP
    /// servers.
    const SINGLE: usize = 8;

    #[test]
    fn a_proxy_holds_no_more_connections_than_documented() {
        const OPERATIONS: &str = include_str!("../../../docs/operations.md");
        let pools = files::rows::CONNECTIONS + 2 * batches::records::CONNECTIONS + runner::STEPS;
        let most = format!("a proxy holds at most {}, whatever its load: eight for", SINGLE + pools);
        assert!(OPERATIONS.contains(&most), "{most}");
        let parts = format!(
            "{} for files, {} for requests about batches, and where it runs batches {} for their rows and {} for",
            files::rows::CONNECTIONS,
            batches::records::CONNECTIONS,
            batches::records::CONNECTIONS,
            runner::STEPS
        );
        assert!(OPERATIONS.contains(&parts), "{parts}");
    }
}
