//! Sends mail a day before an API key expires or is rotated, once for each date: when the date is moved, another mail
//! is sent.

use super::{Job, JobRun, outbox};
use crate::http::Time;
use crate::mail::reminder::{self, ReminderKey};
use crate::mail::{Letter, recipients};
use chrono::{DateTime, Utc};
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

pub const JOB: Job = Job { name: "remind_of_keys", every: Duration::from_secs(5 * 60), work: |_, tx| work(tx).boxed() };

const AT_ONCE: usize = 100;

/// Keys that were made for less than a day need no reminder: their end was known to who made them.
const EXPIRING: &str = "WITH due AS (
        SELECT id FROM api_keys
        WHERE expires_at IS NOT NULL AND status IN ('active', 'exhausted')
          AND expires_at > now() AND expires_at <= now() + interval '24 hours'
          AND expires_at - created_at > interval '24 hours' AND expiry_reminded_for IS DISTINCT FROM expires_at
        ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED)
    UPDATE api_keys k SET expiry_reminded_for = k.expires_at FROM due WHERE k.id = due.id
    RETURNING k.id, k.organisation_id, k.name, k.mask, k.expires_at AS at";

const ROTATING: &str = r#"WITH due AS (
        SELECT id FROM api_keys
        WHERE rotation_policy IS NOT NULL AND status IN ('active', 'exhausted')
          AND (rotation_policy ->> 'next_rotation_at') COLLATE "C"
              > to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
          AND (rotation_policy ->> 'next_rotation_at') COLLATE "C"
              <= to_char((now() + interval '24 hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
          AND rotation_reminded_for IS DISTINCT FROM rotation_policy ->> 'next_rotation_at'
        ORDER BY (rotation_policy ->> 'next_rotation_at') COLLATE "C" LIMIT $1 FOR UPDATE SKIP LOCKED)
    UPDATE api_keys k SET rotation_reminded_for = k.rotation_policy ->> 'next_rotation_at' FROM due WHERE k.id = due.id
    RETURNING k.id, k.organisation_id, k.name, k.mask, (k.rotation_policy ->> 'next_rotation_at')::timestamptz AS at"#;

/// What the interface shows of it.
const MARK: &str = r#"UPDATE api_keys SET usage_limits = usage_limits || '{"is_expired_alerts_sent": true}'
    WHERE id = ANY($1) AND jsonb_typeof(usage_limits) = 'object'"#;

type Write = fn(String, &ReminderKey<'_>, Time) -> Letter;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    let mut done = JobRun { items: 0, is_all: true };
    for (sql, write, is_end) in [(EXPIRING, reminder::expires as Write, true), (ROTATING, reminder::is_due, false)] {
        let rows = tx.query(sql, &[&(AT_ONCE as i64)]).await?;
        let mut mailed: Vec<Uuid> = Vec::new();
        for row in &rows {
            mailed.extend(remind(tx, row, write).await?);
        }
        if is_end && !mailed.is_empty() {
            tx.execute(MARK, &[&mailed]).await?;
        }
        done.items += rows.len() as u64;
        done.is_all &= rows.len() < AT_ONCE;
    }
    Ok(done)
}

/// The key, if there was anybody to mail.
async fn remind(tx: &Transaction<'_>, row: &Row, write: Write) -> anyhow::Result<Option<Uuid>> {
    let (id, organisation): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organisation_id")?);
    let key = ReminderKey { id, name: row.try_get("name")?, mask: row.try_get("mask")? };
    let at: DateTime<Utc> = row.try_get("at")?;
    let recipients = recipients::of_key(tx, id).await?;
    let mailed = (!recipients.is_empty()).then_some(id);
    for to in recipients {
        outbox::put(tx, organisation, &write(to, &key, Time(at))).await?;
    }
    Ok(mailed)
}
