//! Bodies → the log store, after the records of their file are in Postgres: a store that is away holds no record up.
//!
//! Files wait until there is enough for packs worth storing. Packs get new names each time; a row says where its body is
//! once the pack is stored, and whoever repeats the work of a process that died packs only what rows still wait for. So a
//! file may be sent any number of times and each body is in one pack.

mod pack_rows;
mod packs;

use super::Journal;
use super::body_frame::StoredBodies;
use super::frame::{FrameKind, Tail};
use super::pace::ShipPace;
use super::reader::Reader;
use super::record::{Record, Undecodable};
use super::segment::{ClosedSegment, MAX_PANICS};
use crate::journal::logged_body::object::object;
use crate::runtime::background::compute;
use bytes::Bytes;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use pack_rows::PackRows;
use packs::PackSet;
use parking_lot::Mutex;
use shared::headers::header_prefix::Aliases;
use shared::log_store::{LogStore, Packer};
use shared::settings;
use std::collections::VecDeque;
use std::io::{self, BufRead};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};
use uuid::Uuid;

/// Bodies compressed at once.
const BATCH: usize = 128;
/// Files are packed when they hold so many times what a pack is to hold, whatever their age: bodies shrink by as much.
const SHRINKS: u64 = 4;
/// Packs under way at once. A bucket takes tens of milliseconds for each and no thread; a folder has one thread for all.
const TO_BUCKET: usize = 32;
const TO_FOLDER: usize = 2;
/// How often a set is packed anew because rows were erased meanwhile.
const TRIES: usize = 3;
const LOOK_EVERY: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(30);

pub struct Uploader {
    pub store: LogStore,
    /// By which our own headers are told from others.
    pub aliases: Arc<Aliases>,
    packer: Arc<Mutex<Packer>>,
    rows: tokio::sync::Mutex<PackRows>,
    /// Files are packed when the oldest has waited for so long.
    pack_after: Duration,
    pack_bytes: usize,
}

/// Files whose bodies are being sent. What is left of them goes back to where it was, however that ends.
struct BodyGroup<'j> {
    journal: &'j Journal,
    files: VecDeque<ClosedSegment>,
}

impl Drop for BodyGroup<'_> {
    fn drop(&mut self) {
        let mut bodies = self.journal.bodies.lock();
        while let Some(held) = self.files.pop_back() {
            bodies.push_front(held);
        }
        self.journal.uploading.store(0, Relaxed);
    }
}

/// What was read of a file into a set.
struct Filled {
    set: PackSet,
    /// Frames that are no body of ours.
    bad: u64,
    /// What follows was written by a later version.
    is_newer: bool,
    end: u64,
    is_last: bool,
}

/// Why bodies could not be read into a set.
enum FillFailure {
    Read(String),
    /// Something in the file is to blame, or a bug that it meets.
    Panicked,
}

impl Uploader {
    pub fn new(
        store: LogStore,
        aliases: Arc<Aliases>,
        database: settings::Database,
        settings: &settings::LogStoreSettings,
    ) -> Self {
        Self {
            store,
            aliases,
            packer: Arc::default(),
            rows: tokio::sync::Mutex::new(PackRows::new(database)),
            pack_after: Duration::from_secs(settings.log_pack_seconds.into()),
            pack_bytes: settings.log_pack_bytes as usize,
        }
    }
}

impl Journal {
    /// Bodies → the log store.
    pub async fn upload(&self, uploader: &Uploader) {
        let mut failures = 0_u32;
        loop {
            let wait = match failures {
                0 => LOOK_EVERY,
                _ => (LOOK_EVERY * 2_u32.saturating_pow(failures.min(6) - 1)).min(MAX_WAIT),
            };
            let Some(group) = self.take_due(uploader) else {
                let _ = tokio::time::timeout(wait, self.bodies_wake.notified()).await;
                continue;
            };
            let mut group = BodyGroup { journal: self, files: group };
            let uploaded = self.upload_group(uploader, &mut group.files).await;
            drop(group);
            match uploaded {
                Ok(()) => failures = 0,
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.meters.bodies_failures.inc();
                    tracing::warn!(error, "bodies could not be sent to the log store; they wait on disk");
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    /// Files whose bodies are to be packed now, the oldest first. None while it is better to wait for more.
    fn take_due(&self, uploader: &Uploader) -> Option<VecDeque<ClosedSegment>> {
        let enough = uploader.pack_bytes as u64 * SHRINKS;
        let mut bodies = self.bodies.lock();
        // A clock that was set back is no reason to wait.
        let is_young = |held: &ClosedSegment| held.since().elapsed().is_ok_and(|age| age < uploader.pack_after);
        let is_little = bodies.iter().map(ClosedSegment::length).sum::<u64>() < enough;
        let waits = is_little && bodies.iter().all(is_young) && !self.is_leaving.load(Relaxed);
        if bodies.is_empty() || waits {
            return None;
        }
        let (mut group, mut bytes) = (VecDeque::new(), 0);
        while bytes < enough {
            let Some(held) = bodies.pop_front() else { break };
            bytes += held.length();
            group.push_back(held);
        }
        // Before anybody can see that they are no longer in the queue.
        self.uploading.store(bytes, Relaxed);
        Some(group)
    }

    /// Packing this file of the group panicked. It is set aside when that has happened too often: what stands behind it
    /// must not wait for it for ever.
    fn blame_bodies(&self, group: &mut VecDeque<ClosedSegment>, index: usize) {
        let Some(held) = group.get_mut(index) else { return };
        held.panics += 1;
        if held.panics >= MAX_PANICS
            && let Some(held) = group.remove(index)
        {
            let calls = held.reader(held.uploaded).and_then(|mut rest| rest.count(FrameKind::Body)).unwrap_or(1);
            self.meters.bodies_lost.inc_by(calls);
            self.set_aside(held, "packing its bodies panicked each time");
        }
    }

    /// Packs and stores what is not stored yet of some files, and removes those that are done. What is left in the group
    /// after a failure is to be done again.
    async fn upload_group(&self, uploader: &Uploader, group: &mut VecDeque<ClosedSegment>) -> Result<(), String> {
        let mut set = PackSet::default();
        // Files that were read to their end into the set, and whether a later version can read more of them.
        let mut ends: Vec<bool> = Vec::new();
        let (mut at, mut bad) = (group.front().map_or(0, |held| held.uploaded), 0);
        loop {
            if let Some(held) = group.get(ends.len()) {
                let began = Instant::now();
                let pace = uploader.pace(held);
                let filled = match uploader.fill(held, at, pace, set).await {
                    Ok(filled) => filled,
                    Err(FillFailure::Read(error)) => return Err(error),
                    Err(FillFailure::Panicked) => {
                        self.blame_bodies(group, ends.len());
                        return Err("packing bodies panicked".into());
                    }
                };
                (set, at) = (filled.set, filled.end);
                bad += filled.bad;
                if filled.is_last {
                    ends.push(filled.is_newer);
                    at = group.get(ends.len()).map_or(0, |next| next.uploaded);
                }
                pace.rest(began.elapsed()).await;
                if !set.is_full(uploader.pack_bytes) && ends.len() < group.len() {
                    continue;
                }
            }
            self.store_packs(uploader, &mem::take(&mut set)).await?;
            if bad > 0 {
                self.meters.bodies_lost.inc_by(mem::take(&mut bad));
                tracing::error!("bodies of the journal cannot be read and are dropped");
            }
            for is_newer in ends.drain(..) {
                match (group.pop_front(), is_newer) {
                    (Some(held), true) => self.leave(held),
                    (Some(held), false) => remove(held),
                    (None, _) => {}
                }
            }
            match group.front_mut() {
                Some(held) => held.uploaded = at,
                None => return Ok(()),
            }
        }
    }

    /// Stores a set as packs, without what no row waits for: bodies of logs that were erased, or that are stored already.
    async fn store_packs(&self, uploader: &Uploader, set: &PackSet) -> Result<(), String> {
        if set.is_empty() {
            return Ok(());
        }
        let at_once = if uploader.store.is_folder() { TO_FOLDER } else { TO_BUCKET };
        let mut rows = uploader.rows.lock().await;
        let asked = set.waiting();
        for _ in 0..TRIES {
            let waiting = rows.waiting(&asked).await?;
            let (mut packs, keys) = set.named(&waiting, Uuid::now_v7);
            if packs.is_empty() {
                return Ok(());
            }
            rows.note(&packs).await?;
            let mut bytes = 0;
            let mut puts = Vec::with_capacity(packs.len());
            for pack in &mut packs {
                let (path, frames) = (pack.path.clone(), Bytes::from(mem::take(&mut pack.frames)));
                bytes += frames.len() as u64;
                let store = &uploader.store;
                puts.push(async move { store.put(&path, frames).await.map_err(|error| error.to_string()) });
            }
            // If some of them are stored and others not, the notes are still there by which admin finds them.
            futures::stream::iter(puts).buffer_unordered(at_once).try_for_each(async |()| Ok(())).await?;
            if rows.publish(&packs, &keys).await? {
                self.meters.packs_stored.inc_by(packs.len() as u64);
                self.meters.bodies_stored.inc_by(keys.ids.len() as u64);
                self.meters.bodies_bytes.inc_by(bytes);
                return Ok(());
            }
            rows.abandon(&packs).await?;
        }
        Err("logs are erased faster than their bodies are stored".into())
    }
}

impl Uploader {
    fn pace(&self, held: &ClosedSegment) -> ShipPace {
        match self.store.is_folder() {
            // It is late when it has waited for longer than it was meant to.
            true => ShipPace::for_file(held.since() + self.pack_after, SystemTime::now()),
            false => ShipPace::FULL,
        }
    }

    /// Compresses the next bodies of a file into the set, off the threads of the runtime.
    async fn fill(&self, held: &ClosedSegment, at: u64, pace: ShipPace, set: PackSet) -> Result<Filled, FillFailure> {
        let reader = held.reader(at).map_err(|error| FillFailure::Read(error.to_string()))?;
        let (aliases, packer, most) = (self.aliases.clone(), self.packer.clone(), self.pack_bytes);
        let work = move || fill(reader, pace.piece(BATCH), most, set, &aliases, &mut packer.lock());
        let filled = compute(work).await.map_err(|_| FillFailure::Panicked)?;
        filled.map_err(|error| FillFailure::Read(error.to_string()))
    }
}

/// Puts the next bodies of a file into the set, holding no more than one of them beside it.
fn fill(
    mut reader: Reader<impl BufRead>,
    most_calls: usize,
    most_bytes: usize,
    set: PackSet,
    aliases: &Aliases,
    packer: &mut Packer,
) -> io::Result<Filled> {
    let mut filled = Filled { set, bad: 0, is_newer: false, end: reader.at(), is_last: true };
    let (mut calls, mut bytes) = (0, Vec::new());
    loop {
        let (record, body) = match reader.call(&mut bytes)? {
            Ok(call) => call,
            Err(tail) => {
                filled.is_newer = tail == Tail::Unknown;
                break;
            }
        };
        match (Record::decode(record), StoredBodies::decode(body)) {
            (Ok(record), Some(body)) => {
                let frame = packer.pack(&object(&record, &body, aliases)?)?;
                let (organisation, workspace) = (record.organisation_id.uuid(), record.workspace_id.uuid());
                filled.set.add(organisation, workspace, record.created_at(), record.id, &frame);
            }
            (Err(Undecodable::Newer), _) => {
                filled.is_newer = true;
                break;
            }
            _ => filled.bad += 1,
        }
        filled.end = reader.at();
        calls += 1;
        if calls >= most_calls || filled.set.is_full(most_bytes) {
            filled.is_last = false;
            break;
        }
    }
    Ok(filled)
}

fn remove(held: ClosedSegment) {
    if let Err(error) = held.remove() {
        tracing::error!(%error, "a file of the journal whose bodies are stored cannot be removed");
    }
}
