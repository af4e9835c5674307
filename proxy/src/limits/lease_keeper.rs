//! Asks the store for leases and gives idle ones back, in a task of its own. Questions that come up while one is under
//! way are asked together.

use super::counter::Micros;
use super::postgres::{Beat, Postgres, Shrink};
use super::redis_rates::Redis;
use super::share::LeaseQuestion;
use super::{Counter, Limits};
use shared::settings;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::time::Instant;
use uuid::Uuid;

/// Questions of one transaction.
const BATCH: usize = 256;
const SWEEP_EVERY: Duration = Duration::from_millis(200);
/// Shares that are looked at in one sweep. Where there are more, they take turns: with very many groups most are idle, and
/// looking at all of them so often costs more than the requests.
const SWEPT_AT_ONCE: usize = 20_000;
/// Leases that go back in one transaction: whatever becomes idle together, the store answers in time.
const GIVEN_AT_ONCE: usize = 1000;
const TIDY_EVERY: Duration = Duration::from_secs(15);
/// While the store is away it is tried this often.
const KNOCK_EVERY: Duration = Duration::from_millis(300);

/// Everything that was noted longer ago than this is in Postgres; none while nothing is known to be. The journal says it.
type ShippedAgo = Box<dyn Fn() -> Option<Duration> + Send + Sync>;

pub struct LeaseKeeper {
    limits: Arc<Limits>,
    shipped_ago: ShippedAgo,
    store: Postgres,
    replicas: u64,
    /// Where the next sweep begins.
    shard: usize,
}

impl LeaseKeeper {
    /// `boot` names this process, in leases as in its journal.
    pub fn new(
        limits: Arc<Limits>,
        boot: Uuid,
        shipped_ago: impl Fn() -> Option<Duration> + Send + Sync + 'static,
        database: settings::Database,
    ) -> Self {
        let ttl = Duration::from_millis(limits.settings.limits_lease_ttl_ms);
        let store = Postgres::new(database, boot, ttl);
        Self { store, limits, shipped_ago: Box::new(shipped_ago), replicas: 1, shard: 0 }
    }

    /// Runs for as long as the process does.
    pub async fn run(&mut self) {
        let beat_every = Duration::from_millis(self.limits.settings.limits_lease_ttl_ms / 4);
        let (mut beaten, mut swept, mut tidied) = (None, Instant::now(), Instant::now());
        while !self.limits.is_leaving.load(Relaxed) {
            let pause = if self.limits.is_away.load(Relaxed) { KNOCK_EVERY } else { beat_every };
            if beaten.is_none_or(|at: Instant| at.elapsed() >= pause) {
                self.beat().await;
                beaten = Some(Instant::now());
            }
            let mut is_more = self.ask().await;
            if swept.elapsed() >= SWEEP_EVERY {
                match self.sweep().await {
                    true => is_more = true,
                    false => swept = Instant::now(),
                }
            }
            if tidied.elapsed() >= TIDY_EVERY {
                let tidy = self.store.tidy().await;
                self.heard(tidy);
                tidied = Instant::now();
            }
            tokio::select! {
                () = std::future::ready(()), if is_more => {}
                () = self.limits.wake.notified() => {}
                () = tokio::time::sleep(SWEEP_EVERY) => {}
            }
        }
        let left = self.store.leave().await;
        self.heard(left);
        self.limits.has_left.notify_waiters();
    }

    async fn beat(&mut self) {
        let before = self.limits.now();
        let beat = self.store.beat().await;
        let Some(Beat { clock, replicas }) = self.heard(beat) else { return };
        let limits = &self.limits;
        let after = limits.now();
        let error = clock_error(before, clock, after);
        limits.offset.fetch_add(error, Relaxed);
        if before >= limits.trusted_until.load(Relaxed) {
            limits.shares.each(|entry| entry.share.lapse(before));
        }
        let ttl = Micros::try_from(limits.settings.limits_lease_ttl_ms).unwrap_or(0).saturating_mul(1000);
        limits.trusted_until.store(before.saturating_add(error).saturating_add(ttl), Relaxed);
        self.replicas = replicas;
    }

    /// Asks for what was queued first, and says whether there is more. One batch at a time: however many ask, this process
    /// must be heard of, or it loses its rates.
    async fn ask(&mut self) -> bool {
        let queued: Vec<Counter> = {
            let mut queue = self.limits.queue.lock();
            let count = queue.len().min(BATCH);
            queue.drain(..count).collect()
        };
        if queued.is_empty() {
            return false;
        }
        let (now, trusted_until) = (self.limits.now(), self.limits.trusted_until.load(Relaxed));
        let asked: Vec<(Counter, LeaseQuestion)> = queued
            .into_iter()
            .filter_map(|counter| {
                let question =
                    self.limits.shares.with(&counter, |entry| entry.share.ask(now, Uuid::now_v7(), trusted_until))?;
                Some((counter, question))
            })
            .collect();
        let granted = self.store.grant(&asked, self.replicas).await;
        let answers = self.heard(granted);
        let now = self.limits.now();
        for (index, (counter, question)) in asked.iter().enumerate() {
            let answer = answers.as_ref().and_then(|answers| answers.get(index));
            let again = self.limits.shares.with(counter, |entry| {
                // Those who wait look again.
                entry.waiting = None;
                match answer {
                    Some(answer) => entry.share.answered(now, question, *answer),
                    None => {
                        entry.share.unanswered(now, question);
                        false
                    }
                }
            });
            if again == Some(true) {
                self.limits.queue.lock().push(counter.clone());
            }
        }
        if let Some(answers) = answers {
            self.limits.meters.grants.inc_by(answers.iter().filter(|answer| answer.granted > 0).count() as u64);
        }
        !self.limits.queue.lock().is_empty()
    }

    /// Gives back what lies idle, and says whether there is likely more.
    async fn sweep(&mut self) -> bool {
        let limits = &self.limits;
        let (now, trusted_until) = (limits.now(), limits.trusted_until.load(Relaxed));
        let shipped = now.saturating_sub((self.shipped_ago)().map_or(Micros::MAX, micros));
        let (mut shrinks, mut releases, mut ids) = (Vec::new(), Vec::new(), Vec::new());
        self.shard = limits.shares.sweep(self.shard, [SWEPT_AT_ONCE, GIVEN_AT_ONCE], |counter, entry| {
            let swept = entry.share.sweep(now, shipped, trusted_until);
            let found = swept.release.len() + usize::from(swept.shrink.is_some());
            shrinks.extend(swept.shrink.map(|(lease, amount)| Shrink { lease, amount }));
            if !swept.release.is_empty() {
                ids.extend_from_slice(&swept.release);
                releases.push((counter.clone(), swept.release));
            }
            (!swept.is_empty || entry.waiting.is_some(), found)
        });
        limits.meters.counters.set(i64::try_from(limits.shares.len()).unwrap_or(i64::MAX));
        if shrinks.is_empty() && ids.is_empty() {
            return false;
        }
        let is_full = shrinks.len() + ids.len() >= GIVEN_AT_ONCE;
        let given = self.store.give_back(&shrinks, &ids).await;
        let is_heard = self.heard(given).is_some();
        if is_heard {
            for (counter, ids) in releases {
                self.limits.shares.with(&counter, |entry| entry.share.released(&ids));
            }
        }
        is_heard && is_full
    }

    /// Notes whether the store answers, and says so when that changes.
    fn heard<T>(&self, answer: Result<T, String>) -> Option<T> {
        let was_away = self.limits.is_away.swap(answer.is_err(), Relaxed);
        match answer {
            Ok(answer) => {
                if was_away {
                    tracing::info!("the store of limits answers again");
                }
                Some(answer)
            }
            Err(error) => {
                self.limits.meters.failures.inc();
                if !was_away {
                    let then = self.limits.settings.limits_store_away;
                    tracing::error!(
                        error,
                        ?then,
                        "the store of limits does not answer; limits go on within what is leased"
                    );
                }
                None
            }
        }
    }
}

impl Limits {
    /// Connects to Redis, from where on the connection mends itself, and corrects rates there for as long as the process
    /// runs. Returns where no Redis is named.
    pub async fn follow_redis(&self) {
        let Some(url) = &self.settings.redis_url else { return };
        let patience = Duration::from_millis(self.settings.limits_wait_ms.max(50));
        loop {
            if let Some(redis) = self.redis.get() {
                return redis.send_corrections().await;
            }
            match Redis::connect(url, patience).await {
                Ok(redis) => drop(self.redis.set(redis)),
                Err(error) => {
                    self.redis_failed(&error.to_string());
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            }
        }
    }
}

/// What our clock is behind the store's. A time that lies between question and answer is no error: by how much it misses the
/// middle says only how slow the way was, and a clock that followed it would go forth and back under load.
fn clock_error(before: Micros, clock: Micros, after: Micros) -> Micros {
    if (before..=after).contains(&clock) { 0 } else { clock.saturating_sub(before / 2 + after / 2) }
}

fn micros(duration: Duration) -> Micros {
    Micros::try_from(duration.as_micros()).unwrap_or(Micros::MAX)
}

#[cfg(test)]
mod tests {
    use super::clock_error;

    #[test]
    fn a_slow_answer_is_no_error_of_the_clock() {
        for (before, clock, after, expected) in [
            (100, 100, 900, 0),
            (100, 900, 900, 0),
            (100, 1500, 300, 1300),
            (1100, 100, 1300, -1100),
            (100, 99, 101, -1),
        ] {
            assert_eq!(clock_error(before, clock, after), expected, "asked at {before}, told {clock} by {after}");
        }
    }
}
