//! Azure as applications meet it: dated versions and `v1`, what is kept there, Claude, and what a call is reserved at when the
//! account has no deployment of the model that was asked for.

use crate::families::application;
use crate::limits::{limited_key, patient};
use bench::mock::Recorded;
use harness::client::whole;
use harness::{Client, Stack, chat};
use http::Method;
use serde_json::{Value, json};

fn client(stack: &Stack, provider: &str) -> Client {
    let client = application(stack).with("authorization", "Bearer sk-own").with("x-gateway-provider", provider);
    client.with("x-gateway-custom-host", stack.mock.origin())
}

fn last(stack: &Stack) -> Recorded {
    stack.mock.requests().pop().expect("the provider was asked")
}

fn place(request: &Recorded) -> String {
    request.query.as_deref().map_or_else(|| request.path.clone(), |query| format!("{}?{query}", request.path))
}

fn sent(request: &Recorded) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

#[tokio::test]
async fn v1_has_openais_paths_and_names_the_deployment_in_the_body() {
    let stack = Stack::start().await;
    let v1 = client(&stack, "azure-openai").with("x-gateway-azure-api-version", "v1");
    let deployed = v1.with("x-gateway-azure-deployment-id", "mine");
    for (client, model) in [(&v1, "gpt-4o-mini"), (&deployed, "mine")] {
        for (path, body) in [
            ("/chat/completions", chat("Hello")),
            ("/embeddings", json!({ "model": "gpt-4o-mini", "input": "Hello" })),
            ("/responses", json!({ "model": "gpt-4o-mini", "input": "Hello" })),
        ] {
            let answer = client.post(path, &body).await;
            let arrived = last(&stack);
            assert_eq!(place(&arrived), format!("/v1{path}"), "{}", answer.text());
            assert_eq!((arrived.header("api-key"), &sent(&arrived)["model"]), ("sk-own", &json!(model)), "{path}");
            assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        }
        let message =
            json!({ "model": "gpt-4o-mini", "max_tokens": 9, "messages": [{ "role": "user", "content": "Hi" }] });
        client.post("/messages", &message).await;
        let arrived = last(&stack);
        assert_eq!(
            (&*place(&arrived), &sent(&arrived)["model"]),
            ("/v1/chat/completions", &json!(model)),
            "translated"
        );
    }
    for path in ["/files?purpose=batch", "/files/f-1/content", "/batches/b-1", "/fine_tuning/jobs"] {
        deployed.get(path).await;
        assert_eq!(place(&last(&stack)), format!("/v1{path}"));
    }
    deployed.get("/realtime?model=gpt-4o-mini").await;
    assert_eq!(place(&last(&stack)), "/v1/realtime?model=mine");
}

#[tokio::test]
async fn what_a_resource_keeps_is_asked_with_the_version_of_the_api() {
    let stack = Stack::start().await;
    let dated = client(&stack, "azure-openai").with("x-gateway-azure-api-version", "2025-01-01");
    for (path, expected) in [
        ("/files?purpose=batch", "/files?api-version=2025-01-01&purpose=batch"),
        ("/files/f-1/content", "/files/f-1/content?api-version=2025-01-01"),
        ("/batches?api-version=2024-07-01&limit=2", "/batches?api-version=2024-07-01&limit=2"),
        ("/fine_tuning/jobs/j-1/events", "/fine_tuning/jobs/j-1/events?api-version=2025-01-01"),
        ("/realtime?model=gpt-4o-realtime", "/realtime?api-version=2025-01-01&deployment=gpt-4o-realtime"),
    ] {
        dated.get(path).await;
        assert_eq!((&*place(&last(&stack)), last(&stack).header("api-key")), (expected, "sk-own"));
    }
    let form = "--xYz\r\nContent-Disposition: form-data; name=\"file\"; filename=\"f\"\r\n\r\n{}\r\n--xYz--\r\n";
    let upload = dated.request(Method::POST, "/files").header("content-type", crate::families::FORM_TYPE).body(form);
    assert_eq!(whole(upload).await.status, 200);
    assert_eq!((&*place(&last(&stack)), &last(&stack).body[..]), ("/files?api-version=2025-01-01", form.as_bytes()));
    let foundry = client(&stack, "azure-ai");
    for path in ["/files/f-1", "/batches"] {
        foundry.get(path).await;
        assert_eq!(
            (place(&last(&stack)), last(&stack).header("authorization")),
            (format!("/v1{path}"), "Bearer sk-own")
        );
    }
}

#[tokio::test]
async fn claude_on_azure_is_asked_in_its_own_words_by_its_name_or_by_its_address() {
    let stack = Stack::start().await;
    let mut body = chat("Hello");
    let foundry = client(&stack, "azure-ai");
    let answer = foundry.post("/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(place(&last(&stack)), "/chat/completions?api-version=2024-05-01-preview");
    let at_claudes = foundry.with("x-gateway-azure-foundry-url", "https://r.services.ai.azure.com/anthropic/");
    for (client, model) in [(&foundry, "claude-sonnet-4-5"), (&at_claudes, "my-deployment")] {
        body["model"] = json!(model);
        let answer = client.post("/chat/completions", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["object"], "chat.completion");
        let arrived = last(&stack);
        assert_eq!((&*place(&arrived), arrived.header("x-api-key")), ("/v1/messages", "sk-own"), "{model}");
        assert_eq!((arrived.header("authorization"), arrived.header("anthropic-version")), ("", "2023-06-01"));
        assert_eq!((arrived.header("extra-parameters"), &sent(&arrived)["model"]), ("", &json!(model)));
        let message = json!({ "model": model, "max_tokens": 9, "messages": [{ "role": "user", "content": "Hi" }] });
        assert_eq!(client.post("/messages", &message).await.json()["type"], "message");
        assert_eq!(sent(&last(&stack)), message, "the caller's own words");
    }
}

#[tokio::test]
async fn responses_of_foundry_are_translated_or_asked_for_as_they_are() {
    let stack = Stack::start().await;
    let foundry = client(&stack, "azure-ai");
    let body = json!({ "model": "gpt-4o-mini", "input": "Hello" });
    let config = |said: Value| {
        let config = json!({ "provider": "azure-ai", "api_key": "sk-own", "custom_host": stack.mock.origin(),
            "provider_responses_proxy": said });
        application(&stack).with("x-gateway-config", config.to_string())
    };
    for (client, is_own) in [
        (foundry.clone(), false),
        (foundry.with("x-gateway-provider-responses-proxy", "true"), true),
        (config(json!(true)), true),
        (config(json!("true")), true),
        (config(json!(false)), false),
    ] {
        let answer = client.post("/responses", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let path = if is_own { "/v1/responses" } else { "/chat/completions" };
        assert_eq!(last(&stack).path, path);
        assert_eq!(sent(&last(&stack)) == body, is_own, "{}", String::from_utf8_lossy(&last(&stack).body));
        assert_eq!(answer.header("x-gateway-warnings"), "");
    }
}

#[tokio::test]
async fn a_strict_budget_reserves_what_the_deployment_that_answers_costs() {
    let stack = patient().await;
    let configurations = json!({ "custom_host": stack.mock.origin(), "azure_resource_name": "acme",
        "azure_auth_mode": "default", "azure_deployment_config": [
            { "azure_deployment_name": "small", "azure_api_version": "2024-10-21", "azure_model_slug": "gpt-4o-mini" },
            { "azure_deployment_name": "dear", "azure_api_version": "2024-10-21", "azure_model_slug": "o1", "is_default": true },
        ] });
    let body = json!({ "name": "az", "slug": "az", "ai_provider_id": "azure-openai", "key": "k",
        "workspace_id": stack.home.workspace_id.to_string(), "default_provider_slug": "az",
        "configurations": configurations });
    let made = stack.administrator().post("/integrations", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    // 20,000 tokens of the dear one are 120 cents, of the small one 1.2.
    let mut asked = chat("Hello");
    asked["max_tokens"] = json!(20_000);
    let (key, _) = limited_key(&stack, json!({ "usage_limits": { "credit_limit": 1, "strict": true } })).await;
    let client = stack.anonymous().with_key(&key).with("x-gateway-provider", "@az");
    stack.until("the account is known", async || client.post("/chat/completions", &asked).await.status == 200).await;
    assert_eq!(last(&stack).path, "/deployments/small/chat/completions");
    for (model, status) in [("gpt-4o", 412), ("o1", 412), ("a-model-nobody-knows", 412), ("gpt-4o-mini", 200)] {
        asked["model"] = json!(model);
        let answer = client.post("/chat/completions", &asked).await;
        assert_eq!(answer.status, status, "{model}: {}", answer.text());
    }
    asked["model"] = json!("a-model-nobody-knows");
    asked["max_tokens"] = json!(10);
    let answer = client.post("/chat/completions", &asked).await;
    assert_eq!(answer.status, 200, "what is called has a price: {}", answer.text());
    assert_eq!(last(&stack).path, "/deployments/dear/chat/completions");
}
