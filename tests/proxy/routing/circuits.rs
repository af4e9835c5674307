//! The circuits of a replica, as its operator sees them.

use harness::{Client, Stack, chat};
use serde_json::{Value, json};

async fn circuits(stack: &Stack) -> Vec<Value> {
    let page = Client::new(&stack.metrics_url).get("/circuits").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "application/json"));
    page.json()["data"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_target_that_is_left_alone_stands_on_the_page_of_its_replica() {
    let stack = Stack::start().await;
    assert_eq!(circuits(&stack).await, Vec::<Value>::new(), "nothing has happened yet");
    let target = json!({ "provider": "openai", "api_key": "sk-config", "custom_host": stack.mock.url() });
    let config = json!({
        "strategy": { "mode": "fallback", "cb_config": { "failure_threshold": 1, "cooldown_interval": 60000 } },
        "targets": [target, target],
    });
    stack.mock.script(json!([{ "status": 500 }])).unwrap();
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config.to_string());
    assert_eq!(client.post("/chat/completions", &chat("Hello")).await.status, 200);
    let found = circuits(&stack).await;
    let states: Vec<_> =
        found.iter().map(|one| (one["target"].as_str().unwrap(), one["state"].as_str().unwrap())).collect();
    assert_eq!(states, [("config.targets[0]", "open"), ("config.targets[1]", "closed")]);
    assert_eq!((&found[0]["failures"], &found[1]["successes"]), (&json!(1), &json!(1)));
    assert!(found[0]["closes_in_ms"].as_u64().is_some_and(|left| left > 0 && left <= 60_000), "{found:?}");
    assert_eq!(found[0]["workspace_id"], json!(stack.home.workspace_id));
    assert!(!found[0].to_string().contains("sk-config"), "no credential is shown");
}
