//! Where answers are kept and found: memory in front, and behind it what else a deployment has. The engine knows this
//! type alone, so that another store changes nothing of it.

use super::entry::{CacheKey, Entry};
use super::flight::{Boarding, Flights};
use super::key::{BodyDigest, KeyText};
use super::known_digests::KnownDigests;
use super::memory::Memory;
use super::purges::Purges;
use super::remote::{Remote, RemoteStore};
use super::semantic::Semantic;
use crate::runtime::heavy::heavy;
use shared::model::id::OrganisationId;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use uuid::Uuid;

/// Larger ones are read beside the threads that carry requests.
const SMALL_ENTRY: usize = 256 << 10;

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
    known_bodies: KnownDigests<BodyDigest>,
    known_keys: KnownDigests<[u8; 32]>,
    flights: Arc<Flights>,
    /// Shared with other replicas.
    remote: Option<Arc<RemoteStore>>,
    purges: Option<Purges>,
    semantic: Option<Arc<Semantic>>,
}

impl Cache {
    pub fn new(max_bytes: usize) -> Self {
        Self {
            memory: Memory::new(max_bytes),
            known_bodies: KnownDigests::default(),
            known_keys: KnownDigests::default(),
            flights: Arc::default(),
            remote: None,
            purges: None,
            semantic: None,
        }
    }

    /// With what recognises requests in other words, if the operator has set it up.
    pub fn with_semantic(self, semantic: Option<Semantic>) -> Self {
        Self { semantic: semantic.map(Arc::new), ..self }
    }

    pub fn semantic(&self) -> Option<&Arc<Semantic>> {
        self.semantic.as_ref()
    }

    /// The same with what lies behind memory, and with what tells which entries count no more.
    pub fn backed_by(self, remote: Option<Arc<RemoteStore>>, purges: Purges) -> Self {
        Self { remote, purges: Some(purges), ..self }
    }

    /// What must be run for it, if there is one.
    pub fn remote(&self) -> Option<&Arc<RemoteStore>> {
        self.remote.as_ref()
    }

    pub async fn find(&self, organisation: OrganisationId, key: &CacheKey) -> Found {
        // Read before the purges are: those that come meanwhile are looked at the next time.
        let version = self.purges.as_ref().map_or(0, Purges::version);
        let entry = self.memory.find(key, now_ms(), version, |entry| self.counts(key.tenant.workspace, entry));
        match (entry, &self.remote) {
            (Some(entry), _) => Found::Entry(entry),
            (None, None) => Found::Absent,
            // Boxed, or its state would be part of every request's.
            (None, Some(remote)) => Box::pin(self.find_behind(remote, organisation, key)).await,
        }
    }

    async fn find_behind(&self, remote: &RemoteStore, organisation: OrganisationId, key: &CacheKey) -> Found {
        let encoded = match remote.get(organisation.uuid(), key).await {
            Remote::Found(encoded) => encoded,
            Remote::Absent => return Found::Absent,
            Remote::Away => return Found::Away,
        };
        let decoded = match encoded.len() <= SMALL_ENTRY {
            true => Entry::decode(encoded),
            false => heavy(key.tenant, move || Entry::decode(encoded)).await.flatten(),
        };
        let Some(entry) = decoded else {
            remote.found_unreadable();
            return Found::Absent;
        };
        if entry.is_expired(now_ms()) || !self.counts(key.tenant.workspace, &entry) {
            return Found::Absent;
        }
        let entry = Arc::new(entry);
        self.memory.store(*key, entry.clone(), now_ms());
        Found::Entry(entry)
    }

    /// By the clock that stamps purges.
    pub fn database_now_ms(&self) -> i64 {
        self.purges.as_ref().map_or_else(now_ms, Purges::now_ms)
    }

    /// Whether it was not purged since its call began.
    pub fn counts(&self, workspace: Uuid, entry: &Entry) -> bool {
        let is_purged = |purges: &Purges| purges.is_purged(workspace, &entry.tags, entry.asked_at_ms);
        !self.purges.as_ref().is_some_and(is_purged)
    }

    pub fn store(&self, organisation: OrganisationId, key: CacheKey, entry: Entry) {
        let now = now_ms();
        if let Some(remote) = &self.remote {
            let left = u64::try_from(entry.expires_at_ms.saturating_sub(now)).unwrap_or(0);
            remote.put(organisation.uuid(), key, entry.encode(), Duration::from_millis(left));
        }
        self.memory.store(key, Arc::new(entry), now);
    }

    /// Of requests that were answered from here.
    pub fn known_bodies(&self) -> &KnownDigests<BodyDigest> {
        &self.known_bodies
    }

    /// What an answer is found by. Of a request that is known to come again it is remembered.
    pub fn key(&self, text: &KeyText, is_repeated: bool) -> CacheKey {
        let known = self.known_keys.find(text.as_bytes());
        let digest = known.unwrap_or_else(|| text.digest());
        if known.is_none() && is_repeated {
            self.known_keys.remember(text.as_bytes(), digest);
        }
        CacheKey { tenant: text.tenant, digest }
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

    /// Takes out what has expired or was purged, now and then. Apart from the threads that carry requests.
    pub async fn run(&self) {
        const EVERY: Duration = Duration::from_secs(30);
        loop {
            tokio::time::sleep(EVERY).await;
            self.sweep();
        }
    }

    fn sweep(&self) {
        let now = now_ms();
        self.memory.retain(|workspace, entry| !entry.is_expired(now) && self.counts(workspace, entry));
        self.known_bodies.forget_all();
        self.known_keys.forget_all();
        if let Some(semantic) = &self.semantic {
            semantic.sweep(now);
        }
    }
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis());
    i64::try_from(since).unwrap_or(i64::MAX)
}
