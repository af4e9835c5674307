//! The schema and its history. Admin applies what is missing, one process at a time; the proxy only looks.
//!
//! Schemas grow by additions that old code survives, so a newer schema is fine as long as our own migrations are its
//! beginning. Only a history that differs from ours is refused: then nobody knows what the tables mean.

use refinery::Target;
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, GenericClient};

mod embedded {
    refinery::embed_migrations!("../migrations");
}

/// Any number, as long as it is always this one: the lock that migrators take.
const LOCK: i64 = 0x706f_7274_6375_6c01;
/// How long a statement of a migration waits for a lock. Every later statement on that table queues behind it meanwhile.
const LOCK_TIMEOUT: &str = "SET lock_timeout = '700ms'";
/// Between two attempts the queue drains and calls go on.
const PAUSE: Duration = Duration::from_secs(1);
/// About ten minutes: longer than any export, search or backup step holds a table.
const MAX_ATTEMPTS: u32 = 350;

#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    #[error("this is not a schema we know: {0}")]
    Unknown(String),
    #[error("a migration failed: {}", chain(.0))]
    Migration(#[from] refinery::Error),
    #[error("the schema could not be read: {}", crate::db::explain(.0))]
    Database(#[from] tokio_postgres::Error),
}

/// Where the database's schema stands, seen from this program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// Some of our migrations are missing. `version` is the last one applied, 0 for an empty database.
    Older { version: i32 },
    /// Exactly ours.
    Known,
    /// Ours, and later ones by a newer program.
    Newer { version: i32 },
}

impl SchemaState {
    /// Whether this program may run on it.
    pub fn is_usable(self) -> bool {
        !matches!(self, Self::Older { .. })
    }
}

/// What `run` did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// Names of the migrations applied now, in order; empty when the schema was up to date.
    pub migrations: Vec<String>,
}

/// The last migration this program knows.
pub fn known_version() -> i32 {
    known().last().map_or(0, |step| step.version)
}

/// Tells one set of migrations from another, contents included.
pub fn fingerprint() -> String {
    let mut hasher = Sha256::new();
    for step in known() {
        hasher.update(format!("V{} {} {}\n", step.version, step.name, step.checksum));
    }
    hex::encode(&hasher.finalize()[..8])
}

/// Applies what is missing. Several processes may call this at once: one works, the others wait and find it done.
/// The client needs a session of its own (`db::connect_direct`), because the lock belongs to the session.
pub async fn run(client: &mut Client) -> Result<Applied, MigrateError> {
    let free: bool = client.query_one("SELECT pg_try_advisory_lock($1)", &[&LOCK]).await?.try_get(0)?;
    if !free {
        tracing::info!("waiting for another process that is migrating");
        client.execute("SELECT pg_advisory_lock($1)", &[&LOCK]).await?;
    }
    let outcome = apply(client, Target::Latest).await;
    // When this fails the session is gone, and the lock with it; the outcome tells more.
    let _ = client.execute("SELECT pg_advisory_unlock($1)", &[&LOCK]).await;
    outcome
}

/// Applies the migrations up to this version, as an older program would have left the schema.
pub async fn run_to(client: &mut Client, version: i32) -> Result<Applied, MigrateError> {
    apply(client, Target::Version(version)).await
}

/// Each migration is a transaction of its own. One that does not get a lock in time is rolled back and tried again, so that
/// calls never queue behind a migration that itself queues behind a long query.
async fn apply(client: &mut Client, target: Target) -> Result<Applied, MigrateError> {
    let mut migrations = Vec::new();
    if check(client).await?.is_usable() {
        return Ok(Applied { migrations });
    }
    client.batch_execute(LOCK_TIMEOUT).await?;
    for attempt in 1.. {
        let outcome = embedded::migrations::runner().set_target(target).run_async(client).await;
        let report = outcome.as_ref().map_or_else(|error| error.report(), Some);
        migrations.extend(report.iter().flat_map(|report| report.applied_migrations()).map(ToString::to_string));
        match outcome {
            Err(error) if is_contention(&error) && attempt < MAX_ATTEMPTS => {
                tracing::info!(attempt, error = chain(&error), "a migration did not get its lock, it is tried again");
                tokio::time::sleep(PAUSE).await;
            }
            outcome => {
                client.batch_execute("RESET lock_timeout").await?;
                outcome?;
                break;
            }
        }
    }
    Ok(Applied { migrations })
}

/// Whether Postgres gave up because others use the table.
fn is_contention(error: &refinery::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<tokio_postgres::Error>() {
            return [Some(&SqlState::LOCK_NOT_AVAILABLE), Some(&SqlState::T_R_DEADLOCK_DETECTED)]
                .contains(&error.code());
        }
        cause = error.source();
    }
    false
}

/// Compares the database's history with ours. An error of kind `Unknown` means: do not run on this.
pub async fn check(client: &impl GenericClient) -> Result<SchemaState, MigrateError> {
    let exists = "SELECT to_regclass('refinery_schema_history') IS NOT NULL";
    if !client.query_one(exists, &[]).await?.try_get::<_, bool>(0)? {
        return compare(&[], &known());
    }
    let history = "SELECT version, name, checksum FROM refinery_schema_history ORDER BY version";
    let mut applied = Vec::new();
    for row in client.query(history, &[]).await? {
        applied.push(MigrationStep { version: row.try_get(0)?, name: row.try_get(1)?, checksum: row.try_get(2)? });
    }
    compare(&applied, &known())
}

/// Waits while the schema is older than this program needs. Returns what it then is.
pub async fn wait_until_current(client: &impl GenericClient, between: Duration) -> Result<SchemaState, MigrateError> {
    loop {
        match check(client).await? {
            SchemaState::Older { version } => {
                tracing::info!(version, needed = known_version(), "waiting for admin to migrate the schema");
                tokio::time::sleep(between).await;
            }
            usable => return Ok(usable),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct MigrationStep {
    version: i32,
    name: String,
    checksum: String,
}

fn known() -> Vec<MigrationStep> {
    let runner = embedded::migrations::runner();
    let steps = runner.get_migrations().iter().map(|migration| MigrationStep {
        version: migration.version(),
        name: migration.name().to_owned(),
        checksum: migration.checksum().to_string(),
    });
    let mut steps: Vec<MigrationStep> = steps.collect();
    steps.sort_by_key(|step| step.version);
    steps
}

fn compare(applied: &[MigrationStep], known: &[MigrationStep]) -> Result<SchemaState, MigrateError> {
    for (theirs, ours) in applied.iter().zip(known) {
        if theirs == ours {
            continue;
        }
        let difference = if (theirs.version, &theirs.name) == (ours.version, &ours.name) {
            format!("migration V{} {} was applied with another content", ours.version, ours.name)
        } else {
            format!("it has V{} {} where we have V{} {}", theirs.version, theirs.name, ours.version, ours.name)
        };
        return Err(MigrateError::Unknown(difference));
    }
    let version = applied.last().map_or(0, |step| step.version);
    Ok(match applied.len().cmp(&known.len()) {
        std::cmp::Ordering::Less => SchemaState::Older { version },
        std::cmp::Ordering::Equal => SchemaState::Known,
        std::cmp::Ordering::Greater => SchemaState::Newer { version },
    })
}

/// refinery's text leaves out why Postgres refused.
fn chain(error: &refinery::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(version: i32, name: &str, checksum: &str) -> MigrationStep {
        MigrationStep { version, name: name.into(), checksum: checksum.into() }
    }

    #[test]
    fn a_schema_is_usable_when_our_migrations_are_its_beginning() {
        let (one, two, three) = (step(1, "a", "x"), step(2, "b", "y"), step(3, "c", "z"));
        let known = [one.clone(), two.clone()];
        for (applied, expected) in [
            (vec![], Some(SchemaState::Older { version: 0 })),
            (vec![one.clone()], Some(SchemaState::Older { version: 1 })),
            (vec![one.clone(), two.clone()], Some(SchemaState::Known)),
            (vec![one.clone(), two.clone(), three.clone()], Some(SchemaState::Newer { version: 3 })),
            (vec![one.clone(), step(2, "b", "edited")], None),
            (vec![one.clone(), step(2, "renamed", "y")], None),
            (vec![one.clone(), three.clone()], None),
            (vec![two.clone()], None),
        ] {
            assert_eq!(compare(&applied, &known).ok(), expected, "{applied:?}");
        }
    }

    #[test]
    fn migrations_begin_at_one_and_each_has_a_number_of_its_own() {
        let versions: Vec<i32> = known().iter().map(|step| step.version).collect();
        assert!(versions.is_sorted_by(|one, next| one < next), "{versions:?}");
        assert!(versions.first() == Some(&1) && known_version() >= 2);
    }
}
