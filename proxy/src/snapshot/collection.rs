//! The rows of one followed table. Requests find a row by its key (an API key by its hash), but changes arrive by
//! row id, so the writer keeps an index from id to key: when a key is rotated, the old hash must stop working.

use super::list_pool::ListPool;
use super::sharded::{Shard, Sharded};
use parking_lot::Mutex;
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::telemetry::{Brief, LogLimit};
use std::collections::HashMap;
use std::hash::Hash;
use std::io::{self, Write};
use std::ops::AddAssign;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio_postgres::Row;
use uuid::Uuid;

/// A table the proxy follows. `Key` must be unique in it.
pub trait Tracked: Serialize + DeserializeOwned + Send + Sync + 'static {
    type Key: Hash + Eq + Clone + Send + Sync + 'static;
    const TABLE: &'static str;
    /// Must name `id`.
    const COLUMNS: &'static str;
    fn from_row(row: &Row) -> anyhow::Result<Self>;
    fn id(&self) -> Uuid;
    fn key(&self) -> Self::Key;
    /// Further keys that find the row too.
    fn other_keys(&self) -> Vec<Self::Key> {
        Vec::new()
    }
    /// Whether requests can still use it. What is not kept is as if it were deleted.
    fn is_live(&self) -> bool {
        true
    }
    /// Takes over from the row that it replaces what must outlive the change.
    fn follow(&mut self, _before: &Self) {}
    /// Lets what is equal in many rows be one value in memory.
    fn share(&mut self, _pool: &mut ListPool) {}
}

/// A collection without its row type, so that feed and disk copy walk over all of them alike.
pub trait Followed: Send + Sync {
    fn table(&self) -> &'static str;
    fn columns(&self) -> &'static str;
    fn len(&self) -> usize;
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    fn incoming(&self) -> Box<dyn Incoming + '_>;
    fn frozen(&self) -> Box<dyn Frozen>;
}

/// Rows on their way in. No request sees any of them before `merge` or `replace`.
pub trait Incoming: Send {
    fn row(&mut self, row: &Row);
    fn line(&mut self, json: &str) -> serde_json::Result<()>;
    fn gone(&mut self, id: Uuid);
    /// Rows that could not be understood.
    fn skipped(&self) -> u64;
    fn merge(self: Box<Self>) -> Merged;
    fn replace(self: Box<Self>);
}

/// The rows of one moment.
pub trait Frozen: Send {
    fn table(&self) -> &'static str;
    /// One line per row, `table {json}`; returns how many.
    fn write(&self, out: &mut dyn Write) -> io::Result<usize>;
}

/// What a merge did: rows put, rows removed, shards copied.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Merged {
    pub put: usize,
    pub removed: usize,
    pub shards: usize,
}

impl AddAssign for Merged {
    fn add_assign(&mut self, other: Self) {
        self.put += other.put;
        self.removed += other.removed;
        self.shards += other.shards;
    }
}

pub struct Collection<T: Tracked> {
    rows: Sharded<T::Key, T>,
    keys_by_id: Mutex<HashMap<Uuid, RowKeys<T::Key>>>,
    pool: Mutex<ListPool>,
    changes: AtomicU64,
}

/// What finds a row now. Further keys are few, so none of them costs no allocation.
struct RowKeys<K> {
    key: K,
    others: Box<[K]>,
}

impl<K: Eq> RowKeys<K> {
    fn for_row<T: Tracked<Key = K>>(row: &T) -> Self {
        Self { key: row.key(), others: row.other_keys().into() }
    }

    fn into_all(self) -> impl Iterator<Item = K> {
        std::iter::once(self.key).chain(self.others)
    }
}

impl<T: Tracked> Collection<T> {
    pub fn empty() -> Self {
        Self {
            rows: Sharded::empty(),
            keys_by_id: Mutex::default(),
            pool: Mutex::default(),
            changes: AtomicU64::new(0),
        }
    }

    pub fn find(&self, key: &T::Key) -> Option<Arc<T>> {
        self.rows.get(key)
    }

    /// What is to be known of a row, without holding it.
    pub fn read<R>(&self, key: &T::Key, known: impl FnOnce(&T) -> R) -> Option<R> {
        self.rows.read(key, known)
    }

    /// The row with this id. Waits for whoever changes the table, so not for requests.
    pub fn find_by_id(&self, id: Uuid) -> Option<Arc<T>> {
        let key = self.keys_by_id.lock().get(&id).map(|keys| keys.key.clone())?;
        self.rows.get(&key).filter(|row| row.id() == id)
    }

    /// How often rows were put or removed. Who asks before it looks for rows finds those of this count or later ones.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// Every row once, in no order. Costs the size of the table.
    pub fn all(&self) -> Vec<Arc<T>> {
        let shards = self.rows.frozen();
        let entries = shards.iter().flat_map(|shard| shard.iter());
        entries.filter(|(key, row)| **key == row.key()).map(|(_, row)| row.clone()).collect()
    }

    /// The row of a table that has one.
    pub fn only(&self) -> Option<Arc<T>> {
        let keys_by_id = self.keys_by_id.lock();
        let (Some(keys), 1) = (keys_by_id.values().next(), keys_by_id.len()) else { return None };
        self.rows.get(&keys.key)
    }

    /// A row that is both gone and put was deleted and made again: rows win. Keys are vacated before they are taken,
    /// since a hash may pass from one row to another within one batch.
    pub fn merge(&self, gone: &[Uuid], mut rows: Vec<T>) -> Merged {
        let mut keys_by_id = self.keys_by_id.lock();
        self.follow(&mut rows, &keys_by_id);
        let mut vacated: Vec<(Uuid, T::Key)> = Vec::new();
        let mut removed = 0;
        for id in gone {
            if let Some(keys) = keys_by_id.remove(id) {
                removed += 1;
                vacated.extend(keys.into_all().map(|key| (*id, key)));
            }
        }
        for row in &rows {
            let old = keys_by_id.insert(row.id(), RowKeys::for_row(row));
            vacated.extend(old.into_iter().flat_map(RowKeys::into_all).map(|key| (row.id(), key)));
        }
        vacated.retain(|(id, key)| self.rows.get(key).is_some_and(|holder| holder.id() == *id));
        let put = rows.len();
        let mut changes: HashMap<T::Key, Option<Arc<T>>> = vacated.into_iter().map(|(_, key)| (key, None)).collect();
        changes.extend(by_key(rows).map(|(key, row)| (key, Some(row))));
        let shards = self.rows.change(changes);
        self.changes.fetch_add(u64::from(shards > 0), Ordering::Release);
        Merged { put, removed, shards }
    }

    pub fn replace(&self, mut rows: Vec<T>) {
        let mut keys_by_id = self.keys_by_id.lock();
        self.follow(&mut rows, &keys_by_id);
        *keys_by_id = rows.iter().map(|row| (row.id(), RowKeys::for_row(row))).collect();
        self.rows.replace(by_key(rows));
        self.changes.fetch_add(1, Ordering::Release);
    }
}

impl<T: Tracked> Collection<T> {
    fn follow(&self, rows: &mut [T], keys_by_id: &HashMap<Uuid, RowKeys<T::Key>>) {
        for row in rows {
            let before = keys_by_id.get(&row.id()).and_then(|keys| self.rows.get(&keys.key));
            if let Some(before) = before.filter(|before| before.id() == row.id()) {
                row.follow(&before);
            }
        }
    }
}

/// Each row under all its keys.
fn by_key<T: Tracked>(rows: Vec<T>) -> impl Iterator<Item = (T::Key, Arc<T>)> {
    rows.into_iter().flat_map(|row| {
        let row = Arc::new(row);
        let others: Vec<_> = row.other_keys().into_iter().map(|key| (key, row.clone())).collect();
        std::iter::once((row.key(), row)).chain(others)
    })
}

impl<T: Tracked> Followed for Collection<T> {
    fn table(&self) -> &'static str {
        T::TABLE
    }

    fn columns(&self) -> &'static str {
        T::COLUMNS
    }

    fn len(&self) -> usize {
        self.keys_by_id.lock().len()
    }

    fn incoming(&self) -> Box<dyn Incoming + '_> {
        Box::new(IncomingRows { target: self, rows: Vec::new(), gone: Vec::new(), skipped: 0 })
    }

    fn frozen(&self) -> Box<dyn Frozen> {
        Box::new(FrozenRows { shards: self.rows.frozen() })
    }
}

struct IncomingRows<'a, T: Tracked> {
    target: &'a Collection<T>,
    rows: Vec<T>,
    gone: Vec<Uuid>,
    skipped: u64,
}

impl<T: Tracked> IncomingRows<'_, T> {
    fn push(&mut self, mut row: T) {
        if !row.is_live() {
            self.gone.push(row.id());
            return;
        }
        row.share(&mut self.target.pool.lock());
        self.rows.push(row);
    }
}

impl<T: Tracked> Incoming for IncomingRows<'_, T> {
    /// A row that cannot be understood counts as deleted: an older version of it may say more than the new one allows.
    fn row(&mut self, row: &Row) {
        match T::from_row(row) {
            Ok(row) => self.push(row),
            Err(error) => {
                let id: Option<Uuid> = row.try_get("id").ok();
                static UNREAD: LogLimit = LogLimit::new();
                if let Some(skipped) = UNREAD.pass() {
                    let error = Brief(error);
                    tracing::error!(table = T::TABLE, ?id, %error, skipped, "a row cannot be understood and is left out");
                }
                self.skipped += 1;
                self.gone.extend(id);
            }
        }
    }

    fn line(&mut self, json: &str) -> serde_json::Result<()> {
        self.push(serde_json::from_str(json)?);
        Ok(())
    }

    fn gone(&mut self, id: Uuid) {
        self.gone.push(id);
    }

    fn skipped(&self) -> u64 {
        self.skipped
    }

    fn merge(self: Box<Self>) -> Merged {
        self.target.merge(&self.gone, self.rows)
    }

    fn replace(self: Box<Self>) {
        self.target.replace(self.rows);
    }
}

struct FrozenRows<T: Tracked> {
    shards: Vec<Arc<Shard<T::Key, T>>>,
}

impl<T: Tracked> Frozen for FrozenRows<T> {
    fn table(&self) -> &'static str {
        T::TABLE
    }

    fn write(&self, out: &mut dyn Write) -> io::Result<usize> {
        let mut written = 0;
        let all = self.shards.iter().flat_map(|shard| shard.iter());
        // A row stands there under each of its keys, and is written once.
        for (_, row) in all.filter(|(key, row)| **key == row.key()) {
            write!(out, "{} ", T::TABLE)?;
            serde_json::to_writer(&mut *out, row.as_ref())?;
            out.write_all(b"\n")?;
            written += 1;
        }
        Ok(written)
    }
}

#[cfg(test)]
mod tests;
