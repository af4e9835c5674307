//! Every background task of both programs panics once, and comes back: what it does is done afterwards, and metrics and
//! `/readyz` saw it.

use harness::{Client, Stack, chat};
use std::collections::BTreeSet;

const PROXY: &str = include_str!("../../proxy/src/gateway/tasks.rs");
const PANIC_ONCE: &str = "TASKS_PANIC_ONCE_AFTER_MS";
/// Long enough for each to have begun its work.
const AFTER_MS: &str = "1500";

/// One needs a setting with which no call is answered; the other runs beside a Postgres with pgvector alone, which not every
/// machine has.
const ELSEWHERE: [&str; 2] = ["deployment heartbeat", "semantic cache"];

/// The names in the proxy's table of tasks.
fn table() -> BTreeSet<&'static str> {
    let after = |way: &'static str| PROXY.split(way).skip(1).filter_map(|rest| rest.split('"').next());
    after("Task::periodic(\"").chain(after("Task::waiting(\"")).collect()
}

/// Tasks of a process by their name, with how often they were restarted, if they run now.
async fn running(url: &str, prefix: &str) -> Vec<(String, u64)> {
    let text = Client::new(url).get("/metrics").await.text();
    let of = |metric: &str, line: &str| -> Option<(String, f64)> {
        let (name, value) = line.strip_prefix(&format!("{prefix}{metric}{{task=\""))?.split_once("\"} ")?;
        Some((name.to_owned(), value.parse().ok()?))
    };
    let up: BTreeSet<String> = text
        .lines()
        .filter_map(|line| of("_task_up", line))
        .filter(|(_, up)| *up == 1.0)
        .map(|(name, _)| name)
        .collect();
    let restarts = text.lines().filter_map(|line| of("_task_restarts_total", line));
    restarts.filter(|(name, _)| up.contains(name)).map(|(name, count)| (name, count as u64)).collect()
}

async fn until_all_came_back(stack: &Stack, names: &BTreeSet<&str>) {
    stack
        .until("every task of the proxy has panicked and runs", async || {
            let back = running(&stack.metrics_url, "gateway").await;
            names.iter().all(|name| back.iter().any(|(known, restarts)| known == name && *restarts >= 1))
        })
        .await;
}

#[tokio::test]
async fn every_task_panics_once_and_does_its_work_afterwards() {
    let stack = Stack::builder()
        .proxy(PANIC_ONCE, AFTER_MS)
        .admin(PANIC_ONCE, AFTER_MS)
        .proxy("ACCESS_LOG", "ON")
        .proxy("REDIS_URL", "redis://127.0.0.1:1")
        .proxy("CACHE_STORE", "redis")
        .proxy("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
        .start()
        .await;
    let names: BTreeSet<&str> = table().into_iter().filter(|name| !ELSEWHERE.contains(name)).collect();
    assert!(names.len() > 20, "{names:?}");
    until_all_came_back(&stack, &names).await;
    let admin = stack.admin_url.trim_end_matches("/v1");
    stack
        .until("every task of admin has panicked and runs", async || {
            let back = running(admin, "gateway_admin").await;
            let jobs = admin::jobs::JOBS.iter().map(|job| job.name);
            let all = jobs.chain(["outbox", "keyring", "token failures"]);
            let mut missing = all.filter(|name| !back.iter().any(|(known, count)| known == name && *count >= 1));
            missing.next().is_none()
        })
        .await;
    let ready = Client::new(&stack.metrics_url).get("/readyz").await;
    assert_eq!((ready.status.as_u16(), ready.text().as_str()), (200, "ready\n"));
    // Journal, snapshot, leases and jobs do what they did before.
    let answer = stack.client().post("/chat/completions", &chat("after all panics")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let is_shipped = async || stack.metric("gateway_journal_shipped_total").await.is_some_and(|logs| logs >= 1.0);
    stack.until("the call is logged", is_shipped).await;
    let is_stored = async || stack.metric("gateway_log_bodies_stored_total").await.is_some_and(|bodies| bodies >= 1.0);
    stack.until("its bodies are stored", is_stored).await;
}

#[tokio::test]
async fn the_heartbeat_of_a_deployment_comes_back_too() {
    let stack = Stack::builder()
        .proxy(PANIC_ONCE, AFTER_MS)
        .proxy("GATEWAY_DEPLOYMENT_SLUG", "site")
        .proxy("GATEWAY_DEPLOYMENT_TOKEN", "gwd_0123456789012345678901234567890123456789012")
        .start()
        .await;
    until_all_came_back(&stack, &BTreeSet::from(["deployment heartbeat"])).await;
}
