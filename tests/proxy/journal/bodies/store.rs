//! A log store that is away, or not a folder: rows arrive without it, and bodies when it is back, whoever sends them.

use super::{found, objects, of};
use bench::process::Signal;
use harness::aws::{Aws, REGION};
use harness::{Stack, chat};

const ROWS: &str = "SELECT count(*) FROM request_logs";
const FAILURES: &str = "gateway_log_bodies_failures_total";
const STORED: &str = "gateway_log_bodies_stored_total";

async fn until_rows(stack: &Stack, count: i64) {
    let client = stack.database.client().await;
    let rows = async || client.query_one(ROWS, &[]).await.unwrap().get::<_, i64>(0) == count;
    stack.until("the rows are there", rows).await;
}

#[tokio::test]
async fn a_store_that_is_away_holds_no_row_up_and_a_killed_proxy_loses_no_body() {
    let mut stack = Stack::start().await;
    let logs = stack.folder.path().join("logs");
    std::fs::remove_dir_all(&logs).unwrap();
    std::fs::write(&logs, "a file, where no object can be put").unwrap();
    let mut answers = Vec::new();
    for _ in 0..20 {
        answers.push(stack.client().post("/chat/completions", &chat("Hello")).await);
    }
    until_rows(&stack, 20).await;
    stack.until("the store was tried", async || stack.metric(FAILURES).await.is_some_and(|count| count > 0.0)).await;
    assert_eq!(stack.metric(STORED).await, Some(0.0));
    stack.proxy.signal(Signal::KILL);
    stack.proxy.ended_within(super::PATIENCE).await;
    std::fs::remove_file(&logs).unwrap();
    stack.proxy = stack.start_another_proxy(&[]);
    stack.until("all are stored", async || found(&logs).len() == 20).await;
    let objects = objects(&mut stack).await;
    assert!(answers.iter().all(|answer| of(&objects, answer)["response"]["body"] == answer.json()));
    let left = std::fs::read_dir(stack.folder.path().join("journal")).unwrap().map(|entry| entry.unwrap().path());
    // What says that the process lives is no record.
    let left: Vec<_> = left.filter(|path| path.extension().is_none_or(|ending| ending != "boot")).collect();
    assert!(left.is_empty(), "{left:?} are left to send");
    until_rows(&stack, 20).await;
}

#[tokio::test]
async fn bodies_go_to_a_bucket_with_signed_requests() {
    let aws = Aws::start().await;
    let bucket = |path: &str| format!("{}/logs{path}", aws.url);
    assert!(aws.http.put(bucket("")).send().await.unwrap().status().is_success());
    let (id, secret) = aws.user("gateway", &["s3:PutObject", "s3:GetObject"]).await;
    aws.check_everything().await;
    let mut stack = Stack::builder();
    for (name, value) in [
        ("LOG_STORE_URL", "s3://logs/gateway"),
        ("AWS_ENDPOINT_URL_S3", aws.url.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", REGION),
        ("AWS_ACCESS_KEY_ID", &id),
        ("AWS_SECRET_ACCESS_KEY", &secret),
    ] {
        stack = stack.proxy(name, value);
    }
    let stack = stack.start().await;
    let answer = stack.client().post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    stack.until("it is stored", async || stack.metric(STORED).await == Some(1.0)).await;
    let unsigned = aws.http.get(bucket("?list-type=2")).send().await.unwrap();
    assert!(!unsigned.status().is_success(), "the bucket checks who asks");
    assert_eq!(stack.metric(FAILURES).await, Some(0.0));
    assert!(!stack.proxy.log().contains(&secret));
}

#[tokio::test]
async fn prices_are_read_from_the_log_store_when_it_is_a_bucket() {
    let aws = Aws::start().await;
    let bucket = |path: &str| format!("{}/logs{path}", aws.url);
    assert!(aws.http.put(bucket("")).send().await.unwrap().status().is_success());
    let file = r#"{"mine":{"pricing_config":{"pay_as_you_go":{"request_token":{"price":7}}}}}"#;
    let put = aws.http.put(bucket("/gateway/configs/openai.json")).body(file);
    assert!(put.send().await.unwrap().status().is_success());
    let (id, secret) = aws.user("gateway", &["s3:PutObject", "s3:GetObject", "s3:ListBucket"]).await;
    aws.check_everything().await;
    for (store, path) in [("s3://logs/gateway", "configs"), ("file://logs", "s3://logs/gateway/configs")] {
        let mut stack = Stack::builder();
        for (name, value) in [
            ("LOG_STORE_URL", store),
            ("MODEL_CONFIGS_PRICING_LOG_STORE_PATH", path),
            ("AWS_ENDPOINT_URL_S3", aws.url.as_str()),
            ("AWS_ALLOW_HTTP", "true"),
            ("AWS_REGION", REGION),
            ("AWS_ACCESS_KEY_ID", &id),
            ("AWS_SECRET_ACCESS_KEY", &secret),
        ] {
            stack = stack.admin(name, value);
        }
        let stack = stack.start().await;
        let found = stack.anonymous().get("/model-configs/pricing/openai/mine").await;
        assert_eq!(found.status, 200, "{path}: {}", found.text());
        assert_eq!(found.json()["pay_as_you_go"]["request_token"]["price"], 7, "{}", found.text());
        let bundled = stack.anonymous().get("/model-configs/pricing/anthropic/claude-sonnet-4-5").await;
        assert_eq!(bundled.status, 200, "what the bucket does not have is bundled: {}", bundled.text());
    }
}
