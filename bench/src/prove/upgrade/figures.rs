//! What administrators are told of days that are over, asked again and again while the schema changes: it is what the logs of
//! those days add up to, before, during and after.

use crate::prove::client::{Caller, empty};
use anyhow::Context as _;
use chrono::NaiveDate;
use http::{Method, StatusCode};
use serde_json::Value;
use std::fmt;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_postgres::Client;
use uuid::Uuid;

const ASK_EVERY: Duration = Duration::from_millis(100);

/// Requests, tokens and cost in cents.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Figures {
    requests: f64,
    tokens: f64,
    cost: f64,
}

/// The days that are asked about.
#[derive(Debug, Clone)]
pub struct Days {
    pub first: NaiveDate,
    pub last: NaiveDate,
}

pub struct FigureWatch {
    stop: watch::Sender<bool>,
    task: JoinHandle<anyhow::Result<WatchedFigures>>,
}

/// How often was asked, and what was answered otherwise than it should be.
#[derive(Debug, Default)]
pub struct WatchedFigures {
    pub asked: u64,
    pub wrong: Vec<String>,
}

impl Figures {
    pub async fn of_logs(client: &Client, workspace: Uuid, days: &Days) -> anyhow::Result<Self> {
        const SUMS: &str = "SELECT count(*)::float8, coalesce(sum(req_units + res_units), 0)::float8,
            coalesce(sum(cost), 0)::float8 FROM request_logs
            WHERE workspace_id = $1 AND created_at >= $2::date AND created_at < $3::date + 1";
        let row = client.query_one(SUMS, &[&workspace, &days.first, &days.last]).await?;
        Ok(Self { requests: row.try_get(0)?, tokens: row.try_get(1)?, cost: row.try_get(2)? })
    }

    /// None where the release has no analytics.
    pub async fn answered(administrator: &Caller, workspace: Uuid, days: &Days) -> anyhow::Result<Option<Self>> {
        let mut totals = [0.0; 3];
        for (graph, sum) in ["requests", "tokens", "cost"].iter().zip(&mut totals) {
            let Some(total) = total(administrator, graph, workspace, days).await? else { return Ok(None) };
            *sum = total;
        }
        let [requests, tokens, cost] = totals;
        Ok(Some(Self { requests, tokens, cost }))
    }

    pub fn is(&self, other: &Self) -> bool {
        let near = |one: f64, other: f64| (one - other).abs() <= 1e-6 * one.abs().max(1.0);
        self.requests == other.requests && near(self.tokens, other.tokens) && near(self.cost, other.cost)
    }
}

async fn total(administrator: &Caller, graph: &str, workspace: Uuid, days: &Days) -> anyhow::Result<Option<f64>> {
    let Days { first, last } = days;
    let path = format!(
        "/v1/analytics/graphs/{graph}?workspace_slug={workspace}&time_of_generation_min={first}T00:00:00Z\
         &time_of_generation_max={last}T23:59:59.999Z"
    );
    let (status, text) = administrator.answer(administrator.request(Method::GET, &path, empty())).await?;
    if [StatusCode::NOT_IMPLEMENTED, StatusCode::NOT_FOUND].contains(&status) {
        return Ok(None);
    }
    anyhow::ensure!(status.is_success(), "{path}: {status}: {text}");
    let answer: Value = serde_json::from_str(&text)?;
    Ok(Some(answer["summary"]["total"].as_f64().with_context(|| format!("{path} has no total: {text}"))?))
}

impl FigureWatch {
    pub fn start(administrator: Caller, workspace: Uuid, days: Days, expected: Figures) -> Self {
        let (stop, stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let mut watched = WatchedFigures::default();
            while !*stopped.borrow() {
                match Figures::answered(&administrator, workspace, &days).await {
                    Ok(Some(found)) if found.is(&expected) => watched.asked += 1,
                    Ok(Some(found)) => watched.wrong.push(format!("{found}, not {expected}")),
                    Ok(None) => break,
                    Err(error) => watched.wrong.push(error.to_string()),
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
            Ok(watched)
        });
        Self { stop, task }
    }

    pub async fn stop(self) -> anyhow::Result<WatchedFigures> {
        self.stop.send_replace(true);
        self.task.await?
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requests, tokens, cost } = self;
        write!(f, "{requests} requests, {tokens} tokens, {cost:.4} cents")
    }
}
