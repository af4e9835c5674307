//! An index in a Postgres with the extension pgvector, for proxies that share a store of answers. Requests ask it on one
//! connection and wait no longer than the semantic cache may take; writes are queued and never waited for. While it is away
//! every search is a miss.
//!
//! Rows hold vectors, hashes and times, no texts. They expire with their answers; one whose answer is not in this process
//! may still be of use to another, so none is taken out for that.

use super::{AskedVector, Nearness, Partition, VectorIndex};
use crate::cache::CacheKey;
use crate::cache::semantic::lexical::LexicalMarks;
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use parking_lot::Mutex;
use shared::{db, settings};
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_postgres::{Client, Statement};

/// Beyond it questions are not remembered: Postgres is slower than they come.
const MOST_QUEUED: usize = 1024;
/// Of a workspace. What expires first goes first.
const MOST_ROWS: i64 = 20_000;
/// A sweep of all workspaces is done once in so many of the expired.
const SWEEPS_PER_BOUND: u32 = 20;
/// Of a search: what the guard is asked about.
const MOST_JUDGED: i64 = 32;
const BETWEEN_CONNECTIONS: Duration = Duration::from_secs(1);

/// A role that may not make it can be given the table instead.
const IS_THERE: &str = "SELECT to_regclass('semantic_cache_vectors') IS NOT NULL";
const SCHEMA: &str = "CREATE EXTENSION IF NOT EXISTS vector;
    CREATE TABLE IF NOT EXISTS semantic_cache_vectors (
        workspace_id     uuid   NOT NULL,
        partition_digest bytea  NOT NULL,
        embedder         text   NOT NULL,
        entry_digest     bytea  NOT NULL,
        embedding        vector NOT NULL,
        marks            bytea  NOT NULL,
        expires_at_ms    bigint NOT NULL,
        PRIMARY KEY (workspace_id, partition_digest, embedder, entry_digest)
    );
    CREATE INDEX IF NOT EXISTS semantic_cache_vectors_expiry ON semantic_cache_vectors (expires_at_ms);";
const NEAR: &str = "SELECT entry_digest, marks FROM semantic_cache_vectors
    WHERE workspace_id = $1 AND partition_digest = $2 AND embedder = $3 AND expires_at_ms > $4
      AND embedding <=> $5::text::vector <= $6
    ORDER BY embedding <=> $5::text::vector LIMIT $7";
const PUT: &str = "INSERT INTO semantic_cache_vectors
        (workspace_id, partition_digest, embedder, entry_digest, embedding, marks, expires_at_ms)
    VALUES ($1, $2, $3, $4, $5::text::vector, $6, $7)
    ON CONFLICT (workspace_id, partition_digest, embedder, entry_digest)
    DO UPDATE SET embedding = excluded.embedding, marks = excluded.marks, expires_at_ms = excluded.expires_at_ms";
const EXPIRE: &str = "DELETE FROM semantic_cache_vectors WHERE expires_at_ms <= $1";
const BOUND: &str =
    "DELETE FROM semantic_cache_vectors WHERE (workspace_id, partition_digest, embedder, entry_digest) IN (
    SELECT workspace_id, partition_digest, embedder, entry_digest FROM (
        SELECT *, row_number() OVER (PARTITION BY workspace_id ORDER BY expires_at_ms DESC) AS place
        FROM semantic_cache_vectors) AS placed
    WHERE place > $1)";

pub struct PgVectorIndex {
    database: settings::Database,
    /// Vectors of different models are never compared.
    embedder: String,
    session: ArcSwapOption<PgSession>,
    queue: Sender<Change>,
    /// Until `run` takes it.
    queued: Mutex<Option<Receiver<Change>>>,
}

struct PgSession {
    client: Client,
    near: Statement,
    put: Statement,
}

enum Change {
    Put { asked: Box<AskedVector>, key: CacheKey, expires_at_ms: i64 },
    Sweep { now_ms: i64 },
}

impl PgVectorIndex {
    /// Nothing is asked of Postgres before `run`.
    pub fn new(database: settings::Database, embedder: String) -> Result<Self, db::DbError> {
        db::check(&database)?;
        let (queue, queued) = channel(MOST_QUEUED);
        Ok(Self { database, embedder, session: ArcSwapOption::empty(), queue, queued: Mutex::new(Some(queued)) })
    }

    /// With the length of its vectors: Postgres compares none of different lengths.
    fn embedder_of(&self, values: &[f32]) -> String {
        format!("{} {}", self.embedder, values.len())
    }

    async fn connect(&self) -> anyhow::Result<Arc<PgSession>> {
        let client = db::connect(&self.database).await?;
        let is_there: bool = client.query_one(IS_THERE, &[]).await?.try_get(0)?;
        if !is_there {
            client.batch_execute(SCHEMA).await?;
        }
        let (near, put) = (client.prepare(NEAR).await?, client.prepare(PUT).await?);
        Ok(Arc::new(PgSession { client, near, put }))
    }

    async fn apply(&self, session: &PgSession, change: Change, sweeps: &mut u32) -> anyhow::Result<()> {
        match change {
            Change::Put { asked, key, expires_at_ms } => {
                let Partition { workspace, digest } = asked.partition;
                let (vector, marks) = (written(&asked.values), asked.marks.encode());
                let embedder = self.embedder_of(&asked.values);
                session
                    .client
                    .execute(
                        &session.put,
                        &[&workspace, &&digest[..], &embedder, &&key.digest[..], &vector, &marks, &expires_at_ms],
                    )
                    .await?;
            }
            Change::Sweep { now_ms } => {
                session.client.execute(EXPIRE, &[&now_ms]).await?;
                *sweeps = sweeps.wrapping_add(1);
                if sweeps.is_multiple_of(SWEEPS_PER_BOUND) {
                    session.client.execute(BOUND, &[&MOST_ROWS]).await?;
                }
            }
        }
        Ok(())
    }

    /// Until the connection ends.
    async fn write(&self, session: &PgSession, queued: &mut Receiver<Change>) {
        let (mut look, mut sweeps) = (tokio::time::interval(BETWEEN_CONNECTIONS), 0);
        loop {
            tokio::select! {
                change = queued.recv() => {
                    let Some(change) = change else { return };
                    if let Err(error) = self.apply(session, change, &mut sweeps).await {
                        tracing::warn!(error = format!("{error:#}"), "a question was not put into the semantic cache's Postgres");
                    }
                }
                _ = look.tick() => {}
            }
            if session.client.is_closed() {
                return;
            }
        }
    }
}

#[async_trait]
impl VectorIndex for PgVectorIndex {
    async fn near(&self, asked: &AskedVector, nearness: Nearness) -> Result<Vec<CacheKey>, String> {
        let session = self.session.load_full().ok_or("the semantic cache's Postgres is away")?;
        let Partition { workspace, digest } = asked.partition;
        // A little more, because these are sums of rounded numbers.
        let farthest = 1.0 - f64::from(nearness.threshold) + 1e-6;
        let (vector, embedder) = (written(&asked.values), self.embedder_of(&asked.values));
        let rows = session
            .client
            .query(
                &session.near,
                &[&workspace, &&digest[..], &embedder, &nearness.now_ms, &vector, &farthest, &MOST_JUDGED],
            )
            .await;
        let rows = rows.map_err(|error| db::explain(&error))?;
        let mut keys = Vec::new();
        for row in rows {
            let (entry, marks): (&[u8], &[u8]) = (row.get(0), row.get(1));
            let is_passed =
                LexicalMarks::decode(marks).is_some_and(|marks| asked.marks.conflict(&marks, nearness.guard).is_none());
            if let (true, Ok(digest)) = (is_passed && keys.len() < nearness.most, <[u8; 32]>::try_from(entry)) {
                keys.push(CacheKey { workspace, digest });
            }
        }
        Ok(keys)
    }

    fn put(&self, asked: AskedVector, key: CacheKey, expires_at_ms: i64) {
        if key.workspace == asked.partition.workspace {
            let _ = self.queue.try_send(Change::Put { asked: Box::new(asked), key, expires_at_ms });
        }
    }

    fn remove(&self, _: Partition, _: &[CacheKey]) {}

    fn sweep(&self, now_ms: i64) {
        let _ = self.queue.try_send(Change::Sweep { now_ms });
    }

    async fn run(&self) {
        let queued = self.queued.lock().take();
        let Some(mut queued) = queued else { return };
        loop {
            match self.connect().await {
                Ok(session) => {
                    self.session.store(Some(session.clone()));
                    self.write(&session, &mut queued).await;
                    self.session.store(None);
                }
                Err(error) => tracing::warn!(
                    error = format!("{error:#}"),
                    "the semantic cache's Postgres cannot be used (it needs the extension pgvector)"
                ),
            }
            tokio::time::sleep(BETWEEN_CONNECTIONS).await;
        }
    }
}

/// As pgvector reads it.
fn written(values: &[f32]) -> String {
    let mut text = String::with_capacity(values.len() * 12 + 2);
    for (index, value) in values.iter().enumerate() {
        let separator = if index == 0 { '[' } else { ',' };
        let _ = write!(text, "{separator}{value}");
    }
    text.push(']');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_are_written_as_they_are_read() {
        assert_eq!(written(&[0.5, -1.0, 1e-7]), "[0.5,-1,0.0000001]");
    }
}
