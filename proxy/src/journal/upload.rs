//! Bodies → the log store, after the records of their file are in Postgres: a store that is away holds no record up. An
//! object has the same name and bytes whenever it is made, so a file may be sent any number of times.

use super::Journal;
use super::body_frame::StoredBodies;
use super::frame::Tail;
use super::pace::ShipPace;
use super::reader::Reader;
use super::record::{Record, Undecodable};
use super::segment::ClosedSegment;
use crate::journal::logged_body::object::object;
use bytes::Bytes;
use futures::stream::{StreamExt as _, TryStreamExt as _};
use parking_lot::Mutex;
use shared::headers::header_prefix::Aliases;
use shared::log_store::{LogStore, Packer, body_path};
use std::io::{self, BufRead};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};

/// Objects made at once, and bytes of them: what is sent is bounded in memory whatever is on disk.
const BATCH: usize = 128;
const BATCH_BYTES: usize = 4 << 20;
/// Objects under way at once. A bucket takes tens of milliseconds for each and no thread; a folder has one thread for all.
const TO_BUCKET: usize = 32;
const TO_FOLDER: usize = 2;
const LOOK_EVERY: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(30);

pub struct Uploader {
    pub store: LogStore,
    /// By which our own headers are told from others.
    pub aliases: Arc<Aliases>,
    packer: Arc<Mutex<Packer>>,
}

/// Objects to be stored, and how far into their file they reach.
struct UploadBatch {
    objects: Vec<(String, Bytes)>,
    /// Frames that are no body of ours.
    bad: u64,
    /// What follows was written by a later version.
    is_newer: bool,
    end: u64,
    is_last: bool,
}

/// How far a file was stored.
enum Uploaded {
    Whole,
    /// A later version can read the rest.
    UpToNewer,
}

impl Uploader {
    pub fn new(store: LogStore, aliases: Arc<Aliases>) -> Self {
        Self { store, aliases, packer: Arc::default() }
    }
}

impl Journal {
    pub(super) async fn upload(&self, uploader: &Uploader) {
        let mut failures = 0_u32;
        loop {
            let wait = match failures {
                0 => LOOK_EVERY,
                _ => (LOOK_EVERY * 2_u32.saturating_pow(failures.min(6) - 1)).min(LONGEST_WAIT),
            };
            let next = self.bodies.lock().pop_front();
            let Some(mut held) = next else {
                let _ = tokio::time::timeout(wait, self.bodies_wake.notified()).await;
                continue;
            };
            self.uploading.store(held.length(), Relaxed);
            let uploaded = self.upload_file(uploader, &mut held).await;
            match uploaded {
                Ok(Uploaded::UpToNewer) => {
                    self.leave(held);
                    self.uploading.store(0, Relaxed);
                }
                Ok(Uploaded::Whole) => {
                    failures = 0;
                    if let Err(error) = held.remove() {
                        tracing::error!(%error, "a file of the journal whose bodies are stored cannot be removed");
                    }
                    self.uploading.store(0, Relaxed);
                }
                Err(error) => {
                    failures = failures.saturating_add(1);
                    self.meters.bodies_failures.inc();
                    tracing::warn!(error, "bodies could not be sent to the log store; they wait on disk");
                    self.bodies.lock().push_front(held);
                    self.uploading.store(0, Relaxed);
                    tokio::time::sleep(wait).await;
                }
            }
        }
    }

    /// Stores what is not stored yet of a file.
    async fn upload_file(&self, uploader: &Uploader, held: &mut ClosedSegment) -> Result<Uploaded, String> {
        let (at_once, pace) = match uploader.store.is_folder() {
            true => (TO_FOLDER, ShipPace::for_file(held.since(), SystemTime::now())),
            false => (TO_BUCKET, ShipPace::FULL),
        };
        loop {
            let began = Instant::now();
            let reader = held.reader(held.uploaded).map_err(|error| error.to_string())?;
            let (aliases, packer) = (uploader.aliases.clone(), uploader.packer.clone());
            let made = tokio::task::spawn_blocking(move || batch(reader, pace, &aliases, &mut packer.lock())).await;
            let batch = made.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
            if batch.bad > 0 {
                self.meters.bodies_lost.inc_by(batch.bad);
                tracing::error!(calls = batch.bad, segment = held.name(), "bodies cannot be read and are dropped");
            }
            let puts = batch.objects.into_iter().map(|(path, object)| async move {
                let length = object.len() as u64;
                uploader.store.put(&path, object).await.map_err(|error| error.to_string())?;
                self.meters.bodies_stored.inc();
                self.meters.bodies_bytes.inc_by(length);
                Ok::<(), String>(())
            });
            futures::stream::iter(puts).buffer_unordered(at_once).try_for_each(async |()| Ok(())).await?;
            held.uploaded = batch.end;
            if batch.is_newer {
                return Ok(Uploaded::UpToNewer);
            }
            if batch.is_last {
                return Ok(Uploaded::Whole);
            }
            pace.rest(began.elapsed()).await;
        }
    }
}

/// Makes the next objects of a file, holding no more than one body of it at a time.
fn batch(
    mut reader: Reader<impl BufRead>,
    pace: ShipPace,
    aliases: &Aliases,
    packer: &mut Packer,
) -> io::Result<UploadBatch> {
    let mut batch = UploadBatch { objects: Vec::new(), bad: 0, is_newer: false, end: reader.at(), is_last: true };
    let (mut size, mut bytes) = (0, Vec::new());
    loop {
        let (record, body) = match reader.call(&mut bytes)? {
            Ok(call) => call,
            Err(tail) => {
                batch.is_newer = tail == Tail::Unknown;
                break;
            }
        };
        match (Record::decode(record), StoredBodies::decode(body)) {
            (Ok(record), Some(body)) => {
                let path = body_path(
                    record.organisation_id.uuid(),
                    record.workspace_id.uuid(),
                    record.created_at(),
                    record.id,
                );
                let packed = packer.pack(&object(&record, &body, aliases)?)?;
                size += packed.len();
                batch.objects.push((path, packed));
            }
            (Err(Undecodable::Newer), _) => {
                batch.is_newer = true;
                break;
            }
            _ => batch.bad += 1,
        }
        batch.end = reader.at();
        if batch.objects.len() >= pace.piece(BATCH) || size >= BATCH_BYTES {
            batch.is_last = false;
            break;
        }
    }
    Ok(batch)
}
