//! Rate limits and budgets: may this request pass, given what was used and what others are promised?
//!
//! `admission` finds the limits that apply to a request and what it may use; `usage` reads what a call used.
//!
//! One algebra for requests, tokens and money: a request *reserves* what it may use of each of its limits, all or nothing,
//! and *settles* with what it used. Replicas share a limit by leases from a store (`lease_keeper`), so that deciding is local:
//! a few uncontended locks, no I/O. Only a request that finds its lease empty waits for the one under way.

pub mod admission;
pub mod charge;
pub mod counter;
mod counter_kind;
pub mod fairness;
mod grant;
pub mod lease_keeper;
mod limit_status;
pub mod meters;
mod postgres;
mod redis_corrections;
mod redis_rates;
mod redis_reserve;
mod reservation;
mod shards;
mod share;
#[cfg(test)]
mod simulation_tests;
pub mod usage;

pub use crate::request::limit_headers::{LimitStanding, Micros, RateHeaders, RateStatus, Unit};
pub use counter::{Counter, Limit, LimitAsk, LimitKind, Scope, Window};
pub use counter_kind::CounterKind;
pub use limit_status::LimitStatus;
pub use meters::LimitMeters;
pub use postgres::release;
pub use reservation::{Due, LimitRefusal, Reservation, Spent, Why};

use crate::runtime::redis_link;
use parking_lot::Mutex;
use redis_rates::Redis;
use reservation::{HeldAmount, TakenFrom};
pub use shards::ShareHandle;
use shards::{Shards, ShareEntry, Slot, with_all};
use share::LimitVerdict;
pub use share::MAX_AMOUNT;
use shared::settings;
use shared::settings::limits::StoreAway;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::{Notify, watch};
use tokio::time::Instant;

pub struct Limits {
    settings: settings::LimitSettings,
    shares: Shards,
    /// Whether there are other replicas, and a store to share with them.
    is_shared: bool,
    /// Counters of which more is wanted.
    queue: Mutex<Vec<Counter>>,
    wake: Notify,
    /// What Postgres' clock is ahead of ours, in microseconds.
    offset: AtomicI64,
    /// How long leases of rates hold unless the store hears of us again.
    trusted_until: AtomicI64,
    /// The store did not answer when it was last asked.
    is_away: AtomicBool,
    /// Rates live there, once it is reached.
    redis: OnceLock<Redis>,
    /// It did not answer when it was last asked, and is asked again after this.
    is_redis_away: AtomicBool,
    redis_next: AtomicI64,
    is_leaving: AtomicBool,
    has_left: Notify,
    meters: Arc<LimitMeters>,
}

enum ReserveAttempt {
    Taken(Reservation),
    Refused(LimitRefusal),
    /// Until the receiver sees its sender go.
    Wait(watch::Receiver<()>),
}

/// A URL that no server can have is told when the process starts; a server that is away is waited for.
pub fn check_redis_url(settings: &settings::LimitSettings) -> anyhow::Result<()> {
    let Some(url) = &settings.redis_url else { return Ok(()) };
    redis_link::check_url(url)
}

impl Limits {
    /// For a process that shares its limits with nobody: all of each is its own, until it ends.
    pub fn alone(settings: settings::LimitSettings, meters: Arc<LimitMeters>) -> Arc<Self> {
        Self::new(settings, meters, false)
    }

    /// For one of several replicas; a `Keeper` must run for it.
    pub fn shared(settings: settings::LimitSettings, meters: Arc<LimitMeters>) -> Arc<Self> {
        Self::new(settings, meters, true)
    }

    fn new(settings: settings::LimitSettings, meters: Arc<LimitMeters>, is_shared: bool) -> Arc<Self> {
        Arc::new(Self {
            shares: Shards::new(settings.limits_max_counters),
            settings,
            is_shared,
            queue: Mutex::default(),
            wake: Notify::new(),
            offset: AtomicI64::new(0),
            trusted_until: AtomicI64::new(if is_shared { 0 } else { Micros::MAX }),
            is_away: AtomicBool::new(false),
            redis: OnceLock::new(),
            is_redis_away: AtomicBool::new(false),
            redis_next: AtomicI64::new(0),
            is_leaving: AtomicBool::new(false),
            has_left: Notify::new(),
            meters,
        })
    }

    pub fn meters(&self) -> &LimitMeters {
        &self.meters
    }

    /// Now, by Postgres' clock: windows begin at the same moment on every machine.
    pub fn now(&self) -> Micros {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Micros::try_from(since.as_micros()).unwrap_or(Micros::MAX).saturating_add(self.offset.load(Relaxed))
    }

    /// Takes what is asked of every limit, or nothing of any. Waits only while the store is being asked.
    pub async fn reserve(self: &Arc<Self>, now: Micros, asks: &[LimitAsk<'_>]) -> Result<Reservation, LimitRefusal> {
        if !self.needs_redis(asks) {
            match self.attempt(now, asks, false) {
                ReserveAttempt::Taken(reservation) => return self.counted(Ok(reservation)),
                ReserveAttempt::Refused(refusal) => return self.counted(Err(refusal)),
                // Kept apart: hardly any request waits, and none should carry what that takes.
                ReserveAttempt::Wait(waits) => {
                    return self.counted(Box::pin(self.reserve_leased(now, asks, Some(waits))).await);
                }
            }
        }
        self.counted(Box::pin(self.reserve_with_redis(now, asks)).await)
    }

    fn needs_redis(&self, asks: &[LimitAsk<'_>]) -> bool {
        let has_rates = || asks.iter().any(|ask| matches!(ask.limit.kind, LimitKind::Rate(_)));
        self.is_shared && self.settings.redis_url.is_some() && has_rates()
    }

    fn counted(&self, reserved: Result<Reservation, LimitRefusal>) -> Result<Reservation, LimitRefusal> {
        match &reserved {
            Err(LimitRefusal { why: Why::StoreAway, .. }) => self.meters.away.inc(),
            Err(_) => self.meters.refused.inc(),
            Ok(reservation) => {
                for held in reservation.held.iter().filter(|held| held.is_over) {
                    self.meters.would_have_refused(held.counter.window().is_some());
                }
            }
        }
        reserved
    }

    /// `waits` is what an attempt ended with that was made just now.
    async fn reserve_leased(
        self: &Arc<Self>,
        now: Micros,
        asks: &[LimitAsk<'_>],
        mut waits: Option<watch::Receiver<()>>,
    ) -> Result<Reservation, LimitRefusal> {
        let mut moment = now;
        let mut began = None;
        let mut is_late = false;
        loop {
            let mut waiting = match waits.take() {
                Some(waits) => waits,
                None => match self.attempt(moment, asks, is_late) {
                    ReserveAttempt::Taken(reservation) => return Ok(reservation),
                    ReserveAttempt::Refused(refusal) => return Err(refusal),
                    ReserveAttempt::Wait(waits) => waits,
                },
            };
            let (began, began_at) = *began.get_or_insert_with(|| {
                self.meters.waited.inc();
                (Instant::now(), self.now())
            });
            let longest = Duration::from_millis(self.settings.limits_wait_ms);
            let _ = tokio::time::timeout(longest.saturating_sub(began.elapsed()), waiting.changed()).await;
            is_late = began.elapsed() >= longest;
            // By the clock that dates answers, which may have been corrected meanwhile: an answer must not seem to be too old
            // to whoever waited for it.
            moment = now.saturating_add(self.now().saturating_sub(began_at));
        }
    }

    /// Decides with all shares of the request held: looks at every limit before anything is taken of one.
    fn attempt(self: &Arc<Self>, now: Micros, asks: &[LimitAsk<'_>], is_late: bool) -> ReserveAttempt {
        let trusted_until = self.trusted_until.load(Relaxed);
        let is_away = is_late || self.is_away.load(Relaxed);
        let slot = |ask: &LimitAsk<'_>| self.shares.find_or_make(now, ask.limit, ask.found);
        let slots: Vec<_> = asks.iter().map(slot).collect();
        let taken = with_all(&slots, |shares| {
            let mut waits = None;
            for (index, ask) in asks.iter().enumerate() {
                let limit = ask.limit;
                let refuse = |share: Option<&mut ShareEntry>, why| {
                    let remaining = share.map_or(0, |entry| entry.share.remaining());
                    Err(ReserveAttempt::Refused(LimitRefusal {
                        index,
                        remaining,
                        resets_at: limit.kind.ends_at(now),
                        why,
                    }))
                };
                let is_strict = matches!(limit.kind, LimitKind::Budget { strict: true, .. });
                if is_strict && ask.amount == u64::MAX && !limit.dry_run {
                    return refuse(None, Why::Unbounded);
                }
                let amount = ask.amount();
                let verdict = match shares.entry(index) {
                    Some(entry) => {
                        self.turn(entry, now, limit);
                        match entry.share.verdict(now, limit, amount, trusted_until) {
                            LimitVerdict::Wait if is_away => LimitVerdict::Away,
                            verdict => verdict,
                        }
                    }
                    // There is no room for it: as if the store could not be asked about it.
                    None => LimitVerdict::Away,
                };
                match verdict {
                    _ if limit.dry_run => {}
                    LimitVerdict::Pass => {}
                    LimitVerdict::Refuse if matches!(limit.kind, LimitKind::Rate(_)) => {
                        return refuse(shares.entry(index), Why::Rate);
                    }
                    LimitVerdict::Refuse => return refuse(shares.entry(index), Why::Budget),
                    LimitVerdict::Away if is_strict || self.settings.limits_store_away == StoreAway::Closed => {
                        return refuse(shares.entry(index), Why::StoreAway);
                    }
                    LimitVerdict::Away => {}
                    LimitVerdict::Wait => waits = waits.or(Some(index)),
                }
            }
            let Some(first) = waits else {
                let held = asks.iter().enumerate();
                let held = held.map(|(index, ask)| self.take(shares.entry(index), ask, now, trusted_until));
                return Ok(held.collect());
            };
            let mut receiver = None;
            for (index, ask) in asks.iter().enumerate().skip(first) {
                let Some(entry) = shares.entry(index) else { continue };
                let amount = ask.amount();
                if entry.share.verdict(now, ask.limit, amount, trusted_until) == LimitVerdict::Wait {
                    receiver = receiver.or_else(|| Some(entry.subscribe()));
                    if entry.share.wait(now, ask.limit.kind, amount, trusted_until) {
                        self.ask_for(&ask.limit.counter);
                    }
                }
            }
            // Whoever waits has found a share to wait for, so there is one.
            Err(ReserveAttempt::Wait(receiver.unwrap_or_else(|| watch::channel(()).1)))
        });
        match taken {
            Ok(held) => ReserveAttempt::Taken(Reservation { held, slots, limits: self.clone() }),
            Err(otherwise) => otherwise,
        }
    }

    fn turn(&self, entry: &mut ShareEntry, now: Micros, limit: &Limit) {
        match self.is_shared {
            true => entry.share.turn(now, limit),
            false => entry.share.turn_alone(now, limit),
        }
    }

    /// After every limit let it pass.
    fn take(
        &self,
        entry: Option<&mut ShareEntry>,
        ask: &LimitAsk<'_>,
        now: Micros,
        trusted_until: Micros,
    ) -> HeldAmount {
        let (limit, amount) = (ask.limit, ask.amount());
        let held = |starts_at, ends_at| HeldAmount {
            counter: limit.counter.clone(),
            starts_at,
            ends_at,
            place: TakenFrom::Nowhere,
            amount: 0,
            cap: limit.cap,
            remaining: 0,
            is_dry_run: limit.dry_run,
            is_strict: matches!(limit.kind, LimitKind::Budget { strict: true, .. }),
            is_over: false,
        };
        let Some(ShareEntry { share, .. }) = entry else {
            self.meters.unleased.inc();
            return held(limit.kind.starts_at(now), limit.kind.ends_at(now));
        };
        let mut held = held(share.starts_at(), share.ends_at());
        match share.verdict(now, limit, amount, trusted_until) {
            LimitVerdict::Pass => {
                if let Some(lease) = share.take(now, amount) {
                    (held.place, held.amount) = (TakenFrom::Lease(lease), amount);
                }
                if self.is_shared && share.runs_low(now) {
                    self.ask_for(&limit.counter);
                }
            }
            LimitVerdict::Wait => {
                self.meters.unleased.inc();
                if share.wait(now, limit.kind, amount, trusted_until) {
                    self.ask_for(&limit.counter);
                }
            }
            LimitVerdict::Refuse => held.is_over = true,
            LimitVerdict::Away => self.meters.unleased.inc(),
        }
        held.remaining = share.remaining();
        held
    }

    fn settle(&self, now: Micros, held: &HeldAmount, slot: Option<&Slot>, spent: u64) {
        let lease = match held.place {
            TakenFrom::Lease(lease) => lease,
            TakenFrom::Redis => {
                if let Some(redis) = self.redis.get() {
                    redis.correct(&held.counter, held.starts_at, held.amount, spent);
                }
                return;
            }
            TakenFrom::Nowhere => return,
        };
        if let Some(mut entry) = slot.map(Slot::lock) {
            entry.share.settle(now, lease, held.amount, spent);
            // What came back may be enough for those who wait.
            entry.waiting = None;
        }
    }

    /// Gives everything back, once nothing runs any more and the journal is in Postgres.
    pub async fn give_back_leases(&self) {
        const PATIENCE: Duration = Duration::from_secs(2);
        if self.is_shared {
            let left = self.has_left.notified();
            self.is_leaving.store(true, Relaxed);
            self.wake.notify_one();
            if tokio::time::timeout(PATIENCE, left).await.is_err() {
                tracing::warn!("parts of limits could not be given back; the next process of this folder does it");
            }
        }
    }

    fn ask_for(&self, counter: &Counter) {
        self.queue.lock().push(counter.clone());
        self.wake.notify_one();
    }
}

impl ShareEntry {
    fn subscribe(&mut self) -> watch::Receiver<()> {
        self.waiting.get_or_insert_with(|| watch::channel(()).0).subscribe()
    }
}

impl LimitAsk<'_> {
    /// What is reserved. A request that may use more than a limit allows at all would otherwise never pass a rate; one
    /// that nobody can put a bound on takes the least. Never nothing: that would pass a limit of zero.
    fn amount(&self) -> u64 {
        match (self.amount, self.limit.kind) {
            (u64::MAX, _) => 1,
            (amount, LimitKind::Budget { strict: true, .. }) => amount,
            (amount, _) => amount.min(self.limit.cap.max(1)),
        }
    }
}

#[cfg(test)]
mod tests;
