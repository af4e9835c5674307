//! Where answers are kept and found: memory in front, and behind it what else a deployment has. The walk knows this
//! type alone, so that another store changes nothing of it.

use super::entry::{CacheKey, Entry};
use super::memory::Memory;
use shared::id::OrganisationId;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

/// What a store says of a key.
#[derive(Debug, Clone)]
pub enum Found {
    Entry(Arc<Entry>),
    Absent,
    /// A store could not be asked in time. For the request it is a miss.
    Away,
}

pub struct Cache {
    memory: Memory,
}

impl Cache {
    pub fn new(max_bytes: usize) -> Self {
        Self { memory: Memory::new(max_bytes) }
    }

    pub async fn find(&self, _organisation: OrganisationId, key: &CacheKey) -> Found {
        match self.memory.find(key, now_ms()) {
            Some(entry) => Found::Entry(entry),
            None => Found::Absent,
        }
    }

    pub fn store(&self, _organisation: OrganisationId, key: CacheKey, entry: Entry) {
        self.memory.store(key, Arc::new(entry), now_ms());
    }

    /// Beyond this many bytes an answer is not kept.
    pub fn largest_entry(&self) -> usize {
        self.memory.largest_entry()
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Takes out what has expired.
    pub fn sweep(&self) {
        let now = now_ms();
        self.memory.retain(|_, entry| !entry.is_expired(now));
    }
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    i64::try_from(since).unwrap_or(i64::MAX)
}
