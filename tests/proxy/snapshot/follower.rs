//! The follower as the proxy runs it: woken by notices, through lost connections, restarts and starts without Postgres.

use super::*;
use bench::postgres::{Options, Purpose, Server};
use chrono::{DateTime, Utc};
use proxy::snapshot::Follower;
use shared::db::{self, migrate};
use shared::settings;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::watch;
use tokio::task::JoinHandle;

struct Running {
    snapshot: Arc<Snapshot>,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl Running {
    fn start(database: settings::Database, settings: settings::Snapshot) -> Self {
        let snapshot = Arc::new(Snapshot::empty());
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(Follower::new(Arc::clone(&snapshot), database, settings).run(stopped));
        Self { snapshot, stop, task }
    }

    async fn loaded(database: settings::Database, settings: settings::Snapshot) -> Self {
        let running = Self::start(database, settings);
        running.until("it has read from Postgres", |snapshot| snapshot.progress().reads > 0).await;
        running
    }

    async fn until(&self, what: &str, holds: impl Fn(&Snapshot) -> bool) {
        until(what, async || holds(&self.snapshot)).await;
    }

    /// Returns when the last word is on disk.
    async fn stop(self) {
        self.stop.send(true).unwrap();
        tokio::time::timeout(PATIENCE, self.task).await.expect("the follower stops").unwrap();
        assert!(!self.snapshot.is_connected());
    }
}

/// Polls so rarely that only notices can explain what arrives.
fn settings(folder: &Path) -> settings::Snapshot {
    settings::Snapshot {
        snapshot_dir: folder.join("snapshot"),
        snapshot_poll_ms: 3_600_000,
        snapshot_save_ms: 1,
        snapshot_max_age_s: 3600,
    }
}

/// Nobody listens there.
fn away() -> settings::Database {
    at("postgres://nobody@127.0.0.1:1/nothing")
}

fn at(url: &str) -> settings::Database {
    settings::Database {
        database_url: url.to_owned(),
        database_listen_url: None,
        database_pool_size: 1,
        database_connect_timeout_ms: 5000,
        database_statement_timeout_ms: 0,
        db_ssl: settings::DbSsl::Disabled,
        db_ssl_ca: None,
        db_ssl_cert: None,
        db_ssl_key: None,
    }
}

/// Ends the follower's sessions as an operator or a failing network would.
async fn cut_off(tenant: &Tenant) {
    let cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity
               WHERE datname = current_database() AND pid <> pg_backend_pid()";
    assert!(!tenant.client.query(cut, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn notices_alone_bring_keys_in_and_take_them_out() {
    let (tenant, folder) = (Tenant::new().await, TempDir::new().unwrap());
    let running = Running::loaded(tenant.database.settings(), settings(folder.path())).await;
    assert!(running.snapshot.is_connected());
    let id = tenant.insert(&tenant.client, "a").await;
    running.until("the new key is known", |snapshot| status(snapshot, "a").as_deref() == Some("active")).await;
    set_status(&tenant.client, id, "archived").await;
    running.until("it is revoked", |snapshot| status(snapshot, "a").as_deref() == Some("archived")).await;
    delete(&tenant.client, id).await;
    running.until("it is gone", |snapshot| status(snapshot, "a").is_none()).await;
    assert_eq!((running.snapshot.progress().reloads, running.snapshot.failures()), (1, 0));
    running.stop().await;
}

#[tokio::test]
async fn polling_alone_brings_changes_that_nobody_announced() {
    let (tenant, folder) = (Tenant::new().await, TempDir::new().unwrap());
    tenant.client.batch_execute("ALTER TABLE api_keys DISABLE TRIGGER announce_change").await.unwrap();
    let settings = settings::Snapshot { snapshot_poll_ms: 20, ..settings(folder.path()) };
    let running = Running::loaded(tenant.database.settings(), settings).await;
    tenant.insert(&tenant.client, "a").await;
    running.until("the new key is known", |snapshot| status(snapshot, "a").is_some()).await;
    running.stop().await;
}

#[tokio::test]
async fn a_burst_of_notices_is_read_in_a_few_batches() {
    let (tenant, folder) = (Tenant::new().await, TempDir::new().unwrap());
    let running = Running::loaded(tenant.database.settings(), settings(folder.path())).await;
    let before = running.snapshot.progress().reads;
    let mut blocker = tenant.database.client().await;
    let blocker = blocker.transaction().await.unwrap();
    // Reads wait for it, writes do not.
    blocker.batch_execute("LOCK TABLE tombstones").await.unwrap();
    for n in 0..200 {
        tenant.insert(&tenant.client, &n.to_string()).await;
    }
    blocker.commit().await.unwrap();
    running.until("all are known", |snapshot| (0..200).all(|n| status(snapshot, &n.to_string()).is_some())).await;
    tenant.insert(&tenant.client, "last").await;
    running.until("the last is known", |snapshot| status(snapshot, "last").is_some()).await;
    // A backlog of notices would be read before it rests.
    running.until("it rests", Snapshot::is_resting).await;
    let reads = running.snapshot.progress().reads - before;
    assert!(reads <= 6, "{reads} reads for 201 notices");
    running.stop().await;
}

#[tokio::test]
async fn after_a_cut_connection_it_reads_what_changed_meanwhile_and_no_more() {
    let (tenant, folder) = (Tenant::new().await, TempDir::new().unwrap());
    tenant.insert(&tenant.client, "known").await;
    let running = Running::loaded(tenant.database.settings(), settings(folder.path())).await;
    for secret in ["a", "b"] {
        let failures = running.snapshot.failures();
        cut_off(&tenant).await;
        running.until("the loss is noticed", |snapshot| snapshot.failures() > failures).await;
        assert_eq!(known(&running.snapshot, &["known", "unknown"]), ["known"]);
        tenant.insert(&tenant.client, secret).await;
        running.until("the change arrived", |snapshot| status(snapshot, secret).is_some()).await;
    }
    assert_eq!(running.snapshot.progress().reloads, 1);
    running.stop().await;
}

#[tokio::test]
async fn a_crash_of_postgres_costs_no_known_key_and_is_recovered_from_whole() {
    let folder = tempfile::Builder::new().permissions(std::fs::Permissions::from_mode(0o755)).tempdir().unwrap();
    let server = Server::start(&Options::new(folder.path().join("pg"), Purpose::Test)).unwrap();
    let settled = at(&server.url("postgres"));
    let mut client = db::connect_direct(&settled).await.unwrap();
    migrate::run(&mut client).await.unwrap();
    let (organisation, _) = tenancy(&client).await;
    insert(&client, organisation, "known").await;
    client.batch_execute("CHECKPOINT").await.unwrap();
    let running = Running::loaded(settled.clone(), settings(folder.path())).await;
    // This server does not wait for its disk: the crash undoes this commit, and gives its transaction id out again.
    insert(&client, organisation, "fleeting").await;
    running.until("it is known", |snapshot| status(snapshot, "fleeting").is_some()).await;

    server.crash().unwrap();
    running.until("two attempts failed", |snapshot| snapshot.failures() >= 2).await;
    assert_eq!(known(&running.snapshot, &["known", "unknown"]), ["known"]);
    assert!(running.snapshot.is_loaded() && !running.snapshot.is_connected());

    server.resume().unwrap();
    let client = db::connect(&settled).await.unwrap();
    insert(&client, organisation, "after").await;
    running.until("the new key is known", |snapshot| status(snapshot, "after").is_some()).await;
    assert_eq!(running.snapshot.progress().reloads, 2);
    assert_same_as_table(&running.snapshot, &client).await;
    running.stop().await;
    server.remove().unwrap();
}

#[tokio::test]
async fn a_proxy_starts_from_disk_without_postgres_and_knows_what_it_knew() {
    let (tenant, folder) = (Tenant::new().await, TempDir::new().unwrap());
    tenant.insert(&tenant.client, "a").await;
    let first = Running::loaded(tenant.database.settings(), settings(folder.path())).await;
    let revoked = tenant.insert(&tenant.client, "revoked").await;
    first.until("the key is known", |snapshot| status(snapshot, "revoked").is_some()).await;
    set_status(&tenant.client, revoked, "archived").await;
    first.until("it is revoked", |snapshot| status(snapshot, "revoked").as_deref() == Some("archived")).await;
    first.stop().await;

    let second = Running::start(away(), settings(folder.path()));
    second.until("it is loaded", |snapshot| snapshot.is_loaded()).await;
    assert_eq!(known(&second.snapshot, &["a", "revoked", "unknown"]), ["a", "revoked"]);
    assert_eq!(status(&second.snapshot, "revoked").as_deref(), Some("archived"));
    assert!(second.snapshot.workspace(&tenant.workspace.into()).is_some());
    assert!(second.snapshot.cursor() > 0 && second.snapshot.age().is_some() && !second.snapshot.is_connected());
    second.stop().await;

    // Postgres is back, and knows better than the disk.
    delete(&tenant.client, revoked).await;
    let third = Running::loaded(tenant.database.settings(), settings(folder.path())).await;
    assert_eq!(known(&third.snapshot, &["a", "revoked"]), ["a"]);
    third.stop().await;
}

#[tokio::test]
async fn a_copy_older_than_allowed_or_damaged_is_not_used() {
    let (tenant, folder) = (Tenant::new().await, TempDir::new().unwrap());
    tenant.insert(&tenant.client, "a").await;
    Running::loaded(tenant.database.settings(), settings(folder.path())).await.stop().await;

    let strict = settings::Snapshot { snapshot_max_age_s: 0, ..settings(folder.path()) };
    let refused = Running::start(away(), strict);
    refused.until("it looked for Postgres, after the disk", |snapshot| snapshot.failures() > 0).await;
    assert!(!refused.snapshot.is_loaded() && status(&refused.snapshot, "a").is_none());
    refused.stop().await;

    std::fs::write(folder.path().join("snapshot/rows.jsonl"), "{").unwrap();
    let refused = Running::start(away(), settings(folder.path()));
    refused.until("it looked for Postgres, after the disk", |snapshot| snapshot.failures() > 0).await;
    assert!(!refused.snapshot.is_loaded());
    refused.stop().await;

    let healed = Running::loaded(tenant.database.settings(), settings(folder.path())).await;
    assert_eq!(known(&healed.snapshot, &["a"]), ["a"]);
    healed.stop().await;
}

#[tokio::test]
async fn without_changes_the_copy_is_confirmed_and_not_written_again() {
    let (tenant, folder) = (Tenant::new().await, TempDir::new().unwrap());
    let settings = settings::Snapshot { snapshot_poll_ms: 1, ..settings(folder.path()) };
    let running = Running::loaded(tenant.database.settings(), settings).await;
    let copy = folder.path().join("snapshot/rows.jsonl");
    until("the copy is written", async || copy.exists()).await;
    let written = std::fs::read(&copy).unwrap();
    let confirmed_at = || -> Option<DateTime<Utc>> {
        let text = std::fs::read(folder.path().join("snapshot/confirmed.json")).ok()?;
        serde_json::from_slice::<serde_json::Value>(&text).ok()?["at"].as_str()?.parse().ok()
    };
    until("it is confirmed", async || confirmed_at().is_some()).await;
    let first = confirmed_at();
    until("it is confirmed again", async || confirmed_at() > first).await;
    running.stop().await;
    assert!(std::fs::read(&copy).unwrap() == written, "the copy was written again");
}

#[tokio::test]
async fn it_waits_for_the_schema_and_then_loads() {
    let (database, folder) = (Database::blank().await, TempDir::new().unwrap());
    let running = Running::start(database.settings(), settings(folder.path()));
    let mut client = database.client().await;
    let asks = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND query LIKE '%schema_history%'
                AND pid <> pg_backend_pid()";
    until("it looks at the schema", async || client.query_opt(asks, &[]).await.unwrap().is_some()).await;
    assert!(!running.snapshot.is_loaded());
    migrate::run(&mut client).await.unwrap();
    running.until("it is loaded", |snapshot| snapshot.is_loaded()).await;
    running.stop().await;
}

#[tokio::test]
async fn it_reads_nothing_from_a_schema_that_is_not_ours() {
    let (tenant, folder) = (Tenant::new().await, TempDir::new().unwrap());
    let forge = "UPDATE refinery_schema_history SET name = 'something_else' WHERE version = 1";
    assert_eq!(tenant.client.execute(forge, &[]).await.unwrap(), 1);
    let running = Running::start(tenant.database.settings(), settings(folder.path()));
    running.until("it refused twice", |snapshot| snapshot.failures() >= 2).await;
    assert!(!running.snapshot.is_loaded() && running.snapshot.progress().reads == 0);
    running.stop().await;
}
