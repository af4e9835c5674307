//! What keeps figures and logs in agreement: the jobs that build and prove figures, and the operator's command.

use super::get;
use crate::jobs::{admin_on, run};
use crate::logs::store;
use crate::service::Service;
use chrono::{DateTime, NaiveTime, SecondsFormat, TimeDelta, Utc};
use harness::Process;
use serde_json::json;
use std::time::Duration;

const WRONG: &str = "DELETE FROM usage_slots WHERE dimension = 'model' AND size = 1440";

#[tokio::test]
async fn jobs_build_the_figures_of_what_changed_and_prove_those_of_yesterday() {
    let service = Service::start().await;
    let (app, client) = (admin_on(&service.database).await, service.administrator());
    service
        .sql("UPDATE usage_slots_kept SET begins_at = begins_at - interval '3 days', minutes_from = minutes_from - interval '3 days'")
        .await;
    let yesterday = (Utc::now() - TimeDelta::days(1)).date_naive().and_time(NaiveTime::MIN).and_utc();
    let noon = yesterday + TimeDelta::hours(12);
    store(&service, noon, json!({ "response_time": 10 })).await;
    assert!(run(&app, "roll_up").await > 0);
    assert_eq!(run(&app, "roll_up").await, 0, "nothing else has changed");
    let written = |time: DateTime<Utc>| time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let day = format!(
        "time_of_generation_min={}&time_of_generation_max={}",
        written(yesterday),
        written(yesterday + TimeDelta::days(1) - TimeDelta::milliseconds(1))
    );
    let total = async || get(&client, "/analytics/groups/model", &day).await["data"][0]["requests"].clone();
    // A late one is counted at once, and once.
    store(&service, noon + TimeDelta::seconds(1), json!({})).await;
    assert_eq!(total().await, 2);
    assert!(run(&app, "roll_up").await > 0);
    assert_eq!(total().await, 2);

    assert_eq!(run(&app, "verify_figures").await, 0);
    service.sql(WRONG).await;
    assert!(run(&app, "verify_figures").await > 0);
    assert!(app.metrics.figures_mended.get() > 0);
    assert_eq!((run(&app, "verify_figures").await, total().await), (0, json!(2)));
}

#[tokio::test]
async fn the_command_builds_older_days_and_says_which_did_not_agree() {
    let service = Service::start().await;
    for day in [6, 7, 8] {
        let noon: DateTime<Utc> = format!("2026-01-{day:02}T12:00:00Z").parse().unwrap();
        store(&service, noon, json!({})).await;
    }
    service
        .sql("UPDATE usage_slots_kept SET begins_at = '2026-01-08T00:00:00Z', minutes_from = '2026-01-17T00:00:00Z'")
        .await;
    let app = admin_on(&service.database).await;
    run(&app, "roll_up").await;
    let folder = tempfile::tempdir().unwrap();
    let environment = [("DATABASE_URL".to_owned(), service.database.url())];
    let verify = async |from: &str| {
        let arguments = ["analytics", "verify", "--from", from, "--until", "2026-01-08"];
        let mut process = Process::start("gateway-admin", &arguments, &environment, folder.path());
        let status = process.ended_within(Duration::from_secs(30)).await;
        (status.code(), process.log())
    };
    let (code, told) = verify("2026-01-06").await;
    assert_eq!(code, Some(0), "{told}");
    for line in [
        "2026-01-08: agrees with its logs",
        "2026-01-07: being built from its logs",
        "2026-01-06: being built from its logs",
    ] {
        assert!(told.contains(line), "{told}");
    }
    assert!(run(&app, "roll_up").await > 0, "the job does it, a few slots at a time");
    service.sql(WRONG).await;
    let (code, told) = verify("2026-01-06").await;
    assert_eq!(code, Some(3), "{told}");
    assert!(told.contains("2026-01-06: 1 figures differed from the logs and were built again"), "{told}");
    let (code, told) = verify("2026-01-06").await;
    assert_eq!((code, told.matches("agrees with its logs").count()), (Some(0), 3), "{told}");
}
