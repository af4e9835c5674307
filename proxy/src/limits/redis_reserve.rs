//! Reserving rates in Redis, where all replicas count together: one round trip instead of a lease. Requests without a
//! rate never ask; while Redis does not answer, at most a few requests wait for it.

use super::Limits;
use super::counter::{self, Limit, LimitAsk, LimitKind, Micros};
use super::redis_rates::{Redis, Taken};
use super::reservation::{HeldAmount, LimitRefusal, Reservation, TakenFrom, Why};
use shared::settings::limits::StoreAway;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// While Redis is away it is asked this often.
const KNOCK_EVERY: Micros = counter::SECOND / 5;

impl Limits {
    /// Budgets by leases first, because they are near; then all rates at once.
    pub(super) async fn reserve_with_redis(
        self: &Arc<Self>,
        now: Micros,
        asks: &[LimitAsk<'_>],
    ) -> Result<Reservation, LimitRefusal> {
        let is_rate = |index: &usize| matches!(asks[*index].limit.kind, LimitKind::Rate(_));
        let (rates, budgets): (Vec<usize>, Vec<usize>) = (0..asks.len()).partition(is_rate);
        let refuse = |index: usize, remaining, why| {
            let resets_at = asks[index].limit.kind.ends_at(now);
            Err(LimitRefusal { index, remaining, resets_at, why })
        };
        // Nobody needs to be asked about these, nor be there to answer.
        let is_closed = |index: &usize| asks[*index].limit.cap == 0 && !asks[*index].limit.dry_run;
        if let Some(index) = rates.iter().copied().find(is_closed) {
            return refuse(index, 0, Why::Rate);
        }
        let leased: Vec<LimitAsk<'_>> = budgets.iter().map(|index| asks[*index]).collect();
        let leased = self.reserve_leased(now, &leased, None).await;
        let mut reservation = leased.map_err(|refusal| LimitRefusal { index: budgets[refusal.index], ..refusal })?;
        let wanted: Vec<(&Limit, u64)> =
            rates.iter().map(|index| (asks[*index].limit, asks[*index].amount())).collect();
        let taken = match self.redis.get() {
            Some(redis) => self.taken_from(redis, now, &wanted).await,
            None => Err(()),
        };
        let used = match taken {
            Ok(Taken::All(used)) => Some(used),
            Ok(Taken::Refused { index, used }) => {
                let index = rates.get(index).copied().unwrap_or(0);
                return refuse(index, asks[index].limit.cap.saturating_sub(used), Why::Rate);
            }
            Err(()) => match self.settings.limits_store_away {
                StoreAway::Closed => return refuse(rates[0], 0, Why::StoreAway),
                StoreAway::Open => None,
            },
        };
        for (place, (index, (limit, amount))) in rates.iter().zip(wanted).enumerate() {
            let used = used.as_ref().map(|used| used.get(place).copied().unwrap_or(0));
            if used.is_none() {
                self.meters.unleased.inc();
            }
            let held = HeldAmount {
                counter: limit.counter.clone(),
                starts_at: limit.kind.starts_at(now),
                ends_at: limit.kind.ends_at(now),
                place: if used.is_some() { TakenFrom::Redis } else { TakenFrom::Nowhere },
                amount,
                cap: limit.cap,
                remaining: limit.cap.saturating_sub(used.unwrap_or(0)),
                is_dry_run: limit.dry_run,
                is_strict: false,
                is_over: used.is_some_and(|used| used > limit.cap),
            };
            // Rates come in the order of the asks, so those before it are in their places already.
            let at = (*index).min(reservation.held.len());
            reservation.held.insert(at, held);
            reservation.slots.insert(at, None);
        }
        Ok(reservation)
    }

    async fn taken_from(&self, redis: &Redis, now: Micros, wanted: &[(&Limit, u64)]) -> Result<Taken, ()> {
        let is_away = self.is_redis_away.load(Relaxed);
        if is_away && !self.may_knock(now) {
            return Err(());
        }
        // A connection that is being mended keeps whoever asks waiting, for longer than an answer may take.
        let patience = Duration::from_millis(self.settings.limits_wait_ms);
        let taken = match tokio::time::timeout(patience, redis.take(now, wanted)).await {
            Ok(taken) => taken.map_err(|error| error.to_string()),
            Err(_) => Err("it took too long".to_owned()),
        };
        let taken = taken.map_err(|error| self.redis_failed(&error))?;
        if is_away && self.is_redis_away.swap(false, Relaxed) {
            tracing::info!("Redis answers again");
        }
        Ok(taken)
    }

    /// While Redis is away one call now and then finds out whether it is back; the others do not wait for it.
    fn may_knock(&self, now: Micros) -> bool {
        let next = self.redis_next.load(Relaxed);
        // Further ahead it was put off only by a clock that has been set back since.
        let is_due = now >= next || next > now + KNOCK_EVERY;
        is_due && self.redis_next.compare_exchange(next, now + KNOCK_EVERY, Relaxed, Relaxed).is_ok()
    }

    /// Says so once, however many calls meet it.
    pub(super) fn redis_failed(&self, error: &str) {
        self.meters.failures.inc();
        self.redis_next.fetch_max(self.now().saturating_add(KNOCK_EVERY), Relaxed);
        if !self.is_redis_away.swap(true, Relaxed) {
            let then = self.settings.limits_store_away;
            tracing::error!(error, ?then, "Redis does not answer; rates cannot be counted");
        }
    }
}
