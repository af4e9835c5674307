//! Building and verifying figures holds little in memory however many workspaces there are and whatever their metadata is, holds
//! its lock for moments, and is waited for by nobody who erases.

use super::erased::is_in_slots;
use super::reference;
use crate::jobs::{admin_on, run};
use crate::logs::store;
use crate::service::Service;
use admin::jobs::{JOBS, JobOutcome, attempt};
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::json;
use shared::db::usage_slots::{self, DayVerdict};

const KEPT: &str =
    "UPDATE usage_slots_kept SET begins_at = '2026-01-02T00:00:00Z', minutes_from = '2026-01-14T00:00:00Z'";
const NOON: &str = "2026-01-15T12:00:00Z";
/// What whoever writes slots holds.
const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtext('usage_slots'))";

/// Calls of one minute, each of a workspace of its own, with 64 values of metadata that no other call has.
const HOSTILE: &str = "INSERT INTO request_logs (id, created_at, organisation_id, workspace_id, request_url, request_method,
        response_status_code, response_time, trace_id, internal_trace_id, metadata)
    SELECT gen_random_uuid(), created_at + n * interval '1 millisecond', organisation_id, gen_random_uuid(), '/', 'POST', 200, 1,
        't', gen_random_uuid(),
        (SELECT jsonb_object_agg('name-' || name, n || '-' || name) FROM generate_series(1, 64) AS name)
    FROM request_logs, generate_series(1, 2500) AS n WHERE request_url <> '/'";

#[tokio::test]
async fn memory_is_bounded_whatever_tenants_log() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    let noon: DateTime<Utc> = NOON.parse().unwrap();
    store(&service, noon, json!({ "metadata": { "plan": "pro" } })).await;
    service.sql(HOSTILE).await;
    let mut most = 0;
    loop {
        let tx = client.transaction().await.unwrap();
        let done = usage_slots::refresh(&tx, Utc::now()).await.unwrap();
        tx.commit().await.unwrap();
        most = most.max(done.most_held.0);
        if done.slots == 0 {
            break;
        }
    }
    let stored = "SELECT count(*) FROM usage_slots WHERE size = 1";
    let rows: i64 = client.query_one(stored, &[]).await.unwrap().get(0);
    assert!(rows > 5000, "{rows} rows");
    // All of it would be some 190,000.
    assert!((1..120_000).contains(&most), "{most} were held at once");
    let tx = client.transaction().await.unwrap();
    assert_eq!(usage_slots::verify_day(&tx, noon).await.unwrap(), DayVerdict::Sound);
    tx.commit().await.unwrap();
    service.sql("DELETE FROM usage_slots WHERE dimension = 'metadata' AND size = 1").await;
    let tx = client.transaction().await.unwrap();
    assert!(matches!(usage_slots::verify_day(&tx, noon).await.unwrap(), DayVerdict::Mended { .. }));
    assert_eq!(usage_slots::verify_day(&tx, noon).await.unwrap(), DayVerdict::Sound);
}

#[tokio::test]
async fn a_day_that_is_sound_is_verified_while_somebody_writes_slots() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    let noon: DateTime<Utc> = NOON.parse().unwrap();
    store(&service, noon, json!({})).await;
    reference::refresh(&mut client).await;
    let mut writer = service.database.client().await;
    let writes = writer.transaction().await.unwrap();
    writes.query_one(LOCK, &[]).await.unwrap();
    let tx = client.transaction().await.unwrap();
    tx.batch_execute("SET LOCAL lock_timeout = '1s'").await.unwrap();
    assert_eq!(usage_slots::verify_day(&tx, noon).await.unwrap(), DayVerdict::Sound);
}

#[tokio::test]
async fn erasing_a_person_waits_for_nobody_who_builds_figures_and_is_done_in_the_end() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    let noon: DateTime<Utc> = "2026-01-06T12:00:00Z".parse().unwrap();
    store(&service, noon, json!({ "metadata": { "_user": "ada" } })).await;
    reference::refresh(&mut client).await;
    let tx = client.transaction().await.unwrap();
    tx.batch_execute("TRUNCATE request_logs_20260106").await.unwrap();
    usage_slots::seal(&tx, "2026-01-08T00:00:00Z".parse().unwrap()).await.unwrap();
    tx.commit().await.unwrap();
    assert!(is_in_slots(&client, "ada").await);
    let mut writer = service.database.client().await;
    let writes = writer.transaction().await.unwrap();
    writes.query_one(LOCK, &[]).await.unwrap();
    let erased = service.administrator().post("/logs/erase", &json!({ "user": "ada", "mode": "delete" })).await;
    assert_eq!(erased.status, 200, "{}", erased.text());
    assert!(is_in_slots(&client, "ada").await, "somebody writes slots");
    writes.rollback().await.unwrap();
    service.sql("UPDATE log_erasures SET next_at = now()").await;
    run(&admin_on(&service.database).await, "erase_late").await;
    assert!(!is_in_slots(&client, "ada").await);
}

#[tokio::test]
async fn a_job_that_got_its_admins_killed_waits_and_is_begun_again_later() {
    let service = Service::start().await;
    let app = admin_on(&service.database).await;
    let job = JOBS.iter().find(|job| job.name == "verify_figures").unwrap();
    let killed = |ago: TimeDelta| {
        format!(
            "INSERT INTO jobs (name, next_run_at, last_success_at, unfinished_runs, begun_at)
             VALUES ('verify_figures', now(), now(), 3, now() - interval '{} seconds')
             ON CONFLICT (name) DO UPDATE SET next_run_at = now(), unfinished_runs = 3, begun_at = excluded.begun_at",
            ago.num_seconds()
        )
    };
    service.sql(&killed(TimeDelta::seconds(10))).await;
    let refused = attempt(&app, job).await.unwrap_err().to_string();
    assert!(refused.contains("begun 3 times without an end"), "{refused}");
    service.sql(&killed(TimeDelta::hours(1))).await;
    assert!(matches!(attempt(&app, job).await.unwrap(), JobOutcome::Ran(_)));
    let client = service.database.client().await;
    let left = "SELECT unfinished_runs FROM jobs WHERE name = 'verify_figures'";
    assert_eq!(client.query_one(left, &[]).await.unwrap().get::<_, i32>(0), 0);
}
