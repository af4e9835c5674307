//! One batch, one transaction: the rows go to a temporary table, and from there where all rows go (`request_logs`).

use super::charge;
use super::copied::Copied;
use super::row::{self, LogRow};
use futures::{SinkExt as _, pin_mut};
use shared::db::{self, request_logs};
use std::collections::BTreeSet;
use tokio_postgres::error::{DbError, SqlState};
use tokio_postgres::{Client, Error};

/// Why a batch was not stored.
#[derive(Debug)]
pub enum StoreFailure {
    /// Nothing is wrong with the rows; later it will work.
    Postgres(String),
    /// Postgres will never take one of them.
    Rows(String),
}

/// Makes a connection ready for batches.
pub async fn prepare(client: &Client) -> Result<(), Error> {
    let stage = request_logs::stage(row::COLUMNS, "DELETE ROWS");
    client
        .batch_execute(&format!(
            "SET statement_timeout = '60s';
             SET lock_timeout = '30s';
             SET idle_in_transaction_session_timeout = '60s';
             {stage}"
        ))
        .await
}

/// What guardrails say on the traces of their requests, once for each request. Its id is the same when a batch is sent again.
const FEEDBACK: &str = "INSERT INTO feedback
        (id, organisation_id, workspace_id, trace_id, value, weight, metadata, api_key_id, user_id, created_at)
    SELECT md5(s.id::text || h.place)::uuid, s.organisation_id, s.workspace_id, s.trace_id,
        (h.hook #>> '{feedback,value}')::integer, (h.hook #>> '{feedback,weight}')::numeric,
        h.hook #> '{feedback,metadata}', s.api_key_id, s.user_id, s.created_at
    FROM staged s CROSS JOIN LATERAL jsonb_array_elements(
        coalesce(s.hook_results -> 'before_request_hooks', '[]') || coalesce(s.hook_results -> 'after_request_hooks', '[]')
    ) WITH ORDINALITY AS h (hook, place)
    WHERE s.hook_results IS NOT NULL AND s.id = s.internal_trace_id AND jsonb_typeof(h.hook -> 'feedback') = 'object'
        AND EXISTS (SELECT FROM workspaces w WHERE w.organisation_id = s.organisation_id AND w.id = s.workspace_id)
    ON CONFLICT DO NOTHING";

/// What guardrails denied, for those that have it told in the audit trail: one row for each guardrail, key and side, which says how
/// often. So the trail grows with the batches, and not with the requests that anybody can send. Only rows that are new are
/// staged by then.
const DENIALS: &str = "INSERT INTO audit_logs
        (organisation_id, workspace_id, user_type, api_key_id, method, uri, request_id, resource_type, action, resource_id,
         response_status_code, error)
    SELECT s.organisation_id, s.workspace_id,
        CASE WHEN s.api_key_id IS NULL THEN 'user' ELSE 'api_key' END, s.api_key_id, min(s.request_method), min(s.request_url),
        (array_agg(s.internal_trace_id ORDER BY s.created_at))[1], 'guardrail', 'deny', h.hook ->> 'id', 446,
        format('446 %s %s denied by the guardrail', count(*), h.side)
    FROM staged s CROSS JOIN LATERAL (
        SELECT 'requests' AS side, hook FROM jsonb_array_elements(coalesce(s.hook_results -> 'before_request_hooks', '[]')) AS hook
        UNION ALL
        SELECT 'answers', hook FROM jsonb_array_elements(coalesce(s.hook_results -> 'after_request_hooks', '[]')) AS hook
    ) AS h
    WHERE s.hook_results IS NOT NULL AND h.hook -> 'audit' = 'true'::jsonb
        AND EXISTS (SELECT FROM workspaces w WHERE w.organisation_id = s.organisation_id AND w.id = s.workspace_id)
    GROUP BY s.organisation_id, s.workspace_id, s.api_key_id, h.side, h.hook ->> 'id'";

/// Stores the rows and answers how many were new.
pub async fn store<'r, 'f: 'r>(
    client: &mut Client,
    rows: impl ExactSizeIterator<Item = &'r LogRow<'f>> + Clone,
) -> Result<u64, StoreFailure> {
    if rows.len() == 0 {
        return Ok(0);
    }
    let days: BTreeSet<_> = rows.clone().map(LogRow::day).collect();
    for day in days {
        request_logs::days::make_day(&*client, day).await.map_err(blame)?;
    }
    let count = rows.len() as u64;
    let transaction = client.transaction().await.map_err(blame)?;
    let copy = format!("COPY staged ({}) FROM STDIN BINARY", row::COLUMNS);
    let sink = transaction.copy_in(&copy).await.map_err(blame)?;
    pin_mut!(sink);
    let mut copied = Copied::default();
    for row in rows.clone() {
        row.write(&mut copied).map_err(|error| StoreFailure::Rows(error.to_string()))?;
        if let Some(full) = copied.full() {
            sink.feed(full).await.map_err(blame)?;
        }
    }
    sink.feed(copied.end()).await.map_err(blame)?;
    sink.as_mut().finish().await.map_err(blame)?;
    let fresh = request_logs::add_staged(&transaction, row::COLUMNS, count).await.map_err(blame)?;
    if rows.clone().any(LogRow::has_feedback) {
        transaction.execute(FEEDBACK, &[]).await.map_err(blame)?;
    }
    if fresh > 0 && rows.clone().any(LogRow::is_audited) {
        transaction.execute(DENIALS, &[]).await.map_err(blame)?;
    }
    if fresh > 0 {
        charge::charge(&transaction, rows.flat_map(LogRow::charges)).await.map_err(blame)?;
    }
    transaction.commit().await.map_err(blame)?;
    Ok(fresh)
}

/// Bad data is the rows' fault; everything else (away, busy, full, not migrated, not allowed) passes or is mended.
fn blame(error: Error) -> StoreFailure {
    let words = db::explain(&error);
    let constraint = error.as_db_error().and_then(DbError::constraint);
    match error.code() {
        // A row without a table for its day, which was there a moment ago: retention has dropped it, and it is made again.
        Some(&SqlState::CHECK_VIOLATION) if constraint.is_none() => StoreFailure::Postgres(words),
        // 22: data exception, 23: integrity constraint, 54: longer or deeper than Postgres takes.
        Some(code) if ["22", "23", "54"].iter().any(|class| code.code().starts_with(class)) => {
            StoreFailure::Rows(words)
        }
        Some(_) => StoreFailure::Postgres(words),
        // A value that could not even be written in Postgres's form.
        None if words.starts_with("error serializing") => StoreFailure::Rows(words),
        None => StoreFailure::Postgres(words),
    }
}
