//! The refusal of a request that a limit did not let pass: whose limit it was, and when to come again. `Retry-After`
//! is written by `engine::answer::own` from `retry_after_s`, the other headers by `request::limit_headers`.

use crate::request::limit_headers::LimitHit;

use super::{Amounts, ApplicableLimit};
use crate::limits::{LimitKind, LimitRefusal, Micros, RateStatus, Unit, Why, Window};
use crate::request::refusal::Refusal;
use shared::model::id::PolicyId;
use shared::model::{Provider, RateLimitsPolicy, UsageLimitsPolicy, Workspace};
use std::fmt;
use std::sync::Arc;

/// What a limit belongs to.
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
        let policy = |f: &mut fmt::Formatter<'_>, name: Option<&str>, id: PolicyId| match name {
            Some(name) => write!(f, "the policy `{name}` ({id})"),
            None => write!(f, "the policy {id}"),
        };
        match self {
            Self::ApiKey => f.write_str("this API key"),
            Self::Token => f.write_str("this token"),
            Self::Workspace(workspace) => write!(f, "the workspace `{}`", workspace.slug),
            Self::Provider(provider) => write!(f, "the provider `@{}`", provider.slug),
            Self::Integration(slug) => write!(f, "the integration `{slug}` in this workspace"),
            Self::RatePolicy(one) => policy(f, one.name.as_deref(), one.id),
            Self::UsagePolicy(one) => policy(f, one.name.as_deref(), one.id),
        }
    }
}

/// The answer to a request that a limit refused. `amounts` is what it asked for.
pub fn refusal(wanted: &ApplicableLimit, refused: &LimitRefusal, amounts: &Amounts, now: Micros) -> Refusal {
    let (limit, whose) = (&wanted.limit, &wanted.whose);
    let unit = limit.counter.unit();
    let hit = |rate, wait_ms| LimitHit { scope: whose.scope(), rate, wait_ms, unit };
    match (refused.why, refused.resets_at, limit.counter.window()) {
        (Why::Rate, Some(resets_at), Some(window)) => {
            let rate = RateStatus::new(limit.cap, refused.remaining, resets_at, now);
            let seconds = rate.resets_in_s;
            let message = format!(
                "the rate limit of {whose} is reached: {} {} per {}; try again in {seconds} s",
                limit.cap,
                unit.name(),
                per(window)
            );
            let wait_ms = u64::try_from(resets_at.saturating_sub(now) / 1000).unwrap_or(0).max(1);
            Refusal::rate_limited(message, u32::try_from(seconds).unwrap_or(u32::MAX), hit(Some(rate), Some(wait_ms)))
        }
        (Why::StoreAway, ..) => {
            let message = format!("how much is left of the limit of {whose} cannot be found out now; try again");
            Refusal::limits_unknown(message, hit(None, Some(1000)))
        }
        (Why::Unbounded, ..) => {
            let message = format!(
                "the budget of {whose} is strict, and nobody can say what this request may use at most: {}",
                unbounded(unit, amounts)
            );
            Refusal::budget_exhausted(message, hit(None, None))
        }
        (Why::Rate | Why::Budget, ..) => {
            let is_strict = matches!(limit.kind, LimitKind::Budget { strict: true, .. });
            let (cap, most) = (written(limit.cap, unit), amounts.for_limit(limit));
            let message = match is_strict && (refused.remaining > 0 || most > limit.cap) {
                true => format!(
                    "the budget of {whose} is strict, and less is left of its {cap} than the {} that this request may use at \
                     most; a smaller max_tokens asks for less",
                    written(most, unit)
                ),
                false => format!("the budget of {whose} is used up: {cap}"),
            };
            Refusal::budget_exhausted(message, hit(None, None))
        }
    }
}

/// Why there is no bound of what a request may use.
fn unbounded(unit: Unit, amounts: &Amounts) -> &'static str {
    let is_unpriced = unit == Unit::Cost && amounts.nano_cents.is_none();
    match (is_unpriced, amounts.most_tokens.is_none()) {
        (true, false) => "its model has no known price",
        (false, true) => {
            "it must say how long the answer may be (max_tokens), and all its input must be text in the request itself"
        }
        _ => {
            "its model must have a price, it must say how long the answer may be (max_tokens), and all its input must be text \
             in the request itself"
        }
    }
}

fn written(amount: u64, unit: Unit) -> String {
    match unit {
        Unit::Cost => format!("{} USD", dollars(amount)),
        Unit::Tokens | Unit::Requests => format!("{amount} {}", unit.name()),
    }
}

/// The answer to a request without a known price, under a budget that refuses those.
pub fn price_unknown(wanted: &ApplicableLimit) -> Refusal {
    let ApplicableLimit { limit, whose, .. } = wanted;
    let message = format!("the budget of {whose} does not let requests pass whose model has no known price");
    let hit = LimitHit { scope: whose.scope(), rate: None, wait_ms: None, unit: limit.counter.unit() };
    Refusal::price_unknown(message, hit)
}

fn per(window: Window) -> &'static str {
    window.name()
}

fn dollars(nano_cents: u64) -> f64 {
    nano_cents as f64 / 1e11
}
