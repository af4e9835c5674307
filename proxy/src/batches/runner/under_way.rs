//! What this process has begun of batches: how many rows, how many bytes of input they hold, and how many of answers. A row counts
//! until its result is stored, and so long the process does not end by itself.

use crate::context::metrics::batches::BatchMeters;
use crate::context::metrics::{Lane, Metrics};
use crate::engine::BatchSwitch;
use crate::net::answer_budget::{AnswerBudget, AnswerShare};
use crate::runtime::tenant_share::{Holding, ShareRule, Tenant, TenantShare};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use uuid::Uuid;

/// Of input at once. What a row holds is some times as much: its body, what becomes of it, its answer.
const MAX_BYTES: u64 = 16 << 20;
/// Of answers at once, which one answer may pass. They are held until they are stored, also while Postgres is away.
const ANSWER_BYTES: usize = 8 << 20;

pub struct UnderWay {
    counts: Mutex<Counts>,
    /// Rows by tenant. Nothing is refused here: whoever has few comes first.
    rows: Arc<TenantShare>,
    answers: AnswerBudget,
    meters: Arc<BatchMeters>,
}

#[derive(Default)]
struct Counts {
    rows: u32,
    bytes: u64,
    held: HashMap<Uuid, HeldCount>,
}

/// How much of a batch is held here: rows, and a step.
#[derive(Default)]
struct HeldCount {
    count: u32,
    cancelled: BatchSwitch,
}

/// A row that was begun, until it is dropped.
pub struct RowUnderWay {
    all: Arc<UnderWay>,
    batch: HeldBatch,
    bytes: u64,
    _row: Holding,
    answer: Arc<AnswerShare>,
    metrics: Arc<Metrics>,
}

/// The lease of a batch or of rows of it is extended until this is dropped.
pub struct HeldBatch {
    all: Arc<UnderWay>,
    id: Uuid,
    cancelled: BatchSwitch,
}

impl UnderWay {
    pub fn new(meters: Arc<BatchMeters>) -> Self {
        let rows = TenantShare::new(usize::MAX, ShareRule::EVICTING);
        Self { counts: Mutex::default(), rows, answers: AnswerBudget::new(ANSWER_BYTES), meters }
    }

    /// Rows and bytes that may be begun, of so many rows at once. One row may pass the bytes when nothing else runs.
    pub fn room(&self, most_rows: u32) -> Option<(u32, u64)> {
        let counts = self.counts.lock();
        let (rows, bytes) = (most_rows.saturating_sub(counts.rows), MAX_BYTES.saturating_sub(counts.bytes));
        (rows > 0 && bytes > 0).then_some((rows, bytes))
    }

    pub fn begin_row(self: &Arc<Self>, batch: Uuid, tenant: Tenant, bytes: u64, metrics: &Arc<Metrics>) -> RowUnderWay {
        let held = self.hold_batch(batch);
        let mut counts = self.counts.lock();
        counts.rows += 1;
        counts.bytes += bytes;
        drop(counts);
        self.meters.in_flight.inc();
        metrics.enter(Lane::Own);
        let (answer, metrics) = (self.answers.share(tenant), metrics.clone());
        let row = self.rows.hold_anyway(tenant, 1);
        RowUnderWay { all: self.clone(), batch: held, bytes, _row: row, answer, metrics }
    }

    pub fn hold_batch(self: &Arc<Self>, id: Uuid) -> HeldBatch {
        let mut counts = self.counts.lock();
        let held = counts.held.entry(id).or_default();
        held.count += 1;
        let cancelled = held.cancelled.clone();
        drop(counts);
        HeldBatch { all: self.clone(), id, cancelled }
    }

    /// Rows of this batch that are not asked yet will not be.
    pub fn cancel(&self, id: Uuid) {
        if let Some(held) = self.counts.lock().held.get(&id) {
            held.cancelled.store(true, Relaxed);
        }
    }

    /// Rows of a tenant's organisation, and of the tenant itself.
    pub fn rows_of(&self, tenant: Tenant) -> (usize, usize) {
        self.rows.held(tenant)
    }

    /// Those of which something is held.
    pub fn batches(&self) -> Vec<Uuid> {
        self.counts.lock().held.keys().copied().collect()
    }
}

impl RowUnderWay {
    pub fn batch(&self) -> Uuid {
        self.batch.id
    }

    /// Whether its batch was cancelled since it was begun.
    pub fn cancelled(&self) -> &BatchSwitch {
        &self.batch.cancelled
    }

    /// What its answer holds of what all of them may.
    pub fn answer(&self) -> Arc<AnswerShare> {
        self.answer.clone()
    }
}

impl Drop for RowUnderWay {
    fn drop(&mut self) {
        let mut counts = self.all.counts.lock();
        counts.rows -= 1;
        counts.bytes -= self.bytes;
        drop(counts);
        self.all.meters.in_flight.dec();
        self.metrics.leave(Lane::Own);
    }
}

impl Drop for HeldBatch {
    fn drop(&mut self) {
        let mut counts = self.all.counts.lock();
        if let Some(held) = counts.held.get_mut(&self.id) {
            held.count -= 1;
            if held.count == 0 {
                counts.held.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_so_many_rows_and_bytes_until_they_are_over() {
        let metrics = Arc::new(Metrics::new(&[]).unwrap());
        let all = Arc::new(UnderWay::new(metrics.batches.clone()));
        let (one, two, home) = (Uuid::from_u128(1), Uuid::from_u128(2), Tenant::test(3, 4));
        assert_eq!(all.room(2), Some((2, MAX_BYTES)));
        let first = all.begin_row(one, home, 10, &metrics);
        assert_eq!(all.room(2), Some((1, MAX_BYTES - 10)));
        let large = all.begin_row(two, home, MAX_BYTES * 2, &metrics);
        assert_eq!((all.room(2), all.room(9)), (None, None));
        assert_eq!((all.rows_of(home), all.rows_of(Tenant::test(3, 5))), ((2, 2), (2, 0)));
        let step = all.hold_batch(one);
        drop(first);
        let mut held = all.batches();
        held.sort();
        assert_eq!((held, metrics.in_flight()), (vec![one, two], 1));
        all.cancel(two);
        assert!(large.cancelled().load(Relaxed) && !step.cancelled.load(Relaxed));
        assert!(all.begin_row(two, home, 1, &metrics).cancelled().load(Relaxed), "whatever is begun of it");
        drop((large, step));
        assert_eq!((all.room(2), all.batches(), metrics.in_flight()), (Some((2, MAX_BYTES)), vec![], 0));
        assert_eq!(all.rows_of(home), (0, 0));
    }
}
