//! One batch, one transaction. Everything that is added up is added up from the rows that were new, and in the order of
//! its key, so that two shippers wait for each other instead of deadlocking.

use super::row::Row;
use futures::pin_mut;
use sha2::{Digest as _, Sha256};
use shared::db;
use std::collections::BTreeSet;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::{Client, Error};
use uuid::Uuid;

/// Why a batch was not stored.
#[derive(Debug)]
pub enum Failure {
    /// Nothing is wrong with the rows; later it will work.
    Postgres(String),
    /// Postgres will never take one of them.
    Rows(String),
}

/// Makes a connection ready for batches.
pub async fn prepare(client: &Client) -> Result<(), Error> {
    let columns = Row::COLUMNS;
    client
        .batch_execute(&format!(
            "SET statement_timeout = '60s';
             SET lock_timeout = '30s';
             SET idle_in_transaction_session_timeout = '60s';
             CREATE TEMPORARY TABLE staged ON COMMIT DELETE ROWS AS SELECT {columns} FROM request_logs WITH NO DATA"
        ))
        .await
}

/// Stores the rows and answers how many were new.
pub async fn store<'r>(
    client: &mut Client,
    rows: impl ExactSizeIterator<Item = &'r Row> + Clone,
) -> Result<u64, Failure> {
    if rows.len() == 0 {
        return Ok(0);
    }
    let days: BTreeSet<_> = rows.clone().map(Row::day).collect();
    for day in days {
        client.execute("SELECT request_logs_day($1)", &[&day]).await.map_err(blame)?;
    }
    let count = rows.len() as u64;
    let transaction = client.transaction().await.map_err(blame)?;
    let sink =
        transaction.copy_in(&format!("COPY staged ({}) FROM STDIN BINARY", Row::COLUMNS)).await.map_err(blame)?;
    let writer = BinaryCopyInWriter::new(sink, Row::TYPES);
    pin_mut!(writer);
    for row in rows {
        writer.as_mut().write(&row.values()).await.map_err(blame)?;
    }
    writer.finish().await.map_err(blame)?;
    let again = transaction.execute(&insert(), &[]).await.map_err(blame)?;
    if again < count {
        transaction.execute(ROLL_UP, &[]).await.map_err(blame)?;
        transaction.execute(COUNT, &[]).await.map_err(blame)?;
    }
    transaction.commit().await.map_err(blame)?;
    Ok(count - again)
}

/// Keeps a record that cannot be stored where somebody can look at it.
pub async fn reject(client: &Client, segment: &str, record: &[u8], reason: &str) -> Result<(), String> {
    const REJECT: &str = "INSERT INTO rejected_records (id, segment, record, reason) VALUES ($1, $2, $3, $4)
        ON CONFLICT DO NOTHING";
    let reason = reason.replace('\0', "");
    client
        .execute(REJECT, &[&of_bytes(record), &segment, &record, &reason])
        .await
        .map(drop)
        .map_err(|error| db::explain(&error))
}

/// An id that the same record has again when it is sent again.
fn of_bytes(record: &[u8]) -> Uuid {
    let mut id = [0; 16];
    id.copy_from_slice(&Sha256::digest(record)[..16]);
    Uuid::from_bytes(id)
}

/// Inserts what is not there yet and leaves only that in the temporary table. Answers how many were there.
fn insert() -> String {
    let columns = Row::COLUMNS;
    format!(
        "WITH fresh AS (
             INSERT INTO request_logs ({columns}) SELECT {columns} FROM staged ORDER BY created_at, id
             ON CONFLICT (created_at, id) DO NOTHING
             RETURNING created_at, id)
         DELETE FROM staged s
         WHERE NOT EXISTS (SELECT FROM fresh f WHERE f.created_at = s.created_at AND f.id = s.id)"
    )
}

const ROLL_UP: &str = "
    INSERT INTO usage_by_minute AS u (organisation_id, workspace_id, minute, api_key_id, ai_org, ai_model, virtual_key,
        config, prompt_slug, response_status_code, cache_status, requests, req_units, res_units, cost, response_time,
        response_time_max, rescued_by_retry, rescued_by_fallback, first_seen, last_seen)
    SELECT organisation_id, workspace_id, date_trunc('minute', created_at, 'UTC') AS minute,
        coalesce(api_key_id, '00000000-0000-0000-0000-000000000000') AS key, coalesce(ai_org, '') AS org,
        coalesce(ai_model, '') AS model, coalesce(virtual_key, '') AS provider, coalesce(config, '') AS config, '',
        response_status_code, 'DISABLED', count(*), sum(req_units), sum(res_units), coalesce(sum(cost), 0),
        sum(response_time), max(response_time),
        count(*) FILTER (WHERE response_status_code BETWEEN 200 AND 299 AND retry_success_count > 0),
        count(*) FILTER (WHERE response_status_code BETWEEN 200 AND 299 AND attempt > 0),
        min(created_at), max(created_at)
    FROM staged
    GROUP BY organisation_id, workspace_id, minute, key, org, model, provider, staged.config, response_status_code
    ORDER BY workspace_id, minute, key, org, model, provider, coalesce(staged.config, ''), response_status_code
    ON CONFLICT (workspace_id, minute, api_key_id, ai_org, ai_model, virtual_key, config, prompt_slug,
        response_status_code, cache_status)
    DO UPDATE SET requests = u.requests + excluded.requests, req_units = u.req_units + excluded.req_units,
        res_units = u.res_units + excluded.res_units, cost = u.cost + excluded.cost,
        response_time = u.response_time + excluded.response_time,
        response_time_max = greatest(u.response_time_max, excluded.response_time_max),
        rescued_by_retry = u.rescued_by_retry + excluded.rescued_by_retry,
        rescued_by_fallback = u.rescued_by_fallback + excluded.rescued_by_fallback,
        first_seen = least(u.first_seen, excluded.first_seen), last_seen = greatest(u.last_seen, excluded.last_seen)";

/// Calls that were refused before a provider was chosen use nothing up.
const COUNT: &str = "
    INSERT INTO usage_counters AS c (organisation_id, scope, scope_id, unit, period, starts_at, value)
    SELECT s.organisation_id, scope.name, scope.id, unit.name, period.name, period.start, sum(unit.amount)
    FROM (SELECT organisation_id, workspace_id, api_key_id, virtual_key, date_trunc('day', created_at, 'UTC') AS day,
              count(*) AS requests, sum(req_units + res_units) AS tokens, coalesce(sum(cost), 0) AS cost
          FROM staged WHERE ai_org IS NOT NULL
          GROUP BY organisation_id, workspace_id, api_key_id, virtual_key, day) s
    CROSS JOIN LATERAL (VALUES ('organisation', s.organisation_id::text), ('workspace', s.workspace_id::text),
        ('api_key', s.api_key_id::text), ('provider', s.workspace_id || '/' || s.virtual_key)) AS scope (name, id)
    CROSS JOIN LATERAL (VALUES ('requests', s.requests::numeric), ('tokens', s.tokens), ('cost', s.cost))
        AS unit (name, amount)
    CROSS JOIN LATERAL (VALUES ('day', s.day), ('total', '-infinity'::timestamptz)) AS period (name, start)
    WHERE scope.id IS NOT NULL
    GROUP BY 1, 2, 3, 4, 5, 6
    ORDER BY 1, 2, 3, 4, 5, 6
    ON CONFLICT (organisation_id, scope, scope_id, unit, period, starts_at)
    DO UPDATE SET value = c.value + excluded.value, last_updated_at = now()";

/// Bad data is the rows' fault; everything else (away, busy, full, not migrated, not allowed) passes or is mended.
fn blame(error: Error) -> Failure {
    let words = db::explain(&error);
    match error.code() {
        // 22: data exception, 23: integrity constraint.
        Some(code) if code.code().starts_with("22") || code.code().starts_with("23") => Failure::Rows(words),
        Some(_) => Failure::Postgres(words),
        // A value that could not even be written in Postgres's form.
        None if words.starts_with("error serializing") => Failure::Rows(words),
        None => Failure::Postgres(words),
    }
}
