//! The groups of policies: read from counters, found, filtered and reset one by one.

use super::{RATES, USAGE, count, made, rate, spend, usage, with};
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};
use shared::model::{KeyKind, RateLimitsPolicy};

async fn entities(client: &Client, policy: &str, query: &str) -> Vec<Value> {
    let answer = client.get(&format!("{policy}/entities?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    let list = answer.json();
    let data = list["data"].as_array().unwrap().clone();
    assert!(list["total"].as_i64().unwrap() >= data.len() as i64, "{list}");
    data
}

fn keys(entities: &[Value]) -> Vec<&str> {
    entities.iter().map(|one| one["value_key"].as_str().unwrap()).collect()
}

/// What the names of its counters begin with, as the proxy makes it.
async fn prefix(service: &Service) -> String {
    let sql = format!("SELECT {} FROM rate_limits_policies", RateLimitsPolicy::COLUMNS);
    let row = service.database.client().await.query_one(&sql, &[]).await.unwrap();
    RateLimitsPolicy::from_row(&row).unwrap().scope_prefix()
}

#[tokio::test]
async fn a_rate_policy_shows_whom_it_names_and_who_was_counted_in_this_window() {
    let service = Service::start().await;
    let client = service.administrator();
    let key = service.key(KeyKind::WorkspaceService, &[]).await.id;
    let body = json!({
        "conditions": [{ "key": "api_key", "value": [key.to_string(), "unknown"] }], "unit": "rpd", "value": 3,
    });
    let policy = made(&client, RATES, &with(rate(&service), body)).await;
    let prefix = prefix(&service).await;
    let day = "date_trunc('day', now(), 'UTC')";
    for (key, starts_at, value) in [
        (format!("api_key:{key}"), day, "2"),
        ("api_key:other".into(), day, "3"),
        ("api_key:yesterday".into(), "date_trunc('day', now(), 'UTC') - interval '1 day'", "9"),
    ] {
        count(&service, &format!("{prefix}{key}"), "requests", "day", starts_at, value).await;
    }
    count(&service, &format!("{}@1/api_key:before", &prefix[..36]), "requests", "day", day, "9").await;
    let seen = entities(&client, &policy, "").await;
    assert_eq!(keys(&seen), ["api_key:other".to_owned(), format!("api_key:{key}"), "api_key:unknown".into()]);
    let expected = json!({
        "id": seen[1]["id"],
        "object": "policy-entity",
        "value_key": format!("api_key:{key}"),
        "current_usage": 2,
        "status": "active",
        "entity_type": "api_key",
        "entity_id": key,
        "name": "Test key",
        "limit": 3,
        "window_resets_at": seen[1]["window_resets_at"],
    });
    assert_eq!(seen[1], expected);
    assert!(seen[1]["window_resets_at"].as_str().unwrap().ends_with("T00:00:00.000Z"));
    assert_eq!((&seen[0]["status"], &seen[2]["current_usage"]), (&json!("exhausted"), &json!(0)));
    for (query, count) in [
        ("type=api_key", 3),
        ("type=user", 0),
        ("search=TEST", 1),
        ("search=%25", 0),
        ("status=exhausted", 1),
        ("page_size=2&current_page=1", 1),
        ("page_size=2&current_page=9", 0),
    ] {
        assert_eq!(entities(&client, &policy, query).await.len(), count, "{query}");
    }
    assert_eq!(client.get(&format!("{policy}/entities?type=dog")).await.status, 400);
    assert_eq!(client.put(&policy, &json!({ "unit": "rpm" })).await.status, 200);
    assert_eq!(entities(&client, &policy, "search=other").await.len(), 0, "counters restarted");
}

#[tokio::test]
async fn what_groups_have_used_is_shown_in_their_policy_and_one_by_one() {
    let service = Service::start().await;
    let client = service.administrator();
    let policy = made(&client, USAGE, &usage(&service)).await;
    for (key, cents) in [("metadata._user:alice", "1050.5"), ("metadata._user:bob", "0.7")] {
        spend(&service, &policy, key, cents).await;
    }
    let seen = entities(&client, &policy, "").await;
    assert_eq!(keys(&seen), ["metadata._user:alice", "metadata._user:bob"]);
    assert_eq!((&seen[0]["current_usage"], &seen[0]["status"]), (&json!(10.505), &json!("exhausted")));
    assert_eq!((&seen[1]["current_usage"], &seen[1]["entity_type"]), (&json!(0.007), &json!("user")));
    assert_eq!((&seen[1]["entity_id"], &seen[1]["name"]), (&json!("bob"), &json!("bob")));
    assert!(seen[1]["last_reset_at"].is_string());
    assert_eq!(keys(&entities(&client, &policy, "status=active").await), ["metadata._user:bob"]);
    assert_eq!(client.get(&policy).await.json().get("value_key_usage_map"), None);
    let shown = client.get(&format!("{policy}?include_usage=true")).await.json();
    let expected = json!({
        "current_usage": 10.505, "status": "exhausted", "is_threshold_alerts_sent": false, "is_exhausted_alerts_sent": false,
    });
    assert_eq!(shown["value_key_usage_map"]["metadata._user:alice"], expected);
    assert_eq!(client.delete(&policy).await.status, 200);
    assert_eq!(client.get(&format!("{policy}/entities")).await.status, 404);
    assert_eq!(client.put(&policy, &json!({ "status": "active" })).await.status, 200);
    assert_eq!(entities(&client, &policy, "").await.len(), 0, "counters are dropped with their policy");
}

#[tokio::test]
async fn one_group_is_reset_and_the_others_are_not() {
    let service = Service::start().await;
    let client = service.administrator();
    let policy = made(&client, USAGE, &usage(&service)).await;
    let used = async |name: &str| -> f64 {
        let all = entities(&client, &policy, &format!("search={name}")).await;
        all[0]["current_usage"].as_f64().unwrap()
    };
    for name in ["alice", "bob", "carol", "dave"] {
        spend(&service, &policy, &format!("metadata._user:{name}"), "1000").await;
    }
    let alice = entities(&client, &policy, "search=alice").await[0]["id"].as_str().unwrap().to_owned();
    let answer = client.put(&format!("{policy}/entities/{alice}/reset"), &json!({})).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({})));
    let answer = client.post(&format!("{policy}/entities/reset"), &json!({ "entity_id": "metadata._user:bob" })).await;
    assert_eq!((answer.status.as_u16(), answer.json()), (200, json!({ "success": true })));
    let answer = client.put(&policy, &json!({ "reset_usage_for_value": "carol" })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    for (name, left) in [("alice", 0.0), ("bob", 0.0), ("carol", 0.0), ("dave", 10.0)] {
        assert_eq!(used(name).await, left, "{name}");
    }
    spend(&service, &policy, "metadata._user:alice", "700").await;
    assert_eq!(used("alice").await, 0.0, "calls from before the reset settle on the old counter");
    let again = entities(&client, &policy, "search=alice").await[0]["id"].clone();
    assert_eq!(again, alice, "a group keeps its id");
    for (path, body) in [
        (format!("{policy}/entities/metadata._user:nobody/reset"), json!({})),
        (format!("{policy}/entities/{}/reset", uuid::Uuid::new_v4()), json!({})),
        (policy.clone(), json!({ "reset_usage_for_value": "nobody" })),
    ] {
        assert_eq!(client.put(&path, &body).await.status, 404, "{path}");
    }
    let trail = service.trail(service.home.organisation_id).await;
    let resets: Vec<_> = trail.iter().filter(|row| row["action"] == "manage").collect();
    assert_eq!(resets.iter().filter(|row| row["response_status_code"] == 200).count(), 2, "{resets:?}");
    assert_eq!(resets[0]["after"]["value_key"], "metadata._user:alice");
}

#[tokio::test]
async fn groups_of_another_tenant_are_not_found() {
    let service = Service::start().await;
    let policy = made(&service.administrator(), USAGE, &usage(&service)).await;
    spend(&service, &policy, "metadata._user:alice", "1000").await;
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    let neighbour = service.workspace_client(service.workspace("elsewhere").await).await;
    for client in [&stranger, &neighbour] {
        assert_eq!(client.get(&format!("{policy}/entities")).await.status, 404);
        let reset = format!("{policy}/entities/metadata._user:alice/reset");
        assert_eq!(client.put(&reset, &json!({})).await.status, 404);
        let alias =
            client.post(&format!("{policy}/entities/reset"), &json!({ "entity_id": "metadata._user:alice" })).await;
        assert_eq!(alias.status, 404);
    }
    let client = service.administrator();
    assert_eq!(entities(&client, &policy, "").await[0]["current_usage"], 10, "as it was");
}

#[tokio::test]
async fn groups_can_have_any_name() {
    let service = Service::start().await;
    let client = service.administrator();
    let policy = made(&client, USAGE, &usage(&service)).await;
    let hostile = ["'' OR true --", "100%_\\\\", "🦀", "a|b:c", "0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a1g"];
    for name in hostile {
        spend(&service, &policy, &format!("metadata._user:{name}"), "100").await;
    }
    let seen = entities(&client, &policy, "").await;
    assert_eq!(seen.len(), hostile.len());
    for one in seen {
        let reset = format!("{policy}/entities/{}/reset", one["id"].as_str().unwrap());
        assert_eq!(client.put(&reset, &json!({})).await.status, 200, "{one}");
    }
    assert!(entities(&client, &policy, "").await.iter().all(|one| one["current_usage"] == 0));
}

#[tokio::test]
async fn what_is_not_grouped_is_the_workspace_and_is_reset_as_a_group() {
    let service = Service::start().await;
    let client = service.administrator();
    let workspace = service.home.workspace_id;
    let body = json!({ "type": "cost", "credit_limit": 10, "workspace_id": workspace });
    let policy = made(&client, USAGE, &body).await;
    spend(&service, &policy, "", "1100").await;
    let seen = entities(&client, &policy, "type=workspace&status=exhausted").await;
    assert_eq!((seen.len(), &seen[0]["value_key"], &seen[0]["entity_id"]), (1, &json!(""), &json!(workspace)));
    assert!(seen[0]["name"].is_string(), "{seen:?}");
    let id = seen[0]["id"].as_str().unwrap();
    let reset = client.put(&format!("{policy}/entities/{id}/reset"), &json!({})).await;
    assert_eq!(reset.status, 200, "{}", reset.text());
    let seen = entities(&client, &policy, "").await;
    assert_eq!((seen.len(), &seen[0]["current_usage"], &seen[0]["status"]), (1, &json!(0), &json!("active")));
}
