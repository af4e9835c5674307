//! A proxy as far as limits go: its shares, its journal, and what keeps both in step with Postgres.

use clap::Parser as _;
use harness::Database;
use proxy::journal::ship::{Pricer, Shipper};
use proxy::journal::upload::Uploader;
use proxy::journal::{self, Charge, Journal, Record};
use proxy::limits::lease_keeper::LeaseKeeper;
use proxy::limits::{
    Counter, Limit, LimitAsk, LimitKind, LimitMeters, LimitRefusal, Limits, Reservation, Scope, Spent, Unit,
};
use proxy::snapshot::Snapshot;
use shared::cost::prices::{FetchedPrices, PriceFetch, Sources};
use shared::log_store::LogStore;
use shared::settings::{self, AllSettings};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};
use tokio_postgres::types::FromSqlOwned;
use uuid::Uuid;

/// Far beyond anything a healthy run needs: a test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// What every call uses.
pub const TOKENS: u64 = 1100;
const USAGE: &str = r#"{"prompt_tokens":1000,"completion_tokens":100}"#;
/// 1000 × 0.00025 + 100 × 0.001 cents.
pub const NANO_CENTS: u64 = 350_000_000;

struct Nowhere;

impl PriceFetch for Nowhere {
    fn get<'a>(&'a self, _: &'a str) -> FetchedPrices<'a> {
        Box::pin(async { Ok(None) })
    }
}

pub struct Replica {
    pub limits: Arc<Limits>,
    pub journal: Arc<Journal>,
    keeper: JoinHandle<()>,
    shipper: Option<JoinHandle<()>>,
}

/// Ends as a killed process does: nothing is said to anybody.
impl Drop for Replica {
    fn drop(&mut self) {
        self.keeper.abort();
        self.stop_shipping();
    }
}

pub fn settings() -> AllSettings {
    AllSettings::try_parse_from(["test", "--database-url", "postgres://nobody@127.0.0.1:1/none"]).unwrap()
}

impl Replica {
    pub fn start(folder: &Path, database: &Database) -> Self {
        // A machine that is busy with other tests takes its time.
        let limits = settings::LimitSettings { limits_wait_ms: 20_000, ..settings().limits };
        Self::start_with(folder, database.settings(), limits)
    }

    pub fn start_with(folder: &Path, database: settings::Database, limits: settings::LimitSettings) -> Self {
        let all = settings();
        let registry = prometheus::Registry::new();
        let meters = Arc::new(journal::JournalMeters::new(&registry).unwrap());
        let folder = settings::Journal { journal_dir: folder.into(), journal_ship_ms: 20, ..all.journal };
        let journal = Journal::open(folder, 2, meters.clone()).unwrap();
        let limits = Limits::shared(limits, Arc::new(LimitMeters::new(&registry).unwrap()));
        let shipped = journal.clone();
        let shipped_ago = move || shipped.shipped_ago();
        let mut keeper = LeaseKeeper::new(limits.clone(), journal.boot(), shipped_ago, database.clone());
        let sources = Sources::new(&all.prices, &all.log_store, ["openai"].into_iter(), Arc::new(Nowhere)).unwrap();
        let pricer = Pricer::new(sources, Arc::new(Snapshot::empty()));
        let mut shipper = Shipper::new(database.clone(), pricer, meters, None);
        let url = concat!("file://", env!("CARGO_TARGET_TMPDIR"), "/limits-store").to_owned();
        let kept = settings::LogStoreSettings { log_store_url: url, ..all.log_store };
        let uploader = Uploader::new(LogStore::open(&kept).unwrap(), Arc::default(), database, &kept);
        let (shipping, following) = (journal.clone(), limits.clone());
        Self {
            limits,
            journal,
            keeper: tokio::spawn(async move {
                tokio::join!(keeper.run(), following.follow_redis());
            }),
            shipper: Some(tokio::spawn(async move { shipping.run(&mut shipper, &uploader).await })),
        }
    }

    pub fn stop_shipping(&mut self) {
        if let Some(shipper) = self.shipper.take() {
            shipper.abort();
        }
    }

    /// The store is not asked any more.
    pub fn stop_asking(&self) {
        self.keeper.abort();
    }

    pub async fn reserve(&self, asks: &[LimitAsk<'_>]) -> Result<Reservation, LimitRefusal> {
        self.limits.reserve(self.limits.now(), asks).await
    }

    /// A call from beginning to end.
    pub async fn call(&self, asks: &[LimitAsk<'_>]) -> Result<(), LimitRefusal> {
        let taken = self.reserve(asks).await?;
        self.finish(taken, asks[0].limit.counter.organisation().uuid());
        Ok(())
    }

    pub fn finish(&self, taken: Reservation, organisation: Uuid) {
        let charges = taken.charges().map(Charge::from).collect();
        self.journal.append(&Record { charges, ..record(organisation) });
        taken.settle(Spent { requests: 1, tokens: TOKENS, nano_cents: NANO_CENTS });
    }
}

pub fn record(organisation: Uuid) -> Record<'static> {
    let id = proxy::request::request_id::new(SystemTime::now());
    Record {
        id,
        internal_trace_id: id,
        organisation_id: organisation.into(),
        workspace_id: Uuid::from_u128(1).into(),
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

pub fn limit(organisation: Uuid, unit: Unit, kind: LimitKind, cap: u64) -> Arc<Limit> {
    let counter = Counter::new(organisation.into(), Scope::Policy, "policy/user:a", unit, kind);
    Arc::new(Limit { counter, cap, kind, dry_run: false })
}

pub fn ask(limit: &Arc<Limit>, amount: u64) -> LimitAsk<'_> {
    LimitAsk { limit, amount, found: None }
}

/// Waits until the query answers as expected.
pub async fn until<T: FromSqlOwned + PartialEq + std::fmt::Debug>(database: &Database, query: &str, expected: T) {
    let client = database.client().await;
    let end = Instant::now() + PATIENCE;
    loop {
        let found: T = client.query_one(query, &[]).await.unwrap().get(0);
        if found == expected {
            return;
        }
        assert!(Instant::now() < end, "{query}: {found:?} instead of {expected:?}");
        sleep(Duration::from_millis(10)).await;
    }
}
