//! How many searches of logs may run at once: some of the connections to the database in all, and of those some for one
//! organisation. A search can take seconds whatever the indexes; without this, a few of them would hold every connection
//! and everybody else's requests would wait.

use super::turns::{Turn, Turns};
use crate::http::ApiError;
use std::time::Duration;
use uuid::Uuid;

pub const TOO_MANY: &str = "Too many searches of logs run at once; try again shortly, or ask for a shorter time \
                            (time_of_generation_min, time_of_generation_max)";
/// How long a search waits for its turn.
const PATIENCE: Duration = Duration::from_secs(10);
const RETRY_AFTER: u64 = 5;

/// The right to run one search.
pub type LogQueryPermit = Turn;

#[derive(Clone)]
pub struct LogQueries(Turns);

impl LogQueries {
    /// Half of the connections for all, an eighth for one organisation.
    pub fn new(connections: u32) -> Self {
        Self::with_patience(connections, PATIENCE)
    }

    fn with_patience(connections: u32, patience: Duration) -> Self {
        let all = (connections as usize / 2).max(1);
        Self(Turns::new(all, (all / 4).max(1), patience))
    }

    /// Waits for a turn. Ask before taking a connection: whoever waits must not hold one.
    pub async fn enter(&self, organisation: Uuid) -> Result<LogQueryPermit, ApiError> {
        let too_many = ApiError::RateLimited { message: TOO_MANY, retry_after: RETRY_AFTER };
        self.0.enter(organisation).await.ok_or(too_many)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_have_half_of_the_connections_and_one_organisation_an_eighth() {
        let queries = LogQueries::with_patience(16, Duration::ZERO);
        let one = Uuid::new_v4();
        let mut held = vec![queries.enter(one).await.unwrap(), queries.enter(one).await.unwrap()];
        let refused = queries.enter(one).await.err().unwrap();
        assert_eq!(refused.status(), 429, "{refused}");
        for _ in 0..6 {
            held.push(queries.enter(Uuid::new_v4()).await.unwrap());
        }
        assert!(queries.enter(Uuid::new_v4()).await.is_err());
    }
}
