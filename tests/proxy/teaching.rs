//! Errors that teach: each request that left a newcomer puzzled, and the answer that now says what was meant.

use crate::routing::{ask, client, target};
use harness::client::whole;
use harness::{Client, Stack, chat};
use http::Method;
use serde_json::{Value, json};

fn message(body: &Value) -> &str {
    let found = body.pointer("/error/message").or(body.pointer("/message"));
    found.and_then(Value::as_str).unwrap_or_else(|| panic!("no message in {body}"))
}

#[tokio::test]
async fn a_path_that_is_nearly_an_operation_is_told_which_one() {
    let stack = Stack::start().await;
    let workspace = stack.anonymous().with_key(&stack.home.workspace_key);
    for (client, path, meant) in [
        // It said that the key needs completions.write.
        (stack.administrator(), "/workspace", "GET /v1/workspaces"),
        (stack.administrator(), "/apikeys", "GET /v1/api-keys"),
        (stack.administrator(), "/users", "GET /v1/admin/users"),
        (stack.administrator(), "/organization", "GET /v1/admin/organisation"),
        (workspace.clone(), "/config", "GET /v1/configs"),
        (workspace.clone(), "/v1/models", "GET /v1/models"),
    ] {
        let answer = client.get(path).await;
        let body = answer.json();
        assert_eq!((answer.status.as_u16(), body["error"]["code"].as_str()), (404, Some("not_found")), "{path} {body}");
        assert!(message(&body).contains(&format!("did you mean {meant}?")), "{path}: {body}");
    }
    assert_eq!(stack.anonymous().get("/workspace").await.status, 401, "a stranger learns nothing of the paths");
    assert_eq!(stack.anonymous().with_key("pk_wrong").get("/workspace").await.status, 401);
    // With a provider it is the provider's path, whatever it looks like.
    stack.client().get("/workspace").await;
    let asked: Vec<String> = stack.mock.requests().into_iter().map(|request| request.path).collect();
    assert!(asked.len() == 1 && asked[0].ends_with("/workspace"), "{asked:?}");
}

#[tokio::test]
async fn a_missing_and_a_doubled_version_are_told_apart() {
    let stack = Stack::start().await;
    let root = Client::new(&format!("http://127.0.0.1:{}", stack.proxy_port)).with_key(&stack.home.admin_key);
    for (method, path, meant) in [
        (Method::POST, "/chat/completions", "POST /v1/chat/completions?"),
        (Method::GET, "/models", "GET /v1/models?"),
        (Method::POST, "/api-keys", "POST /v1/api-keys/"),
        (Method::GET, "/admin/workspaces", "GET /v1/admin/workspaces?"),
    ] {
        let answer = whole(root.request(method, path)).await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(message(&answer.json()).contains(&format!("did you mean {meant}")), "{path}: {}", answer.text());
    }
    let nowhere = whole(root.request(Method::GET, "/favicon.ico")).await;
    assert_eq!((nowhere.status.as_u16(), message(&nowhere.json())), (404, "Not Found: the API is under /v1"));

    let lost = stack.anonymous().with_key(&stack.home.workspace_key).post("/v1/chat/completions", &chat("Hello")).await;
    assert_eq!(lost.status, 404);
    assert!(message(&lost.json()).contains("/v1 twice"), "{}", lost.text());
    // Whoever names a provider has the call passed on, and is told beside its answer.
    let passed = stack.client().post("/v1/chat/completions", &chat("Hello")).await;
    assert!(passed.header("x-gateway-warnings").contains("/v1 twice"), "{:?}", passed.headers);
}

#[tokio::test]
async fn a_key_that_was_read_as_the_providers_is_said_to_be() {
    let stack = Stack::start().await;
    let client = stack.anonymous().with("authorization", format!("Bearer {}", stack.home.workspace_key));
    let answer = client.with("x-gateway-provider", "openai").post("/chat/completions", &chat("Hello")).await;
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), body["error"]["code"].as_str()), (401, Some("missing_api_key")));
    assert!(message(&body).contains("Authorization was read as that provider's own key"), "{body}");
    assert!(message(&body).contains("`openai`") && message(&body).contains("x-gateway-api-key"), "{body}");
    assert!(!body.to_string().contains(&stack.home.workspace_key), "a key is never repeated");
    let without =
        stack.anonymous().with("x-gateway-provider", "openai").post("/chat/completions", &chat("Hello")).await;
    assert!(message(&without.json()).contains("no API key was sent"), "{}", without.text());
}

#[tokio::test]
async fn a_provider_without_an_address_and_one_that_nobody_knows_are_told_what_is_missing() {
    let stack = Stack::start().await;
    let named = |provider: &str| {
        let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", provider);
        client.with("authorization", "Bearer sk-mock")
    };
    let answer = named("azure-openai").post("/chat/completions", &chat("Hello")).await;
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), body["error"]["code"].as_str()), (400, Some("invalid_custom_host")), "{body}");
    assert!(message(&body).contains("none was sent") && message(&body).contains("x-gateway-custom-host"), "{body}");
    assert!(!message(&body).contains("refused"), "{body}");
    for (sent, meant) in [("opnai", "`openai`"), ("gemini", "`google`")] {
        let body = named(sent).post("/chat/completions", &chat("Hello")).await.json();
        assert!(message(&body).contains(&format!("did you mean {meant}?")), "{body}");
    }
}

#[tokio::test]
async fn what_an_inline_config_says_in_vain_is_told_with_the_answer_and_by_explain() {
    let stack = Stack::start().await;
    let config = target(&stack, json!({ "retrys": {}, "retry": { "attempts": 9 }, "request_timeout": 90_000_000 }));
    let answer = ask(&stack, &config).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let warnings = answer.header("x-gateway-warnings");
    for says in [
        "retrys: is not a field of a config: did you mean retry?",
        "retry.attempts: must be from 0 to 5: 9 was taken as 5",
        "request_timeout: must be from 1 to 86400000: 90000000 was taken as 86400000",
    ] {
        assert!(warnings.contains(says), "{says} in {warnings}");
    }
    assert_eq!(ask(&stack, &target(&stack, json!({}))).await.header("x-gateway-warnings"), "");

    let config =
        json!({ "strategy": { "mode": "fallback" }, "colour": 1, "targets": [config, { "provider": "@nope" }] });
    let question =
        json!({ "path": "/v1/chat/completions", "headers": { "x-gateway-config": config }, "body": chat("Hello") });
    let told = stack.anonymous().with_key(&stack.home.workspace_key).post("/explain", &question).await.json();
    let warned: Vec<(&str, &str)> = told["warnings"]
        .as_array()
        .unwrap_or_else(|| panic!("{told}"))
        .iter()
        .map(|one| (one["path"].as_str().unwrap(), one["code"].as_str().unwrap()))
        .collect();
    for expected in [
        ("colour", "AB01_UNKNOWN_KEY"),
        ("targets[0].retrys", "AB01_UNKNOWN_KEY"),
        ("targets[0].retry.attempts", "AB01_OUT_OF_RANGE"),
        ("targets[1]", "AB01_UNKNOWN_PROVIDER"),
    ] {
        assert!(warned.contains(&expected), "{expected:?} in {warned:?}");
    }
}

#[tokio::test]
async fn clients_learn_how_often_was_tried_by_whom_and_whether_to_go_on() {
    let stack = Stack::start().await;
    let retrying = target(&stack, json!({ "retry": { "attempts": 1 } }));
    let two = json!({ "strategy": { "mode": "fallback" }, "targets": [target(&stack, json!({})), target(&stack, json!({}))] });
    for (what, config, faults, status, attempts, retries, should_retry) in [
        ("a plain call", &retrying, json!([]), 200, "1", "0", ""),
        ("a retry that helped", &retrying, json!([{ "status": 500 }]), 200, "2", "1", ""),
        ("retries used up", &retrying, json!([{ "status": 500, "times": 2 }]), 500, "2", "-1", "false"),
        ("a fallback that helped", &two, json!([{ "status": 500 }]), 200, "2", "0", ""),
        ("every target tried", &two, json!([{ "status": 503, "times": 2 }]), 503, "2", "0", "false"),
    ] {
        stack.mock.script(faults).unwrap();
        let answer = ask(&stack, config).await;
        assert_eq!(answer.status, status, "{what}: {}", answer.text());
        assert_eq!(answer.header("x-gateway-attempt-count"), attempts, "{what}");
        assert_eq!(answer.header("x-gateway-retry-attempt-count"), retries, "{what}");
        assert_eq!(answer.header("x-should-retry"), should_retry, "{what}");
    }
    // A refusal of our own names the provider that was tried, and none where none was.
    let unreachable = json!({ "provider": "openai", "api_key": "sk", "custom_host": "http://127.0.0.1:1" });
    let failed = ask(&stack, &unreachable).await;
    assert_eq!((failed.status.as_u16(), &failed.json()["provider"]), (503, &json!("openai")), "{}", failed.text());
    let refused = client(&stack, &retrying).post("/chat/completions", &json!([])).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["provider"]), (400, &json!(null)), "{}", refused.text());
}

#[tokio::test]
async fn the_common_name_of_the_request_id_is_on_every_answer_and_a_providers_own_stays() {
    let stack = Stack::start().await;
    let (anonymous, application) = (stack.anonymous(), stack.client());
    for (what, answer) in [
        ("a refusal", anonymous.post("/chat/completions", &chat("Hello")).await),
        ("a preflight", whole(anonymous.request(Method::OPTIONS, "/chat/completions")).await),
        ("the control plane", stack.administrator().get("/api-keys").await),
        ("a list of models", anonymous.with_key(&stack.home.workspace_key).get("/models").await),
    ] {
        assert_eq!(
            answer.header("x-request-id"),
            answer.header("x-gateway-request-id"),
            "{what}: {:?}",
            answer.headers
        );
        assert_ne!(answer.header("x-request-id"), "", "{what}");
    }
    for path in ["/chat/completions", "/rerank"] {
        let answer = application.post(path, &chat("Hello")).await;
        assert_eq!(answer.headers.get_all("x-request-id").iter().count(), 1, "{path}: {:?}", answer.headers);
    }
}

#[tokio::test]
async fn a_past_request_is_explained_by_its_id_and_by_its_trace_and_errors_name_both() {
    let stack = Stack::start().await;
    let call = stack.client().with("x-gateway-trace-id", "checkout-42").post("/chat/completions", &chat("Hello")).await;
    let client = stack.anonymous().with_key(&stack.home.workspace_key);
    for question in [json!({ "request_id": call.header("x-gateway-request-id") }), json!({ "trace_id": "checkout-42" })]
    {
        stack.until("it is told", async || client.post("/explain", &question).await.status == 200).await;
        let told = client.post("/explain", &question).await.json();
        assert_eq!(told["outcome"]["trace_id"], "checkout-42", "{question}: {told}");
    }
    let lost = client.post("/explain", &json!({})).await;
    assert_eq!(lost.status, 400);
    assert!(message(&lost.json()).contains("`request_id` or `trace_id`"), "{}", lost.text());
}
