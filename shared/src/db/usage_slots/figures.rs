//! What calls add up to. Everything is added exactly: money as a whole number of its smallest unit.

use super::counted_call::CountedCall;
use super::sketch::Sketch;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    pub requests: u64,
    /// Those that name their user.
    pub user_requests: u64,
    pub errors: u64,
    pub req_units: u64,
    pub res_units: u64,
    /// Money is in 10⁻¹⁰ US cents (`MONEY_SCALE`).
    pub cost: u128,
    pub simple_hits: u64,
    pub semantic_hits: u64,
    pub simple_saved: u128,
    pub semantic_saved: u128,
    pub saved: u128,
    /// Milliseconds, of all and of those that the cache answered.
    pub response_time: u64,
    pub hit_time: u64,
    /// Answered well after a retry, and by a later target.
    pub retried: u64,
    pub fallen: u64,
    /// Microseconds since 1970; of no meaning where there are no requests.
    pub first_seen: i64,
    pub last_seen: i64,
    pub sketch: Sketch,
}

/// Decimals of money.
pub const MONEY_SCALE: u32 = 10;

impl Figures {
    pub fn add_call(&mut self, call: &CountedCall<'_>) {
        self.add_sums(call);
        self.sketch.add(call.response_time);
    }

    /// The same without its response time among the others, for whom nobody asks for a percentile.
    pub fn add_sums(&mut self, call: &CountedCall<'_>) {
        self.see(call.created_at.timestamp_micros(), call.created_at.timestamp_micros());
        self.requests += 1;
        self.user_requests += u64::from(call.user.is_some());
        self.errors += u64::from(!call.is_success);
        self.req_units = self.req_units.saturating_add(call.req_units);
        self.res_units = self.res_units.saturating_add(call.res_units);
        self.cost += call.cost;
        self.saved += call.saved;
        self.response_time += u64::from(call.response_time.max(0).unsigned_abs());
        if call.is_hit() {
            self.hit_time += u64::from(call.response_time.max(0).unsigned_abs());
        }
        if call.is_simple_hit() {
            self.simple_hits += 1;
            self.simple_saved += call.saved;
        } else if call.is_hit() {
            self.semantic_hits += 1;
            self.semantic_saved += call.saved;
        }
        self.retried += u64::from(call.is_success && call.retries > 0);
        self.fallen += u64::from(call.is_success && call.attempt > 0);
    }

    pub fn merge(&mut self, other: &Self) {
        self.merge_sums(other);
        self.sketch.merge(&other.sketch);
    }

    /// The same without response times one by one, for whoever asks for no percentile.
    pub fn merge_sums(&mut self, other: &Self) {
        if other.requests == 0 {
            return;
        }
        self.see(other.first_seen, other.last_seen);
        self.requests += other.requests;
        self.user_requests += other.user_requests;
        self.errors += other.errors;
        self.req_units = self.req_units.saturating_add(other.req_units);
        self.res_units = self.res_units.saturating_add(other.res_units);
        self.cost += other.cost;
        self.simple_hits += other.simple_hits;
        self.semantic_hits += other.semantic_hits;
        self.simple_saved += other.simple_saved;
        self.semantic_saved += other.semantic_saved;
        self.saved += other.saved;
        self.response_time += other.response_time;
        self.hit_time += other.hit_time;
        self.retried += other.retried;
        self.fallen += other.fallen;
    }

    /// Takes away what was added before. When the first and the last of what is left were seen is not known.
    pub fn subtract(&mut self, other: &Self) {
        self.requests = self.requests.saturating_sub(other.requests);
        self.user_requests = self.user_requests.saturating_sub(other.user_requests);
        self.errors = self.errors.saturating_sub(other.errors);
        self.req_units = self.req_units.saturating_sub(other.req_units);
        self.res_units = self.res_units.saturating_sub(other.res_units);
        self.cost = self.cost.saturating_sub(other.cost);
        self.simple_hits = self.simple_hits.saturating_sub(other.simple_hits);
        self.semantic_hits = self.semantic_hits.saturating_sub(other.semantic_hits);
        self.simple_saved = self.simple_saved.saturating_sub(other.simple_saved);
        self.semantic_saved = self.semantic_saved.saturating_sub(other.semantic_saved);
        self.saved = self.saved.saturating_sub(other.saved);
        self.response_time = self.response_time.saturating_sub(other.response_time);
        self.hit_time = self.hit_time.saturating_sub(other.hit_time);
        self.retried = self.retried.saturating_sub(other.retried);
        self.fallen = self.fallen.saturating_sub(other.fallen);
        self.sketch.subtract(&other.sketch);
    }

    /// Before they are counted.
    fn see(&mut self, first: i64, last: i64) {
        let is_first = self.requests == 0;
        self.first_seen = if is_first { first } else { self.first_seen.min(first) };
        self.last_seen = if is_first { last } else { self.last_seen.max(last) };
    }
}
