//! Files of the journal → Postgres. A batch is copied into a temporary table and stored by one transaction: rows that
//! are not there yet, and the counters of exactly those rows. So a file may be sent any number of times, by any number
//! of processes, and counts once.

mod charge;
mod copied;
mod intents;
mod price;
mod rejected;
mod row;
mod store;

pub use price::{Priced, Pricer};

use super::damaged::Erasure;
use super::frame::Tail;
use super::intent::Intent;
use super::late_results::LateWorks;
use super::meters::JournalMeters;
use super::pace::ShipPace;
use super::reader::Records;
use super::record::{Record, Undecodable};
use super::segment::ClosedSegment;
use super::spend_meters::{SpendLabels, Spent};
use super::traces::Traces;
use super::uncounted_tokens::UncountedCalls;
use crate::limits;
use chrono::{DateTime, TimeDelta, Utc};
use foldhash::fast::RandomState;
use intents::CallKey;
use row::LogRow;
use shared::telemetry::{Brief, LogLimit};
use shared::{db, settings};
use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use store::StoreFailure;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

/// Records of one transaction, and bytes of them: what is sent is bounded in memory whatever is on disk.
const BATCH: usize = 4000;
const BATCH_BYTES: usize = 4 << 20;
/// A question about what was erased.
const MAX_QUERY: Duration = Duration::from_secs(15);
/// A transaction that takes longer is given up and tried anew, on a new connection.
const MAX_TRANSACTION_TIME: Duration = Duration::from_secs(60);

pub struct Shipper {
    database: settings::Database,
    pricer: Pricer,
    meters: Arc<JournalMeters>,
    traces: Option<Traces>,
    client: Option<Client>,
    labels: SpendLabels,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shipped {
    Whole,
    /// Its bodies are still to be sent.
    ButBodies,
    /// Some of it cannot be read by anybody.
    InPart,
    /// What follows was written by a later version; it waits for a process that can read it.
    UpToNewer,
}

/// What became of some records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShipOutcome {
    All,
    /// Those before one of a later version; none of them if one was promised something by a later version.
    UpToNewer,
}

/// Why a file could not be sent now.
#[derive(Debug)]
pub struct Unshipped {
    pub error: String,
}

impl Shipper {
    pub fn new(
        database: settings::Database,
        pricer: Pricer,
        meters: Arc<JournalMeters>,
        traces: Option<Traces>,
    ) -> Self {
        Self { database, pricer, meters, traces, client: None, labels: SpendLabels::default() }
    }

    /// Counts what workspaces use, so many of them by their own name.
    #[must_use]
    pub fn counting_workspaces(mut self, most: usize) -> Self {
        self.labels.most_workspaces = most;
        self
    }

    /// Forgets what an attempt that was given up in the middle has left behind.
    pub(super) fn begin_anew(&mut self) {
        self.client = None;
        if let Some(traces) = &mut self.traces {
            traces.forget();
        }
    }

    /// Sends the records of a file that are not stored yet. Those that do not say what they used may be in `untold`.
    pub(super) async fn ship(
        &mut self,
        held: &mut ClosedSegment,
        uncounted: &UncountedCalls,
        late: &LateWorks,
    ) -> Result<Shipped, Unshipped> {
        let unread = |error: io::Error| Unshipped { error: error.to_string() };
        // Nothing is read while there is nobody to send it to.
        self.connected().await?;
        let name = held.name();
        let mut reader = held.reader(held.shipped).map_err(unread)?;
        let pace = ShipPace::for_file(held.since(), SystemTime::now());
        loop {
            let began = Instant::now();
            let records = reader.records(pace.piece(BATCH), BATCH_BYTES).map_err(unread)?;
            if !records.is_empty() {
                if self.send(&name, &records, uncounted, late).await? == ShipOutcome::UpToNewer {
                    return Ok(Shipped::UpToNewer);
                }
                pace.rest(began.elapsed()).await;
            }
            held.shipped = reader.at();
            held.has_bodies |= records.bodies > 0;
            let shipped = if held.has_bodies { Shipped::ButBodies } else { Shipped::Whole };
            match records.tail {
                None => {}
                Some(Tail::Nothing) => return Ok(shipped),
                Some(Tail::Torn) => {
                    self.meters.torn.inc();
                    tracing::warn!(segment = name, "a file of the journal ends in half a record");
                    return Ok(shipped);
                }
                Some(Tail::Unknown) => return Ok(Shipped::UpToNewer),
                Some(Tail::Damaged) => {
                    self.meters.rejected.inc();
                    tracing::error!(
                        segment = name,
                        at = held.shipped,
                        "a file of the journal cannot be read further; it is kept"
                    );
                    return Ok(Shipped::InPart);
                }
            }
        }
    }

    async fn send(
        &mut self,
        segment: &str,
        records: &Records,
        uncounted: &UncountedCalls,
        late: &LateWorks,
    ) -> Result<ShipOutcome, Unshipped> {
        // A promise that a later version wrote is noted by one that can read it, before anything behind it is.
        let Some(promised) = self.intents(segment, records) else { return Ok(ShipOutcome::UpToNewer) };
        let mut rows = Vec::with_capacity(records.len());
        let mut seen = HashSet::with_capacity_and_hasher(records.len(), RandomState::default());
        let (mut bad, mut estimated, mut sent) = (Vec::new(), Vec::new(), ShipOutcome::All);
        let (mut spent, mut joined_ids) = (Vec::new(), Vec::new());
        let now = Utc::now();
        for frame in records.iter() {
            match Record::decode(frame) {
                Ok(record) if !seen.insert(record.id) => {}
                Ok(record) if !is_possible(record.created_at(), now) => {
                    bad.push((frame, "its time is not possible".into()));
                }
                Ok(mut record) => {
                    if record.estimate.is_some() {
                        record.estimate = uncounted.tokens(record.id).or(record.estimate);
                        estimated.push(record.id);
                    }
                    let priced = self.pricer.price(&record).await;
                    if let Some(traces) = &mut self.traces {
                        traces.note(&record, &priced);
                    }
                    spent.extend(Spent::new(&record, &priced));
                    let joined = late.joined(record.id, record.hook_results);
                    joined_ids.extend(joined.is_some().then_some(record.id));
                    rows.push((LogRow::new(record, priced).with_hook_results(joined), frame));
                }
                Err(Undecodable::Newer) => {
                    sent = ShipOutcome::UpToNewer;
                    break;
                }
                Err(Undecodable::Malformed(error)) => bad.push((frame, error.to_string())),
            }
        }
        let stored = self.store_with_intents(segment, &promised, &rows, &bad).await;
        if stored.is_err() {
            // Whatever state it is in, the next attempt begins with a new one.
            self.client = None;
        }
        if stored.is_ok() {
            estimated.into_iter().for_each(|id| uncounted.forget(id));
            joined_ids.into_iter().for_each(|id| late.forget(id));
            spent.iter().for_each(|spent| self.meters.spend.count(spent, &mut self.labels));
        }
        match (&mut self.traces, &stored) {
            (Some(traces), Ok(())) => traces.send(),
            (Some(traces), Err(_)) => traces.forget(),
            (None, _) => {}
        }
        stored.map(|()| sent)
    }

    /// Stores the rows, and what was promised to calls that are not over with them: their record comes later, or was put
    /// aside and charges nothing.
    async fn store_with_intents(
        &mut self,
        segment: &str,
        promised: &[Intent<'_>],
        rows: &[(LogRow<'_>, &[u8])],
        bad: &[(&[u8], String)],
    ) -> Result<(), Unshipped> {
        if promised.is_empty() {
            return self.store(segment, rows, bad).await.map(drop);
        }
        let mut over: HashSet<_> = rows.iter().map(|(row, _)| row.call_key()).collect();
        self.note(promised, &over).await?;
        let rejected = self.store(segment, rows, bad).await?;
        if rejected.is_empty() {
            return Ok(());
        }
        over.retain(|call| !rejected.contains(call));
        self.note(promised, &over).await
    }

    /// None when a later version wrote one of them.
    fn intents<'f>(&self, segment: &str, records: &'f Records) -> Option<Vec<Intent<'f>>> {
        let mut found = Vec::new();
        for frame in records.intents() {
            match Intent::decode(frame) {
                Ok(intent) => found.push(intent),
                Err(Undecodable::Newer) => return None,
                Err(error) => {
                    self.meters.rejected.inc();
                    static UNREAD: LogLimit = LogLimit::new();
                    if let Some(skipped) = UNREAD.pass() {
                        tracing::error!(segment, %error, skipped, "what a call was promised cannot be read");
                    }
                }
            }
        }
        Some(found)
    }

    async fn note(&mut self, found: &[Intent<'_>], over: &HashSet<CallKey>) -> Result<(), Unshipped> {
        if found.is_empty() {
            return Ok(());
        }
        self.connected().await?;
        let Some(client) = &self.client else { return Err(Unshipped { error: "there is no connection".into() }) };
        match tokio::time::timeout(MAX_TRANSACTION_TIME, intents::note(client, found, over)).await {
            Ok(noted) => noted.map(drop).map_err(|error| Unshipped { error: db::explain(&error) }),
            Err(_) => Err(Unshipped::no_answer()),
        }
    }

    /// Stores the rows in as few transactions as their worst one allows. However many are bad, each is set aside as soon
    /// as it is found, and the time limit is of one transaction: what was done need not be done again. Answers whose those
    /// were.
    async fn store(
        &mut self,
        segment: &str,
        rows: &[(LogRow<'_>, &[u8])],
        bad: &[(&[u8], String)],
    ) -> Result<Vec<CallKey>, Unshipped> {
        self.connected().await?;
        let Some(client) = &mut self.client else { return Err(Unshipped { error: "there is no connection".into() }) };
        for (frame, reason) in bad {
            reject(client, &self.meters, segment, frame, reason).await?;
        }
        let (mut parts, mut rejected) = (vec![rows], Vec::new());
        while let Some(part) = parts.pop() {
            let stored = store::store(client, part.iter().map(|(row, _)| row));
            match tokio::time::timeout(MAX_TRANSACTION_TIME, stored).await {
                Ok(Ok(stored)) => {
                    self.meters.shipped.inc_by(stored);
                    settle(client, part).await?;
                }
                Ok(Err(StoreFailure::Postgres(error))) => return Err(Unshipped { error }),
                // One record is to blame: the others must not wait for it.
                Ok(Err(StoreFailure::Rows(reason))) => match part {
                    [(row, frame)] => {
                        reject(client, &self.meters, segment, frame, &reason).await?;
                        rejected.push(row.call_key());
                    }
                    _ => {
                        let (left, right) = part.split_at(part.len() / 2);
                        parts.extend([right, left]);
                    }
                },
                Err(_) => return Err(Unshipped::no_answer()),
            }
        }
        Ok(rejected)
    }

    /// Gives back what a process held of limits that is gone and whose records are all stored.
    pub async fn bury(&mut self, boot: Uuid) -> Result<(), Unshipped> {
        self.connected().await?;
        let Some(mut client) = self.client.take() else {
            return Err(Unshipped { error: "there is no connection".into() });
        };
        match tokio::time::timeout(MAX_TRANSACTION_TIME, limits::release(&mut client, boot)).await {
            Ok(Ok(())) => {
                self.client = Some(client);
                Ok(())
            }
            Ok(Err(error)) => Err(Unshipped { error: db::explain(&error) }),
            Err(_) => Err(Unshipped::no_answer()),
        }
    }

    /// When each organisation erased logs the last time, as long as that is remembered.
    pub(super) async fn erasures(&mut self) -> Result<Vec<Erasure>, Unshipped> {
        const LATEST: &str = "SELECT organisation_id, max(asked_at) FROM log_erasures GROUP BY organisation_id";
        self.connected().await?;
        let Some(client) = &self.client else { return Err(Unshipped { error: "there is no connection".into() }) };
        let failed = |error: tokio_postgres::Error| Unshipped { error: db::explain(&error) };
        let rows =
            tokio::time::timeout(MAX_QUERY, client.query(LATEST, &[])).await.map_err(|_| Unshipped::no_answer())?;
        let erasure =
            |row: &Row| Ok(Erasure { organisation: row.try_get(0)?, asked_at: row.try_get::<_, SystemTime>(1)? });
        rows.map_err(failed)?.iter().map(erasure).collect::<Result<_, _>>().map_err(failed)
    }

    /// Sees to it that there is a connection.
    async fn connected(&mut self) -> Result<(), Unshipped> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            self.client = None;
            let made = tokio::time::timeout(MAX_TRANSACTION_TIME, self.connect()).await;
            self.client = Some(made.unwrap_or_else(|_| Err(Unshipped::no_answer()))?);
        }
        Ok(())
    }

    async fn connect(&self) -> Result<Client, Unshipped> {
        let client =
            db::connect_direct(&self.database).await.map_err(|error| Unshipped { error: error.to_string() })?;
        store::prepare(&client).await.map_err(|error| Unshipped { error: db::explain(&error) })?;
        Ok(client)
    }
}

impl Unshipped {
    fn no_answer() -> Self {
        Self { error: "Postgres does not answer".into() }
    }
}

/// Takes away what was promised to calls whose records are stored.
async fn settle(client: &Client, part: &[(LogRow<'_>, &[u8])]) -> Result<(), Unshipped> {
    match tokio::time::timeout(MAX_TRANSACTION_TIME, intents::settle(client, part.iter().map(|(row, _)| row))).await {
        Ok(settled) => settled.map_err(|error| Unshipped { error: db::explain(&error) }),
        Err(_) => Err(Unshipped::no_answer()),
    }
}

/// Puts a record aside that cannot be stored.
async fn reject(
    client: &Client,
    meters: &JournalMeters,
    segment: &str,
    frame: &[u8],
    reason: &str,
) -> Result<(), Unshipped> {
    let rejected = tokio::time::timeout(MAX_TRANSACTION_TIME, rejected::reject(client, segment, frame, reason)).await;
    let is_new = rejected.map_err(|_| Unshipped::no_answer())?.map_err(|error| Unshipped { error })?;
    if is_new {
        meters.rejected.inc();
        static SET_ASIDE: LogLimit = LogLimit::new();
        if let Some(skipped) = SET_ASIDE.pass() {
            let reason = Brief(reason);
            tracing::error!(segment, %reason, skipped, "a log was set aside because it cannot be stored");
        }
    }
    Ok(())
}

/// Every day in which something happened becomes a table; a broken clock must not make tables for ever.
fn is_possible(time: DateTime<Utc>, now: DateTime<Utc>) -> bool {
    now - TimeDelta::days(400) < time && time < now + TimeDelta::days(2)
}
