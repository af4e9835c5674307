//! The life of an export: its states, steps that are cut short, files that are split, failures and cancellations.

use super::{Place, draft, shown, start};
use crate::jobs::{admin_on, run};
use admin::jobs::{self, JOBS, JobOutcome};
use serde_json::{Value, json};
use std::collections::BTreeSet;

async fn status(place: &Place, id: &str) -> String {
    shown(&place.service.administrator(), id).await["status"].as_str().unwrap().to_owned()
}

/// One step of whatever export is next.
async fn step(app: &admin::App) -> JobOutcome {
    let job = JOBS.iter().find(|job| job.name == "export_logs").unwrap();
    app.db.get().await.unwrap().execute("DELETE FROM jobs WHERE name = 'export_logs'", &[]).await.unwrap();
    jobs::attempt(app, job).await.unwrap()
}

#[tokio::test]
async fn each_state_allows_what_the_contract_says() {
    let place = Place::start().await;
    let client = place.service.administrator();
    let id = draft(&client, json!({ "filters": {}, "requested_data": ["id"] })).await;
    let at = |rest: &str| format!("/logs/exports/{id}{rest}");
    for (state, change, begin, cancel, download) in [
        ("draft", true, true, false, false),
        ("in_progress", false, false, true, false),
        ("success", false, false, false, true),
        ("failed", true, true, false, false),
        ("stopped", true, true, false, false),
    ] {
        let set = format!("UPDATE exports SET status = '{state}' WHERE id = '{id}'");
        place.service.sql(&set).await;
        let changed = client.put(&at(""), &json!({ "description": state })).await;
        assert_eq!(changed.status == 200, change, "{state}: {}", changed.text());
        let links = client.get(&at("/download")).await;
        assert_eq!(links.status == 200, download, "{state}: {}", links.text());
        let stopped = client.post(&at("/cancel"), &json!({})).await;
        assert_eq!(stopped.status == 200, cancel, "{state}: {}", stopped.text());
        place.service.sql(&set).await;
        let begun = client.post(&at("/start"), &json!({})).await;
        assert_eq!(begun.status == 200, begin, "{state}: {}", begun.text());
        for answer in [changed, links, stopped, begun] {
            let code = answer.json()["data"]["errorCode"].as_str().map(str::to_owned);
            assert!(
                answer.status == 200 || (answer.status == 400 && code.as_deref() == Some("AB01")),
                "{}",
                answer.text()
            );
        }
    }
}

#[tokio::test]
async fn an_export_goes_on_where_another_admin_left_it_and_is_split_into_files() {
    let place = Place::start().await;
    place.fill_home(50_003).await;
    let client = place.service.administrator();
    let id = draft(&client, json!({ "filters": {}, "requested_data": ["id", "res_units"] })).await;
    let draft = shown(&client, &id).await;
    assert_eq!((&draft["total_records"], &draft["total_is_capped"]), (&json!(10_000), &json!(true)));
    start(&client, &id).await;
    for done in 1..=3 {
        step(&place.app).await;
        assert_eq!(shown(&client, &id).await["exported_records"], done * 5000);
    }
    // What is logged meanwhile is not part of it, nor moves what is.
    place.fill_home(7).await;
    let other = admin_on(&place.service.database).await;
    // A step that is cut short: its object is stored, and nobody knows of it.
    let part = format!("exports/{}/{id}/1/000003", place.service.home.organisation_id);
    other.log_store.put(&part, bytes::Bytes::from_static(b"half a step\n")).await.unwrap();
    run(&other, "export_logs").await;
    let done = shown(&client, &id).await;
    assert_eq!(
        (&done["status"], &done["total_is_capped"], &done["files"]),
        (&json!("success"), &json!(false), &json!(2))
    );
    let lines = place.lines(&client, &id).await;
    let ids: BTreeSet<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!((lines.len(), ids.len()), (50_003, 50_003), "all of them, none twice");
    assert_eq!(done["total_records"], 50_003);
    let links = client.get(&format!("/logs/exports/{id}/download")).await.json();
    let second = place.fetch(links["signed_urls"][1].as_str().unwrap()).await;
    assert_eq!(second.text().lines().count(), 3);
}

#[tokio::test]
async fn a_page_of_the_matches_is_exported_when_asked_for() {
    let place = Place::start().await;
    place.fill_home(30).await;
    let client = place.service.administrator();
    for (filters, expected) in [
        (json!({ "page_size": 10 }), (1..=10).collect::<Vec<i64>>()),
        (json!({ "page_size": 10, "current_page": 2 }), (21..=30).collect()),
        (json!({ "page_size": 20, "current_page": 1 }), (21..=30).collect()),
        (json!({ "current_page": 1 }), vec![]),
        (json!({ "completion_token_min": 29 }), vec![29, 30]),
    ] {
        let id = draft(&client, json!({ "filters": filters, "requested_data": ["res_units"] })).await;
        start(&client, &id).await;
        place.make().await;
        let lines = place.lines(&client, &id).await;
        let seen: Vec<i64> = lines.iter().map(|line| line["res_units"].as_i64().unwrap()).collect();
        assert_eq!(seen, expected, "{filters}");
    }
}

#[tokio::test]
async fn a_cancelled_export_leaves_no_files_and_can_be_started_anew() {
    let place = Place::start().await;
    place.fill_home(6000).await;
    let client = place.service.administrator();
    let id = draft(&client, json!({ "filters": {}, "requested_data": ["id"] })).await;
    start(&client, &id).await;
    step(&place.app).await;
    let part = format!("exports/{}/{id}/1/000000", place.service.home.organisation_id);
    assert!(place.app.log_store.get(&part, 1 << 20).await.unwrap().is_some());
    assert_eq!(client.post(&format!("/logs/exports/{id}/cancel"), &json!({})).await.status, 200);
    assert_eq!(step(&place.app).await, JobOutcome::Ran(jobs::JobRun { items: 0, is_all: true }), "nothing goes on");
    assert_eq!(run(&place.app, "delete_objects").await, 1);
    assert!(place.app.log_store.get(&part, 1 << 20).await.unwrap().is_none());
    start(&client, &id).await;
    place.make().await;
    assert_eq!(place.lines(&client, &id).await.len(), 6000);
    assert_eq!(run(&place.app, "delete_objects").await, 0);
}

#[tokio::test]
async fn an_export_whose_store_fails_is_tried_again_and_then_failed_without_holding_up_others() {
    let place = Place::start().await;
    place.fill_home(3).await;
    let client = place.service.administrator();
    let id = draft(&client, json!({ "filters": {}, "requested_data": ["id"] })).await;
    start(&client, &id).await;
    // Where its folder would be there is a file.
    let in_the_way = format!("exports/{}/{id}", place.service.home.organisation_id);
    place.app.log_store.put(&in_the_way, bytes::Bytes::from_static(b"x")).await.unwrap();
    step(&place.app).await;
    let seen = shown(&client, &id).await;
    assert_eq!(seen["status"], "in_progress");
    assert!(seen["error"].as_str().unwrap().contains("log store"), "{seen}");
    let fine = draft(&client, json!({ "filters": {}, "requested_data": ["id"] })).await;
    start(&client, &fine).await;
    place.make().await;
    assert_eq!(status(&place, &fine).await, "success");
    for _ in 0..4 {
        place.service.sql("UPDATE exports SET next_step_at = now() WHERE status = 'in_progress'").await;
        step(&place.app).await;
    }
    assert_eq!(status(&place, &id).await, "failed");
    place.app.log_store.delete(&in_the_way).await.unwrap();
    start(&client, &id).await;
    assert_eq!(shown(&client, &id).await["error"], Value::Null);
    place.make().await;
    assert_eq!(place.lines(&client, &id).await.len(), 3);
}

#[tokio::test]
async fn exports_older_than_the_logs_they_hold_are_deleted_with_their_files() {
    let place = Place::start().await;
    place.fill_home(3).await;
    let client = place.service.administrator();
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = draft(&client, json!({ "filters": {}, "requested_data": ["id"] })).await;
        start(&client, &id).await;
        ids.push(id);
    }
    place.make().await;
    let [old, young] = ids.as_slice() else { panic!("two exports") };
    let age = format!("UPDATE exports SET last_updated_at = now() - interval '91 days' WHERE id = '{old}'");
    place.service.sql(&age).await;
    assert_eq!((run(&place.app, "expire_exports").await, run(&place.app, "expire_exports").await), (1, 0));
    assert_eq!(client.get(&format!("/logs/exports/{old}")).await.status, 404);
    assert_eq!(run(&place.app, "delete_objects").await, 1);
    let part = |id: &str| format!("exports/{}/{id}/1/000000", place.service.home.organisation_id);
    let is_there = async |id: &str| place.app.log_store.get(&part(id), 1 << 20).await.unwrap().is_some();
    assert!(!is_there(old).await && is_there(young).await);
    let trail = place.service.trail(place.service.home.organisation_id).await;
    let last = trail.last().unwrap();
    assert_eq!(
        (&last["user_type"], &last["action"], &last["resource_id"]),
        (&json!("system"), &json!("delete"), &json!(old))
    );
}

#[tokio::test]
async fn matches_that_would_take_long_to_count_are_counted_by_the_export_itself() {
    let place = Place::start().await;
    place.fill_home(20).await;
    let (service, client) = (&place.service, place.service.administrator());
    // Every row costs as much to Postgres as a million do, in connections made from now on.
    service
        .sql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET cpu_tuple_cost = 100000', current_database()); END $$")
        .await;
    service
        .sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()")
        .await;
    let body = json!({ "filters": { "ai_model": "gpt-4o" }, "requested_data": ["id"] });
    harness::until("new connections are in use", async || {
        let list = client.get("/logs?page_size=1").await;
        list.status == 200 && list.json()["total_is_capped"] == true
    })
    .await;
    let made = client.post("/logs/exports", &body).await.json();
    assert_eq!((&made["total"], &made["total_is_capped"]), (&json!(0), &json!(true)), "{made}");
    let id = made["id"].as_str().unwrap();
    assert_eq!(client.post(&format!("/logs/exports/{id}/start"), &json!({})).await.status, 200);
    harness::until("the job has a connection", async || {
        run(&place.app, "export_logs").await;
        status(&place, id).await == "success"
    })
    .await;
    let done = client.get(&format!("/logs/exports/{id}")).await.json();
    assert_eq!((&done["total_records"], &done["total_is_capped"]), (&json!(20), &json!(false)), "{done}");
}
