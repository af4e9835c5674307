//! Who watches, as all admins know it: a row with a lease for each. It bounds how many watch at once, and has arrivals noted.

use super::position::Position;
use crate::http::ApiError;
use crate::log_data::arrivals::{self, Moment};
use tokio_postgres::{Client, GenericClient};
use uuid::Uuid;

/// At once, of one person or key.
pub const MAX_OF_WATCHER: i64 = 5;
/// At once, of one organisation.
pub const MAX_OF_ORGANISATION: i64 = 50;

// How long a place is kept that nobody renews, and how long arrivals are noted for who comes back.
const PLACE: &str = "interval '45 seconds'";
const NOTED: &str = "interval '90 seconds'";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watcher {
    pub id: Uuid,
    pub organisation: Uuid,
    /// The person, else the key.
    pub watcher: Uuid,
}

/// A watch that was begun.
pub struct Begun {
    pub position: Position,
    pub moment: Moment,
    /// From when on every arrival is noted, in whole seconds since 1970.
    pub noted_since: i64,
}

/// Takes a place; none where all are taken.
pub async fn open(db: &mut Client, one: Watcher) -> Result<Option<Begun>, ApiError> {
    // One at a time for each organisation, or two would take the last place.
    const LOCK: &str = "SELECT pg_advisory_xact_lock(hashtextextended('log_watchers ' || $1::uuid::text, 0))";
    const TAKEN: &str = "SELECT count(*) FILTER (WHERE watcher_id = $2), count(*) FROM log_watchers
        WHERE organisation_id = $1 AND expires_at > now()";
    let tx = db.transaction().await?;
    tx.execute(LOCK, &[&one.organisation]).await?;
    let taken = tx.query_one(TAKEN, &[&one.organisation, &one.watcher]).await?;
    let (own, all): (i64, i64) = (taken.try_get(0)?, taken.try_get(1)?);
    if own >= MAX_OF_WATCHER || all >= MAX_OF_ORGANISATION {
        return Ok(None);
    }
    let add = format!(
        "INSERT INTO log_watchers (id, organisation_id, watcher_id, expires_at, noted_until, noted_since)
         SELECT $1, $2, $3, now() + {PLACE}, now() + {NOTED},
             coalesce((SELECT min(noted_since) FROM log_watchers WHERE organisation_id = $2 AND noted_until > now()), now())
         RETURNING floor(extract(epoch FROM noted_since))::bigint AS noted_since"
    );
    let added = tx.query_one(&add, &[&one.id, &one.organisation, &one.watcher]).await?;
    let noted_since: i64 = added.try_get("noted_since")?;
    let moment = arrivals::moment(&tx).await?;
    let visible = arrivals::since(&tx, one.organisation, moment.settled).await?;
    tx.commit().await?;
    Ok(Some(Begun { position: Position::behind(&visible, moment, moment.settled), moment, noted_since }))
}

/// Keeps places. Answers those whose arrivals were not noted all of the time: their rows are gone, or ran out.
pub async fn renew(db: &impl GenericClient, watchers: &[Watcher]) -> Result<Vec<Uuid>, ApiError> {
    const NOTED_NOW: &str = "SELECT id FROM log_watchers WHERE id = ANY($1) AND noted_until > now()";
    let ids: Vec<Uuid> = watchers.iter().map(|one| one.id).collect();
    let organisations: Vec<Uuid> = watchers.iter().map(|one| one.organisation).collect();
    let people: Vec<Uuid> = watchers.iter().map(|one| one.watcher).collect();
    let mut noted: Vec<Uuid> = Vec::with_capacity(ids.len());
    for row in db.query(NOTED_NOW, &[&ids]).await? {
        noted.push(row.try_get(0)?);
    }
    let renew = format!(
        "INSERT INTO log_watchers AS w (id, organisation_id, watcher_id, expires_at, noted_until, noted_since)
         SELECT id, organisation, watcher, now() + {PLACE}, now() + {NOTED}, now()
         FROM unnest($1::uuid[], $2::uuid[], $3::uuid[]) AS one (id, organisation, watcher) ORDER BY id
         ON CONFLICT (id) DO UPDATE SET expires_at = excluded.expires_at, noted_until = excluded.noted_until,
             noted_since = CASE WHEN w.noted_until > now() THEN w.noted_since ELSE now() END"
    );
    db.execute(&renew, &[&ids, &organisations, &people]).await?;
    Ok(ids.into_iter().filter(|id| !noted.contains(id)).collect())
}

/// Gives places back; arrivals are noted for a while, for who comes back.
pub async fn release(db: &impl GenericClient, ids: &[Uuid]) -> Result<(), ApiError> {
    let release = format!(
        "UPDATE log_watchers SET expires_at = now(), noted_until = now() + {NOTED}
         WHERE id = ANY($1)"
    );
    db.execute(&release, &[&ids]).await?;
    Ok(())
}

/// Forgets those whose lease is over; whether any are left.
pub async fn forget(db: &impl GenericClient) -> Result<bool, ApiError> {
    const FORGET: &str = "DELETE FROM log_watchers WHERE noted_until < now()";
    const ARE_LEFT: &str = "SELECT EXISTS (SELECT FROM log_watchers)";
    db.execute(FORGET, &[]).await?;
    Ok(db.query_one(ARE_LEFT, &[]).await?.try_get(0)?)
}
