//! `gateway-admin audit verify`: reads the trail of each organisation from its first record and says what does not
//! fit. It sees one moment of the database, and holds one record at a time.

use super::chain::{self, ChainEnd, ChainFinding, ChainWalk, ChainedRecord};
use anyhow::Context as _;
use chrono::{DateTime, Utc};
use futures::TryStreamExt as _;
use std::fmt;
use std::pin::pin;
use tokio_postgres::{Client, IsolationLevel, Row, Transaction};
use uuid::Uuid;

/// What was found of one organisation.
#[derive(Debug)]
pub struct ChainReport {
    pub organisation_id: Uuid,
    /// Records that were chained.
    pub records: u64,
    /// Records that the job has not reached yet, and since when the oldest of them waits.
    pub waiting: i64,
    pub waiting_since: Option<DateTime<Utc>>,
    pub end: Option<ChainEnd>,
    pub findings: Vec<ChainFinding>,
}

impl ChainReport {
    pub fn is_intact(&self) -> bool {
        self.findings.is_empty()
    }
}

impl fmt::Display for ChainReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.is_intact() { "intact" } else { "NOT INTACT" };
        write!(f, "organisation {}: {} records, {state}", self.organisation_id, self.records)?;
        if let Some(end) = &self.end {
            write!(f, ", ends with {end}")?;
        }
        if let Some(since) = self.waiting_since {
            write!(f, ", {} more not chained yet (since {})", self.waiting, crate::http::Time(since))?;
        }
        self.findings.iter().try_for_each(|finding| write!(f, "\n  {finding}"))
    }
}

/// Verifies one organisation or all of them. An `anchor` is an end that was noted earlier.
pub async fn verify(
    client: &mut Client,
    organisation: Option<Uuid>,
    anchor: Option<ChainEnd>,
) -> anyhow::Result<Vec<ChainReport>> {
    // With those that only the trail still knows: somebody who can delete records can delete an organisation.
    const ORGANISATIONS: &str =
        "SELECT id FROM (SELECT id FROM organisations UNION SELECT organisation_id FROM audit_chains
                                 UNION SELECT organisation_id FROM audit_logs) known
                                 WHERE $1::uuid IS NULL OR id = $1 ORDER BY id";
    let moment = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let tx = moment.start().await?;
    let rows = tx.query(ORGANISATIONS, &[&organisation]).await.context("the audit trail cannot be read")?;
    if let (Some(organisation), []) = (organisation, rows.as_slice()) {
        anyhow::bail!("there is no organisation {organisation}");
    }
    let mut reports = Vec::new();
    for row in rows {
        reports.push(report(&tx, row.try_get("id")?, anchor).await?);
    }
    Ok(reports)
}

async fn report(tx: &Transaction<'_>, organisation: Uuid, anchor: Option<ChainEnd>) -> anyhow::Result<ChainReport> {
    const WAITING: &str = "SELECT count(*) AS waiting, min(created_at) AS since FROM audit_logs
                           WHERE organisation_id = $1 AND sequence IS NULL";
    let sql = format!(
        "SELECT id, sequence, previous_hash, hash, {} AS fields FROM audit_logs
         WHERE organisation_id = $1 AND sequence IS NOT NULL ORDER BY sequence, id",
        chain::FIELDS
    );
    let mut walk = ChainWalk::new(anchor);
    let mut records = pin!(tx.query_raw(&sql, [&organisation]).await?);
    while let Some(row) = records.try_next().await? {
        walk.step(&chained(&row)?);
    }
    let end = known_end(tx, organisation).await?;
    let waiting = tx.query_one(WAITING, &[&organisation]).await?;
    Ok(ChainReport {
        organisation_id: organisation,
        records: walk.count(),
        waiting: waiting.try_get("waiting")?,
        waiting_since: waiting.try_get("since")?,
        end,
        findings: walk.end(end),
    })
}

fn chained(row: &Row) -> Result<ChainedRecord, tokio_postgres::Error> {
    Ok(ChainedRecord {
        id: row.try_get("id")?,
        sequence: row.try_get("sequence")?,
        previous_hash: row.try_get::<_, Option<_>>("previous_hash")?.unwrap_or_default(),
        hash: row.try_get::<_, Option<_>>("hash")?.unwrap_or_default(),
        fields: row.try_get("fields")?,
    })
}

/// Where the chain of an organisation ends, as it was noted with its last record.
async fn known_end(tx: &Transaction<'_>, organisation: Uuid) -> anyhow::Result<Option<ChainEnd>> {
    const END: &str = "SELECT sequence, hash FROM audit_chains WHERE organisation_id = $1";
    let Some(row) = tx.query_opt(END, &[&organisation]).await? else { return Ok(None) };
    let hash = row.try_get::<_, &[u8]>("hash")?.try_into().context("a hash has 32 bytes")?;
    Ok(Some(ChainEnd { sequence: row.try_get("sequence")?, hash }))
}
