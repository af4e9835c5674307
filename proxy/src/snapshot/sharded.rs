//! A map for hundreds of thousands of rows that is read by every request and changed one row at a time. It is cut
//! into shards, each swapped as a whole: readers never wait, and a change copies its own shard alone.

use arc_swap::ArcSwap;
use foldhash::{fast::RandomState, quality};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, Hash};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// 200,000 rows make about 50 to a shard; an empty map costs 36 KiB.
pub const SHARDS: usize = 4096;

pub type Shard<K, V> = HashMap<K, Arc<V>, RandomState>;

pub struct Sharded<K, V> {
    shards: Box<[ArcSwap<Shard<K, V>>]>,
    /// Which shards ever held something. A start loads dozens of tables, most of them with few rows, and a swapped pointer costs
    /// more to look at than a flag.
    is_used: Box<[AtomicBool]>,
    /// Chooses the shard. Not the hasher inside the shards, or all keys of a shard would fall into the same buckets; and of
    /// quality, because the remainder sees the low bits alone, which the fast one leaves uneven with some seeds.
    spread: quality::RandomState,
}

impl<K: Hash + Eq + Clone, V> Sharded<K, V> {
    pub fn empty() -> Self {
        let nothing = Arc::new(Shard::default());
        Self {
            shards: (0..SHARDS).map(|_| ArcSwap::new(Arc::clone(&nothing))).collect(),
            is_used: (0..SHARDS).map(|_| AtomicBool::new(false)).collect(),
            spread: quality::RandomState::default(),
        }
    }

    pub fn get(&self, key: &K) -> Option<Arc<V>> {
        self.shards[self.shard_of(key)].load().get(key).cloned()
    }

    /// What is to be known of a row, where that is little: to hold the row itself costs more while many ask for it at once.
    pub fn read<R>(&self, key: &K, known: impl FnOnce(&V) -> R) -> Option<R> {
        self.shards[self.shard_of(key)].load().get(key).map(|row| known(row))
    }

    /// Sets what has a value and removes what has none. Returns how many shards had to be copied.
    pub fn change(&self, changes: impl IntoIterator<Item = (K, Option<Arc<V>>)>) -> usize {
        let mut by_shard: HashMap<usize, Vec<_>> = HashMap::new();
        for (key, value) in changes {
            by_shard.entry(self.shard_of(&key)).or_default().push((key, value));
        }
        let copied = by_shard.len();
        for (at, changes) in by_shard {
            let mut shard = Shard::clone(&self.shards[at].load());
            for (key, value) in changes {
                match value {
                    Some(value) => shard.insert(key, value),
                    None => shard.remove(&key),
                };
            }
            self.store(at, shard);
        }
        copied
    }

    /// Takes these for all there is.
    pub fn replace(&self, all: impl IntoIterator<Item = (K, Arc<V>)>) {
        let mut shards: HashMap<usize, Shard<K, V>> = self.used().map(|at| (at, Shard::default())).collect();
        for (key, value) in all {
            shards.entry(self.shard_of(&key)).or_default().insert(key, value);
        }
        for (at, shard) in shards {
            self.store(at, shard);
        }
    }

    /// What every shard holds now, without those that never held anything; later changes do not show in it.
    pub fn frozen(&self) -> Vec<Arc<Shard<K, V>>> {
        self.used().map(|at| self.shards[at].load_full()).collect()
    }

    fn store(&self, at: usize, shard: Shard<K, V>) {
        self.is_used[at].store(true, Ordering::Release);
        self.shards[at].store(Arc::new(shard));
    }

    fn used(&self) -> impl Iterator<Item = usize> {
        let flags = self.is_used.iter().enumerate();
        flags.filter(|(_, is_used)| is_used.load(Ordering::Acquire)).map(|(at, _)| at)
    }

    fn shard_of(&self, key: &K) -> usize {
        self.spread.hash_one(key) as usize % self.shards.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn numbers(count: u32) -> Sharded<u32, u32> {
        let map = Sharded::empty();
        map.replace((0..count).map(|n| (n, Arc::new(n))));
        map
    }

    #[test]
    fn one_change_among_200_000_copies_one_shard_of_at_most_200_entries() {
        let map = numbers(200_000);
        let before = map.frozen();
        assert_eq!(map.change([(7, Some(Arc::new(70)))]), 1);
        let after = map.frozen();
        let replaced: Vec<_> = before.iter().zip(&after).filter(|(old, new)| !Arc::ptr_eq(old, new)).collect();
        assert_eq!(replaced.len(), 1);
        assert!(replaced[0].1.len() <= 200, "{} entries were copied", replaced[0].1.len());
        assert_eq!(map.get(&7).as_deref(), Some(&70));
        assert_eq!(map.get(&8).as_deref(), Some(&8));
    }

    #[test]
    fn many_changes_copy_each_shard_once() {
        let map = numbers(0);
        let copied = map.change((0..200_000).map(|n| (n, Some(Arc::new(n)))));
        assert_eq!(copied, map.used().count());
        assert!((0..200_000).all(|n| map.get(&n).is_some()));
    }

    #[test]
    fn keys_that_follow_each_other_are_spread_evenly_whatever_the_seed() {
        for _ in 0..100 {
            let map = Sharded::<u32, u32>::empty();
            let shards: HashSet<usize> = (0..50_000).map(|n| map.shard_of(&n)).collect();
            // By chance nearly none of the shards stays empty with 12 keys for each.
            assert!(shards.len() > SHARDS * 99 / 100, "{}", shards.len());
        }
    }

    #[test]
    fn a_removed_key_is_gone_and_an_unknown_one_may_be_removed() {
        let map = numbers(10);
        map.change([(3, None), (99, None)]);
        assert_eq!((0..100).filter_map(|n| map.get(&n)).map(|n| *n).collect::<Vec<_>>(), [0, 1, 2, 4, 5, 6, 7, 8, 9]);
    }

    #[test]
    fn replacing_forgets_what_is_not_named() {
        let map = numbers(10);
        map.replace([(11, Arc::new(11))]);
        assert_eq!((0..100).filter_map(|n| map.get(&n)).map(|n| *n).collect::<Vec<_>>(), [11]);
    }

    #[test]
    fn a_frozen_copy_does_not_see_later_changes() {
        let map = numbers(10);
        let frozen = map.frozen();
        map.change([(3, None)]);
        assert_eq!(frozen.iter().map(|shard| shard.len()).sum::<usize>(), 10);
    }
}
