//! Integrations whose lists told something else than was approved, on their way to admin: it asks the server for itself,
//! disables what changed and records it. Requests only hand them over; a task makes them due. Clients are not shown what
//! changed meanwhile, so nothing hangs on it being quick.

use parking_lot::Mutex;
use shared::{db, settings};
use std::collections::HashMap;
use std::mem;
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

/// A server that tells everybody something else is asked no more often for it.
const PAUSE: Duration = Duration::from_secs(60);
/// Integrations that are remembered; beyond it all are forgotten.
const MOST: usize = 4096;

#[derive(Debug, Default)]
pub struct ChangedLists {
    noted: Mutex<HashMap<Uuid, NotedChange>>,
    arrived: Notify,
}

#[derive(Debug)]
struct NotedChange {
    at: Instant,
    is_told: bool,
}

impl ChangedLists {
    pub fn note(&self, integration: Uuid, now: Instant) {
        let mut noted = self.noted.lock();
        if noted.get(&integration).is_some_and(|known| now.saturating_duration_since(known.at) < PAUSE) {
            return;
        }
        if noted.len() >= MOST {
            noted.clear();
        }
        noted.insert(integration, NotedChange { at: now, is_told: false });
        drop(noted);
        self.arrived.notify_one();
    }

    fn take(&self) -> Vec<Uuid> {
        let mut noted = self.noted.lock();
        let untold =
            |(id, change): (&Uuid, &mut NotedChange)| (!mem::replace(&mut change.is_told, true)).then_some(*id);
        noted.iter_mut().filter_map(untold).collect()
    }

    /// Until told to stop. What is lost then is noticed again.
    pub async fn run(&self, database: &settings::Database, mut stop: watch::Receiver<bool>) {
        loop {
            tokio::select! {
                () = self.arrived.notified() => {}
                _ = stop.changed() => return,
            }
            let changed = self.take();
            if !changed.is_empty()
                && let Err(error) = make_due(database, &changed).await
            {
                tracing::warn!(%error, "MCP servers that tell something else could not be reported");
                self.noted.lock().retain(|id, _| !changed.contains(id));
            }
        }
    }
}

/// Those that know people are asked when a person asks for it.
async fn make_due(database: &settings::Database, changed: &[Uuid]) -> anyhow::Result<()> {
    const DUE: &str = "UPDATE mcp_integrations SET sync_due_at = now()
        WHERE id = ANY($1) AND status = 'active' AND sync_due_at > now()";
    db::connect(database).await?.execute(DUE, &[&changed]).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_told_once_a_minute() {
        let (lists, id, now) = (ChangedLists::default(), Uuid::from_u128(1), Instant::now());
        lists.note(id, now);
        lists.note(id, now);
        assert_eq!(lists.take(), [id]);
        lists.note(id, now + PAUSE / 2);
        assert!(lists.take().is_empty());
        lists.note(id, now + PAUSE);
        assert_eq!(lists.take(), [id]);
    }
}
