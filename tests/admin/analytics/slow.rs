//! What cannot be counted in time ends with a sentence that says what to ask instead.

use super::{ALL, COUNTING};
use crate::service::Service;

#[tokio::test]
async fn a_question_over_too_much_is_503_and_asks_for_a_shorter_time() {
    let service = Service::start_with(&["--database-statement-timeout-ms=150"]).await;
    let client = service.administrator();
    // Whoever counts waits for these locks, as if there were very much to count.
    let mut locker = service.database.client().await;
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE request_logs, feedback, usage_counters IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let paths = COUNTING.iter().map(|path| format!("{path}?{ALL}"));
    let divided = ["compare=previous", "group_by=model", "group_by=guardrail"];
    let divided = divided.iter().map(|more| format!("/analytics/graphs/cost?{ALL}&{more}"));
    let budgets = "/analytics/budgets".to_owned();
    for path in paths.chain(divided).chain([format!("/analytics/groups/user?{ALL}&columns=p95_latency"), budgets]) {
        let answer = client.get(&path).await;
        assert_eq!(answer.status, 503, "{path}: {}", answer.text());
        assert_eq!(answer.json()["data"]["errorCode"], "AB04", "{path}");
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains("time_of_generation_min"), "{path}: {message}");
        assert_eq!(answer.header("retry-after"), "", "{path}: asking the same again is of no use");
    }
    lock.rollback().await.unwrap();
}
