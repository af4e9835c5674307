//! Questions about very many groups, and about a time whose logs are gone, have an answer that says what it is.

use super::{ALL, COUNTING, get, reference};
use crate::logs::store;
use crate::service::Service;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use shared::db::usage_slots;

const KEPT: &str =
    "UPDATE usage_slots_kept SET begins_at = '2026-01-02T00:00:00Z', minutes_from = '2026-01-17T00:00:00Z'";

/// One call for each of so many users and requests, beside the one that is there.
fn many(count: u32) -> String {
    format!(
        "INSERT INTO request_logs (id, created_at, organisation_id, workspace_id, request_url, request_method,
             response_status_code, response_time, trace_id, internal_trace_id, metadata)
         SELECT gen_random_uuid(), created_at + n * interval '1 millisecond', organisation_id, workspace_id, '/', 'POST', 200, 1,
             't', gen_random_uuid(), jsonb_build_object('_user', 'user-' || n, 'request', 'request-' || n)
         FROM request_logs, generate_series(1, {count}) AS n WHERE request_url <> '/'"
    )
}

fn first(list: &Value, name: &str) -> (Value, Value) {
    (list["data"][0][name].clone(), list["data"][0]["requests"].clone())
}

#[tokio::test]
async fn groups_beyond_ten_thousand_are_left_out_after_they_were_put_in_order() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    let noon: DateTime<Utc> = "2026-01-15T12:00:00Z".parse().unwrap();
    let twice = json!({ "metadata": { "_user": "user-10040", "request": "request-10040" } });
    store(&service, noon, twice).await;
    service.sql(&many(10_050)).await;
    let admin = service.administrator();
    for is_rolled_up in [false, true] {
        if is_rolled_up {
            reference::refresh(&mut client).await;
        }
        for (path, name, value, requests) in [
            ("/analytics/groups/user", "user", "user-10040", json!(2)),
            ("/analytics/groups/users", "user", "user-10040", json!("2")),
            ("/analytics/groups/metadata/request", "metadata_value", "request-10040", json!(2)),
        ] {
            let list = get(&admin, path, &format!("{ALL}&page_size=100")).await;
            let told = (&list["total"], &list["total_is_capped"], list["data"].as_array().unwrap().len());
            assert_eq!(told, (&json!(10_000), &json!(true), 100), "{path} {is_rolled_up}");
            assert_eq!(first(&list, name), (json!(value), requests), "{path} {is_rolled_up}");
            let last = get(&admin, path, &format!("{ALL}&page_size=100&current_page=99")).await;
            assert_eq!(last["data"].as_array().unwrap().len(), 100, "{path} {is_rolled_up}");
            let beyond = get(&admin, path, &format!("{ALL}&page_size=100&current_page=100")).await;
            assert_eq!((&beyond["total"], &beyond["data"]), (&json!(10_000), &json!([])), "{path} {is_rolled_up}");
        }
        for then_by in ["workspace", "status_code"] {
            let query = format!("{ALL}&then_by={then_by}&page_size=100");
            let pairs = get(&admin, "/analytics/groups/user", &query).await;
            assert_eq!((&pairs["total"], &pairs["total_is_capped"]), (&json!(10_000), &json!(true)), "{then_by}");
            assert_eq!(first(&pairs, "user"), (json!("user-10040"), json!(2)), "{then_by} {is_rolled_up}");
        }
        let graph = get(&admin, "/analytics/graphs/requests", &format!("{ALL}&group_by=user")).await;
        let groups = graph["groups"].as_array().unwrap();
        assert_eq!((groups.len(), &groups[10]["is_rest"]), (11, &json!(true)), "{is_rolled_up}");
        assert_eq!(groups[10]["summary"]["total"], 10_051 - 2 - 9, "{is_rolled_up}");
    }
}

#[tokio::test]
async fn of_a_time_whose_logs_are_gone_there_is_what_slots_know() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    for day in [6, 9, 20] {
        let noon: DateTime<Utc> = format!("2026-01-{day:02}T12:00:00Z").parse().unwrap();
        store(&service, noon, json!({ "metadata": { "_user": "ada", "plan": "pro" }, "config": "pc-1" })).await;
    }
    reference::refresh(&mut client).await;
    let tx = client.transaction().await.unwrap();
    tx.batch_execute("DROP TABLE request_logs_20260106").await.unwrap();
    usage_slots::seal(&tx, "2026-01-08T00:00:00Z".parse().unwrap()).await.unwrap();
    tx.commit().await.unwrap();
    let admin = service.administrator();
    let total = async |query: &str| get(&admin, "/analytics/graphs/requests", query).await["summary"]["total"].clone();
    assert_eq!(total(ALL).await, 3);
    assert_eq!(total(&format!("{ALL}&configs=pc-1")).await, 3, "slots are divided by it");
    assert_eq!(total(&format!("{ALL}&configs=pc-1&status_code=200")).await, 2, "of two filters only logs know");
    assert_eq!(total(&format!("{ALL}&metadata=%7B%22plan%22%3A%22pro%22%7D")).await, 2);
    let plans = get(&admin, "/analytics/groups/metadata/plan", ALL).await;
    assert_eq!((&plans["total"], first(&plans, "metadata_value")), (&json!(1), (json!("pro"), json!(2))));
    let users = get(&admin, "/analytics/groups/metadata/_user", ALL).await;
    assert_eq!(first(&users, "metadata_value"), (json!("ada"), json!(3)));
    // The week that was sealed in part is built again without metadata, and proved.
    client.batch_execute("INSERT INTO usage_stale VALUES (10080, '2026-01-05T00:00:00Z')").await.unwrap();
    reference::refresh(&mut client).await;
    let tx = client.transaction().await.unwrap();
    let sunday = usage_slots::verify_day(&tx, "2026-01-11T00:00:00Z".parse().unwrap()).await.unwrap();
    assert_eq!(sunday, usage_slots::DayVerdict::Sound);
    tx.commit().await.unwrap();
    // Before there was anything, and as far as anybody may ask.
    let before = "time_of_generation_min=2016-02-01T00:00:00Z&time_of_generation_max=2026-01-31T00:00:00Z";
    for path in COUNTING {
        get(&admin, path, before).await;
    }
    assert_eq!(total(before).await, 3);
}
