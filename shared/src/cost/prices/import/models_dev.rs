//! The list of models.dev (`api.json`): providers, their models, and for each what a million tokens cost in dollars. It knows
//! tokens alone, and no tiers of service.

use super::bounded_json::{self, MAX_ROWS, RawRows, UnreadableList};
use super::listed::{ListedModel, ListedModels, ListedRate};
use crate::cost::PriceMode;
use rust_decimal::Decimal;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// A millionth.
const PER_TOKEN: Decimal = Decimal::from_parts(1, 0, 0, false, 6);

/// Their names of rates, and LiteLLM's.
const RATES: [(&str, &str); 7] = [
    ("input", "input_cost_per_token"),
    ("output", "output_cost_per_token"),
    ("reasoning", "output_cost_per_reasoning_token"),
    ("cache_read", "cache_read_input_token_cost"),
    ("cache_write", "cache_creation_input_token_cost"),
    ("input_audio", "input_cost_per_audio_token"),
    ("output_audio", "output_cost_per_audio_token"),
];

/// The bound of this tier is in its name; `tiers` say theirs, and win.
const OVER_200K: &str = "context_over_200k";
const TIERS: &str = "tiers";

type Costs<'r> = BTreeMap<String, &'r RawValue>;

pub fn models(rows: &RawRows) -> Result<ListedModels, UnreadableList> {
    let mut models = ListedModels::default();
    for (provider, row) in rows {
        let listed = bounded_json::fields(row).and_then(|fields| bounded_json::fields(fields.get("models")?));
        let Some(listed) = listed.filter(|_| bounded_json::is_name(provider)) else {
            models.refuse("", provider, "the provider has no models");
            continue;
        };
        for (name, row) in listed {
            match model(provider, &name, row) {
                Ok(model) => models.listed.push(model),
                Err(reason) => models.refuse(provider, &name, reason),
            }
            if models.listed.len() + models.refused.len() > MAX_ROWS {
                return Err(UnreadableList::TooManyRows);
            }
        }
    }
    Ok(models)
}

fn model(provider: &str, name: &str, row: &RawValue) -> Result<ListedModel, String> {
    if !bounded_json::is_name(name) {
        return Err("the name is empty, longer than 256 bytes or has control characters".into());
    }
    let fields = bounded_json::fields(row).ok_or("the row is not an object")?;
    let costs = fields.get("cost").and_then(|cost| bounded_json::fields(cost)).ok_or("the row has no cost")?;
    let mut rates = Vec::new();
    add_rates(&mut rates, &costs, 0)?;
    let tiers = costs.get(TIERS).map(|tiers| context_tiers(tiers)).transpose()?.unwrap_or_default();
    match costs.get(OVER_200K).filter(|_| tiers.is_empty()) {
        Some(tier) => add_rates(&mut rates, &tier_costs(tier)?, 200_000)?,
        None => tiers.iter().try_for_each(|(bound, costs)| add_rates(&mut rates, costs, *bound))?,
    }
    Ok(ListedModel { provider: provider.to_owned(), name: name.to_owned(), kind: String::new(), rates })
}

fn tier_costs(tier: &RawValue) -> Result<Costs<'_>, String> {
    bounded_json::fields(tier).ok_or_else(|| "a tier of its cost is not an object".into())
}

/// `[{"tier": {"type": "context", "size": 272000}, "input": 10}]`; other types of tiers are passed over.
fn context_tiers(tiers: &RawValue) -> Result<Vec<(u64, Costs<'_>)>, String> {
    #[derive(Deserialize)]
    struct TierBound {
        /// Context where it is not said.
        r#type: Option<String>,
        size: u64,
    }
    let tiers = Vec::<&RawValue>::deserialize(tiers).map_err(|_| "its tiers are not a list")?;
    let mut found = Vec::new();
    for tier in tiers {
        let costs = tier_costs(tier)?;
        let bound = costs.get("tier").and_then(|bound| TierBound::deserialize(*bound).ok());
        let bound = bound.ok_or("a tier of its cost has no bound")?;
        if bound.r#type.is_none_or(|kind| kind == "context") && bound.size > 0 {
            found.push((bound.size, costs));
        }
    }
    Ok(found)
}

fn add_rates(rates: &mut Vec<ListedRate>, costs: &Costs<'_>, above_tokens: u64) -> Result<(), String> {
    for (field, value) in costs.iter().filter(|(field, _)| ![OVER_200K, TIERS, "tier"].contains(&field.as_str())) {
        let Some(dollars) = bounded_json::dollars(value).map_err(|problem| format!("{field}: {problem}"))? else {
            continue;
        };
        let known = RATES.iter().find(|(theirs, _)| theirs == field);
        rates.push(ListedRate {
            name: known.map_or(field.as_str(), |(_, name)| name).to_owned(),
            mode: PriceMode::Standard,
            above_tokens,
            dollars: (dollars * PER_TOKEN).normalize(),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_million_tokens_are_divided_exactly_and_tiers_have_their_bounds() {
        let rows = bounded_json::rows(
            r#"{"openai": {"id": "openai", "models": {
                "a": {"id": "a", "cost": {"input": 0.075, "output": 4.4, "cache_read": 0.01, "reasoning": 5,
                    "context_over_200k": {"input": 1.25}}},
                "b": {"cost": {"input": 5, "tiers": [{"input": 10, "tier": {"type": "context", "size": 272000}},
                    {"input": 7, "tier": {"type": "speed", "size": 1}}, {"input": 11, "tier": {"size": 500000}}],
                    "context_over_200k": {"input": 999}}},
                "c": {"cost": {"input": -1}}, "d": {}, "e": {"cost": {"input": "5"}}
            }}, "empty": {"id": "empty"}}"#,
        );
        let models = models(&rows.unwrap()).unwrap();
        let rates = |name: &str| -> Vec<(String, u64, String)> {
            let model = models.listed.iter().find(|model| model.name == name).unwrap();
            let rate = |rate: &ListedRate| (rate.name.clone(), rate.above_tokens, rate.dollars.to_string());
            model.rates.iter().map(rate).collect()
        };
        let expected = |name: &str, bound, dollars: &str| (name.to_owned(), bound, dollars.to_owned());
        assert_eq!(
            rates("a"),
            [
                expected("cache_read_input_token_cost", 0, "0.00000001"),
                expected("input_cost_per_token", 0, "0.000000075"),
                expected("output_cost_per_token", 0, "0.0000044"),
                expected("output_cost_per_reasoning_token", 0, "0.000005"),
                expected("input_cost_per_token", 200_000, "0.00000125"),
            ]
        );
        assert_eq!(
            rates("b"),
            [
                expected("input_cost_per_token", 0, "0.000005"),
                expected("input_cost_per_token", 272_000, "0.00001"),
                expected("input_cost_per_token", 500_000, "0.000011"),
            ]
        );
        let refused: Vec<_> = models.refused.iter().map(|refusal| (&*refusal.model, &*refusal.reason)).collect();
        assert_eq!(
            refused,
            [
                ("empty", "the provider has no models"),
                ("c", "input: -1 is negative"),
                ("d", "the row has no cost"),
                ("e", "input: \"5\" is not a number"),
            ]
        );
    }
}
