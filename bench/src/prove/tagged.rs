//! Load whose every request carries a name of its own, so that each can be looked for afterwards: at the client, at the
//! provider, and in the logs.

use super::client::Caller;
use super::report::Report;
use super::stack::Stack;
use anyhow::ensure;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinSet;

const CLIENTS: usize = 8;
const PAUSE: Duration = Duration::from_millis(5);
/// Logs that have not arrived after this long never will.
const PATIENCE: Duration = Duration::from_secs(60);

pub struct Tagged {
    stop: watch::Sender<bool>,
    clients: JoinSet<Outcome>,
}

/// Names of requests, by what their clients met.
#[derive(Debug, Default)]
pub struct Outcome {
    /// The whole answer came.
    pub delivered: BTreeSet<String>,
    /// It did not.
    pub cut: BTreeSet<String>,
}

impl Tagged {
    pub fn start(caller: &Caller) -> Self {
        let (stop, stopped) = watch::channel(false);
        let mut clients = JoinSet::new();
        for number in 0..CLIENTS {
            clients.spawn(client(caller.clone(), number, stopped.clone()));
        }
        Self { stop, clients }
    }

    pub async fn stop(mut self) -> anyhow::Result<Outcome> {
        self.stop.send_replace(true);
        let mut all = Outcome::default();
        while let Some(outcome) = self.clients.join_next().await {
            let Outcome { delivered, cut } = outcome?;
            all.delivered.extend(delivered);
            all.cut.extend(cut);
        }
        Ok(all)
    }
}

/// Every second client streams.
async fn client(caller: Caller, number: usize, stopped: watch::Receiver<bool>) -> Outcome {
    let mut outcome = Outcome::default();
    let mut count = 0_u64;
    while !*stopped.borrow() {
        count += 1;
        let tag = format!("{number}-{count}");
        match exchange(&caller, &tag, number.is_multiple_of(2)).await {
            Ok(()) => outcome.delivered.insert(tag),
            Err(_) => outcome.cut.insert(tag),
        };
        tokio::time::sleep(PAUSE).await;
    }
    outcome
}

async fn exchange(caller: &Caller, tag: &str, is_stream: bool) -> anyhow::Result<()> {
    let fault = if is_stream { json!({ "chunks": 5, "chunk_delay_ms": 5 }) } else { json!({}) };
    let mut body = super::client::chat(&fault, is_stream);
    body["user"] = json!(tag);
    let mut connection = caller.connect().await?;
    let answer = connection.send(caller.post_json("/v1/chat/completions", &body)).await?;
    ensure!(answer.status() == 200, "status {}", answer.status());
    let body = answer.into_body().collect().await?.to_bytes();
    ensure!(!is_stream || body.ends_with(b"data: [DONE]\n\n"), "it was cut");
    Ok(())
}

/// Compares what clients, provider and logs say.
pub async fn compare(stack: &Stack, outcome: &Outcome, report: &mut Report) -> anyhow::Result<()> {
    let logged = logged(stack, &outcome.delivered).await?;
    let asked: BTreeSet<String> = stack
        .mock
        .requests()
        .iter()
        .filter_map(|request| serde_json::from_slice::<Value>(&request.body).ok()?["user"].as_str().map(str::to_owned))
        .collect();
    let missing: Vec<_> = outcome.delivered.iter().filter(|tag| !logged.contains_key(*tag)).collect();
    let twice = logged.iter().filter(|(_, times)| **times > 1).count();
    let unasked = logged.keys().filter(|tag| !asked.contains(*tag) && !outcome.cut.contains(*tag)).count();
    let unlogged: Vec<_> = asked.iter().filter(|tag| !logged.contains_key(*tag)).collect();
    let unexplained = unlogged.iter().filter(|tag| !outcome.cut.contains(**tag)).count();
    report.figure("answers that reached their client", outcome.delivered.len());
    report.figure("requests that were cut", outcome.cut.len());
    report.figure("requests that reached the provider", asked.len());
    report.figure("requests in the logs", logged.len());
    report.figure("requests at the provider that are not in the logs, all of them cut", unlogged.len());
    if let Some(example) = missing.first() {
        report.figure("missing, for example", example);
    }
    report.promise(
        "every answer that reached its client is in the logs",
        missing.is_empty() && !outcome.delivered.is_empty(),
    );
    report.promise("no request is in the logs twice", twice == 0);
    report.promise("nothing is in the logs that nobody asked", unasked == 0);
    report.promise("what is not in the logs was cut", unexplained == 0);
    Ok(())
}

/// Names in the logs, with how often each occurs, once those that must be there are.
async fn logged(stack: &Stack, expected: &BTreeSet<String>) -> anyhow::Result<BTreeMap<String, i64>> {
    const LOGGED: &str = "SELECT metadata ->> '_user', count(*) FROM request_logs GROUP BY 1";
    let end = Instant::now() + PATIENCE;
    let mut last = 0;
    loop {
        let rows = stack.database().await?.query(LOGGED, &[]).await?;
        let found: BTreeMap<String, i64> =
            rows.iter().filter_map(|row| Some((row.get::<_, Option<String>>(0)?, row.get(1)))).collect();
        let is_settled = found.len() == last && expected.iter().all(|tag| found.contains_key(tag));
        if is_settled || Instant::now() > end {
            return Ok(found);
        }
        last = found.len();
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
}
