//! The limits that would apply to a made-up request, and whether they would refuse it. Nothing is reserved: the answer
//! is what this process knows at the moment.

use crate::catalog::target::{Credential, Target};
use crate::engine::Admitter;
use crate::identity::identify::Principal;
use crate::limits::admission::limit_refusal::{price_unknown, refusal};
use crate::limits::admission::{
    Amounts, ApplicableLimit, Attempted, LimitedRequest, Needs, SentBody, limits_of_attempt, limits_of_request,
};
use crate::limits::{LimitAsk, LimitKind, Micros, Unit};
use crate::request::body::Fields;
use crate::request::body::edit::Edits;
use crate::request::classify::Endpoint;
use crate::snapshot::SavedConfig;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::{Map, Value, json};
use shared::model::policy::PolicyTarget;
use shared::providers::Family;

/// The request, as limits see it.
pub struct ExplainedRequest<'a> {
    pub caller: &'a Principal,
    pub metadata: &'a Map<String, Value>,
    pub config: Option<&'a SavedConfig>,
    pub family: Option<Family>,
    /// None where it is relayed.
    pub endpoint: Option<Endpoint>,
    /// None where the gateway would not read it.
    pub body: Option<&'a [u8]>,
    pub fields: &'a Fields<'a>,
}

/// A target that it may come to.
pub struct ExplainedTarget<'p> {
    pub option: &'p str,
    pub target: Target,
    pub model: Option<String>,
    pub edits: &'p Edits,
}

impl Admitter {
    /// Those of the request first, then those of each target.
    pub(super) async fn describe_limits(
        &self,
        asked: &ExplainedRequest<'_>,
        possible: &[ExplainedTarget<'_>],
    ) -> Vec<Value> {
        let ExplainedRequest { caller, metadata, config, family, .. } = *asked;
        let mut amounts = Vec::new();
        for one in possible {
            amounts.push(self.expected(asked, one).await);
        }
        let dearest = amounts.iter().copied().reduce(Amounts::or).unwrap_or_default();
        let now = self.limits.now();
        let request = LimitedRequest {
            caller,
            metadata,
            config,
            family,
            target: PolicyTarget::Llm,
            attempted: None,
            is_trusted_only: false,
        };
        let wanted = limits_of_request(&request, &self.snapshot, self.switches, Utc::now);
        let mut described: Vec<Value> =
            wanted.iter().map(|wanted| self.describe_limit(wanted, &dearest, None, now)).collect();
        for (one, amounts) in possible.iter().zip(&amounts) {
            let provider = match &one.target.credential {
                Credential::Stored(stored) => Some(&stored.provider),
                Credential::Given(_) => None,
            };
            let service = &one.target.provider.name;
            let attempted = Attempted { provider, service, model: one.model.as_deref(), mcp: None };
            let wanted = limits_of_attempt(&request, &attempted, &self.snapshot, self.switches);
            described.extend(wanted.iter().map(|wanted| self.describe_limit(wanted, amounts, Some(one.option), now)));
        }
        described
    }

    /// What it may use there, as admission would guess.
    async fn expected(&self, asked: &ExplainedRequest<'_>, one: &ExplainedTarget<'_>) -> Amounts {
        let (Some(family), Some(body)) = (asked.family, asked.body) else { return Amounts::default() };
        let sent = SentBody::new(body, asked.fields, Some(one.edits));
        let sent = asked.endpoint.map_or(sent, |endpoint| sent.at(endpoint));
        let needs = Needs { tokens: true, cost: true, most: true, rates: true };
        self.amounts(family, &sent, needs, Some((&one.target, one.model.as_deref()))).await
    }

    fn describe_limit(&self, wanted: &ApplicableLimit, amounts: &Amounts, option: Option<&str>, now: Micros) -> Value {
        let limit = &wanted.limit;
        let ask = LimitAsk { limit, amount: amounts.for_limit(limit), found: None };
        let look = self.limits.status(now, &ask);
        let is_priced = amounts.nano_cents.is_some();
        let unpriced = (wanted.refuses_unknown_price && !is_priced).then(|| price_unknown(wanted));
        let refusal = unpriced.or_else(|| look.refusal().map(|refused| refusal(wanted, &refused, amounts, now)));
        let number = |amount: u64| match limit.counter.unit() {
            Unit::Cost => json!(amount as f64 / 1e11),
            Unit::Requests | Unit::Tokens => json!(amount),
        };
        let time = |moment: Micros| {
            let at = DateTime::from_timestamp_micros(moment)?;
            Some(at.to_rfc3339_opts(SecondsFormat::Millis, true))
        };
        json!({
            "scope": wanted.whose.scope(),
            "whose": wanted.whose.to_string(),
            "option": option,
            "kind": if matches!(limit.kind, LimitKind::Rate(_)) { "rate" } else { "budget" },
            "type": limit.counter.unit().name(),
            "window": limit.counter.window().map(|window| window.name()),
            "strict": matches!(limit.kind, LimitKind::Budget { strict: true, .. }),
            "dry_run": limit.dry_run,
            "price_known": (limit.counter.unit() == Unit::Cost).then_some(is_priced),
            "cap": number(limit.cap),
            "wanted": (ask.amount != u64::MAX).then(|| number(ask.amount)),
            "remaining": look.remaining.map(number),
            "resets_at": look.resets_at.and_then(time),
            "verdict": match (&refusal, look.remaining) {
                (Some(_), _) => "refuses",
                (None, Some(_)) => "passes",
                (None, None) => "unknown",
            },
            "message": refusal.map(|refusal| refusal.message),
        })
    }
}
