//! Who follows logs on this admin, and the way of events to them.

use super::cursor::Cursor;
use super::events::{self, Skipped};
use super::position::Position;
use super::watchers::{self, Watcher};
use super::{MAX_ROWS_PER_SECOND, MAX_STALL, MAX_VIEWERS, MAX_WAITING, PERIOD, RESUMABLE_SECONDS};
use crate::http::backpressure::db_queue::DbQueue;
use crate::http::{ApiError, Query};
use crate::log_data::{LogSearch, LogView};
use bytes::Bytes;
use prometheus::{IntCounter, IntGauge};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::{Notify, mpsc, watch};
use uuid::Uuid;

const TOO_MANY: ApiError = ApiError::RateLimited {
    message: "Too many follow logs here at once; try again shortly, or list them (GET /v1/logs)",
    retry_after: 15,
};

/// Which logs somebody follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TailQuestion {
    pub view: LogView,
    pub query: Query,
}

impl TailQuestion {
    pub fn search(&self) -> LogSearch<'_> {
        LogSearch { view: &self.view, query: &self.query, since: None }
    }
}

/// One for each process.
pub struct LogTail {
    measures: TailMeasures,
    viewers: Mutex<HashMap<Uuid, Viewer>>,
    /// Whose leases are to be given back.
    left: Mutex<Vec<Uuid>>,
    came: Notify,
    is_closed: watch::Sender<bool>,
}

/// Metrics of it.
#[derive(Clone)]
pub struct TailMeasures {
    pub viewers: IntGauge,
    pub sent: IntCounter,
    pub skipped: IntCounter,
}

/// Somebody who follows logs, as the looks at arrivals know them.
struct Viewer {
    watcher: Watcher,
    question: Arc<TailQuestion>,
    position: Position,
    /// Of what was missed, nothing is known any more: the next look begins anew.
    is_lost: bool,
    /// Left out since the last event.
    skipped: Skipped,
    /// Rows that may still be sent in this second.
    allowance: usize,
    sender: mpsc::Sender<Bytes>,
    /// Since when nothing is read.
    stalled: Option<Instant>,
}

/// What a look needs to know of a viewer.
#[derive(Clone)]
pub struct ViewerState {
    pub id: Uuid,
    pub organisation: Uuid,
    pub question: Arc<TailQuestion>,
    pub position: Position,
    pub is_lost: bool,
    pub allowance: usize,
}

/// What a look has for a viewer.
pub struct Delivery {
    /// Whose view and filters these are the logs of.
    pub question: Arc<TailQuestion>,
    /// The events of `logs` logs.
    pub events: Bytes,
    pub logs: usize,
    pub skipped: Skipped,
    /// Before and behind all of it.
    pub begins: Cursor,
    pub ends: Cursor,
    pub position: Position,
}

/// The end of the way where somebody reads. Dropping it ends the watch.
pub struct Follower {
    tail: Arc<LogTail>,
    id: Uuid,
    receiver: mpsc::Receiver<Bytes>,
    is_closed: watch::Receiver<bool>,
    /// What is to be read before anything else.
    pub opening: Bytes,
}

impl LogTail {
    pub fn new(measures: TailMeasures) -> Arc<Self> {
        Arc::new(Self {
            measures,
            viewers: Mutex::default(),
            left: Mutex::default(),
            came: Notify::new(),
            is_closed: watch::Sender::new(false),
        })
    }

    /// Begins to follow, behind what arrived until now or behind a cursor; refused where too many do.
    pub async fn open(
        self: &Arc<Self>,
        db: &DbQueue,
        watcher: Uuid,
        question: TailQuestion,
        cursor: Option<Cursor>,
    ) -> Result<Follower, ApiError> {
        if *self.is_closed.borrow() || self.viewers().len() >= MAX_VIEWERS {
            return Err(TOO_MANY);
        }
        let id = Uuid::new_v4();
        let watcher = Watcher { id, organisation: question.view.organisation_id, watcher };
        let begun = watchers::open(&mut *db.get().await?, watcher).await?.ok_or(TOO_MANY)?;
        let now = begun.position.cursor(begun.position.number, begun.position.settled, begun.moment.seconds);
        // Only what was noted without a pause can be shown without one.
        let is_resumable = |cursor: &Cursor| {
            cursor.seconds >= begun.noted_since && cursor.seconds > begun.moment.seconds - RESUMABLE_SECONDS
        };
        let mut opening = events::opening(cursor.filter(is_resumable).unwrap_or(now)).to_vec();
        if cursor.is_some_and(|cursor| !is_resumable(&cursor)) {
            opening.extend_from_slice(events::gap(now, Skipped::UNKNOWN).as_bytes());
        }
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let viewer = Viewer {
            watcher,
            question: Arc::new(question),
            position: cursor.filter(is_resumable).map_or(begun.position, Position::after),
            is_lost: false,
            skipped: Skipped::default(),
            allowance: MAX_ROWS_PER_SECOND,
            sender,
            stalled: None,
        };
        self.viewers().insert(id, viewer);
        self.measures.viewers.set(self.count() as i64);
        self.came.notify_one();
        let is_closed = self.is_closed.subscribe();
        Ok(Follower { tail: self.clone(), id, receiver, is_closed, opening: opening.into() })
    }

    /// Ends every stream, and lets none begin.
    pub fn close(&self) {
        self.is_closed.send_replace(true);
    }

    pub fn count(&self) -> usize {
        self.viewers().len()
    }

    pub(super) async fn until_somebody_came(&self) {
        self.came.notified().await;
    }

    pub(super) fn states(&self) -> Vec<ViewerState> {
        let state = |(id, viewer): (&Uuid, &Viewer)| ViewerState {
            id: *id,
            organisation: viewer.watcher.organisation,
            question: viewer.question.clone(),
            position: viewer.position.clone(),
            is_lost: viewer.is_lost,
            allowance: viewer.allowance,
        };
        self.viewers().iter().map(state).collect()
    }

    pub(super) fn watchers(&self) -> Vec<Watcher> {
        self.viewers().values().map(|viewer| viewer.watcher).collect()
    }

    /// Their arrivals were not noted all of the time.
    pub(super) fn lose(&self, ids: &[Uuid]) {
        let mut viewers = self.viewers();
        ids.iter().for_each(|id| {
            if let Some(viewer) = viewers.get_mut(id) {
                viewer.is_lost = true;
            }
        });
    }

    pub(super) fn take_left(&self) -> Vec<Uuid> {
        std::mem::take(&mut *self.left.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Gives a viewer its part; what it does not take is counted, and who takes nothing for long is let go.
    pub(super) fn deliver(&self, id: Uuid, delivery: &Delivery, now: Instant) {
        let mut viewers = self.viewers();
        let Some(viewer) = viewers.get_mut(&id) else { return };
        if *viewer.question != *delivery.question {
            // Its view has changed since the look began.
            viewer.position = delivery.position.clone();
            viewer.skipped.add(Skipped::UNKNOWN);
            return;
        }
        let mut skipped = delivery.skipped;
        let outcome = viewer.send(delivery, now);
        if outcome.is_none() {
            skipped.logs += delivery.logs as u64;
        }
        viewer.position = delivery.position.clone();
        viewer.is_lost = false;
        let sent = outcome.unwrap_or(0);
        let per_period = MAX_ROWS_PER_SECOND * PERIOD.as_millis() as usize / 1000;
        viewer.allowance = (viewer.allowance.saturating_sub(sent) + per_period).min(MAX_ROWS_PER_SECOND);
        if viewer.stalled.is_some_and(|since| now.duration_since(since) > MAX_STALL) {
            viewers.remove(&id);
        }
        self.measures.sent.inc_by(sent as u64);
        self.measures.skipped.inc_by(skipped.logs);
    }

    fn viewers(&self) -> MutexGuard<'_, HashMap<Uuid, Viewer>> {
        self.viewers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Viewer {
    /// How many logs were sent; none when there is no room for them.
    fn send(&mut self, delivery: &Delivery, now: Instant) -> Option<usize> {
        let is_nothing = delivery.events.is_empty() && delivery.skipped.is_none();
        if is_nothing && self.skipped.is_none() {
            // A viewer to whom nothing is sent does not stall.
            return Some(0);
        }
        let mut bytes = Vec::new();
        if !self.skipped.is_none() {
            bytes.extend_from_slice(events::gap(delivery.begins, self.skipped).as_bytes());
        }
        let is_whole = bytes.is_empty() && delivery.skipped.is_none();
        if !is_whole {
            bytes.extend_from_slice(&delivery.events);
        }
        if !delivery.skipped.is_none() {
            bytes.extend_from_slice(events::gap(delivery.ends, delivery.skipped).as_bytes());
        }
        // All viewers of a view share the bytes of its events.
        let bytes = if is_whole { delivery.events.clone() } else { bytes.into() };
        match self.sender.try_send(bytes) {
            Ok(()) => {
                (self.skipped, self.stalled) = (Skipped::default(), None);
                Some(delivery.logs)
            }
            Err(_) => {
                self.skipped.add(delivery.skipped);
                self.skipped.add(Skipped { logs: delivery.logs as u64, is_unknown: false });
                self.stalled.get_or_insert(now);
                None
            }
        }
    }
}

impl Follower {
    /// The next events; none when the stream is over.
    pub async fn next(&mut self) -> Option<Bytes> {
        tokio::select! {
            biased;
            // An error is the end of the process's state, which is the end of the stream too.
            _ = self.is_closed.wait_for(|is_closed| *is_closed) => None,
            events = self.receiver.recv() => events,
        }
    }

    /// What the follower may see by now. What waits for it is from before.
    pub fn see(&mut self, view: LogView) {
        let mut viewers = self.tail.viewers();
        if let Some(viewer) = viewers.get_mut(&self.id)
            && viewer.question.view != view
        {
            viewer.question = Arc::new(TailQuestion { view, query: viewer.question.query.clone() });
            while self.receiver.try_recv().is_ok() {
                viewer.skipped.add(Skipped::UNKNOWN);
            }
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.tail.viewers().remove(&self.id);
        self.tail.measures.viewers.set(self.tail.count() as i64);
        self.tail.left.lock().unwrap_or_else(PoisonError::into_inner).push(self.id);
        self.tail.came.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log_data::view::VisibleWorkspaces;

    fn new_tail() -> Arc<LogTail> {
        let counter = |name: &str| IntCounter::new(name, "Of a test.").unwrap();
        let viewers = IntGauge::new("viewers", "Of a test.").unwrap();
        LogTail::new(TailMeasures { viewers, sent: counter("sent"), skipped: counter("skipped") })
    }

    /// What was sent and left out by now.
    fn counted(tail: &LogTail) -> (u64, u64) {
        (tail.measures.sent.get(), tail.measures.skipped.get())
    }

    fn viewer(tail: &LogTail) -> (Uuid, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        let (id, organisation_id) = (Uuid::new_v4(), Uuid::nil());
        let view = LogView { organisation_id, workspaces: VisibleWorkspaces::All, user_id: None, shows_metadata: true };
        let viewer = Viewer {
            watcher: Watcher { id, organisation: organisation_id, watcher: id },
            question: Arc::new(TailQuestion { view, query: Query::default() }),
            position: position(),
            is_lost: false,
            skipped: Skipped::default(),
            allowance: MAX_ROWS_PER_SECOND,
            sender,
            stalled: None,
        };
        tail.viewers().insert(id, viewer);
        (id, receiver)
    }

    fn position() -> Position {
        Position { from: 1, settled: 1, number: 0, seen: Arc::default() }
    }

    fn delivery(tail: &LogTail, logs: usize, skipped: u64) -> Delivery {
        let cursor = position().cursor(1, 1, 1);
        let events = "event: log\n\n".repeat(logs).into();
        let skipped = Skipped { logs: skipped, is_unknown: false };
        let question = tail.states()[0].question.clone();
        Delivery { question, events, logs, skipped, begins: cursor, ends: cursor, position: position() }
    }

    fn read(receiver: &mut mpsc::Receiver<Bytes>) -> String {
        String::from_utf8(receiver.try_recv().unwrap().to_vec()).unwrap()
    }

    #[test]
    fn what_a_viewer_does_not_take_is_counted_in_the_next_gap() {
        let tail = new_tail();
        let (id, mut receiver) = viewer(&tail);
        let now = Instant::now();
        for _ in 0..MAX_WAITING {
            tail.deliver(id, &delivery(&tail, 1, 0), now);
        }
        assert_eq!(counted(&tail), (4, 0));
        tail.deliver(id, &delivery(&tail, 3, 4), now);
        assert_eq!(counted(&tail), (4, 7), "no room");
        (0..MAX_WAITING).for_each(|_| assert_eq!(read(&mut receiver), "event: log\n\n"));
        tail.deliver(id, &delivery(&tail, 0, 0), now);
        assert!(read(&mut receiver).ends_with("event: gap\ndata: {\"skipped\":7}\n\n"));
        tail.deliver(id, &delivery(&tail, 1, 2), now);
        assert_eq!(counted(&tail), (5, 9));
        let text = read(&mut receiver);
        assert!(text.starts_with("event: log") && text.ends_with("data: {\"skipped\":2}\n\n"), "{text}");
    }

    #[test]
    fn who_reads_nothing_for_long_is_let_go() {
        let tail = new_tail();
        let (id, mut receiver) = viewer(&tail);
        let now = Instant::now();
        for _ in 0..=MAX_WAITING {
            tail.deliver(id, &delivery(&tail, 1, 0), now);
        }
        tail.deliver(id, &delivery(&tail, 1, 0), now + MAX_STALL);
        assert_eq!(tail.count(), 1);
        tail.deliver(id, &delivery(&tail, 1, 0), now + MAX_STALL + PERIOD);
        assert_eq!(tail.count(), 0);
        (0..MAX_WAITING).for_each(|_| drop(read(&mut receiver)));
        assert_eq!(receiver.try_recv(), Err(mpsc::error::TryRecvError::Disconnected));
    }

    #[test]
    fn what_was_found_for_an_earlier_view_is_not_delivered() {
        let tail = new_tail();
        let (id, receiver) = viewer(&tail);
        let is_closed = tail.is_closed.subscribe();
        let mut follower = Follower { tail: tail.clone(), id, receiver, is_closed, opening: Bytes::new() };
        let before = delivery(&tail, 2, 0);
        let now = Instant::now();
        tail.deliver(id, &before, now);
        let view = tail.states()[0].question.view.clone();
        follower.see(LogView { user_id: Some(Uuid::nil()), ..view });
        tail.deliver(id, &before, now);
        assert!(follower.receiver.try_recv().is_err(), "neither what waited nor what was under way");
        tail.deliver(id, &delivery(&tail, 1, 0), now);
        let text = read(&mut follower.receiver);
        assert!(text.contains("{\"skipped\":null}") && text.ends_with("event: log\n\n"), "{text}");
    }

    #[test]
    fn a_second_has_so_many_rows() {
        let tail = new_tail();
        let (id, _receiver) = viewer(&tail);
        let allowance = || tail.states()[0].allowance;
        assert_eq!(allowance(), MAX_ROWS_PER_SECOND);
        tail.deliver(id, &delivery(&tail, MAX_ROWS_PER_SECOND, 0), Instant::now());
        assert_eq!(allowance(), MAX_ROWS_PER_SECOND / 2, "a period later");
        tail.deliver(id, &delivery(&tail, 0, 0), Instant::now());
        tail.deliver(id, &delivery(&tail, 0, 0), Instant::now());
        assert_eq!(allowance(), MAX_ROWS_PER_SECOND);
    }
}
