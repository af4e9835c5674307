//! From files to Postgres: once, whatever happens in between.

use chrono::{DateTime, Utc};
use clap::Parser as _;
use harness::Database;
use proxy::journal::ship::{Pricer, Shipper};
use proxy::journal::upload::Uploader;
use proxy::journal::{Journal, JournalMeters, Record};
use proxy::snapshot::Snapshot;
use shared::cost::prices::{FetchedPrices, PriceFetch, Sources};
use shared::log_store::LogStore;
use shared::settings::{self, AllSettings};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio_postgres::Client;
use tokio_postgres::types::FromSqlOwned;
use uuid::Uuid;

/// Far beyond anything a healthy run needs: a test that waits this long has failed.
const PATIENCE: Duration = Duration::from_secs(60);
const USAGE: &str = r#"{"prompt_tokens":1000,"completion_tokens":100}"#;

struct Nowhere;

impl PriceFetch for Nowhere {
    fn get<'a>(&'a self, _: &'a str) -> FetchedPrices<'a> {
        Box::pin(async { Ok(None) })
    }
}

pub fn settings() -> AllSettings {
    AllSettings::try_parse_from(["test", "--database-url", "postgres://nobody@127.0.0.1:1/none"]).unwrap()
}

/// A journal in this folder, and what ships it.
pub fn open(folder: &Path, database: settings::Database) -> (Arc<Journal>, Shipper, Arc<JournalMeters>) {
    open_with(folder, database, settings().journal)
}

fn open_with(
    folder: &Path,
    database: settings::Database,
    journal: settings::Journal,
) -> (Arc<Journal>, Shipper, Arc<JournalMeters>) {
    let settings = settings();
    let meters = Arc::new(JournalMeters::new(&prometheus::Registry::new()).unwrap());
    let journal = settings::Journal { journal_dir: folder.into(), journal_ship_ms: 10, ..journal };
    let journal = Journal::open(journal, 2, meters.clone()).unwrap();
    let sources = Sources::new(&settings.prices, &settings.log_store, [].into_iter(), Arc::new(Nowhere)).unwrap();
    let pricer = Pricer::new(sources, Arc::new(Snapshot::empty()));
    (journal, Shipper::new(database, pricer, meters.clone(), None), meters)
}

/// Nothing here has bodies; a store is there all the same.
pub fn uploader() -> Uploader {
    let url = concat!("file://", env!("CARGO_TARGET_TMPDIR"), "/journal-store").to_owned();
    let store = LogStore::open(&settings::LogStoreSettings { log_store_url: url, ..settings().log_store }).unwrap();
    Uploader::new(store, Arc::default(), settings().database, &settings().log_store)
}

/// Ships what is in the folder until the query answers as expected.
pub async fn ship_until<T: FromSqlOwned + PartialEq + std::fmt::Debug>(
    folder: &Path,
    database: &Database,
    query: &str,
    expected: T,
) -> Arc<JournalMeters> {
    let (journal, mut shipper, meters) = open(folder, database.settings());
    let client = database.client().await;
    let uploader = uploader();
    tokio::select! {
        () = journal.run(&mut shipper, &uploader) => {}
        () = until(&client, query, expected) => {}
    }
    meters
}

async fn until<T: FromSqlOwned + PartialEq + std::fmt::Debug>(client: &Client, query: &str, expected: T) {
    let end = tokio::time::Instant::now() + PATIENCE;
    loop {
        let found: T = one(client, query).await;
        if found == expected {
            return;
        }
        assert!(tokio::time::Instant::now() < end, "{query}: {found:?} instead of {expected:?}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

pub async fn one<T: FromSqlOwned>(client: &Client, query: &str) -> T {
    client.query_one(query, &[]).await.unwrap().get(0)
}

pub fn record(tenant: (Uuid, Uuid)) -> Record<'static> {
    let id = proxy::request::request_id::new(SystemTime::now());
    Record {
        id,
        internal_trace_id: id,
        organisation_id: tenant.0.into(),
        workspace_id: tenant.1.into(),
        api_key_id: Uuid::from_u128(7).into(),
        ai_org: Some("openai"),
        requested_model: Some("gpt-4o"),
        usage: vec![USAGE],
        status: 200,
        method: "POST",
        url: "/v1/chat/completions",
        trace_id: "t",
        ..Record::default()
    }
}

pub fn tenant() -> (Uuid, Uuid) {
    (Uuid::new_v4(), Uuid::new_v4())
}

/// Notes records as a process does that is killed right afterwards.
pub fn leave(folder: &Path, records: &[Record<'_>]) {
    let (journal, ..) = open(folder, settings().database);
    records.iter().for_each(|record| journal.append(record));
}

pub fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let is_mark = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "boot");
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| !is_mark(path)).collect()
}

/// Waits until nothing in the folder is left to be shipped.
pub async fn emptied(folder: &Path) {
    let has_segments = || files(folder).iter().any(|path| path.extension().is_some_and(|ending| ending == "seg"));
    let gone = async {
        while has_segments() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("what is in the folder is shipped");
}

pub const STORED_AND_REJECTED: &str =
    "SELECT (SELECT count(*) FROM request_logs) || ' ' || (SELECT count(*) FROM rejected_records)";
pub const LOGS: &str = "SELECT count(*) FROM request_logs";

#[tokio::test]
async fn what_a_dead_process_left_is_stored_once_however_often_it_is_sent() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let records: Vec<_> = (0..50).map(|_| record(tenant())).collect();
    leave(folder.path(), &records);
    let file = files(folder.path()).remove(0);
    std::fs::copy(&file, folder.path().join("again-0-0.seg")).unwrap();
    let meters = ship_until(folder.path(), &database, LOGS, 50_i64).await;
    let client = database.client().await;
    until(&client, "SELECT sum(value)::bigint FROM usage_counters WHERE (scope, unit, period) = ('organisation', 'requests', 'total')", Some(50_i64)).await;
    // Both files are gone when the second one is stored too.
    let (journal, mut shipper, _) = open(folder.path(), database.settings());
    let uploader = uploader();
    tokio::select! {
        () = journal.run(&mut shipper, &uploader) => {}
        () = emptied(folder.path()) => {}
    }
    assert_eq!(one::<i64>(&client, LOGS).await, 50);
    let counted = "SELECT sum(value)::bigint FROM usage_counters WHERE (scope, unit, period) = ('workspace', 'requests', 'total')";
    assert_eq!(one::<i64>(&client, counted).await, 50);
    assert_eq!((meters.lost.get(), meters.rejected.get()), (0, 0));
}

#[tokio::test]
async fn many_shippers_of_the_same_records_neither_deadlock_nor_count_twice() {
    let database = Database::fresh().await;
    let tenants: Vec<_> = (0..5).map(|_| tenant()).collect();
    let records: Vec<_> = (0..200).map(|n| record(tenants[n % 5])).collect();
    let folders: Vec<_> = (0..4).map(|_| TempDir::new().unwrap()).collect();
    for (number, folder) in folders.iter().enumerate() {
        let mut records = records.clone();
        // Each in an order of its own.
        records.rotate_left(number * 37);
        leave(folder.path(), &records);
    }
    let shipments = folders.iter().map(|folder| async {
        let (journal, mut shipper, meters) = open(folder.path(), database.settings());
        let uploader = uploader();
        tokio::select! {
            () = journal.run(&mut shipper, &uploader) => {}
            () = emptied(folder.path()) => {}
        }
        meters.ship_failures.get()
    });
    let failures: u64 = futures::future::join_all(shipments).await.into_iter().sum();
    let client = database.client().await;
    assert_eq!((one::<i64>(&client, LOGS).await, failures), (200, 0));
    let counted = "SELECT string_agg(DISTINCT value::bigint::text, ',') FROM usage_counters WHERE scope = 'workspace' AND unit = 'requests'";
    assert_eq!(one::<String>(&client, counted).await, "40");
}

#[tokio::test]
async fn a_record_that_cannot_be_stored_is_set_aside_and_holds_nobody_up() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let mut records: Vec<_> = (0..9).map(|_| record(tenant())).collect();
    records.insert(3, Record { metadata: Some("[1]"), ..record(tenant()) });
    records.insert(7, Record { id: Uuid::from_u128(1), ..record(tenant()) });
    leave(folder.path(), &records);
    let meters = ship_until(folder.path(), &database, STORED_AND_REJECTED, "9 2".to_owned()).await;
    let client = database.client().await;
    let reasons: String = one(&client, "SELECT string_agg(reason, ' | ' ORDER BY reason) FROM rejected_records").await;
    assert!(reasons.contains("request_logs_metadata_check") && reasons.contains("time is not possible"), "{reasons}");
    assert!(meters.rejected.get() <= 2);
}

#[tokio::test]
async fn while_postgres_is_away_records_wait_on_disk() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let (journal, mut shipper, meters) = open(folder.path(), settings().database);
    (0..10).for_each(|_| journal.append(&record(tenant())));
    let failed = async {
        while meters.ship_failures.get() < 2 {
            journal.append(&record(tenant()));
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    let uploader = uploader();
    tokio::select! {
        () = journal.run(&mut shipper, &uploader) => {}
        failed = tokio::time::timeout(PATIENCE, failed) => failed.unwrap(),
    }
    let noted = meters.records.get();
    drop((journal, shipper));
    ship_until(folder.path(), &database, LOGS, i64::try_from(noted).unwrap()).await;
    assert_eq!(meters.lost.get(), 0);
}

#[tokio::test]
async fn a_row_holds_exact_costs_its_prices_and_only_what_postgres_can_store() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let home = tenant();
    let mut records = [
        Record { answered_model: Some("gpt-4o-2024-08-06"), ..record(home) },
        Record { url: "/v1/\0x", metadata: Some("{\"_user\":\"a\\u0000b\",\"n\":1}"), ..record(home) },
        Record { ai_org: None, requested_model: None, usage: vec![], status: 401, ..record(home) },
        Record { usage: vec![], estimate: Some((1000, 100)), ..record(home) },
    ];
    let start = SystemTime::now();
    for (number, record) in records.iter_mut().enumerate() {
        record.id = proxy::request::request_id::new(start + Duration::from_millis(number as u64));
    }
    leave(folder.path(), &records);
    ship_until(folder.path(), &database, LOGS, 4_i64).await;
    let client = database.client().await;
    // 1000 × 0.00025 + 100 × 0.001 cents.
    let costs = "SELECT string_agg(coalesce(trim_scale(cost)::text, '-'), ' ' ORDER BY id) FROM request_logs";
    assert_eq!(one::<String>(&client, costs).await, "0.35 0.35 - 0.35");
    let row = client.query_one("SELECT * FROM request_logs ORDER BY id LIMIT 1", &[]).await.unwrap();
    assert_eq!(row.get::<_, &str>("ai_model"), "gpt-4o-2024-08-06");
    assert_eq!(row.get::<_, &str>("requested_model"), "gpt-4o");
    assert_eq!(row.get::<_, &str>("price_model"), "gpt-4o-2024-08-06");
    assert_eq!(row.get::<_, &str>("price_version").rsplit('.').next().map(str::len), Some(16));
    let prices: serde_json::Value = row.get("unit_prices");
    assert_eq!(prices, serde_json::json!({"request_token": "0.00025", "response_token": "0.001"}));
    assert_eq!((row.get::<_, i64>("total_units"), row.get::<_, bool>("usage_estimated")), (1100, false));
    let texts = "SELECT request_url || metadata::text FROM request_logs ORDER BY id OFFSET 1 LIMIT 1";
    assert_eq!(one::<String>(&client, texts).await, r#"/v1/x{"n": 1, "_user": "ab"}"#);
    let estimated = "SELECT count(*) FROM request_logs WHERE usage_estimated";
    assert_eq!(one::<i64>(&client, estimated).await, 1);
    let spent = "SELECT string_agg(trim_scale(value)::text, ' ' ORDER BY unit) FROM usage_counters WHERE scope = 'api_key' AND period = 'day'";
    assert_eq!(one::<String>(&client, spent).await, "1.05 3 3300");
}

#[tokio::test]
async fn the_table_of_a_day_is_made_when_its_first_record_arrives() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let days_ago = |days: u64| SystemTime::now() - Duration::from_secs(days * 86_400);
    let records: Vec<_> = [0, 1, 40]
        .into_iter()
        .map(|days| Record { id: proxy::request::request_id::new(days_ago(days)), ..record(tenant()) })
        .collect();
    leave(folder.path(), &records);
    ship_until(folder.path(), &database, LOGS, 3_i64).await;
    let client = database.client().await;
    let names =
        "SELECT string_agg(DISTINCT tableoid::regclass::text, ' ' ORDER BY tableoid::regclass::text) FROM request_logs";
    let name = |days| format!("request_logs_{}", DateTime::<Utc>::from(days_ago(days)).format("%Y%m%d"));
    assert_eq!(one::<String>(&client, names).await, [name(40), name(1), name(0)].join(" "));
    let created: DateTime<Utc> =
        client.query_one("SELECT created_at FROM request_logs WHERE id = $1", &[&records[0].id]).await.unwrap().get(0);
    assert_eq!(created, records[0].created_at());
}

#[tokio::test]
async fn a_day_that_is_dropped_before_its_rows_come_is_made_again_and_nothing_is_set_aside() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    let client = database.client().await;
    // The first time it is gone again when the rows come.
    let dropped = "ALTER FUNCTION request_logs_day RENAME TO make_day; CREATE SEQUENCE asked;
        CREATE FUNCTION request_logs_day(day date) RETURNS void LANGUAGE plpgsql AS $$
        BEGIN IF nextval('asked') > 1 THEN PERFORM make_day(day); END IF; END $$";
    client.batch_execute(dropped).await.unwrap();
    let records: Vec<_> = (0..5).map(|_| record(tenant())).collect();
    leave(folder.path(), &records);
    let meters = ship_until(folder.path(), &database, LOGS, 5_i64).await;
    assert_eq!((meters.rejected.get(), meters.ship_failures.get()), (0, 1));
    assert_eq!(one::<i64>(&client, "SELECT count(*) FROM rejected_records").await, 0);
}

#[tokio::test]
async fn how_much_is_stored_is_known_although_calls_never_cease() {
    let (database, folder) = (Database::fresh().await, TempDir::new().unwrap());
    // A few records fill a file, so that one is closed whenever the shipper looks.
    let small = settings::Journal { journal_segment_bytes: 2000, ..settings().journal };
    let (journal, mut shipper, _) = open_with(folder.path(), database.settings(), small);
    let calls = async {
        loop {
            journal.append(&record(tenant()));
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    let known = async {
        // Not at once: the first look may find nothing.
        for _ in 0..2 {
            let noted = std::time::Instant::now();
            while journal.shipped_ago().is_none_or(|ago| ago > noted.elapsed()) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
    };
    let uploader = uploader();
    tokio::select! {
        () = journal.run(&mut shipper, &uploader) => {}
        () = calls => {}
        known = tokio::time::timeout(PATIENCE, known) => known.expect("what was noted is known to be stored"),
    }
}
