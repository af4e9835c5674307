//! Headers that are meant for one provider: it is sent them under its own names, and nobody else is.

use harness::{Client, Stack, chat};
use serde_json::json;

fn at(stack: &Stack, provider: &str) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    client.with("x-gateway-provider", provider).with("x-gateway-custom-host", stack.mock.origin())
}

#[tokio::test]
async fn a_provider_is_sent_what_is_meant_for_it_under_its_own_names() {
    let stack = Stack::start().await;
    let image = json!({ "model": "core", "prompt": "a cat" });
    for (provider, path, body, header, value, name) in [
        ("stability-ai", "/images/generations", &image, "stability-client-id", "app", "stability-client-id"),
        ("stability-ai", "/images/generations", &image, "stability-client-version", "1.2", "stability-client-version"),
        ("azure-ai", "/chat/completions", &chat("Hello"), "azure-extra-params", "pass-through", "extra-parameters"),
        ("azure-ai", "/chat/completions", &chat("Hello"), "azure-endpoint-name", "blue", "azureml-model-deployment"),
    ] {
        stack.mock.reset();
        let client = at(&stack, provider).with(&format!("x-gateway-{header}"), value);
        let client = client.with("x-gateway-azure-foundry-url", stack.mock.origin());
        let answer = client.post(path, body).await;
        let sent = stack.mock.requests();
        assert_eq!(sent[0].header(name), value, "{provider} {header}: {}", answer.text());
        let config =
            json!({ "provider": provider, "custom_host": stack.mock.origin(), header.replace('-', "_"): value });
        stack.mock.reset();
        let configured = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
        configured.with("x-gateway-config", config.to_string()).post(path, body).await;
        assert_eq!(stack.mock.requests()[0].header(name), value, "{provider} {header} in a config");
    }
    stack.mock.reset();
    let other = at(&stack, "openai").with("x-gateway-stability-client-id", "app");
    assert_eq!(other.post("/chat/completions", &chat("Hello")).await.status, 200);
    assert_eq!(stack.mock.requests()[0].header("stability-client-id"), "", "it is another provider's");
}

#[tokio::test]
async fn mistral_is_asked_to_fill_in_the_middle_where_the_caller_says_so() {
    let stack = Stack::start().await;
    let body = json!({ "model": "codestral", "prompt": "def f(", "suffix": "return a" });
    let by_header = at(&stack, "mistral-ai").with("x-gateway-mistral-fim-completion", "true");
    let config =
        json!({ "provider": "mistral-ai", "custom_host": stack.mock.origin(), "mistral_fim_completion": true });
    let by_config = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    let by_config = by_config.with("x-gateway-config", config.to_string());
    for (client, path) in [
        (by_header, "/fim/completions"),
        (by_config, "/fim/completions"),
        (at(&stack, "mistral-ai"), "/chat/completions"),
    ] {
        stack.mock.reset();
        client.post("/chat/completions", &body).await;
        assert_eq!(stack.mock.requests()[0].path, path);
    }
}

#[tokio::test]
async fn what_a_provider_says_itself_is_sent_before_what_its_integration_says() {
    let stack = Stack::start().await;
    let administrator = stack.administrator();
    let workspace = stack.home.workspace_id.to_string();
    let integration = json!({
        "name": "main", "slug": "main", "ai_provider_id": "openai", "key": "sk-stored", "workspace_id": workspace,
        "default_provider_slug": "main", "configurations": {
            "custom_host": stack.mock.url(), "openai_organization": "org-main", "openai_project": "proj-main",
            "custom_headers": { "x-team": "main", "x-both": "main" },
        },
    });
    let made = administrator.post("/integrations", &integration).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let own = json!({
        "name": "own", "slug": "own", "integration_id": "main", "workspace_id": workspace,
        "model_config": { "openai_project": "proj-own", "custom_headers": { "x-both": "sealed-canary" } },
    });
    let made = administrator.post("/providers", &own).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let row = stack.database.client().await;
    let row = row.query_one("SELECT providers::text FROM providers WHERE slug = 'own'", &[]).await.unwrap();
    let row: String = row.get(0);
    assert!(row.contains("proj-own") && !row.contains("sealed-canary"), "{row}");
    let asked = async |slug: &str| {
        let client =
            stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", format!("@{slug}"));
        stack
            .until("the provider is known", async || {
                client.post("/chat/completions", &chat("Hello")).await.status == 200
            })
            .await;
        let sent = stack.mock.requests().pop().unwrap();
        ["authorization", "openai-organization", "openai-project", "x-team", "x-both"]
            .map(|name| sent.header(name).to_owned())
    };
    assert_eq!(asked("main").await, ["Bearer sk-stored", "org-main", "proj-main", "main", "main"]);
    assert_eq!(asked("own").await, ["Bearer sk-stored", "org-main", "proj-own", "main", "sealed-canary"]);
    let change = json!({ "workspace_id": workspace, "model_config": { "custom_headers": { "x-both": "second" } } });
    assert_eq!(administrator.put("/providers/own", &change).await.status, 200);
    stack.until("the change is known", async || asked("own").await[4] == "second").await;
    assert_eq!(asked("own").await[2], "proj-main", "they replace the former ones");
    // What stands in a row from before is not followed to another place.
    let db = stack.database.client().await;
    let stale = json!({ "custom_host": "https://evil.example", "openai_project": "last" });
    db.execute("UPDATE providers SET model_config = $1, sealed = NULL WHERE slug = 'own'", &[&stale]).await.unwrap();
    stack.until("the row is known", async || asked("own").await[2] == "last").await;
    assert!(!stack.proxy.log().contains("sealed-canary"));
}
