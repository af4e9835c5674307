//! What strict budgets promised to calls whose proxy died before they were over. It is charged, because the provider may
//! have been paid; only somebody who looks at the provider's bill can say whether it was.

use crate::audit::{self, AuditRecord};
use anyhow::bail;
use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::json;
use shared::db::table::row;
use std::fmt;
use tokio_postgres::Client;
use uuid::Uuid;

/// As many are listed at once.
pub const LISTED: i64 = 1000;

/// One charge of such a call.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub struct Unconfirmed {
    pub request_id: Uuid,
    pub organisation_id: Uuid,
    pub holder: Uuid,
    pub charged_at: DateTime<Utc>,
    pub scope: String,
    pub scope_id: String,
    /// Cents, tokens or requests, as a decimal.
    pub amount: String,
    pub unit: String,
}

/// What the provider's bill says of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Verdict {
    /// It was paid for: the charge stays.
    Spent,
    /// It was not: the charge is taken back.
    Unspent,
}

impl fmt::Display for Unconfirmed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request_id, organisation_id, holder, charged_at, scope, scope_id, amount, unit } = self;
        let unit = if unit == "cost" { "cents" } else { unit.as_str() };
        let since = charged_at.format("%Y-%m-%dT%H:%M:%SZ");
        write!(
            f,
            "{request_id} {amount} {unit} of {scope} {scope_id}, charged {since}; organisation {organisation_id}, "
        )?;
        write!(f, "proxy {holder}")
    }
}

const COLUMNS: &str = "request_id, organisation_id, boot AS holder, charged_at, scope, scope_id, trim_scale(amount)::text AS amount, unit";

/// The oldest first.
pub async fn list(db: &Client) -> anyhow::Result<Vec<Unconfirmed>> {
    let list = format!(
        "SELECT {COLUMNS} FROM limit_intents WHERE charged_at IS NOT NULL
         ORDER BY charged_at, request_id, attempt, scope, scope_id LIMIT {LISTED}"
    );
    let rows = db.query(&list, &[]).await?;
    Ok(rows.iter().map(row::read::<Unconfirmed>).collect::<Result<_, _>>()?)
}

/// Takes all charges of a request off the list, and off their counters if nothing was spent. Recorded for its organisation.
pub async fn reconcile(db: &mut Client, request: Uuid, verdict: Verdict) -> anyhow::Result<u64> {
    // Intents first, then counters, each in the order in which proxies lock them: nobody waits for the other for ever.
    const INTENTS: &str = "SELECT FROM limit_intents WHERE request_id = $1 AND charged_at IS NOT NULL
        ORDER BY request_id, attempt, scope, scope_id, unit, period FOR UPDATE";
    const HELD: &str =
        "SELECT FROM usage_counters c JOIN limit_intents i USING (organisation_id, scope, scope_id, unit, period,
            starts_at) WHERE i.request_id = $1 AND i.charged_at IS NOT NULL
        ORDER BY organisation_id, scope, scope_id, unit, period, starts_at FOR UPDATE OF c";
    const TAKE_BACK: &str =
        "UPDATE usage_counters c SET value = greatest(0, c.value - i.amount), last_updated_at = now()
        FROM (SELECT organisation_id, scope, scope_id, unit, period, starts_at, sum(amount) AS amount FROM limit_intents
              WHERE request_id = $1 AND charged_at IS NOT NULL GROUP BY 1, 2, 3, 4, 5, 6) AS i
        WHERE c.organisation_id = i.organisation_id AND c.scope = i.scope AND c.scope_id = i.scope_id
          AND c.unit = i.unit AND c.period = i.period AND c.starts_at = i.starts_at";
    let gone =
        format!("DELETE FROM limit_intents WHERE request_id = $1 AND charged_at IS NOT NULL RETURNING {COLUMNS}");
    let tx = db.transaction().await?;
    tx.execute(INTENTS, &[&request]).await?;
    tx.execute(HELD, &[&request]).await?;
    if verdict == Verdict::Unspent {
        tx.execute(TAKE_BACK, &[&request]).await?;
    }
    let gone = tx.query(&gone, &[&request]).await?;
    let gone = gone.iter().map(row::read::<Unconfirmed>).collect::<Result<Vec<_>, _>>()?;
    let Some(first) = gone.first() else { bail!("nothing of that request is unconfirmed") };
    let mut record = AuditRecord::by_system(first.organisation_id, "limits", "reconcile");
    record.resource_id = Some(request.to_string());
    let charges = gone.iter().map(|one| json!({ "scope": one.scope, "unit": one.unit, "amount": one.amount }));
    record.before = Some(json!({ "charges": charges.collect::<Vec<_>>() }));
    record.after = Some(json!({ "verdict": if verdict == Verdict::Spent { "spent" } else { "unspent" } }));
    audit::record(&tx, &record).await?;
    tx.commit().await?;
    Ok(gone.len() as u64)
}
