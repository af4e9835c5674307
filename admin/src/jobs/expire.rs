//! What has an end and is over: API keys, providers, and the secret that a key had before its rotation. All of them are
//! refused from that instant on, marked or not; the mark is for lists and for people, and the audit trail says when it
//! was set. Exports and logs are deleted by their age instead: `expire_exports`, `expire_logs`.

use super::{Job, JobRun};
use crate::audit::{self, AuditRecord};
use crate::http::Time;
use futures::FutureExt as _;
use serde_json::{Value, json};
use std::time::Duration;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

pub const KEYS: Job = job("expire_keys", |_, tx| expire(tx, &ENDED_KEYS).boxed());
pub const PROVIDERS: Job = job("expire_providers", |_, tx| expire(tx, &ENDED_PROVIDERS).boxed());
pub const SECRETS: Job = job("expire_secrets", |_, tx| expire(tx, &REPLACED_SECRETS).boxed());

const fn job(name: &'static str, work: super::JobWork) -> Job {
    Job { name, every: Duration::from_secs(5), work }
}

const AT_ONCE: usize = 500;

/// One kind of end. Columns and conditions are written here and become SQL.
struct ExpiryRule {
    table: &'static str,
    /// The column that says how it was before.
    before: &'static str,
    is_over: &'static str,
    order: &'static str,
    set: &'static str,
    resource_type: &'static str,
    action: &'static str,
    /// Before and after, as the audit trail shows them; `was` is the column of before.
    shown: fn(&Row) -> Result<(Value, Value), tokio_postgres::Error>,
}

const ENDED_KEYS: ExpiryRule = ExpiryRule {
    table: "api_keys",
    before: "status",
    is_over: "expires_at IS NOT NULL AND expires_at <= now() AND status IN ('active', 'exhausted')",
    order: "ORDER BY expires_at",
    set: "status = 'expired', last_updated_at = now()",
    resource_type: "api_keys",
    action: "update",
    shown: |row| Ok((json!({ "status": row.try_get::<_, &str>("was")? }), json!({ "status": "expired" }))),
};

const ENDED_PROVIDERS: ExpiryRule = ExpiryRule { table: "providers", resource_type: "providers", ..ENDED_KEYS };

const REPLACED_SECRETS: ExpiryRule = ExpiryRule {
    table: "api_keys",
    before: "previous_expires_at",
    // The first condition is that of the small index over keys that have two secrets.
    is_over: "previous_hash IS NOT NULL AND previous_expires_at <= now()",
    order: "",
    set: "previous_hash = NULL, previous_expires_at = NULL",
    resource_type: "api_keys",
    action: "rotate",
    shown: |row| {
        let before = json!({ "transition_expires_at": row.try_get::<_, Time>("was")? });
        Ok((before, json!({ "transition_expires_at": null })))
    },
};

async fn expire(tx: &Transaction<'_>, rule: &ExpiryRule) -> anyhow::Result<JobRun> {
    let &ExpiryRule { table, before, is_over, order, set, resource_type, action, shown } = rule;
    // What somebody is changing right now may get a later end; the next run sees what became of it.
    let sql = format!(
        "WITH due AS (
            SELECT id, {before} AS was FROM {table} WHERE {is_over} {order} LIMIT $1 FOR UPDATE SKIP LOCKED)
        UPDATE {table} t SET {set} FROM due WHERE t.id = due.id
        RETURNING t.id, t.organisation_id, t.workspace_id, due.was"
    );
    let rows = tx.query(&sql, &[&(AT_ONCE as i64)]).await?;
    for row in &rows {
        let mut record = AuditRecord::by_system(row.try_get("organisation_id")?, resource_type, action);
        record.workspace_id = row.try_get("workspace_id")?;
        record.resource_id = Some(row.try_get::<_, Uuid>("id")?.to_string());
        let (before, after) = shown(row)?;
        (record.before, record.after) = (Some(before), Some(after));
        audit::record(tx, &record).await?;
    }
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE })
}
