//! What Postgres knows of packs, so that one whose upload died half way is forgotten by nobody and held by nobody.
//!
//! Before a pack is stored its name is noted among the objects to delete, an hour ahead. The transaction that lets rows
//! point into it takes that note away; if the note is gone, or a row no longer waits for its body (it was erased), nothing
//! points into it and admin deletes it. So no object outlives its purpose, and no row names what is not there.

use super::packs::{MovedKeys, NamedPack};
use shared::{db, settings};
use std::collections::HashSet;
use std::time::Duration;
use tokio_postgres::Client;
use uuid::Uuid;

/// A statement that takes longer is given up, with its connection.
const LONGEST: Duration = Duration::from_secs(60);

pub struct PackRows {
    database: settings::Database,
    client: Option<Client>,
}

impl PackRows {
    pub fn new(database: settings::Database) -> Self {
        Self { database, client: None }
    }

    /// Whose rows wait for bodies. Those that were erased, or moved by somebody who died afterwards, do not.
    pub async fn waiting(&mut self, keys: &MovedKeys) -> Result<HashSet<Uuid>, String> {
        const WAITING: &str = "SELECT r.id FROM request_logs r
            JOIN unnest($1::timestamptz[], $2::uuid[], $3::text[]) AS k(made, id, was)
                ON r.created_at = k.made AND r.id = k.id AND r.body_key = k.was
            WHERE r.created_at BETWEEN $4 AND $5";
        let Some((first, last)) = span(keys) else { return Ok(HashSet::new()) };
        self.run(async |client| {
            let rows = client.query(WAITING, &[&keys.times, &keys.ids, &keys.old, &first, &last]).await?;
            rows.iter().map(|row| row.try_get(0)).collect()
        })
        .await
    }

    /// Notes packs that are about to be stored.
    pub async fn note(&mut self, packs: &[NamedPack]) -> Result<(), String> {
        const NOTE: &str = "INSERT INTO object_deletions (folder, noted_at)
            SELECT path, now() + interval '1 hour' FROM unnest($1::text[]) AS path";
        let paths = paths(packs);
        self.run(async |client| client.execute(NOTE, &[&paths]).await.map(drop)).await
    }

    /// Lets the rows point into packs that are stored. False when one of them no longer waits: then none does.
    pub async fn publish(&mut self, packs: &[NamedPack], keys: &MovedKeys) -> Result<bool, String> {
        const KEEP: &str = "DELETE FROM object_deletions WHERE folder = ANY($1)";
        const MOVE: &str = "UPDATE request_logs r SET body_key = k.becomes
            FROM unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::text[]) AS k(made, id, was, becomes)
            WHERE r.created_at = k.made AND r.id = k.id AND r.body_key = k.was AND r.created_at BETWEEN $5 AND $6";
        let Some((first, last)) = span(keys) else { return Ok(true) };
        let paths = paths(packs);
        self.run(async |client| {
            let tx = client.transaction().await?;
            let kept = tx.execute(KEEP, &[&paths]).await?;
            let moved = tx.execute(MOVE, &[&keys.times, &keys.ids, &keys.old, &keys.new, &first, &last]).await?;
            let is_all = kept == paths.len() as u64 && moved == keys.ids.len() as u64;
            match is_all {
                true => tx.commit().await?,
                false => tx.rollback().await?,
            }
            Ok(is_all)
        })
        .await
    }

    /// Nobody will point into these: they may be deleted at once.
    pub async fn abandon(&mut self, packs: &[NamedPack]) -> Result<(), String> {
        const ABANDON: &str = "INSERT INTO object_deletions (folder) SELECT unnest($1::text[])
            ON CONFLICT (folder) DO UPDATE SET noted_at = now()";
        let paths = paths(packs);
        self.run(async |client| client.execute(ABANDON, &[&paths]).await.map(drop)).await
    }

    /// A connection whose state nobody knows is not used again.
    async fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Client) -> Result<T, tokio_postgres::Error>,
    ) -> Result<T, String> {
        let mut client = match self.client.take().filter(|client| !client.is_closed()) {
            Some(client) => client,
            None => match tokio::time::timeout(LONGEST, db::connect_direct(&self.database)).await {
                Ok(made) => made.map_err(|error| error.to_string())?,
                Err(_) => return Err("Postgres does not answer".into()),
            },
        };
        match tokio::time::timeout(LONGEST, work(&mut client)).await {
            Ok(Ok(done)) => {
                self.client = Some(client);
                Ok(done)
            }
            Ok(Err(error)) => Err(db::explain(&error)),
            Err(_) => Err("Postgres does not answer".into()),
        }
    }
}

fn paths(packs: &[NamedPack]) -> Vec<&str> {
    packs.iter().map(|pack| pack.path.as_str()).collect()
}

/// The time that they are of, by which Postgres finds them without looking at others. None of nothing.
fn span(keys: &MovedKeys) -> Option<(chrono::DateTime<chrono::Utc>, chrono::DateTime<chrono::Utc>)> {
    Some((*keys.times.iter().min()?, *keys.times.iter().max()?))
}
