//! Rates in Redis or Valkey: windows are counters there, and one script checks and takes all rates of a request, so
//! that no window ever admits more than its cap. Budgets stay in Postgres, whose journal knows what was spent.
//!
//! The keys of an organisation share one hash tag: a script may touch only keys of one node of a Cluster.

use super::counter::{Counter, Limit, Micros, SECOND};
use super::redis_corrections::{Corrections, Sums};
use crate::runtime::redis_link::RedisLink;
use futures::StreamExt as _;
use redis::aio::ConnectionLike;
use redis::{RedisError, Script};
use shared::telemetry::{Brief, LogLimit};
use std::fmt::Write as _;
use std::sync::LazyLock;
use std::time::Duration;

/// Takes all, or says which of them has not enough and how much of it is used. A dry run takes and never refuses.
static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "for i = 1, #KEYS do
             local used = tonumber(redis.call('GET', KEYS[i]) or '0')
             if ARGV[4 * i] == '0' and used + tonumber(ARGV[4 * i - 3]) > tonumber(ARGV[4 * i - 2]) then
                 return {i, used}
             end
         end
         local answer = {0}
         for i = 1, #KEYS do
             answer[i + 1] = redis.call('INCRBY', KEYS[i], ARGV[4 * i - 3])
             redis.call('PEXPIRE', KEYS[i], ARGV[4 * i - 1])
         end
         return answer",
    )
});

/// A window that is over is not brought back.
static CORRECT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        "for i = 1, #KEYS do
             if redis.call('EXISTS', KEYS[i]) == 1 then redis.call('INCRBY', KEYS[i], ARGV[i]) end
         end
         return 0",
    )
});

/// Windows of one organisation that are corrected with one question, and questions under way at once.
const CORRECTED_AT_ONCE: usize = 500;
const CORRECTIONS_AT_ONCE: usize = 16;

/// A window is kept a little longer than it lasts, because clocks differ.
const EXTRA_LIFETIME: Micros = 60 * SECOND;

pub struct Redis {
    link: RedisLink,
    corrections: Corrections,
}

/// What the script said.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// What is used of each.
    All(Vec<u64>),
    Refused {
        index: usize,
        used: u64,
    },
}

impl Redis {
    /// `urls`: one server, or several nodes of a Cluster with commas between them.
    pub async fn connect(urls: &str, patience: Duration) -> Result<Self, RedisError> {
        let link = RedisLink::connect(urls, patience).await?;
        Ok(Self { link, corrections: Corrections::default() })
    }

    pub async fn take(&self, now: Micros, asks: &[(&Limit, u64)]) -> Result<Taken, RedisError> {
        let mut script = TAKE.prepare_invoke();
        for (limit, amount) in asks {
            let lasts = limit.kind.ends_at(now).map_or(0, |end| end - now) + EXTRA_LIFETIME;
            script.key(key(&limit.counter, limit.kind.starts_at(now)));
            script.arg(*amount).arg(limit.cap).arg(lasts / 1000).arg(u8::from(limit.dry_run));
        }
        let reply: Vec<i64> = match self.link.clone() {
            RedisLink::Single(mut link) => script.invoke_async(&mut link).await?,
            RedisLink::Cluster(mut link) => script.invoke_async(&mut link).await?,
        };
        let amount = |reply: &i64| reply.max(&0).unsigned_abs();
        Ok(match reply.split_first() {
            Some((0, used)) => Taken::All(used.iter().map(amount).collect()),
            Some((index, used)) => {
                Taken::Refused { index: usize::try_from(index - 1).unwrap_or(0), used: used.first().map_or(0, amount) }
            }
            None => Taken::All(Vec::new()),
        })
    }

    /// What a call did not use, or used beyond what it had taken. Nobody waits for it.
    pub fn correct(&self, counter: &Counter, starts_at: Micros, taken: u64, spent: u64) {
        let more =
            spent.min(super::share::MAX_AMOUNT).cast_signed() - taken.min(super::share::MAX_AMOUNT).cast_signed();
        if more != 0 {
            self.corrections.add(counter.organisation().uuid(), key(counter, starts_at), more);
        }
    }

    /// Sends corrections for as long as the process runs.
    pub async fn send_corrections(&self) {
        loop {
            self.corrections.arrived.notified().await;
            let waiting = self.corrections.take();
            let chunks = waiting.into_iter().flat_map(|(_, sums)| chunks(sums));
            let sends = chunks.map(|chunk| self.send_chunk(chunk));
            let failures = futures::stream::iter(sends).buffer_unordered(CORRECTIONS_AT_ONCE);
            failures.for_each(async |sent| sent.unwrap_or_else(|error| uncorrected(&error))).await;
            let dropped = self.corrections.take_dropped();
            if dropped > 0 {
                tracing::warn!(
                    dropped,
                    "more rates wait to be corrected than there is room for; they count what was reserved"
                );
            }
        }
    }

    async fn send_chunk(&self, chunk: Vec<(String, i64)>) -> Result<(), RedisError> {
        async fn send(mut link: impl ConnectionLike + Send, chunk: &[(String, i64)]) -> Result<(), RedisError> {
            let mut script = CORRECT.prepare_invoke();
            for (key, more) in chunk {
                script.key(key).arg(*more);
            }
            script.invoke_async::<i64>(&mut link).await.map(drop)
        }
        match self.link.clone() {
            RedisLink::Single(link) => send(link, &chunk).await,
            RedisLink::Cluster(link) => send(link, &chunk).await,
        }
    }
}

fn chunks(sums: Sums) -> Vec<Vec<(String, i64)>> {
    let sums: Vec<(String, i64)> = sums.into_iter().filter(|(_, more)| *more != 0).collect();
    sums.chunks(CORRECTED_AT_ONCE).map(<[_]>::to_vec).collect()
}

fn uncorrected(error: &RedisError) {
    static UNCORRECTED: LogLimit = LogLimit::new();
    if let Some(skipped) = UNCORRECTED.pass() {
        let error = Brief(error);
        tracing::warn!(%error, skipped, "a rate could not be corrected; it counts what was reserved");
    }
}

/// The organisation is the hash tag.
fn key(counter: &Counter, starts_at: Micros) -> String {
    let mut key = String::with_capacity(96 + counter.scope_id().len());
    let _ = write!(
        key,
        "portcullis:{{{}}}:{}:{}:{}:{}:{}",
        counter.organisation().uuid().simple(),
        counter.sort().scope(),
        counter.unit().name(),
        counter.sort().period(),
        starts_at / SECOND,
        counter.scope_id()
    );
    key
}
