//! Hooks that nobody waits for: they run also where calls are not logged, and whatever the shape of a body is.

use crate::journal::calls::rows;
use crate::routing::{client, target};
use harness::{GuardService, Says, Stack, chat};
use serde_json::{Value, json};

fn hooks(service: &GuardService) -> Value {
    let hook = json!([{ "default.webhook": { "webhookURL": service.url() }, "async": true }]);
    json!({ "input_guardrails": hook, "output_guardrails": hook })
}

#[tokio::test]
async fn they_run_where_calls_are_not_logged() {
    let stack = Stack::builder().proxy("JOURNAL", "OFF").start().await;
    let service = GuardService::start(Says::Json(json!({ "verdict": false }))).await;
    let client = client(&stack, &target(&stack, hooks(&service)));
    for is_stream in [false, true] {
        let before = service.asked().len();
        let mut body = chat("hello");
        body["stream"] = is_stream.into();
        let answer = client.post("/chat/completions", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        stack.until("both were asked", async || service.asked().len() == before + 2).await;
        let asked = service.asked().split_off(before);
        let events: Vec<&Value> = asked.iter().map(|asked| &asked.body["eventType"]).collect();
        assert_eq!(events, ["beforeRequestHook", "afterRequestHook"], "{is_stream}");
        assert!(asked[1].body["response"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{is_stream}");
    }
}

#[tokio::test]
async fn a_megabyte_of_small_values_is_judged_too() {
    let stack = Stack::start().await;
    let contains = json!([{ "default.contains": { "words": ["x"], "operator": "none" }, "async": true }]);
    let client = client(&stack, &target(&stack, json!({ "input_guardrails": contains })));
    let mut body = chat("an x");
    body["metadata_of_ours"] = json!(vec![0; 500_000]);
    let answer = client.post("/chat/completions", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let told: Value = rows(&stack, 1).await[0].get("hook_results");
    let hook = &told["before_request_hooks"][0];
    assert_eq!((&hook["verdict"], hook.get("skipped")), (&json!(false), None), "{hook}");
}
