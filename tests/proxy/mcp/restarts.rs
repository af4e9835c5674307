//! Servers and proxies that restart in the middle of a session: a server that is down is told as an error of the request, one that
//! came back has forgotten its sessions and says so in the protocol's words, and a session outlives the proxy.

use super::{call, greeting, serve, serve_at, session};
use crate::routing::asked;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use bench::process::Signal;
use harness::{Stack, until};
use http::{HeaderMap, HeaderValue, StatusCode, header};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinHandle;
use uuid::Uuid;

const PATIENCE: Duration = Duration::from_secs(30);

/// A server that knows the one session of its own life.
async fn remembering(State(life): State<Uuid>, headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    if asked["method"] == "initialize" {
        let info = json!({ "name": "mortal", "version": "1" });
        let result = json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} }, "serverInfo": info });
        let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": result });
        return ([("mcp-session-id", life.to_string())], Json(answer)).into_response();
    }
    if headers.get("mcp-session-id").is_none_or(|sent| sent.as_bytes() != life.to_string().as_bytes()) {
        let error = json!({ "code": -32001, "message": "Session not found" });
        let answer = json!({ "jsonrpc": "2.0", "id": null, "error": error });
        return (StatusCode::NOT_FOUND, Json(answer)).into_response();
    }
    Json(json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "tools": [], "content": [] } })).into_response()
}

/// No connection outlives its answer, or it would outlive the server.
async fn closing(mut answer: Response) -> Response {
    answer.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    answer
}

/// Lives until it is stopped.
fn live(listener: TcpListener) -> JoinHandle<()> {
    let router = Router::new().route("/mcp", post(remembering)).with_state(Uuid::new_v4());
    let router = router.layer(axum::middleware::map_response(closing));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() })
}

/// At the place of the one before.
fn listen_again(address: std::net::SocketAddr) -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_reuseaddr(true).unwrap();
    socket.bind(address).unwrap();
    socket.listen(64).unwrap()
}

#[tokio::test]
async fn a_server_that_goes_and_comes_back_is_an_error_then_a_lost_session_then_a_new_one() {
    let stack = Stack::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let server = live(listener);
    let own = serve_at(&stack, "mortal", &format!("http://{address}/mcp"), json!({})).await;
    let held = session(&own, "/mortal/mcp").await;
    assert_eq!(held.post("/mortal/mcp", &call(1, "echo", "x")).await.json()["error"], Value::Null);
    server.abort();
    assert!(server.await.unwrap_err().is_cancelled());
    let down = async || held.post("/mortal/mcp", &call(2, "echo", "x")).await;
    stack.until("it is down", async || down().await.json()["error"]["code"] == -32051).await;
    let answer = down().await;
    assert_eq!((answer.status.as_u16(), &answer.json()["id"]), (200, &json!(2)), "{}", answer.text());
    let _server = live(listen_again(address));
    let lost = async || held.post("/mortal/mcp", &call(3, "echo", "x")).await.status == 404;
    stack.until("it is back and knows nothing of the session", lost).await;
    let answer = held.post("/mortal/mcp", &call(4, "echo", "x")).await;
    assert_eq!(answer.json()["error"]["code"], -32001, "{}", answer.text());
    let anew = session(&own, "/mortal/mcp").await;
    assert_eq!(anew.post("/mortal/mcp", &call(5, "echo", "x")).await.json()["error"], Value::Null);
}

#[tokio::test]
async fn sessions_and_calls_under_way_survive_a_hand_over_of_the_proxy() {
    let mut stack = Stack::start().await;
    let own = serve(&stack, "tools", "json", json!({})).await;
    let (single, merged) = (session(&own, "/tools/mcp").await, session(&own, "/mcp").await);
    let before = asked(&stack);
    stack.mock.script(json!([{ "latency_ms": 2000 }])).unwrap();
    let under_way = {
        let single = single.clone();
        tokio::spawn(async move { single.post("/tools/mcp", &call(1, "echo", "from before")).await })
    };
    until("the call is under way", async || asked(&stack) > before).await;
    let mut successor = stack.start_another_proxy(&["--upgrade"]);
    let socket = stack.folder.path().join("upgrade.sock");
    until("the successor waits for the sockets", async || socket.exists()).await;
    stack.proxy.signal(Signal::QUIT);
    let called = under_way.await.unwrap().json();
    assert_eq!(called["result"]["content"][0]["text"], "from before", "{called}");
    assert!(stack.proxy.ended_within(PATIENCE).await.success());
    let called = single.post("/tools/mcp", &call(2, "echo", "from after")).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "from after", "{called}");
    let called = merged.post("/mcp", &call(3, "tools__echo", "all of them")).await.json();
    assert_eq!(called["result"]["content"][0]["text"], "all of them", "{called}");
    assert_eq!(own.post("/tools/mcp", &greeting()).await.status, 200, "new ones are opened too");
    assert!(successor.has_ended().is_none());
}
