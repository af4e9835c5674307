//! What was kept from a stream or from a plain answer is given again plain or as a stream, in the words of every route, at
//! providers of the route's own format and of another.

use super::cache_status;
use crate::routing::asked;
use crate::translation::client;
use harness::{Answer, Stack};
use serde_json::{Value, json};

/// A route with a body for it.
struct Route {
    provider: &'static str,
    plain: &'static str,
    stream: &'static str,
    body: fn(&str) -> Value,
    /// Id and text of a plain answer, and where they are in the events of a stream.
    id: &'static str,
    text: &'static str,
    event_ids: &'static [&'static str],
    event_text: &'static str,
}

fn chat(text: &str) -> Value {
    json!({ "model": "m", "max_tokens": 50, "messages": [{ "role": "user", "content": text }] })
}

fn prompt(text: &str) -> Value {
    json!({ "model": "m", "prompt": text })
}

fn input(text: &str) -> Value {
    json!({ "model": "m", "input": text })
}

fn contents(text: &str) -> Value {
    json!({ "contents": [{ "role": "user", "parts": [{ "text": text }] }] })
}

fn converse(text: &str) -> Value {
    json!({ "messages": [{ "role": "user", "content": [{ "text": text }] }] })
}

const CHAT: Route = Route {
    provider: "openai",
    plain: "/chat/completions",
    stream: "/chat/completions",
    body: chat,
    id: "/id",
    text: "/choices/0/message/content",
    event_ids: &["/id"],
    event_text: "/choices/0/delta/content",
};

const MESSAGES: Route = Route {
    provider: "anthropic",
    plain: "/messages",
    stream: "/messages",
    body: chat,
    id: "/id",
    text: "/content/0/text",
    event_ids: &["/message/id"],
    event_text: "/delta/text",
};

const RESPONSES: Route = Route {
    provider: "openai",
    plain: "/responses",
    stream: "/responses",
    body: input,
    id: "/id",
    text: "/output/0/content/0/text",
    event_ids: &["/response/id"],
    event_text: "/delta",
};

const GEMINI: Route = Route {
    provider: "openai",
    plain: "/v1beta/models/m:generateContent",
    stream: "/v1beta/models/m:streamGenerateContent?alt=sse",
    body: contents,
    id: "/responseId",
    text: "/candidates/0/content/parts/0/text",
    event_ids: &["/responseId"],
    event_text: "/candidates/0/content/parts/0/text",
};

const ROUTES: &[Route] = &[
    CHAT,
    Route { provider: "anthropic", ..CHAT },
    Route {
        plain: "/completions",
        stream: "/completions",
        body: prompt,
        text: "/choices/0/text",
        event_text: "/choices/0/text",
        ..CHAT
    },
    MESSAGES,
    Route { provider: "openai", ..MESSAGES },
    RESPONSES,
    Route { provider: "anthropic", ..RESPONSES },
    GEMINI,
    Route { provider: "anthropic", ..GEMINI },
];

impl Route {
    async fn ask(&self, stack: &Stack, text: &str, is_stream: bool) -> Answer {
        let client = client(stack, self.provider).with("x-gateway-cache", "simple");
        let mut body = (self.body)(text);
        if is_stream && self.plain == self.stream {
            body["stream"] = json!(true);
        }
        client.post(if is_stream { self.stream } else { self.plain }, &body).await
    }

    /// Its id and its text, however it came.
    fn said(&self, answer: &Answer, is_stream: bool) -> (String, String) {
        let at = |value: &Value, place: &str| value.pointer(place).and_then(Value::as_str).map(str::to_owned);
        if !is_stream {
            let whole = answer.json();
            return (at(&whole, self.id).unwrap_or_default(), at(&whole, self.text).unwrap_or_default());
        }
        let events = answer.text();
        let events: Vec<Value> = events
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter_map(|data| serde_json::from_str(data).ok())
            .collect();
        let id = events.iter().find_map(|event| self.event_ids.iter().find_map(|place| at(event, place)));
        let text = events.iter().filter(|event| is_text(event)).filter_map(|event| at(event, self.event_text));
        (id.unwrap_or_default(), text.collect())
    }
}

/// Other events of responses have a `delta` too.
fn is_text(event: &Value) -> bool {
    match event["type"].as_str() {
        Some(kind) if kind.starts_with("response.") => kind == "response.output_text.delta",
        _ => true,
    }
}

#[tokio::test]
async fn whatever_it_was_kept_from_it_is_given_as_it_is_asked_for() {
    let stack = Stack::start().await;
    for (place, route) in ROUTES.iter().enumerate() {
        for kept_from_stream in [false, true] {
            let name = format!("{} at {}, kept from a stream: {kept_from_stream}", route.plain, route.provider);
            let text = format!("Hello {place} {kept_from_stream}");
            let before = asked(&stack);
            let first = route.ask(&stack, &text, kept_from_stream).await;
            assert_eq!(cache_status(&first), "MISS", "{name}: {}", first.text());
            let original = route.said(&first, kept_from_stream);
            assert!(!original.1.is_empty(), "{name}: {}", first.text());
            for as_stream in [false, true] {
                let again = route.ask(&stack, &text, as_stream).await;
                assert_eq!(cache_status(&again), "HIT", "{name}, as a stream: {as_stream}");
                assert_eq!(route.said(&again, as_stream), original, "{name}: {}", again.text());
                let kind = if as_stream { "text/event-stream" } else { "application/json" };
                assert!(again.header("content-type").starts_with(kind), "{name}");
            }
            assert_eq!(asked(&stack), before + 1, "{name}");
        }
    }
}

#[tokio::test]
async fn a_bedrock_client_gets_its_frames_and_the_same_text() {
    let stack = Stack::start().await;
    let client = client(&stack, "openai").with("x-gateway-cache", "simple");
    let whole = client.post("/model/m/converse", &converse("Hello")).await;
    assert_eq!(cache_status(&whole), "MISS", "{}", whole.text());
    let said = whole.json()["output"]["message"]["content"][0]["text"].as_str().unwrap().to_owned();
    let stream = client.post("/model/m/converse-stream", &converse("Hello")).await;
    assert_eq!(cache_status(&stream), "HIT");
    assert_eq!(stream.header("content-type"), "application/vnd.amazon.eventstream");
    assert!(stream.text().contains(&said), "{}", stream.text());
    let list = client.post("/v1beta/models/m:streamGenerateContent", &contents("As a list")).await;
    assert_eq!(cache_status(&list), "MISS");
    let again = client.post("/v1beta/models/m:streamGenerateContent", &contents("As a list")).await;
    assert_eq!(cache_status(&again), "HIT");
    assert!(again.json().is_array(), "{}", again.text());
}

#[tokio::test]
async fn usage_is_told_by_a_stream_only_if_it_is_asked_for_and_by_a_plain_answer_always() {
    let stack = Stack::start().await;
    let client = client(&stack, "openai").with("x-gateway-cache", "simple");
    let mut body = chat("Usage");
    body["stream"] = json!(true);
    let silent = client.post("/chat/completions", &body).await;
    assert_eq!(cache_status(&silent), "MISS");
    assert!(!silent.text().contains("total_tokens"), "{}", silent.text());
    let plain = client.post("/chat/completions", &chat("Usage")).await;
    assert_eq!(cache_status(&plain), "HIT");
    let total = plain.json()["usage"]["total_tokens"].clone();
    assert!(total.as_u64() > Some(0), "{}", plain.text());
    body["stream_options"] = json!({ "include_usage": true });
    let telling = client.post("/chat/completions", &body).await;
    assert_eq!(cache_status(&telling), "HIT");
    let told = telling.text();
    assert_eq!(told.matches(&format!("\"total_tokens\":{total}")).count(), 1, "{told}");
    assert!(told.ends_with("data: [DONE]\n\n"), "{told}");
}

#[tokio::test]
async fn long_texts_come_in_pieces_and_calls_of_tools_whole() {
    let stack = Stack::start().await;
    let client = client(&stack, "openai").with("x-gateway-cache", "simple");
    stack.mock.script(json!([{ "reply_bytes": 1200 }])).unwrap();
    assert_eq!(cache_status(&client.post("/chat/completions", &chat("Long")).await), "MISS");
    let mut body = chat("Long");
    body["stream"] = json!(true);
    let stream = client.post("/chat/completions", &body).await;
    assert_eq!(cache_status(&stream), "HIT");
    let (chunks, _) = crate::translation::events(&stream.text());
    let pieces: Vec<usize> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str())
        .map(|piece| piece.chars().count())
        .filter(|length| *length > 0)
        .collect();
    assert_eq!(pieces, [500, 500, 200]);
    let tool = json!([{ "type": "function", "function": { "name": "weather", "parameters": { "type": "object" } } }]);
    let calling = |is_stream: bool| {
        let mut body = chat("Call");
        (body["tools"], body["tool_choice"], body["stream"]) = (tool.clone(), json!("required"), json!(is_stream));
        body
    };
    let first = client.post("/chat/completions", &calling(true)).await;
    assert_eq!(cache_status(&first), "MISS");
    let plain = client.post("/chat/completions", &calling(false)).await;
    assert_eq!(cache_status(&plain), "HIT");
    let call = plain.json()["choices"][0]["message"]["tool_calls"][0].clone();
    assert_eq!(call["function"]["name"], "weather", "{}", plain.text());
    let stream = client.post("/chat/completions", &calling(true)).await;
    assert_eq!(cache_status(&stream), "HIT");
    let (chunks, _) = crate::translation::events(&stream.text());
    let arguments: Vec<&str> = chunks
        .iter()
        .filter_map(|chunk| chunk["choices"][0]["delta"]["tool_calls"][0]["function"]["arguments"].as_str())
        .filter(|arguments| !arguments.is_empty())
        .collect();
    assert_eq!(arguments, [call["function"]["arguments"].as_str().unwrap()]);
}
