//! Cookies under the gateway's own names that a provider or an MCP server sets: a browser would keep them for our origin, so
//! they reach nobody, on whatever lane and in whatever form the answer comes.

use crate::mcp::{greeting, serve_at};
use crate::raw::{Wire, credentials_for, post};
use crate::relay::websocket::HANDSHAKE;
use crate::upstream::RawUpstream;
use axum::http::HeaderMap;
use axum::routing::post as on_post;
use axum::{Json, Router};
use harness::{Stack, chat};
use serde_json::{Value, json};

const COOKIES: &str = "Set-Cookie: __Host-gateway_session=stolen; Path=/; Secure\r\nSet-Cookie: other=1\r\n\
                       Set-Cookie: mcp_oauth_0123456789abcdef=stolen; Path=/mcp-oauth\r\n";

fn answer(status: &str, kind: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n{COOKIES}\r\n{body}", body.len())
}

#[tokio::test]
async fn no_provider_sets_a_cookie_of_ours_on_any_lane() {
    const JSON: &str = "application/json";
    const EVENTS: &str = "text/event-stream";
    let stack = Stack::start().await;
    let upstream = RawUpstream::start().await;
    let said = json!({ "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{ "index": 0, "finish_reason": "stop", "message": { "role": "assistant", "content": "Hi" } }] });
    let native = json!({ "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "Hi" }], "usage": { "input_tokens": 1, "output_tokens": 1 } });
    let event = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let (plain, mut streamed) = (chat("Hello"), chat("Hello"));
    streamed["stream"] = json!(true);
    let engine = "/v1/chat/completions";
    for (provider, path, asked, said) in [
        ("openai", engine, &plain, answer("200 OK", JSON, &said.to_string())),
        ("openai", engine, &streamed, answer("200 OK", EVENTS, event)),
        ("openai", engine, &plain, answer("400 Bad Request", JSON, "{\"error\":{\"message\":\"no\"}}")),
        ("anthropic", engine, &plain, answer("200 OK", JSON, &native.to_string())),
        ("openai", "/v1/elsewhere", &plain, answer("200 OK", JSON, "{}")),
        ("openai", "/v1/elsewhere", &plain, answer("200 OK", EVENTS, event)),
        ("openai", "/v1/elsewhere", &plain, answer("403 Forbidden", "text/html", "<p>no</p>")),
        ("openai", "/v1/files/f-1", &Value::Null, answer("200 OK", JSON, "{\"id\":\"f-1\",\"object\":\"file\"}")),
        ("openai", "/v1/models", &Value::Null, answer("200 OK", JSON, "{\"object\":\"list\",\"data\":[]}")),
    ] {
        let credentials = credentials_for(&stack, &upstream.url()).replace("openai", provider);
        upstream.answer(said.clone());
        let mut wire = Wire::open(stack.proxy_port).await;
        let (method, request) = match asked {
            Value::Null => ("GET", format!("GET {path} HTTP/1.1\r\n{credentials}\r\n")),
            body => ("POST", post(path, &credentials, &body.to_string())),
        };
        wire.send(request).await;
        let got = wire.answer_to(method).await.unwrap_or_else(|| panic!("{provider} {path}: no answer"));
        assert_eq!(upstream.take().len(), 1, "{provider} {path} was asked");
        none_of_ours(&format!("{provider} {path} {said}"), &got.headers);
    }
    let head =
        format!("HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{COOKIES}\r\n");
    upstream.answer(head);
    let mut wire = Wire::open(stack.proxy_port).await;
    let credentials = credentials_for(&stack, &upstream.url());
    wire.send(format!("GET /v1/realtime?model=m HTTP/1.1\r\n{credentials}{HANDSHAKE}\r\n")).await;
    let (status, headers) = wire.head().await.expect("an answer");
    assert_eq!(status, 101);
    none_of_ours("a websocket", &headers);
}

#[tokio::test]
async fn no_mcp_server_sets_a_cookie_of_ours() {
    async fn server(Json(asked): Json<Value>) -> (HeaderMap, Json<Value>) {
        let mut headers = HeaderMap::new();
        for cookie in ["__Host-gateway_session=stolen; Path=/; Secure", "mcp_oauth_0123456789abcdef=stolen"] {
            headers.append("set-cookie", cookie.parse().unwrap());
        }
        let result = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "tools": [],
            "serverInfo": { "name": "p", "version": "1" } });
        (headers, Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result })))
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/mcp", on_post(server))).await.unwrap() });
    let stack = Stack::start().await;
    let client = serve_at(&stack, "baker", &url, json!({})).await;
    let greeted = client.post("/baker/mcp", &greeting()).await;
    assert_eq!((greeted.status.as_u16(), greeted.header("set-cookie")), (200, ""), "{}", greeted.text());
}

fn none_of_ours(what: &str, headers: &[(String, String)]) {
    let cookies: Vec<&str> =
        headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("set-cookie")).map(|(_, value)| &**value).collect();
    assert!(cookies.iter().all(|cookie| cookie.starts_with("other=")), "{what}: {cookies:?}");
}
