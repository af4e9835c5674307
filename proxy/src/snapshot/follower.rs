//! Keeps the snapshot in step with Postgres for as long as the process lives: starts from the disk copy if it may,
//! connects, listens for notices, reads what changed, and comes back after every failure. Requests never wait for it.

use super::disk::{Folder, UnusableCopy};
use super::disk_keeper::DiskKeeper;
use super::feed::{Feed, FeedError, News};
use super::{Snapshot, backoff};
use crate::runtime::background::compute;
use anyhow::Context as _;
use chrono::Utc;
use futures::future::poll_fn;
use shared::db::{self, explain, migrate};
use shared::settings;
use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_postgres::AsyncMessage;

/// Least time between two reads: a burst of writes is read in a few batches, not one by one.
const BREATH: Duration = Duration::from_millis(25);

/// Between two looks at a schema that is still too old.
const SCHEMA_PAUSE: Duration = Duration::from_secs(1);

/// Should this process freeze or vanish, its session must not hold a place in Postgres for long.
const SESSION: &str =
    "SET lock_timeout = '20s'; SET idle_in_transaction_session_timeout = '60s'; LISTEN gateway_changes";

pub struct Follower {
    snapshot: Arc<Snapshot>,
    database: settings::Database,
    settings: settings::Snapshot,
}

impl Follower {
    pub fn new(snapshot: Arc<Snapshot>, database: settings::Database, settings: settings::Snapshot) -> Self {
        Self { snapshot, database, settings }
    }

    /// Returns after `shutdown` turns true, or its sender is gone, with the disk copy written.
    pub async fn run(self, shutdown: watch::Receiver<bool>) {
        let folder = Arc::new(Folder::at(&self.settings.snapshot_dir));
        self.restore(&folder).await;
        let pause = Duration::from_millis(self.settings.snapshot_save_ms);
        let keep = DiskKeeper::new(Arc::clone(&self.snapshot), folder, pause).run(shutdown.clone());
        let (mut stop, stop_fetching) = (shutdown.clone(), shutdown);
        let follow = async {
            tokio::select! {
                () = self.follow() => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
            self.snapshot.connected.store(false, Ordering::Relaxed);
        };
        let fetch = async {
            let mut stop = stop_fetching;
            tokio::select! {
                () = self.snapshot.unheld.serve(self.database.clone()) => {}
                _ = stop.wait_for(|stop| *stop) => {}
            }
        };
        tokio::join!(keep, follow, fetch);
    }

    async fn restore(&self, folder: &Arc<Folder>) {
        // A follower that was restarted has data that is newer than its copy.
        if self.snapshot.is_loaded() {
            return;
        }
        let most = Duration::from_secs(self.settings.snapshot_max_age_s);
        let (folder, snapshot) = (Arc::clone(folder), Arc::clone(&self.snapshot));
        match compute(move || folder.load(&snapshot, Utc::now(), most)).await {
            Ok(Ok(age)) => tracing::info!(age_s = age.as_secs(), "the snapshot starts from its disk copy"),
            Ok(Err(UnusableCopy::Missing)) => {}
            Ok(Err(reason)) => tracing::warn!(%reason, "the snapshot's disk copy is not used"),
            Err(error) => tracing::error!(%error, "reading the snapshot's disk copy failed"),
        }
    }

    async fn follow(&self) {
        let mut feed = Feed::default();
        let mut failures = 0;
        loop {
            let Err(error) = self.session(&mut feed, &mut failures).await;
            self.snapshot.connected.store(false, Ordering::Relaxed);
            self.snapshot.resting.store(false, Ordering::Relaxed);
            self.snapshot.failures.fetch_add(1, Ordering::Relaxed);
            failures += 1;
            let wait = backoff::delay(failures, rand::random());
            let wait_ms = wait.as_millis() as u64;
            tracing::warn!(error = format!("{error:#}"), failures, wait_ms, "the snapshot does not follow Postgres");
            sleep(wait).await;
        }
    }

    /// From one connection to its loss.
    async fn session(&self, feed: &mut Feed, failures: &mut u32) -> anyhow::Result<Infallible> {
        let (mut client, connection) = db::connect_listen(&self.database).await?;
        let mut notices = drive(connection);
        // Before the first read, so that no change falls in between.
        client.batch_execute(SESSION).await.map_err(FeedError::from)?;
        // Until admin has migrated there is nothing to read; of a schema that is not ours nothing is believed.
        migrate::wait_until_current(&client, SCHEMA_PAUSE).await?;
        let poll = Duration::from_millis(self.settings.snapshot_poll_ms);
        loop {
            let news = feed.read(&mut client, &self.snapshot, Utc::now()).await?;
            *failures = 0;
            self.snapshot.connected.store(true, Ordering::Relaxed);
            self.report(&news);
            sleep(BREATH).await;
            self.snapshot.resting.store(notices.is_empty(), Ordering::Relaxed);
            tokio::select! {
                notice = notices.recv() => notice.context("the connection to Postgres was lost")?,
                () = sleep(poll) => {}
            }
            self.snapshot.resting.store(false, Ordering::Relaxed);
        }
    }

    fn report(&self, news: &News) {
        let cursor = self.snapshot.cursor();
        match news.reload {
            Some(reason) => {
                let rows = self.snapshot.rows().map(|(_, rows)| rows).sum::<usize>();
                tracing::info!(?reason, rows, cursor, "the snapshot was read whole");
            }
            None => tracing::debug!(?news.merged, cursor, "the snapshot was brought up to date"),
        }
    }
}

/// Drives the connection in a task that ends with it. However many notices arrive, one is pending at most; the
/// channel closes when the connection is lost.
fn drive(connection: db::Connection) -> mpsc::Receiver<()> {
    let (notify, notices) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut connection = pin!(connection);
        loop {
            match poll_fn(|context| connection.poll_message(context)).await {
                Some(Ok(AsyncMessage::Notification(_))) => drop(notify.try_send(())),
                Some(Ok(_)) => {}
                Some(Err(error)) => {
                    tracing::debug!(error = explain(&error), "the feed's connection to Postgres ended");
                    break;
                }
                None => break,
            }
        }
    });
    notices
}
