//! All shares of this process, cut into pieces with a lock each: requests of different callers do not meet, and one
//! request's limits are decided with all of their pieces held, always taken in the same order.

use super::counter::{Counter, Limit, Moment};
use super::share::Share;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use tokio::sync::watch;

pub const SHARDS: usize = 256;
/// Limits of one request that need no memory of their own to be decided.
const FEW: usize = 16;

pub type Shard = HashMap<Counter, Entry, BuildHasherDefault<Known>>;

pub struct Entry {
    pub share: Share,
    /// Requests that wait for the store; they wake when this is dropped.
    pub waiting: Option<watch::Sender<()>>,
}

pub struct Shards {
    shards: Box<[Mutex<Shard>]>,
    /// Most shares of one shard.
    most: usize,
}

/// Counters know their hash.
#[derive(Default)]
pub struct Known(u64);

impl Hasher for Known {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }
}

impl Shards {
    pub fn new(most: usize) -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), most: most.div_ceil(SHARDS) }
    }

    /// Does something with the share of a counter, if there is one.
    pub fn with<T>(&self, counter: &Counter, work: impl FnOnce(&mut Entry) -> T) -> Option<T> {
        self.shards[shard_of(counter)].lock().get_mut(counter).map(work)
    }

    /// Does something with all of these held at once.
    pub fn with_all<'c, T>(
        &self,
        counters: impl Iterator<Item = &'c Counter> + Clone,
        work: impl FnOnce(&mut Held<'_, '_>) -> T,
    ) -> T {
        let mut few = [const { None }; FEW];
        let mut many;
        let count = counters.clone().count();
        let guards = match count <= FEW {
            true => &mut few[..count],
            false => {
                many = Vec::new();
                many.resize_with(count, || None);
                &mut many[..]
            }
        };
        let mut last = None;
        for guard in guards.iter_mut() {
            let later = counters.clone().map(shard_of).filter(|shard| last.is_none_or(|last| *shard > last));
            let Some(next) = later.min() else { break };
            *guard = Some((next, self.shards[next].lock()));
            last = Some(next);
        }
        work(&mut Held { guards, most: self.most })
    }

    /// Goes over every share, a shard at a time; those for which `keep` is false are forgotten. Answers how many are left.
    pub fn sweep(&self, mut keep: impl FnMut(&Counter, &mut Entry) -> bool) -> usize {
        let mut left = 0;
        for shard in &self.shards {
            let mut shard = shard.lock();
            shard.retain(|counter, entry| keep(counter, entry));
            if shard.capacity() > 64 && shard.len() < shard.capacity() / 8 {
                shard.shrink_to_fit();
            }
            left += shard.len();
        }
        left
    }
}

type Guard<'g> = Option<(usize, MutexGuard<'g, Shard>)>;

/// The shards of one request.
pub struct Held<'h, 'g> {
    guards: &'h mut [Guard<'g>],
    most: usize,
}

impl Held<'_, '_> {
    pub fn entry(&mut self, counter: &Counter) -> Option<&mut Entry> {
        self.shard(counter)?.0.get_mut(counter)
    }

    /// Makes the share if there is none; none when there is no room for it.
    pub fn entry_or_new(&mut self, now: Moment, limit: &Limit) -> Option<&mut Entry> {
        let (shard, most) = self.shard(&limit.counter)?;
        if !shard.contains_key(&limit.counter) {
            if shard.len() >= most {
                let idle = shard.iter().find(|(_, entry)| entry.share.is_idle(now)).map(|(counter, _)| counter.clone());
                shard.remove(&idle?);
            }
            shard.insert(limit.counter.clone(), Entry { share: Share::new(now, limit), waiting: None });
        }
        shard.get_mut(&limit.counter)
    }

    fn shard(&mut self, counter: &Counter) -> Option<(&mut Shard, usize)> {
        let wanted = shard_of(counter);
        let most = self.most;
        let guard = self.guards.iter_mut().flatten().find(|(shard, _)| *shard == wanted)?;
        Some((&mut *guard.1, most))
    }
}

/// By bits that the maps themselves do not go by.
pub(super) fn shard_of(counter: &Counter) -> usize {
    (counter.hash() >> 32) as usize % SHARDS
}
