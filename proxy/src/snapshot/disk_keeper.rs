//! Keeps the copy on disk in step with memory, at its own pace and off the async threads.
//!
//! The first change after a quiet time is written at once; a burst is written as one. Writing costs the size of the
//! world, so a large world also rests longer: it takes at most a twentieth of one core.

use super::disk::{Folder, SnapshotView};
use super::{FeedProgress, Snapshot};
use crate::runtime::background::compute;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use uuid::Uuid;

pub struct DiskKeeper {
    snapshot: Arc<Snapshot>,
    folder: Arc<Folder>,
    pause: Duration,
    /// The copy this process wrote last, and the version of the rows in it.
    written: Option<(Uuid, u64)>,
}

/// What the disk needs to say the same as memory.
#[derive(Debug, PartialEq, Eq)]
enum DiskNeed {
    Nothing,
    Confirm(Uuid),
    Save,
}

fn need(written: Option<(Uuid, u64)>, progress: &FeedProgress) -> DiskNeed {
    match written {
        // What came from the disk is on the disk.
        _ if progress.reads == 0 => DiskNeed::Nothing,
        Some((copy, version)) if version == progress.version => DiskNeed::Confirm(copy),
        _ => DiskNeed::Save,
    }
}

impl DiskKeeper {
    pub fn new(snapshot: Arc<Snapshot>, folder: Arc<Folder>, pause: Duration) -> Self {
        Self { snapshot, folder, pause, written: None }
    }

    pub async fn run(mut self, mut shutdown: watch::Receiver<bool>) {
        let mut progress = self.snapshot.subscribe();
        loop {
            tokio::select! {
                changed = progress.changed() => if changed.is_err() { break },
                _ = shutdown.wait_for(|stop| *stop) => break,
            }
            let begun = Instant::now();
            self.keep().await;
            let rest = self.pause.max(begun.elapsed() * 20);
            tokio::select! {
                () = tokio::time::sleep(rest) => {}
                _ = shutdown.wait_for(|stop| *stop) => break,
            }
        }
        // What came during the last rest.
        self.keep().await;
    }

    async fn keep(&mut self) {
        let view = self.snapshot.view();
        let (folder, written) = (Arc::clone(&self.folder), self.written);
        let written_view = compute(move || keep(&folder, &view, written)).await;
        match written_view {
            Ok(Ok(written)) => self.written = written,
            Ok(Err(error)) => tracing::warn!(%error, "the snapshot's disk copy could not be written"),
            Err(error) => tracing::error!(%error, "writing the snapshot's disk copy failed"),
        }
    }
}

fn keep(folder: &Folder, view: &SnapshotView, written: Option<(Uuid, u64)>) -> std::io::Result<Option<(Uuid, u64)>> {
    let Some(confirmed) = view.progress.confirmed else { return Ok(written) };
    match need(written, &view.progress) {
        DiskNeed::Nothing => return Ok(written),
        DiskNeed::Confirm(copy) if folder.confirm(copy, confirmed.at)? => return Ok(written),
        DiskNeed::Confirm(_) | DiskNeed::Save => {}
    }
    match folder.save(view, confirmed.at)? {
        Some(copy) => Ok(Some((copy, view.progress.version))),
        None => Ok(written),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_disk_is_written_on_change_and_only_confirmed_without() {
        let copy = Uuid::from_u128(1);
        for (written, reads, version, expected) in [
            (None, 0, 0, DiskNeed::Nothing),
            (None, 1, 1, DiskNeed::Save),
            (Some((copy, 1)), 2, 1, DiskNeed::Confirm(copy)),
            (Some((copy, 1)), 3, 2, DiskNeed::Save),
        ] {
            let progress = FeedProgress { reads, version, ..FeedProgress::default() };
            assert_eq!(need(written, &progress), expected, "{written:?} {progress:?}");
        }
    }
}
