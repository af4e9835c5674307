//! Rotates API keys whose rotation policy is due. The secret in use stays valid for the policy's transition. The new
//! secret is not shown to anybody: somebody who may rotate the key fetches it by rotating again. Those responsible for
//! the key get a mail.

use super::{Job, JobRun, outbox};
use crate::audit::{self, AuditRecord};
use crate::http::Time;
use crate::mail::recipients;
use crate::mail::reminder::{self, ReminderKey};
use crate::resources::rotation::{self, NewSecret};
use chrono::{DateTime, TimeDelta, Utc};
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job = Job { name: "rotate_keys", every: Duration::from_secs(30), work: |_, tx| work(tx).boxed() };

const AT_ONCE: usize = 100;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    // A transition that is still open is waited for: a key has at most two secrets.
    const DUE: &str = r#"SELECT id, organisation_id, workspace_id, name, mask, rotation_policy, now() AS now FROM api_keys
        WHERE rotation_policy IS NOT NULL AND status IN ('active', 'exhausted')
          AND (rotation_policy ->> 'next_rotation_at') COLLATE "C"
              <= to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
          AND (previous_expires_at IS NULL OR previous_expires_at <= now())
          AND (expires_at IS NULL OR expires_at > now())
        ORDER BY (rotation_policy ->> 'next_rotation_at') COLLATE "C" LIMIT $1 FOR UPDATE SKIP LOCKED"#;
    let rows = tx.query(DUE, &[&(AT_ONCE as i64)]).await?;
    for row in &rows {
        let (id, organisation): (Uuid, Uuid) = (row.try_get("id")?, row.try_get("organisation_id")?);
        let (name, mask): (&str, &str) = (row.try_get("name")?, row.try_get("mask")?);
        let (policy, now): (Value, DateTime<Utc>) = (row.try_get("rotation_policy")?, row.try_get("now")?);
        // A stored policy was checked; should it not be valid any more, the shortest transition does no harm.
        let transition = rotation::transition(Some(&policy), None).unwrap_or(TimeDelta::minutes(30));
        let (fresh, ends) = (NewSecret::unclaimed(), now + transition);
        let due = policy["next_rotation_at"].clone();
        rotation::replace(tx, id, &fresh, ends, Some(policy), now).await?;
        let mut record = AuditRecord::by_system(organisation, "api_keys", "rotate");
        record.workspace_id = row.try_get("workspace_id")?;
        record.resource_id = Some(id.to_string());
        record.before = Some(json!({ "next_rotation_at": due }));
        record.after = Some(rotation::recorded(id, "auto", mask, fresh.mask(), Some(Time(ends))));
        audit::record(tx, &record).await?;
        for to in recipients::of_key(tx, id).await? {
            let letter = reminder::was_rotated(to, &ReminderKey { id, name, mask }, Time(ends));
            outbox::put(tx, organisation, &letter).await?;
        }
    }
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE })
}
