//! LiteLLM's list (`model_prices_and_context_window.json`): a flat map of models, each with its provider and with rates whose
//! names say what they are for, at which tier of service and above how many tokens of context.

use super::bounded_json::{self, RawRows};
use super::listed::{ListedModel, ListedModels, ListedRate};
use super::model_name;
use crate::cost::PriceMode;
use serde_json::value::RawValue;

/// How the name of a rate ends, for each tier of service.
const MODES: [(&str, PriceMode); 4] = [
    ("_batches", PriceMode::Batch),
    ("_flex", PriceMode::Flex),
    ("_priority", PriceMode::Priority),
    ("_ultrafast", PriceMode::Fast),
];

/// A nonsensical rate refuses its row: the others cannot be trusted either.
pub fn models(rows: &RawRows) -> ListedModels {
    let mut models = ListedModels::default();
    for (name, row) in rows {
        match model(name, row) {
            Ok(model) => models.listed.push(model),
            Err((provider, reason)) => models.refuse(&provider, name, reason),
        }
    }
    models
}

fn model(name: &str, row: &RawValue) -> Result<ListedModel, (String, String)> {
    let refused = |reason: &str| (String::new(), reason.to_owned());
    if !bounded_json::is_name(name) {
        return Err(refused("the name is empty, longer than 256 bytes or has control characters"));
    }
    if model_name::is_junk(name) {
        return Err(refused(model_name::NO_MODEL));
    }
    let fields = bounded_json::fields(row).ok_or_else(|| refused("the row is not an object"))?;
    let provider = bounded_json::string(fields.get("litellm_provider")).filter(|name| bounded_json::is_name(name));
    let provider = provider.ok_or_else(|| refused("the row names no provider"))?;
    let mut rates = Vec::new();
    for (field, value) in fields.iter().filter(|(field, value)| is_rate(field, value)) {
        let dollars =
            bounded_json::dollars(value).map_err(|problem| (provider.clone(), format!("{field}: {problem}")))?;
        rates.extend(dollars.map(|dollars| rate(field, dollars)));
    }
    let own = name.strip_prefix(&*provider).and_then(|rest| rest.strip_prefix('/')).unwrap_or(name);
    let kind = bounded_json::string(fields.get("mode")).unwrap_or_default();
    Ok(ListedModel { name: own.to_owned(), provider, kind, rates })
}

/// Tables such as `search_context_cost_per_query` are no rates.
fn is_rate(field: &str, value: &RawValue) -> bool {
    field.contains("cost") && !value.get().starts_with(['{', '['])
}

/// `input_cost_per_token_above_200k_tokens_priority` → the rate, its tier of service and its bound.
fn rate(field: &str, dollars: rust_decimal::Decimal) -> ListedRate {
    let mut rate = ListedRate { name: field.to_owned(), mode: PriceMode::Standard, above_tokens: 0, dollars };
    // Either may stand last.
    for _ in 0..2 {
        if let Some((rest, mode)) = MODES.iter().find_map(|(end, mode)| Some((rate.name.strip_suffix(end)?, *mode))) {
            (rate.name, rate.mode) = (rest.to_owned(), mode);
        }
        if let Some((rest, bound)) = split_bound(&rate.name) {
            (rate.name, rate.above_tokens) = (rest.to_owned(), bound);
        }
    }
    rate
}

/// `…_above_200k_tokens`
fn split_bound(name: &str) -> Option<(&str, u64)> {
    let (rest, thousands) = name.strip_suffix("k_tokens")?.rsplit_once("_above_")?;
    Some((rest, thousands.parse::<u64>().ok()?.checked_mul(1000)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rust_decimal::Decimal;

    #[test]
    fn the_name_of_a_rate_says_its_tier_and_bound() {
        for (field, name, mode, above_tokens) in [
            ("input_cost_per_token", "input_cost_per_token", PriceMode::Standard, 0),
            ("input_cost_per_token_batches", "input_cost_per_token", PriceMode::Batch, 0),
            ("output_cost_per_token_above_200k_tokens", "output_cost_per_token", PriceMode::Standard, 200_000),
            ("input_cost_per_token_above_272k_tokens_priority", "input_cost_per_token", PriceMode::Priority, 272_000),
            ("input_cost_per_token_flex_above_272k_tokens", "input_cost_per_token", PriceMode::Flex, 272_000),
            (
                "cache_creation_input_token_cost_above_1hr_above_200k_tokens",
                "cache_creation_input_token_cost_above_1hr",
                PriceMode::Standard,
                200_000,
            ),
            ("output_cost_per_second_1080p", "output_cost_per_second_1080p", PriceMode::Standard, 0),
            (
                "input_cost_above_99999999999999999999k_tokens",
                "input_cost_above_99999999999999999999k_tokens",
                PriceMode::Standard,
                0,
            ),
        ] {
            let expected = ListedRate { name: name.into(), mode, above_tokens, dollars: Decimal::ONE };
            assert_eq!(rate(field, Decimal::ONE), expected, "{field}");
        }
    }

    #[test]
    fn rows_that_are_no_models_or_have_nonsense_are_refused_with_the_reason() {
        let rows = bounded_json::rows(
            r#"{
                "fallback_generalizations": {"rules": [{"model_info": {"litellm_provider": "bedrock"}}]},
                "sample_spec": {"litellm_provider": "one of https://docs", "input_cost_per_token": 0.0},
                "alone": {"input_cost_per_token": 1e-6},
                "text": "gpt-4",
                "negative": {"litellm_provider": "openai", "input_cost_per_token": -1e-6},
                "huge": {"litellm_provider": "openai", "input_cost_per_token": 1e308},
                "quoted": {"litellm_provider": "openai", "input_cost_per_token": "NaN"},
                "azure/gpt-4o": {"litellm_provider": "azure", "mode": "chat", "input_cost_per_token": 2.5e-06,
                    "output_cost_per_token": null, "search_context_cost_per_query": {"low": 0.01}}
            }"#,
        );
        let models = models(&rows.unwrap());
        for (model, reason) in [
            ("fallback_generalizations", "no model"),
            ("sample_spec", "no model"),
            ("alone", "names no provider"),
            ("text", "not an object"),
            ("negative", "input_cost_per_token: -1e-6 is negative"),
            ("huge", "input_cost_per_token: 1e308 is out of range"),
            ("quoted", "input_cost_per_token: \"NaN\" is not a number"),
        ] {
            let refusal = models.refused.iter().find(|refusal| refusal.model == model).unwrap();
            assert!(refusal.reason.contains(reason), "{refusal:?}");
        }
        assert_eq!(models.refused.len(), 7);
        let [model] = &models.listed[..] else { panic!("{models:?}") };
        assert_eq!((&*model.provider, &*model.name, &*model.kind, model.rates.len()), ("azure", "gpt-4o", "chat", 1));
    }
}
