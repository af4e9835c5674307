//! What a reported call used and cost: the provider's own words in its answer, and the price list that the gateway's own
//! calls are priced by.

use super::account::LogAccount;
use rust_decimal::Decimal;
use serde_json::Value;
use shared::cost::prices::Sources;
use shared::cost::prices::sources::Document;
use shared::cost::{Entry, OwnPrices, PriceMode, Usage, cents, unit_prices};
use shared::db::request_logs::is_storable;
use std::time::Instant;

#[derive(Debug, Default)]
pub struct PricedUsage {
    pub usage: Usage,
    /// The provider's words.
    pub reported: Option<Value>,
    pub cost: Option<Decimal>,
    pub price_model: Option<String>,
    pub unit_prices: Option<Value>,
    pub price_version: Option<String>,
}

/// What a price depends on beside usage.
pub struct PriceQuery<'a> {
    pub provider: Option<&'a str>,
    /// The names of the model, the more exact one first.
    pub models: &'a [&'a str],
    pub account: Option<&'a LogAccount>,
}

pub async fn priced(sources: &Sources, asked: &PriceQuery<'_>, answer: &Value) -> PricedUsage {
    let reported = reported(answer).cloned();
    let usage = reported.as_ref().and_then(Usage::parse).unwrap_or_default();
    let reported = reported.filter(is_short);
    let mut priced = PricedUsage { usage, reported, ..PricedUsage::default() };
    let Some(provider) = asked.provider else { return priced };
    if priced.usage == Usage::default() {
        priced.cost = Some(Decimal::ZERO);
        return priced;
    }
    let document = sources.prices(provider, Instant::now()).await;
    let list = document.as_deref().and_then(Document::as_prices);
    let listed = OwnPrices::default();
    // Prices that cannot be read are unknown ones, not those of the list.
    let Some(own) = asked.account.map_or(Some(&listed), |account| account.own.as_ref()) else { return priced };
    let base = asked.account.and_then(|account| account.base_model.as_deref());
    let names = asked.models.iter().copied().chain(base);
    let found = list.and_then(|list| list.find_any(provider, names));
    let (model, entry) = match found {
        Some(found) => (found.model, found.entry),
        None if own.has_price() => (asked.models.last().copied().unwrap_or_default(), Entry::unlisted()),
        None => return priced,
    };
    let tier = answer["service_tier"].as_str().map_or(PriceMode::Standard, PriceMode::of_service_tier);
    let region = asked.account.and_then(|account| account.region.as_deref());
    let terms = own.terms(region, tier);
    // What no column can hold was never used.
    priced.cost = cents(&priced.usage, entry, &terms).filter(is_storable);
    priced.unit_prices = serde_json::from_str(&unit_prices(&priced.usage, entry, &terms)).ok();
    priced.price_version = Some(entry.edition().to_owned());
    priced.price_model = Some(model.to_owned());
    priced
}

/// Whether a row should keep these words; the gateway takes no longer ones for usage either.
fn is_short(words: &Value) -> bool {
    const MAX_WORDS: usize = 8 << 10;
    words.to_string().len() <= MAX_WORDS
}

/// Where each dialect reports usage. Of a stream, kept as the list of its events, the last one that does.
fn reported(answer: &Value) -> Option<&Value> {
    match answer {
        Value::Array(events) => events.iter().rev().find_map(reported),
        answer => {
            let outer = ["usage", "usageMetadata", "usage_info", "meta"].map(|place| &answer[place]);
            outer.into_iter().chain([&answer["response"]["usage"]]).find(|place| Usage::parse(place).is_some())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn usage_is_found_where_each_dialect_reports_it() {
        let chat = json!({ "prompt_tokens": 3, "completion_tokens": 4 });
        for (answer, tokens) in [
            (json!({ "usage": chat }), Some((3, 4))),
            (json!({ "usageMetadata": { "promptTokenCount": 5, "candidatesTokenCount": 6 } }), Some((5, 6))),
            (json!({ "response": { "usage": { "input_tokens": 1, "output_tokens": 2 } } }), Some((1, 2))),
            (json!([{ "usage": null }, { "usage": chat }, { "choices": [] }]), Some((3, 4))),
            (json!({ "pages": [], "usage_info": { "pages_processed": 3 } }), Some((0, 0))),
            (json!({ "usage": "much" }), None),
            (json!({ "choices": [] }), None),
            (json!("text"), None),
            (json!(null), None),
        ] {
            let found = reported(&answer).and_then(Usage::parse);
            assert_eq!(found.map(|usage| (usage.prompt_tokens(), usage.completion_tokens())), tokens, "{answer}");
        }
    }
}
