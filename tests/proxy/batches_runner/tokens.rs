//! Batches that are made with a token (JWT): their rows are asked as the token would, with its limits, to the end of the batch;
//! and no longer once the person, the workspace or the organisation no longer stands for it.

use super::{application, asked, begin_with, hurry, ids, jsonl, lines, number, paced, rows, shown, sql, until_status};
use crate::tokens::accept;
use harness::client::whole;
use harness::issuer::{Issuer, claims};
use harness::{Client, Stack, chat};
use http::Method;
use serde_json::{Value, json};

async fn started() -> (Stack, Issuer) {
    let (stack, issuer) = (paced(1).start().await, Issuer::start().await);
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    (stack, issuer)
}

fn holder(stack: &Stack, issuer: &Issuer, more: Value) -> Client {
    let mut claims = claims(stack.home.id, &stack.home.workspace_id.to_string(), "completions.write");
    claims.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    stack.anonymous().with_key(&issuer.token(&claims))
}

async fn until_held_up(stack: &Stack, batch: &str, code: &str) {
    let is_held = async || shown(stack, batch).await["errors"]["data"][0]["code"] == code;
    stack.until(&format!("the batch waits because of {code}"), is_held).await;
    assert_eq!(shown(stack, batch).await["status"], "in_progress");
}

async fn until_completed(stack: &Stack, batch: &str) {
    let is_done = async || {
        hurry(stack).await;
        shown(stack, batch).await["status"] == "completed"
    };
    stack.until("it is completed", is_done).await;
}

#[tokio::test]
async fn a_batch_of_a_token_goes_on_when_the_token_has_expired() {
    let (stack, issuer) = started().await;
    stack.mock.script(json!([{ "status": 429, "retry_after": 120 }])).unwrap();
    let client =
        holder(&stack, &issuer, json!({ "email_id": "ada@acme.test", "defaults": { "metadata": { "team": "red" } } }));
    let batch = begin_with(&stack, &client, &jsonl(&rows(2)), json!({})).await;
    until_held_up(&stack, &batch, "rate_limit_exceeded").await;
    let over = "UPDATE batches SET token = jsonb_set(token, '{expires_at}', '\"2020-01-01T00:00:00Z\"')";
    assert_eq!(sql(&stack, over).await, 1);
    assert_eq!(
        number(&stack, "SELECT count(*) FROM batches WHERE batches::text LIKE '%eyJ%'").await,
        0,
        "not the token"
    );
    until_completed(&stack, &batch).await;
    let done = shown(&stack, &batch).await;
    assert_eq!(ids(&lines(&stack, &done["output_file_id"]).await), ["row-1", "row-2"]);
    // Its rows are logged as the token's own calls are.
    const LOGGED: &str = "SELECT metadata, api_key_id::text FROM request_logs WHERE metadata ->> '_batch_id' = $1
        AND response_status_code = 200";
    let db = stack.database.client().await;
    stack.until("both are logged", async || db.query(LOGGED, &[&batch]).await.unwrap().len() == 2).await;
    for row in db.query(LOGGED, &[&batch]).await.unwrap() {
        let (metadata, subject): (Value, String) = (row.get(0), row.get(1));
        assert_eq!(metadata["team"], "red", "{metadata}");
        assert_eq!(number(&stack, &format!("SELECT count(*) FROM batches WHERE api_key_id = '{subject}'")).await, 1);
    }
}

#[tokio::test]
async fn rows_use_the_budget_of_the_token_and_its_own_calls_the_same() {
    let (stack, issuer) = started().await;
    let limited = json!({ "sub": "ada", "usage_limits": { "type": "tokens", "credit_limit": 1 } });
    let client = holder(&stack, &issuer, limited);
    let batch = begin_with(&stack, &client, &jsonl(&rows(3)), json!({})).await;
    until_held_up(&stack, &batch, "budget_exhausted").await;
    let held = shown(&stack, &batch).await;
    assert_eq!(held["request_counts"], json!({ "total": 3, "completed": 1, "failed": 0 }), "{held}");
    let direct = client.with("x-gateway-provider", "openai").with("x-gateway-custom-host", stack.mock.url());
    let refused = direct.post("/chat/completions", &chat("its own")).await;
    assert_eq!((refused.status.as_u16(), &refused.json()["error"]["code"]), (412, &json!("budget_exhausted")));
    assert_eq!(asked(&stack, "its own"), 0);
}

#[tokio::test]
async fn rows_of_somebody_who_was_removed_are_not_run() {
    let (stack, issuer) = started().await;
    let admin = stack.administrator();
    const USER: &str =
        "INSERT INTO users (organisation_id, email, role) VALUES ($1, 'ada@acme.test', 'member') RETURNING id::text";
    let user = stack.database.client().await.query_one(USER, &[&stack.home.id]).await.unwrap();
    let user: String = user.get(0);
    let client = holder(&stack, &issuer, json!({ "email_id": "ada@acme.test" }));
    let batch = begin_with(&stack, &client, &jsonl(&rows(500)), json!({})).await;
    stack.until("it runs", async || shown(&stack, &batch).await["request_counts"]["completed"] != 0).await;
    let removed = admin.delete(&format!("/admin/users/{user}")).await;
    assert!(removed.status.is_success(), "{}", removed.text());
    until_held_up(&stack, &batch, "invalid_api_key").await;
    let ended = application(&stack).post(&format!("/batches/{batch}/cancel"), &json!({})).await;
    assert_eq!(ended.status, 200, "any key of the workspace may end it: {}", ended.text());
    until_status(&stack, &batch, "cancelled").await;
}

#[tokio::test]
async fn rows_are_not_run_while_the_organisation_accepts_no_tokens() {
    let (stack, issuer) = started().await;
    let client = holder(&stack, &issuer, json!({}));
    let batch = begin_with(&stack, &client, &jsonl(&rows(500)), json!({})).await;
    stack.until("it runs", async || shown(&stack, &batch).await["request_counts"]["completed"] != 0).await;
    accept(&stack, &json!({ "jwks_url": null })).await;
    until_held_up(&stack, &batch, "insufficient_scope").await;
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    let is_more = async || {
        hurry(&stack).await;
        shown(&stack, &batch).await["errors"].is_null()
    };
    stack.until("it goes on", is_more).await;
}

/// Where others of an archived workspace are refused, a token is, and what it began is not gone on with.
#[tokio::test]
async fn nothing_of_an_archived_workspace_is_run_or_shown() {
    let (stack, issuer) = (paced(1).start().await, Issuer::start().await);
    // Not through the proxy, which may still be looking for a live admin.
    let admin = Client::new(&stack.admin_url).with_key(&stack.home.admin_key);
    let made = admin.post("/workspaces", &json!({ "name": "Gone" })).await.json();
    let workspace = made["id"].as_str().unwrap_or_else(|| panic!("{made}"));
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    let claims = claims(stack.home.id, workspace, "completions.write");
    let client = stack.anonymous().with_key(&issuer.token(&claims));
    let batch = begin_with(&stack, &client, &jsonl(&rows(500)), json!({})).await;
    let path = format!("/batches/{batch}");
    let is_begun = async || client.get(&path).await.json()["request_counts"]["completed"].as_u64().unwrap_or(0) > 0;
    stack.until("it runs", is_begun).await;

    let end = admin.request(Method::DELETE, &format!("/workspaces/{workspace}"));
    let end = whole(end.json(&json!({ "name": "Gone", "force_delete": true }))).await;
    assert_eq!(end.status, 200, "{}", end.text());
    stack.until("the token is refused", async || client.get(&path).await.status == 403).await;
    let body = json!({ "input_file_id": "file", "endpoint": "/v1/chat/completions", "completion_window": "immediate" });
    let direct = client.with("x-gateway-provider", "openai").with("x-gateway-custom-host", stack.mock.url());
    for refused in [
        client.post("/batches", &body).await,
        client.post(&format!("{path}/cancel"), &json!({})).await,
        client.get(&format!("{path}/output")).await,
        client.get("/batches").await,
        client.get("/files").await,
        direct.post("/chat/completions", &chat("its own")).await,
    ] {
        let code = refused.json()["error"]["code"].clone();
        assert_eq!((refused.status.as_u16(), code), (403, json!("workspace_mismatch")), "{}", refused.text());
    }

    let id = batch.trim_start_matches("gwb-");
    let held = format!("SELECT count(*) FROM batches WHERE id = '{id}' AND errors->0->>'code' = 'workspace_mismatch'");
    stack.until("the batch is held up", async || number(&stack, &held).await == 1).await;
    // The one row that may have been under way is over once no row is leased.
    let leased = format!("SELECT count(*) FROM batch_rows WHERE batch_id = '{id}' AND state = 1");
    stack.until("no row is under way", async || number(&stack, &leased).await == 0).await;
    let asked = stack.mock.requests().len();
    hurry(&stack).await;
    let looked = format!("{held} AND next_step_at > now()");
    stack.until("it was looked at again", async || number(&stack, &looked).await == 1).await;
    // A row that was begun is leased until it was put back or answered.
    stack.until("nothing of it is under way", async || number(&stack, &leased).await == 0).await;
    assert_eq!(stack.mock.requests().len(), asked, "no row is asked any more");
}

#[tokio::test]
async fn what_this_version_cannot_read_of_a_token_is_not_run() {
    let (stack, issuer) = started().await;
    stack.mock.script(json!([{ "status": 429, "retry_after": 120 }])).unwrap();
    let client = holder(&stack, &issuer, json!({ "sub": "ada", "usage_limits": { "credit_limit": 5 } }));
    let batch = begin_with(&stack, &client, &jsonl(&rows(2)), json!({})).await;
    until_held_up(&stack, &batch, "rate_limit_exceeded").await;
    // A limit of a kind that is invented later: ignoring it would lift it.
    let later = "UPDATE batches SET token = jsonb_set(token, '{usage_limits,0,kind_of_later}', '1')";
    assert_eq!(sql(&stack, later).await, 1);
    hurry(&stack).await;
    until_held_up(&stack, &batch, "invalid_api_key").await;
}
