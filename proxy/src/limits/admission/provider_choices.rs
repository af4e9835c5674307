//! What a request leaves to its provider and has a price: the tier of service, and how long what is read is kept. For strict
//! budgets the dearest of it is reserved.

use super::cache_lifetime::longest_asked;
use super::expected::{Expected, SentBody};
use super::service_tiers::AskedTiers;
use http::{HeaderName, HeaderValue};
use shared::cost::prices::{ListedPrice, Matched};
use shared::cost::{CacheLifetime, CallBounds, PriceMode, Terms, dearest, prices_tier};

#[derive(Debug, Clone, Default)]
pub struct ProviderChoices {
    tiers: AskedTiers,
    cache: CacheLifetime,
}

/// Models that keep what they read only where a request says so, by a part of their names. All others may do it unasked.
const KEEPS_WHEN_ASKED: &str = "claude";

impl ProviderChoices {
    /// `headers` are those of the account or the config. `is_strict`: whether bounds are wanted.
    pub fn of_request(sent: &SentBody<'_>, headers: &[(HeaderName, HeaderValue)], is_strict: bool) -> Self {
        let cache = if is_strict { longest_asked(sent) } else { CacheLifetime::None };
        Self { tiers: AskedTiers::of_request(sent, headers), cache }
    }

    /// The tier that is asked for, if it has prices of its own.
    pub fn named_tier(&self) -> Option<PriceMode> {
        self.tiers.named().last().copied()
    }

    /// The most that a call may cost; none where that has no bound, as where a tier is asked for that has no rate. What
    /// a provider takes for models that its list does not name is no bound either.
    pub fn most_nano_cents(
        &self,
        service: &str,
        expected: &Expected,
        found: &ListedPrice<'_>,
        terms: &Terms<'_>,
    ) -> Option<u64> {
        let is_priced = found.by != Matched::Default || terms.own_price.is_some();
        if !expected.is_bounded || !is_priced {
            return None;
        }
        let cache = if found.model.contains(KEEPS_WHEN_ASKED) { self.cache } else { CacheLifetime::Any };
        let modes = self.tiers.may_serve(service, |mode| prices_tier(found.entry, &Terms { mode, ..*terms }));
        let bounds = CallBounds { prompt: expected.most_input, answer: expected.most_output, modes: &modes, cache };
        dearest(&bounds, found.entry, terms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::body::Fields;
    use serde_json::json;
    use shared::cost::PricingConfig;
    use shared::cost::prices::PriceList;
    use shared::providers::Family;

    /// One cent for a token that is read and ten for one that is written, more in dearer tiers.
    fn list() -> PriceList {
        let price = |cents: u64| json!({ "price": cents });
        let rates = |read: u64, written: u64| json!({ "pricing_config": { "pay_as_you_go": { "request_token": price(read), "response_token": price(written) } } });
        let usual = |more: serde_json::Value| {
            let mut rates = rates(1, 10)["pricing_config"]["pay_as_you_go"].clone();
            rates.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "pay_as_you_go": rates })
        };
        let hours = json!({ "cache_write_input_token": price(2), "additional_units": { "cache_write_1h": price(3), "cache_write_12h": price(4) } });
        let list = json!({
            "tiered": { "pricing_config": usual(json!({})), "custom_pricing": {
                "context_tier_map": { "1000": "gt-1k" },
                "regions": { "default": { "execution_modes": {
                    "standard": { "context_tiers": { "gt-1k": rates(4, 40) } },
                    "flex": rates(0, 5), "priority": rates(3, 30), "fast": rates(6, 60),
                } } } } },
            "plain": { "pricing_config": usual(json!({})) },
            "claude-1": { "pricing_config": usual(hours.clone()) },
            "keeper": { "pricing_config": usual(hours) },
            "half": { "pricing_config": { "pay_as_you_go": { "request_token": price(1) } } },
        });
        PriceList::parse(&list.to_string()).unwrap()
    }

    fn cents(service: &str, model: &str, body: &str) -> Option<u64> {
        let (list, fields) = (list(), Fields::parse_object(body.as_bytes()).unwrap());
        let sent = SentBody::new(body.as_bytes(), &fields, None);
        let choices = ProviderChoices::of_request(&sent, &[], true);
        let found = list.find(service, model).unwrap();
        let expected = Expected::estimate(Family::Chat, &sent, true);
        let most = choices.most_nano_cents(service, &expected, &found, &Terms::default());
        most.map(|nano_cents| nano_cents / 1_000_000_000)
    }

    #[test]
    fn a_strict_budget_reserves_the_dearest_that_a_request_leaves_to_its_provider() {
        for (service, model, more, read, written) in [
            ("openai", "plain", json!({}), 1, 10),
            ("openai", "tiered", json!({}), 3, 30),
            ("openai", "tiered", json!({ "service_tier": "auto" }), 3, 30),
            ("openai", "tiered", json!({ "service_tier": "default" }), 1, 10),
            ("openai", "tiered", json!({ "service_tier": "flex" }), 1, 10),
            ("openai", "tiered", json!({ "service_tier": "priority" }), 3, 30),
            ("openai", "tiered", json!({ "service_tier": "ultrafast" }), 6, 60),
            ("google", "tiered", json!({}), 1, 10),
            ("google", "tiered", json!({ "service_tier": "priority" }), 3, 30),
            ("bedrock", "tiered", json!({}), 1, 10),
            ("bedrock", "tiered", json!({ "serviceTier": { "type": "priority" } }), 3, 30),
            ("anthropic", "claude-1", json!({}), 1, 10),
            ("anthropic", "claude-1", json!({ "cache_control": { "type": "ephemeral" } }), 2, 10),
            ("anthropic", "claude-1", json!({ "cache_control": { "type": "ephemeral", "ttl": "1h" } }), 3, 10),
            ("anthropic", "claude-1", json!({ "cache_control": { "ttl": "12h" } }), 4, 10),
            ("openai", "keeper", json!({}), 4, 10),
            // Beyond a thousand tokens all of it is dearer.
            ("google", "tiered", json!({ "user": "x".repeat(1000) }), 4, 40),
        ] {
            let mut body = json!({ "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 7 });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            let body = body.to_string();
            let expected = body.len() as u64 * read + 7 * written;
            assert_eq!(cents(service, model, &body), Some(expected), "{service} {model} {body}");
        }
    }

    #[test]
    fn what_has_no_rate_or_no_bound_is_not_reserved() {
        for (service, model, more) in [
            ("openai", "plain", json!({ "max_tokens": 7, "service_tier": "priority" })),
            ("openai", "plain", json!({ "max_tokens": 7, "service_tier": "flex" })),
            ("bedrock", "plain", json!({ "max_tokens": 7, "serviceTier": { "type": "priority" } })),
            ("openai", "half", json!({ "max_tokens": 7 })),
            ("openai", "plain", json!({})),
        ] {
            let mut body = json!({ "messages": [{ "role": "user", "content": "Hello" }] });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            assert_eq!(cents(service, model, &body.to_string()), None, "{service} {model} {body}");
        }
    }

    #[test]
    fn a_default_of_the_provider_is_a_guess_and_an_own_price_is_none() {
        let rates = r#"{"pay_as_you_go": {"request_token": {"price": 1}, "response_token": {"price": 1}}}"#;
        let list = PriceList::parse(&format!(r#"{{"default": {{"pricing_config": {rates}}}}}"#)).unwrap();
        let own: PricingConfig = serde_json::from_str(rates).unwrap();
        let body = r#"{"messages":[],"max_tokens":7,"service_tier":"priority"}"#;
        let fields = Fields::parse_object(body.as_bytes()).unwrap();
        let sent = SentBody::new(body.as_bytes(), &fields, None);
        let choices = ProviderChoices::of_request(&sent, &[], true);
        let (found, expected) = (list.find("openai", "m").unwrap(), Expected::estimate(Family::Chat, &sent, true));
        let most = |terms: Terms<'_>| choices.most_nano_cents("openai", &expected, &found, &terms);
        assert_eq!(most(Terms::default()), None);
        let cents = body.len() as u64 + 7;
        assert_eq!(most(Terms { own_price: Some(&own), ..Terms::default() }), Some(cents * 1_000_000_000));
    }
}
