//! Rejected tokens on their way into the audit trail. Requests only hand them over; a task writes them once a second, as
//! rows that `Failures` makes of them. While Postgres is away they are added up, not lost. A token that names no
//! organisation has no trail; it is counted.

use parking_lot::Mutex;
use prometheus::IntCounter;
use shared::identity::jwt::failures::{Failure, Failures};
use shared::{db, settings};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

const GATHER: Duration = Duration::from_secs(1);

/// What requests and the task share.
#[derive(Default)]
struct Pending {
    failures: Mutex<Failures>,
    arrived: Notify,
}

/// The requests' end.
pub struct Trail {
    pending: Arc<Pending>,
    unrecorded: IntCounter,
}

/// The task's end.
pub struct TrailWriter {
    pending: Arc<Pending>,
}

pub fn trail(unrecorded: IntCounter) -> (Trail, TrailWriter) {
    let pending = Arc::<Pending>::default();
    (Trail { pending: pending.clone(), unrecorded }, TrailWriter { pending })
}

impl Trail {
    /// `None`: whose token it was cannot be told.
    pub fn note(&self, failure: Option<Failure>) {
        let Some(failure) = failure else { return self.unrecorded.inc() };
        self.pending.failures.lock().add(failure);
        self.pending.arrived.notify_one();
    }
}

impl TrailWriter {
    /// Writes until told to stop, and then what is still waiting.
    pub async fn run(&mut self, database: &settings::Database, mut stop: watch::Receiver<bool>) {
        loop {
            let is_waiting = !self.pending.failures.lock().is_empty();
            let is_last = tokio::select! {
                () = self.pending.arrived.notified() => false,
                () = tokio::time::sleep(GATHER), if is_waiting => false,
                _ = stop.changed() => true,
            };
            if !is_last {
                tokio::time::sleep(GATHER).await;
            }
            self.write(database, is_last).await;
            if is_last {
                return;
            }
        }
    }

    async fn write(&mut self, database: &settings::Database, is_last: bool) {
        let rows = self.pending.failures.lock().take(Instant::now(), is_last);
        if rows.is_empty() {
            return;
        }
        let client = db::connect(database).await.ok();
        for row in rows {
            let is_written = match &client {
                Some(client) => row.insert(client).await.is_ok(),
                None => false,
            };
            if !is_written {
                tracing::warn!(error = row.error(), "rejected tokens could not be written to the audit trail yet");
                self.pending.failures.lock().put_back(row);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_of_nobody_is_counted_because_it_has_no_trail() {
        let counter = IntCounter::new("c", "c").unwrap();
        let (trail, writer) = trail(counter.clone());
        trail.note(None);
        assert_eq!(counter.get(), 1);
        assert!(writer.pending.failures.lock().is_empty());
    }
}
