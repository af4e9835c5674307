//! `audit`: who changed what.

use super::period;
use crate::http::Call;
use crate::outcome::{Exit, Failure};
use crate::output::Column;
use crate::session::Session;
use chrono::Duration;
use serde_json::Value;

/// Read the audit trail.
#[derive(clap::Subcommand)]
pub enum Audit {
    List(List),
}

/// List changes, newest first.
#[derive(clap::Args)]
pub struct List {
    /// The last so much time: 24h, 30d.
    #[arg(long, default_value = "30d", value_parser = period::parse)]
    last: Duration,
    /// Of one object, by its id.
    #[arg(long)]
    id: Option<String>,
    /// Of one kind, as configs or api_keys.
    #[arg(long)]
    resource: Option<String>,
    /// create, update, delete and further words of the trail.
    #[arg(long)]
    action: Option<String>,
    /// How many at most.
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: usize,
}

const COLUMNS: &[Column] = &[
    Column::new("time", "timestamp"),
    Column::new("who", "user_email|api_key_name|user_type"),
    Column::new("action", "action"),
    Column::new("kind", "resource_type"),
    Column::new("id", "resource_id"),
    Column::new("status", "response_status_code"),
    Column::wide("method", "method"),
    Column::wide("path", "uri"),
    Column::wide("from", "client_ip"),
    Column::wide("workspace", "workspace_name"),
    Column::wide("request", "request_id"),
];

pub async fn run(session: &Session, Audit::List(list): &Audit) -> Result<Exit, Failure> {
    let mut query = session.in_workspace();
    query.push(("start_time".to_owned(), period::since(list.last)));
    let filters = [("resource_id", &list.id), ("resource_type", &list.resource), ("action", &list.action)];
    query.extend(filters.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value.clone()?))));
    query.push(("page_size".to_owned(), list.limit.min(100).to_string()));
    let answer = session.client.call(Call::get("/audit-logs").query(query)).await?;
    let rows: Vec<Value> = answer["records"].as_array().into_iter().flatten().take(list.limit).cloned().collect();
    session.output.rows(&rows, COLUMNS)?;
    session.output.hint("portcullis audit list --id ID");
    Ok(Exit::Fine)
}
