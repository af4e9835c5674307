//! The collector of an operator, and the task that sends it what is queued. One request at a time: a collector that hangs
//! costs this task its time, and nobody else theirs.

use super::TraceBatch;
use crate::journal::JournalMeters;
use crate::net::dial::{Dialer, internal_call};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, header};
use pingora_http::RequestHeader;
use shared::outbound::Origin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::sync::mpsc::Receiver;

const TRIES: u32 = 3;
const LIMIT: Duration = Duration::from_secs(5);
/// Most bytes that may be queued.
const MAX_WAITING_BYTES: usize = 32 << 20;
/// An answer is looked at only for its status.
const MAX_ANSWER: usize = 64 << 10;

pub struct Collector {
    pub dialer: Arc<Dialer>,
    pub origin: Arc<Origin>,
    pub path: PathAndQuery,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub meters: Arc<JournalMeters>,
    pub room: QueueRoom,
    /// What is queued; it outlives a task that panics.
    pub batches: Mutex<Receiver<TraceBatch>>,
}

/// Bytes of what is queued and not sent yet.
#[derive(Debug, Default)]
pub struct QueueRoom {
    taken: AtomicUsize,
}

impl QueueRoom {
    /// False when there is no room for so many bytes.
    pub fn take(&self, bytes: usize) -> bool {
        let more = |taken: usize| taken.checked_add(bytes).filter(|taken| *taken <= MAX_WAITING_BYTES);
        self.taken.fetch_update(Relaxed, Relaxed, more).is_ok()
    }

    pub fn give_back(&self, bytes: usize) {
        self.taken.fetch_sub(bytes, Relaxed);
    }
}

/// A batch that has left the queue, until it was sent or dropped, also by a panic.
struct SendingBatch<'c> {
    collector: &'c Collector,
    bytes: usize,
    spans: usize,
}

impl Drop for SendingBatch<'_> {
    fn drop(&mut self) {
        self.collector.room.give_back(self.bytes);
        self.collector.meters.spans_waiting.sub(i64::try_from(self.spans).unwrap_or(i64::MAX));
    }
}

impl Collector {
    /// Sends what is queued until nobody can queue anything any more. What the collector does not take is dropped.
    pub async fn run(&self) {
        let mut batches = self.batches.lock().await;
        while let Some(TraceBatch { body, spans }) = batches.recv().await {
            let _sending = SendingBatch { collector: self, bytes: body.len(), spans };
            match self.deliver(&body).await {
                Ok(()) => self.meters.spans.inc_by(spans as u64),
                Err(error) => {
                    self.meters.spans_dropped.inc_by(spans as u64);
                    tracing::warn!(error, spans, "the collector took no traces; they are dropped");
                }
            }
        }
    }

    async fn deliver(&self, body: &Bytes) -> Result<(), String> {
        let mut failed = String::new();
        for attempt in 0..TRIES {
            if attempt > 0 {
                tokio::time::sleep(Duration::from_millis(200) * 2_u32.pow(attempt)).await;
            }
            let posted = tokio::time::timeout(LIMIT, self.post(body.clone())).await;
            match posted.unwrap_or_else(|_| Err("no answer in time".into())) {
                Ok(200..=299) => return Ok(()),
                // Anything else of its kind would be said of the same bytes again.
                Ok(status) if !matches!(status, 429 | 502 | 503 | 504) => return Err(format!("it answered {status}")),
                Ok(status) => failed = format!("it answered {status}"),
                Err(error) => failed = error,
            }
        }
        Err(failed)
    }

    async fn post(&self, body: Bytes) -> Result<u16, String> {
        let mut head = RequestHeader::build("POST", self.path.as_str().as_bytes(), Some(4 + self.headers.len()))
            .map_err(|_| "its path is not valid")?;
        let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in &self.headers {
            let _ = head.insert_header(name.clone(), value.clone());
        }
        let upstream = self.dialer.connect(&self.origin, true).await;
        let mut upstream = upstream.map_err(|error| internal_call::spoken(error.class()))?;
        // The limit of the whole comes first.
        upstream.set_timeouts(LIMIT * 2, LIMIT * 2);
        let status = internal_call::send(&mut upstream, head, body).await?;
        internal_call::whole(&mut upstream, MAX_ANSWER).await?;
        Ok(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_bytes_are_queued_than_there_is_room_for() {
        let room = QueueRoom::default();
        assert!(room.take(MAX_WAITING_BYTES - 1) && !room.take(2) && room.take(1));
        assert!(!room.take(1) && !room.take(usize::MAX));
        room.give_back(5);
        assert!(room.take(5) && !room.take(1));
    }
}
