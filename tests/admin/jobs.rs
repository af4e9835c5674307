//! Jobs under any number of admins: each runs once when it is due, a failed or abandoned run did nothing, and a second
//! run finds nothing left.

mod alert_mail;
mod batches;
mod budgets;
mod files;
mod schedules;
mod webhook;

use crate::providers::granted;
use crate::service::Service;
use admin::App;
use admin::jobs::{self, JOBS, Job, JobOutcome, JobRun};
use futures::FutureExt as _;
use futures::future::join_all;
use harness::{Database, until};
use http::StatusCode;
use serde_json::json;
use shared::model::KeyKind;
use shared::{db, settings};
use std::ffi::OsString;
use std::time::Duration;

/// Shared by all tests: what lies in it begins with its tenant.
pub const LOG_STORE: &str = concat!("--log-store-url=file://", env!("CARGO_TARGET_TMPDIR"), "/log-store");

/// An admin on this database that serves nobody: only its jobs are of interest.
pub async fn admin_on(database: &Database) -> App {
    admin_with(database, &[]).await
}

/// The same with further settings.
pub async fn admin_with(database: &Database, settings: &[&str]) -> App {
    let url = format!("--database-url={}", database.url());
    let arguments = ["gateway-admin", &url, "--database-pool-size=4", LOG_STORE];
    let arguments = arguments.into_iter().chain(settings.iter().copied());
    let settings: admin::Settings = settings::load(arguments.map(OsString::from)).expect("the settings are valid");
    App::new(db::pool(&settings.database).await.unwrap(), &settings).unwrap()
}

/// Runs a job now, due or not, until nothing is left, and says how much it did.
pub async fn run(app: &App, name: &str) -> u64 {
    let job = JOBS.iter().find(|job| job.name == name).expect("there is such a job");
    app.db.get().await.unwrap().execute("DELETE FROM jobs WHERE name = $1", &[&name]).await.unwrap();
    let mut items = 0;
    loop {
        match jobs::attempt(app, job).await.unwrap() {
            JobOutcome::Ran(done) => {
                items += done.items;
                if done.is_all {
                    return items;
                }
            }
            other => panic!("{name}: {other:?}"),
        }
    }
}

async fn statuses(service: &Service) -> Vec<(String, String)> {
    let rows = "SELECT name, status FROM api_keys WHERE name LIKE 'k-%' ORDER BY name";
    let rows = service.database.client().await.query(rows, &[]).await.unwrap();
    rows.iter().map(|row| (row.get("name"), row.get("status"))).collect()
}

#[tokio::test]
async fn of_many_admins_that_look_at_once_one_runs_each_job() {
    let database = Database::fresh().await;
    let (one, other) = (admin_on(&database).await, admin_on(&database).await);
    for job in JOBS {
        let turns = (0..8).map(|n| jobs::attempt(if n % 2 == 0 { &one } else { &other }, job));
        let turns: Vec<JobOutcome> = join_all(turns).await.into_iter().map(Result::unwrap).collect();
        let ran = turns.iter().filter(|turn| matches!(turn, JobOutcome::Ran(_))).count();
        assert_eq!(ran, 1, "{}: {turns:?}", job.name);
        let again = jobs::attempt(&other, job).await.unwrap();
        assert!(matches!(again, JobOutcome::NotDue { wait } if wait <= job.every), "{}: {again:?}", job.name);
        assert_eq!(run(&other, job.name).await, 0, "{} found something to do twice", job.name);
    }
}

#[tokio::test]
async fn keys_past_their_expiry_are_marked_and_recorded_once() {
    let service = Service::start().await;
    let (one, other) = (admin_on(&service.database).await, admin_on(&service.database).await);
    for (name, status, expiry) in [
        ("k-active", "active", "now()"),
        ("k-archived", "archived", "now()"),
        ("k-eternal", "active", "NULL"),
        ("k-exhausted", "exhausted", "now() - interval '1 year'"),
        ("k-future", "active", "now() + interval '1 hour'"),
    ] {
        let key = service.key(KeyKind::WorkspaceService, &["prompts.read"]).await;
        let set = format!("name = '{name}', status = '{status}', expires_at = {expiry}");
        service.sql(&format!("UPDATE api_keys SET {set} WHERE id = '{}'", key.id)).await;
        let refused = ["k-active", "k-archived", "k-exhausted"].contains(&name);
        let answer = service.client().with_key(&key.key).get("/labels").await;
        assert_eq!(answer.status == StatusCode::UNAUTHORIZED, refused, "{name}, before any job: {}", answer.text());
    }
    let job = JOBS.iter().find(|job| job.name == "expire_keys").unwrap();
    for turn in join_all([&one, &other, &one, &other].map(|app| jobs::attempt(app, job))).await {
        turn.unwrap();
    }
    let expected = [
        ("k-active", "expired"),
        ("k-archived", "archived"),
        ("k-eternal", "active"),
        ("k-exhausted", "expired"),
        ("k-future", "active"),
    ];
    assert_eq!(statuses(&service).await, expected.map(|(name, status)| (name.to_owned(), status.to_owned())));
    assert_eq!(run(&other, "expire_keys").await, 0);
    let trail = service.trail(service.home.organisation_id).await;
    assert_eq!(trail.len(), 2, "{trail:?}");
    for (row, was) in trail.iter().zip(["exhausted", "active"]) {
        assert_eq!((&row["user_type"], &row["resource_type"]), (&"system".into(), &"api_keys".into()));
        assert_eq!((&row["before"]["status"], &row["after"]["status"]), (&was.into(), &"expired".into()), "{row}");
        assert_eq!(row["workspace_id"], service.home.workspace_id.to_string());
        assert!(row["user_id"].is_null());
    }
}

#[tokio::test]
async fn the_secret_before_a_rotation_is_forgotten_when_its_transition_is_over() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    for (name, end) in [("k-ended", "now()"), ("k-open", "now() + interval '1 hour'")] {
        let key = service.key(KeyKind::WorkspaceService, &[]).await;
        let set = format!("name = '{name}', previous_hash = sha256('{name}'), previous_expires_at = {end}");
        service.sql(&format!("UPDATE api_keys SET {set} WHERE id = '{}'", key.id)).await;
    }
    assert_eq!((run(&app, "expire_secrets").await, run(&app, "expire_secrets").await), (1, 0));
    let left = "SELECT name FROM api_keys WHERE previous_hash IS NOT NULL";
    let left = service.database.client().await.query(left, &[]).await.unwrap();
    assert_eq!(left.iter().map(|row| row.get::<_, &str>(0)).collect::<Vec<_>>(), ["k-open"]);
    let trail = service.trail(service.home.organisation_id).await;
    assert_eq!(trail.len(), 1);
    assert_eq!((&trail[0]["user_type"], &trail[0]["action"]), (&"system".into(), &"rotate".into()));
}

#[tokio::test]
async fn providers_past_their_end_are_marked_and_recorded_once_and_can_be_revived() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let client = granted(&service).await;
    for slug in ["active", "archived", "eternal", "exhausted", "future"] {
        let made = client.post("/providers", &json!({ "name": slug, "slug": slug, "integration_id": "main" })).await;
        assert_eq!(made.status, StatusCode::OK, "{}", made.text());
    }
    for (slug, set) in [
        ("active", "expires_at = now()"),
        ("archived", "expires_at = now(), status = 'archived'"),
        ("exhausted", "expires_at = now() - interval '1 year', status = 'exhausted'"),
        ("future", "expires_at = now() + interval '1 hour'"),
    ] {
        service.sql(&format!("UPDATE providers SET {set} WHERE slug = '{slug}'")).await;
    }
    let before = service.trail(service.home.organisation_id).await.len();
    assert_eq!((run(&app, "expire_providers").await, run(&app, "expire_providers").await), (2, 0));
    let statuses = "SELECT slug, status FROM providers ORDER BY slug";
    let rows = service.database.client().await.query(statuses, &[]).await.unwrap();
    let found: Vec<(&str, &str)> = rows.iter().map(|row| (row.get(0), row.get(1))).collect();
    let expected = [
        ("active", "expired"),
        ("archived", "archived"),
        ("eternal", "active"),
        ("exhausted", "expired"),
        ("future", "active"),
    ];
    assert_eq!(found, expected);
    let trail = service.trail(service.home.organisation_id).await;
    let marks: Vec<_> = trail.iter().filter(|row| row["user_type"] == "system").collect();
    assert_eq!((marks.len(), trail.len() - before), (2, 2), "{trail:?}");
    for (row, was) in marks.iter().zip(["exhausted", "active"]) {
        assert_eq!((&row["resource_type"], &row["action"]), (&"providers".into(), &"update".into()));
        assert_eq!((&row["before"]["status"], &row["after"]["status"]), (&was.into(), &"expired".into()), "{row}");
        assert_eq!(row["workspace_id"], service.home.workspace_id.to_string());
    }
    assert_eq!(client.put("/providers/active", &json!({ "expires_at": null })).await.status, StatusCode::OK);
    assert_eq!(client.get("/providers/active").await.json()["status"], "active");
    assert_eq!(run(&app, "expire_providers").await, 0);
}

#[tokio::test]
async fn more_work_than_fits_into_one_run_is_done_by_the_next_at_once() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let keys = "INSERT INTO api_keys (organisation_id, kind, name, hash, mask, scopes, expires_at)
                SELECT id, 'organisation-service', 'k-' || n, sha256(n::text::bytea), 'k', '{}', now()
                FROM organisations, generate_series(1, 600) n";
    service.sql(keys).await;
    let job = JOBS.iter().find(|job| job.name == "expire_keys").unwrap();
    assert_eq!(jobs::attempt(&app, job).await.unwrap(), JobOutcome::Ran(JobRun { items: 500, is_all: false }));
    assert_eq!(jobs::attempt(&app, job).await.unwrap(), JobOutcome::Ran(JobRun { items: 100, is_all: true }));
    assert!(matches!(jobs::attempt(&app, job).await.unwrap(), JobOutcome::NotDue { .. }));
    assert_eq!(run(&app, "chain_audit").await, 600);
}

#[tokio::test]
async fn tombstones_are_forgotten_after_a_week() {
    let database = Database::fresh().await;
    let (app, client) = (admin_on(&database).await, database.client().await);
    let insert = "INSERT INTO tombstones (table_name, row_id, deleted_at)
                  SELECT 'api_keys', gen_random_uuid(), now() - age::interval FROM unnest(ARRAY['8 days', '6 days']) age";
    client.batch_execute(insert).await.unwrap();
    assert_eq!(run(&app, "purge_tombstones").await, 1);
    assert_eq!(run(&app, "purge_tombstones").await, 0);
}

fn job(work: jobs::JobWork) -> Job {
    Job { name: "experiment", every: Duration::from_secs(60), work }
}

const TRACE: &str = "INSERT INTO organisations (name) VALUES ('trace')";

async fn traces(database: &Database) -> i64 {
    database.client().await.query_one("SELECT count(*) FROM organisations", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_run_that_fails_or_panics_did_nothing_is_counted_and_can_be_tried_at_once_elsewhere() {
    let database = Database::fresh().await;
    let (one, other) = (admin_on(&database).await, admin_on(&database).await);
    let failing = job(|_, tx| {
        async move {
            tx.execute(TRACE, &[]).await?;
            anyhow::bail!("the disk is full")
        }
        .boxed()
    });
    let panicking = job(|_, tx| {
        async move {
            tx.execute(TRACE, &[]).await?;
            panic!("a bug")
        }
        .boxed()
    });
    let working = job(|_, tx| async move { Ok(JobRun { items: tx.execute(TRACE, &[]).await?, is_all: true }) }.boxed());
    for wrong in [&failing, &panicking] {
        jobs::attempt(&one, wrong).await.unwrap_err();
        assert_eq!(traces(&database).await, 0);
    }
    assert_eq!(one.metrics.job_failures.with_label_values(&["experiment"]).get(), 2);
    assert_eq!(jobs::attempt(&other, &working).await.unwrap(), JobOutcome::Ran(JobRun { items: 1, is_all: true }));
    assert_eq!(traces(&database).await, 1);
    let (here, there) =
        [&one, &other].map(|app| app.metrics.job_last_success.with_label_values(&["experiment"])).into();
    assert_eq!(here.get(), 0.0);
    assert!(there.get() > 1.7e9, "{}", there.get());
    assert!(matches!(jobs::attempt(&one, &working).await.unwrap(), JobOutcome::NotDue { .. }));
    assert_eq!(here.get(), there.get(), "an admin also knows what another one did");
}

#[tokio::test]
async fn a_run_whose_admin_dies_is_taken_over() {
    let database = Database::fresh().await;
    let (dying, other) = (admin_on(&database).await, admin_on(&database).await);
    let endless = job(|_, tx| {
        async move {
            tx.execute(TRACE, &[]).await?;
            std::future::pending().await
        }
        .boxed()
    });
    let working = job(|_, tx| async move { Ok(JobRun { items: tx.execute(TRACE, &[]).await?, is_all: true }) }.boxed());
    let run = tokio::spawn(async move { jobs::attempt(&dying, &endless).await });
    let look = async || jobs::attempt(&other, &working).await.unwrap();
    let waiting = "SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted AND database =
                   (SELECT oid FROM pg_database WHERE datname = current_database())";
    let client = database.client().await;
    until("the run holds its lock", async || client.query_opt(waiting, &[]).await.unwrap().is_some()).await;
    assert_eq!(look().await, JobOutcome::Elsewhere);
    run.abort();
    until("another admin runs it", async || matches!(look().await, JobOutcome::Ran(_))).await;
    assert_eq!(traces(&database).await, 1, "only the run that ended counts");
}
