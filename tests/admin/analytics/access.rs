//! Whose calls are counted: tenants never each other's, workspaces their own, people what their role and the settings let them.

use super::{ALL, COUNTING, get, reference};
use crate::logs::store;
use crate::service::Service;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use shared::bootstrap::FirstKeys;

fn noon() -> DateTime<Utc> {
    "2026-01-15T12:00:00Z".parse().unwrap()
}

/// A word of another tenant in any value of a call.
const MARK: &str = "f0re1gn";

async fn foreign_call(service: &Service) -> FirstKeys {
    let other = service.organisation().await;
    let columns = json!({
        "organisation_id": other.organisation_id, "workspace_id": other.workspace_id, "ai_model": MARK,
        "virtual_key": MARK, "config": MARK, "metadata": { "_user": MARK, "plan": MARK }, "trace_id": MARK,
        "response_status_code": 418, "cost": 77, "req_units": 777,
    });
    store(service, noon(), columns).await;
    service
        .sql(&format!(
            "INSERT INTO feedback (id, organisation_id, workspace_id, trace_id, value, created_at)
             VALUES (gen_random_uuid(), '{}', '{}', '{MARK}', 7, '2026-01-15T12:00:00Z')",
            other.organisation_id, other.workspace_id
        ))
        .await;
    other
}

/// Everything that an answer counts, added up.
fn counted(answer: &Value) -> f64 {
    match answer {
        Value::Number(number) => number.as_f64().unwrap(),
        Value::Array(items) => items.iter().map(counted).sum(),
        Value::Object(fields) => fields.values().map(counted).sum(),
        _ => 0.0,
    }
}

#[tokio::test]
async fn no_operation_counts_another_tenants_calls() {
    let service = Service::start().await;
    let mut client = service.database.client().await;
    let other = foreign_call(&service).await;
    walk(&service, &other).await;
    // And the same of slots.
    let kept = "UPDATE usage_slots_kept SET begins_at = '2026-01-01T00:00:00Z', minutes_from = '2026-01-01T00:00:00Z'";
    client.batch_execute(kept).await.unwrap();
    reference::refresh(&mut client).await;
    walk(&service, &other).await;
}

/// Asks every operation, as us for them and as them for themselves.
async fn walk(service: &Service, other: &FirstKeys) {
    let stranger = service.client().with_key(&other.admin_key.key);
    let own = service.workspace_client(service.home.workspace_id).await;
    let divided = [
        "graphs/cost?group_by=model&",
        "graphs/requests?compare=previous&",
        "groups/user?include_total=true&",
        "groups/model?then_by=workspace&",
        "groups/workspace?then_by=model&",
        "groups/status_code?then_by=user&",
        "groups/metadata/plan?then_by=workspace&",
        "groups/metadata/plan?then_by=model&",
    ];
    let divided = divided.iter().map(|more| format!("/analytics/{more}"));
    for path in COUNTING.iter().map(|path| format!("{path}?")).chain(divided) {
        for (client, query) in [
            (&service.administrator(), format!("{ALL}&workspace_slug=*")),
            (&service.administrator(), ALL.to_owned()),
            (&own, format!("{ALL}&workspace_slug=*")),
            (&own, format!("{ALL}&workspace_slug={}", other.workspace_id)),
        ] {
            let answer = client.get(&format!("{path}{query}")).await;
            assert_eq!(answer.status, 200, "{path}{query}: {}", answer.text());
            let answer = answer.json();
            assert!(
                !answer.to_string().contains(MARK) && !answer.to_string().contains("418"),
                "{path}{query}: {answer}"
            );
            assert_eq!(counted(&answer), 0.0, "{path}{query}: {answer}");
        }
        let refused = service.administrator().get(&format!("{path}{ALL}&workspace_slug={}", other.workspace_id)).await;
        assert_eq!(refused.status, 404, "{path}: {}", refused.text());
        let theirs = stranger.get(&format!("{path}{ALL}")).await.json();
        let is_of_hits = path.contains("cache") || path.contains("rescued");
        let is_seen = counted(&theirs) > 0.0 || theirs["data"].as_array().is_some_and(|rows| !rows.is_empty());
        assert!(is_of_hits || is_seen, "{path}: {theirs}");
    }
}

#[tokio::test]
async fn a_workspaces_key_counts_its_own_and_an_admin_key_what_it_names() {
    let service = Service::start().await;
    let elsewhere = service.workspace("elsewhere").await;
    store(&service, noon(), json!({})).await;
    for _ in 0..2 {
        store(&service, noon(), json!({ "workspace_id": elsewhere })).await;
    }
    let total = async |client: &harness::Client, query: &str| {
        get(client, "/analytics/graphs/requests", &format!("{ALL}{query}")).await["summary"]["total"].clone()
    };
    let (admin, neighbour) = (service.administrator(), service.workspace_client(elsewhere).await);
    for all in ["", "&workspace_slug=*", "&workspace_id=*"] {
        assert_eq!(total(&admin, all).await, 3, "{all}");
    }
    for one in
        ["&workspace_slug=elsewhere".to_owned(), "&workspace_id=elsewhere".into(), format!("&workspace_id={elsewhere}")]
    {
        assert_eq!(total(&admin, &one).await, 2, "{one}");
    }
    let graph = get(&admin, "/analytics/graphs/cost", &format!("{ALL}&workspace_slug=elsewhere")).await;
    assert_eq!(
        (&graph["workspaces"][0]["slug"], &graph["cost_unit"]),
        (&json!("elsewhere"), &json!("cent")),
        "{graph}"
    );
    assert_eq!(total(&neighbour, "&workspace_slug=*").await, 2);
    let own = get(&neighbour, "/analytics/groups/model", &format!("{ALL}&then_by=workspace")).await;
    assert_eq!((&own["total"], &own["data"][0]["workspace"]), (&json!(1), &json!(elsewhere)), "{own}");
    service.sql("UPDATE workspaces SET status = 'archived' WHERE slug = 'elsewhere'").await;
    assert_eq!(total(&admin, "&workspace_slug=elsewhere").await, 2, "figures outlive their workspace");
    let pairs = get(&admin, "/analytics/groups/workspace", &format!("{ALL}&then_by=status_code")).await;
    let first = &pairs["data"][0];
    assert_eq!(
        (&first["workspace"], &first["workspace_name"], &first["status_code"], &first["requests"]),
        (&json!(elsewhere), &json!("elsewhere"), &json!(200), &json!(2)),
        "{pairs}"
    );
    let groups = get(&admin, "/analytics/groups/workspaces", &format!("{ALL}&workspace_slug=*")).await;
    assert_eq!((&groups["data"][0]["workspace"], &groups["data"][0]["requests"]), (&json!("elsewhere"), &json!(2)));
}

#[tokio::test]
async fn people_count_what_they_may_see() {
    let service = Service::start().await;
    let member = service.person("member", Some("member")).await;
    let client = service.person_client(service.home.workspace_id, member).await;
    store(&service, noon(), json!({ "user_id": member })).await;
    store(&service, noon(), json!({})).await;
    let total = async || get(&client, "/analytics/graphs/requests", ALL).await["summary"]["total"].clone();
    assert_eq!(total().await, 2);
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewAllData": false}'"#).await;
    assert_eq!(total().await, 1);
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewLogs": false}'"#).await;
    assert_eq!(total().await, 2, "figures are no logs");
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewLogMetadata": false}'"#).await;
    for path in ["/analytics/groups/users", "/analytics/groups/metadata/plan", "/analytics/groups/user"] {
        assert_eq!(client.get(&format!("{path}?{ALL}")).await.status, 403, "{path}");
    }
    let pairs = client.get(&format!("/analytics/groups/model?{ALL}&then_by=user")).await;
    assert_eq!(pairs.status, 403, "names of users are metadata");
    let divided = client.get(&format!("/analytics/graphs/cost?{ALL}&group_by=user")).await;
    assert_eq!(divided.status, 403, "names of users are metadata");
    let searched = client.get(&format!("/analytics/graphs/cost?{ALL}&metadata=%7B%22a%22%3A1%7D")).await;
    assert_eq!(searched.status, 403);
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewAnalytics": false}'"#).await;
    for path in COUNTING {
        assert_eq!(client.get(&format!("{path}?{ALL}")).await.status, 403, "{path}");
    }
}
