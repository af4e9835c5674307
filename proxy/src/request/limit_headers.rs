//! The headers of an answer that are about limits: the status of the client's rates (`x-ratelimit-…`), and for a limit
//! that refused, its scope and when to try again (`retry-after-ms`). `Retry-After` itself is written from the refusal.

use crate::net::header_text::HeaderText;
use http::HeaderName;

/// Microseconds since 1970 by Postgres' clock.
pub type Micros = i64;

/// What a limit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Unit {
    Requests,
    Tokens,
    /// Inside the proxy nano-cents, in Postgres US cents.
    Cost,
}

impl Unit {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
        }
    }
}

/// How a limit stands after a request was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimitStanding {
    pub unit: Unit,
    pub cap: u64,
    pub remaining: u64,
    /// When its window ends.
    pub resets_at: Option<Micros>,
    pub is_dry_run: bool,
    /// It would have refused, were it not a dry run.
    pub is_over: bool,
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

/// The status of a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateStatus {
    cap: u64,
    remaining: u64,
    /// At least 1.
    pub resets_in_s: u64,
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
                *place = Some(RateStatus::new(cap, remaining, resets_at, now));
            }
        }
    }

    pub fn stamp(&self, mut put: impl FnMut(&HeaderName, HeaderText<'_>)) {
        for (names, rate) in [(&REQUESTS, self.requests), (&TOKENS, self.tokens)] {
            if let Some(rate) = rate {
                rate.stamp(names, &mut put);
            }
        }
    }
}

impl RateStatus {
    pub fn new(cap: u64, remaining: u64, resets_at: Micros, now: Micros) -> Self {
        const SECOND: u64 = 1_000_000;
        let resets_in_s = u64::try_from(resets_at.saturating_sub(now)).unwrap_or(0).div_ceil(SECOND).max(1);
        Self { cap, remaining, resets_in_s }
    }

    fn stamp(&self, [limit, remaining, reset]: &[HeaderName; 3], put: &mut impl FnMut(&HeaderName, HeaderText<'_>)) {
        put(limit, HeaderText::Common(self.cap));
        put(remaining, HeaderText::Number(self.remaining));
        put(reset, HeaderText::Seconds(self.resets_in_s));
    }
}

impl LimitHit {
    /// `alias` is the prefix under which our own headers are repeated.
    pub fn stamp(&self, alias: Option<&str>, mut put: impl FnMut(&HeaderName, HeaderText<'_>)) {
        let scope = HeaderText::Static(self.scope);
        if let Some(aliased) = alias.and_then(|alias| HeaderName::try_from(format!("{alias}ratelimit-scope")).ok()) {
            put(&aliased, scope);
        }
        put(&SCOPE, scope);
        if let Some(wait) = self.wait_ms {
            put(&RETRY_AFTER_MS, HeaderText::Number(wait));
        }
        if let Some(rate) = &self.rate {
            rate.stamp(if self.unit == Unit::Tokens { &TOKENS } else { &REQUESTS }, &mut put);
        }
    }
}
