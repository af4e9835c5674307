//! `strict_open_ai_compliance`: whether translated answers keep to OpenAI's own fields. The config and the header each may
//! say no; nothing said is yes.

use crate::families::application;
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

async fn asked(stack: &Stack, client: &Client) -> Value {
    let thinking = json!({ "type": "thinking", "thinking": "Hm.", "signature": "s" });
    let body = json!({ "id": "m", "type": "message", "role": "assistant", "model": "c", "stop_reason": "pause_turn",
        "content": [thinking, { "type": "text", "text": "Hi" }], "usage": { "input_tokens": 3, "output_tokens": 2 } });
    stack.mock.script(json!([{ "body": body.to_string(), "content_type": "application/json" }])).unwrap();
    let answer = client.post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["choices"][0].clone()
}

#[tokio::test]
async fn native_extras_are_shown_when_the_config_or_the_header_asks_for_them() {
    let stack = Stack::start().await;
    let target = |strict: Value| {
        let mut target = json!({ "provider": "anthropic", "api_key": "k", "custom_host": stack.mock.url() });
        if !strict.is_null() {
            target["strict_open_ai_compliance"] = strict;
        }
        application(&stack).with("x-gateway-config", target.to_string())
    };
    const HEADER: &str = "x-gateway-strict-open-ai-compliance";
    for (client, is_strict) in [
        (target(Value::Null), true),
        (target(json!(true)), true),
        (target(json!(false)), false),
        (target(Value::Null).with(HEADER, "true"), true),
        (target(Value::Null).with(HEADER, "false"), false),
        (target(json!(true)).with(HEADER, "false"), false),
        (target(json!(false)).with(HEADER, "true"), false),
    ] {
        let choice = asked(&stack, &client).await;
        let message = &choice["message"];
        assert_eq!(message["content"], "Hi");
        assert_eq!(message.get("content_blocks").is_none(), is_strict, "{choice}");
        assert_eq!(message.get("reasoning_content").is_none(), is_strict, "{choice}");
        assert_eq!(choice["finish_reason"], if is_strict { "stop" } else { "pause_turn" });
    }
}
