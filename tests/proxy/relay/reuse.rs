//! Held connections of the relay lane: shared where the protocol can share them, never a reason to send a call twice.

use bench::mock::{self, Authority};
use futures::future::join_all;
use harness::{Client, Stack, chat};
use serde_json::json;
use std::collections::HashSet;

/// Pingora would open a connection for each call that runs at the same time (trap T2).
#[tokio::test]
async fn relayed_calls_share_an_http2_connection() {
    let authority = Authority::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, authority.pem().unwrap()).unwrap();
    let tls = mock::Tls { port: 0, identity: authority.issue(&["localhost"]).unwrap(), h2: true };
    let stack = Stack::builder()
        .mock(mock::Options { tls: Some(tls), ..mock::Options::default() })
        .proxy("UPSTREAM_CA_FILE", file.to_str().unwrap())
        .proxy("PROXY_THREADS", "1")
        .start()
        .await;
    let client = Client::new(&stack.base_url)
        .with_key(&stack.home.workspace_key)
        .with("x-gateway-provider", "openai")
        .with("authorization", "Bearer sk-mock")
        .with("x-gateway-custom-host", stack.mock.tls_url().unwrap());
    assert_eq!(client.post("/rerank", &chat("first")).await.status, 200);
    stack.mock.reset();
    stack.mock.script(json!([{ "latency_ms": 200, "times": 20 }])).unwrap();
    let body = chat("together");
    let answers = join_all((0..20).map(|_| client.post("/rerank", &body))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    let arrived = stack.mock.requests();
    assert!(arrived.iter().all(|request| request.version == "HTTP/2"));
    let connections: HashSet<u64> = arrived.iter().map(|request| request.connection).collect();
    assert_eq!((arrived.len(), connections.len()), (20, 1), "{connections:?}");
}

/// A streamed body cannot be sent again, and a call that may have been worked on must not be (traps T4 and T12).
#[tokio::test]
async fn a_relayed_post_is_never_sent_twice() {
    let stack = Stack::builder().proxy("PROXY_THREADS", "1").start().await;
    for body in [chat("small"), chat(&"large ".repeat(50_000))] {
        for reset in [true, false] {
            assert_eq!(stack.client().post("/rerank", &body).await.status, 200);
            stack.mock.reset();
            stack.mock.script(json!([{ "no_answer": true, "reset": reset }])).unwrap();
            let answer = stack.client().post("/rerank", &body).await;
            let code = answer.json()["error"]["code"].clone();
            assert_eq!((answer.status.as_u16(), code), (503, json!("upstream_unreachable")), "reset: {reset}");
            assert_eq!(stack.mock.requests().len(), 1, "reset: {reset}");
        }
    }
}

#[tokio::test]
async fn a_provider_that_closes_idle_connections_costs_no_call() {
    let stack = Stack::builder().proxy("PROXY_THREADS", "1").start().await;
    for path in ["/chat/completions", "/rerank"] {
        stack.mock.script(json!([{ "close_idle": true, "times": 20 }])).unwrap();
        for number in 0..20 {
            let answer = stack.client().post(path, &chat("x")).await;
            assert_eq!(answer.status, 200, "{path} {number}: {}", answer.text());
            // A relayed POST on a connection that closes at this very moment is not sent again, and rightly so.
            stack.mock.until(|counts| counts.connections_open == 0).await;
        }
    }
}
