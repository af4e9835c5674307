//! What waits to be written to Redis. The queue is bounded by bytes, because a Redis that is away for long must cost a
//! bounded amount of memory and no request any time.

use super::breaker::StoreBreaker;
use crate::cache::entry::CacheKey;
use futures::Stream;
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use uuid::Uuid;

/// The most that waits.
const MOST_BYTES: usize = 32 << 20;
/// Of one workspace.
const MOST_OF_ONE: usize = MOST_BYTES / 4;
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
    /// Held by whoever drains it.
    waiting: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<PendingWrite>>>,
    held: Mutex<HeldBytes>,
    /// Apart from that of reads, whose patience is shorter.
    pub breaker: StoreBreaker,
}

#[derive(Default)]
struct HeldBytes {
    all: usize,
    /// Of those who have any.
    workspaces: HashMap<Uuid, usize>,
}

impl HeldBytes {
    /// False when there is no room for it.
    fn take(&mut self, workspace: Uuid, size: usize) -> bool {
        let own = self.workspaces.get(&workspace).copied().unwrap_or(0).saturating_add(size);
        let all = self.all.saturating_add(size);
        if own > MOST_OF_ONE || all > MOST_BYTES {
            return false;
        }
        self.all = all;
        self.workspaces.insert(workspace, own);
        true
    }

    fn give_back(&mut self, workspace: Uuid, size: usize) {
        self.all = self.all.saturating_sub(size);
        let left = self.workspaces.get(&workspace).map_or(0, |own| own.saturating_sub(size));
        match left {
            0 => self.workspaces.remove(&workspace),
            left => self.workspaces.insert(workspace, left),
        };
    }
}

impl WriteQueue {
    pub fn new() -> Self {
        let (sender, waiting) = mpsc::unbounded_channel();
        let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
        Self { sender, waiting, held: Mutex::default(), breaker: StoreBreaker::new() }
    }

    /// False when it is full, or its workspace has its part of it.
    pub fn push(&self, write: PendingWrite) -> bool {
        let (workspace, size) = (write.key.workspace, weight(&write));
        if !self.held.lock().take(workspace, size) {
            return false;
        }
        let is_sent = self.sender.send(write).is_ok();
        if !is_sent {
            self.held.lock().give_back(workspace, size);
        }
        is_sent
    }

    /// What comes, for ever; nothing while somebody else drains it.
    pub fn waiting(&self) -> impl Stream<Item = PendingWrite> + Send + use<> {
        let waiting = self.waiting.clone().try_lock_owned().ok();
        futures::stream::unfold(waiting, |waiting| async move {
            let mut waiting = waiting?;
            waiting.recv().await.map(|write| (write, Some(waiting)))
        })
    }

    /// It is written, or never will be.
    pub fn leave(&self, write: &PendingWrite) {
        self.held.lock().give_back(write.key.workspace, weight(write));
    }
}

/// A write that has left the queue. It gives its room back however it ends.
pub struct LeavingWrite<'q> {
    pub queue: &'q WriteQueue,
    pub write: PendingWrite,
}

impl Drop for LeavingWrite<'_> {
    fn drop(&mut self) {
        self.queue.leave(&self.write);
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

    const QUARTER: usize = MOST_OF_ONE - AROUND;

    fn write(workspace: u128, bytes: usize) -> PendingWrite {
        let key = CacheKey { workspace: Uuid::from_u128(workspace), digest: [0; 32] };
        PendingWrite { organisation: Uuid::nil(), key, encoded: vec![0; bytes], ttl: Duration::from_secs(60) }
    }

    #[tokio::test]
    async fn a_full_queue_takes_nothing_more_until_something_is_written() {
        let queue = WriteQueue::new();
        for workspace in 0..4 {
            assert!(queue.push(write(workspace, QUARTER)));
        }
        assert!(!queue.push(write(9, 0)));
        let mut waiting = pin!(queue.waiting());
        assert!(pin!(queue.waiting()).next().await.is_none(), "one drains it");
        let first = waiting.next().await.unwrap();
        assert_eq!(first.encoded.len(), QUARTER);
        assert!(!queue.push(write(9, 0)), "it is under way and still held");
        queue.leave(&first);
        assert!(queue.push(write(9, QUARTER)) && !queue.push(write(0, 0)));
    }

    #[test]
    fn one_workspace_never_fills_it_alone() {
        let queue = WriteQueue::new();
        assert!(queue.push(write(1, QUARTER)) && !queue.push(write(1, 0)));
        assert!(queue.push(write(2, QUARTER)));
        queue.leave(&write(1, QUARTER));
        assert!(queue.push(write(1, 0)));
        queue.leave(&write(1, 0));
        queue.leave(&write(2, QUARTER));
        assert!(queue.held.lock().workspaces.is_empty());
    }
}
