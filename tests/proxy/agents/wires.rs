//! Claude Code and Gemini CLI at OpenAI's models: those that want responses get them, and a user that is longer than OpenAI takes
//! is sent as a hash.

use crate::translation::client;
use harness::Stack;
use serde_json::{Value, json};

fn sent(stack: &Stack) -> (String, Value) {
    let requests = stack.mock.requests();
    let last = requests.last().expect("the provider was asked");
    (last.path.clone(), serde_json::from_slice(&last.body).unwrap())
}

/// As Claude Code asks, with the user it has.
fn message(model: &str, user: &str) -> Value {
    json!({ "model": model, "max_tokens": 50, "metadata": { "user_id": user }, "thinking": { "type": "enabled", "budget_tokens": 2048 },
        "messages": [{ "role": "user", "content": "Hello" }],
        "tools": [{ "name": "f", "input_schema": { "type": "object" } }] })
}

#[tokio::test]
async fn models_that_want_responses_get_them_from_every_other_format() {
    let stack = Stack::start().await;
    let client = client(&stack, "openai");
    for (model, expected) in [
        ("gpt-5.6-terra", "/v1/responses"),
        ("o3-mini", "/v1/responses"),
        ("gpt-5.3-codex", "/v1/responses"),
        ("gpt-5", "/v1/chat/completions"),
        ("gpt-4o-mini", "/v1/chat/completions"),
    ] {
        let answer = client.post("/messages", &message(model, "u")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["type"], "message", "{}", answer.text());
        let (path, body) = sent(&stack);
        assert_eq!((&*path, &body["model"]), (expected, &json!(model)));
        // Nobody asked OpenAI to keep it.
        let store = if expected == "/v1/responses" { json!(false) } else { Value::Null };
        assert_eq!(body["store"], store, "{model}");
    }
    let contents = json!({ "contents": [{ "role": "user", "parts": [{ "text": "Hello" }] }] });
    let answer = client.post("/v1beta/models/gpt-5.4:generateContent", &contents).await;
    assert_eq!((answer.status.as_u16(), &*sent(&stack).0), (200, "/v1/responses"), "{}", answer.text());
    let chat = json!({ "model": "gpt-5.4", "messages": [{ "role": "user", "content": "Hello" }] });
    assert_eq!(client.post("/chat/completions", &chat).await.status, 200);
    assert_eq!(sent(&stack).0, "/v1/chat/completions", "a chat stays what its client wrote");
}

#[tokio::test]
async fn a_user_that_is_too_long_for_a_vendor_is_hashed_and_never_cut() {
    let stack = Stack::start().await;
    let long = json!({ "device_id": "d".repeat(64), "account_uuid": "", "session_id": "s".repeat(36) }).to_string();
    for model in ["gpt-4o-mini", "gpt-5.6-terra"] {
        let answer = client(&stack, "openai").post("/messages", &message(model, &long)).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let user = sent(&stack).1["user"].as_str().unwrap().to_owned();
        assert!(user.len() == 64 && user.bytes().all(|byte| byte.is_ascii_hexdigit()), "{user}");
        assert!(answer.header("x-gateway-warnings").contains("user (sent as a hash)"), "{:?}", answer.headers);
        let other = client(&stack, "openai").post("/messages", &message(model, &format!("{long}x"))).await;
        assert_eq!(other.status, 200);
        assert_ne!(sent(&stack).1["user"], json!(user), "another person is another");
    }
    let short = client(&stack, "openai").post("/messages", &message("gpt-4o-mini", &"u".repeat(64))).await;
    assert_eq!((short.header("x-gateway-warnings"), &sent(&stack).1["user"]), ("", &json!("u".repeat(64))));
    let free = client(&stack, "groq").post("/messages", &message("m", &long)).await;
    assert_eq!(
        (free.status.as_u16(), &sent(&stack).1["user"]),
        (200, &json!(long)),
        "where nothing is known of a bound"
    );
}
