//! What answers that wait in memory may hold together. Each takes what it needs as it grows, as long as the budget lasts. Where
//! it does not, one answer at a time goes on without it, up to its own bound, and the others wait: so some answer always ends,
//! and what is held is the budget and one answer more.

use parking_lot::Mutex;
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

pub struct AnswerBudget {
    /// In bytes.
    free: Arc<Semaphore>,
    /// Of the one that goes on without it.
    turn: Arc<Semaphore>,
}

/// What one answer holds, until it is dropped.
pub struct AnswerShare {
    free: Arc<Semaphore>,
    turn: Arc<Semaphore>,
    held: Mutex<HeldBytes>,
}

#[derive(Default)]
struct HeldBytes {
    bytes: Option<OwnedSemaphorePermit>,
    turn: Option<OwnedSemaphorePermit>,
}

impl AnswerBudget {
    pub fn new(bytes: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(bytes)), turn: Arc::new(Semaphore::new(1)) }
    }

    pub fn share(&self) -> Arc<AnswerShare> {
        Arc::new(AnswerShare { free: self.free.clone(), turn: self.turn.clone(), held: Mutex::default() })
    }
}

impl AnswerShare {
    /// Waits until so many bytes more may be held.
    pub async fn grow(&self, bytes: usize) {
        if !self.take(bytes) {
            // Nobody ever closes it.
            let turn = self.turn.clone().acquire_owned().await;
            self.held.lock().turn = turn.ok();
        }
    }

    /// False when the budget does not last.
    fn take(&self, bytes: usize) -> bool {
        let mut held = self.held.lock();
        if held.turn.is_some() {
            return true;
        }
        let count = u32::try_from(bytes).ok();
        let Some(more) = count.and_then(|count| self.free.clone().try_acquire_many_owned(count).ok()) else {
            return false;
        };
        match &mut held.bytes {
            Some(bytes) => bytes.merge(more),
            none => *none = Some(more),
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt as _;

    #[tokio::test]
    async fn answers_grow_within_the_budget_and_beyond_it_one_at_a_time() {
        let budget = AnswerBudget::new(100);
        let [first, second, third] = [budget.share(), budget.share(), budget.share()];
        for share in [&first, &second] {
            assert!(share.grow(40).now_or_never().is_some());
        }
        assert!(first.grow(40).now_or_never().is_some(), "it goes on alone");
        assert!(first.grow(1 << 40).now_or_never().is_some(), "to its own bound");
        assert!(third.grow(20).now_or_never().is_some(), "what is free is for all");
        assert!(second.grow(1).now_or_never().is_none() && third.grow(1).now_or_never().is_none());
        drop(third);
        assert!(second.grow(20).now_or_never().is_some());
        assert!(second.grow(1).now_or_never().is_none());
        drop(first);
        assert!(second.grow(1000).now_or_never().is_some());
        drop(second);
        assert!(budget.share().grow(100).now_or_never().is_some());
    }
}
