//! Entries in this process: weighed by their bytes, bounded, and fair between organisations and their workspaces.
//!
//! When there is no room, the organisation that uses the most gives up the oldest entry of its largest workspace that was not
//! asked for lately. So one that uses no more than an equal part loses nothing, however much another one writes; and while others need
//! nothing, one may use it all. Shards are chosen by the key, and the rule holds in each of them.

use super::entry::{CacheKey, Entry};
use crate::runtime::tenant_share::Tenant;
use parking_lot::RwLock;
use std::collections::hash_map::Entry as Place;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use uuid::Uuid;

/// A shard is at least this large, so that small bounds still hold entries of some size.
const MIN_SHARD: usize = 8 << 20;
const MAX_SHARDS: usize = 16;
/// The largest entry is this part of the bound, so that a few large answers do not empty it; within these limits.
const PART_OF_ALL: usize = 64;
const MIN_LARGE: usize = 256 << 10;
const MAX_ENTRY: usize = 8 << 20;

type Digest = [u8; 32];

pub struct Memory {
    shards: Box<[RwLock<Shard>]>,
    largest: usize,
    evicted: AtomicU64,
}

impl Memory {
    pub fn new(max_bytes: usize) -> Self {
        let count = (max_bytes / MIN_SHARD).clamp(1, MAX_SHARDS);
        let bound = max_bytes / count;
        let shards = (0..count).map(|_| RwLock::new(Shard { bound, ..Shard::default() })).collect();
        let largest = (max_bytes / PART_OF_ALL).clamp(MIN_LARGE, MAX_ENTRY).min(bound / 4);
        Self { shards, largest, evicted: AtomicU64::new(0) }
    }

    /// Beyond this many bytes an answer is not kept.
    pub fn largest_entry(&self) -> usize {
        self.largest
    }

    /// One that counts. Whether it does is asked once for each version of what decides that.
    pub fn find(
        &self,
        key: &CacheKey,
        now_ms: i64,
        version: u64,
        counts: impl FnOnce(&Entry) -> bool,
    ) -> Option<Arc<Entry>> {
        let shard = self.shard(key)?.read();
        let slot = shard.rooms.get(&key.tenant)?.slots.get(&key.digest)?;
        if slot.entry.is_expired(now_ms) {
            return None;
        }
        if slot.counted_in.load(Ordering::Relaxed) != version {
            if !counts(&slot.entry) {
                return None;
            }
            slot.counted_in.store(version, Ordering::Relaxed);
        }
        // Written once: what is asked for often would else bounce between the cores.
        if !slot.is_wanted.load(Ordering::Relaxed) {
            slot.is_wanted.store(true, Ordering::Relaxed);
        }
        Some(slot.entry.clone())
    }

    /// Replaces what was there. One that is too large is not kept, and what it would have replaced neither.
    pub fn store(&self, key: CacheKey, entry: Arc<Entry>, now_ms: i64) {
        let Some(shard) = self.shard(&key) else { return };
        let mut shard = shard.write();
        if entry.weight() > self.largest {
            shard.remove(key.tenant, &key.digest);
            return;
        }
        let replaced = shard.insert(key, entry);
        let evicted = shard.make_room(now_ms);
        drop(shard);
        // Given back where nobody waits for it.
        drop(replaced);
        if evicted > 0 {
            self.evicted.fetch_add(evicted, Ordering::Relaxed);
        }
    }

    /// Takes out what a caller need not keep, as what has expired or was purged.
    pub fn retain(&self, keep: impl Fn(Uuid, &Entry) -> bool) {
        for shard in &self.shards {
            shard.write().retain(&keep);
        }
    }

    /// Bytes and entries.
    pub fn size(&self) -> (usize, usize) {
        self.shards.iter().fold((0, 0), |(bytes, entries), shard| {
            let shard = shard.read();
            (bytes + shard.bytes, entries + shard.rooms.values().map(|room| room.slots.len()).sum::<usize>())
        })
    }

    /// How many entries had to go before they expired.
    pub fn evicted(&self) -> u64 {
        self.evicted.load(Ordering::Relaxed)
    }

    fn shard(&self, key: &CacheKey) -> Option<&RwLock<Shard>> {
        // Its last byte: the map inside hashes all of it anyway.
        self.shards.get(usize::from(key.digest[31]) % self.shards.len())
    }
}

#[derive(Default)]
struct Shard {
    bound: usize,
    bytes: usize,
    rooms: HashMap<Tenant, Room, foldhash::fast::RandomState>,
    organisations: HashMap<Uuid, OrganisationUse, foldhash::fast::RandomState>,
    /// Organisations by what they use, so that the largest is at hand.
    by_use: BTreeSet<(usize, Uuid)>,
}

#[derive(Default)]
struct OrganisationUse {
    bytes: usize,
    /// Its workspaces by what they use.
    by_use: BTreeSet<(usize, Uuid)>,
}

/// What one workspace has in a shard.
#[derive(Default)]
struct Room {
    bytes: usize,
    slots: HashMap<Digest, Slot, foldhash::fast::RandomState>,
    /// Oldest first; each digest of `slots` stands here once.
    order: VecDeque<Digest>,
}

struct Slot {
    entry: Arc<Entry>,
    weight: usize,
    /// It was asked for since it last came to the front.
    is_wanted: AtomicBool,
    /// The last version in which it was found to count.
    counted_in: AtomicU64,
}

/// No version is as high.
const UNCOUNTED: u64 = u64::MAX;

impl Shard {
    /// Returns what it replaces.
    fn insert(&mut self, key: CacheKey, entry: Arc<Entry>) -> Option<Slot> {
        let weight = entry.weight();
        let room = self.rooms.entry(key.tenant).or_default();
        let before = room.bytes;
        let counted_in = AtomicU64::new(UNCOUNTED);
        let slot = Slot { entry, weight, is_wanted: AtomicBool::new(false), counted_in };
        let replaced = match room.slots.entry(key.digest) {
            Place::Occupied(mut there) => Some(there.insert(slot)),
            Place::Vacant(place) => {
                place.insert(slot);
                room.order.push_back(key.digest);
                None
            }
        };
        room.bytes = room.bytes + weight - replaced.as_ref().map_or(0, |slot| slot.weight);
        let after = room.bytes;
        self.changed(key.tenant, before, after);
        replaced
    }

    fn remove(&mut self, tenant: Tenant, digest: &Digest) {
        let Some(room) = self.rooms.get_mut(&tenant) else { return };
        let Some(slot) = room.slots.remove(digest) else { return };
        room.order.retain(|other| other != digest);
        let before = room.bytes;
        room.bytes -= slot.weight;
        let after = room.bytes;
        self.changed(tenant, before, after);
    }

    /// Returns how many entries had to go.
    fn make_room(&mut self, now_ms: i64) -> u64 {
        let mut evicted = 0;
        while self.bytes > self.bound {
            let Some((before, tenant)) = self.heaviest() else { break };
            let Some(room) = self.rooms.get_mut(&tenant) else { break };
            evicted += u64::from(room.give_up(now_ms));
            let after = room.bytes;
            if after == before {
                break;
            }
            self.changed(tenant, before, after);
        }
        evicted
    }

    fn heaviest(&self) -> Option<(usize, Tenant)> {
        let (_, organisation) = *self.by_use.last()?;
        let (bytes, workspace) = *self.organisations.get(&organisation)?.by_use.last()?;
        Some((bytes, Tenant { organisation, workspace }))
    }

    fn retain(&mut self, keep: &impl Fn(Uuid, &Entry) -> bool) {
        let mut changes = Vec::new();
        for (tenant, room) in &mut self.rooms {
            let before = room.bytes;
            room.slots.retain(|_, slot| {
                let stays = keep(tenant.workspace, &slot.entry);
                room.bytes -= if stays { 0 } else { slot.weight };
                stays
            });
            if room.bytes != before {
                room.order.retain(|digest| room.slots.contains_key(digest));
                room.slots.shrink_to_fit();
                room.order.shrink_to_fit();
                changes.push((*tenant, before, room.bytes));
            }
        }
        for (tenant, before, after) in changes {
            self.changed(tenant, before, after);
        }
    }

    /// Keeps the sums in step.
    fn changed(&mut self, tenant: Tenant, before: usize, after: usize) {
        if before == after {
            return;
        }
        self.bytes = self.bytes + after - before;
        let Tenant { organisation, workspace } = tenant;
        let own = self.organisations.entry(organisation).or_default();
        self.by_use.remove(&(own.bytes, organisation));
        own.bytes = own.bytes + after - before;
        own.by_use.remove(&(before, workspace));
        if after == 0 {
            self.rooms.remove(&tenant);
        } else {
            own.by_use.insert((after, workspace));
        }
        if own.bytes == 0 {
            self.organisations.remove(&organisation);
        } else {
            self.by_use.insert((own.bytes, organisation));
        }
    }
}

impl Room {
    /// Lets one entry go: the oldest that has expired or was not asked for. Each is passed over once at most. Whether it
    /// was still of use.
    fn give_up(&mut self, now_ms: i64) -> bool {
        while let Some(digest) = self.order.pop_front() {
            let Some(slot) = self.slots.get(&digest) else { continue };
            let is_expired = slot.entry.is_expired(now_ms);
            if !is_expired && slot.is_wanted.swap(false, Ordering::Relaxed) {
                self.order.push_back(digest);
                continue;
            }
            if let Some(slot) = self.slots.remove(&digest) {
                self.bytes -= slot.weight;
            }
            return !is_expired;
        }
        false
    }
}

#[cfg(test)]
mod tests;
