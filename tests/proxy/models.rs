//! Which models there are: the workspace's catalogue, and a provider's own list where a provider is named.

use crate::journal::calls::{rows, status, text};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

async fn integrate(stack: &Stack, slug: &str) {
    let body = json!({
        "name": slug, "slug": slug, "ai_provider_id": "openai", "key": "sk-stored", "default_provider_slug": slug,
        "workspace_id": stack.home.workspace_id.to_string(), "configurations": { "custom_host": stack.mock.url() },
    });
    let answer = stack.administrator().post("/integrations", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn application(stack: &Stack) -> Client {
    stack.anonymous().with_key(&stack.home.workspace_key)
}

fn ids(answer: &Answer) -> Vec<String> {
    let body = answer.json();
    let data = body["data"].as_array().unwrap_or_else(|| panic!("{body}"));
    data.iter().map(|model| model["id"].as_str().unwrap().to_owned()).collect()
}

async fn until_listed(stack: &Stack, id: &str, is_listed: bool) {
    let client = application(stack);
    stack.until(id, async || ids(&client.get("/models").await).contains(&id.to_owned()) == is_listed).await;
}

#[tokio::test]
async fn a_workspace_lists_the_models_it_may_ask_for_and_no_others() {
    let stack = Stack::start().await;
    let client = application(&stack);
    assert_eq!(client.get("/models").await.json(), json!({ "object": "list", "total": 0, "data": [] }));
    integrate(&stack, "prod").await;
    until_listed(&stack, "@prod/gpt-4o", true).await;
    let all = client.get("/models").await;
    assert_eq!(all.json()["total"].as_u64(), Some(ids(&all).len() as u64));
    let some = client.get("/models?limit=2&offset=1&sort=id&order=asc").await;
    assert_eq!(ids(&some), ids(&all)[1..3]);
    assert_eq!(some.json()["total"], all.json()["total"]);
    assert_eq!(client.get("/models?ai_service=anthropic").await.json()["total"], 0);
    assert_eq!(client.get("/models?provider=prod").await.json()["total"], all.json()["total"]);
    let bad = client.get("/models?limit=none").await;
    assert_eq!((bad.status.as_u16(), bad.json()["error"]["code"].as_str()), (400, Some("invalid_query")));
    for path in ["/models/@prod/gpt-4o", "/models/%40prod%2Fgpt-4o"] {
        let one = client.get(path).await;
        let shown = one.json();
        assert_eq!((one.status.as_u16(), shown["id"].as_str()), (200, Some("@prod/gpt-4o")), "{path}");
        assert_eq!((shown["object"].as_str(), shown["owned_by"].as_str()), (Some("model"), Some("openai")), "{path}");
    }
    let mut body = chat("Hello");
    body["model"] = json!("@prod/gpt-4o");
    assert_eq!(client.post("/chat/completions", &body).await.status, 200, "what is listed can be asked");
    let off = json!({ "models": [{ "slug": "gpt-4o", "enabled": false }] });
    assert_eq!(stack.administrator().put("/integrations/prod/models", &off).await.status, 200);
    until_listed(&stack, "@prod/gpt-4o", false).await;
    let gone = client.get("/models/@prod/gpt-4o").await;
    assert_eq!((gone.status.as_u16(), gone.json()["error"]["code"].as_str()), (404, Some("model_not_found")));
    let other = stack.organisation().await;
    let foreign = stack.anonymous().with_key(&other.workspace_key);
    assert_eq!(foreign.get("/models").await.json()["total"], 0, "another tenant has none of them");
    assert_eq!(foreign.get("/models/@prod/o1").await.status, 404);
}

#[tokio::test]
async fn a_named_provider_is_asked_itself_unless_the_catalogue_is_wanted() {
    let stack = Stack::start().await;
    integrate(&stack, "prod").await;
    integrate(&stack, "second").await;
    until_listed(&stack, "@second/gpt-4o", true).await;
    let config = json!({ "provider": "@prod" }).to_string();
    for client in [
        application(&stack).with("x-gateway-provider", "@prod"),
        application(&stack).with("x-gateway-config", config.clone()),
    ] {
        let asked = client.get("/models").await;
        assert_eq!(asked.status, 200, "{}", asked.text());
        assert_eq!(asked.json()["provider"], "openai");
        assert!(ids(&asked).contains(&"gpt-4o-mini".to_owned()), "the provider's own names");
        assert_eq!(stack.mock.requests().pop().unwrap().header("authorization"), "Bearer sk-stored");
        assert_eq!(asked.header("x-gateway-provider"), "openai");
        let wanted = client.with("x-gateway-fetch-integrated-models", "true").get("/models").await;
        let wanted = ids(&wanted);
        assert!(!wanted.is_empty() && wanted.iter().all(|id| id.starts_with("@prod/")), "{wanted:?}");
    }
    stack.mock.script(json!([{ "status": 401 }])).unwrap();
    let refused = application(&stack).with("x-gateway-provider", "@prod").get("/models").await;
    assert_eq!(refused.status, 401, "the provider's own refusal: {}", refused.text());
    let unknown = application(&stack).with("x-gateway-provider", "@nobody").get("/models").await;
    assert_eq!(unknown.status, 400);
}

#[tokio::test]
async fn a_key_that_may_list_or_ask_sees_the_models_and_no_other_does() {
    let stack = Stack::start().await;
    for (scopes, lists, asks) in
        [(&["models.list"][..], 200, 403), (&["completions.write"][..], 200, 400), (&["logs.view"][..], 403, 403)]
    {
        let client = stack.anonymous().with_key(&stack.key(scopes).await);
        assert_eq!(client.get("/models").await.status, lists, "{scopes:?}");
        let body: Value = chat("Hello");
        assert_eq!(client.post("/chat/completions", &body).await.status, asks, "{scopes:?}");
    }
}

#[tokio::test]
async fn a_providers_own_list_is_logged_and_the_workspaces_is_not() {
    let stack = Stack::start().await;
    let client = stack.client();
    assert_eq!(application(&stack).get("/models").await.status, 200);
    let mut ids = Vec::new();
    for path in ["/models", "/models/gpt-4o"] {
        let answer = client.get(path).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        ids.push(answer.header("x-gateway-request-id").to_owned());
    }
    let rows = rows(&stack, 2).await;
    for (row, id) in rows.iter().zip(&ids) {
        assert_eq!(row.get::<_, uuid::Uuid>("id").to_string(), *id);
        assert_eq!((text(row, "ai_org"), status(row)), (Some("openai"), 200));
        let cost: Option<rust_decimal::Decimal> = row.get("cost");
        assert!(cost.unwrap_or_default().is_zero(), "a list costs nothing");
    }
}
