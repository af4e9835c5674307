//! Who may pass: the key's place in the request, its state, its scope; and that Postgres is not asked about any of it.

use bench::postgres::template;
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

/// Both lanes, and Anthropic's words.
const PATHS: [&str; 3] = ["/chat/completions", "/rerank", "/messages"];

fn assert_refused(answer: &Answer, path: &str, status: u16, code: &str, what: &str) {
    let body = answer.json();
    assert_eq!((answer.status.as_u16(), &body["error"]["code"]), (status, &json!(code)), "{what} {path}: {body}");
    let kind = if status == 401 { "authentication_error" } else { "permission_error" };
    assert_eq!(body["error"]["type"], kind, "{what} {path}: {body}");
    assert!(body["error"]["message"].is_string(), "{what} {path}: {body}");
    match path {
        "/messages" => assert_eq!(body["type"], "error", "{what}: {body}"),
        _ => assert_eq!((&body["status"], &body["provider"]), (&json!("failure"), &Value::Null), "{what}: {body}"),
    }
    assert_eq!(answer.header("content-type"), "application/json", "{what} {path}");
    assert_ne!(answer.header("x-gateway-request-id"), "", "{what} {path}");
}

async fn execute(stack: &Stack, sql: &str) {
    stack.database.client().await.batch_execute(sql).await.unwrap();
    // Admin's own writes are announced; ours are not, unless we do it.
    stack.database.client().await.batch_execute("NOTIFY gateway_changes").await.unwrap();
}

async fn until_refused(stack: &Stack, key: &str, status: u16, code: &str, what: &str) {
    let client = stack.as_application(key);
    stack.until(what, async || client.post("/rerank", &chat("x")).await.status == status).await;
    for path in PATHS {
        assert_refused(&client.post(path, &chat("x")).await, path, status, code, what);
    }
}

#[tokio::test]
async fn a_key_that_may_not_pass_is_told_why_in_the_callers_own_words() {
    let stack = Stack::start().await;
    for path in PATHS {
        let none = stack.anonymous().with("x-gateway-provider", "openai").post(path, &chat("x")).await;
        assert_refused(&none, path, 401, "missing_api_key", "no key");
        for key in ["pk_unknown", "x", "Bearer"] {
            let unknown = stack.as_application(key).post(path, &chat("x")).await;
            assert_refused(&unknown, path, 401, "invalid_api_key", key);
        }
        let admin = stack.as_application(&stack.home.admin_key).post(path, &chat("x")).await;
        assert_refused(&admin, path, 403, "insufficient_scope", "an admin key");
    }
    let narrow = stack.key(&["logs.view"]).await;
    until_refused(&stack, &narrow, 403, "insufficient_scope", "a key without the scope").await;
    assert!(stack.mock.requests().is_empty());
}

#[tokio::test]
async fn a_key_stops_working_when_it_or_its_workspace_is_archived_or_expires_and_nobody_elses_does() {
    let stack = Stack::start().await;
    let (other, expiring) = (stack.organisation().await, stack.key(&["completions.write"]).await);
    let archived = stack.key(&["completions.write"]).await;
    let by_key = |key: &str| format!("hash = sha256('{key}'::bytea)");
    let works = async |key: &str| stack.as_application(key).post("/chat/completions", &chat("x")).await.status == 200;
    assert!(works(&other.workspace_key).await && works(&expiring).await && works(&archived).await);

    execute(&stack, &format!("UPDATE api_keys SET expires_at = now() - interval '1 s' WHERE {}", by_key(&expiring)))
        .await;
    until_refused(&stack, &expiring, 401, "expired_api_key", "an expired key").await;
    execute(&stack, &format!("UPDATE api_keys SET status = 'archived' WHERE {}", by_key(&archived))).await;
    until_refused(&stack, &archived, 401, "invalid_api_key", "an archived key").await;
    assert!(works(&other.workspace_key).await && works(&stack.home.workspace_key).await);

    let archive = "UPDATE workspaces SET status = 'archived', is_default = false WHERE id =";
    execute(&stack, &format!("{archive} '{}'", other.workspace_id)).await;
    until_refused(&stack, &other.workspace_key, 401, "invalid_api_key", "a key of an archived workspace").await;
    assert!(works(&stack.home.workspace_key).await);
}

/// `K` stands for the service key, `P` for a provider's.
#[tokio::test]
async fn the_service_key_is_found_where_the_contract_puts_it() {
    let stack = Stack::start().await;
    let base = stack.anonymous().with("x-gateway-custom-host", stack.mock.url());
    let send = async |headers: &[(&str, &str)]| {
        let client = headers.iter().fold(base.clone(), |client: Client, (name, value)| {
            client.with(name, value.replace('P', "sk-mock").replace('K', &stack.home.workspace_key))
        });
        let answer = client.post("/chat/completions", &chat("x")).await;
        (answer.status.as_u16(), answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
    };
    for (headers, status, code) in [
        (vec![("x-gateway-api-key", "K"), ("x-gateway-provider", "openai"), ("authorization", "Bearer P")], 200, ""),
        (
            vec![("x-gateway-api-key", "Bearer K"), ("x-gateway-provider", "openai"), ("authorization", "Bearer P")],
            200,
            "",
        ),
        // With a plainly named provider, Authorization is the provider's and never looked up as ours.
        (vec![("x-gateway-provider", "openai"), ("authorization", "Bearer K")], 401, "missing_api_key"),
        (
            vec![("x-gateway-provider", "openai"), ("authorization", "Bearer P"), ("x-api-key", "K")],
            401,
            "missing_api_key",
        ),
        // Its own header wins over everything, also when it is wrong.
        (vec![("x-gateway-api-key", "wrong"), ("authorization", "Bearer K")], 401, "invalid_api_key"),
        (vec![("x-gateway-api-key", "wrong"), ("x-api-key", "K")], 401, "invalid_api_key"),
        // Known keys get past the door, and are then asked for a provider.
        (vec![("authorization", "Bearer K")], 400, "missing_provider"),
        (vec![("authorization", "bearer   K")], 400, "missing_provider"),
        (vec![("authorization", "K")], 400, "missing_provider"),
        (vec![("x-api-key", "K")], 400, "missing_provider"),
        (vec![("authorization", "Bearer K"), ("x-gateway-provider", "@prod")], 400, "invalid_provider"),
        (vec![("x-api-key", "wrong")], 401, "invalid_api_key"),
        (vec![("authorization", "Bearer wrong"), ("x-api-key", "K")], 401, "invalid_api_key"),
        // The provider answers 401 by itself: the door was open, but there is no credential for it.
        (vec![("x-api-key", "K"), ("x-gateway-provider", "openai")], 401, "invalid_api_key"),
        (vec![("x-gateway-api-key", "K"), ("x-gateway-api-key", "other")], 400, "invalid_header"),
    ] {
        assert_eq!(send(&headers).await, (status, code.to_owned()), "{headers:?}");
    }
}

#[tokio::test]
async fn known_keys_pass_and_unknown_ones_do_not_while_postgres_is_away() {
    let stack = Stack::start().await;
    let server = template::connect(&stack.database.url(), "postgres").await.unwrap();
    let name = stack.database.name();
    let away = format!(
        "ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS false;
         SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
    );
    server.batch_execute(&away).await.unwrap();
    let failures = "gateway_snapshot_failures_total";
    stack.until("the proxy notices", async || stack.metric(failures).await > Some(0.0)).await;
    for _ in 0..20 {
        let known = stack.client().post("/chat/completions", &chat("x")).await;
        assert_eq!(known.status, 200, "{}", known.text());
        let unknown = stack.as_application("pk_unknown").post("/chat/completions", &chat("x")).await;
        assert_eq!(unknown.status, 401, "{}", unknown.text());
    }
    assert_eq!(Client::new(&stack.metrics_url).get("/readyz").await.status, 200);
    server.batch_execute(&format!("ALTER DATABASE \"{name}\" ALLOW_CONNECTIONS true")).await.unwrap();
    let made_later = stack.key(&["completions.write"]).await;
    assert_eq!(stack.as_application(&made_later).post("/chat/completions", &chat("x")).await.status, 200);
}
