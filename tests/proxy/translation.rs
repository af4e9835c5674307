//! Clients of one dialect at providers of another: what the provider is sent, and what comes back in the client's own
//! words, whole, in a stream and when it fails. The mock plays OpenAI and Anthropic; other wires are in `wires`.

mod explained;
mod hostile_upstream;
mod native_routes;
mod object_wires;
mod remote_media;
mod shaped_wires;
pub mod wires;

use crate::journal::calls::{rows, tokens};
use crate::routing::client as with_config;
use harness::{Client, Stack, chat};
use serde_json::{Value, json};
use shared::providers::{Family, ProviderEntry, Providers, Way, Wire};

pub fn client(stack: &Stack, provider: &str) -> Client {
    let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
    client.with("x-gateway-provider", provider).with("x-gateway-custom-host", stack.mock.url())
}

fn message(content: &str) -> Value {
    json!({ "model": "claude-x", "max_tokens": 50, "messages": [{ "role": "user", "content": content }] })
}

/// The data of each event, and the names of those that have one.
pub fn events(stream: &str) -> (Vec<Value>, Vec<&str>) {
    let data = stream.lines().filter_map(|line| line.strip_prefix("data: "));
    let names = stream.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    (data.map(|data| serde_json::from_str(data).unwrap_or_else(|_| json!(data))).collect(), names)
}

/// The text of a chat's stream.
pub fn said(chunks: &[Value]) -> String {
    chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect()
}

fn sent(stack: &Stack) -> (String, Value) {
    let requests = stack.mock.requests();
    let last = requests.last().expect("the provider was asked");
    (last.path.clone(), serde_json::from_slice(&last.body).unwrap())
}

#[tokio::test]
async fn a_chat_is_asked_of_anthropic_and_answered_as_a_chat() {
    let stack = Stack::start().await;
    let asked = json!({
        "model": "claude-x", "temperature": 0.5, "seed": 7, "stop": "END",
        "messages": [
            { "role": "system", "content": "Be brief." }, { "role": "user", "content": "Hello" },
            { "role": "assistant", "content": null, "tool_calls": [
                { "id": "t1", "type": "function", "function": { "name": "weather", "arguments": "{\"city\":\"Paris\"}" } }] },
            { "role": "tool", "tool_call_id": "t1", "content": "sunny" },
        ],
    });
    let answer = client(&stack, "anthropic").post("/chat/completions", &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (path, body) = sent(&stack);
    assert_eq!(path, "/v1/messages");
    assert_eq!(body["system"], json!([{ "type": "text", "text": "Be brief." }]));
    assert_eq!((&body["max_tokens"], &body["stop_sequences"]), (&json!(4096), &json!(["END"])));
    assert_eq!(body["messages"][1]["content"][0]["input"], json!({ "city": "Paris" }));
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "t1");
    let arrived = &stack.mock.requests()[0];
    assert_eq!((arrived.header("x-api-key"), arrived.header("authorization")), ("sk-mock", ""));
    assert_eq!(arrived.header("anthropic-version"), "2023-06-01");
    let said = answer.json();
    assert_eq!((&said["object"], &said["provider"]), (&json!("chat.completion"), &json!("anthropic")));
    assert_eq!(said["choices"][0]["finish_reason"], "stop");
    assert!(said["choices"][0]["message"]["content"].as_str().is_some_and(|text| !text.is_empty()), "{said}");
    let usage = &said["usage"];
    let sum = usage["prompt_tokens"].as_i64().unwrap() + usage["completion_tokens"].as_i64().unwrap();
    assert_eq!(usage["total_tokens"].as_i64(), Some(sum));
    let row = &rows(&stack, 1).await[0];
    assert_eq!(tokens(row), (usage["prompt_tokens"].as_i64().unwrap(), usage["completion_tokens"].as_i64().unwrap()));
    assert_eq!(row.get::<_, Value>("dropped_params"), json!(["seed"]));
    assert_eq!(row.get::<_, &str>("ai_org"), "anthropic");
}

#[tokio::test]
async fn messages_are_asked_of_openai_and_answered_as_messages() {
    let stack = Stack::start().await;
    let mut asked = message("Hello");
    asked["system"] = json!("Be brief.");
    let answer = client(&stack, "openai").post("/messages", &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let (path, body) = sent(&stack);
    assert_eq!((&*path, &body["max_completion_tokens"]), ("/v1/chat/completions", &json!(50)));
    assert_eq!(body["messages"][0], json!({ "role": "system", "content": "Be brief." }));
    let said = answer.json();
    assert_eq!(
        (&said["type"], &said["role"], &said["stop_reason"]),
        (&json!("message"), &json!("assistant"), &json!("end_turn"))
    );
    assert_eq!(said["content"][0]["type"], "text");
    assert!(said["usage"]["input_tokens"].as_u64() > Some(0), "{said}");
    asked["stream"] = json!(true);
    let answer = client(&stack, "openai").post("/messages", &asked).await;
    assert_eq!(answer.header("content-type"), "text/event-stream; charset=utf-8");
    let stream = answer.text();
    let (events, names) = events(&stream);
    assert_eq!((names.first(), names.last()), (Some(&"message_start"), Some(&"message_stop")), "{stream}");
    let text: String = events.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!(text, said["content"][0]["text"], "{stream}");
    let rows = rows(&stack, 2).await;
    assert_eq!((tokens(&rows[0]), rows[1].get::<_, bool>("usage_estimated")), (tokens(&rows[1]), false));
}

#[tokio::test]
async fn a_stream_of_anthropic_reaches_a_chat_client_in_chunks() {
    let stack = Stack::start().await;
    let mut asked = chat("Hello");
    let whole = client(&stack, "anthropic").post("/chat/completions", &asked).await.json();
    asked["stream"] = json!(true);
    asked["stream_options"] = json!({ "include_usage": true });
    let answer = client(&stack, "anthropic").post("/chat/completions", &asked).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, "text/event-stream; charset=utf-8"));
    let stream = answer.text();
    let (chunks, names) = events(&stream);
    assert!(names.is_empty() && stream.ends_with("data: [DONE]\n\n"), "{stream}");
    assert_eq!(said(&chunks), whole["choices"][0]["message"]["content"], "{stream}");
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let usage = &chunks[chunks.len() - 2];
    assert_eq!((&usage["choices"], &usage["usage"]["total_tokens"]), (&json!([]), &whole["usage"]["total_tokens"]));
    let rows = rows(&stack, 2).await;
    assert_eq!((tokens(&rows[0]), rows[1].get::<_, bool>("usage_estimated")), (tokens(&rows[1]), false));
}

#[tokio::test]
async fn tools_are_offered_and_called_in_every_pair_of_dialects() {
    let stack = Stack::start().await;
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let mut chat = chat("Weather?");
    chat["tools"] = json!([{ "type": "function", "function": { "name": "weather", "parameters": schema } }]);
    chat["tool_choice"] = json!("required");
    let mut message = message("Weather?");
    message["tools"] = json!([{ "name": "weather", "input_schema": schema }]);
    message["tool_choice"] = json!({ "type": "any" });
    let answer = client(&stack, "anthropic").post("/chat/completions", &chat).await.json();
    assert_eq!(sent(&stack).1["tools"][0]["input_schema"], schema);
    let choice = &answer["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls", "{answer}");
    let call = &choice["message"]["tool_calls"][0];
    assert_eq!(
        (&call["function"]["name"], &call["function"]["arguments"]),
        (&json!("weather"), &json!("{\"city\":\"Paris\"}"))
    );
    let answer = client(&stack, "openai").post("/messages", &message).await.json();
    assert_eq!(sent(&stack).1["tools"][0]["function"]["parameters"], schema);
    assert_eq!(
        (&answer["stop_reason"], &answer["content"][0]["name"]),
        (&json!("tool_use"), &json!("weather")),
        "{answer}"
    );
    assert_eq!(answer["content"][0]["input"], json!({ "city": "Paris" }));
}

#[tokio::test]
async fn errors_come_in_the_clients_words_with_the_providers_own_and_their_status() {
    let stack = Stack::start().await;
    for (provider, path, body, kind) in [
        ("anthropic", "/chat/completions", chat("Hello"), "/error/type"),
        ("openai", "/messages", message("Hello"), "/error/type"),
    ] {
        for status in [400, 401, 404, 429, 500, 529] {
            stack.mock.script(json!([{ "status": status, "retry_after": 7 }])).unwrap();
            let answer = client(&stack, provider).post(path, &body).await;
            let said = answer.json();
            assert_eq!(answer.status, status, "{said}");
            assert_eq!((answer.header("content-type"), answer.header("retry-after")), ("application/json", "7"));
            let message = said["error"]["message"].as_str().unwrap_or_default();
            assert!(message.starts_with(provider) && message.len() > provider.len() + 8, "{said}");
            assert!(said.pointer(kind).is_some_and(Value::is_string), "{said}");
            assert_eq!(said["type"] == "error", path == "/messages", "{said}");
        }
    }
    stack.mock.script(json!([{ "status": 502, "body": "<html>", "content_type": "text/html" }])).unwrap();
    let answer = client(&stack, "anthropic").post("/chat/completions", &chat("Hello")).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (502, "application/json"));
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("<html>"));
    stack.mock.script(json!([{ "bad_json": true }])).unwrap();
    let answer = client(&stack, "anthropic").post("/chat/completions", &chat("Hello")).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (502, &json!("invalid_upstream_response")));
}

#[tokio::test]
async fn another_wire_takes_over_before_the_first_content_and_never_after_it() {
    let stack = Stack::start().await;
    let target = |provider: &str| json!({ "provider": provider, "api_key": "k", "custom_host": stack.mock.url() });
    for (first, second) in [("anthropic", "openai"), ("openai", "anthropic")] {
        let config = json!({ "strategy": { "mode": "fallback" }, "targets": [target(first), target(second)] });
        let faults = [json!({ "status": 503 }), json!({ "error_in_200": true }), json!({ "cut_at": 0 })];
        for (fault, is_stream) in faults.iter().flat_map(|fault| [(fault, false), (fault, true)]) {
            for (path, body) in [("/chat/completions", chat("Hello")), ("/messages", message("Hello"))] {
                stack.mock.script(json!([fault])).unwrap();
                let mut body = body;
                body["stream"] = json!(is_stream);
                let answer = with_config(&stack, &config).post(path, &body).await;
                let what = format!("{first} {fault} {is_stream} {path}: {}", answer.text());
                assert_eq!((answer.status.as_u16(), answer.header("x-gateway-provider")), (200, second), "{what}");
                assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{what}");
                assert!(!answer.text().contains("error"), "{what}");
                let end = if path == "/messages" { "message_stop" } else { "[DONE]" };
                assert_eq!(answer.text().contains(end), is_stream, "{what}");
            }
        }
        stack.mock.script(json!([{ "error_after_chunks": 1 }])).unwrap();
        let mut body = chat("Hello");
        body["stream"] = json!(true);
        let answer = with_config(&stack, &config).post("/chat/completions", &body).await;
        assert_eq!(answer.header("x-gateway-provider"), first, "{}", answer.text());
    }
}

#[tokio::test]
async fn a_stream_that_fails_after_its_first_content_ends_in_one_error_of_the_clients() {
    let stack = Stack::start().await;
    for fault in [json!({ "error_after_chunks": 1 }), json!({ "cut_at": 1500, "chunks": 20, "reply_bytes": 400 })] {
        let mut asked = chat("Hello");
        asked["stream"] = json!(true);
        stack.mock.script(json!([fault])).unwrap();
        let stream = client(&stack, "anthropic").post("/chat/completions", &asked).await.text();
        let (chunks, _) = events(&stream);
        assert!(!said(&chunks).is_empty() && stream.ends_with("data: [DONE]\n\n"), "{fault}: {stream}");
        let errors: Vec<_> = chunks.iter().filter(|chunk| chunk.get("error").is_some()).collect();
        assert_eq!((errors.len(), errors[0]["error"]["message"].is_string()), (1, true), "{fault}: {stream}");
        let mut asked = message("Hello");
        asked["stream"] = json!(true);
        stack.mock.script(json!([fault])).unwrap();
        let stream = client(&stack, "openai").post("/messages", &asked).await.text();
        let (_, names) = events(&stream);
        assert_eq!(names.last(), Some(&"error"), "{fault}: {stream}");
        assert!(!names.contains(&"message_stop") && names.contains(&"content_block_delta"), "{fault}: {stream}");
    }
}

#[tokio::test]
async fn responses_and_completions_are_asked_of_anthropic() {
    let stack = Stack::start().await;
    let asked = json!({ "model": "claude-x", "input": "Hello", "instructions": "Be brief." });
    let answer = client(&stack, "anthropic").post("/responses", &asked).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(sent(&stack).1["system"][0]["text"], "Be brief.");
    let said = answer.json();
    assert_eq!(
        (&said["object"], &said["status"], &said["instructions"]),
        (&json!("response"), &json!("completed"), &json!("Be brief."))
    );
    let mut stream = asked.clone();
    stream["stream"] = json!(true);
    let answer = client(&stack, "anthropic").post("/responses", &stream).await.text();
    let (_, names) = events(&answer);
    assert_eq!((names.first(), names.last()), (Some(&"response.created"), Some(&"response.completed")), "{answer}");
    let answer = client(&stack, "anthropic").post("/completions", &json!({ "model": "m", "prompt": "Hello" })).await;
    assert_eq!(answer.json()["object"], "text_completion", "{}", answer.text());
}

#[tokio::test]
async fn what_cannot_be_said_is_refused_by_name_before_the_provider_is_asked() {
    let stack = Stack::start().await;
    for (provider, path, body, code, param) in [
        (
            "anthropic",
            "/responses",
            json!({ "model": "m", "input": "x", "previous_response_id": "r" }),
            "unsupported_parameter",
            "previous_response_id",
        ),
        ("anthropic", "/chat/completions", json!({ "model": "m", "messages": "x" }), "invalid_parameter", "messages"),
        (
            "google",
            "/chat/completions",
            json!({ "messages": [{ "role": "user", "content": "x" }] }),
            "invalid_parameter",
            "model",
        ),
    ] {
        let answer = client(&stack, provider).post(path, &body).await;
        let error = &answer.json()["error"];
        assert_eq!(
            (answer.status.as_u16(), &error["code"], &error["param"]),
            (400, &json!(code), &json!(param)),
            "{error}"
        );
    }
    assert!(stack.mock.requests().is_empty());
}

#[tokio::test]
async fn cached_tokens_are_counted_once_whatever_the_wire_and_the_client() {
    let stack = Stack::start().await;
    let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": 60, "cache_creation_input_tokens": 30, "output_tokens": 5 });
    let body = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{ "type": "text", "text": "Hi" }], "stop_reason": "end_turn", "usage": usage });
    let fault = json!([{ "body": body.to_string(), "content_type": "application/json", "times": 2 }]);
    stack.mock.script(fault).unwrap();
    let mut asked = chat("Hello");
    asked["model"] = json!("claude-sonnet-4-5");
    let told = client(&stack, "anthropic").post("/chat/completions", &asked).await.json()["usage"].clone();
    assert_eq!(
        (&told["prompt_tokens"], &told["completion_tokens"], &told["total_tokens"]),
        (&json!(100), &json!(5), &json!(105))
    );
    assert_eq!(told["prompt_tokens_details"]["cached_tokens"], 60);
    let mut native = message("Hello");
    native["model"] = json!("claude-sonnet-4-5");
    client(&stack, "anthropic").post("/messages", &native).await;
    let rows = rows(&stack, 2).await;
    let cost = |row: &tokio_postgres::Row| row.get::<_, Option<rust_decimal::Decimal>>("cost");
    assert_eq!(tokens(&rows[0]), (100, 5));
    assert_eq!((tokens(&rows[0]), cost(&rows[0])), (tokens(&rows[1]), cost(&rows[1])));
    assert!(cost(&rows[0]).is_some_and(|cost| cost > rust_decimal::Decimal::ZERO));
}

/// Where a wire is, with the places filled as the client of this test says.
fn place(row: &ProviderEntry, wire: &Wire) -> String {
    let filled = wire.path.fill(|place| match place {
        "model" | "model_path" | "base_model" | "deployment" | "endpoint" => Some("m"),
        "project" => Some("p"),
        "region" => Some("r"),
        "user" => Some("u"),
        other => row.placed(other, |_| None),
    });
    filled.unwrap_or_else(|place| panic!("{}: {place}", row.slug))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_conversation_of_every_row_reaches_the_place_of_its_wire() {
    let stack = Stack::start().await;
    let mut walked = 0;
    for row in Providers::bundled().unwrap().iter() {
        let client = stack.anonymous().with_key(&stack.home.workspace_key).with("authorization", "Bearer sk-mock");
        let client = client.with("x-gateway-provider", &*row.slug).with("x-gateway-custom-host", stack.mock.origin());
        let client = client.with("x-gateway-vertex-project-id", "p").with("x-gateway-vertex-region", "r");
        // Its signature takes a key, which `shaped_wires` has.
        let families = row.translated().filter(|_| &*row.slug != "oracle");
        for family in families {
            let Some(Way::Translated(wire)) = row.way(family, "m") else { continue };
            let user = [json!({ "role": "user", "content": "Hello" })];
            let body = match family {
                Family::Complete => json!({ "model": "m", "user": "u", "prompt": "Hello" }),
                Family::Responses => json!({ "model": "m", "user": "u", "input": "Hello" }),
                Family::Messages => json!({ "model": "m", "user": "u", "max_tokens": 9, "messages": user }),
                _ => json!({ "model": "m", "user": "u", "messages": user }),
            };
            stack.mock.reset();
            let answer = client.post(family.path(), &body).await;
            let arrived = stack.mock.requests();
            let what = format!("{} {}: {}", row.slug, family.name(), answer.text());
            assert_eq!(arrived.len(), 1, "{what}");
            let query = arrived[0].query.as_deref().map(|query| format!("?{query}")).unwrap_or_default();
            assert_eq!(format!("{}{query}", arrived[0].path), place(row, wire), "{what}");
            walked += 1;
        }
    }
    assert!(walked > 120, "only {walked} conversations");
}
