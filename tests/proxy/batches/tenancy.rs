//! Batches are of one workspace: for everybody else they, and the files they would read, do not exist.

use super::{asked, batches_made, begin, id, jsonl, row, upload};
use crate::families::application;
use crate::tokens::accept;
use harness::Stack;
use harness::client::whole;
use harness::issuer::{Issuer, claims};
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

#[tokio::test]
async fn a_token_with_the_scope_makes_sees_and_cancels_batches() {
    let (stack, issuer) = (Stack::start().await, Issuer::start().await);
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    let claims = claims(stack.home.id, &stack.home.workspace_id.to_string(), "completions.write");
    let client = stack.anonymous().with_key(&issuer.token(&claims));
    let rows = [row("a", "gpt-4o-mini", r#"{"mock":{"latency_ms":20000}}"#)];
    let file = upload(&application(&stack), &jsonl(&rows)).await;
    let narrow = harness::issuer::claims(stack.home.id, &stack.home.workspace_id.to_string(), "logs.view models.list");
    let narrow = stack.anonymous().with_key(&issuer.token(&narrow));
    for window in ["immediate", "24h"] {
        let refused = narrow.post("/batches", &asked(&file, window)).await;
        assert_eq!(refused.status, 403, "{}", refused.text());
    }
    assert_eq!(batches_made(&stack).await, 0);
    let own = upload(&client, &jsonl(&rows)).await;
    for window in ["immediate", "24h"] {
        let made = client.post("/batches", &asked(&own, window)).await;
        assert_eq!(made.status, 200, "{}", made.text());
        assert_eq!(application(&stack).get(&format!("/batches/{}", id(&made.json()))).await.status, 200);
    }
    let batch = begin(&stack, &rows, "immediate", json!({})).await;
    let place = format!("/batches/{}", id(&batch));
    assert_eq!(client.get(&place).await.json()["id"], batch["id"]);
    assert_eq!(client.get("/batches").await.json()["data"][0]["id"], batch["id"]);
    let cancelled = client.post(&format!("{place}/cancel"), &json!({})).await;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
}
