//! Rejected tokens on their way into the audit trail. Requests only hand them over; a task writes them, equal ones of
//! a second as one row, and no more rows for an organisation than `Allowance` grants: anybody can send a bad token. What
//! is left out, for that reason or because Postgres is away, is counted.

use prometheus::IntCounter;
use shared::jwt::{Allowance, Rejection};
use shared::{conf, db};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Waiting to be written; beyond it failures are only counted.
const WAITING: usize = 1024;
const GATHER: Duration = Duration::from_secs(1);

/// One token that was refused.
#[derive(Debug)]
pub struct Failure {
    /// Without one there is no trail to write to.
    pub organisation_id: Option<Uuid>,
    pub rejection: Rejection,
    /// The token's two ends.
    pub mask: String,
    pub method: String,
    pub path: String,
    pub request_id: Option<Uuid>,
    pub client_ip: Option<IpAddr>,
}

/// The requests' end.
pub struct Trail {
    sender: mpsc::Sender<Failure>,
    unrecorded: IntCounter,
}

/// The task's end.
pub struct Writer {
    receiver: mpsc::Receiver<Failure>,
    unrecorded: IntCounter,
    allowance: Allowance,
}

pub fn trail(unrecorded: IntCounter) -> (Trail, Writer) {
    let (sender, receiver) = mpsc::channel(WAITING);
    let writer = Writer { receiver, unrecorded: unrecorded.clone(), allowance: Allowance::default() };
    (Trail { sender, unrecorded }, writer)
}

impl Trail {
    pub fn note(&self, failure: Failure) {
        if failure.organisation_id.is_none() || self.sender.try_send(failure).is_err() {
            self.unrecorded.inc();
        }
    }
}

impl Writer {
    /// Writes until told to stop, and then what is still waiting.
    pub async fn run(&mut self, database: &conf::Database, mut stop: watch::Receiver<bool>) {
        loop {
            let (first, is_last) = tokio::select! {
                failure = self.receiver.recv() => (failure, false),
                _ = stop.changed() => (self.receiver.try_recv().ok(), true),
            };
            let Some(first) = first else { return };
            let mut batch = Batch::default();
            batch.add(first);
            if !is_last {
                tokio::time::sleep(GATHER).await;
            }
            while let Ok(more) = self.receiver.try_recv() {
                batch.add(more);
            }
            self.write(batch, database).await;
        }
    }

    async fn write(&mut self, batch: Batch, database: &conf::Database) {
        let now = Instant::now();
        let (rows, left_out): (Vec<_>, Vec<_>) =
            batch.0.into_values().partition(|row| self.allowance.take(row.organisation_id, now));
        self.unrecorded.inc_by(left_out.iter().map(|row| row.times).sum());
        let client = if rows.is_empty() { None } else { db::connect(database).await.ok() };
        for row in rows {
            let written = match &client {
                Some(client) => row.insert(client).await.is_ok(),
                None => false,
            };
            if !written {
                self.unrecorded.inc_by(row.times);
                tracing::warn!(reason = %row.failure.rejection, "a rejected token could not be written to the audit trail");
            }
        }
    }
}

/// Equal failures from one address are one row.
#[derive(Default)]
struct Batch(HashMap<(Uuid, Rejection, Option<IpAddr>), Row>);

struct Row {
    organisation_id: Uuid,
    failure: Failure,
    times: u64,
}

impl Batch {
    fn add(&mut self, failure: Failure) {
        let Some(organisation_id) = failure.organisation_id else { return };
        let alike = (organisation_id, failure.rejection.clone(), failure.client_ip);
        self.0.entry(alike).or_insert(Row { organisation_id, failure, times: 0 }).times += 1;
    }
}

impl Row {
    async fn insert(&self, client: &Client) -> Result<(), tokio_postgres::Error> {
        const INSERT: &str = "INSERT INTO audit_logs (organisation_id, user_type, method, uri, request_id, client_ip,
                resource_type, action, resource_id, response_status_code, error)
            VALUES ($1, 'user', $2, $3, $4, $5, 'jwt', 'authenticate', $6, $7, $8)";
        let failure = &self.failure;
        let status = i32::from(failure.rejection.status());
        let error = self.error();
        let values: [&(dyn ToSql + Sync); 8] = [
            &self.organisation_id,
            &failure.method,
            &failure.path,
            &failure.request_id,
            &failure.client_ip,
            &failure.mask,
            &status,
            &error,
        ];
        client.execute(INSERT, &values).await.map(|_| ())
    }

    fn error(&self) -> String {
        let rejection = &self.failure.rejection;
        let error = format!("{} {rejection}", rejection.code());
        if self.times > 1 { format!("{error} ({} times)", self.times) } else { error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(organisation: Option<Uuid>, rejection: Rejection, client: &str) -> Failure {
        Failure {
            organisation_id: organisation,
            rejection,
            mask: "ey*****Qw".into(),
            method: "POST".into(),
            path: "/v1/chat/completions".into(),
            request_id: None,
            client_ip: client.parse().ok(),
        }
    }

    #[test]
    fn equal_failures_are_one_row_that_says_how_many() {
        let (home, other) = (Some(Uuid::new_v4()), Some(Uuid::new_v4()));
        let mut batch = Batch::default();
        for _ in 0..3 {
            batch.add(failure(home, Rejection::Signature, "192.0.2.1"));
        }
        batch.add(failure(home, Rejection::Signature, "192.0.2.2"));
        batch.add(failure(home, Rejection::Malformed, "192.0.2.1"));
        batch.add(failure(other, Rejection::Signature, "192.0.2.1"));
        let mut errors: Vec<_> = batch.0.values().map(Row::error).collect();
        errors.sort();
        let signature = "AB05 JWT rejected: signature does not match";
        assert_eq!(
            errors,
            ["AB05 JWT rejected: malformed token", signature, signature, &format!("{signature} (3 times)")]
        );
    }

    #[test]
    fn what_has_no_trail_or_finds_no_room_is_counted() {
        let counter = IntCounter::new("c", "c").unwrap();
        let (trail, _writer) = trail(counter.clone());
        trail.note(failure(None, Rejection::Malformed, "192.0.2.1"));
        assert_eq!(counter.get(), 1);
        for _ in 0..WAITING + 5 {
            trail.note(failure(Some(Uuid::nil()), Rejection::Malformed, "192.0.2.1"));
        }
        assert_eq!(counter.get(), 6);
    }
}
