//! Batches are of one workspace: for everybody else they, and the files they would read, do not exist.

use super::{asked, batches_made, begin, id, jsonl, row, upload};
use crate::families::application;
use harness::Stack;
use harness::client::whole;
use http::Method;
use serde_json::json;

#[tokio::test]
async fn nobody_sees_or_uses_what_another_workspace_has() {
    let stack = Stack::start().await;
    let mine = application(&stack);
    let batch =
        begin(&stack, &[row("a", "gpt-4o-mini", "Hello")], "immediate", json!({ "metadata": { "a": "secret" } })).await;
    let other = stack.organisation().await;
    let theirs = stack.anonymous().with_key(&other.workspace_key);
    let place = format!("/batches/{}", id(&batch));
    for (method, path) in [
        (Method::GET, place.clone()),
        (Method::GET, format!("{place}/output")),
        (Method::POST, format!("{place}/cancel")),
    ] {
        let refused = whole(theirs.request(method.clone(), &path)).await;
        assert_eq!(refused.status, 404, "{method} {path}: {}", refused.text());
        assert!(!refused.text().contains("secret"), "{}", refused.text());
    }
    assert_eq!(theirs.get("/batches").await.json()["data"], json!([]));
    assert_eq!(theirs.get(&format!("/batches?after={}", id(&batch))).await.json()["data"], json!([]));

    // A file of another's is as unknown as none.
    let file = upload(&mine, &jsonl(&[row("a", "m", "Hello")])).await;
    let unknown = "gwf-00000000-0000-7000-8000-000000000000";
    let [foreign, none] = [
        theirs.post("/batches", &asked(&file, "immediate")).await,
        theirs.post("/batches", &asked(unknown, "immediate")).await,
    ];
    assert_eq!((foreign.status.as_u16(), none.status.as_u16()), (404, 404));
    let [foreign, none] = [foreign, none].map(|answer| answer.json()["error"].to_string());
    assert_eq!(foreign.replace(&file, "F"), none.replace(unknown, "F"));
    assert_eq!(batches_made(&stack).await, 1);

    let narrow = stack.anonymous().with_key(&stack.key(&["models.list"]).await);
    assert_eq!(narrow.get("/batches").await.status, 403);
    assert_eq!(narrow.post("/batches", &asked(&file, "immediate")).await.status, 403);
    assert_eq!(stack.anonymous().get("/batches").await.status, 401);
    assert_eq!(mine.get(&place).await.json()["id"], batch["id"]);
}
