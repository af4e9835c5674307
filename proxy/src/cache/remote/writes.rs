//! What waits to be written to Redis. The queue is bounded by bytes, because a Redis that is away for long must cost a
//! bounded amount of memory and no request any time.

use super::breaker::StoreBreaker;
use crate::cache::entry::CacheKey;
use crate::runtime::tenant_share::{Holding, ShareRule, TenantShare};
use futures::Stream;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use uuid::Uuid;

/// The most that waits, and of one workspace.
const MAX_BYTES: usize = 32 << 20;
const MAX_OF_WORKSPACE: usize = MAX_BYTES / 4;
/// What an entry takes in the queue beside its bytes.
const AROUND: usize = 256;

pub struct PendingWrite {
    pub organisation: Uuid,
    pub key: CacheKey,
    pub encoded: Vec<u8>,
    pub ttl: Duration,
}

/// A write and its room in the queue, which is given back however the write ends.
pub struct QueuedWrite {
    pub write: PendingWrite,
    _room: Holding,
}

pub struct WriteQueue {
    sender: mpsc::UnboundedSender<QueuedWrite>,
    /// Held by whoever drains it.
    waiting: Arc<tokio::sync::Mutex<mpsc::UnboundedReceiver<QueuedWrite>>>,
    room: Arc<TenantShare>,
    /// Apart from that of reads, whose patience is shorter.
    pub breaker: StoreBreaker,
}

impl WriteQueue {
    pub fn new() -> Self {
        let (sender, waiting) = mpsc::unbounded_channel();
        let waiting = Arc::new(tokio::sync::Mutex::new(waiting));
        let rule = ShareRule { workspace: MAX_OF_WORKSPACE, ..ShareRule::REFUSING };
        Self { sender, waiting, room: TenantShare::new(MAX_BYTES, rule), breaker: StoreBreaker::new() }
    }

    /// False when it is full, or its tenant has its part of it.
    pub fn push(&self, write: PendingWrite) -> bool {
        match self.room.hold(write.key.tenant, weight(&write)) {
            Ok(room) => self.sender.send(QueuedWrite { write, _room: room }).is_ok(),
            Err(_) => false,
        }
    }

    /// What comes, for ever; nothing while somebody else drains it.
    pub fn waiting(&self) -> impl Stream<Item = QueuedWrite> + Send + use<> {
        let waiting = self.waiting.clone().try_lock_owned().ok();
        futures::stream::unfold(waiting, |waiting| async move {
            let mut waiting = waiting?;
            waiting.recv().await.map(|write| (write, Some(waiting)))
        })
    }
}

fn weight(write: &PendingWrite) -> usize {
    write.encoded.len().saturating_add(AROUND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::tenant_share::Tenant;
    use futures::StreamExt as _;
    use std::pin::pin;

    const QUARTER: usize = MAX_OF_WORKSPACE - AROUND;

    fn write(tenant: Tenant, bytes: usize) -> PendingWrite {
        let key = CacheKey { tenant, digest: [0; 32] };
        PendingWrite { organisation: tenant.organisation, key, encoded: vec![0; bytes], ttl: Duration::from_secs(60) }
    }

    #[tokio::test]
    async fn a_full_queue_takes_nothing_more_until_something_is_written() {
        let queue = WriteQueue::new();
        let tenant = Tenant::test(1, 1);
        assert!(queue.push(write(tenant, QUARTER)) && !queue.push(write(tenant, 0)));
        let mut waiting = pin!(queue.waiting());
        assert!(pin!(queue.waiting()).next().await.is_none(), "one drains it");
        let first = waiting.next().await.unwrap();
        assert_eq!(first.write.encoded.len(), QUARTER);
        assert!(!queue.push(write(tenant, 0)), "it is under way and still held");
        drop(first);
        assert!(queue.push(write(tenant, QUARTER)) && !queue.push(write(tenant, 0)));
    }

    #[test]
    fn one_organisation_never_fills_it_alone() {
        let queue = WriteQueue::new();
        let taken = (0..16).filter(|own| queue.push(write(Tenant::test(1, *own), QUARTER / 2))).count();
        assert!((2..=4).contains(&taken), "{taken}");
        assert!(queue.push(write(Tenant::test(2, 1), QUARTER)));
        assert!(queue.push(write(Tenant::test(3, 1), QUARTER / 4)));
    }
}
