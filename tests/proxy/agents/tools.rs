//! Tools of one vendor at another: what can be carried is carried and comes back as it was written, the rest is left out with a
//! warning. No turn ends with a refusal because of a tool.

use crate::guardrails::lanes::guarded;
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
            { "type": "code_interpreter", "container": { "type": "auto" } },
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
    assert!(warned.contains("tools[4] (code_interpreter)") && !warned.contains("web_search"), "{warned}");
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
    assert!(got.header("x-gateway-warnings").contains("tools[3] (web_search), tools[4] (code_interpreter)"));
    let (_, _, body) = asked(&upstream, "x-goog-api-key");
    assert_eq!(body["tools"][0]["functionDeclarations"].as_array().unwrap().len(), 3, "{body}");
    let item = &got.json()["output"][0];
    assert_eq!((&item["type"], &item["input"]), (&json!("custom_tool_call"), &json!(PATCH)), "{item}");
}

/// A turn with the tools that OpenAI's models know by their kind, after calls of both.
fn shell_and_patch(is_stream: bool) -> Value {
    json!({
        "model": "m", "stream": is_stream,
        "input": [
            { "type": "message", "role": "user", "content": "Go on." },
            { "type": "local_shell_call", "id": "lsh_0", "call_id": "c0", "status": "completed",
              "action": { "type": "exec", "command": ["ls"], "env": {}, "timeout_ms": 9 } },
            { "type": "local_shell_call_output", "id": "lsh_0", "output": "a.rs" },
            { "type": "apply_patch_call", "call_id": "c1", "status": "completed",
              "operation": { "type": "delete_file", "path": "a.rs" } },
            { "type": "apply_patch_call_output", "call_id": "c1", "status": "failed", "output": "no such file" },
        ],
        "tools": [{ "type": "local_shell" }, { "type": "apply_patch" }],
        "tool_choice": { "type": "apply_patch" },
    })
}

#[tokio::test]
async fn a_shell_and_a_patch_are_functions_elsewhere_and_come_back_as_their_items() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "anthropic");
    let patch = json!({ "type": "update_file", "path": "a.rs", "diff": PATCH });
    let shell = json!({ "command": ["wc", "-l"], "working_directory": "/w" });
    let calls = json!([
        { "type": "tool_use", "id": "t1", "name": "local_shell", "input": shell },
        { "type": "tool_use", "id": "t2", "name": "apply_patch", "input": patch },
    ]);
    let whole = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": calls,
        "stop_reason": "tool_use", "usage": { "input_tokens": 9, "output_tokens": 7 } });
    upstream.answer(answer("application/json", whole.to_string().as_bytes()));
    let got = client.post("/responses", &shell_and_patch(false)).await;
    assert_eq!((got.status.as_u16(), got.header("x-gateway-warnings")), (200, ""), "{}", got.text());
    let (_, _, body) = asked(&upstream, "x-api-key");
    let tools = body["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["local_shell", "apply_patch"], "{body}");
    assert_eq!(body["tool_choice"], json!({ "type": "tool", "name": "apply_patch" }));
    assert_eq!(body["messages"][1]["content"][0]["input"], json!({ "command": ["ls"], "timeout_ms": 9 }), "{body}");
    assert_eq!(body["messages"][2]["content"][0]["tool_use_id"], "c0", "named by the id of its item");
    let failed = &body["messages"][4]["content"][0];
    assert_eq!((&failed["tool_use_id"], &failed["is_error"]), (&json!("c1"), &json!(true)), "{body}");
    let action = json!({ "type": "exec", "command": ["wc", "-l"], "env": {}, "working_directory": "/w" });
    let output = got.json()["output"].clone();
    assert_eq!((&output[0]["type"], &output[0]["call_id"]), (&json!("local_shell_call"), &json!("t1")), "{output}");
    assert_eq!((&output[0]["action"], &output[0]["status"]), (&action, &json!("completed")));
    assert_eq!((&output[1]["type"], &output[1]["operation"]), (&json!("apply_patch_call"), &patch));
    assert_eq!(got.json()["tools"], shell_and_patch(false)["tools"], "tools are repeated as they were written");

    let block = |index: u32, id: &str, name: &str, arguments: &Value| {
        let text = arguments.to_string();
        let (first, rest) = text.split_at(7);
        let start = json!({ "type": "content_block_start", "index": index,
            "content_block": { "type": "tool_use", "id": id, "name": name, "input": {} } });
        let pieces = [first, rest].map(|piece| {
            frame(&json!({ "type": "content_block_delta", "index": index,
                "delta": { "type": "input_json_delta", "partial_json": piece } }))
        });
        [frame(&start), pieces.concat(), frame(&json!({ "type": "content_block_stop", "index": index }))].concat()
    };
    let start = json!({ "type": "message_start", "message": { "id": "msg_1", "type": "message", "role": "assistant",
        "model": "m", "content": [], "usage": { "input_tokens": 9, "output_tokens": 1 } } });
    let end =
        json!({ "type": "message_delta", "delta": { "stop_reason": "tool_use" }, "usage": { "output_tokens": 7 } });
    let stream = [
        frame(&start),
        block(0, "t1", "local_shell", &shell),
        block(1, "t2", "apply_patch", &patch),
        frame(&end),
        frame(&json!({ "type": "message_stop" })),
    ];
    upstream.answer(answer("text/event-stream", stream.concat().as_bytes()));
    let got = client.post("/responses", &shell_and_patch(true)).await.text();
    let (events, _) = events(&got);
    let items = |kind: &str| -> Vec<Value> {
        events.iter().filter(|event| event["type"] == kind).map(|event| event["item"].clone()).collect()
    };
    let (added, done) = (items("response.output_item.added"), items("response.output_item.done"));
    assert_eq!((added.len(), done.len()), (2, 2), "{got}");
    assert_eq!((&done[0]["action"], &done[1]["operation"]), (&action, &patch), "{got}");
    assert_eq!((&added[0]["id"], &added[1]["status"]), (&done[0]["id"], &json!("in_progress")));
    assert!(!got.contains("function_call_arguments"), "{got}");
    let last = events.iter().find(|event| event["type"] == "response.completed").unwrap();
    assert_eq!(last["response"]["output"], json!(done), "{got}");
}

#[tokio::test]
async fn a_function_of_the_callers_own_keeps_the_name_of_a_known_tool() {
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let own = json!({ "type": "function", "name": "apply_patch", "parameters": { "type": "object" } });
    let body =
        json!({ "model": "m", "input": "x", "tools": [own, { "type": "apply_patch" }, { "type": "local_shell" }] });
    let done = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": null, "tool_calls": [
            { "id": "t1", "type": "function", "function": { "name": "apply_patch", "arguments": "{}" } }] },
            "finish_reason": "tool_calls" }] });
    upstream.answer(answer("application/json", done.to_string().as_bytes()));
    let got = client(&stack, &upstream, "deepseek").post("/responses", &body).await;
    assert_eq!(got.status, 200, "{}", got.text());
    assert!(got.header("x-gateway-warnings").contains("tools[1] (apply_patch)"), "{:?}", got.headers);
    assert_eq!(got.json()["output"][0]["type"], "function_call", "{}", got.text());
}

#[tokio::test]
async fn a_guardrail_reads_what_a_shell_shall_run_and_a_patch_change() {
    let (stack, plain) = guarded(&["output_guardrails"]).await;
    let upstream = RawUpstream::start().await;
    let client = client(&stack, &upstream, "anthropic");
    let say = |name: &str, input: Value| {
        let call = json!([{ "type": "tool_use", "id": "t1", "name": name, "input": input }]);
        let whole = json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": call,
            "stop_reason": "tool_use", "usage": { "input_tokens": 9, "output_tokens": 7 } });
        upstream.answer(answer("application/json", whole.to_string().as_bytes()));
    };
    let judged = async || {
        say("local_shell", json!({ "command": ["echo", "forbidden"] }));
        client.post("/responses", &shell_and_patch(false)).await.status == 446
    };
    stack.until("the guardrail holds", judged).await;
    say("apply_patch", json!({ "type": "update_file", "path": "a", "diff": "+forbidden" }));
    assert_eq!(client.post("/responses", &shell_and_patch(false)).await.status, 446);
    // An event has a call whole, so it is judged before it goes out.
    let item = json!({ "type": "local_shell_call", "id": "lsh_1", "call_id": "t1", "status": "completed",
        "action": { "type": "exec", "command": ["echo", "forbidden"], "env": {} } });
    let stream = [
        json!({ "type": "response.output_item.done", "sequence_number": 0, "output_index": 0, "item": item }),
        json!({ "type": "response.completed", "sequence_number": 1, "response": { "id": "resp_1", "object": "response",
            "status": "completed", "model": "m", "output": [] } }),
    ];
    let text: String = stream.iter().map(frame).collect();
    upstream.answer(answer("text/event-stream", text.as_bytes()));
    let own = plain.with("x-gateway-custom-host", upstream.url());
    let body = json!({ "model": "gpt-4o-mini", "input": "x", "stream": true, "tools": [{ "type": "local_shell" }] });
    let got = own.post("/responses", &body).await;
    assert!(!got.text().contains("forbidden"), "{}", got.text());
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
