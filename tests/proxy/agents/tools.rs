//! Tools of one vendor at another: what can be carried is carried and comes back as it was written, the rest is left out with a
//! warning. No turn ends with a refusal because of a tool.

use crate::translation::events;
use crate::translation::wires::{answer, asked, client};
use crate::upstream::RawUpstream;
use harness::Stack;
use serde_json::{Value, json};

const PATCH: &str = "*** Begin Patch\n+\"é\"\n*** End Patch\n";

/// As Codex asks.
fn codex(is_stream: bool) -> Value {
    json!({
        "model": "m", "stream": is_stream, "store": false, "tool_choice": "auto",
        "input": [
            { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "Patch it." }] },
            { "type": "custom_tool_call", "call_id": "c0", "name": "apply_patch", "input": "*** first" },
            { "type": "custom_tool_call_output", "call_id": "c0", "output": "failed" },
            { "type": "function_call", "call_id": "c1", "namespace": "agents", "name": "spawn", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "c1", "output": "spawned" },
        ],
        "tools": [
            { "type": "function", "name": "shell", "parameters": { "type": "object" } },
            { "type": "custom", "name": "apply_patch", "description": "Edits files.",
              "format": { "type": "grammar", "syntax": "lark", "definition": "start: hunk+" } },
            { "type": "namespace", "name": "agents", "description": "Others.",
              "tools": [{ "type": "function", "name": "spawn", "parameters": { "type": "object" } }] },
            { "type": "web_search" },
            { "type": "local_shell" },
        ],
    })
}

fn frame(event: &Value) -> String {
    format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

/// Two calls of Anthropic's, the first one's arguments cut in the middle of an escape.
fn anthropic_stream() -> String {
    let arguments = json!({ "input": PATCH }).to_string();
    let (first, rest) = arguments.split_at(arguments.find("\\n").unwrap() + 1);
    let block = |index: u32, id: &str, name: &str, pieces: &[&str]| {
        let start = json!({ "type": "content_block_start", "index": index,
            "content_block": { "type": "tool_use", "id": id, "name": name, "input": {} } });
        let pieces = pieces.iter().map(|piece| {
            frame(&json!({ "type": "content_block_delta", "index": index,
                "delta": { "type": "input_json_delta", "partial_json": piece } }))
        });
        let end = frame(&json!({ "type": "content_block_stop", "index": index }));
        [frame(&start), pieces.collect(), end].concat()
    };
    let start = json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "usage": { "input_tokens": 9, "output_tokens": 1 } } });
    let end =
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 7 } });
    [
        frame(&start),
        block(0, "t1", "apply_patch", &[first, rest]),
        block(1, "t2", "agents__spawn", &["{\"n\":1}"]),
        frame(&end),
        frame(&json!({ "type": "message_stop" })),
    ]
    .concat()
}

#[tokio::test]
async fn codex_edits_files_by_a_model_of_anthropics() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "anthropic");
    upstream.answer(answer("text/event-stream", anthropic_stream().as_bytes()));
    let got = client.post("/responses", &codex(true)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    let warned = got.header("x-gateway-warnings").to_owned();
    assert!(warned.contains("tools[4] (local_shell)") && !warned.contains("web_search"), "{warned}");
    let (_, _, body) = asked(&upstream, "x-api-key");
    let names: Vec<&str> = body["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["shell", "apply_patch", "agents__spawn", "web_search"]);
    let patch = &body["tools"][1];
    assert_eq!(
        (&patch["input_schema"]["required"], &patch["input_schema"]["additionalProperties"]),
        (&json!(["input"]), &json!(false))
    );
    assert!(patch["description"].as_str().unwrap().contains("start: hunk+"), "{patch}");
    assert_eq!(body["tools"][3]["type"], "web_search_20250305");
    assert_eq!(body["messages"][1]["content"][0]["input"], json!({ "input": "*** first" }), "{body}");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "c0");
    assert_eq!(body["messages"][3]["content"][0]["name"], "agents__spawn");
    let text = got.text();
    let (events, _) = events(&text);
    let of = |kind: &str| events.iter().filter(|event| event["type"] == kind).cloned().collect::<Vec<_>>();
    let deltas = of("response.custom_tool_call_input.delta");
    assert!(deltas.len() >= 2, "{text}");
    assert_eq!(deltas.iter().filter_map(|event| event["delta"].as_str()).collect::<String>(), PATCH);
    assert_eq!(of("response.custom_tool_call_input.done")[0]["input"], PATCH);
    assert_eq!(of("response.function_call_arguments.delta").len(), 1, "the other call alone");
    let output = &of("response.completed")[0]["response"]["output"];
    let call = |index: usize| output[index].clone();
    assert_eq!(
        (&call(0)["type"], &call(0)["name"], &call(0)["call_id"]),
        (&json!("custom_tool_call"), &json!("apply_patch"), &json!("t1"))
    );
    assert_eq!(call(0)["input"], PATCH);
    assert_eq!(deltas[0]["item_id"], call(0)["id"]);
    assert_eq!(
        (&call(1)["type"], &call(1)["namespace"], &call(1)["name"]),
        (&json!("function_call"), &json!("agents"), &json!("spawn"))
    );
    let echoed = &of("response.created")[0]["response"]["tools"];
    assert_eq!(echoed, &codex(true)["tools"], "tools are repeated as they were written");
}

#[tokio::test]
async fn a_whole_answer_has_the_freeform_call_too_and_google_gets_what_it_takes() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "google");
    let call = json!({ "functionCall": { "name": "apply_patch", "args": { "input": PATCH } } });
    let told = json!({ "candidates": [{ "content": { "role": "model", "parts": [call] }, "finishReason": "STOP" }],
        "usageMetadata": { "promptTokenCount": 9, "candidatesTokenCount": 4, "totalTokenCount": 13 } });
    upstream.answer(answer("application/json", told.to_string().as_bytes()));
    let got = client.post("/responses", &codex(false)).await;
    assert_eq!(got.status, 200, "{}", got.text());
    // Google takes its search beside no functions.
    assert!(got.header("x-gateway-warnings").contains("tools[3] (web_search), tools[4] (local_shell)"));
    let (_, _, body) = asked(&upstream, "x-goog-api-key");
    assert_eq!(body["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 3, "{body}");
    let item = &got.json()["output"][0];
    assert_eq!((&item["type"], &item["input"]), (&json!("custom_tool_call"), &json!(PATCH)), "{item}");
}

#[tokio::test]
async fn a_search_of_one_vendor_becomes_that_of_the_other() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let told = json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "Hi" }] }, "finishReason": "STOP" }] });
    upstream.answer(answer("application/json", told.to_string().as_bytes()));
    let search = json!({ "model": "m", "max_tokens": 9, "messages": [{ "role": "user", "content": "x" }],
        "tools": [{ "type": "web_search_20250305", "name": "web_search", "max_uses": 8 }],
        "tool_choice": { "type": "tool", "name": "web_search" } });
    let got = client(&stack, &upstream, "google").post("/messages", &search).await;
    assert_eq!((got.status.as_u16(), got.header("x-gateway-warnings")), (200, ""), "{}", got.text());
    let (_, _, body) = asked(&upstream, "x-goog-api-key");
    assert_eq!((&body["tools"], body.get("toolConfig")), (&json!([{ "googleSearch": {} }]), None), "{body}");
    // One that searches nothing answers all the same.
    let done = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hi" }, "finish_reason": "stop" }] });
    upstream.answer(answer("application/json", done.to_string().as_bytes()));
    let got = client(&stack, &upstream, "groq").post("/messages", &search).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(got.header("x-gateway-warnings").contains("tools[0] (web_search_20250305), tool_choice"));
}
