//! Rows that must go: found by what they say of somebody, a batch at a time, and deleted or made nameless.

use crate::db::table::Filter;
use chrono::{DateTime, Utc};
use tokio_postgres::{Error, GenericClient};
use uuid::Uuid;

/// Some rows, column by column.
#[derive(Debug, Default)]
pub struct LogBatch {
    pub times: Vec<DateTime<Utc>>,
    pub ids: Vec<Uuid>,
    pub workspaces: Vec<Uuid>,
    pub traces: Vec<String>,
    /// Empty where there is no body.
    pub keys: Vec<String>,
}

/// So many rows, at most, that a filter holds for.
pub async fn find(client: &impl GenericClient, filter: &Filter, most: i64) -> Result<LogBatch, Error> {
    let find = format!(
        "SELECT created_at, id, workspace_id, trace_id, body_key FROM request_logs WHERE {} LIMIT {most}",
        filter.sql()
    );
    let mut found = LogBatch::default();
    for row in client.query(&find, &filter.values()).await? {
        found.times.push(row.try_get("created_at")?);
        found.ids.push(row.try_get("id")?);
        found.workspaces.push(row.try_get("workspace_id")?);
        found.traces.push(row.try_get("trace_id")?);
        found.keys.push(row.try_get::<_, Option<String>>("body_key")?.unwrap_or_default());
    }
    Ok(found)
}

/// Those of a batch whose body is where it was.
const THESE: &str = "organisation_id = $1 AND (created_at, id, coalesce(body_key, ''))
    IN (SELECT * FROM unnest($2::timestamptz[], $3::uuid[], $4::text[]))";

/// Answers how many they were.
pub async fn delete(client: &impl GenericClient, organisation: Uuid, batch: &LogBatch) -> Result<u64, Error> {
    let delete = format!("DELETE FROM request_logs WHERE {THESE}");
    client.execute(&delete, &[&organisation, &batch.times, &batch.ids, &batch.keys]).await
}

/// Leaves what is counted and nothing that names anybody. Traces get another name, by the salt. Answers how many they were.
pub async fn anonymise(
    client: &impl GenericClient,
    organisation: Uuid,
    batch: &LogBatch,
    salt: &str,
) -> Result<u64, Error> {
    let update = format!(
        "UPDATE request_logs SET metadata = '{{}}', trace_id = {}, span_id = NULL, span_name = NULL,
             parent_span_id = NULL, hook_results = NULL, body_key = NULL WHERE {THESE}",
        nameless("$5")
    );
    client.execute(&update, &[&organisation, &batch.times, &batch.ids, &batch.keys, &salt]).await
}

/// Another name for a trace, which only who knows the salt could make again.
pub fn nameless(salt: &str) -> String {
    format!("left(encode(sha256(convert_to({salt} || trace_id, 'UTF8')), 'hex'), 32)")
}
