//! Three proxies share a batch. They are killed in turn, and Postgres goes away half way: every row is in the output once, with
//! its own answer; counts and cost are those of the rows; nobody was paid twice without the row saying so.

use super::client::line;
use super::crew::{Crew, EndedBatch};
use crate::prove::report::Report;
use crate::prove::stack::Stack;
use anyhow::Context as _;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::{Duration, Instant};

const PROXIES: usize = 3;
/// Rows a second, so that kills and outage fall into the run.
const PACE: &str = "60";
/// The rows of whoever was killed last wait for their lease.
const PATIENCE: Duration = Duration::from_secs(900);

pub async fn prove(rows: u32, kills: u32, away: Duration, report: &mut Report) -> anyhow::Result<()> {
    let mut crew = Crew::start(PROXIES, PACE).await?;
    let begun = Instant::now();
    let batch = crew.begin((1..=rows).map(|number| line(number, &fault(number), "Be brief."))).await?;
    for kill in 0..kills {
        if kill == kills / 2 {
            crew.stack.crash_postgres()?;
            tokio::time::sleep(away).await;
            crew.stack.resume_postgres()?;
        }
        // At ever different moments of its work.
        tokio::time::sleep(Duration::from_millis(1500 + u64::from(kill * 373 % 2000))).await;
        let victim = &mut crew.replicas[kill as usize % PROXIES];
        victim.kill().await?;
        victim.restart().await?;
    }
    let over = crew.until_over(&batch, PATIENCE).await?;
    report.figure("rows, kills and seconds without Postgres", format!("{rows}, {kills}, {}", away.as_secs()));
    report.figure("the batch took", format!("{:.0} s", begun.elapsed().as_secs_f64()));
    check_output(rows, &over, report);
    check_asks(&crew.stack, &over.output, report);
    check_money(&crew.stack, rows, &batch, &over.output, report).await?;
    crew.stop(report)
}

/// Each row waits a little differently, and has an answer of its own.
fn fault(number: u32) -> Value {
    json!({ "latency_ms": 50 + number * 37 % 950, "reply": format!("the answer to {number}") })
}

fn check_output(rows: u32, over: &EndedBatch, report: &mut Report) {
    let EndedBatch { object, output, errors } = over;
    let is_own = |(at, line): (usize, &Value)| {
        let number = at + 1;
        let text = &line["response"]["body"]["choices"][0]["message"]["content"];
        line["custom_id"] == format!("row-{number}") && *text == format!("the answer to {number}")
    };
    let is_whole = output.len() == rows as usize && output.iter().enumerate().all(is_own);
    report.figure("rows in the output and the error file", format!("{} and {}", output.len(), errors.len()));
    if let Some(first) = errors.first() {
        report.figure("first error", first);
    }
    report.promise("every row is in the output once, in order, with its own answer", is_whole && errors.is_empty());
    let counts = json!({ "total": rows, "completed": rows, "failed": 0 });
    report.promise(
        "the batch is completed and its counts are right",
        object["status"] == "completed" && object["request_counts"] == counts,
    );
}

/// How often the provider was asked for each row, against what the rows say.
fn check_asks(stack: &Stack, output: &[Value], report: &mut Report) {
    let mut asked: HashMap<String, i64> = HashMap::new();
    for request in stack.mock.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
        let message = body["messages"][1]["content"].as_str().unwrap_or_default().to_owned();
        *asked.entry(message).or_default() += 1;
    }
    let times = |line: &Value| line["asked"].as_i64().unwrap_or(1);
    let (mut marked, mut silent) = (0, 0);
    for (at, line) in output.iter().enumerate() {
        let number = u32::try_from(at + 1).unwrap_or(0);
        let message = json!({ "mock": fault(number) }).to_string();
        let in_truth = asked.get(&message).copied().unwrap_or(0);
        marked += i64::from(times(line) > 1);
        silent += i64::from(in_truth < 1 || in_truth > times(line));
    }
    report.figure("rows that were asked more than once, and say so", marked);
    report.promise("no row was asked more often than it says", silent == 0);
}

/// Every success has one log, beyond those of rows that say they were asked again; and the cost is that of the rows.
async fn check_money(
    stack: &Stack,
    rows: u32,
    batch: &str,
    output: &[Value],
    report: &mut Report,
) -> anyhow::Result<()> {
    const LOGGED: &str = "SELECT count(*), count(DISTINCT metadata ->> '_batch_row') FROM request_logs
        WHERE metadata ->> '_batch_id' = $1 AND response_status_code = 200";
    const SUM: &str = "SELECT (SELECT cost FROM batches)::float8, sum(cost)::float8 FROM (
            SELECT DISTINCT ON (metadata ->> '_batch_row') cost FROM request_logs
            WHERE metadata ->> '_batch_id' = $1 AND response_status_code = 200
            ORDER BY metadata ->> '_batch_row', created_at) AS one";
    const ALL_LOGS: Duration = Duration::from_secs(120);
    let client = stack.database().await?;
    let end = Instant::now() + ALL_LOGS;
    let (logs, logged) = loop {
        let row = client.query_one(LOGGED, &[&batch]).await?;
        let (logs, logged): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
        if logged >= i64::from(rows) || Instant::now() > end {
            break (logs, logged);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let again: i64 = output.iter().map(|line| line["asked"].as_i64().unwrap_or(1) - 1).sum();
    report.figure("logs of answers, and rows that they are of", format!("{logs} and {logged}"));
    report.promise("every row is logged", logged == i64::from(rows));
    report.promise("no success was paid twice that was not asked again", logs <= i64::from(rows) + again);
    let row = client.query_one(SUM, &[&batch]).await?;
    let (cost, sum): (f64, Option<f64>) = (row.try_get(0)?, row.try_get(1)?);
    let sum = sum.context("there are no costs")?;
    report.figure("cost of the batch, and of its rows, in cents", format!("{cost} and {sum}"));
    report.promise("the cost is the sum of the rows", (cost - sum).abs() < 1e-9 && cost > 0.0);
    Ok(())
}
