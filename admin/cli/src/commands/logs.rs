//! `logs`: what calls were made and what became of them.

use super::explain;
use super::period;
use crate::http::{Call, Client, segment};
use crate::outcome::{Exit, Failure};
use crate::output::{self, Column, Format};
use crate::session::Session;
use chrono::Duration;
use serde_json::Value;

/// List, follow and explain calls.
#[derive(clap::Subcommand)]
pub enum Logs {
    List(List),
    Tail(Tail),
    /// Show the log of a call with its request and answer.
    Show {
        id: String,
    },
    /// Say what became of a call, try by try: route, limits, guardrails, cost.
    Why {
        /// The id of the log, which is that of the request.
        id: String,
    },
}

/// List calls, newest first.
#[derive(clap::Args)]
pub struct List {
    #[command(flatten)]
    filters: Filters,
    /// The last so much time: 1h, 7d.
    #[arg(long, value_parser = period::parse)]
    last: Option<Duration>,
    /// How many at most.
    #[arg(short = 'n', long, default_value_t = 50)]
    limit: usize,
}

/// Follow calls as they arrive, one a line.
#[derive(clap::Args)]
pub struct Tail {
    #[command(flatten)]
    filters: Filters,
    /// End after so many.
    #[arg(short = 'n', long)]
    limit: Option<usize>,
}

#[derive(clap::Args)]
pub struct Filters {
    /// A status or a class, by commas: 429, 5xx; ok and failed for all that did and did not succeed.
    #[arg(long)]
    status: Option<String>,
    /// Names of models, by commas.
    #[arg(long)]
    model: Option<String>,
    /// Slugs of providers, by commas.
    #[arg(long)]
    provider: Option<String>,
    /// Figures: cost>1c, latency>2s, ttft>500ms, tokens>1k.
    #[arg(short = 'q', long = "where", value_parser = figures)]
    figures: Option<Figures>,
    /// Any filter of the API, as metadata={"team":"search"} or -error_code=AB01.
    #[arg(short = 'F', long = "filter", value_name = "NAME=VALUE", allow_hyphen_values = true)]
    more: Vec<String>,
}

#[derive(Clone)]
struct Figures(Vec<(String, String)>);

fn figures(text: &str) -> Result<Figures, String> {
    period::figures(text).map(Figures)
}

const PAGE: usize = 100;
const COLUMNS: &[Column] = &[
    Column::new("time", "created_at"),
    Column::new("id", "id"),
    Column::new("status", "response_status_code"),
    Column::new("provider", "virtual_key|ai_org"),
    Column::new("model", "ai_model"),
    Column::new("ms", "response_time"),
    Column::new("tokens", "total_units"),
    Column::new("cents", "cost"),
    Column::wide("cache", "cache_status"),
    Column::wide("error", "error_code"),
    Column::wide("config", "config"),
    Column::wide("workspace", "workspace_slug"),
    Column::wide("trace", "trace_id"),
];

impl Filters {
    fn query(&self) -> Result<Vec<(String, String)>, Failure> {
        let mut query = Vec::new();
        let mut put = |name: &str, value: &str| query.push((name.to_owned(), value.to_owned()));
        match self.status.as_deref() {
            None => {}
            Some("ok") => put("is_success", "true"),
            Some("failed") => put("is_success", "false"),
            Some(status) if status.contains("xx") => put("status_class", status),
            Some(status) => put("status_code", status),
        }
        if let Some(model) = &self.model {
            put("ai_model", model);
        }
        if let Some(provider) = &self.provider {
            put("virtual_keys", provider);
        }
        for (name, value) in self.figures.iter().flat_map(|figures| &figures.0) {
            put(name, value);
        }
        for filter in &self.more {
            let (name, value) =
                filter.split_once('=').ok_or_else(|| Failure::new(format!("`{filter}` is not NAME=VALUE")))?;
            put(name, value);
        }
        Ok(query)
    }
}

pub async fn run(session: &Session, command: Logs) -> Result<Exit, Failure> {
    match command {
        Logs::List(list) => show_list(session, &list).await,
        Logs::Tail(tail) => follow(session, &tail).await,
        Logs::Show { id } => {
            let log = session.client.call(Call::get(format!("/logs/{}", segment(&id)))).await?;
            session.output.object(&log)?;
            session.output.hint(&format!("portcullis logs why {id}"));
            Ok(Exit::Fine)
        }
        Logs::Why { id } => explain::past(session, &id).await,
    }
}

async fn show_list(session: &Session, list: &List) -> Result<Exit, Failure> {
    let mut query = list.filters.query()?;
    query.extend(session.in_workspace_slug());
    query.extend(list.last.map(|last| ("time_of_generation_min".to_owned(), period::since(last))));
    let rows = newest(&session.client, &query, list.limit).await?;
    session.output.rows(&rows, COLUMNS)?;
    session.output.hint("portcullis logs why ID");
    Ok(Exit::Fine)
}

/// Pages by the last row that was seen, so that calls made meanwhile move nothing.
async fn newest(client: &Client, query: &[(String, String)], limit: usize) -> Result<Vec<Value>, Failure> {
    let mut rows: Vec<Value> = Vec::new();
    while rows.len() < limit {
        let size = PAGE.min(limit - rows.len());
        let mut call = Call::get("/logs").query(query.to_vec());
        call = call.query([("page_size".to_owned(), size.to_string())]);
        if let Some(last) = rows.last().and_then(|row| row["id"].as_str()) {
            call = call.query([("after".to_owned(), last.to_owned())]);
        }
        let mut answer = client.call(call).await?;
        let Some(Value::Array(found)) = answer.get_mut("data").map(Value::take) else { break };
        let is_last = found.len() < size;
        rows.extend(found);
        if is_last {
            break;
        }
    }
    Ok(rows)
}

async fn follow(session: &Session, tail: &Tail) -> Result<Exit, Failure> {
    let mut query = tail.filters.query()?;
    query.extend(session.in_workspace_slug());
    let mut seen = 0;
    let mut last_event = String::new();
    // The server ends a stream now and then; the id of the last event leads on without a gap.
    loop {
        let mut call = Call::get("/logs/tail").query(query.clone()).header("accept", "text/event-stream");
        call.is_stream = true;
        if !last_event.is_empty() {
            call = call.header("last-event-id", last_event.clone());
        }
        let mut response = session.client.stream(call).await?;
        let mut pending = String::new();
        let mut undecoded: Vec<u8> = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            undecoded.extend_from_slice(&chunk);
            let whole = undecoded.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            pending.push_str(&String::from_utf8_lossy(&undecoded.drain(..whole).collect::<Vec<_>>()));
            while let Some(end) = pending.find("\n\n") {
                let event: String = pending.drain(..end + 2).collect();
                let Some(row) = row_of(&event, &mut last_event) else { continue };
                show_row(session, &row)?;
                seen += 1;
                if tail.limit == Some(seen) || output::is_closed() {
                    return Ok(Exit::Fine);
                }
            }
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

/// The call in an event, if it has one: comments only show that the stream is alive.
fn row_of(event: &str, last_event: &mut String) -> Option<Value> {
    let mut row = None;
    for line in event.lines() {
        if let Some(id) = line.strip_prefix("id:") {
            *last_event = id.trim().to_owned();
        } else if let Some(data) = line.strip_prefix("data:") {
            row = serde_json::from_str(data.trim()).ok();
        }
    }
    row.filter(|row: &Value| row["id"].is_string())
}

fn show_row(session: &Session, row: &Value) -> Result<(), Failure> {
    match session.output.format {
        // A table needs all rows to know its widths, and one document a row is nothing to follow.
        Format::Json | Format::Jsonl => output::write(&format!("{row}\n")),
        Format::Table | Format::Wide | Format::Tsv => {
            let is_wide = session.output.format == Format::Wide;
            let cells = COLUMNS.iter().filter(|column| is_wide || !column.is_wide).map(|column| column.cell(row));
            let separator = if session.output.format == Format::Tsv { "\t" } else { "  " };
            output::write(&(cells.collect::<Vec<_>>().join(separator) + "\n"))
        }
        _ => session.output.rows(std::slice::from_ref(row), COLUMNS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_gives_its_call_and_the_place_to_go_on_from() {
        let mut last = String::new();
        assert!(row_of(": following\nid: 7\n\n", &mut last).is_none());
        assert_eq!(last, "7");
        assert_eq!(row_of("id: 8\ndata: {\"id\":\"x\"}\n\n", &mut last).unwrap()["id"], "x");
        assert_eq!(last, "8");
    }
}
