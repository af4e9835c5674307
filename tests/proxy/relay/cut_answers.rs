//! Answers that end before their time. The client has had the provider's status by then; the log says that the rest is missing.

use crate::journal::calls::{rows, status, text};
use crate::raw::Wire;
use crate::upstream::stalling;
use harness::Stack;

const HALF: &str = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 90\r\n\r\n{\"a\":\"fine";

#[tokio::test]
async fn the_log_says_that_an_answer_was_cut_and_why() {
    let stack = Stack::start().await;
    let url = stalling(HALF.into()).await;
    for (request, body) in [("GET /v1/elsewhere", ""), ("POST /v1/elsewhere", r#"{"model":"gpt-4o"}"#)] {
        let mut wire = Wire::open(stack.proxy_port).await;
        let key = &stack.home.workspace_key;
        wire.send(format!(
            "{request} HTTP/1.1\r\nHost: gateway.test\r\nx-gateway-api-key: {key}\r\nx-gateway-provider: openai\r\n\
             authorization: Bearer sk\r\nx-gateway-custom-host: {url}\r\nx-gateway-config: {{\"total_timeout\":1000}}\r\n\
             content-type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await;
        assert_eq!(wire.head().await.map(|(status, _)| status), Some(200), "{request}");
        wire.rest().await;
    }
    let found = rows(&stack, 2).await;
    let found: Vec<_> = found.iter().map(|row| (status(row), text(row, "error_code"))).collect();
    assert_eq!(found, [(200, Some("timeout")); 2]);
}
