//! Promises of calls under strict budgets, on their way to Postgres: noted when their file is sent before the call is over,
//! and taken away when its record is stored. One that is taken away after it was charged (its process was given up, and its
//! journal came after all) is taken off the counter again: what the call really used is in its record.

use super::row::LogRow;
use crate::journal::intent::Intent;
use crate::limits::MAX_AMOUNT;
use chrono::{DateTime, Utc};
use std::collections::HashSet;
use tokio_postgres::{Client, Error};
use uuid::Uuid;

/// A call by its request and its place among the request's targets.
pub type CallKey = (Uuid, i16);

/// Notes the promises of calls that are not among `over`. Any number of times: each is there once.
pub async fn note(client: &Client, intents: &[Intent<'_>], over: &HashSet<CallKey>) -> Result<u64, Error> {
    const NOTE: &str = "
        INSERT INTO limit_intents (request_id, attempt, boot, created_at, organisation_id, scope, scope_id, unit, period,
            starts_at, amount)
        SELECT request_id, attempt, boot, created_at, organisation_id, scope, scope_id, unit, period, starts_at,
            amount * CASE unit WHEN 'cost' THEN 0.000000001 ELSE 1 END
        FROM unnest($1::uuid[], $2::smallint[], $3::uuid[], $4::timestamptz[], $5::uuid[], $6::text[], $7::text[],
            $8::text[], $9::text[], $10::timestamptz[], $11::bigint[])
            AS k (request_id, attempt, boot, created_at, organisation_id, scope, scope_id, unit, period, starts_at, amount)
        ON CONFLICT DO NOTHING";
    let open = intents.iter().filter(|intent| !over.contains(&(intent.request_id, intent.attempt.into())));
    let all: Vec<_> =
        open.flat_map(|intent| intent.charges.iter().zip(&intent.amounts).map(move |one| (intent, one))).collect();
    if all.is_empty() {
        return Ok(0);
    }
    let (mut requests, mut attempts, mut boots, mut times) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let (mut organisations, mut starts, mut amounts) = (Vec::new(), Vec::new(), Vec::new());
    let (mut scopes, mut scope_ids, mut units, mut periods) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (intent, (charge, amount)) in &all {
        requests.push(intent.request_id);
        attempts.push(i16::from(intent.attempt));
        boots.push(intent.boot);
        times.push(crate::journal::record::time_of(intent.request_id));
        organisations.push(intent.organisation_id);
        scopes.push(charge.sort.scope());
        scope_ids.push(charge.scope_id);
        units.push(charge.sort.unit.name());
        periods.push(charge.sort.period());
        starts.push(DateTime::<Utc>::from_timestamp_micros(charge.starts_at).unwrap_or_default());
        amounts.push((**amount).min(MAX_AMOUNT).cast_signed());
    }
    client
        .execute(
            NOTE,
            &[
                &requests,
                &attempts,
                &boots,
                &times,
                &organisations,
                &scopes,
                &scope_ids,
                &units,
                &periods,
                &starts,
                &amounts,
            ],
        )
        .await
}

/// The calls of stored rows are over.
pub async fn settle<'r, 'f: 'r>(client: &Client, rows: impl Iterator<Item = &'r LogRow<'f>>) -> Result<(), Error> {
    const SETTLE: &str = "
        WITH gone AS (DELETE FROM limit_intents i USING unnest($1::uuid[], $2::smallint[]) AS k (request_id, attempt)
                WHERE i.request_id = k.request_id AND i.attempt = k.attempt RETURNING i.*),
            due AS (SELECT organisation_id, scope, scope_id, unit, period, starts_at, sum(amount) AS amount FROM gone
                WHERE charged_at IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6)
        UPDATE usage_counters c SET value = greatest(0, c.value - due.amount), last_updated_at = now() FROM due
        WHERE c.organisation_id = due.organisation_id AND c.scope = due.scope AND c.scope_id = due.scope_id
            AND c.unit = due.unit AND c.period = due.period AND c.starts_at = due.starts_at";
    let (requests, attempts): (Vec<Uuid>, Vec<i16>) =
        rows.filter(|row| row.is_of_a_budget()).map(LogRow::call_key).unzip();
    if requests.is_empty() {
        return Ok(());
    }
    client.execute(SETTLE, &[&requests, &attempts]).await.map(drop)
}
