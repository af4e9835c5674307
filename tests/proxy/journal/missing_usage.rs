//! Answers on paid routes that do not say what they used, on both lanes and in every length: each is estimated, marked,
//! charged and counted by a metric; a strict budget does not let through what it could not bound.

use super::calls::{rows, tokens};
use crate::limits::{limited, patient};
use crate::raw::{Wire, credentials_for, post};
use crate::upstream::RawUpstream;
use harness::chat;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use std::io::Write as _;

const MODEL: &str = "gpt-4o";

fn answered(kind: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

#[tokio::test]
async fn what_does_not_say_what_it_used_is_estimated_and_charged() {
    let stack = patient().await;
    let upstream = RawUpstream::start().await;
    let said = "word ".repeat(400);
    // Longer than what is held whole, so that it comes in pieces.
    let long = "word ".repeat(200_000);
    let message = |text: &str| {
        json!({ "model": MODEL, "choices": [{ "index": 0, "finish_reason": "stop",
        "message": { "role": "assistant", "content": text } }] })
    };
    let run = |text: &str| json!({ "object": "thread.run", "model": MODEL, "content": text });
    let vector = json!({ "model": "text-embedding-3-small", "data": [{ "embedding": vec![0.123; 40_000] }] });
    let body = json!({ "model": MODEL, "messages": [{ "role": "user", "content": said }], "content": said });
    let embed = json!({ "model": "text-embedding-3-small", "input": said });
    let json_type = "application/json";
    let cases: Vec<(&str, &str, &str, Value, String, u64)> = vec![
        ("a chat", "/v1/chat/completions", json_type, body.clone(), message(&said).to_string(), 100),
        ("a long chat", "/v1/chat/completions", json_type, body.clone(), message(&long).to_string(), 10_000),
        ("embeddings", "/v1/embeddings", json_type, embed, vector.to_string(), 0),
        ("a run", "/v1/threads/t-1/runs", json_type, body.clone(), run(&said).to_string(), 100),
        ("a long run", "/v1/threads/t-1/runs", json_type, body.clone(), run(&long).to_string(), 10_000),
    ];
    for (what, path, kind, asked, answer, _) in &cases {
        upstream.answer(answered(kind, answer));
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(post(path, &credentials_for(&stack, &upstream.url()), &asked.to_string())).await;
        let got = wire.answer().await.unwrap();
        assert!(got.status == 200 && got.body.len() == answer.len(), "{what}: {}", got.status);
    }
    for (row, (what, _, _, _, _, least)) in rows(&stack, cases.len()).await.iter().zip(&cases) {
        let (prompt, completion) = tokens(row);
        assert!(row.get::<_, bool>("usage_estimated"), "{what}");
        assert!((300..1500).contains(&prompt), "{what}: {prompt}");
        assert!(completion >= i64::try_from(*least).unwrap(), "{what}: {completion}");
        assert!(row.get::<_, Option<Decimal>>("cost").is_some_and(|cost| cost > 0.into()), "{what}");
    }
    for (path, count) in [("/chat/completions", 2.0), ("/embeddings", 1.0), ("/threads/*/runs", 2.0)] {
        let name = format!(r#"gateway_usage_missing_total{{path="{path}",provider="openai"}}"#);
        stack.until_metric(&name, count).await;
    }
}

/// A provider, a path of its own interface, what it is asked, and the type and body of an answer without usage.
type OwnCall = (&'static str, &'static str, Value, &'static str, String);

fn own_calls() -> Vec<OwnCall> {
    const JSON: &str = "application/json";
    const EVENTS: &str = "text/event-stream";
    const LINES: &str = "application/x-ndjson";
    let said = "word ".repeat(400);
    let event = |value: Value| format!("data: {value}\n\n");
    let turns = json!([{ "role": "user", "content": said }]);
    let chat = json!({ "model": "m", "messages": turns });
    let parts = json!({ "contents": [{ "role": "user", "parts": [{ "text": said }] }] });
    let generated = json!({ "candidates": [{ "content": { "parts": [{ "text": said }] } }] });
    let claude = json!({ "anthropic_version": "vertex-2023-10-16", "messages": turns });
    let answered = json!({ "content": [{ "type": "text", "text": said }] });
    let choices = json!({ "choices": [{ "message": { "content": said } }] });
    let delta = json!({ "choices": [{ "delta": { "content": said } }] });
    let vertex = "/v1/projects/p/locations/l/publishers/google/models/g";
    let of_vertex = |verb: &str| -> &'static str { Box::leak(format!("/v1{vertex}:{verb}").into_boxed_str()) };
    vec![
        (
            "bedrock",
            "/model/m/invoke",
            json!({ "inputText": said }),
            JSON,
            json!({ "results": [{ "outputText": said }] }).to_string(),
        ),
        ("vertex-ai", of_vertex("rawPredict"), claude.clone(), JSON, answered.to_string()),
        (
            "vertex-ai",
            of_vertex("streamRawPredict"),
            claude,
            EVENTS,
            event(json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": said } })),
        ),
        ("vertex-ai", of_vertex("generateContent"), parts.clone(), JSON, generated.to_string()),
        ("vertex-ai", of_vertex("streamGenerateContent"), parts, JSON, json!([generated, generated]).to_string()),
        (
            "vertex-ai",
            of_vertex("predict"),
            json!({ "instances": [{ "content": said }] }),
            JSON,
            json!({ "predictions": [{ "embeddings": { "values": [0.1, 0.2] } }] }).to_string(),
        ),
        ("cohere", "/v1/v1/chat", json!({ "message": said }), JSON, json!({ "text": said }).to_string()),
        (
            "cohere",
            "/v1/v1/chat",
            json!({ "message": said, "stream": true }),
            "application/stream+json",
            format!("{}\n", json!({ "event_type": "text-generation", "text": said })),
        ),
        (
            "ollama",
            "/v1/api/chat",
            chat.clone(),
            LINES,
            format!("{}\n", json!({ "message": { "role": "assistant", "content": said }, "done": true })),
        ),
        (
            "ollama",
            "/v1/api/generate",
            json!({ "model": "m", "prompt": said }),
            JSON,
            json!({ "response": said, "done": true }).to_string(),
        ),
        (
            "ollama",
            "/v1/api/embed",
            json!({ "model": "m", "input": said }),
            JSON,
            json!({ "embeddings": [[0.1, 0.2]] }).to_string(),
        ),
        ("huggingface", "/v1/generate", json!({ "inputs": said }), JSON, json!({ "generated_text": said }).to_string()),
        (
            "huggingface",
            "/v1/generate_stream",
            json!({ "inputs": said }),
            EVENTS,
            event(json!({ "token": { "text": said }, "generated_text": null })),
        ),
        (
            "replicate",
            "/v1/predictions",
            json!({ "input": { "prompt": said } }),
            JSON,
            json!({ "id": "p", "status": "succeeded", "output": [said] }).to_string(),
        ),
        ("triton", "/v1/generate", json!({ "text_input": said }), JSON, json!({ "text_output": said }).to_string()),
        ("triton", "/v1/generate_stream", json!({ "text_input": said }), EVENTS, event(json!({ "text_output": said }))),
        (
            "reka-ai",
            "/v1/chat",
            chat.clone(),
            JSON,
            json!({ "responses": [{ "message": { "content": said } }] }).to_string(),
        ),
        ("azure-openai", "/v1/openai/deployments/d/chat/completions", chat.clone(), JSON, choices.to_string()),
        ("azure-openai", "/v1/openai/deployments/d/chat/completions", chat.clone(), EVENTS, event(delta.clone())),
        // What no table knows, in forms that nobody told.
        ("openai", "/v1/chat/completions", chat.clone(), "application/x-unheard-of", said.clone()),
        ("openai", "/v1/threads/t/runs", chat.clone(), "text/plain", said.clone()),
        ("openai", "/v1/threads/t/runs", chat.clone(), "application/x-unheard-of", said.clone()),
        ("openai", "/v1/threads/t/runs", chat.clone(), "text/html", choices.to_string()),
        ("openai", "/v1/threads/t/runs", chat, "text/plain", event(delta)),
    ]
}

#[tokio::test]
async fn every_providers_own_path_is_a_paid_one_and_silence_on_it_is_estimated_and_counted() {
    let stack = patient().await;
    let upstream = RawUpstream::start().await;
    let account = "x-gateway-aws-access-key-id: AKIA\r\nx-gateway-aws-secret-access-key: s\r\nx-gateway-aws-region: us-east-1\r\n";
    let calls = own_calls();
    let mut wire = Wire::open(stack.proxy_port).await;
    for (provider, path, asked, kind, answer) in &calls {
        upstream.answer(answered(kind, answer));
        let headers = credentials_for(&stack, &upstream.url())
            .replace("x-gateway-provider: openai", &format!("x-gateway-provider: {provider}"));
        wire.send(post(path, &format!("{headers}{account}"), &asked.to_string())).await;
        let got = wire.answer().await.unwrap();
        assert!(got.status == 200 && got.body == answer.as_bytes(), "{provider} {path} {kind}: {got:?}");
    }
    for (row, (provider, path, _, kind, _)) in rows(&stack, calls.len()).await.iter().zip(&calls) {
        let what = format!("{provider} {path} {kind}");
        let (prompt, completion) = tokens(row);
        assert!(row.get::<_, bool>("usage_estimated"), "{what}");
        assert!((300..1500).contains(&prompt), "{what}: {prompt}");
        let writes = !path.ends_with("predict") && !path.ends_with("embed");
        assert_eq!((200..4000).contains(&completion), writes, "{what}: {completion}");
    }
    for (provider, path, count) in [
        ("bedrock", "/model/*/invoke", 1.0),
        ("vertex-ai", "/models/*:rawPredict", 1.0),
        ("cohere", "/v1/chat", 2.0),
        ("ollama", "/api/chat", 1.0),
        ("huggingface", "/generate_stream", 1.0),
        ("triton", "/generate_stream", 1.0),
        ("reka-ai", "/chat", 1.0),
        ("azure-openai", "/deployments/*/chat/completions", 2.0),
        ("openai", "/threads/*/runs", 4.0),
        ("openai", "/chat/completions", 1.0),
    ] {
        let name = format!(r#"gateway_usage_missing_total{{path="{path}",provider="{provider}"}}"#);
        stack.until_metric(&name, count).await;
    }
}

#[tokio::test]
async fn a_path_without_a_known_price_is_counted_by_its_form() {
    let stack = patient().await;
    for path in ["/threads/thread_1/messages", "/threads/thread_2/messages", "/threads"] {
        assert_eq!(stack.client().post(path, &json!({})).await.status, 200, "{path}");
    }
    assert_eq!(stack.client().get("/threads/thread_1").await.status, 200);
    for (path, count) in [("/v1/threads/*/messages", Some(2.0)), ("/v1/threads", Some(1.0)), ("/v1/threads/*", None)] {
        let name = format!(r#"gateway_unpriced_calls_total{{path="{path}",provider="openai"}}"#);
        assert_eq!(stack.metric(&name).await, count, "{name}");
    }
}

#[tokio::test]
async fn a_default_budget_ends_by_estimates_and_a_strict_one_lets_no_unbounded_call_pass() {
    let stack = patient().await;
    let silent = json!({ "mock": { "no_usage": true, "words": 3000 } }).to_string();
    let client = limited(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 5000 } })).await;
    let mut statuses = Vec::new();
    for _ in 0..4 {
        statuses.push(client.post("/chat/completions", &chat(&silent)).await.status.as_u16());
    }
    assert_eq!(statuses, [200, 200, 412, 412]);
    let strict = limited(&stack, json!({ "usage_limits": { "credit_limit": 100, "strict": true } })).await;
    for path in ["/threads/t/runs", "/batches", "/threads"] {
        assert_eq!(strict.post(path, &json!({ "model": MODEL })).await.status, 412, "{path}");
    }
}

/// What its bytes say is shorter by far than what was written.
#[tokio::test]
async fn compressed_text_of_a_type_that_nobody_knows_is_estimated_by_what_it_says() {
    let stack = patient().await;
    let upstream = RawUpstream::start().await;
    let said = "word ".repeat(400);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packed.write_all(said.as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    let kinds = ["application/x-unheard-of", "text/plain"];
    for kind in kinds {
        let length = packed.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Encoding: gzip\r\nContent-Length: {length}\r\n\r\n"
        );
        upstream.answer([head.as_bytes(), &packed].concat());
        let body = json!({ "model": MODEL, "content": "Hello" }).to_string();
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(post("/v1/threads/t/runs", &credentials_for(&stack, &upstream.url()), &body)).await;
        assert_eq!(wire.answer().await.unwrap().body.len(), length, "{kind}: it passes as it came");
    }
    for (row, kind) in rows(&stack, kinds.len()).await.iter().zip(kinds) {
        let (_, completion) = tokens(row);
        assert!(row.get::<_, bool>("usage_estimated") && (300..900).contains(&completion), "{kind}: {completion}");
    }
}

/// It was made before, and paid for then.
#[tokio::test]
async fn what_is_looked_up_costs_nothing_though_it_looks_like_a_stream() {
    let stack = patient().await;
    let upstream = RawUpstream::start().await;
    let delta = json!({ "choices": [{ "delta": { "content": "word ".repeat(400) } }] });
    let kinds = ["text/plain", "application/x-unheard-of", "text/event-stream"];
    for kind in kinds {
        upstream.answer(answered(kind, &format!("data: {delta}\n\n")));
        let head = credentials_for(&stack, &upstream.url());
        let mut wire = Wire::open(stack.proxy_port).await;
        wire.send(format!("GET /v1/threads/t/runs/r HTTP/1.1\r\n{head}\r\n")).await;
        assert_eq!(wire.answer().await.unwrap().status, 200, "{kind}");
    }
    for (row, kind) in rows(&stack, kinds.len()).await.iter().zip(kinds) {
        let cost = row.get::<_, Option<Decimal>>("cost");
        assert_eq!((tokens(row), cost), ((0, 0), Some(Decimal::ZERO)), "{kind}");
        assert!(!row.get::<_, bool>("usage_estimated"), "{kind}");
    }
}
