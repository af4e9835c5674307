//! What Postgres knows of packs, so that one whose upload died half way is forgotten by nobody and held by nobody.
//!
//! Before a pack is stored its name is noted among the objects to delete, an hour ahead. The transaction that lets rows
//! point into it takes that note away; if the note is gone, or a row no longer waits for its body (it was erased), nothing
//! points into it and admin deletes it. So no object outlives its purpose, and no row names what is not there.

use super::packs::NamedPack;
use shared::db::request_logs::bodies::{self, MovedBodies};
use shared::{db, settings};
use std::collections::HashSet;
use std::time::Duration;
use tokio_postgres::Client;
use uuid::Uuid;

/// A statement that takes longer is given up, with its connection.
const MAX_STATEMENT_TIME: Duration = Duration::from_secs(60);

pub struct PackRows {
    database: settings::Database,
    client: Option<Client>,
}

impl PackRows {
    pub fn new(database: settings::Database) -> Self {
        Self { database, client: None }
    }

    /// Whose rows wait for bodies. Those that were erased, or moved by somebody who died afterwards, do not.
    pub async fn waiting(&mut self, moved: &MovedBodies) -> Result<HashSet<Uuid>, String> {
        self.run(async |client| Ok(bodies::waiting(&*client, moved).await?.into_iter().collect())).await
    }

    /// Notes packs that are about to be stored.
    pub async fn note(&mut self, packs: &[NamedPack]) -> Result<(), String> {
        const NOTE: &str = "INSERT INTO object_deletions (folder, noted_at)
            SELECT path, now() + interval '1 hour' FROM unnest($1::text[]) AS path";
        let paths = paths(packs);
        self.run(async |client| client.execute(NOTE, &[&paths]).await.map(drop)).await
    }

    /// Lets the rows point into packs that are stored. False when one of them no longer waits: then none does.
    pub async fn publish(&mut self, packs: &[NamedPack], moved: &MovedBodies) -> Result<bool, String> {
        const KEEP: &str = "DELETE FROM object_deletions WHERE folder = ANY($1)";
        if moved.ids.is_empty() {
            return Ok(true);
        }
        let paths = paths(packs);
        self.run(async |client| {
            let tx = client.transaction().await?;
            let marked = tx.execute(KEEP, &[&paths]).await?;
            let is_all =
                bodies::move_bodies(&tx, moved).await? == moved.ids.len() as u64 && marked == paths.len() as u64;
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
            None => match tokio::time::timeout(MAX_STATEMENT_TIME, db::connect_direct(&self.database)).await {
                Ok(made) => made.map_err(|error| error.to_string())?,
                Err(_) => return Err("Postgres does not answer".into()),
            },
        };
        match tokio::time::timeout(MAX_STATEMENT_TIME, work(&mut client)).await {
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
