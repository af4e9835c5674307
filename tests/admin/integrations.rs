//! Integrations: credentials go in and never come out, models and workspaces are given and taken, nobody sees what is
//! not theirs.

mod access;
mod credentials;
mod destination;
mod models;

use crate::service::Service;
use harness::{Answer, Client};
use serde_json::{Value, json};
use shared::model::KeyKind;

pub async fn create(client: &Client, body: Value) -> Answer {
    client.post("/integrations", &body).await
}

/// An account of the organisation with OpenAI.
pub async fn account(client: &Client, slug: &str) -> Value {
    let body = json!({ "name": slug, "slug": slug, "ai_provider_id": "openai", "key": "sk-0123456789abc" });
    let answer = create(client, body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()
}

pub fn refused(answer: &Answer) -> (u16, String, String) {
    let body = answer.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), text(&body["data"]["errorCode"]), text(&body["error"]["param"]))
}

#[tokio::test]
async fn an_integration_is_made_read_changed_and_gone_and_its_slug_is_free_again() {
    let service = Service::start().await;
    let client = service.administrator();
    let made = create(
        &client,
        json!({
            "name": "OpenAI main", "ai_provider_id": "openai", "key": "sk-0123456789abc", "description": "d",
            "configurations": { "openai_organization": "org-1", "custom_headers": { "x-team": "team-secret" } },
            "tags": { "team": "search" },
            "pricing_adjustments": { "multiplier": { "default": 1.1 } },
        }),
    )
    .await;
    assert_eq!(made.status, 200, "{}", made.text());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(made.json(), json!({ "id": id, "slug": "openai-main", "object": "integration" }));
    let shown = client.get("/integrations/openai-main").await.json();
    let expected = json!({
        "id": id,
        "slug": "openai-main",
        "name": "OpenAI main",
        "description": "d",
        "ai_provider_id": "openai",
        "organisation_id": service.home.organisation_id,
        "workspace_id": null,
        "type": "organisation",
        "status": "active",
        "tags": { "team": "search" },
        "created_at": shown["created_at"],
        "last_updated_at": shown["last_updated_at"],
        "masked_key": "sk*****abc",
        "configurations": { "openai_organization": "org-1", "masked_custom_headers": { "x-team": "te*****ret" } },
        "global_workspace_access": { "enabled": false, "usage_limits": null, "rate_limits": null },
        "global_workspace_access_settings": { "enabled": false, "usage_limits": null, "rate_limits": null },
        "allow_all_models": true,
        "workspace_count": 0,
        "secret_mappings": [],
        "pricing_adjustments": { "multiplier": { "default": 1.1 } },
        "owner_id": service.home.admin_key.id,
        "object": "integration",
    });
    assert_eq!(shown, expected);
    assert_eq!(client.get(&format!("/integrations/{id}")).await.json(), expected, "by id as by slug");
    let change = json!({ "description": null, "tags": null, "pricing_adjustments": null, "name": "Renamed" });
    assert_eq!(client.put("/integrations/openai-main", &change).await.json(), json!({}));
    let changed = client.get("/integrations/openai-main").await.json();
    assert_eq!(
        (&changed["name"], &changed["tags"], &changed["description"]),
        (&json!("Renamed"), &Value::Null, &Value::Null)
    );
    assert_eq!(changed["masked_key"], "sk*****abc");
    let item = client.get("/integrations").await.json()["data"][0].clone();
    assert!(item.get("masked_key").is_none() && item.get("configurations").is_none(), "{item}");
    assert_eq!((&item["type"], &item["object"]), (&json!("organisation"), &json!("integration")));
    assert_eq!(client.delete("/integrations/openai-main").await.json(), json!({}));
    assert_eq!(client.get("/integrations/openai-main").await.status, 404);
    account(&client, "openai-main").await;
}

#[tokio::test]
async fn what_is_wrong_with_an_integration_is_named() {
    let service = Service::start().await;
    let client = service.administrator();
    let with = |more: Value| {
        let mut body = json!({ "name": "n", "ai_provider_id": "openai", "key": "k-0123456789" });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        body
    };
    for (more, field) in [
        (json!({ "name": "" }), "name"),
        (json!({ "name": "x".repeat(256) }), "name"),
        (json!({ "slug": "a b" }), "slug"),
        (json!({ "slug": "x".repeat(256) }), "slug"),
        (json!({ "ai_provider_id": "nobody" }), "ai_provider_id"),
        (json!({ "key": null }), "key"),
        (json!({ "key": 7 }), "key"),
        (json!({ "description": "x".repeat(1025) }), "description"),
        (json!({ "tags": { "a": 1 } }), "tags.a"),
        (json!({ "configurations": { "custom_host": "http://127.0.0.1" } }), "configurations.custom_host"),
        (json!({ "ai_provider_id": "bedrock" }), "configurations.aws_auth_type"),
        (
            json!({ "pricing_adjustments": { "multiplier": { "defualt": 1 } } }),
            "pricing_adjustments.multiplier.defualt",
        ),
        (
            json!({ "secret_mappings": [{ "target_field": "key", "secret_reference_id": "nothing" }] }),
            "secret_mappings[0].secret_reference_id",
        ),
    ] {
        let answer = create(&client, with(more.clone())).await;
        assert_eq!(refused(&answer), (400, "AB01".into(), field.into()), "{more}: {}", answer.text());
    }
    assert_eq!(client.get("/integrations").await.json()["total"], 0, "nothing half-made");
    account(&client, "fixed").await;
    for (change, field) in
        [(json!({ "slug": "other" }), "slug"), (json!({ "ai_provider_id": "groq" }), "ai_provider_id")]
    {
        let answer = client.put("/integrations/fixed", &change).await;
        assert_eq!(refused(&answer), (400, "AB01".into(), field.into()), "{change}");
    }
    assert_eq!(client.put("/integrations/fixed", &json!({ "slug": "fixed", "name": "ok" })).await.status, 200);
}

#[tokio::test]
async fn a_slug_is_taken_once_and_a_name_may_repeat_however_many_ask_at_once() {
    let service = Service::start().await;
    let client = service.administrator();
    let chosen = json!({ "name": "n", "slug": "chosen", "ai_provider_id": "openai", "key": "sk-0123456789" });
    let named = json!({ "name": "Same Name", "ai_provider_id": "openai", "key": "sk-0123456789" });
    let asked = futures::future::join_all((0..6).map(|_| create(&client, chosen.clone()))).await;
    let mut statuses: Vec<_> = asked.iter().map(|answer| answer.status.as_u16()).collect();
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409, 409, 409]);
    let made = futures::future::join_all((0..6).map(|_| create(&client, named.clone()))).await;
    let mut slugs: Vec<String> =
        made.iter().map(|one| one.json()["slug"].as_str().unwrap_or_default().to_owned()).collect();
    slugs.sort_unstable();
    assert_eq!(slugs[0], "same-name");
    assert!(slugs[1..].iter().all(|slug| slug.starts_with("same-name-") && slug.len() == 16), "{slugs:?}");
    slugs.dedup();
    assert_eq!(slugs.len(), 6);
    let other = service.client().with_key(&service.organisation().await.admin_key.key);
    assert_eq!(create(&other, chosen).await.status, 200, "another organisation has slugs of its own");
}

#[tokio::test]
async fn a_workspace_has_its_own_integrations_with_a_provider_at_once() {
    let service = Service::start().await;
    let home = service.workspace_client(service.home.workspace_id).await;
    let body = json!({ "name": "Own", "ai_provider_id": "openai", "key": "sk-0123456789" });
    assert_eq!(create(&home, body).await.json()["slug"], "own");
    let shown = home.get("/integrations/own").await.json();
    let workspace = home.get(&format!("/workspaces/{}", service.home.workspace_id)).await.json();
    assert_eq!((&shown["type"], &shown["workspace_id"]), (&json!("workspace"), &workspace["slug"]));
    let provider = home.get("/providers/own").await.json();
    assert_eq!((&provider["integration_id"], &provider["status"]), (&json!("own"), &json!("active")));
    let bare =
        json!({ "name": "Bare", "ai_provider_id": "openai", "key": "sk-0123456789", "create_default_provider": false });
    assert_eq!(create(&home, bare).await.status, 200);
    assert_eq!(home.get("/providers/bare").await.status, 404);
    let named =
        json!({ "name": "Named", "ai_provider_id": "openai", "key": "sk-0123456789", "default_provider_slug": "own" });
    let taken = create(&home, named).await;
    assert_eq!(refused(&taken), (400, "AB01".into(), "default_provider_slug".into()), "{}", taken.text());
    assert_eq!(home.get("/integrations/named").await.status, 404, "nothing half-made");

    assert_eq!(home.delete("/integrations/own").await.status, 200);
    assert_eq!(home.get("/providers/own").await.status, 404, "its provider goes with it");
}

#[tokio::test]
async fn a_workspace_sees_its_own_and_what_it_was_granted_and_nothing_else() {
    let service = Service::start().await;
    let (admin, elsewhere) = (service.administrator(), service.workspace("elsewhere").await);
    let home = service.workspace_client(service.home.workspace_id).await;
    for slug in ["granted", "withheld"] {
        account(&admin, slug).await;
    }
    let body = |name: &str, workspace: Value| json!({ "name": name, "ai_provider_id": "openai", "key": "sk-0123456789", "workspace_id": workspace });
    create(&admin, body("mine", json!(service.home.workspace_id))).await;
    create(&admin, body("theirs", json!(elsewhere))).await;
    let grant = json!({ "workspaces": [{ "id": service.home.workspace_id, "enabled": true }] });
    assert_eq!(admin.put("/integrations/granted/workspaces", &grant).await.json(), json!({}));
    let slugs = async |client: &Client, query: &str| -> Vec<String> {
        let list = client.get(&format!("/integrations?{query}")).await.json();
        let mut slugs: Vec<_> = list["data"]
            .as_array()
            .unwrap_or_else(|| panic!("{list}"))
            .iter()
            .map(|one| one["slug"].as_str().unwrap().to_owned())
            .collect();
        slugs.sort_unstable();
        slugs
    };
    assert_eq!(slugs(&home, "").await, ["granted", "mine"]);
    assert_eq!(slugs(&admin, "").await, ["granted", "mine", "theirs", "withheld"]);
    assert_eq!(slugs(&admin, "workspace_id=elsewhere").await, ["theirs"]);
    assert_eq!(slugs(&admin, "type=organisation").await, ["granted", "withheld"]);
    assert_eq!(slugs(&admin, "type=workspace").await, ["mine", "theirs"]);
    assert_eq!(slugs(&admin, "search=GRANT").await, ["granted"]);
    assert_eq!(admin.get("/integrations?type=other").await.status, 400);
    for (slug, read, write) in [("granted", 200, 403), ("withheld", 404, 404), ("mine", 200, 200), ("theirs", 404, 404)]
    {
        let path = format!("/integrations/{slug}");
        assert_eq!(home.get(&path).await.status, read, "{slug}");
        assert_eq!(home.put(&path, &json!({ "description": "x" })).await.status, write, "{slug}");
        assert_eq!(home.get(&format!("{path}/models")).await.status, read, "{slug}");
    }
    let narrow = service
        .key(KeyKind::OrganisationService, &["workspace_integrations.list", "workspace_integrations.read"])
        .await;
    let narrow = service.client().with_key(&narrow.key);
    assert_eq!(slugs(&narrow, "").await, ["mine", "theirs"]);
    assert_eq!(narrow.get("/integrations/granted").await.status, 403);
}

#[tokio::test]
async fn tags_find_what_has_all_of_them() {
    let service = Service::start().await;
    let client = service.administrator();
    for (name, tags) in
        [("a", json!({ "team": "x", "env": "prod" })), ("b", json!({ "team": "x" })), ("c", json!(null))]
    {
        let body = json!({ "name": name, "ai_provider_id": "openai", "key": "sk-0123456789", "tags": tags });
        assert_eq!(create(&client, body).await.status, 200);
    }
    for (query, total) in [
        ("tags=%7B%22team%22%3A%22x%22%7D", 2),
        ("tags=%7B%22team%22%3A%22x%22%2C%22env%22%3A%22prod%22%7D", 1),
        ("tags=%7B%22team%22%3A%22y%22%7D", 0),
    ] {
        assert_eq!(client.get(&format!("/integrations?{query}")).await.json()["total"], total, "{query}");
    }
    assert_eq!(client.get("/integrations?tags=x").await.status, 400);
}
