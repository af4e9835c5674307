//! Workspaces: names, limits, settings, who may change what, and their end.

use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::model::KeyKind;
use uuid::Uuid;

async fn create(client: &Client, body: Value) -> Value {
    let answer = client.post("/admin/workspaces", &body).await;
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    answer.json()
}

async fn delete(client: &Client, id: &str, body: Value) -> Answer {
    whole(client.request(Method::DELETE, &format!("/workspaces/{id}")).json(&body)).await
}

fn id(workspace: &Value) -> &str {
    workspace["id"].as_str().unwrap()
}

fn outcome(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_workspace_is_shown_whole_under_both_paths_by_id_and_by_slug() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({
        "name": "🚀 Market Team",
        "description": "d",
        "defaults": { "metadata": { "team": "market" } },
        "usage_limits": { "credit_limit": 500, "periodic_reset": "monthly" },
        "rate_limits": [{ "type": "requests", "unit": "rpm", "value": 100 }],
        "users": [service.home.owner_id],
    });
    let made = create(&client, body).await;
    assert!(made["users"].is_null(), "a client's model of this answer has no place for them");
    let slug = made["slug"].as_str().unwrap();
    assert!(slug.starts_with("ws-market-") && slug.len() == "ws-market-".len() + 6, "{slug}");
    let seen = client.get(&format!("/workspaces/{slug}")).await.json();
    assert_eq!(client.get(&format!("/admin/workspaces/{}", id(&made))).await.json(), seen);
    assert_eq!(
        (&seen["object"], &seen["name"], &seen["icon"]),
        (&json!("workspace"), &json!("🚀 Market Team"), &json!("🚀"))
    );
    assert_eq!((&seen["is_default"], &seen["status"], &seen["priority"]), (&json!(0), &json!("active"), &json!(10)));
    assert_eq!(seen["defaults"]["metadata"], json!({ "team": "market" }));
    assert_eq!(seen["usage_limits"][0]["credit_limit"], 500);
    assert_eq!(seen["usage_limits"][0]["current_usage"], 0);
    assert_eq!(seen["rate_limits"], json!([{ "type": "requests", "unit": "rpm", "value": 100 }]));
    assert_eq!(seen["security_settings"]["membersWritePrompts"], false);
    assert_eq!(seen["settings"]["user_api_key_count"], -1);
    assert_eq!((&seen["created_by"], &seen["creation_source"]), (&json!(service.home.admin_key.id), &json!("api")));
    assert_eq!(seen["users"][0]["id"], json!(service.home.owner_id));
    assert_eq!(seen["users"][0]["role"], "member");
    assert_eq!(client.get(&format!("/workspaces/{slug}?name_format=plain")).await.json()["name"], "Market Team");
}

#[tokio::test]
async fn an_update_changes_what_was_sent_and_answers_with_the_workspace() {
    let service = Service::start().await;
    let client = service.administrator();
    let limits = json!({ "credit_limit": 5, "alert_threshold": 2 });
    let made =
        create(&client, json!({ "name": "🚀 A", "defaults": { "metadata": { "a": "1" } }, "usage_limits": limits }))
            .await;
    let path = format!("/workspaces/{}", id(&made));
    let put = async |body: Value| {
        let answer = client.put(&path, &body).await;
        assert_eq!(answer.status, 200, "{body}: {}", answer.text());
        answer.json()
    };
    let renamed = put(json!({ "name": "B" })).await;
    assert_eq!((&renamed["name"], &renamed["icon"]), (&json!("🚀 B"), &json!("🚀")));
    assert_eq!(renamed["usage_limits"], made["usage_limits"]);
    assert_eq!(put(json!({ "icon": "" })).await["name"], "B");
    let checks = json!([{ "id": "default.contains", "parameters": { "operator": "none", "words": ["x"] } }]);
    let body = json!({ "name": "g", "checks": checks, "actions": {}, "workspace_id": id(&made) });
    let guardrail = client.post("/guardrails", &body).await.json()["slug"].clone();
    assert_eq!(
        put(json!({ "defaults": { "input_guardrails": [guardrail] } })).await["defaults"]["metadata"],
        json!({ "a": "1" })
    );
    assert_eq!(
        put(json!({ "settings": { "user_api_key_ttl": 60 }, "priority": 20 })).await["settings"]["user_api_key_ttl"],
        60
    );
    assert_eq!(put(json!({ "usage_limits": [] })).await["usage_limits"], Value::Null);
    assert_eq!(put(json!({ "rate_limits": null })).await["rate_limits"], Value::Null);
    assert_eq!(client.get(&path).await.json()["priority"], 20);
    for (body, field) in [
        (json!({ "usage_limits": { "credit_limit": 5, "typo": 1 } }), "usage_limits.typo"),
        (json!({ "rate_limits": [{ "type": "requests", "unit": "rpw", "value": 1 }] }), "rate_limits[0].unit"),
        (json!({ "security_settings": { "membersViewPrompts": false } }), "security_settings.membersViewPrompts"),
        (json!({ "security_settings": { "typo": false } }), "security_settings.typo"),
        (json!({ "settings": { "typo": 1 } }), "settings.typo"),
        (json!({ "defaults": { "metadata": { "a": 1 } } }), "defaults.metadata.a"),
        (json!({ "priority": 101 }), "priority"),
        (json!({ "icon": "x" }), "icon"),
        (json!({ "description": "x".repeat(1001) }), "description"),
    ] {
        let answer = client.put(&path, &body).await;
        assert_eq!(answer.status, 400, "{body}: {}", answer.text());
        assert_eq!(answer.json()["data"]["errors"][0]["field"], field, "{body}");
    }
}

#[tokio::test]
async fn usage_survives_new_limits_and_a_raised_budget_wakes_the_workspace() {
    let service = Service::start().await;
    let client = service.administrator();
    let path = format!("/workspaces/{}", service.home.workspace_id);
    client.put(&path, &json!({ "usage_limits": { "credit_limit": 5 } })).await;
    service.spend("workspaces", "550").await;
    let limits = client.get(&path).await.json()["usage_limits"][0].clone();
    assert_eq!((&limits["current_usage"], &limits["status"]), (&json!(5.5), &json!("exhausted")));
    let raised = client.put(&path, &json!({ "usage_limits": { "credit_limit": 10 } })).await.json();
    assert_eq!(raised["usage_limits"][0]["current_usage"], 5.5);
    assert_eq!(raised["usage_limits"][0]["status"], "active");
    let reset = client.put(&path, &json!({ "reset_usage": true })).await.json();
    assert_eq!(reset["usage_limits"][0]["current_usage"], 0);
    assert!(reset["last_reset_at"].is_string());
}

#[tokio::test]
async fn a_name_is_free_again_once_its_workspace_is_archived() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(&client, json!({ "name": "Twice", "slug": "twice" })).await;
    let again = json!({ "name": "Twice" });
    assert_eq!(outcome(&client.post("/workspaces", &again).await), (409, "AB07".into()));
    assert_eq!(delete(&client, id(&made), again.clone()).await.status, 200);
    assert_eq!(client.post("/workspaces", &again).await.status, 200);
    let same_slug = client.post("/workspaces", &json!({ "name": "Other", "slug": "twice" })).await;
    assert_eq!(outcome(&same_slug), (409, "AB07".into()), "logs still name the archived one");
    for slug in ["0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "a b", ""] {
        assert_eq!(client.post("/workspaces", &json!({ "name": "S", "slug": slug })).await.status, 400, "{slug}");
    }
}

#[tokio::test]
async fn a_delete_needs_the_name_and_stops_before_what_still_lives() {
    let service = Service::start().await;
    let client = service.administrator();
    let made =
        create(&client, json!({ "name": "🚀 Old", "users": [{ "id": service.home.owner_id, "role": "ws-manager" }] }))
            .await;
    let workspace: Uuid = id(&made).parse().unwrap();
    for body in [json!({}), json!({ "name": "Wrong" }), json!({ "name": 7 })] {
        assert_eq!(outcome(&delete(&client, id(&made), body).await), (400, "AB01".into()));
    }
    let key =
        service.key_for(&service.home, workspace, Uuid::nil(), KeyKind::WorkspaceService, &["prompts.create"]).await;
    let inside = service.client().with_key(&key.key);
    assert_eq!(inside.post("/labels", &json!({ "name": "l" })).await.status, 200);
    let refused = delete(&client, id(&made), json!({ "name": "Old" })).await;
    assert_eq!(outcome(&refused), (409, "AB07".into()));
    assert!(refused.json()["message"].as_str().unwrap().contains("API keys"), "{}", refused.text());
    let done = delete(&client, id(&made), json!({ "name": "🚀 Old", "force_delete": true })).await;
    assert_eq!((done.status.as_u16(), done.json()), (200, json!({})));
    assert_eq!(outcome(&inside.get("/api-keys/self").await), (401, "AB05".into()));
    let path = format!("/workspaces/{}", id(&made));
    assert_eq!(outcome(&client.get(&path).await), (404, "AB08".into()));
    assert_eq!(client.get(&format!("{path}?status=archived")).await.json()["users"], json!([]));
    assert_eq!(outcome(&client.put(&path, &json!({ "name": "x" })).await), (404, "AB08".into()));
    let default = format!("{}", service.home.workspace_id);
    let kept = delete(&client, &default, json!({ "name": "Shared Team Workspace", "force_delete": true })).await;
    assert_eq!(outcome(&kept), (400, "AB01".into()));
}

/// Whoever comes second waits, and then finds either a key that must go too or no workspace to make one in.
#[tokio::test]
async fn policies_stop_a_delete_and_a_provider_that_nobody_made_does_not() {
    let service = Service::start().await;
    let client = service.administrator();
    let integration = json!({ "name": "Account", "slug": "account", "ai_provider_id": "openai", "key": "sk-1" });
    let made = client.post("/integrations", &integration).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let for_all = json!({ "global_workspace_access": { "enabled": true }, "create_default_provider": true });
    let opened = client.put("/integrations/account/workspaces", &for_all).await;
    assert_eq!(opened.status, 200, "{}", opened.text());
    let granted = create(&client, json!({ "name": "Granted" })).await;
    let id = granted["id"].as_str().unwrap();
    let given = client.get(&format!("/providers?workspace_id={id}")).await.json();
    assert_eq!(given["total"], 1, "it has the provider that came with the integration: {given}");
    let rule = json!({
        "name": "Policy", "workspace_id": id, "conditions": [{ "key": "metadata._user", "value": "*" }],
        "group_by": [{ "key": "metadata._user" }],
    });
    for (path, kind, more) in [
        ("/policies/rate-limits", "rate limits policies", json!({ "type": "requests", "unit": "rpm", "value": 10 })),
        ("/policies/usage-limits", "usage limits policies", json!({ "type": "cost", "credit_limit": 10 })),
    ] {
        let mut body = rule.clone();
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let policy = client.post(path, &body).await;
        assert_eq!(policy.status, 200, "{}", policy.text());
        let refused = delete(&client, id, json!({ "name": "Granted" })).await;
        assert_eq!(outcome(&refused), (409, "AB07".into()), "{path}");
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(kind) && !message.contains("providers"), "{message}");
        let policy = format!("{path}/{}", policy.json()["id"].as_str().unwrap());
        assert_eq!(client.delete(&policy).await.status, 200);
    }
    let own = json!({ "name": "Mine", "slug": "mine", "integration_id": "account", "workspace_id": id });
    let own = client.post("/providers", &own).await;
    assert_eq!(own.status, 200, "{}", own.text());
    let refused = delete(&client, id, json!({ "name": "Granted" })).await;
    assert!(refused.json()["message"].as_str().unwrap().contains("providers"), "{}", refused.text());
    assert_eq!(client.delete(&format!("/providers/mine?workspace_id={id}")).await.status, 200);
    assert_eq!(delete(&client, id, json!({ "name": "Granted" })).await.status, 200);
}

#[tokio::test]
async fn nothing_new_is_left_alive_in_a_workspace_that_is_being_archived() {
    let service = Service::start().await;
    let client = service.administrator();
    for round in 0..5 {
        let made = create(&client, json!({ "name": format!("W{round}") })).await;
        let label = json!({ "name": "late", "workspace_id": id(&made) });
        let farewell = json!({ "name": format!("W{round}"), "force_delete": true });
        let (created, deleted) = tokio::join!(client.post("/labels", &label), delete(&client, id(&made), farewell));
        assert!([200, 404].contains(&created.status.as_u16()), "{}", created.text());
        assert_eq!(deleted.status, 200, "{}", deleted.text());
        let alive = format!("SELECT count(*) FROM labels WHERE workspace_id = '{}' AND status = 'active'", id(&made));
        let count: i64 = service.database.client().await.query_one(&alive, &[]).await.unwrap().get(0);
        assert_eq!(count, 0);
    }
}

#[tokio::test]
async fn lists_filter_by_name_and_status_and_hide_what_is_archived_from_workspaces() {
    let service = Service::start().await;
    let client = service.administrator();
    create(&client, json!({ "name": "Alpha" })).await;
    create(&client, json!({ "name": "🚀 Alphabet" })).await;
    let gone = create(&client, json!({ "name": "Gone" })).await;
    delete(&client, id(&gone), json!({ "name": "Gone" })).await;
    let names = async |client: &Client, query: &str| {
        let list = client.get(&format!("/workspaces?{query}")).await.json();
        let data = list["data"].as_array().unwrap_or_else(|| panic!("{list}")).clone();
        data.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (query, expected) in [
        ("", &["🚀 Alphabet", "Alpha", "Shared Team Workspace"][..]),
        ("name=Alpha", &["🚀 Alphabet", "Alpha"]),
        ("name=alpha", &[]),
        ("exact_name=Alpha", &["Alpha"]),
        ("exact_name=Alphabet", &["🚀 Alphabet"]),
        ("status=archived", &["Gone"]),
        ("status=active,archived&name=o", &["Gone", "Shared Team Workspace"]),
    ] {
        assert_eq!(names(&client, query).await, expected, "{query}");
    }
    assert_eq!(client.get("/workspaces?status=deleted").await.status, 400);
    let workspace = service.workspace_client(service.home.workspace_id).await;
    assert_eq!(names(&workspace, "").await, ["Shared Team Workspace"]);
    assert_eq!(outcome(&workspace.get("/workspaces?status=archived").await), (403, "AB03".into()));
    let owner = service.person_client(service.home.workspace_id, service.home.owner_id).await;
    assert_eq!(owner.get("/workspaces?status=archived").await.status, 200);
}

#[tokio::test]
async fn a_workspaces_own_key_changes_its_description_defaults_and_limits_only() {
    let service = Service::start().await;
    let own = service.workspace_client(service.home.workspace_id).await;
    let path = format!("/workspaces/{}", service.home.workspace_id);
    for (body, status) in [
        (json!({ "description": "d", "usage_limits": { "credit_limit": 5 } }), 200),
        (json!({ "defaults": { "metadata": {} } }), 200),
        (json!({ "name": "x" }), 403),
        (json!({ "icon": "🚀" }), 403),
        (json!({ "settings": {} }), 403),
        (json!({ "priority": 100 }), 403),
    ] {
        assert_eq!(own.put(&path, &body).await.status, status, "{body}");
    }
    let manager =
        service.person_client(service.home.workspace_id, service.person("member", Some("manager")).await).await;
    assert_eq!(manager.put(&path, &json!({ "description": "m" })).await.status, 200);
    service.sql(r#"UPDATE organisations SET security_settings = '{"managersUpdateWs": false}'"#).await;
    assert_eq!(outcome(&manager.put(&path, &json!({ "description": "m" })).await), (403, "AB03".into()));
    let elsewhere = service.workspace("elsewhere").await;
    assert_eq!(
        outcome(&own.put(&format!("/workspaces/{elsewhere}"), &json!({ "description": "d" })).await),
        (404, "AB08".into())
    );
}

#[tokio::test]
async fn limits_cannot_be_set_where_they_are_switched_off() {
    let service = Service::start_with(&["--usage-limits-enabled=OFF"]).await;
    let client = service.administrator();
    let path = format!("/workspaces/{}", service.home.workspace_id);
    for (body, status) in [
        (json!({ "usage_limits": { "credit_limit": 5 } }), 402),
        (json!({ "rate_limits": [{ "type": "requests", "unit": "rpm", "value": 1 }] }), 402),
        (json!({ "usage_limits": null, "rate_limits": [] }), 200),
    ] {
        assert_eq!(client.put(&path, &body).await.status, status, "{body}");
    }
}

#[tokio::test]
async fn the_metadata_of_a_new_workspace_is_as_the_organisation_s_schema_wants_it() {
    let service = Service::start().await;
    let client = service.administrator();
    let schema = json!({ "workspace": {
        "type": "object", "additionalProperties": true, "required": ["team"],
        "properties": { "team": { "type": "string", "enum": ["a"] } },
    }});
    let sql = "UPDATE organisations SET metadata_schemas = $1";
    service.database.client().await.execute(sql, &[&schema]).await.unwrap();
    for body in [json!({ "name": "W" }), json!({ "name": "W", "defaults": { "metadata": { "team": "b" } } })] {
        let answer = client.post("/workspaces", &body).await;
        assert_eq!(outcome(&answer), (400, "AB01".into()), "{body}");
        assert_eq!(answer.json()["data"]["errors"][0]["field"], "defaults.metadata.team", "{body}");
    }
    create(&client, json!({ "name": "W", "defaults": { "metadata": { "team": "a" } } })).await;
}
