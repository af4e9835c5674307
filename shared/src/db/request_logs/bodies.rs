//! Where the bodies of calls lie, as their rows say it (`body_key`).

use chrono::{DateTime, Utc};
use tokio_postgres::{Error, GenericClient};
use uuid::Uuid;

/// Rows whose bodies are moved: where they are, and where they shall be.
#[derive(Debug, Default)]
pub struct MovedBodies {
    pub times: Vec<DateTime<Utc>>,
    pub ids: Vec<Uuid>,
    pub old: Vec<String>,
    pub new: Vec<String>,
}

/// The rows of these that are there and still say the old place.
pub async fn waiting(client: &impl GenericClient, moved: &MovedBodies) -> Result<Vec<Uuid>, Error> {
    const WAITING: &str = "SELECT r.id FROM request_logs r
        JOIN unnest($1::timestamptz[], $2::uuid[], $3::text[]) AS k(made, id, was)
            ON r.created_at = k.made AND r.id = k.id AND r.body_key = k.was
        WHERE r.created_at BETWEEN $4 AND $5";
    let Some((first, last)) = moved.span() else { return Ok(Vec::new()) };
    let rows = client.query(WAITING, &[&moved.times, &moved.ids, &moved.old, &first, &last]).await?;
    rows.iter().map(|row| row.try_get(0)).collect()
}

/// Lets them say the new place. Answers how many did say the old one. Figures stay what they are, which the transaction says
/// of all its updates of logs: nothing else of them may be changed in it.
pub async fn move_bodies(client: &impl GenericClient, moved: &MovedBodies) -> Result<u64, Error> {
    const MOVE: &str = "WITH moves AS MATERIALIZED (SELECT set_config('gateway.moves_bodies', 'on', true) AS it)
        UPDATE request_logs r SET body_key = k.becomes
        FROM moves, unnest($1::timestamptz[], $2::uuid[], $3::text[], $4::text[]) AS k(made, id, was, becomes)
        WHERE moves.it = 'on' AND r.created_at = k.made AND r.id = k.id AND r.body_key = k.was AND r.created_at BETWEEN $5 AND $6";
    let Some((first, last)) = moved.span() else { return Ok(0) };
    client.execute(MOVE, &[&moved.times, &moved.ids, &moved.old, &moved.new, &first, &last]).await
}

impl MovedBodies {
    /// The time that they are of, by which Postgres finds them without looking at others. None of nothing.
    fn span(&self) -> Option<(DateTime<Utc>, DateTime<Utc>)> {
        Some((*self.times.iter().min()?, *self.times.iter().max()?))
    }
}
