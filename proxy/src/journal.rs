//! The journal: each call is appended to a file before the last byte of its answer leaves, and stored in Postgres
//! afterwards. A killed process loses nothing, and neither does an absent database: files wait for it.
//!
//! Each I/O thread has a file of its own, so appending is one uncontended lock and one `write`. Files are closed by
//! size, or by the shipper when it has nothing else to send.

mod background_responses;
pub mod body_frame;
mod damaged;
pub(crate) mod frame;
pub mod intent;
pub(crate) mod late_results;
pub mod logged_body;
pub mod meters;
mod pace;
mod paid_meters;
pub(crate) mod reader;
pub mod record;
mod segment;
pub mod service;
pub mod ship;
mod spend_meters;
pub mod traces;
mod uncounted_tokens;
mod unlogged_hooks;
pub mod upload;
mod writer;

pub use crate::limits::charge::{Charge, Charges};
pub use background_responses::BackgroundResponses;
pub use intent::Intent;
pub use late_results::{HookLists, HookLog, LateWork, bounded_results};
pub use meters::JournalMeters;
pub use paid_meters::PaidMeters;
pub use record::{CacheStatus, Mode, Record};
pub use unlogged_hooks::{UnloggedCall, UnloggedHooks};

use crate::limits::usage::UncountedCall;
use anyhow::Context as _;
use body_frame::Parts;
use damaged::SearchedFiles;
use frame::FrameKind;
use late_results::LateWorks;
use parking_lot::Mutex;
use segment::{ClosedSegment, Mark, Segment};
use shared::settings::journal::{Fsync, Journal as Settings, WhenFull};
use shared::telemetry::LogLimit;
use std::cell::Cell;
use std::collections::{HashSet, VecDeque};
use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::{Notify, watch};
use uncounted_tokens::UncountedCalls;
use uuid::Uuid;
use writer::{JournalWriter, Written};

pub struct Journal {
    settings: Settings,
    /// Tells the files of this process from those of others.
    mark: Mark,
    /// Everything that was noted until then is in Postgres.
    shipped_until: Mutex<Option<Instant>>,
    writers: Vec<Mutex<JournalWriter>>,
    threads_seen: AtomicUsize,
    files_made: AtomicU64,
    /// Files to ship, the oldest first.
    closed: Mutex<VecDeque<ClosedSegment>>,
    /// Files whose records are stored and whose bodies are not, the oldest first.
    bodies: Mutex<VecDeque<ClosedSegment>>,
    /// Files that a later version wrote and this process has given up.
    left: Mutex<HashSet<PathBuf>>,
    /// Which files that were set aside hold nothing of whoever erased logs.
    searched: Arc<SearchedFiles>,
    /// Bytes of those whose bodies are being sent.
    uploading: AtomicU64,
    /// The process ends soon: nobody waits for more bodies to store together.
    is_leaving: AtomicBool,
    /// There are bodies to send.
    bodies_wake: Notify,
    is_full: AtomicBool,
    /// The disk refused the last write; said once, not for every record.
    is_failing: AtomicBool,
    /// The shipper should look at once.
    wake: Notify,
    /// Everything that was noted before the shipper last looked is in Postgres.
    is_empty: watch::Sender<bool>,
    uncounted: Arc<UncountedCalls>,
    late: LateWorks,
    background_responses: BackgroundResponses,
    meters: Arc<JournalMeters>,
}

thread_local! {
    /// Which writer is this thread's.
    static SLOT: Cell<Option<usize>> = const { Cell::new(None) };
}

impl Journal {
    /// Makes the folder; a proxy that cannot write there should not start.
    pub fn open(settings: Settings, threads: usize, meters: Arc<JournalMeters>) -> anyhow::Result<Arc<Self>> {
        let folder = &settings.journal_dir;
        let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.with_context(|| format!("JOURNAL_DIR: {}", folder.display()))?;
        let mark = Mark::create(folder, Uuid::now_v7(), settings.journal_fsync == Fsync::Always);
        let mark = mark.with_context(|| format!("JOURNAL_DIR: {}", folder.display()))?;
        let journal = Self {
            mark,
            shipped_until: Mutex::default(),
            writers: (0..threads.max(1)).map(|_| Mutex::default()).collect(),
            threads_seen: AtomicUsize::new(0),
            files_made: AtomicU64::new(0),
            closed: Mutex::default(),
            bodies: Mutex::default(),
            left: Mutex::default(),
            searched: Arc::default(),
            uploading: AtomicU64::new(0),
            is_leaving: AtomicBool::new(false),
            bodies_wake: Notify::new(),
            is_full: AtomicBool::new(false),
            is_failing: AtomicBool::new(false),
            wake: Notify::new(),
            is_empty: watch::Sender::new(true),
            uncounted: Arc::default(),
            late: LateWorks::default(),
            background_responses: BackgroundResponses::default(),
            settings,
            meters,
        };
        let probe =
            journal.create(0).with_context(|| format!("JOURNAL_DIR: {}", journal.settings.journal_dir.display()));
        probe?.close().remove()?;
        Ok(Arc::new(journal))
    }

    pub fn background_responses(&self) -> &BackgroundResponses {
        &self.background_responses
    }

    pub fn paid_meters(&self) -> &PaidMeters {
        &self.meters.paid
    }

    /// Notes a call. Never waits for anything but the file.
    pub fn append(&self, record: &Record<'_>) {
        self.append_with(record, None);
    }

    /// The same with what the client sent and got.
    pub fn append_with(&self, record: &Record<'_>, body: Option<&Parts<'_>>) {
        let slot = self.slot();
        let mut writer = self.writers[slot].lock();
        let written = writer.append(record, body, || self.create(slot));
        let synced = if self.is_always_synced() { writer.sync() } else { Ok(()) };
        let is_full = writer.segment.as_ref().is_some_and(|file| file.length() >= self.settings.journal_segment_bytes);
        if is_full {
            self.closed.lock().extend(writer.close(Duration::ZERO));
        }
        drop(writer);
        self.meters.records.inc();
        if body.is_some() && !matches!(written, Written::OnDisk) {
            self.meters.bodies_lost.inc();
        }
        match written {
            Written::OnDisk | Written::OnDiskAlone => self.recovered(),
            Written::TooLong => {
                self.meters.too_long.inc();
                self.meters.lost.inc();
                static TOO_LONG: LogLimit = LogLimit::new();
                if let Some(skipped) = TOO_LONG.pass() {
                    let id = record.id;
                    tracing::error!(%id, skipped, "a log is longer than any that can be read and was not written");
                }
            }
            Written::Waiting(error) => self.failed(&error),
            Written::Lost(error) => {
                self.meters.lost.inc();
                self.failed(&error);
            }
        }
        if let Err(error) = synced {
            self.failed(&error);
        }
    }

    /// Notes what a call is promised that is about to leave. False when the disk does not take it: then it must not leave.
    pub fn promise(&self, intent: &Intent<'_>) -> bool {
        let slot = self.slot();
        let mut writer = self.writers[slot].lock();
        let mut written = writer.append_intent(intent, || self.create(slot));
        if written.is_ok() && self.is_always_synced() {
            written = writer.sync();
        }
        drop(writer);
        match written {
            Ok(()) => self.recovered(),
            Err(error) => {
                self.failed(&error);
                return false;
            }
        }
        true
    }

    /// The texts of a call that does not say what it used, to be counted before its record is stored. Comes before the
    /// record does.
    pub fn note_uncounted(&self, id: Uuid, spoken: UncountedCall) {
        self.uncounted.put(id, spoken);
    }

    /// Hooks of a call that nobody waited for, to be run before its record is stored. Comes before the record does.
    pub fn late(&self, id: Uuid, work: Box<dyn LateWork>) {
        self.late.put(id, work);
    }

    /// Whether new calls are to be refused because the journal has no room for them.
    pub fn is_refusing(&self) -> bool {
        self.is_full.load(Relaxed)
    }

    /// Of this process.
    pub fn boot(&self) -> Uuid {
        self.mark.boot
    }

    /// Everything that was noted longer ago than this is in Postgres; none while nothing is known to be.
    pub fn shipped_ago(&self) -> Option<Duration> {
        self.shipped_until.lock().map(|until| until.elapsed())
    }

    /// What is not in Postgres yet, in bytes, and since when.
    fn backlog(&self) -> (u64, Option<SystemTime>) {
        let mut bytes = 0;
        let mut oldest: Option<SystemTime> = None;
        let mut add = |length: u64, since: SystemTime| {
            bytes += length;
            oldest = Some(oldest.map_or(since, |oldest| oldest.min(since)));
        };
        for held in self.closed.lock().iter() {
            add(held.length(), held.since());
        }
        for writer in &self.writers {
            if let Some(segment) = writer.lock().segment.as_ref().filter(|segment| segment.length() > 0) {
                add(segment.length(), segment.since());
            }
        }
        (bytes, oldest)
    }

    /// Files with bodies that are not in the log store yet, in bytes.
    fn bodies_backlog(&self) -> u64 {
        let bodies = self.bodies.lock();
        bodies.iter().map(ClosedSegment::length).sum::<u64>() + self.uploading.load(Relaxed)
    }

    /// Closes what the threads have been writing for so long, so that it can be shipped. False when something had to stay
    /// in memory.
    fn harvest(&self, age: Duration) -> bool {
        let mut is_all = true;
        for (slot, writer) in self.writers.iter().enumerate() {
            let mut writer = writer.lock();
            if writer.waiting() > 0 && self.retry(slot, &mut writer).is_ok() {
                self.recovered();
            }
            is_all &= writer.waiting() == 0;
            self.closed.lock().extend(writer.close(age));
        }
        is_all
    }

    fn retry(&self, slot: usize, writer: &mut JournalWriter) -> io::Result<()> {
        writer.retry(|| self.create(slot))?;
        if self.is_always_synced() { writer.sync() } else { Ok(()) }
    }

    /// Tries whether the disk takes records again, although no call comes that would tell.
    fn probe(&self) {
        let name = format!("{}-probe", self.mark.boot.simple());
        let is_all = self.harvest(Duration::ZERO);
        if is_all && segment::probe(&self.settings.journal_dir, &name).is_ok() {
            self.recovered();
        }
    }

    /// Notes how much is in Postgres: everything that came before the oldest file that is not. To be called by whoever
    /// ships while nothing is under way.
    fn note_shipped(&self) {
        let mut until = Instant::now();
        // Writers come first: what one of them closes meanwhile is found among what is closed.
        for writer in &self.writers {
            until = writer.lock().since().map_or(until, |since| until.min(since));
        }
        until = self.closed.lock().iter().filter_map(ClosedSegment::created).fold(until, Instant::min);
        let mut shipped = self.shipped_until.lock();
        *shipped = Some(shipped.map_or(until, |known| known.max(until)));
    }

    /// Handles to what is not synced yet, so that nobody waits while that is done.
    fn handles(&self) -> Vec<File> {
        let handle =
            |writer: &Mutex<JournalWriter>| writer.lock().segment.as_ref().and_then(|segment| segment.handle().ok());
        let mut handles: Vec<File> = self.writers.iter().filter_map(handle).collect();
        handles.extend(self.closed.lock().iter_mut().filter_map(ClosedSegment::unsynced));
        handles
    }

    fn is_always_synced(&self) -> bool {
        self.settings.journal_fsync == Fsync::Always
    }

    /// Takes over what processes that are gone left in the folder.
    fn adopt(&self) {
        let found = segment::found(&self.settings.journal_dir).unwrap_or_else(|error| {
            self.failed(&error);
            Vec::new()
        });
        if let Err(error) = damaged::sweep(&self.settings.journal_dir, self.settings.journal_max_bytes / 4) {
            self.failed(&error);
        }
        self.left.lock().retain(|path| found.contains(path));
        for path in found {
            if self.left.lock().contains(&path) {
                continue;
            }
            match ClosedSegment::adopt(&path) {
                Ok(Some(held)) => {
                    tracing::info!(segment = held.name(), bytes = held.length(), "adopted a file of the journal");
                    match held.has_only_bodies() {
                        true => self.keep_for_bodies(held),
                        false => self.closed.lock().push_back(held),
                    }
                }
                Ok(None) => {}
                Err(error) => self.failed(&error),
            }
        }
    }

    /// Frees a file that a later version wrote: whoever can read it adopts it. It keeps its name, so that nothing is given
    /// back of the limits that its records are charged to.
    fn leave(&self, held: ClosedSegment) {
        self.meters.left.inc();
        tracing::warn!(segment = held.name(), "a later version wrote this file of the journal; it waits for one");
        self.left.lock().insert(held.path().to_owned());
    }

    /// Counts the records of a file that is given up.
    fn note_lost(&self, held: &ClosedSegment) -> u64 {
        let records = held.reader(held.shipped).and_then(|mut rest| rest.count(FrameKind::Record)).unwrap_or(1);
        self.meters.lost.inc_by(records);
        records
    }

    /// Keeps a file that cannot be sent where somebody can look at it.
    fn set_aside(&self, held: ClosedSegment, reason: &str) {
        let segment = held.name();
        self.meters.rejected.inc();
        tracing::error!(segment, reason, "a file of the journal is set aside");
        if let Err(error) = held.set_aside() {
            self.failed(&error);
        }
    }

    fn keep_for_bodies(&self, held: ClosedSegment) {
        self.bodies.lock().push_back(held);
        self.bodies_wake.notify_one();
    }

    /// Sees to it that the journal stays within its size. Bodies go before records do.
    fn bound(&self) {
        let most = self.settings.journal_max_bytes;
        let (mut bytes, _) = self.backlog();
        bytes += self.bodies_backlog();
        match self.settings.journal_when_full {
            WhenFull::Refuse => {
                let is_full = bytes >= most || self.is_failing.load(Relaxed);
                if is_full != self.is_full.swap(is_full, Relaxed) {
                    tracing::error!(bytes, is_full, "the journal's room for new calls changed");
                }
            }
            WhenFull::Drop => {
                while bytes > most {
                    let Some(oldest) = self.bodies.lock().pop_front() else { break };
                    bytes = bytes.saturating_sub(oldest.length());
                    let calls = oldest.reader(oldest.uploaded).and_then(|mut rest| rest.count(FrameKind::Body));
                    let calls = calls.unwrap_or(1);
                    self.meters.bodies_lost.inc_by(calls);
                    tracing::error!(
                        calls,
                        segment = oldest.name(),
                        "the journal is full: the oldest bodies are dropped"
                    );
                    if let Err(error) = oldest.remove() {
                        self.failed(&error);
                    }
                }
                while bytes > most {
                    let mut closed = self.closed.lock();
                    let Some(index) = closed.iter().position(|held| !held.has_only_intents) else { break };
                    let Some(oldest) = closed.remove(index) else { break };
                    drop(closed);
                    bytes = bytes.saturating_sub(oldest.length());
                    match self.keep_intents(&oldest) {
                        Ok(segments) => self.closed.lock().extend(segments),
                        Err(error) => {
                            // Nothing is dropped whose promises cannot be kept.
                            self.failed(&error);
                            let mut closed = self.closed.lock();
                            let index = index.min(closed.len());
                            closed.insert(index, oldest);
                            break;
                        }
                    }
                    let records = self.note_lost(&oldest);
                    tracing::error!(
                        records,
                        segment = oldest.name(),
                        "the journal is full: the oldest logs are dropped"
                    );
                    if let Err(error) = oldest.remove() {
                        self.failed(&error);
                    }
                }
            }
        }
    }

    /// Writes the promises of a file that is to be dropped into a new one: a budget that does not learn of them would be
    /// overspent. A promise whose record is gone stays charged in full.
    fn keep_intents(&self, dropped: &ClosedSegment) -> io::Result<Option<ClosedSegment>> {
        const AT_ONCE: usize = 4000;
        const AT_ONCE_BYTES: usize = 4 << 20;
        let mut reader = dropped.reader(dropped.shipped)?;
        let mut open: Option<Segment> = None;
        loop {
            let records = reader.records(AT_ONCE, AT_ONCE_BYTES)?;
            let mut frames = Vec::new();
            for intent in records.intents() {
                let pushed = frame::push_intent(&mut frames, |out| out.extend_from_slice(intent));
                pushed.map_err(|frame::TooLong| io::Error::from(io::ErrorKind::InvalidData))?;
            }
            if !frames.is_empty() {
                let segment = match &mut open {
                    Some(segment) => segment,
                    none => none.insert(self.create(self.writers.len())?),
                };
                segment.append(&mut [io::IoSlice::new(&frames)])?;
            }
            if records.tail.is_some() {
                break;
            }
        }
        let Some(mut segment) = open else { return Ok(None) };
        segment.sync()?;
        if let Some(created) = dropped.created() {
            segment.holds_from(created);
        }
        let mut held = segment.close();
        held.has_only_intents = true;
        Ok(Some(held))
    }

    fn slot(&self) -> usize {
        let slot = SLOT.get().unwrap_or_else(|| {
            let slot = self.threads_seen.fetch_add(1, Relaxed);
            SLOT.set(Some(slot));
            slot
        });
        slot % self.writers.len()
    }

    fn create(&self, slot: usize) -> io::Result<Segment> {
        let number = self.files_made.fetch_add(1, Relaxed);
        let name = format!("{}-{slot}-{number}", self.mark.boot.simple());
        Segment::create(&self.settings.journal_dir, &name, self.is_always_synced())
    }

    fn failed(&self, error: &io::Error) {
        self.meters.write_failures.inc();
        if !self.is_failing.swap(true, Relaxed) {
            let folder = self.settings.journal_dir.display();
            tracing::error!(%error, %folder, "the journal cannot be written; records wait in memory");
        }
    }

    fn recovered(&self) {
        if self.is_failing.load(Relaxed) && self.is_failing.swap(false, Relaxed) {
            tracing::info!("the journal can be written again");
        }
    }
}

#[cfg(test)]
mod tests;
