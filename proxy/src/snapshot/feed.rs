//! Reads from Postgres what is new since the last read, or everything when that cannot be told.
//!
//! "Newer than the highest id seen" would miss transactions that commit late. Each row carries the id of the
//! transaction that wrote it; a read takes the rows of all transactions that the previous read could not see yet,
//! by Postgres' own account of what that read could see. So rows come once, also while some transaction stays open
//! for hours, and a change costs its own size.

use super::Snapshot;
use super::collection::{Incoming, Merged};
use chrono::{DateTime, Utc};
use futures::TryStreamExt as _;
use shared::db::explain;
use std::future::Future;
use std::pin::pin;
use std::time::Duration;
use tokio_postgres::types::Type;
use tokio_postgres::{Client, IsolationLevel, Transaction};
use uuid::Uuid;

/// Longest silence of Postgres within a read, after which the connection counts as dead.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a read could see, as text that Postgres understands, and what its meaning depends on. `stats_reset` is the one
/// trace that recovery from a crash leaves for everybody to see: commits without fsync may be undone by it, and their
/// transaction ids given out again.
const MOMENT: &str = "SELECT epoch, tombstones_purged_to::text AS purged_to, pg_current_snapshot()::text AS visible,
                             pg_snapshot_xmin(pg_current_snapshot())::text AS oldest_open,
                             (SELECT stats_reset::text FROM pg_stat_bgwriter) AS recovered
                      FROM feed_epoch";

/// The first condition is implied by the second, and is there for the index.
const UNSEEN: &str = "changed_xid >= $1::text::xid8 AND NOT pg_visible_in_snapshot(changed_xid, $2::text::pg_snapshot)";

/// One reader's place in the feed. It outlives connections.
#[derive(Default)]
pub struct Feed {
    last: Option<FeedMark>,
}

#[derive(Debug, Clone)]
struct FeedMark {
    epoch: Uuid,
    recovered: Option<String>,
    /// Tombstones of this transaction and older ones may be gone.
    purged_to: u64,
    visible: String,
    /// All older transactions have ended, and been seen.
    oldest_open: u64,
}

/// What one read brought.
#[derive(Debug)]
pub struct News {
    /// Why everything was read, if it was.
    pub reload: Option<Reload>,
    pub merged: Merged,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    FirstRead,
    /// Another database, or this one restored: ids of transactions do not compare.
    EpochChanged,
    /// Transactions that were seen may have been undone.
    HistoryLost,
    /// Deletes that were not seen may have been forgotten.
    TombstonesPurged,
}

#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    #[error("Postgres failed: {}", explain(.0))]
    Postgres(#[from] tokio_postgres::Error),
    #[error("Postgres was silent for {} s", PATIENCE.as_secs())]
    Silent,
    #[error("Postgres gave `{0}` for the id of a transaction")]
    NotATransaction(String),
}

impl Feed {
    /// Brings the snapshot up to date. On an error it is left as it was, and so is the place in the feed.
    pub async fn read(
        &mut self,
        client: &mut Client,
        snapshot: &Snapshot,
        now: DateTime<Utc>,
    ) -> Result<News, FeedError> {
        let begin = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
        let transaction = patiently(begin.start()).await?;
        let moment = FeedMark::load(&transaction).await?;
        let reload = must_reload(self.last.as_ref(), &moment);
        let since = self.last.as_ref().filter(|_| reload.is_none());

        let mut incoming: Vec<Box<dyn Incoming + '_>> = Vec::new();
        for followed in snapshot.collections() {
            let mut rows = followed.incoming();
            read_rows(&transaction, followed.table(), followed.columns(), since, rows.as_mut()).await?;
            if let Some(since) = since {
                read_tombstones(&transaction, followed.table(), since, rows.as_mut()).await?;
            }
            incoming.push(rows);
        }
        patiently(transaction.commit()).await?;

        let merged = match reload {
            None => snapshot.merge(incoming, moment.oldest_open, now),
            Some(_) => {
                snapshot.replace(incoming, moment.oldest_open, now);
                Merged::default()
            }
        };
        self.last = Some(moment);
        Ok(News { reload, merged })
    }
}

fn must_reload(last: Option<&FeedMark>, now: &FeedMark) -> Option<Reload> {
    let Some(last) = last else { return Some(Reload::FirstRead) };
    if last.epoch != now.epoch {
        return Some(Reload::EpochChanged);
    }
    if last.recovered != now.recovered || now.oldest_open < last.oldest_open {
        return Some(Reload::HistoryLost);
    }
    // A mark that was there at the last read is harmless: what was purged by then had been visible to that read.
    (now.purged_to != last.purged_to && now.purged_to >= last.oldest_open).then_some(Reload::TombstonesPurged)
}

impl FeedMark {
    async fn load(transaction: &Transaction<'_>) -> Result<Self, FeedError> {
        let row = patiently(transaction.query_typed_one(MOMENT, &[])).await?;
        Ok(Self {
            epoch: row.try_get("epoch")?,
            recovered: row.try_get("recovered")?,
            purged_to: transaction_id(row.try_get("purged_to")?)?,
            visible: row.try_get("visible")?,
            oldest_open: transaction_id(row.try_get("oldest_open")?)?,
        })
    }

    fn unseen_since(&self) -> [(String, Type); 2] {
        [(self.oldest_open.to_string(), Type::TEXT), (self.visible.clone(), Type::TEXT)]
    }
}

/// The rows that a read at `since` could not see, or all of them; one at a time, however many there are.
async fn read_rows(
    transaction: &Transaction<'_>,
    table: &str,
    columns: &str,
    since: Option<&FeedMark>,
    into: &mut dyn Incoming,
) -> Result<(), FeedError> {
    let (sql, values) = match since {
        None => (format!("SELECT {columns} FROM {table}"), Vec::new()),
        Some(since) => (format!("SELECT {columns} FROM {table} WHERE {UNSEEN}"), since.unseen_since().to_vec()),
    };
    let mut rows = pin!(patiently(transaction.query_typed_raw(&sql, values)).await?);
    while let Some(row) = patiently(rows.try_next()).await? {
        into.row(&row);
    }
    Ok(())
}

async fn read_tombstones(
    transaction: &Transaction<'_>,
    table: &str,
    since: &FeedMark,
    into: &mut dyn Incoming,
) -> Result<(), FeedError> {
    let sql = format!("SELECT row_id FROM tombstones WHERE {UNSEEN} AND table_name = $3");
    let values = since.unseen_since().into_iter().chain([(table.to_owned(), Type::TEXT)]);
    let mut rows = pin!(patiently(transaction.query_typed_raw(&sql, values)).await?);
    while let Some(row) = patiently(rows.try_next()).await? {
        into.gone(row.try_get("row_id")?);
    }
    Ok(())
}

async fn patiently<T>(step: impl Future<Output = Result<T, tokio_postgres::Error>>) -> Result<T, FeedError> {
    match tokio::time::timeout(PATIENCE, step).await {
        Ok(result) => Ok(result?),
        Err(_) => Err(FeedError::Silent),
    }
}

fn transaction_id(text: &str) -> Result<u64, FeedError> {
    text.parse().map_err(|_| FeedError::NotATransaction(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(epoch: u128, oldest_open: u64, purged_to: u64) -> FeedMark {
        let recovered = Some("yesterday".to_owned());
        FeedMark { epoch: Uuid::from_u128(epoch), recovered, purged_to, visible: String::new(), oldest_open }
    }

    #[test]
    fn everything_is_read_again_only_when_the_last_read_proves_nothing() {
        for (last, now, expected) in [
            (None, moment(1, 100, 0), Some(Reload::FirstRead)),
            (Some(moment(1, 100, 0)), moment(1, 100, 0), None),
            (Some(moment(1, 100, 0)), moment(1, 900, 0), None),
            (Some(moment(1, 100, 0)), moment(2, 900, 0), Some(Reload::EpochChanged)),
            (Some(moment(1, 100, 0)), moment(1, 99, 0), Some(Reload::HistoryLost)),
            (Some(moment(1, 100, 0)), FeedMark { recovered: None, ..moment(1, 900, 0) }, Some(Reload::HistoryLost)),
            (Some(moment(1, 100, 0)), moment(1, 900, 99), None),
            (Some(moment(1, 100, 0)), moment(1, 900, 100), Some(Reload::TombstonesPurged)),
            (Some(moment(1, 100, 120)), moment(1, 100, 120), None),
            (Some(moment(1, 100, 120)), moment(1, 100, 130), Some(Reload::TombstonesPurged)),
        ] {
            assert_eq!(must_reload(last.as_ref(), &now), expected, "{last:?} then {now:?}");
        }
    }
}
