//! What proxies hold of budgets, and what becomes of it when one is lost for good. A lease of a budget stands for what may
//! be spent and not stored yet, so it outlives its proxy until that proxy's journal arrives. A journal on a lost disk never
//! does: only somebody who knows that can say so, because nothing else tells a lost proxy from one that is cut off.

use crate::audit::{self, AuditRecord};
use anyhow::bail;
use chrono::{DateTime, Utc};
use serde_json::json;
use shared::db::limit_intents;
use std::collections::BTreeMap;
use std::fmt;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

/// Who was heard of within this time lives, for all anybody knows.
const ALIVE: &str = "interval '10 minutes'";

/// A proxy that holds parts of budgets.
#[derive(Debug, PartialEq, Eq)]
pub struct Holder {
    pub id: Uuid,
    /// When it was last heard of; absent when that is forgotten.
    pub seen_at: Option<DateTime<Utc>>,
    pub held: HeldBudgets,
}

/// Parts of budgets by unit, as decimals.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct HeldBudgets {
    pub budgets: i64,
    amounts: BTreeMap<&'static str, String>,
}

const HELD: &str = "count(*) AS budgets, trim_scale(sum(amount) FILTER (WHERE unit = 'cost'))::text AS cost,
    trim_scale(sum(amount) FILTER (WHERE unit = 'tokens'))::text AS tokens,
    trim_scale(sum(amount) FILTER (WHERE unit = 'requests'))::text AS requests";

impl HeldBudgets {
    fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        let mut amounts = BTreeMap::new();
        for (column, unit) in [("cost", "cents"), ("tokens", "tokens"), ("requests", "requests")] {
            if let Some(amount) = row.try_get::<_, Option<String>>(column)? {
                amounts.insert(unit, amount);
            }
        }
        Ok(Self { budgets: row.try_get("budgets")?, amounts })
    }
}

impl fmt::Display for HeldBudgets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "parts of {} budgets", self.budgets)?;
        self.amounts.iter().try_for_each(|(unit, amount)| write!(f, ", {amount} {unit}"))
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seen_at {
            Some(at) => write!(f, "{} last seen {}: {}", self.id, at.format("%Y-%m-%dT%H:%M:%SZ"), self.held),
            None => write!(f, "{} not seen for long: {}", self.id, self.held),
        }
    }
}

/// Those that hold anything, the longest unheard of first.
pub async fn holders(db: &Client) -> anyhow::Result<Vec<Holder>> {
    let holders = format!(
        "SELECT l.boot, h.seen_at, {HELD} FROM limit_leases l LEFT JOIN limit_holders h USING (boot)
         WHERE l.ends_at IS NULL AND l.amount > 0 GROUP BY 1, 2 ORDER BY 2 NULLS FIRST, 1"
    );
    let rows = db.query(&holders, &[]).await?;
    let holder = |row: &Row| -> Result<Holder, tokio_postgres::Error> {
        Ok(Holder { id: row.try_get("boot")?, seen_at: row.try_get("seen_at")?, held: HeldBudgets::from_row(row)? })
    };
    Ok(rows.iter().map(holder).collect::<Result<_, _>>()?)
}

/// Gives back what a lost proxy held, and records it for every organisation it concerns. Should its journal come after
/// all, what it spent is counted then.
pub async fn release(db: &mut Client, holder: Uuid) -> anyhow::Result<u64> {
    let seen = format!("SELECT FROM limit_holders WHERE boot = $1 AND seen_at > now() - {ALIVE} FOR UPDATE");
    let held =
        format!("SELECT organisation_id, {HELD} FROM limit_leases WHERE boot = $1 AND ends_at IS NULL GROUP BY 1");
    let tx = db.transaction().await?;
    if tx.query_opt(&seen, &[&holder]).await?.is_some() {
        bail!("that proxy was heard of less than 10 minutes ago: stop it first");
    }
    // What is known of its promises stays charged: the provider may have been paid. Counters come before leases.
    let unconfirmed = limit_intents::charge_lost(&tx, holder).await?;
    // By id, as everybody locks them.
    tx.execute("SELECT FROM limit_leases WHERE boot = $1 ORDER BY id FOR UPDATE", &[&holder]).await?;
    for row in tx.query(&held, &[&holder]).await? {
        let held = HeldBudgets::from_row(&row)?;
        let mut record = AuditRecord::by_system(row.try_get("organisation_id")?, "limits", "release");
        record.resource_id = Some(holder.to_string());
        record.before = Some(json!({ "budgets": held.budgets, "amounts": held.amounts }));
        audit::record(&tx, &record).await?;
    }
    let released = tx.execute("DELETE FROM limit_leases WHERE boot = $1", &[&holder]).await?;
    if released == 0 {
        bail!("no proxy of that id holds anything");
    }
    tx.execute("DELETE FROM limit_holders WHERE boot = $1", &[&holder]).await?;
    tx.commit().await?;
    tracing::warn!(%holder, released, unconfirmed, "what a lost proxy held of limits was given back");
    Ok(released)
}
