//! Chains new audit records, organisation by organisation, within seconds of their writing. The actions that write
//! them do not wait for each other; only this job knows an order, and it is the order in which it found them.

use super::{Job, JobRun};
use crate::audit::chain::{self, ChainEnd};
use anyhow::Context as _;
use futures::FutureExt as _;
use std::time::Duration;
use tokio_postgres::Transaction;
use uuid::Uuid;

pub const JOB: Job = Job { name: "chain_audit", every: Duration::from_secs(2), work: |_, tx| work(tx).boxed() };

/// Records carry bodies of up to 64 KiB and the object before and after, and all of a run are in memory.
const AT_ONCE: usize = 250;

async fn work(tx: &Transaction<'_>) -> anyhow::Result<JobRun> {
    let sql = format!(
        "SELECT id, organisation_id, {} AS fields FROM audit_logs WHERE sequence IS NULL
         ORDER BY organisation_id, created_at, id LIMIT $1",
        chain::FIELDS
    );
    let rows = tx.query(&sql, &[&(AT_ONCE as i64)]).await?;
    let mut links = ChainColumns::default();
    let mut place: Option<(Uuid, ChainEnd)> = None;
    for row in &rows {
        let organisation: Uuid = row.try_get("organisation_id")?;
        let before = match place {
            Some((same, end)) if same == organisation => end,
            _ => {
                finish(tx, place).await?;
                end_of(tx, organisation).await?
            }
        };
        let end = before.with(&row.try_get::<_, Vec<Option<String>>>("fields")?);
        links.add(row.try_get("id")?, before, end);
        place = Some((organisation, end));
    }
    finish(tx, place).await?;
    links.write(tx).await?;
    Ok(JobRun { items: rows.len() as u64, is_all: rows.len() < AT_ONCE })
}

/// The columns to set, each as one array.
#[derive(Default)]
struct ChainColumns {
    ids: Vec<Uuid>,
    sequences: Vec<i64>,
    previous: Vec<Vec<u8>>,
    hashes: Vec<Vec<u8>>,
}

impl ChainColumns {
    fn add(&mut self, id: Uuid, before: ChainEnd, end: ChainEnd) {
        self.ids.push(id);
        self.sequences.push(end.sequence);
        self.previous.push(before.hash.to_vec());
        self.hashes.push(end.hash.to_vec());
    }

    async fn write(&self, tx: &Transaction<'_>) -> anyhow::Result<()> {
        const LINK: &str =
            "UPDATE audit_logs a SET sequence = l.sequence, previous_hash = l.previous_hash, hash = l.hash
            FROM unnest($1::uuid[], $2::bigint[], $3::bytea[], $4::bytea[]) AS l (id, sequence, previous_hash, hash)
            WHERE a.id = l.id";
        if !self.ids.is_empty() {
            tx.execute(LINK, &[&self.ids, &self.sequences, &self.previous, &self.hashes]).await?;
        }
        Ok(())
    }
}

/// Where the chain of an organisation ends now. The row is held, so that even without the job's lock no second chain
/// could grow from it.
async fn end_of(tx: &Transaction<'_>, organisation: Uuid) -> anyhow::Result<ChainEnd> {
    const END: &str = "SELECT sequence, hash FROM audit_chains WHERE organisation_id = $1 FOR UPDATE";
    let Some(row) = tx.query_opt(END, &[&organisation]).await? else { return Ok(ChainEnd::BEGINNING) };
    let hash = row.try_get::<_, &[u8]>("hash")?.try_into().context("a hash has 32 bytes")?;
    Ok(ChainEnd { sequence: row.try_get("sequence")?, hash })
}

async fn finish(tx: &Transaction<'_>, place: Option<(Uuid, ChainEnd)>) -> anyhow::Result<()> {
    const SET: &str = "INSERT INTO audit_chains (organisation_id, sequence, hash) VALUES ($1, $2, $3)
        ON CONFLICT (organisation_id) DO UPDATE SET sequence = EXCLUDED.sequence, hash = EXCLUDED.hash,
                                                    last_updated_at = now()";
    let Some((organisation, end)) = place else { return Ok(()) };
    tx.execute(SET, &[&organisation, &end.sequence, &end.hash.as_slice()]).await?;
    // Logs usually leave the machine, and so bear witness to what the chain was.
    tracing::info!(organisation_id = %organisation, anchor = %end, "the audit trail was chained");
    Ok(())
}
