//! Configs that an administrator saved: named by a request, by its key or by its workspace, and seen by nobody else.

use super::target;
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

pub async fn save(stack: &Stack, name: &str, config: Value, more: Value) -> String {
    let mut body = json!({ "name": name, "config": config, "workspace_id": stack.home.workspace_id.to_string() });
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    let answer = stack.administrator().post("/configs", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["slug"].as_str().unwrap().to_owned()
}

async fn until_routed(stack: &Stack, client: &Client, index: &str) {
    stack
        .until(index, async || {
            let answer = client.post("/chat/completions", &chat("Hello")).await;
            answer.status == 200 && answer.header("x-gateway-last-used-option-index") == index
        })
        .await;
}

fn single(stack: &Stack, depth: usize) -> Value {
    let inner = target(stack, json!({}));
    (0..depth).fold(inner, |inner, _| json!({ "strategy": { "mode": "single" }, "targets": [inner] }))
}

#[tokio::test]
async fn a_saved_config_is_used_by_its_name_and_follows_its_changes() {
    let stack = Stack::start().await;
    let slug = save(&stack, "one", single(&stack, 1), json!({})).await;
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", &*slug);
    until_routed(&stack, &client, "config.targets[0]").await;
    let changed = json!({ "config": single(&stack, 2) });
    assert_eq!(stack.administrator().put(&format!("/configs/{slug}"), &changed).await.status, 200);
    until_routed(&stack, &client, "config.targets[0].targets[0]").await;
    assert_eq!(stack.administrator().delete(&format!("/configs/{slug}")).await.status, 200);
    stack
        .until("the config is gone", async || client.post("/chat/completions", &chat("Hello")).await.status == 400)
        .await;
}

#[tokio::test]
async fn a_config_of_another_tenant_does_not_exist() {
    let stack = Stack::start().await;
    let slug = save(&stack, "private", single(&stack, 1), json!({})).await;
    let own = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", &*slug);
    until_routed(&stack, &own, "config.targets[0]").await;
    let other = stack.organisation().await;
    stack.until_known(&other.workspace_key).await;
    let foreign = stack.anonymous().with_key(&other.workspace_key).with("x-gateway-config", &*slug);
    let answer = foreign.post("/chat/completions", &chat("Hello")).await;
    assert_eq!((answer.status.as_u16(), answer.json()["error"]["code"].as_str()), (400, Some("AB01_INVALID_CONFIG")));
}

#[tokio::test]
async fn a_workspaces_default_config_serves_requests_that_name_none() {
    let stack = Stack::start().await;
    save(&stack, "default", single(&stack, 1), json!({ "isDefault": 1 })).await;
    let client = stack.anonymous().with_key(&stack.home.workspace_key);
    until_routed(&stack, &client, "config.targets[0]").await;
    let own = client.with("x-gateway-config", target(&stack, json!({})).to_string());
    let answer = own.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.header("x-gateway-last-used-option-index"), "config", "a request's own config replaces it");
}

#[tokio::test]
async fn a_saved_configs_credential_goes_to_its_own_provider_and_address_alone() {
    let stack = Stack::start().await;
    let bound = save(&stack, "bound", target(&stack, json!({ "api_key": "sk-saved" })), json!({})).await;
    let unbound =
        save(&stack, "unbound", json!({ "api_key": "sk-saved", "retry": { "attempts": 1 } }), json!({})).await;
    let application = stack.anonymous().with_key(&stack.home.workspace_key);
    let with = |config: &str| application.with("x-gateway-config", config);
    until_routed(&stack, &with(&bound), "config").await;
    assert_eq!(stack.mock.requests().pop().unwrap().headers["authorization"], "Bearer sk-saved");
    let elsewhere = stack.mock.url().replace("127.0.0.1", "localhost");
    let same = format!("{}/more", stack.mock.url());
    stack
        .until("the other config is known", async || {
            let answer = with(&unbound).post("/chat/completions", &chat("Hello")).await;
            answer.json()["error"]["code"] == "missing_provider"
        })
        .await;
    let before = stack.mock.requests().len();
    let named = with(&unbound).with("x-gateway-provider", "openai");
    for (client, code) in [
        (with(&bound).with("x-gateway-custom-host", &*elsewhere), "invalid_custom_host"),
        (named.with("x-gateway-custom-host", &*elsewhere), "AB01_INVALID_CONFIG"),
        (named.with("x-gateway-custom-host", stack.mock.url()), "AB01_INVALID_CONFIG"),
    ] {
        for path in ["/chat/completions", "/elsewhere"] {
            let answer = client.post(path, &chat("Hello")).await;
            let told = answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned();
            assert_eq!((answer.status.as_u16(), &*told), (400, code), "{path}: {}", answer.text());
        }
    }
    assert_eq!(stack.mock.requests().len(), before, "nobody was asked");
    let answer = with(&bound).with("x-gateway-custom-host", &*same).post("/elsewhere", &chat("Hello")).await;
    assert_eq!(stack.mock.requests().len(), before + 1, "another path of its own address is no other address");
    assert_ne!(answer.status, 400, "{}", answer.text());
}
