//! Reads at chosen moments, between transactions at chosen stages.

use super::*;
use chrono::Utc;
use proxy::snapshot::feed::{Feed, News, Reload};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A snapshot, its place in the feed, and a connection to read by.
struct Reader {
    snapshot: Snapshot,
    feed: Feed,
    client: Client,
}

impl Reader {
    /// Has read everything once.
    async fn new(tenant: &Tenant) -> Self {
        let client = tenant.database.client().await;
        let mut reader = Self { snapshot: Snapshot::empty(), feed: Feed::default(), client };
        assert_eq!(reader.read().await.reload, Some(Reload::FirstRead));
        reader
    }

    async fn read(&mut self) -> News {
        self.feed.read(&mut self.client, &self.snapshot, Utc::now()).await.unwrap()
    }

    /// Reads, and insists that only what changed was read.
    async fn read_changes(&mut self) -> (usize, usize) {
        let news = self.read().await;
        assert_eq!(news.reload, None);
        (news.merged.put, news.merged.removed)
    }
}

#[tokio::test]
async fn the_first_read_brings_every_row_of_every_table() {
    let tenant = Tenant::new().await;
    tenant.insert(&tenant.client, "a").await;
    let reader = Reader::new(&tenant).await;
    assert_eq!(status(&reader.snapshot, "a").as_deref(), Some("active"));
    let workspace = reader.snapshot.workspace(&tenant.workspace.into()).unwrap();
    assert_eq!((workspace.slug.as_str(), workspace.organisation_id.uuid()), ("team", tenant.organisation));
    assert!(reader.snapshot.is_loaded() && reader.snapshot.cursor() > 0 && reader.snapshot.age().is_some());
    let filled: Vec<_> = reader.snapshot.rows().filter(|(_, rows)| *rows > 0).collect();
    assert_eq!(filled, [("organisations", 1), ("workspaces", 1), ("api_keys", 1), ("labels", 3)]);
}

#[tokio::test]
async fn transactions_that_commit_out_of_order_lose_nothing() {
    let tenant = Tenant::new().await;
    let mut reader = Reader::new(&tenant).await;
    let (mut early, mut late) = (tenant.database.client().await, tenant.database.client().await);
    let early = early.transaction().await.unwrap();
    tenant.insert(&early, "early").await;
    let late = late.transaction().await.unwrap();
    tenant.insert(&late, "late").await;
    late.commit().await.unwrap();
    assert_eq!(reader.read_changes().await, (1, 0));
    assert_eq!(known(&reader.snapshot, &["early", "late"]), ["late"]);
    early.commit().await.unwrap();
    assert_eq!(reader.read_changes().await, (1, 0));
    assert_eq!(known(&reader.snapshot, &["early", "late"]), ["early", "late"]);
}

#[tokio::test]
async fn a_transaction_open_during_the_first_read_is_not_lost_either() {
    let tenant = Tenant::new().await;
    let mut writer = tenant.database.client().await;
    let writer = writer.transaction().await.unwrap();
    tenant.insert(&writer, "open").await;
    let mut reader = Reader::new(&tenant).await;
    assert_eq!(known(&reader.snapshot, &["open"]), [""; 0]);
    writer.commit().await.unwrap();
    assert_eq!(reader.read_changes().await, (1, 0));
    assert_eq!(known(&reader.snapshot, &["open"]), ["open"]);
}

#[tokio::test]
async fn rows_come_once_also_while_an_old_transaction_stays_open() {
    let tenant = Tenant::new().await;
    let mut idle = tenant.database.client().await;
    let idle = idle.transaction().await.unwrap();
    tenant.insert(&idle, "never committed").await;
    let mut reader = Reader::new(&tenant).await;
    for secret in ["a", "b", "c"] {
        tenant.insert(&tenant.client, secret).await;
        assert_eq!(reader.read_changes().await, (1, 0));
        assert_eq!(reader.read_changes().await, (0, 0));
    }
    idle.rollback().await.unwrap();
    assert_eq!(reader.read_changes().await, (0, 0));
    assert_eq!(known(&reader.snapshot, &["a", "b", "c", "never committed"]), ["a", "b", "c"]);
}

#[tokio::test]
async fn one_read_sees_all_tables_at_one_moment() {
    const KEY: &str = "INSERT INTO api_keys (organisation_id, workspace_id, kind, name, hash, mask, scopes)
                       VALUES ($1, $2, 'workspace-service', 'key', $3, '*', '{}')";
    let tenant = Tenant::new().await;
    let mut reader = Reader::new(&tenant).await;
    let mut writer = tenant.database.client().await;
    let writer = writer.transaction().await.unwrap();
    // The read passes the workspaces, and stands before the keys until both have changed.
    writer.batch_execute("LOCK TABLE api_keys").await.unwrap();
    let workspace = "INSERT INTO workspaces (organisation_id, slug, name) VALUES ($1, 'new', 'New') RETURNING id";
    let workspace: Uuid = writer.query_one(workspace, &[&tenant.organisation]).await.unwrap().get(0);
    writer.execute(KEY, &[&tenant.organisation, &workspace, &hash("new").0.as_slice()]).await.unwrap();
    let commit = async {
        let waits = "SELECT 1 FROM pg_locks WHERE NOT granted AND relation = 'api_keys'::regclass";
        until("the read stands before the keys", async || !tenant.client.query(waits, &[]).await.unwrap().is_empty())
            .await;
        writer.commit().await.unwrap();
    };
    tokio::join!(reader.read_changes(), commit);
    assert!(reader.snapshot.workspace(&workspace.into()).is_none() && status(&reader.snapshot, "new").is_none());
    reader.read_changes().await;
    assert!(reader.snapshot.workspace(&workspace.into()).is_some() && status(&reader.snapshot, "new").is_some());
}

#[tokio::test]
async fn revoked_rotated_and_deleted_keys_stop_working() {
    let tenant = Tenant::new().await;
    let (a, b, c) = (
        tenant.insert(&tenant.client, "a").await,
        tenant.insert(&tenant.client, "b").await,
        tenant.insert(&tenant.client, "c").await,
    );
    let mut reader = Reader::new(&tenant).await;
    set_status(&tenant.client, a, "archived").await;
    rotate(&tenant.client, b, "new").await;
    delete(&tenant.client, c).await;
    assert_eq!(reader.read_changes().await, (2, 1));
    assert_eq!(status(&reader.snapshot, "a").as_deref(), Some("archived"));
    assert_eq!(known(&reader.snapshot, &["a", "b", "new", "c"]), ["a", "new"]);
}

#[tokio::test]
async fn a_row_made_again_under_its_id_by_an_older_transaction_lives() {
    let tenant = Tenant::new().await;
    let id = tenant.insert(&tenant.client, "a").await;
    let mut reader = Reader::new(&tenant).await;
    let mut maker = tenant.database.client().await;
    let maker = maker.transaction().await.unwrap();
    tenant.insert(&maker, "takes an early transaction id").await;
    let mut idle = tenant.database.client().await;
    let idle = idle.transaction().await.unwrap();
    tenant.insert(&idle, "keeps the cursor below the delete").await;
    delete(&tenant.client, id).await;
    let again = "INSERT INTO api_keys (id, organisation_id, kind, name, hash, mask, scopes)
                 VALUES ($1, $2, 'organisation-service', 'again', $3, '*', '{}')";
    maker.execute(again, &[&id, &tenant.organisation, &hash("again").0.as_slice()]).await.unwrap();
    maker.commit().await.unwrap();
    for _ in 0..2 {
        reader.read_changes().await;
        assert_eq!(known(&reader.snapshot, &["a", "again"]), ["again"]);
    }
    idle.rollback().await.unwrap();
}

#[tokio::test]
async fn a_row_that_cannot_be_understood_is_left_out_and_stops_nothing() {
    let tenant = Tenant::new().await;
    let strange = tenant.insert(&tenant.client, "strange").await;
    let mut reader = Reader::new(&tenant).await;
    tenant.client.batch_execute("ALTER TABLE api_keys DROP CONSTRAINT api_keys_kind").await.unwrap();
    tenant.client.execute("UPDATE api_keys SET kind = 'from-the-future' WHERE id = $1", &[&strange]).await.unwrap();
    tenant.insert(&tenant.client, "plain").await;
    reader.read_changes().await;
    assert_eq!(known(&reader.snapshot, &["strange", "plain"]), ["plain"]);
    assert_eq!(reader.snapshot.skipped_rows(), 1);

    let whole = Reader::new(&tenant).await;
    assert_eq!(known(&whole.snapshot, &["strange", "plain"]), ["plain"]);
}

#[tokio::test]
async fn a_new_epoch_makes_the_reader_read_everything_again() {
    let tenant = Tenant::new().await;
    tenant.insert(&tenant.client, "a").await;
    let mut reader = Reader::new(&tenant).await;
    // As a restore does it: rows vanish and appear without marks.
    let restore = "SET session_replication_role = replica; UPDATE api_keys SET status = 'archived';
                   SET session_replication_role = origin; SELECT renew_feed_epoch()";
    tenant.client.batch_execute(restore).await.unwrap();
    assert_eq!(reader.read().await.reload, Some(Reload::EpochChanged));
    assert_eq!(status(&reader.snapshot, "a").as_deref(), Some("archived"));
    assert_eq!(reader.read_changes().await, (0, 0));
    assert_eq!(reader.snapshot.progress().reloads, 2);
}

#[tokio::test]
async fn a_truncated_table_is_empty_in_memory_too() {
    let tenant = Tenant::new().await;
    tenant.insert(&tenant.client, "a").await;
    let mut reader = Reader::new(&tenant).await;
    tenant.client.batch_execute("TRUNCATE api_keys").await.unwrap();
    assert_eq!(reader.read().await.reload, Some(Reload::EpochChanged));
    assert_eq!(known(&reader.snapshot, &["a"]), [""; 0]);
}

#[tokio::test]
async fn a_reader_away_for_longer_than_tombstones_are_kept_reads_everything() {
    let tenant = Tenant::new().await;
    let id = tenant.insert(&tenant.client, "a").await;
    let (mut away, mut present) = (Reader::new(&tenant).await, Reader::new(&tenant).await);
    delete(&tenant.client, id).await;
    assert_eq!(present.read_changes().await, (0, 1));
    let purged = tenant.client.query_one("SELECT purge_tombstones('-1 second')", &[]).await.unwrap();
    assert_eq!(purged.get::<_, i64>(0), 1);
    assert_eq!(away.read().await.reload, Some(Reload::TombstonesPurged));
    assert_eq!(known(&away.snapshot, &["a"]), [""; 0]);
    assert_eq!(away.read_changes().await, (0, 0));
}

#[tokio::test]
async fn among_200_000_keys_a_change_reads_one_row_and_copies_one_shard() {
    let tenant = Tenant::new().await;
    let fill = "INSERT INTO api_keys (organisation_id, kind, name, hash, mask, scopes)
                SELECT $1, 'organisation-service', 'key', sha256(n::text::bytea), '*', '{completions.write}'
                FROM generate_series(1, 200000) n";
    assert_eq!(tenant.client.execute(fill, &[&tenant.organisation]).await.unwrap(), 200_000);
    let mut reader = Reader::new(&tenant).await;
    let id = reader.snapshot.api_key(&hash("77777")).unwrap().id.uuid();
    set_status(&tenant.client, id, "archived").await;
    let news = reader.read().await;
    assert_eq!((news.reload, news.merged.put, news.merged.removed, news.merged.shards), (None, 1, 0, 1));
    assert_eq!(status(&reader.snapshot, "77777").as_deref(), Some("archived"));

    // By the index, or the cost would be that of the table after all.
    let plan = "EXPLAIN SELECT id FROM api_keys WHERE changed_xid >= pg_snapshot_xmin(pg_current_snapshot())
                AND NOT pg_visible_in_snapshot(changed_xid, pg_current_snapshot())";
    tenant.client.batch_execute("ANALYZE api_keys").await.unwrap();
    let plan = tenant.client.query(plan, &[]).await.unwrap();
    let plan = plan.iter().map(|row| row.get::<_, String>(0)).collect::<Vec<_>>().join("\n");
    assert!(plan.contains("Index"), "{plan}");
}

/// Writers insert, revoke, rotate and delete keys in transactions of random length that sometimes roll back, while
/// the reader reads as fast as it can. In the end memory is the table.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn whatever_many_writers_do_at_once_memory_becomes_the_table() {
    const WRITERS: usize = 8;
    let tenant = Arc::new(Tenant::new().await);
    let mut reader = Reader::new(&tenant).await;
    let finished = Arc::new(AtomicUsize::new(0));
    let writers = (0..WRITERS).map(|_| {
        let (tenant, finished) = (Arc::clone(&tenant), Arc::clone(&finished));
        tokio::spawn(async move {
            write_at_random(&tenant).await;
            finished.fetch_add(1, Ordering::SeqCst);
        })
    });
    let writers: Vec<_> = writers.collect();
    while finished.load(Ordering::SeqCst) < WRITERS && writers.iter().any(|writer| !writer.is_finished()) {
        reader.read_changes().await;
        tokio::task::yield_now().await;
    }
    for writer in writers {
        writer.await.unwrap();
    }
    reader.read_changes().await;
    assert_same_as_table(&reader.snapshot, &tenant.client).await;
}

async fn write_at_random(tenant: &Tenant) {
    let mut client = tenant.database.client().await;
    let mut own: Vec<Uuid> = Vec::new();
    for _ in 0..40 {
        let transaction = client.transaction().await.unwrap();
        let mut after = own.clone();
        for _ in 0..rand::random_range(1..6) {
            let secret = Uuid::new_v4().to_string();
            match (rand::random_range(0..4), after.is_empty()) {
                (0, _) | (_, true) => after.push(tenant.insert(&transaction, &secret).await),
                (1, _) => set_status(&transaction, after[rand::random_range(0..after.len())], "archived").await,
                (2, _) => rotate(&transaction, after[rand::random_range(0..after.len())], &secret).await,
                _ => delete(&transaction, after.swap_remove(rand::random_range(0..after.len()))).await,
            }
            tokio::time::sleep(Duration::from_micros(rand::random_range(0..2000))).await;
        }
        if rand::random_bool(0.8) {
            transaction.commit().await.unwrap();
            own = after;
        } else {
            transaction.rollback().await.unwrap();
        }
    }
}
