//! The access log and health on the port of the traffic, both by choice.

use harness::{Client, Stack, chat};
use serde_json::Value;

fn lines(stack: &Stack) -> Vec<Value> {
    let log = stack.proxy.log();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    lines.filter(|line| line.get("request_id").is_some() && line.get("duration_ms").is_some()).collect()
}

#[tokio::test]
async fn each_request_is_a_line_of_json_with_its_ids_and_without_what_it_says() {
    let stack = Stack::builder().proxy("ACCESS_LOG", "ON").start().await;
    let client = stack.client().with("x-gateway-trace-id", "checkout-42");
    let answer = client.post("/chat/completions?api_key=in-the-query", &chat("said-in-the-body")).await;
    let refused = stack.anonymous().get("/api-keys/self").await;
    let id = answer.header("x-gateway-request-id").to_owned();
    let find = |id: &str| lines(&stack).into_iter().find(|line| line["request_id"] == *id);
    stack
        .until("both are written", async || find(&id).is_some() && find(refused.header("x-request-id")).is_some())
        .await;
    let line = find(&id).unwrap();
    for (field, value) in [
        ("trace_id", "checkout-42".into()),
        ("method", "POST".into()),
        ("path", "/v1/chat/completions".into()),
        ("status", Value::from(200)),
        ("provider", "openai".into()),
        ("lane", "engine".into()),
        ("attempts", Value::from(1)),
        ("client_ip", "127.0.0.1".into()),
        ("workspace_id", stack.home.workspace_id.to_string().into()),
    ] {
        assert_eq!(line[field], value, "{field} in {line}");
    }
    let said = stack.proxy.log();
    for secret in ["in-the-query", "said-in-the-body", &stack.home.workspace_key, "sk-mock"] {
        assert!(!said.contains(secret), "{secret} is in the log");
    }
}

#[tokio::test]
async fn nothing_is_written_and_health_is_not_told_on_the_port_of_the_traffic_unless_it_is_wished() {
    let stack = Stack::start().await;
    assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
    let root = |stack: &Stack| Client::new(&format!("http://127.0.0.1:{}", stack.proxy_port));
    for path in ["/healthz", "/readyz"] {
        assert_eq!(root(&stack).get(path).await.status, 404, "{path}");
    }
    assert_eq!(lines(&stack), Vec::<Value>::new());
    let stack = Stack::builder().proxy("PROXY_HEALTH", "ON").start().await;
    for (path, text) in [("/healthz", "ok\n"), ("/readyz", "ready\n")] {
        let answer = root(&stack).get(path).await;
        assert_eq!((answer.status.as_u16(), answer.text().as_str()), (200, text), "{path}");
    }
    assert_eq!(root(&stack).get("/metrics").await.status, 404, "metrics stay on their own port");
}
