//! How many searches of logs may run at once: some of the connections to the database in all, and of those some for one
//! organisation. A search can take seconds whatever the indexes; without this, a few of them would hold every connection
//! and everybody else's requests would wait.

use crate::http::ApiError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

pub const TOO_MANY: &str = "Too many searches of logs run at once; try again shortly, or ask for a shorter time \
                            (time_of_generation_min, time_of_generation_max)";
/// How long a search waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY_AFTER: u64 = 5;
/// Organisations that search nothing are forgotten when there are more than this.
const REMEMBERED: usize = 1024;

#[derive(Clone)]
pub struct LogQueries {
    all: Arc<Semaphore>,
    share: usize,
    patience: Duration,
    organisations: Arc<Mutex<HashMap<Uuid, Arc<Semaphore>>>>,
}

/// The right to run one search; given back when it is dropped.
pub struct LogQueryPermit {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl LogQueries {
    /// Half of the connections for all, an eighth for one organisation.
    pub fn new(connections: u32) -> Self {
        let all = (connections as usize / 2).max(1);
        Self {
            all: Arc::new(Semaphore::new(all)),
            share: (all / 4).max(1),
            patience: PATIENCE,
            organisations: Arc::default(),
        }
    }

    /// Waits for a turn. Ask before taking a connection: whoever waits must not hold one.
    pub async fn enter(&self, organisation: Uuid) -> Result<LogQueryPermit, ApiError> {
        let own = self.semaphore_of(organisation);
        let both = async {
            let own = own.acquire_owned().await?;
            Ok::<_, tokio::sync::AcquireError>(LogQueryPermit {
                _all: self.all.clone().acquire_owned().await?,
                _own: own,
            })
        };
        match tokio::time::timeout(self.patience, both).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) | Err(_) => Err(ApiError::RateLimited { message: TOO_MANY, retry_after: RETRY_AFTER }),
        }
    }

    fn semaphore_of(&self, organisation: Uuid) -> Arc<Semaphore> {
        let mut known = self.organisations.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            // Permits and waiters hold a reference.
            known.retain(|_, own| Arc::strong_count(own) > 1);
        }
        known.entry(organisation).or_insert_with(|| Arc::new(Semaphore::new(self.share))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn impatient() -> LogQueries {
        LogQueries { patience: Duration::ZERO, ..LogQueries::new(16) }
    }

    #[tokio::test]
    async fn an_organisation_that_uses_its_share_up_keeps_nobody_else_waiting() {
        let queries = impatient();
        let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
        let held = [queries.enter(one).await.unwrap(), queries.enter(one).await.unwrap()];
        let refused = queries.enter(one).await.err().unwrap();
        assert_eq!(refused.status(), 429, "{refused}");
        let _others = queries.enter(other).await.unwrap();
        drop(held);
        assert!(queries.enter(one).await.is_ok());
    }

    #[tokio::test]
    async fn all_together_use_half_of_the_connections() {
        let queries = impatient();
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(queries.enter(Uuid::new_v4()).await.unwrap());
        }
        assert!(queries.enter(Uuid::new_v4()).await.is_err());
        held.pop();
        assert!(queries.enter(Uuid::new_v4()).await.is_ok());
    }

    #[tokio::test]
    async fn organisations_that_search_nothing_are_forgotten() {
        let queries = impatient();
        let busy = Uuid::new_v4();
        let _held = queries.enter(busy).await.unwrap();
        for _ in 0..2 * REMEMBERED {
            drop(queries.enter(Uuid::new_v4()).await.unwrap());
        }
        let known = queries.organisations.lock().unwrap();
        assert!(known.len() <= REMEMBERED && known.contains_key(&busy), "{}", known.len());
    }
}
