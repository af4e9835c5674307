//! Which workspaces may use an integration: one by one, all at once, and those that come later.

use super::{account, create, refused};
use crate::service::Service;
use harness::Client;
use serde_json::{Value, json};

const PATH: &str = "/integrations/main/workspaces";

async fn access(client: &Client) -> Vec<(String, bool)> {
    let list = client.get(PATH).await.json();
    let mut seen: Vec<_> = list["workspaces"]
        .as_array()
        .unwrap_or_else(|| panic!("{list}"))
        .iter()
        .map(|one| (one["id"].as_str().unwrap().to_owned(), one["enabled"].as_bool().unwrap()))
        .collect();
    assert_eq!(list["total"], seen.len());
    seen.sort_unstable();
    seen
}

async fn providers(client: &Client, workspace: &str) -> Vec<String> {
    let list = client.get(&format!("/providers?workspace_id={workspace}")).await.json();
    let data = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
    data.iter().map(|one| one["slug"].as_str().unwrap().to_owned()).collect()
}

async fn service() -> (Service, Client) {
    let service = Service::start().await;
    let client = service.administrator();
    for name in ["one", "two", "three"] {
        service.workspace(name).await;
    }
    account(&client, "main").await;
    (service, client)
}

#[tokio::test]
async fn access_is_given_with_limits_and_a_provider_and_taken_without_losing_it() {
    let (_service, client) = service().await;
    let body = json!({ "workspaces": [
        { "id": "one", "enabled": true, "usage_limits": [{ "credit_limit": 10, "alert_threshold": 5 }],
          "rate_limits": [{ "type": "requests", "unit": "rpm", "value": 5 }] },
        { "id": "two", "enabled": true, "create_default_provider": false },
        { "id": "three", "enabled": true, "default_provider_slug": "mine" },
    ] });
    assert_eq!(client.put(PATH, &body).await.json(), json!({}));
    let list = client.get(PATH).await.json();
    let one = list["workspaces"].as_array().unwrap().iter().find(|one| one["id"] == "one").unwrap();
    assert_eq!(
        (&one["usage_limits"][0]["credit_limit"], &one["usage_limits"][0]["current_usage"]),
        (&json!(10), &json!(0))
    );
    assert_eq!(
        (&one["rate_limits"][0]["value"], &one["status"], &one["last_reset_at"]),
        (&json!(5), &json!("active"), &Value::Null)
    );
    assert_eq!(list["global_workspace_access"], json!({ "enabled": false, "usage_limits": null, "rate_limits": null }));
    assert_eq!(client.get("/integrations/main").await.json()["workspace_count"], 3);
    for (workspace, slugs) in [("one", vec!["main"]), ("two", vec![]), ("three", vec!["mine"])] {
        assert_eq!(providers(&client, workspace).await, slugs, "{workspace}");
    }
    let provider = client.get("/providers/main?workspace_id=one").await.json();
    assert_eq!(provider["note"], "Added when the workspace got access to the integration");

    let body = json!({ "workspaces": [{ "id": "one", "enabled": false }] });
    assert_eq!(client.put(PATH, &body).await.status, 200);
    assert_eq!(access(&client).await, [("one".into(), false), ("three".into(), true), ("two".into(), true)]);
    assert_eq!(providers(&client, "one").await, ["main"], "closed, not gone");
    let closed =
        client.post("/providers", &json!({ "name": "p", "integration_id": "main", "workspace_id": "one" })).await;
    assert_eq!((closed.status.as_u16(), refused(&closed).1), (403, "AB03".into()), "{}", closed.text());

    let body = json!({ "workspaces": [{ "id": "one", "enabled": true }] });
    assert_eq!(client.put(PATH, &body).await.status, 200);
    assert_eq!(providers(&client, "one").await, ["main"], "there is one already");
    let one =
        client.get(PATH).await.json()["workspaces"].as_array().unwrap().iter().find(|one| one["id"] == "one").cloned();
    assert_eq!(one.unwrap()["usage_limits"][0]["credit_limit"], 10, "what was not sent stays");
}

#[tokio::test]
async fn an_override_sets_what_is_listed_and_closes_the_rest_under_both_spellings() {
    for spelling in ["override_existing_workspace_access", "override_existing_workspaces_access"] {
        let (_service, client) = service().await;
        let each = ["one", "two", "three"].map(|id| json!({ "id": id, "enabled": true }));
        let all = json!({ "workspaces": each });
        assert_eq!(client.put(PATH, &all).await.status, 200);
        let mut body = json!({ "workspaces": [{ "id": "two", "enabled": true }] });
        body[spelling] = json!(true);
        assert_eq!(client.put(PATH, &body).await.status, 200);
        assert_eq!(access(&client).await, [("one".into(), false), ("three".into(), false), ("two".into(), true)]);
        let mut none = json!({ "workspaces": [] });
        assert_eq!(refused(&client.put(PATH, &none).await), (400, "AB01".into(), "workspaces".into()));
        none[spelling] = json!(true);
        assert_eq!(client.put(PATH, &none).await.status, 200);
        assert!(access(&client).await.iter().all(|(_, enabled)| !enabled));
    }
}

#[tokio::test]
async fn access_for_all_reaches_those_that_exist_when_overridden_and_those_that_come_later_always() {
    let (service, client) = service().await;
    let global = json!({ "enabled": true, "usage_limits": [{ "credit_limit": 7, "periodic_reset": "weekly" }] });
    assert_eq!(client.put(PATH, &json!({ "global_workspace_access": global })).await.status, 200);
    assert_eq!(access(&client).await, []);
    let late = client.post("/workspaces", &json!({ "name": "Late", "slug": "late" })).await;
    assert_eq!(late.status, 200, "{}", late.text());
    assert_eq!(access(&client).await, [("late".into(), true)]);
    assert_eq!(providers(&client, "late").await, ["main"]);

    let body =
        json!({ "global_workspace_access": global, "workspaces": [], "override_existing_workspace_access": true });
    assert_eq!(client.put(PATH, &body).await.status, 200);
    let list = client.get(PATH).await.json();
    assert_eq!(list["total"], 5, "four, and the default one");
    for one in list["workspaces"].as_array().unwrap() {
        assert_eq!((&one["enabled"], &one["usage_limits"][0]["credit_limit"]), (&json!(true), &json!(7)), "{one}");
    }
    assert_eq!(list["global_workspace_access"]["usage_limits"][0]["credit_limit"], 7);
    assert_eq!(providers(&client, "one").await, ["main"]);
    service.spend("integration_workspaces", "600").await;
    assert_eq!(client.put(PATH, &body).await.status, 200);
    let kept = client.get(PATH).await.json()["workspaces"][0]["usage_limits"][0]["current_usage"].clone();
    assert_eq!(kept, 6, "usage survives a change of limits");
    let reset = json!({ "workspaces": [{ "id": "one", "enabled": true, "reset_usage": true }] });
    assert_eq!(client.put(PATH, &reset).await.status, 200);
    let list = client.get(PATH).await.json();
    let one = list["workspaces"].as_array().unwrap().iter().find(|one| one["id"] == "one").unwrap().clone();
    assert_eq!(one["usage_limits"][0]["current_usage"], 0);
    assert!(one["last_reset_at"].is_string(), "{one}");
}

#[tokio::test]
async fn what_is_wrong_is_named_and_nothing_of_it_is_applied() {
    let (service, client) = service().await;
    let fine = json!({ "id": "one", "enabled": true });
    service.sql("UPDATE workspaces SET status = 'archived' WHERE slug = 'three'").await;
    let taken = json!({ "name": "p", "slug": "taken", "integration_id": "main", "workspace_id": "two" });
    let open = json!({ "workspaces": [{ "id": "two", "enabled": true, "create_default_provider": false }] });
    assert_eq!(client.put(PATH, &open).await.status, 200);
    account(&client, "other").await;
    let other = json!({ "workspaces": [{ "id": "two", "enabled": true, "default_provider_slug": "taken" }] });
    assert_eq!(client.put("/integrations/other/workspaces", &other).await.status, 200);
    assert_eq!(client.post("/providers", &taken).await.status, 409);
    for (second, field) in [
        (json!({ "id": "nowhere", "enabled": true }), "workspaces[1].id"),
        (json!({ "id": "three", "enabled": true }), "workspaces[1].id"),
        (json!({ "id": "one", "enabled": true }), "workspaces[1].id"),
        (json!({ "id": "two" }), "workspaces[1].enabled"),
        (
            json!({ "id": "two", "enabled": true, "usage_limits": [{ "credit_limt": 1 }] }),
            "workspaces[1].usage_limits[0].credit_limt",
        ),
        (json!({ "id": "two", "enabled": true, "usage_limits": [{}, {}] }), "workspaces[1].usage_limits"),
        (
            json!({ "id": "two", "enabled": true, "rate_limits": [
                { "type": "requests", "unit": "rpm", "value": 1 }, { "type": "tokens", "unit": "rpm", "value": 1 }] }),
            "workspaces[1].rate_limits",
        ),
        (
            json!({ "id": "two", "enabled": true, "create_default_provider": true, "default_provider_slug": "taken" }),
            "workspaces[1].default_provider_slug",
        ),
        (
            json!({ "id": "two", "enabled": true, "default_provider_slug": "a b" }),
            "workspaces[1].default_provider_slug",
        ),
    ] {
        let body = json!({ "workspaces": [fine, second] });
        let answer = client.put(PATH, &body).await;
        assert_eq!(refused(&answer), (400, "AB01".into(), field.into()), "{body}: {}", answer.text());
        assert_eq!(access(&client).await, [("two".into(), true)], "{body}");
    }
    for (body, field) in [
        (json!({ "global_workspace_access": {} }), "global_workspace_access.enabled"),
        (
            json!({ "global_workspace_access": { "enabled": true, "rate_limits": [{}] } }),
            "global_workspace_access.rate_limits[0].type",
        ),
        (json!({ "override_existing_workspace_access": true }), "workspaces"),
        (json!({}), ""),
    ] {
        assert_eq!(refused(&client.put(PATH, &body).await), (400, "AB01".into(), field.into()), "{body}");
    }
    let own = json!({ "name": "own", "ai_provider_id": "openai", "key": "sk-0123456789", "workspace_id": "one" });
    assert_eq!(create(&client, own).await.status, 200);
    let answer = client.put("/integrations/own/workspaces", &json!({ "workspaces": [fine] })).await;
    assert_eq!((answer.status.as_u16(), refused(&answer).1), (400, "AB01".into()));
}

#[tokio::test]
async fn many_who_open_the_same_workspaces_at_once_make_one_provider_in_each() {
    let (_service, client) = service().await;
    let order = |ids: [&str; 3]| {
        let each = ids.map(|id| json!({ "id": id, "enabled": true }));
        json!({ "workspaces": each })
    };
    let bodies = [order(["one", "two", "three"]), order(["three", "two", "one"]), order(["two", "three", "one"])];
    let answers = futures::future::join_all(bodies.iter().chain(&bodies).map(|body| client.put(PATH, body))).await;
    for answer in answers {
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    for workspace in ["one", "two", "three"] {
        assert_eq!(providers(&client, workspace).await, ["main"], "{workspace}");
    }
}
