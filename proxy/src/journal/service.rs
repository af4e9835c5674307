//! The journal's tasks on the background threads (`runtime::background`): ship what is closed, sync what is open, adopt
//! what others left, keep within bounds. Each is a task of its own for the supervisor, and none of them waits for another:
//! a log store that hangs holds up bodies alone, and Postgres records alone.

use super::Journal;
use super::damaged;
use super::late_results::MAX_FILE_WAIT;
use super::segment::{ClosedSegment, MAX_PANICS, Mark, sync_folder};
use super::ship::{Shipped, Shipper, Unshipped};
use super::upload::Uploader;
use crate::runtime::background::compute;
use shared::settings::journal::Fsync;
use shared::supervisor::Pulse;
use shared::telemetry::LogLimit;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// How often the folder is searched for files of processes that are gone.
const ADOPT_EVERY: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A file that is being written while others are sent is closed at this age at the latest.
const MAX_OPEN: Duration = Duration::from_secs(1);
const MAX_WAIT: Duration = Duration::from_secs(15);
/// A leaving process tries this long to send the last of its logs. What is left waits on disk for the next one.
const MAX_SHIPPING_WAIT: Duration = Duration::from_secs(5);
/// Files of a leaving process wait so long for hooks of their calls.
const LEAVING_FILE_WAIT: Duration = Duration::from_secs(2);
/// The longest that a shipment waits for tokens to be counted.
const MAX_COUNT_WAIT: Duration = Duration::from_secs(60);
/// And so long for its traces, which nobody keeps.
const TRACED: Duration = Duration::from_secs(2);

impl Journal {
    /// All tasks but the one that syncs, for as long as the process does.
    pub async fn run(self: &Arc<Self>, shipper: &mut Shipper, uploader: &Uploader) {
        tokio::join!(self.ship(shipper), self.upload(uploader), self.keep(), self.run_late());
    }

    /// Runs the hooks of calls that nobody waited for.
    pub async fn run_late(&self) {
        self.late.run(|calls| self.meters.note_skipped(calls)).await;
    }

    /// Records and promises → Postgres.
    pub async fn ship(&self, shipper: &mut Shipper) {
        shipper.begin_anew();
        let interval = Duration::from_millis(self.settings.journal_ship_ms.max(10));
        let mut adopted: Option<Instant> = None;
        let mut failures = 0_u32;
        loop {
            let adopts = adopted.is_none_or(|at| at.elapsed() >= ADOPT_EVERY);
            if adopts {
                self.adopt();
                adopted = Some(Instant::now());
            }
            // While there is enough to send only what has waited for long is closed: fuller files are cheaper to send. What
            // cannot be sent is not divided further.
            let age = if self.closed.lock().is_empty() { Duration::ZERO } else { MAX_OPEN };
            if age.is_zero() || failures == 0 {
                self.harvest(age);
            }
            let shipped = self.ship_closed(shipper).await;
            if shipped && adopts {
                self.bury(shipper).await;
                self.erase_damaged(shipper).await;
            }
            failures = if shipped { 0 } else { failures.saturating_add(1) };
            self.is_empty.send_replace(shipped && self.backlog().0 == 0 && self.bodies_backlog() == 0);
            if shipped && self.has_ready() {
                continue;
            }
            let wait = (interval * 2_u32.saturating_pow(failures.min(8))).min(MAX_WAIT.max(interval));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.wake.notified() => {}
            }
        }
    }

    /// Sends the files one after the other that are closed now. False when one could not be sent.
    async fn ship_closed(&self, shipper: &mut Shipper) -> bool {
        let count = self.closed.lock().len();
        for _ in 0..count {
            let Some(mut shipping) = self.take_ready() else { break };
            self.count_tokens().await;
            let Some(held) = &mut shipping.file else { break };
            match shipper.ship(held, &self.uncounted, &self.late).await {
                Ok(shipped) => {
                    let Some(mut held) = shipping.file.take() else { break };
                    let name = held.name();
                    let gone = match shipped {
                        Shipped::Whole => held.remove(),
                        Shipped::ButBodies => held.keep_for_bodies().map(|()| self.keep_for_bodies(held)),
                        Shipped::InPart => held.set_aside().map(drop),
                        Shipped::UpToNewer => {
                            self.leave(held);
                            Ok(())
                        }
                    };
                    if let Err(error) = gone {
                        tracing::error!(%error, segment = name, "a shipped file of the journal cannot be removed");
                    }
                    self.note_shipped();
                }
                Err(Unshipped { error }) => {
                    self.meters.ship_failures.inc();
                    tracing::warn!(error, "logs could not be sent to Postgres; they wait on disk");
                    return false;
                }
            }
        }
        self.note_shipped();
        true
    }

    /// The oldest file that waits for no hooks of its calls.
    fn take_ready(&self) -> Option<ShippingFile<'_>> {
        let mut closed = self.closed.lock();
        let index = closed.iter().position(|held| self.is_ready(held))?;
        closed.remove(index).map(|held| ShippingFile { journal: self, index, file: Some(held) })
    }

    fn has_ready(&self) -> bool {
        self.closed.lock().iter().any(|held| self.is_ready(held))
    }

    fn is_ready(&self, held: &ClosedSegment) -> bool {
        let Some(closed) = held.closed else { return true };
        let wait = if self.is_leaving.load(Relaxed) { LEAVING_FILE_WAIT } else { MAX_FILE_WAIT };
        closed.elapsed() >= wait || self.late.is_done_until(closed.into())
    }

    /// Which file would be sent next.
    #[cfg(test)]
    pub(super) fn take_ready_for_test(&self) -> Option<usize> {
        self.take_ready().map(|shipping| shipping.index)
    }

    /// What a bug in sending does.
    #[cfg(test)]
    pub(super) fn panic_while_shipping_for_test(&self) {
        let _shipping = self.take_ready();
        panic!("a record that nobody expected");
    }

    /// What dead processes held of limits goes back, now that all they spent is stored.
    async fn bury(&self, shipper: &mut Shipper) {
        for mark in Mark::dead(&self.settings.journal_dir).unwrap_or_default() {
            let boot = mark.boot;
            match shipper.bury(boot).await {
                Ok(()) => {
                    tracing::info!(%boot, "gave back what a process held of limits that is gone");
                    // If it stays, the next look gives back nothing.
                    let _ = mark.remove();
                }
                Err(Unshipped { error }) => {
                    tracing::warn!(error, %boot, "what a dead process held of limits could not be given back yet");
                    return;
                }
            }
        }
    }

    /// What cannot be read may hold people who were erased: their organisation's files go.
    async fn erase_damaged(&self, shipper: &mut Shipper) {
        if !damaged::is_any(&self.settings.journal_dir) {
            return;
        }
        let erasures = match shipper.erasures().await {
            Ok(erasures) => erasures,
            Err(Unshipped { error }) => {
                tracing::warn!(error, "which logs were erased is not known yet; files that were set aside stay");
                return;
            }
        };
        let (searched, folder) = (self.searched.clone(), self.settings.journal_dir.clone());
        let erase = move || searched.erase(&folder, &erasures);
        if let Ok(Err(error)) = compute(erase).await {
            self.failed(&error);
        }
    }

    /// A long text takes milliseconds; this thread has other things to do. Where it takes too long, the rough figures of
    /// the records count.
    async fn count_tokens(&self) {
        if self.uncounted.has_texts() {
            let uncounted = self.uncounted.clone();
            let _ = tokio::time::timeout(MAX_COUNT_WAIT, compute(move || uncounted.count())).await;
        }
    }

    /// Sets the gauges of what is not in Postgres yet. Called when they are read: a task that has died would leave them
    /// as they were.
    pub fn measure(&self) {
        let (bytes, oldest) = self.backlog();
        self.meters.backlog_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        let lag = oldest.and_then(|oldest| SystemTime::now().duration_since(oldest).ok()).unwrap_or_default();
        self.meters.lag_seconds.set(lag.as_secs_f64());
        self.meters.bodies_backlog_bytes.set(i64::try_from(self.bodies_backlog()).unwrap_or(i64::MAX));
    }

    /// What must go on while a shipment waits for Postgres.
    pub async fn keep(&self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // A disk that was full may have room again although no call comes.
            if self.is_failing.load(Relaxed) {
                self.probe();
            }
            self.bound();
        }
    }

    /// Whether open files are synced at intervals, by a thread that calls `sync_at_intervals`.
    pub fn is_synced_at_intervals(&self) -> bool {
        self.settings.journal_fsync == Fsync::Interval
    }

    /// Syncs what is open, for as long as the process runs. It blocks, for seconds on a busy disk, so it has a thread of its
    /// own that nothing else can hold up.
    pub fn sync_at_intervals(&self, pulse: &Pulse) {
        let every = Duration::from_millis(self.settings.journal_fsync_ms.max(10));
        loop {
            std::thread::sleep(every);
            pulse.beat();
            self.sync_open();
        }
    }

    fn sync_open(&self) {
        let handles = self.handles();
        if handles.is_empty() {
            return;
        }
        let synced =
            handles.iter().try_for_each(File::sync_data).and_then(|()| sync_folder(&self.settings.journal_dir));
        if let Err(error) = synced {
            self.meters.write_failures.inc();
            static UNSYNCED: LogLimit = LogLimit::new();
            if let Some(skipped) = UNSYNCED.pass() {
                tracing::error!(%error, skipped, "the journal could not be synced");
            }
        }
    }

    /// Sends what there is before the process ends, if Postgres takes it soon. True when everything was sent.
    pub async fn ship_the_rest(&self) -> bool {
        let mut is_empty: watch::Receiver<bool> = self.is_empty.subscribe();
        self.is_empty.send_replace(false);
        self.is_leaving.store(true, Relaxed);
        let sent = async {
            loop {
                self.wake.notify_one();
                self.bodies_wake.notify_one();
                let look = tokio::time::timeout(Duration::from_millis(100), is_empty.wait_for(|empty| *empty)).await;
                if look.is_ok() {
                    return;
                }
            }
        };
        let is_sent = tokio::time::timeout(MAX_SHIPPING_WAIT, sent).await.is_ok();
        if !is_sent {
            tracing::warn!("some logs or bodies could not be sent; they wait on disk for the next process");
        }
        let traced = async {
            while self.meters.spans_waiting.get() > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        if tokio::time::timeout(TRACED, traced).await.is_err() {
            tracing::warn!("the collector has not taken all traces; those are dropped");
        }
        is_sent
    }
}

/// A file that is being sent. It goes back to its place in the line unless it is taken out, also when sending it panics or is
/// given up: only a file that is known to be here counts as not shipped yet.
struct ShippingFile<'j> {
    journal: &'j Journal,
    index: usize,
    file: Option<ClosedSegment>,
}

impl Drop for ShippingFile<'_> {
    fn drop(&mut self) {
        let Some(mut held) = self.file.take() else { return };
        held.panics += u32::from(std::thread::panicking());
        if held.panics >= MAX_PANICS {
            self.journal.note_lost(&held);
            self.journal.set_aside(held, "sending it panicked each time");
            return;
        }
        let mut closed = self.journal.closed.lock();
        let index = self.index.min(closed.len());
        closed.insert(index, held);
    }
}
