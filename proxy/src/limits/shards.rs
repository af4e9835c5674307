//! All shares of this process. Each has a lock of its own, and one request's limits are decided with all of theirs held,
//! always taken in the same order. Where a share is, is found by its counter in one of many maps, or remembered by whoever
//! found it before: what somebody remembers is not forgotten here.

use super::counter::{Counter, Limit, Micros};
use super::share::Share;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::fmt;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

pub const SHARDS: usize = 256;
/// Limits of one request that need no memory of their own to be decided.
const FEW: usize = 8;

type ShareMap = HashMap<Counter, Arc<Slot>, BuildHasherDefault<KnownHash>>;

pub struct ShareEntry {
    pub share: Share,
    /// Requests that wait for the store; they wake when this is dropped.
    pub waiting: Option<watch::Sender<()>>,
}

/// Where a share is kept.
pub struct Slot(Mutex<ShareEntry>);

/// Where the share of a limit was found, so that it need not be looked for again.
#[derive(Clone, Default)]
pub struct ShareHandle(OnceLock<Arc<Slot>>);

pub struct Shards {
    shards: Box<[Mutex<ShareMap>]>,
    /// How many shares there are, and may be. Only who makes or forgets one writes here.
    count: AtomicUsize,
    most: usize,
}

/// Counters know their hash.
#[derive(Default)]
struct KnownHash(u64);

impl Hasher for KnownHash {
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

impl Slot {
    pub fn lock(&self) -> MutexGuard<'_, ShareEntry> {
        self.0.lock()
    }
}

impl fmt::Debug for ShareHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "found" } else { "not found yet" })
    }
}

impl Shards {
    pub fn new(most: usize) -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), count: AtomicUsize::new(0), most }
    }

    pub fn find(&self, counter: &Counter) -> Option<Arc<Slot>> {
        self.shards[shard_of(counter)].lock().get(counter).cloned()
    }

    /// Does something with the share of a counter, if there is one.
    pub fn with<T>(&self, counter: &Counter, work: impl FnOnce(&mut ShareEntry) -> T) -> Option<T> {
        self.find(counter).map(|slot| work(&mut slot.lock()))
    }

    /// Makes the share if there is none; none when there is no room for it.
    pub fn find_or_make(&self, now: Micros, limit: &Limit, found: Option<&ShareHandle>) -> Option<Arc<Slot>> {
        if let Some(slot) = found.and_then(|found| found.0.get()) {
            return Some(slot.clone());
        }
        let slot = self.look_or_make(now, limit)?;
        if let Some(found) = found {
            let _ = found.0.set(slot.clone());
        }
        Some(slot)
    }

    fn look_or_make(&self, now: Micros, limit: &Limit) -> Option<Arc<Slot>> {
        let mut shard = self.shards[shard_of(&limit.counter)].lock();
        if let Some(slot) = shard.get(&limit.counter) {
            return Some(slot.clone());
        }
        // One for another: nobody else may find room in between.
        if self.count.load(Relaxed) >= self.most {
            let is_idle = |slot: &Arc<Slot>| is_unknown(slot) && slot.lock().share.is_idle(now);
            let idle = shard.iter().find(|(_, slot)| is_idle(slot)).map(|(counter, _)| counter.clone());
            shard.remove(&idle?);
        } else {
            self.count.fetch_add(1, Relaxed);
        }
        let slot = Arc::new(Slot(Mutex::new(ShareEntry { share: Share::new(now, limit), waiting: None })));
        shard.insert(limit.counter.clone(), slot.clone());
        Some(slot)
    }

    /// How many shares there are.
    pub fn len(&self) -> usize {
        self.count.load(Relaxed)
    }

    /// Goes over every share, a shard at a time.
    pub fn each(&self, mut work: impl FnMut(&mut ShareEntry)) {
        for shard in &self.shards {
            shard.lock().values().for_each(|slot| work(&mut slot.lock()));
        }
    }

    /// Goes over some, from a shard on, and answers where to go on. It stops after so many looks, and after so many finds;
    /// `look` says whether a share is needed and how much it found there.
    pub fn sweep(
        &self,
        from: usize,
        [looks, finds]: [usize; 2],
        mut look: impl FnMut(&Counter, &mut ShareEntry) -> (bool, usize),
    ) -> usize {
        let (mut looked, mut found) = (0, 0);
        for step in 0..SHARDS {
            let at = (from + step) % SHARDS;
            if looked >= looks || found >= finds {
                return at;
            }
            let mut shard = self.shards[at].lock();
            let before = shard.len();
            shard.retain(|counter, slot| {
                let (is_needed, more) = look(counter, &mut slot.lock());
                found += more;
                is_needed || !is_unknown(slot)
            });
            looked += before;
            self.count.fetch_sub(before - shard.len(), Relaxed);
            if shard.capacity() > 64 && shard.len() < shard.capacity() / 8 {
                shard.shrink_to_fit();
            }
        }
        from
    }
}

/// Whether nobody can reach it but through its map, whose lock the caller holds.
fn is_unknown(slot: &Arc<Slot>) -> bool {
    Arc::strong_count(slot) == 1
}

/// The shares of one request, all held.
pub struct LockedShares<'h, 's> {
    slots: &'s [Option<Arc<Slot>>],
    /// One for each slot; none where another slot of the request is the same.
    guards: &'h mut [Option<MutexGuard<'s, ShareEntry>>],
}

/// Does something with all of these held at once.
pub fn with_all<'s, T>(slots: &'s [Option<Arc<Slot>>], work: impl FnOnce(&mut LockedShares<'_, 's>) -> T) -> T {
    let mut few = [const { None }; FEW];
    let mut many;
    let guards = match slots.len() <= FEW {
        true => &mut few[..slots.len()],
        false => {
            many = Vec::new();
            many.resize_with(slots.len(), || None);
            &mut many[..]
        }
    };
    // By where they lie in memory, whoever asks: two requests that want the same never wait for each other.
    let place = |slot: &'s Option<Arc<Slot>>| slot.as_ref().map(|slot| (Arc::as_ptr(slot).addr(), &**slot));
    let mut last = 0;
    loop {
        let places = slots.iter().enumerate().filter_map(|(index, slot)| Some((place(slot)?, index)));
        let later = places.filter(|((address, _), _)| *address > last);
        let least = later.min_by_key(|((address, _), index)| (*address, *index));
        let Some(((address, slot), index)) = least else { break };
        guards[index] = Some(slot.lock());
        last = address;
    }
    work(&mut LockedShares { slots, guards })
}

impl LockedShares<'_, '_> {
    /// The share of one of the slots; none where there is no slot.
    pub fn entry(&mut self, index: usize) -> Option<&mut ShareEntry> {
        let is_same = |other: &Option<Arc<Slot>>| match (other, &self.slots[index]) {
            (Some(other), Some(slot)) => Arc::ptr_eq(other, slot),
            _ => false,
        };
        let first = match self.guards[index] {
            Some(_) => index,
            None => self.slots.iter().position(is_same)?,
        };
        self.guards[first].as_deref_mut()
    }
}

/// By bits that the maps themselves do not go by.
pub(super) fn shard_of(counter: &Counter) -> usize {
    (counter.hash() >> 32) as usize % SHARDS
}

#[cfg(test)]
mod tests {
    use super::super::counter::{LimitKind, Scope, Unit, Window};
    use super::*;
    use uuid::Uuid;

    fn limit(id: &str) -> Limit {
        let kind = LimitKind::Rate(Window::Minute);
        let counter = Counter::new(Uuid::nil().into(), Scope::Policy, id, Unit::Requests, kind);
        Limit { counter, cap: 1, kind, dry_run: false }
    }

    fn sweep(shards: &Shards) -> usize {
        shards.sweep(0, [usize::MAX; 2], |_, _| (false, 0));
        shards.len()
    }

    #[test]
    fn what_somebody_remembers_is_neither_forgotten_nor_pushed_out() {
        let (shards, found) = (Shards::new(1), ShareHandle::default());
        let one = limit("a");
        let is_neighbour = |limit: &Limit| shard_of(&limit.counter) == shard_of(&one.counter);
        let other = (0..).map(|n| limit(&n.to_string())).find(is_neighbour).unwrap();
        let slot = shards.find_or_make(0, &one, Some(&found)).unwrap();
        assert!(Arc::ptr_eq(&slot, &shards.find_or_make(0, &other, Some(&found)).unwrap()), "it is not looked for");
        drop(slot);
        assert_eq!((sweep(&shards), shards.find(&one.counter).is_some()), (1, true));
        let later = 2 * Window::Minute.length();
        assert!(shards.find_or_make(later, &other, None).is_none(), "there is room for one");
        drop(found);
        assert!(shards.find_or_make(later, &other, None).is_some(), "the first one's window is over");
        assert_eq!((sweep(&shards), shards.find(&other.counter).is_some()), (0, false));
    }

    #[test]
    fn each_share_is_held_once_whatever_the_order_and_however_often_it_is_named() {
        let shards = Shards::new(99);
        let slot = |id| shards.find_or_make(0, &limit(id), None);
        for slots in [
            vec![slot("a"), slot("b")],
            vec![slot("b"), None, slot("a"), slot("b")],
            (0..20).map(|_| slot("c")).collect(),
        ] {
            with_all(&slots, |held| {
                for (index, slot) in slots.iter().enumerate() {
                    let entry = held.entry(index);
                    assert_eq!(entry.is_some(), slot.is_some());
                    if let Some(entry) = entry {
                        entry.share.take(index as Micros, 1);
                    }
                }
                assert!(slots.iter().flatten().all(|slot| slot.0.is_locked()));
            });
            assert!(slots.iter().flatten().all(|slot| !slot.0.is_locked()));
        }
    }
}
