//! How long logs and metrics are kept: days are made ahead and dropped whole, metrics and totals deleted by age, and the
//! settings shown.

use crate::jobs::{admin_on, admin_with, run};
use crate::service::Service;
use admin::App;
use admin::jobs::{self, JOBS};
use bytes::Bytes;
use harness::Database;
use shared::log_store;
use tokio_postgres::Client;

/// Ages of the days that have a table, in days, youngest first; those to come are negative.
async fn days(client: &Client) -> Vec<i32> {
    const DAYS: &str = "SELECT (now() AT TIME ZONE 'UTC')::date - to_date(right(c.relname, 8), 'YYYYMMDD') AS age
        FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid WHERE i.inhparent = 'request_logs'::regclass
        ORDER BY age";
    client.query(DAYS, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// The tables of days of these ages, each with one log.
async fn fill(client: &Client, ages: &[i32]) {
    const DAY: &str = "SELECT request_logs_day((now() AT TIME ZONE 'UTC')::date - $1::int)";
    const LOG: &str =
        "INSERT INTO request_logs (id, created_at, organisation_id, workspace_id, request_url, request_method,
            response_status_code, response_time, trace_id, internal_trace_id)
        SELECT gen_random_uuid(), date_trunc('day', now(), 'UTC') - make_interval(days => $1), gen_random_uuid(),
            gen_random_uuid(), '/v1/chat/completions', 'POST', 200, 1, 't', gen_random_uuid()";
    for age in ages {
        client.execute(DAY, &[age]).await.unwrap();
        client.execute(LOG, &[age]).await.unwrap();
    }
}

async fn count(client: &Client, table: &str) -> i64 {
    client.query_one(&format!("SELECT count(*) FROM {table}"), &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn the_days_of_the_coming_week_have_their_tables() {
    let database = Database::fresh().await;
    let (app, client) = (admin_on(&database).await, database.client().await);
    fill(&client, &[0]).await;
    assert_eq!(run(&app, "log_days").await, 7, "today's is there already");
    assert_eq!(days(&client).await, (-7..=0).collect::<Vec<_>>());
    assert_eq!(run(&app, "log_days").await, 0);
}

#[tokio::test]
async fn days_of_logs_older_than_the_retention_are_dropped_and_no_others() {
    let database = Database::fresh().await;
    let client = database.client().await;
    fill(&client, &[0, 6, 7, 8, 9, 500]).await;
    client
        .batch_execute(
            "CREATE TABLE kept_by_hand PARTITION OF request_logs FOR VALUES FROM ('2001-01-01') TO ('2001-01-02')",
        )
        .await
        .unwrap();
    let week = admin_with(&database, &["--log-retention-days=7"]).await;
    assert_eq!(run(&week, "expire_logs").await, 3);
    let left = "SELECT array_agg((now() AT TIME ZONE 'UTC')::date - (created_at AT TIME ZONE 'UTC')::date ORDER BY created_at DESC)
                FROM request_logs";
    let left: Vec<i32> = client.query_one(left, &[]).await.unwrap().get(0);
    assert_eq!(left, [0, 6, 7], "the day in which the last seven days began is kept");
    assert_eq!(count(&client, "pg_class WHERE relname = 'kept_by_hand'").await, 1);
    assert_eq!(run(&week, "expire_logs").await, 0);
}

#[tokio::test]
async fn without_a_limit_nothing_is_dropped() {
    let database = Database::fresh().await;
    let client = database.client().await;
    fill(&client, &[399]).await;
    metrics(&client, &[5000]).await;
    let app = admin_with(&database, &["--log-retention-days=0", "--metrics-retention-days=0"]).await;
    assert_eq!((run(&app, "expire_logs").await, run(&app, "expire_metrics").await), (0, 0));
    assert_eq!((count(&client, "request_logs").await, count(&client, "usage_slots").await), (1, 1));
}

#[tokio::test]
async fn a_day_that_is_being_read_is_dropped_later_and_readers_do_not_wait_long_for_it() {
    let database = Database::fresh().await;
    let (app, client) = (admin_on(&database).await, database.client().await);
    fill(&client, &[0, 200]).await;
    let mut reader = database.client().await;
    let reading = reader.transaction().await.unwrap();
    reading.query("SELECT FROM request_logs", &[]).await.unwrap();
    let job = JOBS.iter().find(|job| job.name == "expire_logs").unwrap();
    let refused = jobs::attempt(&app, job).await.unwrap_err();
    assert!(format!("{refused:#}").contains("lock timeout"), "{refused:#}");
    assert_eq!(count(&client, "request_logs").await, 2);
    reading.commit().await.unwrap();
    assert_eq!(run(&app, "expire_logs").await, 1);
}

/// One slot of a day for each of these ages, in days.
async fn metrics(client: &Client, ages: &[i32]) {
    const METRICS: &str = "INSERT INTO usage_slots (organisation_id, workspace_id, size, slot, dimension, figures)
        SELECT gen_random_uuid(), gen_random_uuid(), 1440, date_trunc('day', now(), 'UTC') - make_interval(days => age), '', '\\x00'
        FROM unnest($1::int[]) age";
    client.batch_execute("UPDATE usage_slots_kept SET begins_at = '2000-01-01T00:00:00Z'").await.unwrap();
    client.execute(METRICS, &[&ages]).await.unwrap();
}

/// A total of one day for each of these ages, and the total of all time.
async fn counters(client: &Client, ages: &[i32]) {
    const COUNTERS: &str =
        "INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
        SELECT gen_random_uuid(), 'workspace', 'w', 'cost', 'day', now() - make_interval(days => age), 1
        FROM unnest($1::int[]) age UNION ALL
        SELECT gen_random_uuid(), 'workspace', 'w', 'cost', 'total', '-infinity', 1";
    client.execute(COUNTERS, &[&ages]).await.unwrap();
}

async fn left(app: &App, database: &Database) -> (u64, i64, i64) {
    let client = database.client().await;
    let deleted = run(app, "expire_metrics").await;
    (deleted, count(&client, "usage_slots").await, count(&client, "usage_counters").await)
}

#[tokio::test]
async fn metrics_are_kept_as_long_as_set_and_totals_as_long_as_a_monthly_limit_needs_them() {
    let database = Database::fresh().await;
    let client = database.client().await;
    metrics(&client, &[0, 29, 31, 366]).await;
    counters(&client, &[0, 31, 61, 63, 366]).await;
    assert_eq!(left(&admin_on(&database).await, &database).await, (2, 3, 5), "a year, unless said otherwise");
    let month = admin_with(&database, &["--metrics-retention-days=30"]).await;
    assert_eq!(left(&month, &database).await, (2, 2, 4));
    assert_eq!(left(&month, &database).await, (0, 2, 4));
}

#[tokio::test]
async fn what_an_earlier_version_adds_by_minute_is_taken_and_kept_nowhere() {
    const ADD: &str = "INSERT INTO usage_by_minute AS u (organisation_id, workspace_id, minute, response_status_code, requests,
            req_units, res_units, cost, response_time, response_time_max, first_seen, last_seen)
        VALUES (gen_random_uuid(), gen_random_uuid(), now(), 200, 1, 1, 1, 1, 1, 1, now(), now())
        ON CONFLICT (workspace_id, minute, api_key_id, ai_org, ai_model, virtual_key, config, prompt_slug, response_status_code,
            cache_status) DO UPDATE SET requests = u.requests + excluded.requests";
    let database = Database::fresh().await;
    let client = database.client().await;
    client.batch_execute(ADD).await.unwrap();
    assert_eq!(count(&client, "usage_by_minute").await, 0);
}

#[tokio::test]
async fn windows_of_rates_are_deleted_once_they_are_over_however_long_metrics_are_kept() {
    let database = Database::fresh().await;
    let client = database.client().await;
    const WINDOWS: &str =
        "INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
         SELECT gen_random_uuid(), scope, 'x', 'requests', period, now() - make_interval(days => age), 1
         FROM (VALUES ('policy', 'minute'), ('policy', 'day'), ('policy', 'total'), ('api_key_rate', 'day'),
                      ('api_key', 'hour'), ('api_key', 'day')) AS kind(scope, period), unnest(ARRAY[1, 3]) age";
    client.batch_execute(WINDOWS).await.unwrap();
    let forever = admin_with(&database, &["--metrics-retention-days=0"]).await;
    assert_eq!(left(&forever, &database).await, (4, 0, 8), "totals, days of things, and what is young");
}

#[tokio::test]
async fn a_week_of_a_rate_is_kept_until_it_is_over() {
    let database = Database::fresh().await;
    let client = database.client().await;
    const WEEKS: &str = "INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
        SELECT gen_random_uuid(), scope, 'x', 'requests', 'week', now() - make_interval(days => age), 1
        FROM unnest(ARRAY['policy', 'api_key_rate']) scope, unnest(ARRAY[1, 3, 7, 10]) age";
    client.batch_execute(WEEKS).await.unwrap();
    assert_eq!(left(&admin_on(&database).await, &database).await, (2, 0, 6), "only the week before the last is over");
}

#[tokio::test]
async fn the_retention_is_shown_with_the_organisation() {
    for (settings, logs, metrics) in [
        (&["--log-retention-days=30", "--metrics-retention-days=0"][..], 30, 0),
        (&["--log-retention-days=30", "--log-retention-display=7", "--metrics-retention-display=9"], 7, 9),
    ] {
        let service = Service::start_with(settings).await;
        let seen = service.administrator().get("/admin/organisation").await.json();
        let expected = (&logs.into(), &metrics.into());
        assert_eq!((&seen["log_retention_display"], &seen["metrics_retention_display"]), expected, "{settings:?}");
    }
}

#[tokio::test]
async fn what_is_shown_deletes_nothing_unless_nothing_else_is_set() {
    let database = Database::fresh().await;
    let client = database.client().await;
    fill(&client, &[0, 20, 50]).await;
    metrics(&client, &[0, 20, 50]).await;
    let shown = ["--log-retention-display=1", "--metrics-retention-display=1"];
    let both =
        admin_with(&database, &[&shown[..], &["--log-retention-days=30", "--metrics-retention-days=30"]].concat())
            .await;
    assert_eq!((run(&both, "expire_logs").await, run(&both, "expire_metrics").await), (1, 1));
    assert_eq!((count(&client, "request_logs").await, count(&client, "usage_slots").await), (2, 2));
    let alone = admin_with(&database, &shown).await;
    assert_eq!((run(&alone, "expire_logs").await, run(&alone, "expire_metrics").await), (1, 1), "as it was before");
}

#[tokio::test]
async fn the_bodies_of_a_dropped_day_are_deleted_and_those_of_others_kept() {
    let database = Database::fresh().await;
    let (app, client) = (admin_on(&database).await, database.client().await);
    fill(&client, &[1, 100, 100]).await;
    let logs = "SELECT id, organisation_id, workspace_id, created_at, created_at < now() - interval '9 days' FROM request_logs";
    let mut paths = Vec::new();
    for row in client.query(logs, &[]).await.unwrap() {
        let path = log_store::body_path(row.get(1), row.get(2), row.get(3), row.get(0));
        app.log_store.put(&path, Bytes::from_static(b"x")).await.unwrap();
        paths.push((path, row.get::<_, bool>(4)));
    }
    assert_eq!((run(&app, "expire_logs").await, run(&app, "delete_objects").await), (1, 2));
    for (path, is_old) in paths {
        assert_eq!(app.log_store.get(&path, 10).await.unwrap().is_none(), is_old, "{path}");
    }
    assert_eq!((count(&client, "request_logs").await, count(&client, "object_deletions").await), (1, 0));
}

#[tokio::test]
async fn a_pack_whose_upload_died_half_way_is_deleted_when_its_time_has_come() {
    let database = Database::fresh().await;
    let (app, client) = (admin_on(&database).await, database.client().await);
    let noon = chrono::Utc::now();
    let id = uuid::Uuid::now_v7;
    let (due, later) = (log_store::pack_path(id(), id(), noon, id()), log_store::pack_path(id(), id(), noon, id()));
    for (path, in_minutes) in [(&due, "-1"), (&later, "59")] {
        app.log_store.put(path, Bytes::from_static(b"x")).await.unwrap();
        let note = format!(
            "INSERT INTO object_deletions (folder, noted_at) VALUES ('{path}', now() + interval '{in_minutes} minutes')"
        );
        client.batch_execute(&note).await.unwrap();
    }
    assert_eq!(run(&app, "delete_objects").await, 1);
    assert_eq!(app.log_store.get(&due, 10).await.unwrap(), None);
    assert!(app.log_store.get(&later, 10).await.unwrap().is_some(), "whoever stores it may still be at it");
    assert_eq!(count(&client, "object_deletions").await, 1);
}

/// Records that could not be stored are somebody's data, too.
#[tokio::test]
async fn records_that_were_rejected_go_with_logs_of_their_age() {
    const PUT: &str = "INSERT INTO rejected_records (segment, record, reason, rejected_at)
        SELECT 's', '', $1::int::text, now() - make_interval(days => $1::int)";
    const LEFT: &str = "SELECT coalesce(string_agg(reason, ',' ORDER BY rejected_at DESC), '') FROM rejected_records";
    let database = Database::fresh().await;
    let client = database.client().await;
    for (settings, gone, left) in
        [(vec!["--log-retention-days=7"], 2, "0,6"), (vec!["--log-retention-days=0"], 1, "0,6,8")]
    {
        client.execute("DELETE FROM rejected_records", &[]).await.unwrap();
        for age in [0, 6, 8, 91] {
            client.execute(PUT, &[&age]).await.unwrap();
        }
        let app = admin_with(&database, &settings).await;
        assert_eq!(run(&app, "expire_rejected").await, gone, "{settings:?}");
        assert_eq!(client.query_one(LEFT, &[]).await.unwrap().get::<_, String>(0), left, "{settings:?}");
    }
}
