//! Providers that an administrator set up: applications hold a gateway key alone, and the stored credential goes to
//! its own address alone.

use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

const KEY: &str = "sk-stored-and-sealed";

/// A workspace's integration with its default provider, both of this name.
async fn integrate(stack: &Stack, slug: &str) {
    let body = json!({
        "name": slug, "slug": slug, "ai_provider_id": "openai", "key": KEY,
        "workspace_id": stack.home.workspace_id.to_string(),
        "default_provider_slug": slug,
        "configurations": { "custom_host": stack.mock.url(), "openai_organization": "org-stored" },
    });
    let answer = stack.administrator().post("/integrations", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

fn application(stack: &Stack) -> Client {
    stack.anonymous().with_key(&stack.home.workspace_key)
}

fn asking(model: &str) -> Value {
    let mut body = chat("Hello");
    body["model"] = json!(model);
    body
}

async fn until_served(stack: &Stack, slug: &str) {
    let client = application(stack).with("x-gateway-provider", format!("@{slug}"));
    stack.until(slug, async || client.post("/chat/completions", &chat("Hello")).await.status == 200).await;
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_stored_provider_is_named_in_every_way_and_gets_its_own_credential() {
    let stack = Stack::start().await;
    integrate(&stack, "prod").await;
    until_served(&stack, "prod").await;
    let config = json!({ "strategy": { "mode": "single" }, "targets": [{ "provider": "@prod" }] }).to_string();
    for (what, client, model) in [
        ("header", application(&stack).with("x-gateway-provider", "@prod"), "gpt-4o"),
        ("virtual key", application(&stack).with("x-gateway-virtual-key", "prod"), "gpt-4o"),
        ("model", application(&stack), "@prod/gpt-4o"),
        ("config", application(&stack).with("x-gateway-config", config), "gpt-4o"),
        ("both", application(&stack).with("x-gateway-provider", "@prod"), "@prod/gpt-4o"),
    ] {
        let answer = client.post("/chat/completions", &asking(model)).await;
        assert_eq!(answer.status, 200, "{what} {}", answer.text());
        let sent = stack.mock.requests().pop().unwrap();
        assert_eq!(sent.headers["authorization"], format!("Bearer {KEY}"), "{what}");
        assert_eq!(sent.headers["openai-organization"], "org-stored", "{what}");
        let body: Value = serde_json::from_slice(&sent.body).unwrap();
        assert_eq!(body["model"], "gpt-4o", "{what}");
    }
    let relayed = application(&stack).with("x-gateway-provider", "@prod").get("/models").await;
    assert_eq!(relayed.status, 200, "{}", relayed.text());
    assert_eq!(stack.mock.requests().pop().unwrap().headers["authorization"], format!("Bearer {KEY}"));
}

#[tokio::test]
async fn a_stored_credential_goes_nowhere_else() {
    let stack = Stack::start().await;
    integrate(&stack, "prod").await;
    until_served(&stack, "prod").await;
    let elsewhere = Stack::start().await;
    let before = elsewhere.mock.requests().len();
    let config = json!({ "provider": "@prod", "custom_host": elsewhere.mock.url() }).to_string();
    for client in [
        application(&stack).with("x-gateway-provider", "@prod").with("x-gateway-custom-host", elsewhere.mock.url()),
        application(&stack).with("x-gateway-config", config),
    ] {
        for path in ["/chat/completions", "/elsewhere"] {
            let answer = client.post(path, &chat("Hello")).await;
            assert_eq!(code(&answer), (400, "invalid_custom_host".into()), "{path}");
        }
    }
    assert_eq!(elsewhere.mock.requests().len(), before);
}

#[tokio::test]
async fn a_provider_that_redirects_does_not_lead_a_stored_credential_elsewhere() {
    let stack = Stack::start().await;
    integrate(&stack, "prod").await;
    until_served(&stack, "prod").await;
    let elsewhere = Stack::start().await;
    let before = elsewhere.mock.requests().len();
    let location = format!("{}/chat/completions", elsewhere.mock.url());
    let client = application(&stack).with("x-gateway-provider", "@prod");
    for path in ["/chat/completions", "/elsewhere"] {
        for status in [301, 302, 303, 307, 308] {
            stack.mock.script(json!([{ "status": status, "headers": { "location": location } }])).unwrap();
            let answer = client.post(path, &chat("Hello")).await;
            assert_eq!((answer.status.as_u16(), answer.header("location")), (status, &*location), "{path}");
        }
    }
    for status in [302, 307] {
        stack.mock.script(json!([{ "status": status, "headers": { "location": location } }])).unwrap();
        assert_eq!(client.get("/models").await.status.as_u16(), status);
    }
    assert_eq!(elsewhere.mock.requests().len(), before);
}

#[tokio::test]
async fn a_header_of_a_model_alone_goes_with_that_model_alone() {
    let stack = Stack::start().await;
    integrate(&stack, "prod").await;
    until_served(&stack, "prod").await;
    let own = json!({ "models": [{ "slug": "house-1", "enabled": true, "is_custom": true,
        "configurations": { "custom_headers": { "x-tuned": "sealed-value" } } }] });
    let answer = stack.administrator().put("/integrations/prod/models", &own).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let client = application(&stack);
    let sent = async |model: &str| {
        let answer = client.post("/chat/completions", &asking(model)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        stack.mock.requests().pop().unwrap()
    };
    stack.until("the model's header", async || sent("@prod/house-1").await.header("x-tuned") == "sealed-value").await;
    assert_eq!(sent("@prod/house-1").await.header("authorization"), format!("Bearer {KEY}"));
    assert_eq!(sent("@prod/gpt-4o").await.header("x-tuned"), "");
}

#[tokio::test]
async fn an_older_client_names_its_provider_in_the_mode() {
    let stack = Stack::start().await;
    let client = application(&stack).with("x-gateway-mode", "proxy openai").with("authorization", "Bearer sk-own");
    let client = client.with("x-gateway-custom-host", stack.mock.url());
    for path in ["/chat/completions", "/embeddings"] {
        let answer = client.post(path, &json!({ "model": "m", "messages": [], "input": "a" })).await;
        assert_eq!(answer.status, 200, "{path} {}", answer.text());
        assert_eq!(answer.header("x-gateway-provider"), "openai");
        assert_eq!(stack.mock.requests().pop().unwrap().header("authorization"), "Bearer sk-own");
    }
}

#[tokio::test]
async fn a_model_that_is_switched_off_is_403_and_another_tenant_has_no_such_provider() {
    let stack = Stack::start().await;
    integrate(&stack, "prod").await;
    until_served(&stack, "prod").await;
    let off = json!({ "models": [{ "slug": "gpt-4o", "enabled": false }] });
    let answer = stack.administrator().put("/integrations/prod/models", &off).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let client = application(&stack).with("x-gateway-provider", "@prod");
    stack
        .until("the model is off", async || {
            code(&client.post("/chat/completions", &asking("gpt-4o")).await) == (403, "model_not_allowed".into())
        })
        .await;
    assert_eq!(code(&application(&stack).post("/chat/completions", &asking("@prod/gpt-4o")).await).0, 403);
    assert_eq!(client.post("/chat/completions", &asking("gpt-4o-mini")).await.status, 200);
    let other = stack.organisation().await;
    stack.until_known(&other.workspace_key).await;
    let foreign = stack.anonymous().with_key(&other.workspace_key).with("x-gateway-provider", "@prod");
    assert_eq!(code(&foreign.post("/chat/completions", &chat("Hello")).await), (400, "invalid_provider".into()));
    assert_eq!(stack.administrator().delete("/integrations/prod").await.status, 200);
    stack
        .until("the provider is gone", async || client.post("/chat/completions", &chat("Hello")).await.status == 400)
        .await;
}
