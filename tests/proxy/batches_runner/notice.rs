//! The notice of a batch's end: what it says, that it is signed, and that it is sent until somebody takes it.

use super::{application, begin_with, jsonl, paced, rows, sql, until_status};
use harness::{GuardService, Says};
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;
use serde_json::json;

const SECRET: &str = "a secret of the receiver";

fn signed(time: &str, body: &str) -> String {
    let key = PKey::hmac(SECRET.as_bytes()).unwrap();
    let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
    let bytes = signer.sign_oneshot_to_vec(format!("{time}.{body}").as_bytes()).unwrap();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn the_end_of_a_batch_is_told_and_signed_until_it_is_taken() {
    let stack = paced(10).start().await;
    let receiver = GuardService::start(Says::Status(500, String::new())).await;
    let options = json!({ "completion_url": receiver.url(), "completion_secret": SECRET });
    let batch = begin_with(&stack, &application(&stack), &jsonl(&rows(2)), options).await;
    let done = until_status(&stack, &batch, "completed").await;
    assert!(!done.to_string().contains(SECRET), "{done}");
    stack.until("it is told", async || receiver.asked().len() == 1).await;
    receiver.says(Says::Json(json!({})));
    sql(&stack, "UPDATE batches SET completion_next_at = now() WHERE completion_next_at IS NOT NULL").await;
    let taken = "SELECT count(*) FROM batches WHERE completed_hook_at IS NOT NULL AND completion_next_at IS NULL";
    stack.until("it is taken", async || super::number(&stack, taken).await == 1).await;
    let told = receiver.asked();
    assert_eq!(told.len(), 2);
    for notice in &told {
        let body = &notice.body;
        assert_eq!((&body["type"], &body["data"]["id"]), (&json!("batch.completed"), &json!(batch)), "{body}");
        assert_eq!(body["data"]["request_counts"], json!({ "total": 2, "completed": 2, "failed": 0 }));
        assert_eq!(body["data"]["output_file_id"], done["output_file_id"]);
        let mut headers = notice.head.lines().filter_map(|line| line.split_once(": "));
        let (_, header) = headers.find(|(name, _)| name.eq_ignore_ascii_case("x-gateway-signature")).unwrap();
        let (time, signature) = header.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
        assert_eq!(signed(time, &notice.text), signature);
    }
    assert_eq!(told[0].body["id"], told[1].body["id"], "by which the receiver knows it again");
}

#[tokio::test]
async fn a_batch_that_fails_tells_so_too() {
    let stack = paced(10).start().await;
    let receiver = GuardService::start(Says::Json(json!({}))).await;
    let options = json!({ "completion_url": receiver.url(), "completion_secret": SECRET });
    begin_with(&stack, &application(&stack), "not json\n", options).await;
    stack.until("it is told", async || receiver.asked().len() == 1).await;
    let told = &receiver.asked()[0].body;
    assert_eq!(told["type"], "batch.failed");
    assert_eq!(told["data"]["errors"]["data"][0]["code"], "invalid_json_line");
}

#[tokio::test]
async fn receivers_that_take_their_time_delay_those_of_no_other_workspace() {
    const BATCHES: usize = 12;
    /// Of one workspace at once.
    const AT_ONCE: usize = 4;
    let stack = paced(10).start().await;
    let client = application(&stack);
    let (slow, quick) = (GuardService::start(Says::Silence).await, GuardService::start(Says::Json(json!({}))).await);
    for _ in 0..BATCHES {
        let options = json!({ "completion_url": slow.url(), "completion_secret": SECRET });
        begin_with(&stack, &client, "not json\n", options).await;
    }
    stack.until("as many as may wait for an answer", async || slow.asked().len() >= AT_ONCE).await;
    let other = stack.anonymous().with_key(&stack.organisation().await.workspace_key);
    let options = json!({ "completion_url": quick.url(), "completion_secret": SECRET });
    begin_with(&stack, &other, "not json\n", options).await;
    stack.until("the other is told", async || quick.asked().len() == 1).await;
    stack.until("the next ones are told", async || slow.asked().len() >= AT_ONCE * 2).await;
    assert_eq!(slow.most_connections(), AT_ONCE);
}

#[tokio::test]
async fn receivers_of_many_workspaces_delay_those_of_no_other_organisation() {
    const BATCHES: usize = 20;
    /// Of one workspace at once, and of one organisation.
    const AT_ONCE: [usize; 2] = [4, 8];
    let stack = paced(10).start().await;
    let client = application(&stack);
    let (slow, quick) = (GuardService::start(Says::Silence).await, GuardService::start(Says::Json(json!({}))).await);
    for _ in 0..BATCHES {
        let options = json!({ "completion_url": slow.url(), "completion_secret": SECRET });
        begin_with(&stack, &client, "not json\n", options).await;
    }
    let ended = "SELECT count(*) FROM batches WHERE status = 'failed'";
    stack.until("all are over", async || super::number(&stack, ended).await == BATCHES as i64).await;
    stack.until("as many as may wait for an answer", async || slow.asked().len() >= AT_ONCE[0]).await;
    // Each of those that wait has a workspace of its own.
    let apart = "WITH waiting AS (SELECT id, gen_random_uuid() AS home, row_number() OVER () AS n, organisation_id
             FROM batches WHERE completion_next_at <= now()),
         homes AS (INSERT INTO workspaces (id, organisation_id, slug, name)
             SELECT home, organisation_id, 'home-' || n, 'Home ' || n FROM waiting)
         UPDATE batches b SET workspace_id = home FROM waiting WHERE waiting.id = b.id";
    let moved = sql(&stack, apart).await;
    assert!(moved >= AT_ONCE[1] as u64, "{moved} have a workspace of their own");
    stack.until("as many as may wait for an answer", async || slow.asked().len() >= AT_ONCE[1]).await;
    let other = stack.anonymous().with_key(&stack.organisation().await.workspace_key);
    let options = json!({ "completion_url": quick.url(), "completion_secret": SECRET });
    begin_with(&stack, &other, "not json\n", options).await;
    stack.until("the other is told", async || quick.asked().len() == 1).await;
    assert_eq!(slow.most_connections(), AT_ONCE[1]);
}
