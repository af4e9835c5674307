//! Purges of kept answers, as rows that every proxy follows. Purging too much only costs calls, purging too little shows
//! what should be gone: so where rows become many, one that purges everything takes their place.

use crate::http::Time;
use shared::model::PurgeTarget;
use tokio_postgres::{GenericClient, Transaction};
use uuid::Uuid;

/// Of one workspace, or of an organisation as a whole. Every proxy holds them all.
const MAX_PURGES: i64 = 2000;
/// Nothing is kept longer than 90 days, so a purge of before is about nothing any more.
const LIFETIME_DAYS: i32 = 91;

/// What was purged, which may be more than was asked for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Purged {
    pub target: PurgeTarget,
    pub at: Time,
}

/// Without a workspace it concerns all of the organisation.
pub async fn purge(
    tx: &Transaction<'_>,
    organisation: Uuid,
    workspace: Option<Uuid>,
    target: PurgeTarget,
) -> Result<Purged, tokio_postgres::Error> {
    const COUNT: &str = "SELECT count(*) FROM (SELECT FROM cache_purges
        WHERE organisation_id = $1 AND workspace_id IS NOT DISTINCT FROM $2 AND kind <> 'all' LIMIT $3) AS narrower";
    const ABSORB: &str = "DELETE FROM cache_purges
        WHERE organisation_id = $1 AND ($2::uuid IS NULL OR workspace_id = $2) AND kind <> 'all'";
    // A clock that was set back must not revive anything.
    const PURGE: &str = "INSERT INTO cache_purges (organisation_id, workspace_id, kind, tag) VALUES ($1, $2, $3, $4)
        ON CONFLICT (organisation_id, coalesce(workspace_id, organisation_id), kind, tag)
        DO UPDATE SET purged_at = greatest(cache_purges.purged_at, excluded.purged_at) RETURNING purged_at";
    let narrower: i64 = tx.query_one(COUNT, &[&organisation, &workspace, &MAX_PURGES]).await?.try_get(0)?;
    let target = if narrower < MAX_PURGES { target } else { PurgeTarget::All };
    if target == PurgeTarget::All {
        tx.execute(ABSORB, &[&organisation, &workspace]).await?;
    }
    let row = tx.query_one(PURGE, &[&organisation, &workspace, &target.kind(), &target.tag()]).await?;
    Ok(Purged { target, at: row.try_get("purged_at")? })
}

/// Deletes rows that are about nothing any more; at most `most` of them.
pub async fn forget(db: &impl GenericClient, most: i64) -> Result<u64, tokio_postgres::Error> {
    const FORGET: &str = "DELETE FROM cache_purges WHERE id IN (
        SELECT id FROM cache_purges WHERE purged_at < now() - make_interval(days => $1) LIMIT $2)";
    db.execute(FORGET, &[&LIFETIME_DAYS, &most]).await
}
