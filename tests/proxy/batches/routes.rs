//! A batch is made, shown, listed and cancelled; and what is secret of how it is run is shown to nobody.

use super::{asked, batches_made, begin, id, jsonl, options, row, upload};
use crate::families::{application, integrate};
use harness::Stack;
use serde_json::{Value, json};

/// A message that the mock takes its time for.
const SLOW: &str = r#"{"mock":{"latency_ms":20000}}"#;

#[tokio::test]
async fn a_batch_is_made_listed_shown_and_cancelled() {
    let stack = Stack::start().await;
    let client = application(&stack);
    let rows = [row("a", "gpt-4o-mini", SLOW)];
    let mut made = Vec::new();
    for _ in 0..3 {
        made.push(begin(&stack, &rows, "immediate", json!({ "metadata": { "team": "a" } })).await);
    }
    let batch = &made[0];
    assert!(id(batch).starts_with("gwb-"), "{batch}");
    assert_eq!(
        [&batch["object"], &batch["endpoint"], &batch["completion_window"], &batch["status"], &batch["metadata"]],
        [
            &json!("batch"),
            &json!("/v1/chat/completions"),
            &json!("immediate"),
            &json!("validating"),
            &json!({ "team": "a" })
        ]
    );
    assert_eq!(batch["expires_at"].as_i64().unwrap() - batch["created_at"].as_i64().unwrap(), 86_400, "{batch}");
    for name in ["in_progress_at", "completed_at", "failed_at", "cancelling_at", "output_file_id", "errors"] {
        assert_eq!(batch.get(name), Some(&Value::Null), "{name}");
    }
    assert_eq!(batch["request_counts"], json!({ "total": 0, "completed": 0, "failed": 0 }));
    assert_eq!(batch.get("provider_details"), None);
    let details = client.get(&format!("/batches/{}?include_provider_details=true", id(batch))).await.json();
    assert_eq!(details.get("provider_details"), Some(&Value::Null), "{details}");

    let ids = |list: &Value| list["data"].as_array().unwrap().iter().map(|one| id(one).to_owned()).collect::<Vec<_>>();
    let newest: Vec<String> = made.iter().rev().map(|one| id(one).to_owned()).collect();
    let all = client.get("/batches").await.json();
    assert_eq!((ids(&all), &all["has_more"]), (newest.clone(), &json!(false)));
    let page = client.get(&format!("/batches?limit=1&after={}", newest[0])).await.json();
    assert_eq!(
        (ids(&page), &page["has_more"], &page["last_id"]),
        (vec![newest[1].clone()], &json!(true), &json!(newest[1]))
    );

    for batch in &made {
        let cancelled = client.post(&format!("/batches/{}/cancel", id(batch)), &json!({})).await;
        assert_eq!(cancelled.status, 200, "{}", cancelled.text());
        let status = cancelled.json()["status"].as_str().unwrap().to_owned();
        assert!(["cancelling", "cancelled"].contains(&&*status), "{status}");
        assert_ne!(cancelled.json()["cancelling_at"], Value::Null);
    }
}

#[tokio::test]
async fn secrets_of_the_options_are_sealed_and_masked() {
    let stack = Stack::start().await;
    let config = json!({ "provider": "openai", "api_key": "sk-inline-secret", "custom_host": stack.mock.url() });
    let more = json!({ "gateway_options": {
        "x-gateway-config": config, "authorization": "Bearer sk-header-secret", "x-gateway-trace-id": "t-1",
        "completion_url": "https://hooks.example.com/done", "completion_secret": "hook-secret-0123456789",
    } });
    let batch = begin(&stack, &[row("a", "gpt-4o-mini", "Hello")], "immediate", more).await;
    let shown = application(&stack).get(&format!("/batches/{}", id(&batch))).await;
    assert_eq!(
        shown.json()["gateway_options"],
        json!({ "x-gateway-config": "*****", "authorization": "*****", "x-gateway-trace-id": "t-1" })
    );
    assert!(!shown.text().contains("secret-0123") && !shown.text().contains("sk-"), "{}", shown.text());
    let database = stack.database.client().await;
    let row = database.query_one("SELECT batches::text, sealed IS NOT NULL FROM batches", &[]).await.unwrap();
    let (text, is_sealed): (String, bool) = (row.get(0), row.get(1));
    assert!(is_sealed && !text.contains("sk-inline") && !text.contains("sk-header") && !text.contains("hook-secret"));
}

#[tokio::test]
async fn a_file_of_the_gateway_makes_a_managed_batch_whoever_is_named() {
    let stack = Stack::start().await;
    integrate(&stack, "my-openai", "openai").await;
    integrate(&stack, "my-claude", "anthropic").await;
    let file = upload(&application(&stack), &jsonl(&[row("a", "gpt-4o-mini", SLOW)])).await;
    let before = stack.mock.requests().len();
    for slug in ["@my-openai", "@my-claude"] {
        let client = application(&stack).with("x-gateway-provider", slug);
        let made = client.post("/batches", &asked(&file, "immediate")).await;
        assert_eq!(made.status, 200, "{slug}: {}", made.text());
        assert!(id(&made.json()).starts_with("gwb-"), "{slug}");
        assert_eq!(made.json()["gateway_options"]["x-gateway-provider"], slug, "the header is how it is run");
        let own = client.post("/batches", &asked("file-1", "immediate")).await;
        assert_eq!(
            (own.status.as_u16(), own.json()["error"]["param"].clone()),
            (400, json!("completion_window")),
            "{slug}"
        );
    }
    assert_eq!(batches_made(&stack).await, 2);
    let creations = stack.mock.requests().into_iter().skip(before).filter(|one| one.path.ends_with("/batches"));
    assert_eq!(creations.count(), 0, "no provider was asked for a batch");
    // An id of ours is ours, and what the workspace has is listed where nobody else is named.
    let named = stack
        .client()
        .get(&format!("/batches/{}", id(&application(&stack).get("/batches").await.json()["data"][0])))
        .await;
    assert_eq!(named.status, 200, "{}", named.text());
    let gateway = application(&stack).with("x-gateway-provider", "gateway").get("/batches").await.json();
    assert_eq!(gateway["data"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_workspace_has_so_many_batches_at_once() {
    let stack = Stack::start().await;
    let database = stack.database.client().await;
    const MANY: &str = "INSERT INTO batches (id, organisation_id, workspace_id, api_key_id, mode, endpoint,
            completion_window, input_file_id, status, expires_at, next_step_at)
        SELECT gen_random_uuid(), $1, $2, gen_random_uuid(), 'immediate', '/v1/embeddings', 'immediate', gen_random_uuid(),
            CASE n WHEN 0 THEN 'completed' ELSE 'in_progress' END, now() + interval '1 day', now() + interval '1 day'
        FROM generate_series(0, 100) n";
    database.execute(MANY, &[&stack.home.id, &stack.home.workspace_id]).await.unwrap();
    let client = application(&stack);
    let mut body = asked(&upload(&client, &jsonl(&[row("a", "m", "Hello")])).await, "immediate");
    body["gateway_options"] = options(&stack);
    let refused = client.post("/batches", &body).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("100 batches"), "{}", refused.text());
    database
        .execute("DELETE FROM batches WHERE ctid = (SELECT ctid FROM batches WHERE status <> 'completed' LIMIT 1)", &[])
        .await
        .unwrap();
    assert_eq!(client.post("/batches", &body).await.status, 200);
}
