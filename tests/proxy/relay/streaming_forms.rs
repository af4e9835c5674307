//! Whatever provider streams in whatever form through the relay lane, what it used is read and has its price. Made from the
//! tables, so that a new provider is part of it.

use crate::journal::calls::{rows, tokens};
use crate::raw::{Wire, credentials_for, post};
use crate::upstream::RawUpstream;
use harness::Stack;
use openssl::base64::encode_block;
use proxy::wire::framing::write_frame;
use rust_decimal::Decimal;
use serde_json::{Value, json};
use shared::providers::Providers;
use std::path::Path;

const PROMPT: i64 = 1000;
const COMPLETION: i64 = 100;

/// Whose credential cannot be given in headers.
const SIGNED: [&str; 1] = ["oracle"];

/// Its name, its content type, its path, and the answer of a model.
type Form = (&'static str, &'static str, &'static str, Vec<u8>);

fn events(events: &[Value]) -> Vec<u8> {
    events.iter().map(|event| format!("data: {event}\n\n")).collect::<String>().into_bytes()
}

/// Events as Bedrock frames those of a model that is invoked in its own format.
fn invoked(events: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for event in events {
        let chunk = json!({ "bytes": encode_block(event.to_string().as_bytes()), "p": "abcdef" });
        write_frame("chunk", chunk.to_string().as_bytes(), &mut bytes);
    }
    bytes
}

fn forms(model: &str) -> Vec<Form> {
    const EVENTS: &str = "text/event-stream";
    const FRAMES: &str = "application/vnd.amazon.eventstream";
    const INVOKE: &str = "/model/MODEL/invoke-with-response-stream";
    const PLAIN: &str = "/own/stream";
    const VERTEX_CLAUDE: &str = "/projects/p/locations/l/publishers/anthropic/models/MODEL:streamRawPredict";
    const VERTEX_GEMINI: &str = "/projects/p/locations/l/publishers/google/models/MODEL:streamGenerateContent";
    const DEPLOYMENT: &str = "/openai/deployments/MODEL/chat/completions";
    let usage = json!({ "prompt_tokens": PROMPT, "completion_tokens": COMPLETION });
    let spoken = json!({ "input_tokens": PROMPT, "output_tokens": COMPLETION });
    let metrics = json!({ "inputTokenCount": PROMPT, "outputTokenCount": COMPLETION });
    let gemini = [
        json!({ "candidates": [{ "content": { "parts": [{ "text": "a" }] } }], "modelVersion": model }),
        json!({ "candidates": [{ "content": { "parts": [{ "text": "b" }] }, "finishReason": "STOP" }],
                "usageMetadata": { "promptTokenCount": PROMPT, "candidatesTokenCount": COMPLETION } }),
    ];
    let chat = [
        json!({ "model": model, "choices": [{ "delta": { "content": "a" } }] }),
        json!({ "model": model, "choices": [], "usage": usage }),
    ];
    let messages = [
        json!({ "type": "message_start", "message": { "model": model, "usage": { "input_tokens": PROMPT, "output_tokens": 1 } } }),
        json!({ "type": "content_block_delta", "delta": { "type": "text_delta", "text": "a" } }),
        json!({ "type": "message_delta", "usage": { "output_tokens": COMPLETION } }),
        json!({ "type": "message_stop" }),
    ];
    let mut converse = Vec::new();
    for (name, payload) in [
        ("messageStart", json!({ "role": "assistant" })),
        ("contentBlockDelta", json!({ "contentBlockIndex": 0, "delta": { "text": "a" } })),
        ("messageStop", json!({ "stopReason": "end_turn" })),
        (
            "metadata",
            json!({ "usage": { "inputTokens": PROMPT, "outputTokens": COMPLETION }, "metrics": { "latencyMs": 1 } }),
        ),
    ] {
        write_frame(name, payload.to_string().as_bytes(), &mut converse);
    }
    let mut claude = messages.to_vec();
    claude[3]["amazon-bedrock-invocationMetrics"] = metrics.clone();
    let llama = [
        json!({ "generation": "a", "prompt_token_count": PROMPT }),
        json!({ "generation": "", "stop_reason": "stop", "amazon-bedrock-invocationMetrics": metrics }),
    ];
    let response = |end: &str| {
        events(&[
            json!({ "type": "response.created", "response": { "model": model, "usage": null } }),
            json!({ "type": "response.output_text.delta", "delta": "a" }),
            json!({ "type": end, "response": { "model": model, "usage": spoken } }),
        ])
    };
    let cohere = json!({ "billed_units": { "input_tokens": PROMPT, "output_tokens": COMPLETION } });
    let lines = [json!({ "model": model, "message": { "content": "a" } }), json!({ "model": model, "usage": usage })];
    vec![
        ("chat", EVENTS, PLAIN, [events(&chat), b"data: [DONE]\n\n".to_vec()].concat()),
        ("chat without an end", EVENTS, PLAIN, events(&chat)),
        ("messages", EVENTS, PLAIN, events(&messages)),
        ("responses", EVENTS, PLAIN, response("response.completed")),
        ("incomplete responses", EVENTS, PLAIN, response("response.incomplete")),
        ("failed responses", EVENTS, PLAIN, response("response.failed")),
        ("cancelled responses", EVENTS, PLAIN, response("response.cancelled")),
        ("gemini", EVENTS, PLAIN, events(&gemini)),
        ("messages at Vertex", EVENTS, VERTEX_CLAUDE, events(&messages)),
        ("gemini at Vertex", EVENTS, VERTEX_GEMINI, events(&gemini)),
        ("chat at a deployment", EVENTS, DEPLOYMENT, [events(&chat), b"data: [DONE]\n\n".to_vec()].concat()),
        ("chat of no type", "text/plain", DEPLOYMENT, [events(&chat), b"data: [DONE]\n\n".to_vec()].concat()),
        ("gemini as a list", "application/json", PLAIN, json!(gemini).to_string().into_bytes()),
        ("converse", FRAMES, PLAIN, converse),
        ("an invoked Claude", FRAMES, INVOKE, invoked(&claude)),
        ("an invoked Llama", FRAMES, INVOKE, invoked(&llama)),
        ("cohere", EVENTS, PLAIN, events(&[json!({ "type": "message-end", "delta": { "usage": cohere } })])),
        ("lines", "application/x-ndjson", PLAIN, lines.map(|line| format!("{line}\n")).concat().into_bytes()),
    ]
}

/// A model of this provider that has a price for what it reads and writes.
fn priced_model(provider: &str) -> Option<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../conf/models/pricing/{provider}.json"));
    let prices: Value = serde_json::from_str(&std::fs::read_to_string(path).ok()?).unwrap();
    let is_priced = |entry: &Value| {
        let rates = &entry["pricing_config"]["pay_as_you_go"];
        let price = |name: &str| rates[name]["price"].as_str().and_then(|text| text.parse::<Decimal>().ok());
        ["request_token", "response_token"].into_iter().all(|name| price(name).is_some_and(|price| price > 0.into()))
    };
    let named = |name: &&String| !name.contains(['/', ':', '@', ' ']) && *name != "default";
    let found = prices.as_object()?.iter().filter(|(_, entry)| is_priced(entry)).map(|(name, _)| name);
    found.clone().find(named).or_else(|| found.clone().next()).cloned()
}

#[tokio::test]
async fn every_form_of_every_provider_has_its_usage_and_its_cost() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let providers = Providers::bundled().unwrap();
    let mut names: Vec<&str> = providers.iter().map(|row| &*row.slug).filter(|slug| !SIGNED.contains(slug)).collect();
    names.sort_unstable();
    let mut sent = Vec::new();
    let mut wire = Wire::open(stack.proxy_port).await;
    for provider in names {
        let price = priced_model(provider);
        let model = price.as_deref().unwrap_or("any");
        let account = "x-gateway-aws-access-key-id: AKIA\r\nx-gateway-aws-secret-access-key: s\r\nx-gateway-aws-region: us-east-1\r\n";
        let headers = credentials_for(&stack, &upstream.url())
            .replace("x-gateway-provider: openai", &format!("x-gateway-provider: {provider}"));
        let headers = format!("{headers}{account}");
        for (form, kind, path, body) in forms(model) {
            let length = body.len();
            let head = format!("HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\r\n");
            upstream.answer([head.as_bytes(), &body].concat());
            let path = format!("/v1{}", path.replace("MODEL", &model.replace(':', "%3A").replace('/', "%2F")));
            wire.send(post(&path, &headers, &json!({ "model": model }).to_string())).await;
            let answer = wire.answer().await.unwrap();
            assert!(answer.status == 200 && answer.body == body, "{provider}, {form}: {answer:?}");
            sent.push((provider.to_owned(), form, price.is_some()));
        }
    }
    for (row, (provider, form, is_priced)) in rows(&stack, sent.len()).await.iter().zip(&sent) {
        assert_eq!(tokens(row), (PROMPT, COMPLETION), "{provider}, {form}");
        let cost: Option<Decimal> = row.get("cost");
        assert!(!is_priced || cost.is_some_and(|cost| cost > 0.into()), "{provider}, {form}: {cost:?}");
        let is_whole = *form != "chat without an end";
        assert!(!is_whole || !row.get::<_, bool>("usage_estimated") || form.contains("lines"), "{provider}, {form}");
    }
}
