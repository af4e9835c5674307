//! An index in this process. A partition is a list that is gone through: it is bounded, and a thousand comparisons cost less
//! than a tenth of a millisecond. Memory is bounded for all and fair between tenants: when there is no room, the
//! organisation that uses the most gives up the oldest of its largest workspace, so that one with less than an equal part
//! loses nothing.

use super::quantised::Quantised;
use super::{AskedVector, Nearness, Partition, VectorIndex};
use crate::cache::CacheKey;
use crate::cache::semantic::lexical::LexicalMarks;
use crate::runtime::heavy::heavy;
use crate::runtime::tenant_share::{Tenant, heaviest_of};
use async_trait::async_trait;
use parking_lot::RwLock;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Of one partition.
const MAX_ROWS: usize = 4096;
/// Of one search: the guard reads words, which costs more than a cosine.
const MAX_JUDGED: usize = 32;
/// A search of more is done beside the threads that carry requests: so many products of numbers, or marks of so many bytes.
const FEW_PRODUCTS: usize = 1 << 20;
const FEW_WORDS: usize = 4 << 10;
/// What stands around a row: maps, queues, allocations.
const AROUND: usize = 160;

pub struct MemoryIndex {
    most_bytes: usize,
    bytes: AtomicUsize,
    workspaces: RwLock<HashMap<Tenant, Arc<RwLock<WorkspaceRows>>>>,
}

#[derive(Default)]
struct WorkspaceRows {
    partitions: HashMap<[u8; 32], Vec<Row>>,
    /// The oldest first. Rows that are gone meanwhile stay until they are met.
    order: VecDeque<([u8; 32], u64)>,
    bytes: usize,
    rows: usize,
    next: u64,
}

struct Row {
    number: u64,
    vector: Quantised,
    marks: LexicalMarks,
    key: [u8; 32],
    expires_at_ms: i64,
}

impl MemoryIndex {
    pub fn new(most_bytes: usize) -> Self {
        Self { most_bytes, bytes: AtomicUsize::new(0), workspaces: RwLock::default() }
    }

    pub fn bytes(&self) -> usize {
        self.bytes.load(Relaxed)
    }

    fn rows(&self, tenant: Tenant) -> Option<Arc<RwLock<WorkspaceRows>>> {
        self.workspaces.read().get(&tenant).cloned()
    }

    fn insert(&self, asked: AskedVector, key: CacheKey, expires_at_ms: i64) {
        let tenant = asked.partition.tenant;
        let vector = Quantised::new(&asked.values);
        if key.tenant != tenant || weight(&vector, &asked.marks) > self.most_bytes {
            return;
        }
        let rows = self.workspaces.write().entry(tenant).or_default().clone();
        let (before, after) = {
            let mut rows = rows.write();
            let before = rows.bytes;
            rows.insert(asked.partition.digest, vector, asked.marks, key.digest, expires_at_ms);
            (before, rows.bytes)
        };
        self.account(before, after);
        while self.bytes() > self.most_bytes && self.make_room() {}
    }

    /// False when there is nothing left to give up.
    fn make_room(&self) -> bool {
        let largest = {
            let workspaces = self.workspaces.read();
            let heaviest = heaviest_of(workspaces.iter().map(|(tenant, rows)| (*tenant, rows.read().bytes)));
            heaviest.and_then(|tenant| workspaces.get(&tenant).cloned())
        };
        let Some(rows) = largest else { return false };
        let mut rows = rows.write();
        let before = rows.bytes;
        let has_given = rows.drop_oldest();
        self.account(before, rows.bytes);
        has_given
    }

    fn account(&self, before: usize, after: usize) {
        match after >= before {
            true => self.bytes.fetch_add(after - before, Relaxed),
            false => self.bytes.fetch_sub(before - after, Relaxed),
        };
    }

    fn forget(&self, partition: Partition, keys: &[CacheKey]) {
        let Some(rows) = self.workspaces.read().get(&partition.tenant).cloned() else { return };
        let mut rows = rows.write();
        let before = rows.bytes;
        rows.retain(partition.digest, |row| !keys.iter().any(|key| key.digest == row.key));
        self.account(before, rows.bytes);
    }

    /// Rows whose time is over give their memory back, and so do workspaces without rows.
    fn give_back(&self, now_ms: i64) {
        let all: Vec<(Tenant, Arc<RwLock<WorkspaceRows>>)> =
            self.workspaces.read().iter().map(|(id, rows)| (*id, rows.clone())).collect();
        for (_, rows) in &all {
            let mut rows = rows.write();
            let before = rows.bytes;
            let digests: Vec<[u8; 32]> = rows.partitions.keys().copied().collect();
            for digest in digests {
                rows.retain(digest, |row| row.expires_at_ms > now_ms);
            }
            rows.tidy();
            self.account(before, rows.bytes);
        }
        // Nobody else holds an empty one that is taken out: whoever is about to insert holds a clone.
        self.workspaces.write().retain(|_, rows| Arc::strong_count(rows) > 2 || rows.read().rows > 0);
    }
}

impl WorkspaceRows {
    /// How many rows a search goes through.
    fn length(&self, partition: &Partition) -> usize {
        self.partitions.get(&partition.digest).map_or(0, Vec::len)
    }

    fn found(&self, asked: &AskedVector, nearness: Nearness) -> Vec<CacheKey> {
        let tenant = asked.partition.tenant;
        let Some(partition) = self.partitions.get(&asked.partition.digest) else { return Vec::new() };
        let vector = Quantised::new(&asked.values);
        let mut near: Vec<(f32, &Row)> = partition
            .iter()
            .filter(|row| row.expires_at_ms > nearness.now_ms)
            .map(|row| (vector.cosine(&row.vector), row))
            .filter(|(cosine, _)| *cosine >= nearness.threshold)
            .collect();
        near.sort_by(|one, another| another.0.total_cmp(&one.0));
        near.iter()
            .take(MAX_JUDGED)
            .filter(|(_, row)| asked.marks.conflict(&row.marks, nearness.guard).is_none())
            .take(nearness.most)
            .map(|(_, row)| CacheKey { tenant, digest: row.key })
            .collect()
    }

    fn insert(
        &mut self,
        partition: [u8; 32],
        vector: Quantised,
        marks: LexicalMarks,
        key: [u8; 32],
        expires_at_ms: i64,
    ) {
        self.retain(partition, |row| row.key != key);
        let is_full = self.partitions.get(&partition).is_some_and(|rows| rows.len() >= MAX_ROWS);
        if is_full
            && let Some(oldest) = self.partitions.get(&partition).and_then(|rows| rows.first()).map(|row| row.number)
        {
            self.retain(partition, |row| row.number != oldest);
        }
        let number = self.next;
        self.next += 1;
        self.bytes += weight(&vector, &marks);
        self.rows += 1;
        self.order.push_back((partition, number));
        self.partitions.entry(partition).or_default().push(Row { number, vector, marks, key, expires_at_ms });
        if self.order.len() > 2 * self.rows + 64 {
            self.tidy();
        }
    }

    fn retain(&mut self, partition: [u8; 32], keep: impl Fn(&Row) -> bool) {
        let Some(rows) = self.partitions.get_mut(&partition) else { return };
        let (mut freed, mut gone) = (0, 0);
        rows.retain(|row| {
            let stays = keep(row);
            if !stays {
                freed += weight(&row.vector, &row.marks);
                gone += 1;
            }
            stays
        });
        if rows.is_empty() {
            self.partitions.remove(&partition);
        }
        self.bytes -= freed;
        self.rows -= gone;
    }

    fn drop_oldest(&mut self) -> bool {
        let rows = self.rows;
        while let Some((partition, number)) = self.order.pop_front() {
            self.retain(partition, |row| row.number != number);
            if self.rows < rows {
                return true;
            }
        }
        false
    }

    /// The order without rows that are gone.
    fn tidy(&mut self) {
        let Self { partitions, order, .. } = self;
        // Rows of a partition stand in the order of their numbers.
        order.retain(|(partition, number)| {
            partitions.get(partition).is_some_and(|rows| rows.binary_search_by_key(number, |row| row.number).is_ok())
        });
    }
}

fn weight(vector: &Quantised, marks: &LexicalMarks) -> usize {
    AROUND + vector.weight() + marks.weight()
}

#[async_trait]
impl VectorIndex for MemoryIndex {
    async fn near(&self, asked: &AskedVector, nearness: Nearness) -> Result<Vec<CacheKey>, String> {
        let Some(rows) = self.rows(asked.partition.tenant) else { return Ok(Vec::new()) };
        let length = rows.read().length(&asked.partition);
        if length.saturating_mul(asked.values.len()) <= FEW_PRODUCTS && asked.marks.weight() <= FEW_WORDS {
            return Ok(rows.read().found(asked, nearness));
        }
        let (asked, tenant) = (asked.clone(), asked.partition.tenant);
        let found = heavy(tenant, move || rows.read().found(&asked, nearness)).await;
        found.ok_or_else(|| "a search panicked".to_owned())
    }

    fn put(&self, asked: AskedVector, key: CacheKey, expires_at_ms: i64) {
        self.insert(asked, key, expires_at_ms);
    }

    fn remove(&self, partition: Partition, keys: &[CacheKey]) {
        self.forget(partition, keys);
    }

    fn sweep(&self, now_ms: i64) {
        self.give_back(now_ms);
    }
}

#[cfg(test)]
mod tests;
