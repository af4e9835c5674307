//! What calls did not use, or used beyond what they had taken of a rate in Redis, until it is sent there.
//!
//! One sum for each window: however many calls end while Redis is slow, what waits is bounded by the windows that are in
//! use, and a window is corrected once. Those of an organisation go in one round trip, since their keys share a node.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::BuildHasher as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tokio::sync::Notify;
use uuid::Uuid;

/// Threads that serve seldom meet at the same part.
const PARTS: usize = 16;
/// Windows that wait in one part, and of one organisation among them.
const MAX_WINDOWS: usize = 8192;
const MAX_WINDOWS_PER_ORGANISATION: usize = MAX_WINDOWS / 2;

#[derive(Debug, Default)]
pub struct Corrections {
    parts: [Mutex<Part>; PARTS],
    hasher: foldhash::fast::FixedState,
    pub arrived: Notify,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct Part {
    organisations: HashMap<Uuid, Sums>,
    windows: usize,
}

/// By the key of the window.
pub type Sums = HashMap<String, i64>;

impl Corrections {
    /// What finds no room is left out: its window counts what was reserved.
    pub fn add(&self, organisation: Uuid, key: String, more: i64) {
        let index = self.hasher.hash_one(organisation) as usize % PARTS;
        let mut part = self.parts[index].lock();
        let is_full = part.windows >= MAX_WINDOWS;
        let sums = part.organisations.entry(organisation).or_default();
        if let Some(sum) = sums.get_mut(&key) {
            *sum = sum.saturating_add(more);
            return;
        }
        if is_full || sums.len() >= MAX_WINDOWS_PER_ORGANISATION {
            self.dropped.fetch_add(1, Relaxed);
            return;
        }
        sums.insert(key, more);
        part.windows += 1;
        drop(part);
        self.arrived.notify_one();
    }

    /// All that waits, by organisation.
    pub fn take(&self) -> Vec<(Uuid, Sums)> {
        let mut all = Vec::new();
        for part in &self.parts {
            let part = std::mem::take(&mut *part.lock());
            all.extend(part.organisations.into_iter().filter(|(_, sums)| !sums.is_empty()));
        }
        all
    }

    /// How many were left out since this was last asked.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_waits_once_however_many_calls_end() {
        let corrections = Corrections::default();
        let organisation = Uuid::from_u128(1);
        for _ in 0..100_000 {
            corrections.add(organisation, "a".into(), -3);
        }
        corrections.add(organisation, "b".into(), 5);
        let taken = corrections.take();
        assert_eq!(taken, [(organisation, Sums::from([("a".into(), -300_000), ("b".into(), 5)]))]);
        assert!(corrections.take().is_empty());
    }

    #[test]
    fn what_waits_is_bounded_and_one_organisation_leaves_room_for_others() {
        let corrections = Corrections::default();
        for window in 0..MAX_WINDOWS {
            corrections.add(Uuid::from_u128(1), window.to_string(), 1);
        }
        for organisation in 0..2 * (PARTS * MAX_WINDOWS) as u128 {
            corrections.add(Uuid::from_u128(2 + organisation), "one".into(), 1);
        }
        let taken = corrections.take();
        let windows = |sums: &Sums| sums.len();
        assert_eq!(taken.iter().map(|(_, sums)| windows(sums)).max(), Some(MAX_WINDOWS_PER_ORGANISATION));
        assert!(taken.iter().map(|(_, sums)| windows(sums)).sum::<usize>() <= PARTS * MAX_WINDOWS);
        assert!(taken.len() > PARTS * MAX_WINDOWS / 2);
        let dropped = corrections.take_dropped() as usize;
        assert!(dropped >= MAX_WINDOWS_PER_ORGANISATION + PARTS * MAX_WINDOWS, "{dropped}");
    }
}
