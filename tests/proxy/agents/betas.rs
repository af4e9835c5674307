//! Anthropic's betas, which Claude Code names with every turn: Anthropic gets them as they are, its models at clouds those that
//! are known there, in the body, and everybody else none. No turn ends because of one.

use super::offer;
use crate::families::application;
use crate::translation::client;
use crate::translation::wires::{answer, asked, client as raw_client};
use crate::upstream::RawUpstream;
use harness::{Client, Stack, chat};
use serde_json::{Value, json};

const ALL: &str = "claude-code-20250219, context-1m-2025-08-07,of-tomorrow-2031-01-01, context-1m-2025-08-07";

fn message(model: &str) -> Value {
    json!({ "model": model, "max_tokens": 9, "messages": [{ "role": "user", "content": "Hello" }] })
}

fn agent(client: Client) -> Client {
    client.with("anthropic-beta", ALL).with("anthropic-version", "2023-06-01")
}

#[tokio::test]
async fn anthropic_gets_them_as_they_are_from_every_format() {
    let stack = Stack::start().await;
    let client = agent(client(&stack, "anthropic"));
    let path_bodies = [
        ("/messages?beta=true", message("claude-opus-4-8")),
        ("/messages/count_tokens", message("claude-opus-4-8")),
        ("/chat/completions", chat("Hello")),
    ];
    for (path, body) in path_bodies {
        let got = client.post(path, &body).await;
        assert_eq!((got.status.as_u16(), got.header("x-gateway-warnings")), (200, ""), "{path}: {}", got.text());
        let requests = stack.mock.requests();
        let last = requests.last().unwrap();
        assert_eq!(last.header("anthropic-beta"), ALL, "{path}");
        assert_eq!(serde_json::from_slice::<Value>(&last.body).unwrap().get("anthropic_beta"), None, "{path}");
    }
}

#[tokio::test]
async fn bedrock_and_vertex_get_those_that_they_know_in_the_body() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let converse = json!({ "output": { "message": { "role": "assistant", "content": [{ "text": "Hi" }] } },
        "stopReason": "end_turn", "usage": { "inputTokens": 8, "outputTokens": 3, "totalTokens": 11 } });
    let native = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "Hi" }], "usage": { "input_tokens": 8, "output_tokens": 3 } });
    let left_out = "anthropic-beta (claude-code-20250219 of-tomorrow-2031-01-01)";
    let vertex = raw_client(&stack, &upstream, "vertex-ai").with("x-gateway-vertex-project-id", "p");
    let vertex = vertex.with("x-gateway-vertex-region", "us-central1");
    for (client, model, told, place) in [
        (
            raw_client(&stack, &upstream, "bedrock"),
            "us.anthropic.claude-x-v1:0",
            &converse,
            "/additionalModelRequestFields",
        ),
        (vertex, "anthropic.claude-x", &native, ""),
    ] {
        upstream.answer(answer("application/json", told.to_string().as_bytes()));
        let got = agent(client).post("/messages", &message(model)).await;
        assert_eq!(got.status, 200, "{model}: {}", got.text());
        assert!(got.header("x-gateway-warnings").contains(left_out), "{model}: {}", got.header("x-gateway-warnings"));
        let (_, header, body) = asked(&upstream, "anthropic-beta");
        let sent = body.pointer(&format!("{place}/anthropic_beta"));
        assert_eq!((&*header, sent), ("", Some(&json!(["context-1m-2025-08-07"]))), "{model}: {body}");
    }
    // Another's model there knows none of them, and an own name takes the place of Anthropic's.
    let client = raw_client(&stack, &upstream, "bedrock");
    upstream.answer(answer("application/json", converse.to_string().as_bytes()));
    let got = agent(client).post("/messages", &message("meta.llama-x")).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(got.header("x-gateway-warnings").contains("context-1m-2025-08-07"), "{}", got.header("x-gateway-warnings"));
    assert_eq!(asked(&upstream, "x").2.get("additionalModelRequestFields"), None);
    let vertex = raw_client(&stack, &upstream, "vertex-ai").with("x-gateway-vertex-project-id", "p");
    let vertex = vertex.with("anthropic-beta", "advanced-tool-use-2025-11-20");
    upstream.answer(answer("application/json", native.to_string().as_bytes()));
    let got =
        vertex.with("x-gateway-vertex-region", "us-central1").post("/messages", &message("anthropic.claude-x")).await;
    assert_eq!((got.status.as_u16(), got.header("x-gateway-warnings")), (200, ""), "{}", got.text());
    assert_eq!(asked(&upstream, "x").2["anthropic_beta"], json!(["tool-search-tool-2025-10-19"]));
}

#[tokio::test]
async fn everybody_else_gets_none_and_the_caller_is_warned() {
    let stack = Stack::start().await;
    let all = "anthropic-beta (claude-code-20250219 context-1m-2025-08-07 of-tomorrow-2031-01-01)";
    for (provider, path, body) in [
        ("openai", "/messages", message("gpt-4o-mini")),
        ("openai", "/messages", message("gpt-5.6-terra")),
        ("openai", "/chat/completions", chat("Hello")),
        ("openai", "/responses", json!({ "model": "gpt-4o-mini", "input": "Hello" })),
        ("groq", "/messages", message("m")),
    ] {
        let got = agent(client(&stack, provider)).post(path, &body).await;
        assert_eq!(got.status, 200, "{provider} {path}: {}", got.text());
        let warned = got.header("x-gateway-warnings");
        assert!(warned.contains(all), "{provider} {path}: {warned}");
        let requests = stack.mock.requests();
        assert_eq!(requests.last().unwrap().header("anthropic-beta"), "", "{provider} {path}");
    }
    // Who names the header for this very call means it.
    let forced = agent(client(&stack, "openai")).with("x-gateway-forward-headers", "anthropic-beta");
    assert_eq!(forced.post("/chat/completions", &chat("Hello")).await.status, 200);
    assert_eq!(stack.mock.requests().last().unwrap().header("anthropic-beta"), ALL);
}

#[tokio::test]
async fn a_question_about_a_call_says_it_too() {
    let stack = Stack::start().await;
    offer(&stack, "prod", "openai").await;
    offer(&stack, "claude", "anthropic").await;
    for (model, dropped) in [("@prod/gpt-4o-mini", true), ("@claude/claude-opus-4-8", false)] {
        let question =
            json!({ "path": "/v1/messages", "headers": { "anthropic-beta": "a-1" }, "body": message(model) });
        let explained = application(&stack).post("/explain", &question).await;
        assert_eq!(explained.text().contains("anthropic-beta (a-1)"), dropped, "{model}: {}", explained.text());
    }
}
