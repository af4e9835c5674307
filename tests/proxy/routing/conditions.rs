//! What conditions may cost: they look inside a request's parameters, which are as long as a client likes.

use super::{client, target};
use harness::Stack;
use serde_json::{Value, json};

fn conditional(stack: &Stack, query: Value) -> Value {
    let conditions = vec![json!({ "query": query, "then": "met" })];
    json!({
        "strategy": { "mode": "conditional", "conditions": conditions, "default": "else" },
        "targets": [target(stack, json!({ "name": "met" })), target(stack, json!({ "name": "else" }))],
    })
}

#[tokio::test]
async fn a_condition_does_not_look_inside_a_parameter_that_is_too_long() {
    let stack = Stack::start().await;
    let config = conditional(&stack, json!({ "params.prompt": { "$regex": "^x" } }));
    for (length, used) in [(60_000, "config.targets[0]"), (70_000, "config.targets[1]")] {
        let body = json!({ "model": "gpt-3.5-turbo-instruct", "prompt": "x".repeat(length) });
        let answer = client(&stack, &config).post("/completions", &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), used, "{length} bytes");
    }
}

#[tokio::test]
async fn a_config_with_more_tests_than_a_request_may_bring_is_400() {
    let stack = Stack::start().await;
    for (many, test, status) in [
        (500, json!(1), 200),
        (501, json!(1), 400),
        (50, json!({ "$regex": "a" }), 200),
        (51, json!({ "$regex": "a" }), 400),
    ] {
        let tests: Vec<Value> = (0..many).map(|_| json!({ "params.prompt": test })).collect();
        let config = conditional(&stack, json!({ "$or": tests }));
        let body = json!({ "model": "gpt-3.5-turbo-instruct", "prompt": "b" });
        let answer = client(&stack, &config).post("/completions", &body).await;
        assert_eq!(answer.status, status, "{many} times {test}: {}", answer.text());
        if status == 400 {
            assert!(answer.text().contains("must not have more than"), "{}", answer.text());
        }
    }
}
