//! `usage` and `budgets`: what calls cost, and how much may still be spent.

use super::period;
use crate::http::segment;
use crate::outcome::{Exit, Failure};
use crate::output::Column;
use crate::session::Session;
use chrono::Duration;
use serde_json::Value;

/// Requests, tokens and cost by what they have in common, the costliest first.
#[derive(clap::Args)]
pub struct Usage {
    /// Two at most, by commas: model, provider, workspace, api_key, user, config, prompt, status_code, ai_service; first also metadata/KEY.
    #[arg(long, default_value = "model")]
    by: String,
    /// The last so much time: 24h, 30d.
    #[arg(long, default_value = "30d", value_parser = period::parse)]
    last: Duration,
}

/// Every budget with what is used of it and when it runs out at the present pace.
#[derive(clap::Args)]
pub struct Budgets {
    /// api_key, workspace, provider or policy.
    #[arg(long)]
    kind: Option<String>,
}

const COLUMNS: &str = "cost,total_tokens,error_count,avg_latency,last_seen";
const USAGE: &[Column] = &[
    Column::new("group", "name|group"),
    Column::new("and", "and"),
    Column::new("requests", "requests"),
    Column::new("tokens", "total_tokens"),
    Column::new("cents", "cost"),
    Column::wide("errors", "error_count"),
    Column::wide("mean ms", "avg_latency"),
    Column::wide("last seen", "last_seen"),
];
const BUDGETS: &[Column] = &[
    Column::new("kind", "kind"),
    Column::new("name", "name"),
    Column::new("value", "value_key"),
    Column::new("used", "current_usage"),
    Column::new("limit", "credit_limit"),
    Column::new("unit", "unit"),
    Column::new("status", "status"),
    Column::new("runs out", "runs_out_at"),
    Column::wide("reset", "next_usage_reset_at"),
    Column::wide("a day", "pace"),
    Column::wide("id", "id"),
];

pub async fn run(session: &Session, usage: &Usage) -> Result<Exit, Failure> {
    let (by, then) = usage.by.split_once(',').map_or((usage.by.as_str(), None), |(by, then)| (by, Some(then)));
    // Groups of metadata have columns of their own, and their value under a name of its own.
    let (path, field, columns) = match by.strip_prefix("metadata/") {
        Some(key) => (format!("/analytics/groups/metadata/{}", segment(key)), "metadata_value", None),
        None => (format!("/analytics/groups/{}", segment(by)), by, Some(COLUMNS)),
    };
    let pair = |name: &str, value: String| (name.to_owned(), value);
    let mut query = vec![
        pair("time_of_generation_min", period::since(usage.last)),
        pair("time_of_generation_max", period::since(Duration::zero())),
        pair("order_by", "cost".to_owned()),
        pair("order_by_type", "desc".to_owned()),
    ];
    query.extend(columns.map(|columns| pair("columns", columns.to_owned())));
    query.extend(then.map(|then| pair("then_by", then.to_owned())));
    query.extend(session.in_workspace_slug());
    let mut rows = session.client.list(&path, &query).await?;
    if !session.output.is_structured() {
        // The API names the dimension by its own word, which differs from question to question.
        for row in rows.iter_mut().filter_map(Value::as_object_mut) {
            let group = row.remove(field).unwrap_or_default();
            let and = then.and_then(|then| row.remove(then)).unwrap_or_default();
            row.insert("group".to_owned(), group);
            row.insert("and".to_owned(), and);
        }
    }
    session.output.rows(&rows, USAGE)?;
    session.output.hint("portcullis budgets");
    Ok(Exit::Fine)
}

pub async fn budgets(session: &Session, budgets: &Budgets) -> Result<Exit, Failure> {
    let mut query = session.in_workspace_slug();
    query.extend(budgets.kind.iter().map(|kind| ("kind".to_owned(), kind.clone())));
    session.output.rows(&session.client.list("/analytics/budgets", &query).await?, BUDGETS)?;
    session.output.hint("portcullis usage --by api_key");
    Ok(Exit::Fine)
}
