//! Kept answers in Redis or Valkey, where all replicas find them. No request fails or waits long because of it: a read that
//! takes longer than `CACHE_WAIT_MS` is a miss, reads are left out for a moment after a few of those, and writes are queued
//! for the threads in the background, by bytes and not without end.
//!
//! - `sealed`: an entry as it lies in Redis: compressed, sealed, bound to its key
//! - `breaker`: whether Redis is asked at all
//! - `writes`: what waits to be written
//! - `meters`: what became of reads and writes

mod breaker;
mod meters;
mod sealed;
pub(crate) mod writes;

pub use meters::RemoteMeters;

use super::entry::CacheKey;
use crate::runtime::heavy::{SMALL, heavy};
use crate::runtime::redis_link::RedisLink;
use crate::snapshot::Snapshot;
use breaker::StoreBreaker;
use bytes::Bytes;
use futures::StreamExt as _;
use sealed::SealedEntries;
use shared::secrets::seal::Sealer;
use shared::settings::CacheStoreSettings;
use shared::settings::cache_store::CacheStoreKind;
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use uuid::Uuid;
use writes::{PendingWrite, QueuedWrite, WriteQueue};

/// A longer entry is not stored, and none is unpacked to more.
pub const MAX_SIZE: usize = 4 << 20;
/// Packed and sealed. All reads share a connection and have little time, so what takes long to come would come for nobody and
/// hold up the rest: a longer one is not stored, and of a longer value nothing beyond this is read.
const MAX_STORED: usize = 512 << 10;
/// How long a connection is tried, and a write waited for.
const PATIENCE: Duration = Duration::from_secs(1);
/// Writes under way at the same time.
const AT_ONCE: usize = 16;

/// What Redis said of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Remote {
    /// An entry in bytes.
    Found(Bytes),
    Absent,
    /// It did not answer in time, or is not asked for a moment.
    Away,
}

pub struct RemoteStore {
    url: String,
    wait: Duration,
    sealed: SealedEntries,
    /// For reads, which nothing that is written may hold up; there once it was reached.
    reads: OnceLock<RedisLink>,
    breaker: StoreBreaker,
    queue: WriteQueue,
    meters: Arc<RemoteMeters>,
}

/// A store that has no address is told when the process starts.
pub fn check(settings: &CacheStoreSettings, redis_url: Option<&str>) -> anyhow::Result<()> {
    let needs_url = settings.cache_store == CacheStoreKind::Redis;
    anyhow::ensure!(!needs_url || redis_url.is_some(), "CACHE_STORE=redis needs REDIS_URL");
    Ok(())
}

impl RemoteStore {
    /// None where answers are kept in memory alone.
    pub fn from_settings(
        settings: &CacheStoreSettings,
        redis_url: Option<&str>,
        snapshot: Arc<Snapshot>,
        sealer: Arc<Sealer>,
        meters: Arc<RemoteMeters>,
    ) -> Option<Arc<Self>> {
        let url = redis_url.filter(|_| settings.cache_store == CacheStoreKind::Redis)?.to_owned();
        if !sealer.has_master_key() {
            tracing::warn!("CACHE_STORE is redis and there is no master key: nothing is stored there");
        }
        Some(Arc::new(Self {
            url,
            wait: Duration::from_millis(settings.cache_wait_ms),
            sealed: SealedEntries { snapshot, sealer },
            reads: OnceLock::new(),
            breaker: StoreBreaker::new(),
            queue: WriteQueue::new(),
            meters,
        }))
    }

    pub async fn get(&self, organisation: Uuid, key: &CacheKey) -> Remote {
        let link = self.reads.get().filter(|_| self.breaker.may_ask());
        let Some(link) = link else {
            self.meters.skipped.inc();
            return Remote::Away;
        };
        // Not GET: whatever lies there, no more than this is read. Nothing and an empty value are the same.
        let mut command = redis::cmd("GETRANGE");
        command.arg(name(key)).arg(0).arg(MAX_STORED);
        let began = Instant::now();
        let asked = tokio::time::timeout(self.wait, link.query::<Vec<u8>>(&command)).await;
        self.meters.seconds.observe(began.elapsed().as_secs_f64());
        let stored = match asked {
            Ok(Ok(stored)) => stored,
            Ok(Err(error)) => return self.read_failed(&error.to_string()),
            Err(_) => return self.read_failed("it took too long"),
        };
        if self.breaker.succeeded() {
            tracing::info!("Redis answers again; kept answers are read from it");
        }
        if stored.is_empty() {
            self.meters.absent.inc();
            return Remote::Absent;
        }
        match self.opened(organisation, *key, stored).await {
            Some(entry) => {
                self.meters.found.inc();
                Remote::Found(entry.into())
            }
            None => {
                self.meters.unreadable.inc();
                Remote::Absent
            }
        }
    }

    /// Beside the threads that carry requests if it is long.
    async fn opened(&self, organisation: Uuid, key: CacheKey, stored: Vec<u8>) -> Option<Vec<u8>> {
        if stored.len() <= SMALL {
            return self.sealed.open(organisation, &key, &stored);
        }
        let sealed = self.sealed.clone();
        heavy(key.tenant, move || sealed.open(organisation, &key, &stored)).await.flatten()
    }

    /// What was found was no entry after all: of another version, most likely.
    pub fn found_unreadable(&self) {
        self.meters.unreadable.inc();
    }

    /// Never waits. What does not fit into the queue is not stored, and counted. In the place of what is too large nothing is
    /// stored, so that nobody is given what it replaces.
    pub fn put(&self, organisation: Uuid, key: CacheKey, mut encoded: Vec<u8>, ttl: Duration) {
        if encoded.len() > MAX_SIZE {
            self.meters.too_large.inc();
            encoded = Vec::new();
        }
        if !self.queue.push(PendingWrite { organisation, key, encoded, ttl }) {
            self.meters.dropped.inc();
        }
    }

    /// Reaches Redis for reads. Their connection is driven by whoever runs this, so not by threads of low priority.
    pub async fn connect(self: Arc<Self>) {
        let link = self.reached().await;
        let _ = self.reads.set(link);
        // The runtime that drives the connection must stay.
        std::future::pending::<()>().await;
    }

    /// Writes what is queued, for ever.
    pub async fn write(self: Arc<Self>) {
        let link = self.reached().await;
        let (store, link) = (&self, &link);
        let each = |queued: QueuedWrite| async move { store.write_one(link, &queued.write).await };
        self.queue.waiting().for_each_concurrent(AT_ONCE, each).await;
    }

    async fn write_one(&self, link: &RedisLink, write: &PendingWrite) {
        // Redis takes no shorter one.
        let ttl = u64::try_from(write.ttl.as_millis()).unwrap_or(u64::MAX).max(1);
        if !self.queue.breaker.may_ask() {
            self.meters.dropped.inc();
            return;
        }
        let Some(stored) = self.stored(write) else {
            self.meters.unsealed.inc();
            return;
        };
        let mut command = redis::cmd("PSETEX");
        command.arg(name(&write.key)).arg(ttl).arg(stored);
        match tokio::time::timeout(PATIENCE, link.query::<()>(&command)).await {
            Ok(Ok(())) => {
                self.queue.breaker.succeeded();
                self.meters.written.inc();
            }
            Ok(Err(error)) => self.write_failed(&error.to_string()),
            Err(_) => self.write_failed("it took too long"),
        }
    }

    /// What lies in Redis then. None without a key to seal with.
    fn stored(&self, write: &PendingWrite) -> Option<Vec<u8>> {
        if write.encoded.is_empty() {
            return Some(Vec::new());
        }
        let stored = self.sealed.seal(write.organisation, &write.key, &write.encoded)?;
        if stored.len() <= MAX_STORED {
            return Some(stored);
        }
        self.meters.too_large.inc();
        Some(Vec::new())
    }

    fn read_failed(&self, error: &str) -> Remote {
        self.meters.failed.inc();
        if self.breaker.failed() {
            tracing::warn!(error, "Redis does not answer; kept answers are not read from it");
        }
        Remote::Away
    }

    fn write_failed(&self, error: &str) {
        self.meters.unwritten.inc();
        if self.queue.breaker.failed() {
            tracing::warn!(error, "Redis takes no answers to keep");
        }
    }

    /// Tries until it is there; from then on the connection mends itself.
    async fn reached(&self) -> RedisLink {
        let mut was_warned = false;
        loop {
            match RedisLink::connect(&self.url, PATIENCE).await {
                Ok(link) => return link,
                Err(error) if !was_warned => {
                    tracing::warn!(%error, "Redis cannot be reached; answers are kept in memory")
                }
                Err(_) => {}
            }
            was_warned = true;
            tokio::time::sleep(PATIENCE).await;
        }
    }
}

/// No hash tag: the answers of a workspace spread over the nodes of a Cluster.
fn name(key: &CacheKey) -> String {
    let mut name = String::with_capacity(120);
    let _ = write!(name, "portcullis:cache:v1:{}:", key.tenant.workspace.simple());
    name.push_str(&hex::encode(key.digest));
    name
}

#[cfg(test)]
mod tests;
