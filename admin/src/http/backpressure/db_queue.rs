//! The queue for database connections. A connection that cannot be made is an outage and is answered soon; when all
//! connections are merely busy, callers wait for one. The pool cannot tell the two apart, so no more callers are let
//! through to it than it has connections.

use crate::http::ApiError;
use shared::db::{Pool, Pooled};
use shared::telemetry::LogLimit;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_postgres::Client;

/// Longer than any client waits for an answer.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Clone)]
pub struct DbQueue {
    pool: Pool,
    places: Arc<Semaphore>,
}

/// A connection, and the place in front of it; both are given back when it is dropped.
pub struct DbConnection<'a> {
    connection: Pooled<'a>,
    _place: SemaphorePermit<'a>,
}

impl DbQueue {
    pub fn new(pool: Pool, connections: u32) -> Self {
        Self { pool, places: Arc::new(Semaphore::new(connections.max(1) as usize)) }
    }

    /// A connection, in the order of asking. Ask for one at a time: whoever holds one and waits for a second could
    /// wait for itself.
    pub async fn get(&self) -> Result<DbConnection<'_>, ApiError> {
        let place = match tokio::time::timeout(PATIENCE, self.places.acquire()).await {
            Ok(Ok(place)) => place,
            Ok(Err(_)) | Err(_) => {
                static TOO_MANY: LogLimit = LogLimit::new();
                if let Some(skipped) = TOO_MANY.pass() {
                    tracing::error!(skipped, "more callers than the database can serve");
                }
                return Err(ApiError::Unavailable);
            }
        };
        Ok(DbConnection { connection: self.pool.get().await?, _place: place })
    }

    pub fn state(&self) -> bb8::State {
        self.pool.state()
    }
}

impl Deref for DbConnection<'_> {
    type Target = Client;

    fn deref(&self) -> &Client {
        &self.connection
    }
}

impl DerefMut for DbConnection<'_> {
    fn deref_mut(&mut self) -> &mut Client {
        &mut self.connection
    }
}
