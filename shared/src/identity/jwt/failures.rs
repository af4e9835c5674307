//! Rejected tokens on their way into the audit trail. Anybody can send a bad token, so an organisation's trail takes a
//! bounded number of rows for them (`Allowance`). What gets no row of its own is added up, and one row says how many
//! there were and why: nothing is left out.

use super::allowance::Allowance;
use super::rejection::Rejection;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Instant;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// Different failures of one organisation that wait for rows of their own; beyond it they are added up at once.
const MAX_WAITING: usize = 64;

/// One token that was refused, and what its row shows.
#[derive(Debug, Clone)]
pub struct Failure {
    pub organisation_id: Uuid,
    pub rejection: Rejection,
    /// The token's two ends.
    pub mask: String,
    pub method: String,
    pub path: String,
    pub request_id: Option<Uuid>,
    pub client_ip: Option<IpAddr>,
}

/// A row of the trail.
#[derive(Debug)]
pub struct FailureRow {
    /// The first of those that the row stands for.
    pub failure: Failure,
    /// How many there were of each kind.
    counts: BTreeMap<&'static str, u64>,
    is_sum: bool,
}

impl FailureRow {
    fn new(failure: Failure, is_sum: bool) -> Self {
        let counts = BTreeMap::from([(failure.rejection.kind(), 1)]);
        Self { failure, counts, is_sum }
    }

    pub fn times(&self) -> u64 {
        self.counts.values().sum()
    }

    pub fn error(&self) -> String {
        let rejection = &self.failure.rejection;
        let times = self.times();
        if self.is_sum {
            let kinds: Vec<String> = self.counts.iter().map(|(kind, times)| format!("{kind} {times}")).collect();
            return format!("{} JWT rejected: {times} further tokens ({})", rejection.code(), kinds.join(", "));
        }
        let error = format!("{} {rejection}", rejection.code()).replace('\0', "\u{fffd}");
        if times > 1 { format!("{error} ({times} times)") } else { error }
    }

    pub async fn insert(&self, db: &impl GenericClient) -> Result<(), tokio_postgres::Error> {
        const INSERT: &str = "INSERT INTO audit_logs (organisation_id, user_type, method, uri, request_id, client_ip,
                resource_type, action, resource_id, response_status_code, error)
            VALUES ($1, 'user', $2, $3, $4, $5, 'jwt', 'authenticate', $6, $7, $8)";
        let failure = &self.failure;
        let status = i32::from(failure.rejection.status());
        let error = self.error();
        let values: [&(dyn ToSql + Sync); 8] = [
            &failure.organisation_id,
            &failure.method,
            &failure.path,
            &failure.request_id,
            &failure.client_ip,
            &failure.mask,
            &status,
            &error,
        ];
        db.execute(INSERT, &values).await.map(|_| ())
    }

    fn take_over(&mut self, other: FailureRow) {
        for (kind, times) in other.counts {
            *self.counts.entry(kind).or_default() += times;
        }
    }
}

/// What has not been written yet.
#[derive(Default)]
pub struct Failures {
    organisations: HashMap<Uuid, Waiting>,
    allowance: Allowance,
}

#[derive(Default)]
struct Waiting {
    /// Equal failures from one address are one row.
    rows: HashMap<(Rejection, Option<IpAddr>), FailureRow>,
    sum: Option<FailureRow>,
}

impl Failures {
    pub fn is_empty(&self) -> bool {
        self.organisations.is_empty()
    }

    pub fn add(&mut self, failure: Failure) {
        let waiting = self.organisations.entry(failure.organisation_id).or_default();
        let alike = (failure.rejection.clone(), failure.client_ip);
        if let Some(row) = waiting.rows.get_mut(&alike) {
            row.take_over(FailureRow::new(failure, false));
        } else if waiting.rows.len() < MAX_WAITING {
            waiting.rows.insert(alike, FailureRow::new(failure, false));
        } else {
            waiting.add_up(FailureRow::new(failure, true));
        }
    }

    /// Whether one more row of this organisation may be written now.
    pub fn may_write(&mut self, organisation: Uuid, now: Instant) -> bool {
        self.allowance.take(organisation, now)
    }

    /// The rows that may be written now; all there are when this is the last time.
    pub fn take(&mut self, now: Instant, is_last: bool) -> Vec<FailureRow> {
        let mut due = Vec::new();
        let allowance = &mut self.allowance;
        self.organisations.retain(|organisation, waiting| {
            for (_, row) in waiting.rows.drain().collect::<Vec<_>>() {
                match is_last || allowance.take(*organisation, now) {
                    true => due.push(row),
                    false => waiting.add_up(row),
                }
            }
            let may_tell = waiting.sum.is_some() && (is_last || allowance.take(*organisation, now));
            due.extend(waiting.sum.take_if(|_| may_tell));
            waiting.sum.is_some()
        });
        due
    }

    /// A row that could not be written waits on.
    pub fn put_back(&mut self, row: FailureRow) {
        self.organisations.entry(row.failure.organisation_id).or_default().add_up(row);
    }
}

impl Waiting {
    fn add_up(&mut self, row: FailureRow) {
        match &mut self.sum {
            Some(sum) => sum.take_over(row),
            None => self.sum = Some(FailureRow { is_sum: true, ..row }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn failure(organisation: Uuid, rejection: Rejection, client: &str) -> Failure {
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

    fn errors(rows: &[FailureRow]) -> Vec<String> {
        let mut errors: Vec<_> = rows.iter().map(FailureRow::error).collect();
        errors.sort();
        errors
    }

    #[test]
    fn equal_failures_are_one_row_that_says_how_many() {
        let (home, other) = (Uuid::new_v4(), Uuid::new_v4());
        let mut failures = Failures::default();
        for _ in 0..3 {
            failures.add(failure(home, Rejection::Signature, "192.0.2.1"));
        }
        failures.add(failure(home, Rejection::Signature, "192.0.2.2"));
        failures.add(failure(home, Rejection::Malformed, "192.0.2.1"));
        failures.add(failure(other, Rejection::Signature, "192.0.2.1"));
        let signature = "AB05 JWT rejected: signature does not match";
        assert_eq!(
            errors(&failures.take(Instant::now(), false)),
            ["AB05 JWT rejected: malformed token", signature, signature, &format!("{signature} (3 times)")]
        );
        assert!(failures.is_empty());
    }

    #[test]
    fn a_flood_becomes_few_rows_and_not_one_token_is_left_out() {
        let (home, mut now) = (Uuid::new_v4(), Instant::now());
        let mut failures = Failures::default();
        let (mut sent, mut rows) = (0, Vec::new());
        for second in 0..20 {
            for n in 0..500 {
                let kid = Rejection::UnknownKeyId(format!("{second}-{n}"));
                failures.add(failure(home, if n % 5 == 0 { Rejection::Malformed } else { kid }, "192.0.2.1"));
                sent += 1;
            }
            now += Duration::from_secs(1);
            rows.extend(failures.take(now, false));
        }
        rows.extend(failures.take(now, true));
        assert!(rows.len() < 100, "{}", rows.len());
        assert_eq!(rows.iter().map(FailureRow::times).sum::<u64>(), sent);
        let sum = rows.iter().find(|row| row.is_sum).unwrap().error();
        assert!(
            sum.starts_with("AB05 JWT rejected: ")
                && sum.contains("further tokens (")
                && sum.contains("unknown_key_id"),
            "{sum}"
        );
        assert!(failures.is_empty());
    }

    #[test]
    fn what_could_not_be_written_is_told_later() {
        let (home, now) = (Uuid::new_v4(), Instant::now());
        let mut failures = Failures::default();
        failures.add(failure(home, Rejection::Signature, "192.0.2.1"));
        failures.add(failure(home, Rejection::Malformed, "192.0.2.1"));
        for row in failures.take(now, false) {
            failures.put_back(row);
        }
        let rows = failures.take(now, false);
        assert_eq!(errors(&rows), ["AB05 JWT rejected: 2 further tokens (malformed 1, signature 1)"]);
    }
}
