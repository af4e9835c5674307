//! Batches of the one revision that has them: each message by itself, each call with its own row.

use super::{call, messages, request, serve, session, session_id};
use crate::journal::calls::{rows, text};
use harness::Stack;
use serde_json::{Value, json};

#[tokio::test]
async fn each_message_of_a_batch_has_its_answer_and_each_call_its_row() {
    let stack = Stack::start().await;
    for way in ["json", "events"] {
        serve(&stack, way, way, json!({})).await;
    }
    let mut expected = 0;
    for way in ["json", "events"] {
        let path = format!("/{way}/mcp");
        let old = session(&super::client(&stack, &stack.home.workspace_key), &path).await;
        let old = super::client(&stack, &stack.home.workspace_key)
            .with("mcp-session-id", session_id(&old))
            .with("mcp-protocol-version", "2025-03-26");
        let batch = json!([
            call(1, "echo", "one"),
            { "jsonrpc": "2.0", "method": "notifications/x" },
            call(2, "echo", "two"),
            request(3, "made/up", json!({})),
        ]);
        let answer = old.post(&path, &batch).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let said: Vec<Value> = messages(&answer).into_iter().filter(|one| one.get("id").is_some()).collect();
        let ids: Vec<_> = said.iter().map(|one| one["id"].as_u64().unwrap()).collect();
        assert_eq!(ids, [1, 2, 3], "{said:?}");
        assert_eq!(said[1]["result"]["content"][0]["text"], "two");
        assert_eq!(said[2]["error"]["code"], -32601);
        let told = old.post(&path, &json!([{ "jsonrpc": "2.0", "method": "notifications/x" }])).await;
        assert_eq!(told.status, 202, "{}", told.text());
        expected += 2;
        let found = rows(&stack, expected).await;
        assert!(found.iter().all(|row| text(row, "ai_org") == Some("mcp")));
    }
}
