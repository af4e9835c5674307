//! The journal's tasks on the background threads (`runtime::background`): ship what is closed, sync what is open, adopt
//! what others left, keep within bounds.

use super::Journal;
use super::segment::{Mark, sync_folder};
use super::ship::{Shipped, Shipper, Unshipped};
use super::upload::Uploader;
use shared::settings::journal::Fsync;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant, SystemTime};
use tokio::sync::watch;

/// How often the folder is searched for files of processes that are gone.
const ADOPT_EVERY: Duration = Duration::from_secs(10);
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A file that is being written while others are sent is closed at this age at the latest.
const LONGEST_OPEN: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(15);
/// A leaving process tries this long to send the last of its logs. What is left waits on disk for the next one.
const FAREWELL: Duration = Duration::from_secs(5);
/// And so long for its traces, which nobody keeps.
const TRACED: Duration = Duration::from_secs(2);

impl Journal {
    /// Runs for as long as the process does.
    pub async fn run(self: &Arc<Self>, shipper: &mut Shipper, uploader: &Uploader) {
        tokio::join!(self.ship(shipper), self.upload(uploader), self.keep());
    }

    async fn ship(&self, shipper: &mut Shipper) {
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
            let age = if self.closed.lock().is_empty() { Duration::ZERO } else { LONGEST_OPEN };
            if age.is_zero() || failures == 0 {
                self.harvest(age);
            }
            let shipped = self.ship_closed(shipper).await;
            if shipped && adopts {
                self.bury(shipper).await;
            }
            failures = if shipped { 0 } else { failures.saturating_add(1) };
            self.is_empty.send_replace(shipped && self.backlog().0 == 0 && self.bodies_backlog() == 0);
            if shipped && !self.closed.lock().is_empty() {
                continue;
            }
            let wait = (interval * 2_u32.saturating_pow(failures.min(8))).min(LONGEST_WAIT.max(interval));
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
            let Some(mut held) = self.closed.lock().pop_front() else { break };
            self.count_untold().await;
            let skipped = self.late.run().await;
            if skipped > 0 {
                self.meters.late_skipped.inc_by(skipped);
                tracing::warn!(
                    skipped,
                    "guardrails with `async` were skipped: more wait than there is room or time for"
                );
            }
            match shipper.ship(&mut held, &self.untold, &self.late).await {
                Ok(shipped) => {
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
                    self.closed.lock().push_front(held);
                    return false;
                }
            }
        }
        self.note_shipped();
        true
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

    /// A long text takes milliseconds; this thread has other things to do.
    async fn count_untold(&self) {
        if self.untold.has_texts() {
            let untold = self.untold.clone();
            let _ = tokio::task::spawn_blocking(move || untold.count()).await;
        }
    }

    /// What must go on while a shipment waits for Postgres.
    async fn keep(&self) {
        let sync_every = Duration::from_millis(self.settings.journal_fsync_ms.max(10));
        let mut synced = Instant::now();
        loop {
            tokio::time::sleep(LOOK_EVERY.min(sync_every)).await;
            let (bytes, oldest) = self.backlog();
            self.meters.backlog_bytes.set(i64::try_from(bytes).unwrap_or(i64::MAX));
            let lag = oldest.and_then(|oldest| SystemTime::now().duration_since(oldest).ok()).unwrap_or_default();
            self.meters.lag_seconds.set(lag.as_secs_f64());
            // A disk that was full may have room again although no call comes.
            if self.is_failing.load(Relaxed) {
                self.probe();
            }
            self.bound();
            self.count_untold().await;
            if self.settings.journal_fsync == Fsync::Interval && synced.elapsed() >= sync_every {
                let (handles, folder) = (self.handles(), self.settings.journal_dir.clone());
                if !handles.is_empty() {
                    let sync = move || handles.iter().try_for_each(File::sync_data).and_then(|()| sync_folder(&folder));
                    // Syncing can take long on a busy disk; this thread has other things to do.
                    let _ = tokio::task::spawn_blocking(sync).await;
                }
                synced = Instant::now();
            }
        }
    }

    /// Sends what there is before the process ends, if Postgres takes it soon. True when everything was sent.
    pub async fn farewell(&self) -> bool {
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
        let is_sent = tokio::time::timeout(FAREWELL, sent).await.is_ok();
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
