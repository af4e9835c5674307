//! Erases stored bodies: objects of single calls are deleted, packs are rewritten without those calls, all calls of a pack
//! at once. Whoever rewrites a pack holds its lock in Postgres until the transaction ends: two at a time would each bring
//! back what the other took out.

use crate::http::ApiError;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use shared::db::request_logs::erasure::LogBatch;
use shared::log_store::{self, BodyKey, LogStore, body_path};
use shared::telemetry::{Brief, LogLimit};
use std::collections::BTreeMap;
use std::ops::Range;
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// Objects that are deleted at the same time.
const AT_ONCE: usize = 16;

/// The bodies of a batch of logs, by where they lie.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct StoredBodies {
    /// What has a body, however it is stored.
    pub count: u64,
    /// Objects that rows name.
    pub named: Vec<String>,
    /// Objects that an earlier version may have stored before their calls were packed.
    earlier: Vec<String>,
    /// In the order in which they are locked.
    pub packs: BTreeMap<String, Vec<Range<u64>>>,
}

impl StoredBodies {
    pub(super) fn for_logs(organisation: Uuid, found: &LogBatch) -> Self {
        let mut bodies = Self::default();
        let rows = found.times.iter().zip(&found.ids).zip(&found.workspaces).zip(&found.keys);
        for (((time, id), workspace), key) in rows.filter(|(_, key)| !key.is_empty()) {
            bodies.count += 1;
            match BodyKey::parse(key) {
                Some(BodyKey::Object(path)) => bodies.named.push(path.to_owned()),
                Some(BodyKey::Packed { pack, range }) => {
                    bodies.earlier.push(body_path(organisation, *workspace, *time, *id));
                    bodies.packs.entry(pack.to_owned()).or_default().push(range);
                }
                None => {
                    static IMPOSSIBLE: LogLimit = LogLimit::new();
                    if let Some(skipped) = IMPOSSIBLE.pass() {
                        tracing::warn!(key = %Brief(key), skipped, "a log names a body that cannot be");
                    }
                }
            }
        }
        bodies
    }

    pub async fn delete_objects(&self, store: &LogStore) -> Result<(), ApiError> {
        let paths = self.named.iter().chain(&self.earlier).cloned().collect();
        delete_objects(store, paths).await
    }
}

pub async fn delete_objects(store: &LogStore, paths: Vec<String>) -> Result<(), ApiError> {
    let delete = |path: String| async move { store.delete(&path).await };
    let deleted = stream::iter(paths).map(delete).buffer_unordered(AT_ONCE);
    deleted.try_for_each(|()| async move { Ok(()) }).await.map_err(|error| failed(&error))
}

/// Takes calls out of a pack.
pub async fn erase_from_pack(
    tx: &impl GenericClient,
    store: &LogStore,
    pack: &str,
    ranges: &[Range<u64>],
) -> Result<(), ApiError> {
    const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
    tx.execute(LOCK, &[&pack]).await?;
    store.blank(pack, ranges).await.map_err(|error| failed(&error))
}

fn failed(error: &log_store::Error) -> ApiError {
    static UNERASED: LogLimit = LogLimit::new();
    if let Some(skipped) = UNERASED.pass() {
        tracing::error!(error = %Brief(error), skipped, "a body could not be erased");
    }
    ApiError::Internal
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;

    #[test]
    fn calls_of_one_pack_are_erased_together() {
        let keys =
            ["bodies/x.json.zst", "", "bodies/p.pack.zst#0+9", "bodies/p.pack.zst#9+20", "bodies/q.pack.zst#5+9"];
        let mut found = LogBatch::default();
        for (n, key) in keys.iter().enumerate() {
            found.times.push(Utc::now());
            found.ids.push(Uuid::from_u128(n as u128));
            found.workspaces.push(Uuid::nil());
            found.keys.push((*key).to_owned());
        }
        let bodies = StoredBodies::for_logs(Uuid::nil(), &found);
        assert_eq!((bodies.count, bodies.earlier.len()), (4, 3));
        assert_eq!(bodies.named, ["bodies/x.json.zst"]);
        let packs = [
            ("bodies/p.pack.zst".to_owned(), vec![0..9, 9..29]),
            ("bodies/q.pack.zst".to_owned(), std::iter::once(5..14).collect()),
        ];
        assert_eq!(bodies.packs, BTreeMap::from(packs));
    }
}
