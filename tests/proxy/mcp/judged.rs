//! Whatever a client or a server says is judged or withheld: in every kind of message, by every way that one comes, and
//! however it is written.

use super::{call, greeting, request, serve, serve_at, session, session_id};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use harness::client::whole;
use harness::{Client, Stack};
use http::Method;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};

/// A server that says what a test wants it to, as it is written, and remembers what it was sent.
#[derive(Clone, Default)]
struct Parrot(Arc<Mutex<Script>>);

#[derive(Default)]
struct Script {
    status: u16,
    kind: &'static str,
    says: String,
    instructions: Option<String>,
    heard: Vec<String>,
}

const EVENTS: &str = "text/event-stream";
const JSON: &str = "application/json";

async fn answer(State(parrot): State<Parrot>, body: Bytes) -> Response {
    let mut script = parrot.0.lock().unwrap();
    script.heard.push(String::from_utf8_lossy(&body).into_owned());
    let asked: Value = serde_json::from_slice(&body).unwrap_or_default();
    let result = match asked["method"].as_str() {
        Some("initialize") => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": { "name": "p", "version": "1" },
            "instructions": script.instructions,
        }),
        Some("notifications/initialized") => return StatusCode::ACCEPTED.into_response(),
        Some("tools/list") if script.says.is_empty() => {
            json!({ "tools": [{ "name": "say", "description": "says", "inputSchema": { "type": "object" } }] })
        }
        _ => {
            let status = StatusCode::from_u16(script.status).unwrap();
            return (status, [(header::CONTENT_TYPE, script.kind)], script.says.clone()).into_response();
        }
    };
    axum::Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })).into_response()
}

async fn listen(State(parrot): State<Parrot>, body: Bytes) -> Response {
    let mut script = parrot.0.lock().unwrap();
    script.heard.push(String::from_utf8_lossy(&body).into_owned());
    ([(header::CONTENT_TYPE, EVENTS)], script.says.clone()).into_response()
}

/// Whatever else a client may do.
async fn other(State(parrot): State<Parrot>, method: Method, headers: HeaderMap, body: Bytes) -> StatusCode {
    let heard = format!("{method} {headers:?} {}", String::from_utf8_lossy(&body));
    parrot.0.lock().unwrap().heard.push(heard);
    StatusCode::OK
}

impl Parrot {
    async fn start() -> (String, Self) {
        let parrot = Self::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let router = Router::new().route("/mcp", post(answer).get(listen).fallback(other)).with_state(parrot.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (url, parrot)
    }

    fn says(&self, status: u16, kind: &'static str, says: &str) {
        let mut script = self.0.lock().unwrap();
        (script.status, script.kind, script.says) = (status, kind, says.to_owned());
        script.heard.clear();
    }

    fn tells(&self, instructions: &str) {
        self.0.lock().unwrap().instructions = Some(instructions.to_owned());
    }

    fn heard(&self) -> String {
        self.0.lock().unwrap().heard.join("\n")
    }
}

async fn send(client: &Client, body: &str) -> String {
    let request = client.request(Method::POST, "/parrot/mcp").header("content-type", JSON);
    whole(request.body(body.to_owned())).await.text()
}

fn judging(client: &Client) -> Client {
    let denies = |word: &str| json!({ "default.contains": { "words": [word], "operator": "none" }, "deny": true });
    let config = json!({
        "provider": "openai", "input_guardrails": [denies("classified")], "output_guardrails": [denies("forbidden")],
    });
    client.with("x-gateway-config", config.to_string())
}

/// `WORD` stands where the server says something; plain words pass there, others never.
#[tokio::test]
async fn nothing_that_a_server_says_passes_unjudged() {
    let (url, parrot) = Parrot::start().await;
    let stack = Stack::start().await;
    let own = judging(&serve_at(&stack, "parrot", &url, json!({})).await);
    let call = request(1, "tools/call", json!({ "name": "say", "arguments": {} })).to_string();
    let task = request(1, "tasks/result", json!({ "taskId": "t" })).to_string();
    let complete = json!({ "ref": { "type": "ref/prompt", "name": "p" }, "argument": { "name": "a", "value": "b" } });
    let complete = request(1, "completion/complete", complete).to_string();
    let content = r#"{"content":[{"type":"text","text":"WORD"}]}"#;
    let done = r#"{"jsonrpc":"2.0","id":1,"result":{"content":[]}}"#;
    let result = |result: &str| format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#);
    let event = |message: &str| format!("data: {message}\n\n");
    let with_answer = |message: &str| format!("data: {message}\n\ndata: {done}\n\n");
    let loose = |value: &str| result(&format!(r#"{{"content":[{{"type":"text","text":"WORD"}}],"x":{value}}}"#));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    // What is sent (a GET where it is empty), the answer, and whether plain words pass.
    let ways: Vec<(&str, (u16, &str, String), bool)> = vec![
        (&call, (200, JSON, result(content)), true),
        (&call, (200, EVENTS, event(&result(content))), true),
        (&call, (200, JSON, result(r#"{"content":[],"structuredContent":{"a":[{"b":"WORD"}]}}"#)), true),
        (&call, (200, JSON, result(r#"{"content":[],"structuredContent":{"WORD":1}}"#)), true),
        (&call, (200, JSON, result(r#"{"content":[],"_meta":{"x":"WORD"}}"#)), true),
        (
            &call,
            (
                200,
                JSON,
                result(r#"{"content":[{"type":"resource_link","uri":"a:b","name":"n","description":"WORD"}]}"#),
            ),
            true,
        ),
        (&call, (200, JSON, r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"WORD"}}"#.into()), true),
        (
            &call,
            (200, JSON, r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"x":["WORD"]}}}"#.into()),
            true,
        ),
        (&call, (200, JSON, format!("[{}]", result(content))), true),
        (&task, (200, JSON, result(content)), true),
        (&complete, (200, JSON, result(r#"{"completion":{"values":["WORD"]}}"#)), true),
        (
            &call,
            (
                200,
                EVENTS,
                with_answer(
                    r#"{"jsonrpc":"2.0","id":"s","method":"sampling/createMessage","params":{"systemPrompt":"WORD"}}"#,
                ),
            ),
            true,
        ),
        (
            &call,
            (
                200,
                EVENTS,
                with_answer(r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"WORD"}}"#),
            ),
            true,
        ),
        (
            &call,
            (
                200,
                EVENTS,
                with_answer(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"WORD"}}"#),
            ),
            true,
        ),
        ("", (200, EVENTS, event(&result(content))), true),
        ("", (200, EVENTS, event(&format!("[{}]", result(content)))), true),
        ("", (200, EVENTS, event(r#"{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"m","data":"WORD"}}"#)), true),
        (
            "",
            (200, EVENTS, event(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"WORD"}}"#)),
            true,
        ),
        (
            "",
            (
                200,
                EVENTS,
                event(r#"{"jsonrpc":"2.0","id":"e","method":"elicitation/create","params":{"message":"WORD"}}"#),
            ),
            true,
        ),
        // Never, whatever they say.
        ("", (200, EVENTS, event(&loose(r#""\ud800""#))), false),
        ("", (200, EVENTS, "event: note\ndata: WORD\n\n".into()), false),
        (
            &call,
            (
                200,
                EVENTS,
                with_answer(r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"WORD"}]}}"#),
            ),
            false,
        ),
        (&call, (200, EVENTS, format!("{}{}", event(done), event(&result(content)))), false),
        (&call, (200, JSON, loose(r#""\ud800""#)), false),
        (&call, (200, JSON, loose("1e999")), false),
        (&call, (200, JSON, loose(&deep)), false),
        (&call, (200, JSON, loose(r#"{"a":1,"a":2}"#)), false),
        (&call, (200, JSON, result(r#"{"content":[{"type":"text","text":"WORD"}],"content":[]}"#)), false),
        (&call, (200, JSON, result(r#"{"content":[{"type":"text","text":"WORD","text":"x"}]}"#)), false),
        (&call, (200, JSON, format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{}},"Result":{content}}}"#)), false),
        (&call, (200, EVENTS, event(&format!(r#"{{"jsonrpc":"2.0","id":9,"id":1,"result":{content}}}"#))), false),
        (
            &call,
            (404, JSON, r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"WORD","data":"WORD"}}"#.into()),
            false,
        ),
        (
            &call,
            (
                400,
                JSON,
                r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"m","data":{"supported":["WORD"]}}}"#.into(),
            ),
            false,
        ),
    ];
    for (sent, (status, kind, says), is_passed) in ways {
        for (word, may_pass) in [("forbidden", false), ("harmless", is_passed)] {
            // The word itself may be told by the check that found it.
            parrot.says(status, kind, &says.replace("WORD", &format!("{word} saga")));
            let got = match sent {
                "" => own.get("/parrot/mcp").await.text(),
                sent => send(&own, sent).await,
            };
            assert_eq!(got.contains("saga"), may_pass, "{word}: {sent} {says}: {got}");
        }
    }
    parrot.says(200, JSON, "");
    for (instructions, is_told) in [("be forbidden", false), ("be harmless", true)] {
        parrot.tells(instructions);
        let got = own.post("/parrot/mcp", &greeting()).await;
        assert_eq!(
            (got.json()["result"]["serverInfo"].is_object(), got.text().contains(instructions)),
            (true, is_told)
        );
    }
}

#[tokio::test]
async fn nothing_that_a_client_says_passes_unjudged() {
    let (url, parrot) = Parrot::start().await;
    let stack = Stack::start().await;
    let own = judging(&serve_at(&stack, "parrot", &url, json!({})).await);
    let message = |rest: &str| format!(r#"{{"jsonrpc":"2.0",{rest}}}"#);
    let call = |params: &str| message(&format!(r#""id":1,"method":"tools/call","params":{{"name":"say",{params}}}"#));
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    for (body, may_pass) in [
        (call(r#""arguments":{"q":"WORD"}"#), true),
        (call(r#""arguments":{"q":"a\nWORD"}"#), true),
        (call(r#""arguments":{"WORD":1}"#), true),
        (call(r#""arguments":{},"_meta":{"x":"WORD"}"#), true),
        (call(r#""arguments":{},"task":{"note":"WORD"}"#), true),
        (message(r#""id":1,"method":"prompts/get","params":{"name":"p","arguments":{"q":"WORD"}}"#), true),
        (message(r#""id":1,"method":"resources/read","params":{"uri":"a://WORD"}"#), true),
        (
            message(
                r#""id":1,"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"WORD"}}"#,
            ),
            true,
        ),
        (message(r#""id":1,"method":"made/up","params":{"q":"WORD"}"#), true),
        (message(r#""id":1,"method":"made/up","params":["WORD"]"#), true),
        (message(r#""method":"notifications/cancelled","params":{"requestId":1,"reason":"WORD"}"#), true),
        (message(r#""id":"s","result":{"role":"assistant","content":{"type":"text","text":"WORD"}}"#), true),
        (message(r#""id":"e","result":{"action":"accept","content":{"a":"WORD"}}"#), true),
        (message(r#""id":"e","error":{"code":1,"message":"WORD"}"#), true),
        // Never, whatever they say.
        (call(r#""arguments":{"q":"WORD","z":"\ud800"}"#), false),
        (call(r#""arguments":{"q":"WORD"},"_meta":{"x":1e999}"#), false),
        (call(&format!(r#""arguments":{{"q":"WORD","z":{deep}}}"#)), false),
        (call(r#""arguments":{"q":"WORD","q":"x"}"#), false),
        (message(r#""id":"\ud800","method":"tools/call","params":{"name":"say","arguments":{"q":"WORD"}}"#), false),
    ] {
        for (word, may_pass) in [("classified", false), ("harmless", may_pass)] {
            parrot.says(200, JSON, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
            let got = send(&own, &body.replace("WORD", word)).await;
            assert_eq!(parrot.heard().contains(word), may_pass, "{word}: {body}: {got}");
        }
    }
}

/// One tool that repeats what it is told, over every transport, the merged server and a batch.
#[tokio::test]
async fn calls_are_judged_over_every_way_to_a_server() {
    let stack = Stack::start().await;
    for way in ["json", "events", "stateless"] {
        serve(&stack, way, way, json!({})).await;
    }
    let old = super::bridged::start().await;
    let own = serve_at(&stack, "old", &format!("{old}/sse"), json!({ "transport": "sse" })).await;
    let batches = session(&own, "/json/mcp").await;
    let batches = own.with("mcp-session-id", session_id(&batches)).with("mcp-protocol-version", "2025-03-26");
    for (what, client, path, tool, is_batch) in [
        ("plain answers", session(&own, "/json/mcp").await, "/json/mcp", "echo", false),
        ("events", session(&own, "/events/mcp").await, "/events/mcp", "echo", false),
        ("without a session", own.clone(), "/stateless/mcp", "echo", false),
        ("the older transport", session(&own, "/old/mcp").await, "/old/mcp", "echo", false),
        ("the merged server", session(&own, "/mcp").await, "/mcp", "events__echo", false),
        ("a batch", batches, "/json/mcp", "echo", true),
    ] {
        let client = judging(&client);
        for (word, may_pass) in [("harmless", true), ("classified", false), ("forbidden", false)] {
            let mut message = call(1, tool, &format!("{word} saga"));
            if is_batch {
                message = json!([message]);
            }
            let got = client.post(path, &message).await;
            assert_eq!(got.text().contains("saga"), may_pass, "{what}: {word}: {}", got.text());
            assert_eq!(got.text().contains("hooks_failed"), !may_pass, "{what}: {word}: {}", got.text());
        }
    }
}

/// A body that follows another method than POST is no message, whoever would read it: no server hears of one.
#[tokio::test]
async fn no_method_brings_a_server_a_body_that_nobody_judged() {
    let (url, parrot) = Parrot::start().await;
    let stack = Stack::start().await;
    let own = serve_at(&stack, "parrot", &url, json!({})).await;
    let call = request(1, "tools/call", json!({ "name": "say", "arguments": { "q": "WORD" } })).to_string();
    let bodies = [
        (JSON, call.clone()),
        (JSON, format!("[{call}]")),
        (JSON, r#"{"WORD":"\ud800"}"#.to_owned()),
        ("text/plain", "WORD".to_owned()),
        ("application/json; charset=utf-16", call.clone()),
        ("multipart/form-data; boundary=b", "--b\r\n\r\nWORD\r\n--b--\r\n".to_owned()),
        ("", call),
    ];
    for method in ["GET", "HEAD", "DELETE", "OPTIONS", "PUT", "PATCH", "POST", "QUERY", "MADEUP"] {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        for (client, is_judged) in [(judging(&own), true), (own.clone(), false)] {
            for (kind, body) in &bodies {
                parrot.says(200, JSON, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
                let mut sent = client.request(method.clone(), "/parrot/mcp");
                if !kind.is_empty() {
                    sent = sent.header("content-type", *kind);
                }
                let got = whole(sent.body(body.replace("WORD", "classified"))).await;
                let may_pass = !is_judged && method == Method::POST;
                let heard = parrot.heard();
                assert!(may_pass || !heard.contains("classified"), "{method} {kind} {body}: {heard} {}", got.status);
            }
        }
    }
}

/// Line breaks are written as a letter in JSON; a number behind one is a number all the same.
#[tokio::test]
async fn what_is_personal_is_found_and_replaced_behind_a_line_break() {
    let (url, parrot) = Parrot::start().await;
    let stack = Stack::start().await;
    let own = serve_at(&stack, "parrot", &url, json!({})).await;
    let pii = |redact: bool| {
        json!({ "provider": "openai", "input_guardrails": [
        { "default.pii": { "categories": ["CREDIT_CARD"], "redact": redact }, "deny": !redact },
    ] })
    };
    let call = request(1, "tools/call", json!({ "name": "say", "arguments": { "q": "card:\n4111 1111 1111 1111" } }));
    for redact in [false, true] {
        parrot.says(200, JSON, r#"{"jsonrpc":"2.0","id":1,"result":{}}"#);
        let got = own.with("x-gateway-config", pii(redact).to_string()).post("/parrot/mcp", &call).await;
        let heard = parrot.heard();
        assert!(!heard.contains("4111") && heard.is_empty() != redact, "{redact}: {heard} {}", got.text());
    }
}

/// A pinned tool by events that some clients read otherwise, and instructions that changed since they were approved.
#[tokio::test]
async fn pins_hold_however_a_server_writes_and_for_its_instructions() {
    let (url, parrot) = Parrot::start().await;
    parrot.says(200, JSON, "");
    parrot.tells("use it wisely");
    let stack = Stack::start().await;
    let own = serve_at(&stack, "parrot", &url, json!({})).await;
    let admin = stack.administrator();
    let listed = admin.get("/mcp-integrations/parrot/capabilities").await.json();
    let types: Vec<&str> = listed["data"].as_array().unwrap().iter().filter_map(|one| one["type"].as_str()).collect();
    assert_eq!(types, ["instructions", "tool"], "{listed}");
    let greet = async || own.post("/parrot/mcp", &greeting()).await.json()["result"]["instructions"].clone();
    assert_eq!(greet().await, "use it wisely");

    let list = request(5, "tools/list", json!({})).to_string();
    let tools = |description: &str| format!(r#"[{{"name":"say","description":{description}}}]"#);
    let evil = tools(r#""EVIL""#);
    let hidden = async || {
        parrot.says(200, JSON, &format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"tools":{evil}}}}}"#));
        !send(&own, &list).await.contains("EVIL")
    };
    stack.until("the proxy knows what was approved", hidden).await;
    for says in [
        format!(r#"{{"jsonrpc":"2.0","id":99,"id":5,"result":{{"tools":{}}}}}"#, tools(r#""EVIL \ud800""#)),
        format!(r#"{{"jsonrpc":"2.0","id":99,"id":5,"result":{{"tools":{evil}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"tools":[],"tools":{evil}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"Tools":{evil}}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"tools":{}}}}}"#, tools(r#""says","description":"EVIL""#)),
        format!(r#"{{"jsonrpc":"2.0","id":5,"result":{{"tools":{}}}}}"#, tools(r#""says","Description":"EVIL""#)),
        format!(r#"{{"jsonrpc":"2.0","id":"5","result":{{"tools":{evil}}}}}"#),
    ] {
        for (kind, said) in [(JSON, says.clone()), (EVENTS, format!("data: {says}\n\n"))] {
            parrot.says(200, kind, &said);
            let posted = send(&own, &list).await;
            let listened = own.get("/parrot/mcp").await.text();
            assert!(!posted.contains("EVIL") && !listened.contains("EVIL"), "{said}: {posted} {listened}");
        }
    }

    parrot.says(200, JSON, "");
    parrot.tells("obey EVIL");
    assert_eq!(greet().await, Value::Null, "what was not approved is not told");
    let state = async || {
        let listed = admin.get("/mcp-integrations/parrot/capabilities?type=instructions").await.json();
        (listed["data"][0]["pin_state"].clone(), listed["data"][0]["definition_hash"].clone())
    };
    // Told of again with each greeting: admin may have asked for the tools before the server said this.
    let is_known = async || greet().await.is_null() && state().await.0 == "changed";
    stack.until("admin knows of it", is_known).await;
    let approval = json!({ "capabilities": [
        { "name": "instructions", "type": "instructions", "approved": true, "definition_hash": state().await.1 },
    ] });
    assert_eq!(admin.put("/mcp-integrations/parrot/capabilities", &approval).await.status, 200);
    stack.until("they are told again", async || greet().await == "obey EVIL").await;
}
