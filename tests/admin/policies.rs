//! Policies over HTTP: what they take and show, how they are archived and brought back, and what is read from counters.

mod entities;

use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};
use uuid::Uuid;

const RATES: &str = "/policies/rate-limits";
const USAGE: &str = "/policies/usage-limits";

pub fn rate(service: &Service) -> Value {
    json!({
        "conditions": [{ "key": "workspace_id", "value": service.home.workspace_id.to_string() }],
        "group_by": [{ "key": "api_key" }],
        "type": "requests", "unit": "rpm", "value": 100, "workspace_id": service.home.workspace_id,
    })
}

pub fn usage(service: &Service) -> Value {
    json!({
        "conditions": [{ "key": "metadata._user", "value": "*" }],
        "group_by": [{ "key": "metadata._user" }],
        "type": "cost", "credit_limit": 10, "alert_threshold": 8, "workspace_id": service.home.workspace_id,
    })
}

fn with(mut body: Value, more: Value) -> Value {
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

pub async fn made(client: &Client, path: &str, body: &Value) -> String {
    let answer = client.post(path, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    format!("{path}/{}", answer.json()["id"].as_str().unwrap())
}

fn field(answer: &Answer) -> (u16, String) {
    let field = answer.json()["data"]["errors"][0]["field"].as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), field)
}

/// As the proxies would: what a group of a policy has used in the period that begins at `starts_at` (SQL).
pub async fn count(service: &Service, scope_id: &str, unit: &str, period: &str, starts_at: &str, value: &str) {
    let organisation = service.home.organisation_id;
    service
        .sql(&format!(
            "INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
             VALUES ('{organisation}', 'policy', '{scope_id}', '{unit}', '{period}', {starts_at}, {value})
             ON CONFLICT (organisation_id, scope, scope_id, unit, period, starts_at) DO UPDATE SET value = excluded.value"
        ))
        .await;
}

/// A group of a usage-limits policy has used so many cents.
pub async fn spend(service: &Service, policy: &str, value_key: &str, cents: &str) {
    let id = policy.rsplit('/').next().unwrap();
    let since = format!("(SELECT last_reset_at FROM usage_limits_policies WHERE id = '{id}')");
    count(service, &format!("{id}/{value_key}"), "cost", "total", &since, cents).await;
}

#[tokio::test]
async fn a_rate_limits_policy_is_shown_as_the_specification_says() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = client.post(RATES, &rate(&service)).await.json();
    let id = made["id"].as_str().unwrap().to_owned();
    assert_eq!(made, json!({ "id": id, "object": "policy_rate_limits" }));
    let shown = client.get(&format!("{RATES}/{id}")).await.json();
    let expected = json!({
        "id": id,
        "object": "policy_rate_limits",
        "name": null,
        "description": null,
        "conditions": [{ "key": "workspace_id", "value": service.home.workspace_id }],
        "group_by": [{ "key": "api_key" }],
        "type": "requests",
        "unit": "rpm",
        "value": 100,
        "dry_run": false,
        "include_none": false,
        "trusted_metadata": false,
        "target": null,
        "status": "active",
        "workspace_id": service.home.workspace_id,
        "organisation_id": service.home.organisation_id,
        "created_at": shown["created_at"],
        "last_updated_at": shown["last_updated_at"],
        "last_matched_at": null,
        "unmatched": false,
    });
    assert_eq!(shown, expected);
    let change = json!({ "value": 7.5, "unit": "rpd", "name": "n", "dry_run": true });
    let changed = client.put(&format!("{RATES}/{id}"), &change).await.json();
    assert_eq!((&changed["value"], &changed["unit"], &changed["name"]), (&json!(7.5), &json!("rpd"), &json!("n")));
    assert_eq!((&changed["object"], &changed["dry_run"]), (&json!("policy_rate_limits"), &json!(true)));
}

#[tokio::test]
async fn what_is_wrong_with_a_policy_is_named() {
    let service = Service::start().await;
    let client = service.administrator();
    let other = Uuid::new_v4();
    for (change, wrong) in [
        (json!({ "conditions": vec![json!({ "key": "api_key", "value": "x" }); 21] }), "conditions"),
        (json!({ "conditions": [{ "key": "colour", "value": "x" }] }), "conditions[0].key"),
        (json!({ "conditions": [{ "key": "api_key", "value": 7 }] }), "conditions[0].value"),
        (json!({ "conditions": [{ "key": "api_key", "value": "x", "operator": "or" }] }), "conditions[0].operator"),
        (json!({ "group_by": [{ "key": "api_key" }, { "key": "api_key" }] }), "group_by[1].key"),
        (json!({ "name": "" }), "name"),
        (json!({ "name": "x".repeat(256) }), "name"),
        (json!({ "organisation_id": other }), "organisation_id"),
        (json!({ "target": "agents" }), "target"),
        (json!({ "target": "llm", "conditions": [{ "key": "mcp_tool", "value": "x" }] }), "conditions[0].key"),
        (json!({ "target": "mcp_tools", "group_by": [{ "key": "virtual_key" }] }), "group_by[0].key"),
    ] {
        for (path, body) in [(RATES, rate(&service)), (USAGE, usage(&service))] {
            let answer = client.post(path, &with(body, change.clone())).await;
            assert_eq!(field(&answer), (400, wrong.into()), "{path} {change}: {}", answer.text());
        }
    }
    for (change, wrong) in [
        (json!({ "value": 0 }), "value"),
        (json!({ "value": "10" }), "value"),
        (json!({ "unit": "rpw" }), "unit"),
        (json!({ "target": "mcp_tools", "type": "tokens" }), "type"),
        (json!({ "type": "cost" }), "type"),
    ] {
        let answer = client.post(RATES, &with(rate(&service), change.clone())).await;
        assert_eq!(field(&answer), (400, wrong.into()), "{change}: {}", answer.text());
    }
    for (change, wrong) in [
        (json!({ "credit_limit": 0.5 }), "credit_limit"),
        (json!({ "type": "tokens", "credit_limit": 99 }), "credit_limit"),
        (json!({ "alert_threshold": 10 }), "alert_threshold"),
        (json!({ "periodic_reset": "daily" }), "periodic_reset"),
        (json!({ "periodic_reset": "weekly", "periodic_reset_days": 3 }), "periodic_reset_days"),
        (json!({ "periodic_reset_days": 366 }), "periodic_reset_days"),
        (json!({ "next_usage_reset_at": "2099-01-01" }), "next_usage_reset_at"),
        (json!({ "periodic_reset_days": 3, "next_usage_reset_at": "2020-01-01" }), "next_usage_reset_at"),
        (json!({ "conditions": [{ "key": "endpoint_type", "value": "chat" }] }), "conditions[0].key"),
    ] {
        let answer = client.post(USAGE, &with(usage(&service), change.clone())).await;
        assert_eq!(field(&answer), (400, wrong.into()), "{change}: {}", answer.text());
    }
    let policy = made(&client, RATES, &rate(&service)).await;
    assert_eq!(field(&client.put(&policy, &json!({ "type": "tokens" })).await), (400, "type".into()));
    assert_eq!(
        client.put(&policy, &json!({ "type": "requests", "value": 3 })).await.status,
        200,
        "the same is no change"
    );
    for path in [format!("{RATES}/policy-1"), format!("{USAGE}/policy-1"), format!("{RATES}/policy-1/entities")] {
        assert_eq!(field(&client.get(&path).await), (400, "id".into()), "{path}");
    }
    for path in [format!("{RATES}/{other}"), format!("{USAGE}/{other}/entities"), format!("{policy}?status=archived")] {
        assert_eq!(client.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(field(&client.get(&format!("{policy}?status=gone")).await), (400, "status".into()));
}

#[tokio::test]
async fn an_archived_policy_is_read_by_its_status_and_brought_back_by_a_change() {
    let service = Service::start().await;
    let client = service.administrator();
    for (path, body) in [(RATES, rate(&service)), (USAGE, usage(&service))] {
        let policy = made(&client, path, &body).await;
        assert_eq!(client.delete(&policy).await.json(), json!({}));
        assert_eq!(client.delete(&policy).await.status, 404);
        assert_eq!(client.get(&policy).await.status, 404);
        assert_eq!(client.get(&format!("{policy}?status=archived")).await.json()["status"], "archived");
        for (query, total) in [("", 0), ("?status=active", 0), ("?status=archived", 1), ("?status=active,archived", 1)]
        {
            assert_eq!(client.get(&format!("{path}{query}")).await.json()["total"], total, "{path}{query}");
        }
        let back = client.put(&policy, &json!({ "status": "active" })).await;
        assert_eq!(back.json()["status"], "active", "{}", back.text());
        assert_eq!(client.get(&policy).await.status, 200);
    }
}

#[tokio::test]
async fn lists_are_narrowed_by_kind_unit_and_workspace() {
    let service = Service::start().await;
    let (client, elsewhere) = (service.administrator(), service.workspace("elsewhere").await);
    for (kind, unit, workspace) in
        [("requests", "rpm", json!(service.home.workspace_id)), ("tokens", "rph", json!("elsewhere"))]
    {
        made(&client, RATES, &with(rate(&service), json!({ "type": kind, "unit": unit, "workspace_id": workspace })))
            .await;
    }
    made(&client, USAGE, &usage(&service)).await;
    for (query, total) in [
        ("/rate-limits".to_owned(), 2),
        ("/rate-limits?type=tokens".to_owned(), 1),
        ("/rate-limits?unit=rpm,rph".to_owned(), 2),
        ("/rate-limits?unit=rpd".to_owned(), 0),
        (format!("/rate-limits?workspace_id={elsewhere}"), 1),
        ("/rate-limits?workspace_id=elsewhere&type=requests".to_owned(), 0),
        ("/usage-limits?type=cost".to_owned(), 1),
        ("/usage-limits?type=tokens".to_owned(), 0),
    ] {
        assert_eq!(client.get(&format!("/policies{query}")).await.json()["total"], total, "{query}");
    }
    let neighbour = service.workspace_client(elsewhere).await;
    assert_eq!(neighbour.get(RATES).await.json()["total"], 1, "a workspace's key sees its own");
}

#[tokio::test]
async fn counters_restart_with_another_unit_or_rule_and_not_with_another_value() {
    let service = Service::start().await;
    let client = service.administrator();
    let policy = made(&client, RATES, &rate(&service)).await;
    let since = async || -> String {
        let sql = "SELECT counters_since::text FROM rate_limits_policies";
        service.database.client().await.query_one(sql, &[]).await.unwrap().get(0)
    };
    for (change, restarts) in [
        (json!({ "value": 5 }), false),
        (json!({ "unit": "rpm", "group_by": [{ "key": "api_key" }] }), false),
        (json!({ "unit": "rph" }), true),
        (json!({ "conditions": [{ "key": "api_key", "value": "*" }] }), true),
        (json!({ "group_by": [{ "key": "metadata.team" }] }), true),
        (json!({ "name": "x", "dry_run": true }), false),
    ] {
        let before = since().await;
        assert_eq!(client.put(&policy, &change).await.status, 200, "{change}");
        assert_eq!(since().await != before, restarts, "{change}");
    }
}

#[tokio::test]
async fn a_schedule_is_kept_replaced_and_removed() {
    let service = Service::start().await;
    let client = service.administrator();
    let policy = made(&client, USAGE, &with(usage(&service), json!({ "periodic_reset": "weekly" }))).await;
    let first = client.get(&policy).await.json();
    let monday: chrono::DateTime<chrono::Utc> = first["next_usage_reset_at"].as_str().unwrap().parse().unwrap();
    assert_eq!(monday.format("%a %H:%M:%S").to_string(), "Mon 00:00:00");
    for (change, period, days, has_next) in [
        (json!({ "name": "x" }), json!("weekly"), Value::Null, true),
        (json!({ "periodic_reset_days": 3 }), Value::Null, json!(3), true),
        (json!({ "periodic_reset": "monthly" }), json!("monthly"), Value::Null, true),
        (json!({ "periodic_reset": null }), Value::Null, Value::Null, false),
        (json!({ "periodic_reset_days": 7, "next_usage_reset_at": "2099-01-01" }), Value::Null, json!(7), true),
        (json!({ "next_usage_reset_at": "2099-01-01T17:30:00+02:00" }), Value::Null, json!(7), true),
        (json!({ "periodic_reset_days": null }), Value::Null, Value::Null, false),
    ] {
        let shown = client.put(&policy, &change).await.json();
        assert_eq!((&shown["periodic_reset"], &shown["periodic_reset_days"]), (&period, &days), "{change}");
        assert_eq!(shown["next_usage_reset_at"].is_string(), has_next, "{change}");
        match change["next_usage_reset_at"].as_str() {
            Some("2099-01-01") => assert_eq!(shown["next_usage_reset_at"], "2099-01-01T00:00:00.000Z"),
            Some(_) => assert_eq!(shown["next_usage_reset_at"], "2099-01-01T15:30:00.000Z", "at the very time"),
            None => {}
        }
    }
}

#[tokio::test]
async fn a_policy_that_nothing_matches_for_a_day_says_so() {
    let service = Service::start().await;
    let client = service.administrator();
    for (path, body, period) in [(RATES, rate(&service), "minute"), (USAGE, usage(&service), "total")] {
        let policy = made(&client, path, &body).await;
        let id = policy.rsplit('/').next().unwrap();
        let table = if path == RATES { "rate_limits_policies" } else { "usage_limits_policies" };
        service.sql(&format!("UPDATE {table} SET created_at = now() - interval '25 hours'")).await;
        let shown = client.get(&policy).await.json();
        assert_eq!((&shown["unmatched"], &shown["last_matched_at"]), (&json!(true), &Value::Null), "{path}");
        count(&service, &format!("{id}/x"), "requests", period, "date_trunc('minute', now(), 'UTC')", "1").await;
        let shown = client.get(&policy).await.json();
        assert!(shown["unmatched"] == false && shown["last_matched_at"].is_string(), "{shown}");
        service.sql("UPDATE usage_counters SET last_updated_at = now() - interval '25 hours'").await;
        assert_eq!(client.get(&policy).await.json()["unmatched"], true, "{path}");
    }
}

#[tokio::test]
async fn budgets_cannot_be_made_where_usage_limits_are_off() {
    let service = Service::start_with(&["--usage-limits-enabled=OFF"]).await;
    let client = service.administrator();
    let refused = client.post(USAGE, &usage(&service)).await;
    assert_eq!((refused.status.as_u16(), refused.json()["data"]["errorCode"].as_str()), (402, Some("AB09")));
    assert_eq!(client.post(RATES, &rate(&service)).await.status, 200);
}

#[tokio::test]
async fn a_workspace_is_deleted_once_its_policies_are() {
    let service = Service::start().await;
    let (client, elsewhere) = (service.administrator(), service.workspace("elsewhere").await);
    let policy = made(&client, RATES, &with(rate(&service), json!({ "workspace_id": elsewhere }))).await;
    let delete = || client.request(http::Method::DELETE, "/workspaces/elsewhere").json(&json!({ "name": "elsewhere" }));
    assert_eq!(harness::client::whole(delete()).await.status, 409);
    assert_eq!(client.get(&policy).await.status, 200);
    assert_eq!(client.delete(&policy).await.status, 200);
    assert_eq!(harness::client::whole(delete()).await.status, 200);
}

#[tokio::test]
async fn options_of_policies_are_stored_shown_and_checked() {
    let service = Service::start().await;
    let client = service.administrator();
    let options = json!({ "include_none": true, "trusted_metadata": true });
    let path = made(&client, RATES, &with(rate(&service), options.clone())).await;
    let shown = client.get(&path).await.json();
    assert_eq!((&shown["include_none"], &shown["trusted_metadata"]), (&json!(true), &json!(true)));
    let path = made(&client, USAGE, &with(usage(&service), with(options, json!({ "unknown_price": "refuse" })))).await;
    let shown = client.get(&path).await.json();
    assert_eq!((&shown["unknown_price"], &shown["include_none"]), (&json!("refuse"), &json!(true)));
    let changed = client.put(&path, &json!({ "unknown_price": null, "trusted_metadata": false })).await.json();
    assert_eq!((&changed["unknown_price"], &changed["trusted_metadata"]), (&Value::Null, &json!(false)));
    assert_eq!(changed["include_none"], true, "what is not sent stays");
    let refused = client.post(USAGE, &with(usage(&service), json!({ "unknown_price": "maybe" }))).await;
    assert_eq!(field(&refused), (400, "unknown_price".into()), "{}", refused.text());
}

#[tokio::test]
async fn a_policy_for_everybody_needs_no_conditions_and_no_groups() {
    let service = Service::start().await;
    let client = service.administrator();
    let workspace = json!({ "workspace_id": service.home.workspace_id });
    let rate = json!({ "type": "requests", "unit": "rpm", "value": 100 });
    let usage = json!({ "type": "cost", "credit_limit": 10, "conditions": [], "group_by": null });
    for (path, body) in [(RATES, rate), (USAGE, usage)] {
        let policy = made(&client, path, &with(body, workspace.clone())).await;
        let shown = client.get(&policy).await.json();
        assert_eq!((&shown["conditions"], &shown["group_by"]), (&json!([]), &json!([])), "{path}");
        assert_eq!(client.put(&policy, &json!({ "group_by": [{ "key": "api_key" }] })).await.status, 200);
        let back = client.put(&policy, &json!({ "group_by": [] })).await.json();
        assert_eq!(back["group_by"], json!([]), "{path}");
    }
}

#[tokio::test]
async fn a_policy_is_for_models_tools_or_both_and_stays_so() {
    let service = Service::start().await;
    let client = service.administrator();
    for (path, body) in [(RATES, rate(&service)), (USAGE, usage(&service))] {
        let body = with(body, json!({ "target": "mcp_tools", "group_by": [{ "key": "mcp_tool" }] }));
        let policy = made(&client, path, &body).await;
        assert_eq!(client.get(&policy).await.json()["target"], "mcp_tools", "{path}");
        for (change, expected) in [
            (json!({ "target": "mcp_tools", "name": "x" }), (200, String::new())),
            (json!({ "target": "llm" }), (400, "target".to_owned())),
            (json!({ "group_by": [{ "key": "virtual_key" }] }), (400, "group_by[0].key".to_owned())),
        ] {
            let answer = client.put(&policy, &change).await;
            assert_eq!(field(&answer), expected, "{path} {change}: {}", answer.text());
        }
    }
}

#[tokio::test]
async fn a_group_shows_apart_what_nobody_has_confirmed() {
    let service = Service::start().await;
    let client = service.administrator();
    let path = made(&client, USAGE, &usage(&service)).await;
    let id = path.rsplit('/').next().unwrap();
    spend(&service, id, "metadata._user:alice", "250").await;
    let organisation = service.home.organisation_id;
    service
        .sql(&format!(
            "INSERT INTO limit_intents (request_id, attempt, boot, created_at, organisation_id, scope, scope_id, unit, period,
                starts_at, amount, charged_at)
             SELECT gen_random_uuid(), 0, gen_random_uuid(), now(), '{organisation}', 'policy', id || '/metadata._user:alice',
                'cost', 'total', last_reset_at, amount, charged_at
             FROM usage_limits_policies, (VALUES (100, now()), (70, NULL)) AS intent (amount, charged_at) WHERE id = '{id}'"
        ))
        .await;
    let entity = client.get(&format!("{path}/entities")).await.json()["data"][0].clone();
    assert_eq!((&entity["current_usage"], &entity["unconfirmed"]), (&json!(2.5), &json!(1)), "{entity}");
}
