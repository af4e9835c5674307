//! All shares of this process, cut into pieces with a lock each: requests of different callers do not meet, and one
//! request's limits are decided with all of their pieces held, always taken in the same order.

use super::counter::{Counter, Limit, Moment};
use super::share::Share;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
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
    room: Room,
}

/// How many shares there are, and may be. Only who makes or forgets one writes here.
struct Room {
    count: AtomicUsize,
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
        let room = Room { count: AtomicUsize::new(0), most };
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), room }
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
        // Sorted while they are put in: there are few.
        let mut filled = 0;
        for shard in counters.map(shard_of) {
            let before = guards[..filled].iter().flatten().take_while(|(other, _)| *other < shard).count();
            if guards[..filled].get(before).and_then(Option::as_ref).is_none_or(|(other, _)| *other != shard) {
                guards[before..=filled].rotate_right(1);
                guards[before] = Some((shard, None));
                filled += 1;
            }
        }
        for (shard, guard) in guards[..filled].iter_mut().flatten() {
            *guard = Some(self.shards[*shard].lock());
        }
        work(&mut Held { guards, room: &self.room })
    }

    /// How many shares there are.
    pub fn len(&self) -> usize {
        self.room.count.load(Relaxed)
    }

    /// Goes over every share, a shard at a time.
    pub fn each(&self, mut work: impl FnMut(&mut Entry)) {
        for shard in &self.shards {
            shard.lock().values_mut().for_each(&mut work);
        }
    }

    /// Goes over some, from a shard on, and answers where to go on. It stops after so many looks, and after so many finds;
    /// `look` says whether a share is kept and how much it found there.
    pub fn sweep(
        &self,
        from: usize,
        [looks, finds]: [usize; 2],
        mut look: impl FnMut(&Counter, &mut Entry) -> (bool, usize),
    ) -> usize {
        let (mut looked, mut found) = (0, 0);
        for step in 0..SHARDS {
            let at = (from + step) % SHARDS;
            if looked >= looks || found >= finds {
                return at;
            }
            let mut shard = self.shards[at].lock();
            let before = shard.len();
            shard.retain(|counter, entry| {
                let (is_kept, more) = look(counter, entry);
                found += more;
                is_kept
            });
            looked += before;
            self.room.count.fetch_sub(before - shard.len(), Relaxed);
            if shard.capacity() > 64 && shard.len() < shard.capacity() / 8 {
                shard.shrink_to_fit();
            }
        }
        from
    }
}

/// A shard, and what holds it.
type Guard<'g> = Option<(usize, Option<MutexGuard<'g, Shard>>)>;

/// The shards of one request.
pub struct Held<'h, 'g> {
    guards: &'h mut [Guard<'g>],
    room: &'h Room,
}

impl Held<'_, '_> {
    pub fn entry(&mut self, counter: &Counter) -> Option<&mut Entry> {
        self.shard(counter)?.get_mut(counter)
    }

    /// Makes the share if there is none; none when there is no room for it.
    pub fn entry_or_new(&mut self, now: Moment, limit: &Limit) -> Option<&mut Entry> {
        let room = self.room;
        let shard = self.shard(&limit.counter)?;
        // One for another: nobody else may find room in between.
        let is_exchange = room.count.load(Relaxed) >= room.most && !shard.contains_key(&limit.counter);
        if is_exchange {
            let idle = shard.iter().find(|(_, entry)| entry.share.is_idle(now)).map(|(counter, _)| counter.clone());
            shard.remove(&idle?);
        }
        let entry = shard.entry(limit.counter.clone()).or_insert_with(|| {
            room.count.fetch_add(usize::from(!is_exchange), Relaxed);
            Entry { share: Share::new(now, limit), waiting: None }
        });
        Some(entry)
    }

    fn shard(&mut self, counter: &Counter) -> Option<&mut Shard> {
        let wanted = shard_of(counter);
        let (_, guard) = self.guards.iter_mut().flatten().find(|(shard, _)| *shard == wanted)?;
        guard.as_deref_mut()
    }
}

/// By bits that the maps themselves do not go by.
pub(super) fn shard_of(counter: &Counter) -> usize {
    (counter.hash() >> 32) as usize % SHARDS
}
