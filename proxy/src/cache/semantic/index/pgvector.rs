//! An index in a Postgres with the extension pgvector, for proxies that share a store of answers. Requests ask it on a few
//! connections and wait no longer than the semantic cache may take, nor does Postgres work longer on it; writes have one of
//! their own, are queued and never waited for. While it is away every search is a miss.
//!
//! Rows hold vectors, hashes and times, no texts. They expire with their answers; one whose answer is not in this process
//! may still be of use to another, so none is taken out for that.

pub(crate) mod turns;

use super::{AskedVector, Nearness, Partition, VectorIndex};
use crate::cache::CacheKey;
use crate::cache::semantic::lexical::LexicalMarks;
use crate::runtime::tenant_share::Tenant;
use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use shared::telemetry::{Brief, LogLimit};
use shared::{db, settings};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_postgres::{Client, Row, Statement};
use turns::{Turn, Turns};
use uuid::Uuid;

/// Beyond it questions are not remembered: Postgres is slower than they come.
const MAX_QUEUED: usize = 1024;
/// Of a workspace. What expires first goes first.
const MAX_ROWS: i64 = 20_000;
/// Connections for searches.
const SEARCHERS: usize = 4;
/// The rows of a workspace are counted once in so many that it adds: it may have this many more for a while.
const PUTS_PER_BOUND: u32 = 500;
/// A sweep of all workspaces is done once in so many of the expired.
const SWEEPS_PER_BOUND: u32 = 20;
/// Of a search: what the guard is asked about.
const MAX_JUDGED: i64 = 32;
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

const BOUND_ONE: &str = "DELETE FROM semantic_cache_vectors
    WHERE workspace_id = $1 AND (partition_digest, embedder, entry_digest) IN (
        SELECT partition_digest, embedder, entry_digest FROM semantic_cache_vectors
        WHERE workspace_id = $1 ORDER BY expires_at_ms DESC OFFSET $2)";

pub struct PgVectorIndex {
    database: settings::Database,
    /// Vectors of different models are never compared.
    embedder: String,
    /// Postgres ends a search that takes longer.
    wait: Duration,
    turns: Arc<Turns>,
    session: ArcSwapOption<PgSession>,
    queue: Sender<Change>,
    /// Until `run` takes it.
    queued: tokio::sync::Mutex<Receiver<Change>>,
}

struct PgSession {
    searchers: Vec<Searcher>,
    /// For writes.
    client: Client,
    put: Statement,
}

struct Searcher {
    client: Client,
    near: Statement,
}

impl PgSession {
    fn is_closed(&self) -> bool {
        self.client.is_closed() || self.searchers.iter().any(|searcher| searcher.client.is_closed())
    }
}

/// What of the writes is to be remembered between them.
#[derive(Default)]
struct Written {
    sweeps: u32,
    /// Rows of each workspace since its rows were bounded.
    puts: HashMap<Uuid, u32>,
}

impl Written {
    /// Whether the rows of the workspace are to be bounded now.
    fn is_due(&mut self, workspace: Uuid) -> bool {
        let puts = self.puts.entry(workspace).or_default();
        *puts += 1;
        let is_due = *puts >= PUTS_PER_BOUND;
        if is_due {
            *puts = 0;
        }
        is_due
    }
}

enum Change {
    Put { asked: Box<AskedVector>, key: CacheKey, expires_at_ms: i64 },
    Sweep { now_ms: i64 },
}

impl PgVectorIndex {
    /// Nothing is asked of Postgres before `run`.
    pub fn new(database: settings::Database, embedder: String, wait: Duration) -> Result<Self, db::DbError> {
        db::check(&database)?;
        let (queue, queued) = channel(MAX_QUEUED);
        let (turns, session, queued) = (Arc::default(), ArcSwapOption::empty(), tokio::sync::Mutex::new(queued));
        Ok(Self { database, embedder, wait, turns, session, queue, queued })
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
        let put = client.prepare(PUT).await?;
        let mut searchers = Vec::with_capacity(SEARCHERS);
        for _ in 0..SEARCHERS {
            searchers.push(self.searcher().await?);
        }
        Ok(Arc::new(PgSession { searchers, client, put }))
    }

    async fn searcher(&self) -> anyhow::Result<Searcher> {
        let client = db::connect(&self.database).await?;
        // Of 0 there would be no end.
        let most = self.wait.as_millis().clamp(1, 600_000);
        client.batch_execute(&format!("SET statement_timeout = {most}")).await?;
        let near = client.prepare(NEAR).await?;
        Ok(Searcher { client, near })
    }

    async fn apply(&self, session: &PgSession, change: Change, so_far: &mut Written) -> anyhow::Result<()> {
        match change {
            Change::Put { asked, key, expires_at_ms } => {
                let Partition { tenant: Tenant { workspace, .. }, digest } = asked.partition;
                let (vector, marks) = (written(&asked.values), asked.marks.encode());
                let embedder = self.embedder_of(&asked.values);
                session
                    .client
                    .execute(
                        &session.put,
                        &[&workspace, &&digest[..], &embedder, &&key.digest[..], &vector, &marks, &expires_at_ms],
                    )
                    .await?;
                if so_far.is_due(workspace) {
                    session.client.execute(BOUND_ONE, &[&workspace, &MAX_ROWS]).await?;
                }
            }
            Change::Sweep { now_ms } => {
                session.client.execute(EXPIRE, &[&now_ms]).await?;
                so_far.sweeps = so_far.sweeps.wrapping_add(1);
                if so_far.sweeps.is_multiple_of(SWEEPS_PER_BOUND) {
                    session.client.execute(BOUND, &[&MAX_ROWS]).await?;
                    so_far.puts.clear();
                }
            }
        }
        Ok(())
    }

    /// Until the connection ends.
    async fn write(&self, session: &PgSession, queued: &mut Receiver<Change>) {
        let (mut look, mut so_far) = (tokio::time::interval(BETWEEN_CONNECTIONS), Written::default());
        loop {
            tokio::select! {
                change = queued.recv() => {
                    let Some(change) = change else { return };
                    if let Err(error) = self.apply(session, change, &mut so_far).await {
                        note_unput(&error);
                    }
                }
                _ = look.tick() => {}
            }
            if session.is_closed() {
                return;
            }
        }
    }
}

/// What Postgres is asked.
struct Search {
    partition: Partition,
    embedder: String,
    now_ms: i64,
    vector: String,
    farthest: f64,
}

impl Search {
    async fn rows(self, session: Arc<PgSession>, turn: Turn) -> Result<Vec<Row>, tokio_postgres::Error> {
        let Partition { tenant: Tenant { workspace, .. }, digest } = self.partition;
        let Self { embedder, now_ms, vector, farthest, .. } = self;
        let Some(Searcher { client, near }) = session.searchers.get(turn.connection) else { return Ok(Vec::new()) };
        let found =
            client.query(near, &[&workspace, &&digest[..], &embedder, &now_ms, &vector, &farthest, &MAX_JUDGED]).await;
        drop(turn);
        found
    }
}

#[async_trait]
impl VectorIndex for PgVectorIndex {
    async fn near(&self, asked: &AskedVector, nearness: Nearness) -> Result<Vec<CacheKey>, String> {
        let session = self.session.load_full().ok_or("the semantic cache's Postgres is away")?;
        let Partition { tenant, .. } = asked.partition;
        // Whoever asks for more at a time than it may goes without: that is nobody's failure.
        let Some(turn) = self.turns.begin(tenant, session.searchers.len()) else { return Ok(Vec::new()) };
        // A little more, because these are sums of rounded numbers.
        let farthest = 1.0 - f64::from(nearness.threshold) + 1e-6;
        let search = Search {
            partition: asked.partition,
            embedder: self.embedder_of(&asked.values),
            now_ms: nearness.now_ms,
            vector: written(&asked.values),
            farthest,
        };
        // A task of its own, which has its turn until Postgres is done, also when nobody waits for it any more.
        let rows = tokio::spawn(search.rows(session, turn)).await;
        let rows = rows.map_err(|_| "a search panicked")?.map_err(|error| db::explain(&error))?;
        let mut keys = Vec::new();
        for row in rows {
            let (entry, marks): (&[u8], &[u8]) = (row.get(0), row.get(1));
            let is_passed =
                LexicalMarks::decode(marks).is_some_and(|marks| asked.marks.conflict(&marks, nearness.guard).is_none());
            if let (true, Ok(digest)) = (is_passed && keys.len() < nearness.most, <[u8; 32]>::try_from(entry)) {
                keys.push(CacheKey { tenant, digest });
            }
        }
        Ok(keys)
    }

    fn put(&self, asked: AskedVector, key: CacheKey, expires_at_ms: i64) {
        if key.tenant == asked.partition.tenant {
            let _ = self.queue.try_send(Change::Put { asked: Box::new(asked), key, expires_at_ms });
        }
    }

    fn remove(&self, _: Partition, _: &[CacheKey]) {}

    fn sweep(&self, now_ms: i64) {
        let _ = self.queue.try_send(Change::Sweep { now_ms });
    }

    async fn run(&self) {
        let mut queued = self.queued.lock().await;
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

fn note_unput(error: &anyhow::Error) {
    static NOT_PUT: LogLimit = LogLimit::new();
    if let Some(skipped) = NOT_PUT.pass() {
        let error = Brief(format!("{error:#}"));
        tracing::warn!(%error, skipped, "a question was not put into the semantic cache's Postgres");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rows_of_a_workspace_are_bounded_after_every_so_many_of_its_own() {
        let mut written = Written::default();
        let due: u32 = (0..2 * PUTS_PER_BOUND).map(|_| u32::from(written.is_due(Uuid::nil()))).sum();
        assert_eq!(due, 2);
        assert!(!written.is_due(Uuid::from_u128(1)));
    }

    #[test]
    fn vectors_are_written_as_they_are_read() {
        assert_eq!(written(&[0.5, -1.0, 1e-7]), "[0.5,-1,0.0000001]");
    }
}
