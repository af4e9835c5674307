//! What a workspace may use of an integration, whichever of its providers is asked: per attempt, so that a fallback goes on
//! after it.

use super::{patient, requests};
use crate::families::{KEY, application};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};
use uuid::Uuid;

/// An integration of the organisation, which the workspace may use by a provider of the same name.
async fn integrate(stack: &Stack, slug: &str) {
    let body = json!({
        "name": slug, "slug": slug, "ai_provider_id": "openai", "key": KEY,
        "configurations": { "custom_host": stack.mock.url() },
    });
    let answer = stack.administrator().post("/integrations", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    grant(stack, slug, stack.home.workspace_id, json!({ "default_provider_slug": slug })).await;
    let client = by(&application(stack), slug);
    stack.until(slug, async || client.get("/anything").await.status == 200).await;
}

async fn grant(stack: &Stack, slug: &str, workspace: Uuid, more: Value) {
    let mut one = json!({ "id": workspace, "enabled": true });
    one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let body = json!({ "workspaces": [one] });
    let answer = stack.administrator().put(&format!("/integrations/{slug}/workspaces"), &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn by(client: &Client, slug: &str) -> Client {
    client.with("x-gateway-provider", format!("@{slug}"))
}

async fn ask(client: &Client) -> Answer {
    client.post("/chat/completions", &chat("Hello")).await
}

fn fallback() -> String {
    json!({ "strategy": { "mode": "fallback", "on_status_codes": [412, 429] },
            "targets": [{ "provider": "@first" }, { "provider": "@second" }] })
    .to_string()
}

async fn goes_on_with_the_second(stack: &Stack) {
    let client = application(stack).with("x-gateway-config", fallback());
    for path in ["/chat/completions", "/assistants"] {
        let answer = client.post(path, &chat("Hello")).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{path}");
    }
}

#[tokio::test]
async fn a_workspace_at_its_rate_of_an_integration_goes_on_with_another() {
    let stack = patient().await;
    integrate(&stack, "first").await;
    integrate(&stack, "second").await;
    let elsewhere = stack.administrator().post("/admin/workspaces", &json!({ "name": "Elsewhere" })).await.json();
    let elsewhere: Uuid = elsewhere["id"].as_str().unwrap().parse().unwrap();
    grant(&stack, "first", elsewhere, json!({ "default_provider_slug": "first" })).await;
    let sibling = json!({ "name": "sibling", "slug": "sibling", "integration_id": "first" });
    let answer = application(&stack).post("/providers", &sibling).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    grant(&stack, "first", stack.home.workspace_id, json!({ "rate_limits": requests("rpd", 2) })).await;
    let direct = by(&application(&stack), "first");
    stack.until("the limit is known", async || ask(&direct).await.status == 429).await;
    let refused = ask(&by(&application(&stack), "sibling")).await;
    assert_eq!(refused.status, 429, "all providers of the integration together: {}", refused.text());
    assert_eq!(refused.header("x-gateway-ratelimit-scope"), "integration");
    assert!(refused.text().contains("the integration `first` in this workspace"), "{}", refused.text());
    goes_on_with_the_second(&stack).await;
    let key = json!({ "name": "k", "workspace_id": elsewhere, "scopes": ["completions.write", "models.list"] });
    let key = stack.administrator().post("/api-keys/workspace/service", &key).await.json();
    let key = key["key"].as_str().unwrap();
    stack.until_known(key).await;
    for _ in 0..3 {
        let answer = ask(&by(&stack.anonymous().with_key(key), "first")).await;
        assert_eq!(answer.status, 200, "another workspace's part is its own: {}", answer.text());
    }
}

#[tokio::test]
async fn a_workspace_that_has_used_its_part_of_an_integration_up_goes_on_with_another() {
    let stack = patient().await;
    integrate(&stack, "first").await;
    integrate(&stack, "second").await;
    let budget = |most: u64| json!({ "usage_limits": { "type": "tokens", "credit_limit": most } });
    grant(&stack, "first", stack.home.workspace_id, budget(1)).await;
    let direct = by(&application(&stack), "first");
    stack.until("the limit is known and used up", async || ask(&direct).await.status == 412).await;
    let refused = ask(&direct).await;
    assert!(refused.text().contains("the integration `first` in this workspace"), "{}", refused.text());
    goes_on_with_the_second(&stack).await;
    // One call was let pass when nothing was used; the mock counts each alike.
    let used = ask(&by(&application(&stack), "second")).await.json()["usage"]["total_tokens"].as_f64();
    let shown = async || {
        let shown = stack.administrator().get("/integrations/first/workspaces").await.json();
        shown["workspaces"][0]["usage_limits"][0]["current_usage"].as_f64() == used
    };
    stack.until("what was used is shown", shown).await;
    grant(&stack, "first", stack.home.workspace_id, budget(1_000_000)).await;
    stack.until("a raised limit is heeded", async || ask(&direct).await.status == 200).await;
}
