//! Sets a counter to what its logs say. Whoever stores logs adds to counters in the same transaction: while the counter is locked
//! here, those wait whose rows are not visible yet, and add to what is set; all others are read. One counter at a time is
//! locked, so nobody waits for the other for ever.

use super::logged::Span;
use super::{Finding, logged_in};
use crate::audit::{self, AuditRecord};
use rust_decimal::Decimal;
use serde_json::json;
use tokio_postgres::Client;

/// False when it agreed meanwhile; the finding then says so.
pub async fn mend(db: &mut Client, finding: &mut Finding) -> anyhow::Result<bool> {
    // One that is not there is made, so that it can be locked.
    const MAKE: &str = "INSERT INTO usage_counters (organisation_id, scope, scope_id, unit, period, starts_at, value)
        VALUES ($1, $2, $3, $4, $5, $6, 0) ON CONFLICT DO NOTHING";
    const LOCK: &str = "SELECT value FROM usage_counters WHERE organisation_id = $1 AND scope = $2 AND scope_id = $3
        AND unit = $4 AND period = $5 AND starts_at = $6 FOR UPDATE";
    const UNCONFIRMED: &str = "SELECT coalesce(sum(amount), 0) FROM limit_intents WHERE charged_at IS NOT NULL
        AND organisation_id = $1 AND scope = $2 AND scope_id = $3 AND unit = $4 AND period = $5 AND starts_at = $6";
    const SET: &str = "UPDATE usage_counters SET value = $7, last_updated_at = now() WHERE organisation_id = $1
        AND scope = $2 AND scope_id = $3 AND unit = $4 AND period = $5 AND starts_at = $6";
    let counter = finding.counter.clone();
    let key: [&(dyn tokio_postgres::types::ToSql + Sync); 6] = [
        &counter.organisation_id,
        &counter.scope,
        &counter.scope_id,
        &counter.unit,
        &counter.period,
        &counter.starts_at,
    ];
    // Each statement sees what was committed before it began.
    let tx = db.transaction().await?;
    tx.execute(MAKE, &key).await?;
    let value: Decimal = tx.query_one(LOCK, &key).await?.try_get(0)?;
    let logged = logged_in(&tx, std::slice::from_ref(&counter), Span::Period).await?;
    let Some(Ok(logged)) = logged.into_iter().next() else { return Ok(false) };
    let unconfirmed: Decimal = tx.query_one(UNCONFIRMED, &key).await?.try_get(0)?;
    (finding.counter.value, finding.logged) = (value, logged + unconfirmed);
    if value == finding.logged {
        return Ok(false);
    }
    let mut set = key.to_vec();
    set.push(&finding.logged);
    tx.execute(SET, &set).await?;
    let mut record = AuditRecord::by_system(counter.organisation_id, "limits", "mend");
    record.resource_id = Some(counter.scope_id.clone());
    let record_value = |value: Decimal| json!({ "scope": counter.scope, "unit": counter.unit, "value": value.normalize().to_string() });
    (record.before, record.after) = (Some(record_value(value)), Some(record_value(finding.logged)));
    audit::record(&tx, &record).await?;
    tx.commit().await?;
    finding.is_mended = true;
    Ok(true)
}
