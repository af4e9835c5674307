//! Turns at something that only few can do at once: so many for all, and of those so many for one organisation. Whoever
//! waits too long is refused, and nobody waits behind one organisation's queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use uuid::Uuid;

/// Organisations that do nothing are forgotten when there are more than this.
const REMEMBERED: usize = 1024;

#[derive(Clone)]
pub struct Turns {
    all: Arc<Semaphore>,
    share: usize,
    patience: Duration,
    organisations: Arc<Mutex<HashMap<Uuid, Arc<Semaphore>>>>,
}

/// Given back when it is dropped.
pub struct Turn {
    _all: OwnedSemaphorePermit,
    _own: OwnedSemaphorePermit,
}

impl Turns {
    pub fn new(all: usize, share: usize, patience: Duration) -> Self {
        Self { all: Arc::new(Semaphore::new(all)), share, patience, organisations: Arc::default() }
    }

    /// None when it took too long.
    pub async fn enter(&self, organisation: Uuid) -> Option<Turn> {
        let own = self.semaphore_of(organisation);
        let both = async {
            let own = own.acquire_owned().await.ok()?;
            Some(Turn { _all: self.all.clone().acquire_owned().await.ok()?, _own: own })
        };
        tokio::time::timeout(self.patience, both).await.ok().flatten()
    }

    fn semaphore_of(&self, organisation: Uuid) -> Arc<Semaphore> {
        let mut known = self.organisations.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            // Turns and waiters hold a reference.
            known.retain(|_, own| Arc::strong_count(own) > 1);
        }
        known.entry(organisation).or_insert_with(|| Arc::new(Semaphore::new(self.share))).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_organisation_that_uses_its_share_up_keeps_nobody_else_waiting() {
        let turns = Turns::new(8, 2, Duration::ZERO);
        let (one, other) = (Uuid::new_v4(), Uuid::new_v4());
        let held = [turns.enter(one).await.unwrap(), turns.enter(one).await.unwrap()];
        assert!(turns.enter(one).await.is_none());
        let _others = turns.enter(other).await.unwrap();
        drop(held);
        assert!(turns.enter(one).await.is_some());
    }

    #[tokio::test]
    async fn all_together_have_no_more_than_all() {
        let turns = Turns::new(8, 2, Duration::ZERO);
        let mut held = Vec::new();
        for _ in 0..8 {
            held.push(turns.enter(Uuid::new_v4()).await.unwrap());
        }
        assert!(turns.enter(Uuid::new_v4()).await.is_none());
        held.pop();
        assert!(turns.enter(Uuid::new_v4()).await.is_some());
    }

    #[tokio::test]
    async fn organisations_that_do_nothing_are_forgotten() {
        let turns = Turns::new(8, 2, Duration::ZERO);
        let busy = Uuid::new_v4();
        let _held = turns.enter(busy).await.unwrap();
        for _ in 0..2 * REMEMBERED {
            drop(turns.enter(Uuid::new_v4()).await.unwrap());
        }
        let known = turns.organisations.lock().unwrap();
        assert!(known.len() <= REMEMBERED && known.contains_key(&busy), "{}", known.len());
    }
}
