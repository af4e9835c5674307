//! Guardrails of a workspace on every lane and every family of endpoints: whatever way a text takes to a provider, it is judged,
//! or refused where it cannot be.

use crate::journal::calls::rows;
use crate::routing::asked;
use harness::client::whole;
use harness::{Client, Stack, chat};
use http::Method;
use serde_json::{Value, json};

/// A workspace whose requests and answers must not have the word, as `sides` say.
pub async fn guarded(sides: &[&str]) -> (Stack, Client) {
    let stack = Stack::start().await;
    let client = guard(&stack, sides).await;
    (stack, client)
}

/// The same of a stack that runs; it need not know of it at once.
pub async fn guard(stack: &Stack, sides: &[&str]) -> Client {
    let checks = json!([{ "id": "default.contains", "parameters": { "words": ["forbidden"], "operator": "none" } }]);
    let body =
        json!({ "name": "No", "checks": checks, "actions": { "deny": true }, "workspace_id": stack.home.workspace_id });
    let saved = stack.home.create("/guardrails", body).await;
    let defaults: Value =
        sides.iter().map(|side| ((*side).to_owned(), json!([saved["slug"]]))).collect::<serde_json::Map<_, _>>().into();
    let path = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let answer = stack.administrator().put(&path, &json!({ "defaults": defaults })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    stack.client()
}

pub async fn until_held(stack: &Stack, client: &Client) {
    let said = async || client.post("/chat/completions", &chat("forbidden")).await.status == 446;
    stack.until("the guardrail holds", said).await;
}

#[tokio::test]
async fn a_text_is_judged_on_every_lane_or_refused_where_it_cannot_be() {
    let (stack, client) = guarded(&["input_guardrails"]).await;
    until_held(&stack, &client).await;
    let before = asked(&stack);
    let said = json!([{ "role": "user", "content": "forbidden" }, { "role": "user", "content": "hi" }]);
    let tool =
        json!([{ "type": "function", "function": { "name": "f", "description": "forbidden", "parameters": {} } }]);
    for (path, body) in [
        ("/chat/completions", json!({ "model": "m", "messages": said })),
        ("/chat/completions", json!({ "model": "m", "messages": said, "stream": true })),
        (
            "/chat/completions",
            json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "tools": tool }),
        ),
        ("/completions", json!({ "model": "m", "prompt": "forbidden" })),
        (
            "/messages",
            json!({ "model": "m", "max_tokens": 5, "system": "forbidden", "messages": [{ "role": "user", "content": "hi" }] }),
        ),
        ("/responses", json!({ "model": "m", "instructions": "forbidden", "input": "hi" })),
        ("/embeddings", json!({ "model": "m", "input": ["hi", "forbidden"] })),
        ("/images/generations", json!({ "model": "m", "prompt": "forbidden" })),
        ("/audio/speech", json!({ "model": "m", "input": "forbidden", "voice": "alloy" })),
        ("/rerank", json!({ "model": "m", "query": "x", "documents": ["forbidden"] })),
        ("/moderations", json!({ "model": "m", "input": "forbidden" })),
        ("/deployments/gpt-4o/chat/completions", json!({ "messages": said })),
        ("/chat", json!({ "message": "hi", "chat_history": [{ "role": "USER", "message": "forbidden" }] })),
        ("/threads/runs", json!({ "thread": { "messages": said } })),
        ("/api/chat", json!({ "model": "m", "messages": said })),
        (
            "/batches",
            json!({ "input_file_id": "f", "endpoint": "/v1/chat/completions", "metadata": { "a": "forbidden" } }),
        ),
        ("/messages/batches", json!({ "requests": [{ "params": { "messages": said } }] })),
        ("/elsewhere", json!(["forbidden"])),
        ("/elsewhere", json!({ "messages": [{ "content": "x".repeat(80 << 10) }], "last": "forbidden" })),
    ] {
        let answer = client.post(path, &body).await;
        assert_eq!(answer.status, 446, "{path} {body}: {}", answer.text());
        assert!(answer.text().contains("hook_results"), "{path}");
    }
    let json = |text: &str| ("application/json", text.as_bytes().to_vec());
    let form = "--b\r\ncontent-disposition: form-data; name=\"purpose\"\r\n\r\nforbidden\r\n--b--\r\n";
    let long = json!({ "messages": [{ "content": "x".repeat(1 << 20) }], "last": "forbidden" }).to_string();
    for (path, (kind, body)) in [
        ("/files", ("multipart/form-data; boundary=b", form.into())),
        ("/elsewhere", ("text/plain", b"forbidden".to_vec())),
        ("/elsewhere", ("application/octet-stream", b"forbidden".to_vec())),
        ("/elsewhere", json(r#"{"a":"hi","a":"forbidden"}"#)),
        ("/elsewhere", json(r#"{"a":"\ud800"}"#)),
        ("/elsewhere", json("forbidden")),
        ("/elsewhere", json(r#"{"messages":[],"Messages":["hi"]}"#)),
        ("/elsewhere", json(&long)),
    ] {
        let answer = whole(client.request(Method::POST, path).header("content-type", kind).body(body)).await;
        assert_eq!(answer.status, 403, "{path} {kind}: {}", answer.text());
        assert_eq!(answer.json()["error"]["code"], "guardrail_unreadable", "{path}");
    }
    let compressed = client.with("content-encoding", "gzip").request(Method::POST, "/elsewhere");
    assert_eq!(whole(compressed.header("content-type", "application/json").body("x")).await.status, 403);
    let session =
        client.request(Method::GET, "/realtime?model=m").header("upgrade", "websocket").header("connection", "upgrade");
    assert_eq!(whole(session).await.status, 403, "what is said in a session");
    let tokens = json!({ "model": "llama", "prompt": [1, 2, 3] });
    assert_eq!(client.post("/completions", &tokens).await.status, 403, "tokens that nobody here can read");
    let variant = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }], "Messages": [] });
    assert_eq!(client.post("/chat/completions", &variant).await.status, 400);
    assert_eq!(asked(&stack), before, "no provider heard of any of it");
    for (method, path, body) in [
        (Method::GET, "/files", None),
        (Method::DELETE, "/files/f-1", None),
        (Method::POST, "/elsewhere", Some(json!({ "messages": [{ "content": "hi" }] }))),
    ] {
        let mut request = client.request(method.clone(), path);
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = whole(request).await;
        assert!(![403, 446].contains(&answer.status.as_u16()), "{method} {path}: {}", answer.text());
    }
}

#[tokio::test]
async fn an_organisation_lets_paths_pass_that_cannot_be_judged_and_what_can_be_still_is() {
    let (stack, client) = guarded(&["input_guardrails", "output_guardrails"]).await;
    until_held(&stack, &client).await;
    let send = async |path: &str, kind: &str, text: &'static str| {
        whole(client.request(Method::POST, path).header("content-type", kind).body(text)).await.status.as_u16()
    };
    assert_eq!(send("/elsewhere/deep", "text/plain", "hi").await, 403);
    assert_ne!(send("/elsewhere/deep", "application/json", "{}").await, 403, "its answer is judged");
    let allow = json!({ "settings": { "relay_with_guardrails": ["/v1/elsewhere/*"] } });
    assert_eq!(stack.administrator().put("/admin/organisation", &allow).await.status, 200);
    let passes = async || send("/elsewhere/deep", "text/plain", "hi").await != 403;
    stack.until("the path passes", passes).await;
    assert_ne!(send("/elsewhere/deep", "application/json", "{}").await, 403);
    assert_eq!(send("/elsewhere/deep", "application/json", r#"{"a":"forbidden"}"#).await, 446);
    assert_eq!(send("/elsewhere", "text/plain", "hi").await, 403, "another path");
    assert_eq!(send("/elsewhere/deep/er", "text/plain", "hi").await, 403, "another path");
}

#[tokio::test]
async fn answers_are_withheld_by_default_in_streams_and_with_their_reasoning() {
    let (stack, client) = guarded(&["output_guardrails"]).await;
    for is_stream in [false, true] {
        let mut body = chat("Hello");
        body["stream"] = is_stream.into();
        let denied = async || {
            stack.mock.script(json!([{ "reply": "a forbidden word" }])).unwrap();
            let answer = client.post("/chat/completions", &body).await;
            answer.status == 446 && !answer.text().contains("a forbidden word")
        };
        stack.until("the answer is withheld", denied).await;
        let said = json!({ "role": "assistant", "reasoning_content": "a forbidden thought", "content": "Hi" });
        let (choice, kind) = match is_stream {
            true => (json!({ "index": 0, "delta": said, "finish_reason": "stop" }), "text/event-stream"),
            false => (json!({ "index": 0, "message": said, "finish_reason": "stop" }), "application/json"),
        };
        let whole = json!({ "id": "c", "created": 1, "model": "m", "choices": [choice] }).to_string();
        let thought = if is_stream { format!("data: {whole}\n\ndata: [DONE]\n\n") } else { whole };
        stack.mock.script(json!([{ "body": thought, "content_type": kind }])).unwrap();
        let answer = client.post("/chat/completions", &body).await;
        assert!(
            answer.status == 446 && !answer.text().contains("a forbidden thought"),
            "{is_stream}: {}",
            answer.text()
        );
    }
}

#[tokio::test]
async fn a_denial_tells_which_check_and_why_and_nothing_of_what_it_found() {
    let stack = Stack::start().await;
    let hook = json!({ "default.regexMatch": { "rule": "[0-9]{3}-[0-9]{2}-[0-9]{4}", "not": true }, "deny": true });
    let config = crate::routing::target(&stack, json!({ "input_guardrails": [hook] }));
    for soft in [false, true] {
        let mut config = config.clone();
        config["input_guardrails"][0]["soft_deny_200"] = soft.into();
        let answer =
            crate::routing::client(&stack, &config).post("/chat/completions", &chat("it is 123-45-6789")).await;
        assert_eq!(answer.status, if soft { 200 } else { 446 });
        assert!(!answer.text().contains("123-45-6789"), "{}", answer.text());
        let check = &answer.json()["hook_results"]["before_request_hooks"][0]["checks"][0];
        assert_eq!(check["id"], "default.regexMatch");
        assert!(check["data"]["explanation"].is_string(), "{check}");
        assert_eq!(check["data"].as_object().unwrap().len(), 1, "{check}");
    }
    let told: Value = rows(&stack, 2).await[0].get("hook_results");
    assert!(told.to_string().contains("123-45-6789"), "the log has it: {told}");
    // What an answer says is nobody's yet: each check that shows what it found, on either lane, streamed or not.
    let number = "123-45-6789";
    for (check, parameters) in [
        ("default.regexMatch", json!({ "rule": "[0-9]{3}-[0-9]{2}-[0-9]{4}", "not": true })),
        ("default.contains", json!({ "words": [number], "operator": "none" })),
        ("default.wordCount", json!({ "minWords": 900, "maxWords": 999 })),
        ("default.endsWith", json!({ "suffix": "never" })),
        ("default.jsonKeys", json!({ "keys": ["never"], "operator": "any" })),
        ("default.jsonSchema", json!({ "schema": { "type": "object", "required": ["never"] } })),
        ("default.validUrls", json!({ "onlyDNS": true })),
    ] {
        let hook = json!({ check: parameters, "deny": true });
        let config = crate::routing::target(&stack, json!({ "output_guardrails": [hook] }));
        let client = crate::routing::client(&stack, &config);
        for (path, is_stream) in [("/chat/completions", false), ("/chat/completions", true), ("/api/chat", false)] {
            let reply = json!({ "number": number, "at": "https://none.invalid/123-45-6789" }).to_string();
            stack.mock.script(json!([{ "reply": reply }])).unwrap();
            let mut asked = chat("hi");
            asked["stream"] = is_stream.into();
            let answer = client.post(path, &asked).await;
            assert!(!answer.text().contains(number), "{check} {path} {is_stream}: {}", answer.text());
            assert!(path != "/chat/completions" || answer.status == 446, "{check}: {}", answer.text());
        }
    }
}
