//! What clients are told of their limits: whose limit refused them, when to come again, and how their rates stand.

use super::ApplicableLimit;
use crate::limits::{self, LimitStanding, Micros, Unit, Why, Window};
use crate::refusal::Refusal;
use http::{HeaderName, HeaderValue};
use shared::model::{Provider, RateLimitsPolicy, UsageLimitsPolicy, Workspace};
use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, LazyLock};

/// Whose a limit is.
#[derive(Debug, Clone)]
pub enum LimitOwner {
    ApiKey,
    Token,
    Workspace(Arc<Workspace>),
    Provider(Arc<Provider>),
    Integration(Arc<str>),
    RatePolicy(Arc<RateLimitsPolicy>),
    UsagePolicy(Arc<UsageLimitsPolicy>),
}

impl LimitOwner {
    pub const fn scope(&self) -> &'static str {
        match self {
            Self::ApiKey => "api_key",
            Self::Token => "token",
            Self::Workspace(_) => "workspace",
            Self::Provider(_) => "virtual_key",
            Self::Integration(_) => "integration",
            Self::RatePolicy(_) | Self::UsagePolicy(_) => "policy",
        }
    }
}

impl fmt::Display for LimitOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let policy = |f: &mut fmt::Formatter<'_>, name: Option<&str>, id: &uuid::Uuid| match name {
            Some(name) => write!(f, "the policy `{name}` ({id})"),
            None => write!(f, "the policy {id}"),
        };
        match self {
            Self::ApiKey => f.write_str("this API key"),
            Self::Token => f.write_str("this token"),
            Self::Workspace(workspace) => write!(f, "the workspace `{}`", workspace.slug),
            Self::Provider(provider) => write!(f, "the provider `@{}`", provider.slug),
            Self::Integration(slug) => write!(f, "the integration `{slug}` in this workspace"),
            Self::RatePolicy(one) => policy(f, one.name.as_deref(), &one.id),
            Self::UsagePolicy(one) => policy(f, one.name.as_deref(), &one.id),
        }
    }
}

/// A limit that refused, for the head of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitHit {
    pub scope: &'static str,
    /// Of a rate.
    pub rate: Option<RateStatus>,
    pub wait_ms: Option<u64>,
    pub unit: Unit,
}

/// How a rate stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStatus {
    cap: u64,
    remaining: u64,
    resets_in_s: u64,
}

/// The rates with the least left, of requests and of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateHeaders {
    requests: Option<RateStatus>,
    tokens: Option<RateStatus>,
}

static RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
static SCOPE: HeaderName = HeaderName::from_static("x-gateway-ratelimit-scope");
static REQUESTS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-reset-requests"),
];
static TOKENS: [HeaderName; 3] = [
    HeaderName::from_static("x-ratelimit-limit-tokens"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

impl RateHeaders {
    pub fn add(&mut self, standings: impl Iterator<Item = LimitStanding>, now: Micros) {
        for standing in standings.filter(|standing| !standing.is_dry_run) {
            let Some(resets_at) = standing.resets_at else { continue };
            let place = match standing.unit {
                Unit::Requests => &mut self.requests,
                Unit::Tokens => &mut self.tokens,
                Unit::Cost => continue,
            };
            if place.is_none_or(|shown| standing.remaining < shown.remaining) {
                let (cap, remaining) = (standing.cap, standing.remaining);
                *place = Some(RateStatus { cap, remaining, resets_in_s: wait_s(resets_at, now) });
            }
        }
    }

    pub fn stamp(&self, mut put: impl FnMut(HeaderName, HeaderValue)) {
        for (names, line) in [(&REQUESTS, self.requests), (&TOKENS, self.tokens)] {
            if let Some(line) = line {
                line.stamp(names, &mut put);
            }
        }
    }
}

impl RateStatus {
    fn stamp(&self, [limit, remaining, reset]: &[HeaderName; 3], put: &mut impl FnMut(HeaderName, HeaderValue)) {
        put(limit.clone(), known(self.cap));
        put(remaining.clone(), HeaderValue::from(self.remaining));
        put(reset.clone(), seconds(self.resets_in_s));
    }
}

impl LimitHit {
    /// `alias` is the prefix under which our own headers are repeated.
    pub fn stamp(&self, alias: Option<&str>, mut put: impl FnMut(HeaderName, HeaderValue)) {
        let scope = HeaderValue::from_static(self.scope);
        if let Some(aliased) = alias.and_then(|alias| HeaderName::try_from(format!("{alias}ratelimit-scope")).ok()) {
            put(aliased, scope.clone());
        }
        put(SCOPE.clone(), scope);
        if let Some(wait) = self.wait_ms {
            put(RETRY_AFTER_MS.clone(), HeaderValue::from(wait));
        }
        if let Some(line) = &self.rate {
            line.stamp(if self.unit == Unit::Tokens { &TOKENS } else { &REQUESTS }, &mut put);
        }
    }
}

/// The answer to a request that a limit refused.
pub fn refusal(wanted: &ApplicableLimit, refused: &limits::LimitRefusal, now: Micros) -> Refusal {
    let (limit, whose) = (&wanted.limit, &wanted.whose);
    let unit = limit.counter.unit();
    let hit = |rate, wait_ms| LimitHit { scope: whose.scope(), rate, wait_ms, unit };
    match (refused.why, refused.resets_at, limit.counter.window()) {
        (Why::Rate, Some(resets_at), Some(window)) => {
            let seconds = wait_s(resets_at, now);
            let line = RateStatus { cap: limit.cap, remaining: refused.remaining, resets_in_s: seconds };
            let message = format!(
                "the rate limit of {whose} is reached: {} {} per {}; try again in {seconds} s",
                limit.cap,
                unit.name(),
                per(window)
            );
            let wait_ms = u64::try_from(resets_at.saturating_sub(now) / 1000).unwrap_or(0).max(1);
            Refusal::rate_limited(message, u32::try_from(seconds).unwrap_or(u32::MAX), hit(Some(line), Some(wait_ms)))
        }
        (Why::StoreAway, ..) => {
            let message = format!("how much is left of the limit of {whose} cannot be found out now; try again");
            Refusal::limits_unknown(message, hit(None, Some(1000)))
        }
        (Why::Unbounded, ..) => {
            let message = format!(
                "the budget of {whose} is strict, and nobody can say what this request may use at most: its model must \
                 have a price, it must say how long the answer may be (max_tokens), and all its input must be text in \
                 the request itself"
            );
            Refusal::budget_exhausted(message, hit(None, None))
        }
        (Why::Rate | Why::Budget, ..) => {
            let what = match unit {
                Unit::Cost => format!("{} USD", dollars(limit.cap)),
                Unit::Tokens | Unit::Requests => format!("{} {}", limit.cap, unit.name()),
            };
            Refusal::budget_exhausted(format!("the budget of {whose} is used up: {what}"), hit(None, None))
        }
    }
}

/// The answer to a request whose price nobody knows, under a budget that minds.
pub fn price_unknown(wanted: &ApplicableLimit) -> Refusal {
    let ApplicableLimit { limit, whose, .. } = wanted;
    let message = format!("the budget of {whose} does not let requests pass whose model has no known price");
    let hit = LimitHit { scope: whose.scope(), rate: None, wait_ms: None, unit: limit.counter.unit() };
    Refusal::price_unknown(message, hit)
}

/// A number that stands in many answers, as caps do: each thread keeps the last few.
fn known(count: u64) -> HeaderValue {
    const KEPT: usize = 16;
    thread_local! {
        static WRITTEN: RefCell<[(u64, HeaderValue); KEPT]> =
            const { RefCell::new([const { (0, HeaderValue::from_static("0")) }; KEPT]) };
    }
    WRITTEN.with_borrow_mut(|written| {
        // Caps are mostly round: their last bits are all the same.
        let place = &mut written[(count.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize];
        if place.0 != count {
            *place = (count, HeaderValue::from(count));
        }
        place.1.clone()
    })
}

/// Most windows are minutes.
fn seconds(count: u64) -> HeaderValue {
    static MINUTE: LazyLock<[HeaderValue; 61]> = LazyLock::new(|| std::array::from_fn(|n| written(n as u64)));
    fn written(count: u64) -> HeaderValue {
        HeaderValue::from_maybe_shared(format!("{count}s")).unwrap_or(HeaderValue::from_static("1s"))
    }
    let known = usize::try_from(count).ok().and_then(|count| MINUTE.get(count));
    known.cloned().unwrap_or_else(|| written(count))
}

fn per(window: Window) -> &'static str {
    window.name()
}

fn dollars(nano_cents: u64) -> f64 {
    nano_cents as f64 / 1e11
}

fn wait_s(resets_at: Micros, now: Micros) -> u64 {
    const SECOND: u64 = 1_000_000;
    u64::try_from(resets_at.saturating_sub(now)).unwrap_or(0).div_ceil(SECOND).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_they_are_whatever_was_written_before() {
        // Some share a place among those that are kept.
        for count in [0, 7, 16, 0, 1000, 10_000, 1000, 999_999, 1 << 40, u64::MAX, 1000, 0] {
            assert_eq!(known(count), HeaderValue::from(count));
        }
    }
}
