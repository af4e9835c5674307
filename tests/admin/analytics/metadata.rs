//! Groups by a name of metadata are read from slots where those have them, and are the same from logs.

use super::{ALL, get, reference};
use crate::logs::store;
use crate::service::Service;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use shared::db::usage_slots;

const KEPT: &str =
    "UPDATE usage_slots_kept SET begins_at = '2026-01-02T00:00:00Z', minutes_from = '2026-01-17T00:00:00Z'";

async fn groups(service: &Service, name: &str) -> Value {
    get(&service.administrator(), &format!("/analytics/groups/metadata/{name}"), ALL).await["data"].clone()
}

#[tokio::test]
async fn slots_have_the_groups_that_logs_have() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    let first: DateTime<Utc> = "2026-01-06T12:00:00Z".parse().unwrap();
    let metadata = [
        json!({ "_user": "ada", "plan": "pro", "seats": 1.50, "trial": false }),
        json!({ "plan": "", "seats": "1.50", "of": { "a": [1, "x"] }, "none": null }),
        json!({ "_user": "", "plan": "free" }),
        json!({}),
        json!({ "Ω": "ö\n\"", "long": "x".repeat(700) }),
    ];
    for (n, metadata) in metadata.into_iter().enumerate() {
        let call = json!({ "metadata": metadata, "trace_id": format!("t{n}") });
        store(&service, first + TimeDelta::hours(30 * n as i64), call).await;
    }
    // Identifiers, which slots do not keep.
    service
        .sql(
            "INSERT INTO request_logs (id, created_at, organisation_id, workspace_id, request_url, request_method,
                 response_status_code, response_time, trace_id, internal_trace_id, metadata)
             SELECT gen_random_uuid(), created_at + n * interval '1 second', organisation_id, workspace_id, '/', 'POST', 200, 1,
                 't', gen_random_uuid(), jsonb_build_object('request', 'request-' || n)
             FROM request_logs, generate_series(1, 50) AS n WHERE trace_id = 't1'",
        )
        .await;
    service
        .sql(
            "INSERT INTO feedback (id, organisation_id, workspace_id, trace_id, value)
             SELECT gen_random_uuid(), organisation_id, workspace_id, trace_id, v
             FROM request_logs, unnest(ARRAY[4, 7]) AS v WHERE trace_id = 't2'",
        )
        .await;
    let names = ["plan", "seats", "trial", "of", "none", "_user", "%CE%A9", "long", "colour", "request"];
    let mut from_logs = Vec::new();
    for name in names {
        from_logs.push(groups(&service, name).await);
    }
    assert_eq!(from_logs[0][1]["metadata_value"], "free", "{}", from_logs[0]);
    assert_eq!(from_logs[0][1]["avg_weighted_feedback"], 5.5, "{}", from_logs[0]);
    reference::refresh(&mut client).await;
    for (name, expected) in names.iter().zip(&from_logs) {
        assert_eq!(groups(&service, name).await, *expected, "{name}");
    }
    let divided = "CREATE TABLE divided AS SELECT * FROM usage_slots WHERE dimension = 'metadata'";
    service.sql(&format!("{divided}; DELETE FROM usage_slots WHERE dimension = 'metadata'")).await;
    assert_eq!(groups(&service, "plan").await, from_logs[0], "slots that another version built");
    service.sql("INSERT INTO usage_slots SELECT * FROM divided").await;
    // Without the logs, slots alone could know.
    let in_workspace = async || {
        let query = format!("{ALL}&then_by=workspace");
        let answer = get(&service.administrator(), "/analytics/groups/metadata/plan", &query).await;
        let pair = |one: &Value| (one["metadata_value"].clone(), one["requests"].clone(), one["workspace"].clone());
        answer["data"].as_array().unwrap().iter().map(pair).collect::<Vec<_>>()
    };
    let divided_by_workspace = in_workspace().await;
    service.sql("TRUNCATE request_logs").await;
    for (name, expected) in names.iter().zip(&from_logs) {
        let found = groups(&service, name).await;
        let requests = |groups: &Value| -> Vec<(Value, Value)> {
            let pair = |one: &Value| (one["metadata_value"].clone(), one["requests"].clone());
            groups.as_array().unwrap().iter().map(pair).collect()
        };
        let is_from_slots = !["long", "request"].contains(name);
        let expected = if is_from_slots { requests(expected) } else { Vec::new() };
        assert_eq!(requests(&found), expected, "{name}");
    }
    assert_eq!(divided_by_workspace[0].2, json!(service.home.workspace_id));
    assert_eq!(in_workspace().await, divided_by_workspace);
}

#[tokio::test]
async fn what_comes_late_and_what_is_erased_is_in_groups_at_once() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    let noon: DateTime<Utc> = "2026-01-20T12:00:00Z".parse().unwrap();
    let call = |user: &str| json!({ "metadata": { "_user": user, "plan": "pro" } });
    store(&service, noon, call("ada")).await;
    reference::refresh(&mut client).await;
    assert_eq!(groups(&service, "plan").await[0]["requests"], 1);
    store(&service, noon + TimeDelta::seconds(1), call("bob")).await;
    assert_eq!(groups(&service, "plan").await[0]["requests"], 2);
    reference::refresh(&mut client).await;
    assert_eq!(groups(&service, "plan").await[0]["requests"], 2);
    for mode in ["anonymise", "delete"] {
        let user = if mode == "delete" { "ada" } else { "bob" };
        let erased = service.administrator().post("/logs/erase", &json!({ "user": user, "mode": mode })).await;
        assert_eq!(erased.status, 200, "{}", erased.text());
        for _ in 0..2 {
            let plans = groups(&service, "plan").await;
            let told: Vec<(&Value, &Value)> =
                plans.as_array().unwrap().iter().map(|one| (&one["metadata_value"], &one["requests"])).collect();
            match mode {
                "delete" => assert_eq!(told, [(&json!(""), &json!(1))]),
                _ => assert_eq!(told, [(&json!(""), &json!(1)), (&json!("pro"), &json!(1))]),
            }
            reference::refresh(&mut client).await;
        }
    }
    let tx = client.transaction().await.unwrap();
    assert_eq!(usage_slots::verify_day(&tx, noon).await.unwrap(), usage_slots::DayVerdict::Sound);
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn much_feedback_is_counted_as_little_is() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    let noon: DateTime<Utc> = "2026-01-20T12:00:00Z".parse().unwrap();
    store(&service, noon, json!({ "metadata": { "plan": "pro" }, "trace_id": "t" })).await;
    store(&service, noon, json!({ "metadata": { "plan": "free" }, "trace_id": "other", "ai_model": "llama" })).await;
    reference::refresh(&mut client).await;
    let mut given = 0;
    for more in [2, 5000] {
        service
            .sql(&format!(
                "INSERT INTO feedback (id, organisation_id, workspace_id, trace_id, value, created_at)
                 SELECT gen_random_uuid(), organisation_id, workspace_id, trace_id, 1 + n % 2 * 2, created_at
                 FROM request_logs, generate_series(1, {more}) AS n WHERE trace_id = 't'"
            ))
            .await;
        given += more;
        let plans = groups(&service, "plan").await;
        let told = |n: usize| {
            ["metadata_value", "requests_with_feedback", "avg_weighted_feedback"].map(|name| &plans[n][name])
        };
        assert_eq!(told(0), [&json!("free"), &json!(0), &json!(0)], "{plans}");
        assert_eq!(told(1), [&json!("pro"), &json!(1), &json!(2)], "{plans}");
        let models = get(&service.administrator(), "/analytics/graphs/feedbacks/ai-models", ALL).await;
        let expected = json!([{ "ai_model": "gpt-4o", "total": given, "avg_weighted_feedback": 2 }]);
        assert_eq!(models["data_points"], expected, "{given}");
    }
}

#[tokio::test]
async fn a_day_is_searched_for_the_traces_that_it_may_have() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    client.batch_execute(KEPT).await.unwrap();
    let noon: DateTime<Utc> = "2026-01-06T12:00:00Z".parse().unwrap();
    let call = || json!({ "metadata": { "plan": "pro" }, "trace_id": "t" });
    for day in [0, 1, 14] {
        store(&service, noon + TimeDelta::days(day), call()).await;
    }
    service
        .sql(
            "INSERT INTO feedback (id, organisation_id, workspace_id, trace_id, value, created_at)
             SELECT gen_random_uuid(), organisation_id, workspace_id, 't', 5, created_at FROM request_logs LIMIT 1",
        )
        .await;
    let found = async || {
        let models = get(&service.administrator(), "/analytics/graphs/feedbacks/ai-models", ALL).await;
        let total = models["data_points"][0]["total"].as_u64().unwrap_or(0);
        (groups(&service, "plan").await[0]["requests_with_feedback"].clone(), total)
    };
    assert_eq!(found().await, (json!(3), 1));
    reference::refresh(&mut client).await;
    assert_eq!(found().await, (json!(3), 1));
    let filters = "UPDATE usage_slots SET figures = '\\x0100' WHERE dimension = 'trace'";
    service.sql(&format!("{filters} AND slot < '2026-01-08T00:00:00Z'")).await;
    assert_eq!(found().await, (json!(1), 1), "filters say where not to look");
    service.sql(filters).await;
    assert_eq!(found().await, (json!(0), 0));
    // What is late counts at once, and its day has another filter then.
    store(&service, noon + TimeDelta::hours(1), call()).await;
    for _ in 0..2 {
        assert_eq!(found().await, (json!(2), 1));
        reference::refresh(&mut client).await;
    }
    service.sql("DELETE FROM usage_slots WHERE dimension = 'trace'").await;
    assert_eq!(found().await, (json!(4), 1), "slots that another version built");
}
