//! What waits to be written to Redis. The queue is bounded by bytes, because a Redis that is away for long must cost a
//! bounded amount of memory and no request any time.

use super::breaker::StoreBreaker;
use crate::cache::entry::CacheKey;
use futures::Stream;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;
use tokio::sync::mpsc;
use uuid::Uuid;

/// The most that waits.
const MOST_BYTES: usize = 32 << 20;
/// What an entry takes in the queue beside its bytes.
const AROUND: usize = 256;

pub struct PendingWrite {
    pub organisation: Uuid,
    pub key: CacheKey,
    pub encoded: Vec<u8>,
    pub ttl: Duration,
}

pub struct WriteQueue {
    sender: mpsc::UnboundedSender<PendingWrite>,
    /// Until somebody drains it.
    waiting: Mutex<Option<mpsc::UnboundedReceiver<PendingWrite>>>,
    bytes: AtomicUsize,
    /// Apart from that of reads, whose patience is shorter.
    pub breaker: StoreBreaker,
}

impl WriteQueue {
    pub fn new() -> Self {
        let (sender, waiting) = mpsc::unbounded_channel();
        let (waiting, bytes) = (Mutex::new(Some(waiting)), AtomicUsize::new(0));
        Self { sender, waiting, bytes, breaker: StoreBreaker::new() }
    }

    /// False when it is full.
    pub fn push(&self, write: PendingWrite) -> bool {
        let size = weight(&write);
        let before = self.bytes.fetch_add(size, Relaxed);
        if before.saturating_add(size) <= MOST_BYTES && self.sender.send(write).is_ok() {
            return true;
        }
        self.bytes.fetch_sub(size, Relaxed);
        false
    }

    /// What comes, for ever; nothing for all but the first who asks.
    pub fn waiting(&self) -> impl Stream<Item = PendingWrite> + Send + use<> {
        let waiting = self.waiting.lock().take();
        futures::stream::unfold(waiting, |waiting| async move {
            let mut waiting = waiting?;
            waiting.recv().await.map(|write| (write, Some(waiting)))
        })
    }

    /// It is written, or never will be.
    pub fn leave(&self, write: &PendingWrite) {
        self.bytes.fetch_sub(weight(write), Relaxed);
    }
}

fn weight(write: &PendingWrite) -> usize {
    write.encoded.len().saturating_add(AROUND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt as _;
    use std::pin::pin;

    fn write(bytes: usize) -> PendingWrite {
        let key = CacheKey { workspace: Uuid::nil(), digest: [0; 32] };
        PendingWrite { organisation: Uuid::nil(), key, encoded: vec![0; bytes], ttl: Duration::from_secs(60) }
    }

    #[tokio::test]
    async fn a_full_queue_takes_nothing_more_until_something_is_written() {
        const QUARTER: usize = MOST_BYTES / 4 - AROUND;
        let queue = WriteQueue::new();
        for _ in 0..4 {
            assert!(queue.push(write(QUARTER)));
        }
        assert!(!queue.push(write(0)));
        let mut waiting = pin!(queue.waiting());
        assert!(pin!(queue.waiting()).next().await.is_none(), "one drains it");
        let first = waiting.next().await.unwrap();
        assert_eq!(first.encoded.len(), QUARTER);
        assert!(!queue.push(write(0)), "it is under way and still held");
        queue.leave(&first);
        assert!(queue.push(write(QUARTER)) && !queue.push(write(0)));
    }
}
