//! Where answers are kept and found: memory in front, and behind it what else a deployment has. The walk knows this
//! type alone, so that another store changes nothing of it.

use super::entry::{CacheKey, Entry};
use super::flight::{Boarding, Flights};
use super::memory::Memory;
use super::semantic::Semantic;
use shared::id::OrganisationId;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

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
    flights: Arc<Flights>,
    semantic: Option<Arc<Semantic>>,
}

impl Cache {
    pub fn new(max_bytes: usize) -> Self {
        Self { memory: Memory::new(max_bytes), flights: Arc::default(), semantic: None }
    }

    /// With what recognises requests in other words, if the operator has set it up.
    pub fn with_semantic(self, semantic: Option<Semantic>) -> Self {
        Self { semantic: semantic.map(Arc::new), ..self }
    }

    pub fn semantic(&self) -> Option<&Arc<Semantic>> {
        self.semantic.as_ref()
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

    /// To ask for what is not there, or to wait for somebody who does.
    pub fn board(&self, key: CacheKey) -> Boarding {
        self.flights.board(key)
    }

    /// Beyond this many bytes an answer is not kept.
    pub fn largest_entry(&self) -> usize {
        self.memory.largest_entry()
    }

    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// Takes out what has expired, now and then. Apart from the threads that carry requests.
    pub async fn run(&self) {
        const EVERY: Duration = Duration::from_secs(30);
        loop {
            tokio::time::sleep(EVERY).await;
            self.sweep();
        }
    }

    fn sweep(&self) {
        let now = now_ms();
        self.memory.retain(|_, entry| !entry.is_expired(now));
        if let Some(semantic) = &self.semantic {
            semantic.sweep(now);
        }
    }
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    i64::try_from(since).unwrap_or(i64::MAX)
}
