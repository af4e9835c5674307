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
