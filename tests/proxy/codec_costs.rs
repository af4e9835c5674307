//! What calls cost on every wire, end to end: the vectors of `tests/golden/cost` whose prices are bundled, each reported by a
//! provider in its own words, asked for in several dialects. The cost comes from what the provider reported, so the client's
//! dialect cannot change it.

use crate::families::application;
use crate::journal::calls::rows;
use harness::{Client, Stack};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use tokio_postgres::Row;

struct Vector {
    provider: &'static str,
    rule: String,
    model: String,
    usage: Value,
    /// Logs count in cents.
    cents: Decimal,
}

/// As OpenAI's row has it, of the models in the vectors.
fn is_asked_by_responses(model: &str) -> bool {
    ["o1", "o3", "o4", "gpt-5.4"].iter().any(|beginning| model.starts_with(beginning))
}

/// The vectors that need nothing but the bundled prices.
fn vectors(provider: &'static str) -> Vec<Vector> {
    const KNOWN: [&str; 7] = ["rule", "model", "listed", "entry", "usage", "sum", "usd"];
    let path = format!("{}/golden/cost/{provider}.json", env!("CARGO_MANIFEST_DIR"));
    let all: Vec<Value> = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let plain = all.into_iter().filter(|one| {
        one["listed"] == true && one.as_object().unwrap().keys().all(|key| KNOWN.contains(&key.as_str()))
    });
    let vectors = plain.map(|one| Vector {
        provider,
        rule: one["rule"].as_str().unwrap().to_owned(),
        model: one["model"].as_str().unwrap().to_owned(),
        cents: one["usd"].as_str().unwrap().parse::<Decimal>().unwrap() * Decimal::from(100),
        usage: one["usage"].clone(),
    });
    vectors.collect()
}

impl Vector {
    /// The provider's whole answer, and the dialects in which it can be asked for. None for what is no conversation.
    fn answer(&self) -> Option<(Value, &'static [&'static str])> {
        const ALL: &[&str] = &["/chat/completions", "/messages", "/responses"];
        const TRANSLATED: &[&str] = &["/chat/completions", "/messages"];
        const RESPONSES: &[&str] = &["/responses"];
        let (model, usage) = (&self.model, &self.usage);
        let text = json!([{ "type": "text", "text": "Hi" }]);
        Some(match self.provider {
            "anthropic" => (
                json!({ "id": "m", "type": "message", "role": "assistant", "model": model, "content": text,
                    "stop_reason": "end_turn", "usage": usage }),
                ALL,
            ),
            "google" => (
                json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "Hi" }] }, "finishReason": "STOP" }],
                    "usageMetadata": usage, "modelVersion": model }),
                ALL,
            ),
            "bedrock" if usage.get("inputTokens").is_some() => (
                json!({ "output": { "message": { "role": "assistant", "content": [{ "text": "Hi" }] } },
                    "stopReason": "end_turn", "usage": usage }),
                ALL,
            ),
            "cohere" if usage.get("tokens").is_some() => (
                json!({ "id": "c", "finish_reason": "COMPLETE", "message": { "role": "assistant", "content": text }, "usage": usage }),
                ALL,
            ),
            "openai" if usage.get("input_tokens").is_some() => (
                json!({ "id": "resp_1", "object": "response", "status": "completed", "model": model, "usage": usage,
                    "output": [{ "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                        "content": [{ "type": "output_text", "text": "Hi", "annotations": [] }] }] }),
                RESPONSES,
            ),
            "openai" | "deepseek" | "groq" | "x-ai" | "openrouter" if usage.get("completion_tokens").is_some() => {
                let choice =
                    json!({ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "Hi" } });
                (
                    json!({ "id": "c", "object": "chat.completion", "model": model, "choices": [choice], "usage": usage }),
                    TRANSLATED,
                )
            }
            _ => return None,
        })
    }

    /// The same as a stream, where it is made of server-sent events.
    fn stream(&self) -> Option<String> {
        let (model, usage) = (&self.model, &self.usage);
        let lines = |events: &[Value]| -> String { events.iter().map(|event| format!("data: {event}\n\n")).collect() };
        let named = |events: &[Value]| -> String {
            events
                .iter()
                .map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap()))
                .collect()
        };
        Some(match self.provider {
            "anthropic" => {
                let mut started = usage.clone();
                started["output_tokens"] = json!(1);
                named(&[
                    json!({ "type": "message_start", "message": { "id": "m", "type": "message", "role": "assistant",
                        "model": model, "content": [], "usage": started } }),
                    json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
                    json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hi" } }),
                    json!({ "type": "content_block_stop", "index": 0 }),
                    json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn" },
                        "usage": { "output_tokens": usage["output_tokens"] } }),
                    json!({ "type": "message_stop" }),
                ])
            }
            "google" => lines(&[
                json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "H" }] } }],
                    "usageMetadata": { "promptTokenCount": 1 }, "modelVersion": model }),
                json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "i" }] }, "finishReason": "STOP" }],
                    "usageMetadata": usage, "modelVersion": model }),
            ]),
            "openai" if usage.get("completion_tokens").is_some() => {
                let chunk = |choices: Value, usage: &Value| json!({ "id": "c", "object": "chat.completion.chunk", "model": model, "choices": choices, "usage": usage });
                let text =
                    json!([{ "index": 0, "delta": { "role": "assistant", "content": "Hi" }, "finish_reason": null }]);
                let end = json!([{ "index": 0, "delta": {}, "finish_reason": "stop" }]);
                let events = [chunk(text, &Value::Null), chunk(end, &Value::Null), chunk(json!([]), usage)];
                format!("{}data: [DONE]\n\n", lines(&events))
            }
            "cohere" if usage.get("tokens").is_some() => named(&[
                json!({ "type": "message-start", "id": "c", "delta": { "message": { "role": "assistant" } } }),
                json!({ "type": "content-start", "index": 0, "delta": { "message": { "content": { "type": "text", "text": "" } } } }),
                json!({ "type": "content-delta", "index": 0, "delta": { "message": { "content": { "text": "Hi" } } } }),
                json!({ "type": "content-end", "index": 0 }),
                json!({ "type": "message-end", "delta": { "finish_reason": "COMPLETE", "usage": usage } }),
            ]),
            _ => return None,
        })
    }
}

fn client(stack: &Stack, provider: &str) -> Client {
    let client = application(stack).with("authorization", "Bearer sk-own").with("x-gateway-provider", provider);
    client.with("x-gateway-custom-host", stack.mock.origin())
}

fn asked(path: &str, model: &str) -> Value {
    match path {
        "/responses" => json!({ "model": model, "input": "Hello" }),
        _ => json!({ "model": model, "max_tokens": 9, "messages": [{ "role": "user", "content": "Hello" }] }),
    }
}

fn cost(row: &Row) -> Decimal {
    row.get::<_, Option<Decimal>>("cost").unwrap_or_default()
}

#[tokio::test]
async fn every_wire_costs_what_its_provider_reported_whatever_the_client_speaks() {
    let stack = Stack::start().await;
    let mut expected: Vec<(String, Decimal)> = Vec::new();
    for provider in ["openai", "anthropic", "google", "bedrock", "cohere", "deepseek", "groq", "x-ai", "openrouter"] {
        let mut tried = 0;
        for vector in vectors(provider) {
            let Some((answer, paths)) = vector.answer() else { continue };
            for path in paths {
                // Messages reach these by another endpoint, whose answers have a form of their own.
                if provider == "openai" && *path == "/messages" && is_asked_by_responses(&vector.model) {
                    continue;
                }
                let fault = json!([{ "body": answer.to_string(), "content_type": "application/json" }]);
                stack.mock.script(fault).unwrap();
                let got = client(&stack, provider).post(path, &asked(path, &vector.model)).await;
                let what = format!("{provider} {}: {path}", vector.rule);
                assert_eq!(got.status, 200, "{what}: {}", got.text());
                expected.push((what, vector.cents));
                tried += 1;
            }
            if let Some(stream) = vector.stream() {
                let fault = json!([{ "body": stream, "content_type": "text/event-stream" }]);
                stack.mock.script(fault).unwrap();
                let mut body = asked("/chat/completions", &vector.model);
                body["stream"] = json!(true);
                let got = client(&stack, provider).post("/chat/completions", &body).await;
                let what = format!("{provider} {}: a stream", vector.rule);
                assert!(got.text().ends_with("data: [DONE]\n\n"), "{what}: {}", got.text());
                expected.push((what, vector.cents));
            }
        }
        assert!(tried > 0, "{provider} has no vectors");
    }
    let rows = rows(&stack, expected.len()).await;
    let wrong: Vec<String> = rows
        .iter()
        .zip(&expected)
        .filter(|(row, (_, cents))| cost(row) != *cents)
        .map(|(row, (what, cents))| format!("{what}: {} instead of {cents}", cost(row)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(expected.len() > 40, "only {}", expected.len());
}
