//! The bundled prices against other witnesses: calls as providers report them, and what they cost by a page that somebody
//! else wrote, with its address, its kind and the day. Where no page was found the vector says so: its sum comes from the
//! public list that the bundled prices are made of, and proves the arithmetic and not the price.

use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::Value;
use shared::cost::prices::{Matched, bundled_prices};
use shared::cost::{PriceMode, Terms, Usage, bill};
use std::collections::BTreeMap;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Vector {
    provider: String,
    model: String,
    /// What it is about.
    unit: String,
    usage: Value,
    /// The tier of service that the answer names.
    tier: Option<String>,
    usd: Decimal,
    sum: String,
    kind: SourceKind,
    source: Option<String>,
    date: String,
    note: Option<String>,
}

/// What a price was compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SourceKind {
    /// A page of the provider itself.
    Vendor,
    /// Another public list of prices, which may have copied from the same place.
    PublicList,
    /// Somebody who repeats what a provider takes.
    ThirdParty,
    None,
}

/// Where providers say what they take.
const VENDORS: [&str; 6] = [
    "https://platform.claude.com/",
    "https://docs.anthropic.com/",
    "https://docs.fireworks.ai/",
    "https://docs.x.ai/",
    "https://docs.perplexity.ai/",
    "https://developers.openai.com/",
];
const LISTS: [&str; 1] = ["https://github.com/anomalyco/models.dev/"];

fn kind_of(source: Option<&str>) -> SourceKind {
    let begins = |places: &[&str]| source.is_some_and(|source| places.iter().any(|place| source.starts_with(place)));
    match () {
        () if source.is_none() => SourceKind::None,
        () if begins(&VENDORS) => SourceKind::Vendor,
        () if begins(&LISTS) => SourceKind::PublicList,
        () => SourceKind::ThirdParty,
    }
}

fn vectors() -> Vec<Vector> {
    serde_json::from_str(include_str!("price_vectors.json")).unwrap()
}

#[test]
fn every_vector_costs_what_its_source_says() {
    let mut lists = BTreeMap::new();
    let mut wrong = Vec::new();
    for vector in vectors() {
        let Vector { provider, model, unit, sum, usd, .. } = &vector;
        let what = format!("{provider} {model}, {unit}");
        let list = lists.entry(provider.clone()).or_insert_with(|| bundled_prices(provider).unwrap());
        let found = list.find(provider, model).filter(|found| found.by == Matched::Name);
        let Some(found) = found else {
            wrong.push(format!("{what}: not listed"));
            continue;
        };
        let usage = Usage::parse(&vector.usage).unwrap_or_else(|| panic!("{what}: no usage"));
        let mode = vector.tier.as_deref().map_or(PriceMode::Standard, PriceMode::of_service_tier);
        let bill = bill(&usage, found.entry, &Terms { mode, ..Terms::default() });
        let cents = usd * Decimal::ONE_HUNDRED;
        if bill.cents != Some(cents.round_dp(10).normalize()) || !bill.is_complete {
            wrong.push(format!("{what}: {bill:?} is not {cents} cents = {sum}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn there_are_vectors_for_every_unit_and_tier_and_each_has_a_source_or_says_that_there_is_none() {
    let vectors = vectors();
    assert!(vectors.len() >= 120, "{}", vectors.len());
    for vector in &vectors {
        let has_origin =
            vector.source.as_deref().map_or(vector.note.is_some(), |source| source.starts_with("https://"));
        assert!(has_origin && vector.date.len() >= 7, "{} {}", vector.provider, vector.model);
        assert_eq!(vector.kind, kind_of(vector.source.as_deref()), "{} {}", vector.provider, vector.model);
    }
    for unit in [
        "text",
        "cache",
        "audio",
        "video",
        "image",
        "seconds",
        "characters",
        "pages",
        "searches",
        "request",
        "tool fee",
        "context tier",
        "batch",
        "flex",
        "priority",
        "1 hour",
        "12 hours",
        "moderation",
        "reasoning",
    ] {
        assert!(vectors.iter().any(|vector| vector.unit.contains(unit)), "{unit}");
    }
    let of = |kind: SourceKind| vectors.iter().filter(|vector| vector.kind == kind).count();
    let (vendor, lists, without) = (of(SourceKind::Vendor), of(SourceKind::PublicList), of(SourceKind::None));
    assert!(vendor >= 56 && lists >= 90 && without <= 24, "{vendor} {lists} {without}");
}
