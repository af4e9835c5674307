//! What arrives after it was erased. A proxy may hold logs on disk while Postgres is away, and bodies longer than that, so
//! an erasure is remembered and done again: often at first, ever more seldom, and no more after `KEPT_DAYS`.

use super::bodies::{StoredBodies, delete_objects, erase_from_pack};
use super::{BATCH, Erased, ErasureMode, ErasureSubject, apply, rejected, rest_of_feedback, salt};
use crate::crud::cache_purges;
use crate::http::ApiError;
use chrono::{DateTime, TimeDelta, Utc};
use shared::db::request_logs::erasure;
use shared::db::usage_slots;
use shared::log_store::LogStore;
use shared::model::{PurgeTarget, purge_tag};
use tokio_postgres::{GenericClient, Row, Transaction};
use uuid::Uuid;

/// Longer than anybody keeps a journal that cannot be sent.
const LIFETIME_DAYS: i32 = 30;
const BODIES: i64 = 200;

pub async fn remember(
    db: &impl GenericClient,
    organisation: Uuid,
    subject: &ErasureSubject,
    mode: ErasureMode,
) -> Result<(), ApiError> {
    // Exports of several workspaces are emptied here where logs of theirs are found, and not by the trigger.
    const REMEMBER: &str = "WITH knows AS MATERIALIZED (
            SELECT set_config('gateway.knows_exports_of_several', 'on', true) AS it)
        INSERT INTO log_erasures (organisation_id, subject, name, mode, figures_due)
        SELECT $1::uuid, $2::text, $3::text, $4::text, $2::text = 'user' FROM knows WHERE it = 'on'
        ON CONFLICT (organisation_id, subject, name)
        DO UPDATE SET mode = excluded.mode, asked_at = now(), next_at = now(), figures_due = excluded.figures_due";
    let kind = match subject {
        ErasureSubject::User(_) => "user",
        ErasureSubject::Trace(_) => "trace",
    };
    let mode = match mode {
        ErasureMode::Delete => "delete",
        ErasureMode::Anonymise => "anonymise",
    };
    db.execute(REMEMBER, &[&organisation, &kind, &subject.name(), &mode]).await?;
    Ok(())
}

/// Takes a person out of the figures of days whose logs are gone; others are stale where there were logs of theirs, and are built
/// without them. While figures are being built it stays due, and the repetition does it.
pub async fn forget_in_figures(tx: &Transaction<'_>, organisation: Uuid, name: &str) -> Result<(), ApiError> {
    const DONE: &str = "UPDATE log_erasures SET figures_due = false
        WHERE organisation_id = $1 AND subject = 'user' AND name = $2";
    if usage_slots::forget_user(tx, organisation, name).await?.is_some() {
        tx.execute(DONE, &[&organisation, &name]).await?;
    }
    Ok(())
}

/// Objects whose rows are gone. Packs need no second look: nothing is stored in one once a row points into it.
pub async fn remember_bodies(tx: &impl GenericClient, paths: &Vec<String>) -> Result<(), ApiError> {
    const REMEMBER: &str = "INSERT INTO erased_bodies (path) SELECT unnest($1::text[]) ON CONFLICT DO NOTHING";
    tx.execute(REMEMBER, &[paths]).await?;
    Ok(())
}

/// Does the erasure again that is due first, a batch of it. None when none is.
pub async fn repeat(tx: &Transaction<'_>, store: &LogStore) -> Result<Option<Erased>, ApiError> {
    const DUE: &str = "SELECT id, organisation_id, subject, name, mode, asked_at, figures_due FROM log_erasures
        WHERE next_at <= now() ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED";
    const LATER: &str = "UPDATE log_erasures
        SET next_at = now() + greatest(interval '1 minute', (now() - asked_at) / 10) WHERE id = $1";
    let Some(due) = tx.query_opt(DUE, &[]).await? else { return Ok(None) };
    let (organisation, mode): (Uuid, ErasureMode) = (due.try_get("organisation_id")?, mode(&due)?);
    let asked_at: DateTime<Utc> = due.try_get("asked_at")?;
    let subject = subject(&due)?;
    // Calls that were under way may have left an answer to be kept; nobody calls for longer.
    if let ErasureSubject::User(name) = &subject
        && Utc::now() - asked_at < TimeDelta::hours(1)
    {
        cache_purges::purge(tx, organisation, None, PurgeTarget::User(purge_tag(name))).await?;
    }
    if let ErasureSubject::User(name) = &subject
        && due.try_get("figures_due")?
    {
        forget_in_figures(tx, organisation, name).await?;
    }
    let filter = subject.filter(organisation).and("created_at <= ?", asked_at);
    let found = erasure::find(tx, &filter, BATCH).await?;
    let stored = StoredBodies::for_logs(organisation, &found);
    stored.delete_objects(store).await?;
    for (pack, ranges) in &stored.packs {
        erase_from_pack(tx, store, pack, ranges).await?;
    }
    let mut erased = Erased::default();
    let salt = salt();
    if !found.ids.is_empty() {
        erased.add(apply(tx, organisation, &found, mode, &salt).await?);
    }
    if (found.ids.len() as i64) < BATCH {
        // Also what the request did not get to, and what was set aside since.
        rejected::erase(tx, organisation, &subject).await?;
        erased.feedback += rest_of_feedback(tx, &filter, mode, &salt).await?;
        tx.execute(LATER, &[&due.try_get::<_, Uuid>("id")?]).await?;
    }
    Ok(Some(erased))
}

/// Deletes once more the objects that are due for it. Answers whether there were any.
pub async fn repeat_bodies(tx: &Transaction<'_>, store: &LogStore) -> Result<bool, ApiError> {
    const DUE: &str = "SELECT path FROM erased_bodies WHERE next_at <= now() ORDER BY next_at LIMIT $1
        FOR UPDATE SKIP LOCKED";
    const LATER: &str = "UPDATE erased_bodies SET next_at = now() + greatest(interval '10 minutes', now() - erased_at)
        WHERE path = ANY($1)";
    let due = tx.query(DUE, &[&BODIES]).await?;
    let paths: Vec<String> = due.iter().map(|row| row.try_get("path")).collect::<Result<_, _>>()?;
    if paths.is_empty() {
        return Ok(false);
    }
    delete_objects(store, paths.clone()).await?;
    tx.execute(LATER, &[&paths]).await?;
    Ok(true)
}

/// Nothing from before can come any more.
pub async fn forget(tx: &Transaction<'_>) -> Result<(), ApiError> {
    const ERASURES: &str = "DELETE FROM log_erasures WHERE asked_at < now() - make_interval(days => $1)";
    const BODIES: &str = "DELETE FROM erased_bodies WHERE erased_at < now() - make_interval(days => $1)";
    for forget in [ERASURES, BODIES] {
        tx.execute(forget, &[&LIFETIME_DAYS]).await?;
    }
    Ok(())
}

fn subject(row: &Row) -> Result<ErasureSubject, tokio_postgres::Error> {
    let name = row.try_get("name")?;
    Ok(match row.try_get("subject")? {
        "user" => ErasureSubject::User(name),
        _ => ErasureSubject::Trace(name),
    })
}

fn mode(row: &Row) -> Result<ErasureMode, tokio_postgres::Error> {
    Ok(match row.try_get("mode")? {
        "anonymise" => ErasureMode::Anonymise,
        _ => ErasureMode::Delete,
    })
}
