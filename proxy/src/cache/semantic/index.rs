//! Where vectors of questions are, and which of them are near. One trait, two places: this process (`memory`), and a Postgres
//! that has the extension for it. An index knows keys of the cache, never answers: what it names may be gone meanwhile.

pub mod memory;
pub mod pgvector;
mod quantised;

use super::lexical::{Guard, LexicalMarks};
use crate::cache::CacheKey;
use crate::runtime::tenant_share::Tenant;
use async_trait::async_trait;

pub use memory::MemoryIndex;
pub use pgvector::PgVectorIndex;

/// Requests that may be compared: a workspace's, equal in everything but their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Partition {
    pub tenant: Tenant,
    pub digest: [u8; 32],
}

/// What was asked, in the forms that are compared. Its vector has length 1.
#[derive(Debug, Clone)]
pub struct AskedVector {
    pub partition: Partition,
    pub values: Vec<f32>,
    pub marks: LexicalMarks,
}

/// How near is near enough.
#[derive(Debug, Clone, Copy)]
pub struct Nearness {
    pub threshold: f32,
    pub guard: Guard,
    pub now_ms: i64,
    /// Most that are found.
    pub most: usize,
}

#[async_trait]
pub trait VectorIndex: Send + Sync {
    /// Those at or above the threshold that the guard passes, the nearest first.
    async fn near(&self, asked: &AskedVector, nearness: Nearness) -> Result<Vec<CacheKey>, String>;

    /// In place of what was there by the same key. Nobody waits for it: an index elsewhere is told in the background.
    fn put(&self, asked: AskedVector, key: CacheKey, expires_at_ms: i64);

    fn remove(&self, partition: Partition, keys: &[CacheKey]);

    /// Gives back the memory of what has expired.
    fn sweep(&self, now_ms: i64);

    /// What it does in the background, for ever.
    async fn run(&self) {}
}
