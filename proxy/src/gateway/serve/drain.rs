//! How the process stops. SIGTERM: not ready at once, listeners closed, running requests finished up to a limit, and
//! out as soon as nothing runs. SIGQUIT: the same after handing the listening sockets to a new process, and nothing at
//! all when no new process asks for them. SIGINT: now, also in the midst of one of these. Rows of batches that were begun may take longer than streams: nobody
//! would bring back what is cut, and whoever asks for them again pays again.
//!
//! Pingora alone would sleep the whole grace period even when idle, and cut what still runs at its end.

use super::successor;
use crate::gateway::fresh_connections::{self, FIRST_REQUEST};
use async_trait::async_trait;
use pingora_core::server::{ShutdownSignal, ShutdownSignalWatch, ShutdownWatch};
use proxy::batches::runner::MAX_DRAIN_TIME;
use proxy::context::metrics::Metrics;
use proxy::journal::Journal;
use proxy::limits::Limits;
use proxy::mcp::DrainNotice;
use shared::supervisor::Supervisor;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

/// A connection accepted in the last moment needs this long to be seen.
const QUIET: Duration = Duration::from_millis(300);
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub struct Drain {
    leaving: AtomicBool,
    handed_over: watch::Sender<bool>,
    metrics: Arc<Metrics>,
    journal: Option<Arc<Journal>>,
    limits: Arc<Limits>,
    /// Streams without an end of their own, which would hold the process until the time limit.
    listeners: Arc<DrainNotice>,
    limit: Duration,
    supervisor: Arc<Supervisor>,
}

impl Drain {
    pub fn new(
        metrics: Arc<Metrics>,
        journal: Option<Arc<Journal>>,
        limits: Arc<Limits>,
        listeners: Arc<DrainNotice>,
        limit: Duration,
        supervisor: Arc<Supervisor>,
    ) -> Self {
        Self {
            leaving: AtomicBool::new(false),
            handed_over: watch::Sender::new(false),
            metrics,
            journal,
            limits,
            listeners,
            limit,
            supervisor,
        }
    }

    pub fn is_leaving(&self) -> bool {
        self.leaving.load(Ordering::Relaxed)
    }

    /// Resolves when a successor has the sockets and serves in our place.
    pub async fn handed_over(&self) {
        let _ = self.handed_over.subscribe().wait_for(|over| *over).await;
    }

    fn begin(&self) {
        self.leaving.store(true, Ordering::Relaxed);
        self.supervisor.leave();
        self.metrics.draining.set(1);
        self.listeners.announce();
    }

    /// Ends the process once shutdown was announced and nothing has been in flight for a moment.
    pub async fn exit_when_idle(&self, mut shutdown: ShutdownWatch) {
        if shutdown.wait_for(|announced| *announced).await.is_err() {
            return;
        }
        if !self.is_leaving() {
            // Shutdown without SIGTERM: the sockets were handed over.
            self.handed_over.send_replace(true);
        }
        self.begin();
        let began = Instant::now();
        let end = began + self.limit;
        let mut hurry = signal(SignalKind::interrupt()).expect("a process may listen to its signals");
        let mut quiet_since = began;
        while quiet_since.elapsed() < QUIET {
            if Instant::now() >= end && !self.awaits_rows(began) {
                tracing::warn!(in_flight = self.metrics.in_flight(), "the drain timeout is over; leaving anyway");
                break;
            }
            tokio::select! {
                () = sleep(LOOK_EVERY) => {}
                _ = hurry.recv() => {
                    tracing::warn!(in_flight = self.metrics.in_flight(), "SIGINT: leaving now");
                    break;
                }
            }
            let is_awaited = fresh_connections::count() > 0 && began.elapsed() < FIRST_REQUEST;
            if self.metrics.in_flight() > 0 || is_awaited {
                quiet_since = Instant::now();
            }
        }
        let is_stored = match &self.journal {
            Some(journal) => journal.ship_the_rest().await,
            None => true,
        };
        if is_stored {
            self.limits.give_back_leases().await;
        }
        tracing::info!("left");
        std::process::exit(0);
    }

    fn awaits_rows(&self, began: Instant) -> bool {
        self.metrics.batches.in_flight.get() > 0 && began.elapsed() < MAX_DRAIN_TIME
    }
}

/// How long Pingora may wait at most: `exit_when_idle` always ends earlier.
pub fn longest(limit: Duration) -> Duration {
    limit.max(MAX_DRAIN_TIME) + Duration::from_secs(60)
}

/// The signals, in the form that Pingora asks for.
pub struct Signals {
    pub drain: Arc<Drain>,
    /// Where a new process asks for the sockets.
    pub upgrade_sock: PathBuf,
    /// How long it may take to be ready.
    pub patience: Duration,
    /// Whether there are no more sockets than can be sent.
    pub can_hand_over: bool,
}

#[async_trait]
impl ShutdownSignalWatch for Signals {
    async fn recv(&self) -> ShutdownSignal {
        let listen = |kind| signal(kind).expect("a process may listen to its signals");
        let (mut quit, mut term, mut int) =
            (listen(SignalKind::quit()), listen(SignalKind::terminate()), listen(SignalKind::interrupt()));
        let mut is_asked_to_hand_over = false;
        loop {
            tokio::select! {
                _ = quit.recv() => {
                    is_asked_to_hand_over = self.can_hand_over;
                    if !self.can_hand_over {
                        tracing::error!("SIGQUIT, but so many listening sockets cannot be handed over: this proxy goes on (PROXY_THREADS)");
                    }
                }
                _ = successor::waits(&self.upgrade_sock), if is_asked_to_hand_over => {
                    return ShutdownSignal::GracefulUpgrade;
                }
                _ = sleep(self.patience), if is_asked_to_hand_over => {
                    is_asked_to_hand_over = false;
                    let socket = self.upgrade_sock.display();
                    tracing::error!(
                        %socket,
                        "SIGQUIT, but no new proxy waits for the listening sockets: this one goes on (start the new one first, with --upgrade and the same UPGRADE_SOCK)"
                    );
                }
                _ = term.recv() => {
                    self.drain.begin();
                    return ShutdownSignal::GracefulTerminate;
                }
                _ = int.recv() => return ShutdownSignal::FastShutdown,
            }
        }
    }
}
