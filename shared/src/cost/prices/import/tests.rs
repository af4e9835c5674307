//! Whole lists, and the traps that public lists set.

use super::*;
use crate::cost::prices::{PriceList, bundled_prices};
use crate::cost::{Entry, Terms, Usage, cents};
use serde_json::{Value, json};

const TODAY: &str = "2026-11-18";

fn plan(list: &Value, format: ListFormat, installed: &[(&str, &str)]) -> ImportPlan {
    let list = SourceList::read(&list.to_string(), Some(format), "openai").unwrap();
    let installed = installed.iter().map(|(provider, text)| ((*provider).to_owned(), (*text).to_owned())).collect();
    ImportPlan::new(&list, &installed, TODAY).unwrap()
}

fn of<'p>(plan: &'p ImportPlan, provider: &str) -> &'p ProviderPlan {
    plan.providers.iter().find(|found| found.provider == provider).unwrap()
}

/// The rates of a model in a plan's file.
fn rates(plan: &ImportPlan, provider: &str, model: &str) -> Value {
    let file: Value = serde_json::from_str(&of(plan, provider).text()).unwrap();
    file[model]["pricing_config"]["pay_as_you_go"].clone()
}

fn entry(plan: &ImportPlan, provider: &str, model: &str) -> Entry {
    let list = PriceList::parse(&of(plan, provider).text()).unwrap();
    list.find(provider, model).unwrap().entry.clone()
}

fn reasons<'p>(plan: &'p ImportPlan, model: &str) -> Vec<&'p str> {
    plan.refused.iter().filter(|refusal| refusal.model == model).map(|refusal| refusal.reason.as_str()).collect()
}

#[test]
fn one_rate_under_two_names_counts_once() {
    let list = json!({ "whisper-1": { "litellm_provider": "openai", "mode": "audio_transcription",
        "input_cost_per_second": 0.0001, "output_cost_per_second": 0.0001 } });
    let plan = plan(&list, ListFormat::LiteLlm, &[]);
    assert_eq!(
        rates(&plan, "openai", "whisper-1"),
        json!({ "additional_units": { "audio_seconds": { "price": "0.01" } } })
    );
}

#[test]
fn a_transcription_is_charged_by_tokens_where_they_are_reported_and_else_by_seconds() {
    let list = json!({ "gpt-4o-transcribe": { "litellm_provider": "openai", "mode": "audio_transcription",
        "input_cost_per_audio_token": 6e-06, "input_cost_per_token": 2.5e-06, "output_cost_per_token": 1e-05,
        "input_cost_per_second": 0.0001 } });
    let plan = plan(&list, ListFormat::LiteLlm, &[]);
    let entry = entry(&plan, "openai", "gpt-4o-transcribe");
    let by_tokens = json!({ "type": "tokens", "input_tokens": 14, "output_tokens": 45, "total_tokens": 59,
        "input_token_details": { "text_tokens": 4, "audio_tokens": 10 } });
    let by_seconds = json!({ "type": "duration", "seconds": 60 });
    for (usage, expected) in [(by_tokens, "0.052"), (by_seconds, "0.6")] {
        let read = Usage::parse(&usage).unwrap();
        assert_eq!(cents(&read, &entry, &Terms::default()).unwrap().normalize().to_string(), expected, "{usage}");
    }
}

#[test]
fn names_with_a_quality_and_a_size_are_images_of_one_model() {
    let image = |pixel: f64| {
        json!({ "litellm_provider": "openai", "mode": "image_generation",
        "input_cost_per_pixel": pixel, "output_cost_per_pixel": 0.0, "output_cost_per_token": 0.0 })
    };
    let list = json!({ "hd/1024-x-1024/dall-e-3": image(7.629e-08), "standard/1024-x-1024/dall-e-3": image(3.81469e-08),
        "hd/1024-x-1792/dall-e-3": image(6.539e-08), "standard/1024-x-1024/dall-e-9": image(0.0) });
    let plan = plan(&list, ListFormat::LiteLlm, &[]);
    let images = &rates(&plan, "openai", "dall-e-3")["image"];
    assert_eq!(images["hd"]["1024x1024"]["price"], "8");
    assert_eq!(images["hd"]["1024x1792"]["price"], "12");
    assert_eq!(images["standard"]["1024x1024"]["price"], "4");
    assert_eq!(reasons(&plan, "standard/1024-x-1024/dall-e-9"), ["an image without a price"]);
}

#[test]
fn a_price_by_the_pixel_is_no_free_token() {
    let list = json!({ "painter": { "litellm_provider": "openai", "mode": "image_generation",
        "input_cost_per_pixel": 1.9e-08, "input_cost_per_token": 0.0, "output_cost_per_token": 0.0 } });
    let plan = plan(&list, ListFormat::LiteLlm, &[]);
    assert_eq!(rates(&plan, "openai", "painter"), json!({ "additional_units": { "megapixels": { "price": "1.9" } } }));
}

#[test]
fn junk_nonsense_and_slips_are_refused_with_the_reason_and_keep_the_price_they_have() {
    let token = |provider: &str, input: Value| json!({ "litellm_provider": provider, "input_cost_per_token": input });
    let list = json!({
        "fallback_generalizations": { "rules": [] },
        "good": token("openai", json!(1e-6)),
        "negative": token("openai", json!(-1e-6)),
        "dear": token("openai", json!(0.01)),
        "free": token("openai", json!(0)),
        "azure/eu/gpt-5": token("azure", json!(1e-6)),
        "elsewhere/m": token("elsewhere", json!(1e-6)),
        "cached": { "litellm_provider": "openai", "input_cost_per_token": 1e-6, "cache_read_input_token_cost": 2e-6 },
        "odd": { "litellm_provider": "openai", "input_cost_per_token": 1e-6, "input_cost_per_moon": 2e-6 },
        "batch": { "litellm_provider": "openai", "input_cost_per_token": 1e-6, "input_cost_per_token_batches": 2e-6 },
        "hourly": { "litellm_provider": "openai", "input_cost_per_token": 2e-6, "cache_creation_input_token_cost_above_1hr": 1e-6 },
    });
    let had = r#"{"dear": {"as_of": "2026-08", "pricing_config": {"pay_as_you_go": {"request_token": {"price": "0.0123456789012345678901"}}}}}"#;
    let plan = plan(&list, ListFormat::LiteLlm, &[("openai", had)]);
    for (model, expected) in [
        ("fallback_generalizations", "no model"),
        ("negative", "input_cost_per_token: -1e-6 is negative"),
        ("dear", "more than a dollar for a thousand tokens"),
        ("free", "no rate above 0, and not listed as free"),
        ("eu/gpt-5", "a region's own price"),
        ("m", "not a provider of this gateway"),
        ("cached", "cache_read_input_token is dearer than request_token"),
        ("odd", "rate input_cost_per_moon is not known"),
        ("batch", "batch request_token is dearer than the usual one"),
        ("hourly", "usual: cache_write_1h is cheaper than what is read once"),
    ] {
        assert_eq!(reasons(&plan, model), [expected], "{model}");
    }
    let file: BTreeMap<String, Value> = serde_json::from_str(&of(&plan, "openai").text()).unwrap();
    assert_eq!(file.keys().collect::<Vec<_>>(), ["batch", "cached", "dear", "good", "odd"]);
    assert!(of(&plan, "openai").text().contains("0.0123456789012345678901"), "digit for digit");
    assert_eq!(
        file["cached"]["pricing_config"],
        json!({ "pay_as_you_go": { "request_token": { "price": "0.0001" } } })
    );
}

#[test]
fn rates_are_exact_and_dated_in_every_tier() {
    let list = json!({ "gemini/m": { "litellm_provider": "gemini", "mode": "chat",
        "input_cost_per_token": 1.25e-06, "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-07,
        "input_cost_per_token_above_200k_tokens": 2.5e-06, "input_cost_per_token_batches": 6.25e-07,
        "input_cost_per_token_priority": 2.25e-06, "input_cost_per_token_above_200k_tokens_priority": 4.5e-06 } });
    let plan = plan(&list, ListFormat::LiteLlm, &[]);
    let file: Value = serde_json::from_str(&of(&plan, "google").text()).unwrap();
    assert_eq!(
        file["m"],
        json!({
            "as_of": TODAY,
            "pricing_config": {
                "pay_as_you_go": { "request_token": { "price": "0.000125" }, "response_token": { "price": "0.001" },
                    "cache_read_input_token": { "price": "0.0000125" } },
                "batch_config": { "request_token": { "price": "0.0000625" } },
            },
            "custom_pricing": {
                "regions": { "default": { "execution_modes": {
                    "standard": { "context_tiers": { "gt-200k": { "pricing_config": {
                        "pay_as_you_go": { "request_token": { "price": "0.00025" } } } } } },
                    "priority": {
                        "pricing_config": { "pay_as_you_go": { "request_token": { "price": "0.000225" } } },
                        "context_tiers": { "gt-200k": { "pricing_config": {
                            "pay_as_you_go": { "request_token": { "price": "0.00045" } } } } } },
                } } },
                "context_tier_map": { "200000": "gt-200k" },
            },
        })
    );
    assert!(entry(&plan, "google", "m").edition().starts_with("2026-11-18."));
}

#[test]
fn the_difference_says_what_is_new_changed_and_gone_and_the_rest_keeps_its_edition() {
    const HAD: &str = r#"{
        "same": {"as_of": "2026-08", "pricing_config": {"pay_as_you_go": {"request_token": {"price": "0.0001"}}}},
        "other": {"as_of": "2026-08", "pricing_config": {"pay_as_you_go": {"request_token": {"price": "0.0001"}}}},
        "Spelt": {"as_of": "2026-08", "pricing_config": {"pay_as_you_go": {"request_token": {"price": "0.0001"}}}},
        "old": {"as_of": "2026-07", "pricing_config": {"pay_as_you_go": {"request_token": {"price": "0.0009"}}}}
    }"#;
    let token = |input: f64| json!({ "litellm_provider": "cerebras", "input_cost_per_token": input });
    let list = json!({ "cerebras/same": token(1e-6), "cerebras/other": token(2e-6), "cerebras/new": token(3e-6), "cerebras/spelt": token(4e-6) });
    let first = plan(&list, ListFormat::LiteLlm, &[("cerebras", HAD)]);
    let cerebras = of(&first, "cerebras");
    let lines: Vec<String> = cerebras.changes.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "gone old: stays with its price of 2026-07",
            "changed Spelt: request_token 0.0001 → 0.0004",
            "new new: request_token 0.0003",
            "changed other: request_token 0.0001 → 0.0002",
            "new spelt: request_token 0.0004",
        ]
    );
    assert_eq!(cerebras.unchanged, 1);
    let before = PriceList::parse(HAD).unwrap();
    for (model, is_kept) in [("same", true), ("old", true), ("other", false)] {
        let earlier = before.find("cerebras", model).unwrap().entry.edition().to_owned();
        assert_eq!(entry(&first, "cerebras", model).edition() == earlier, is_kept, "{model}");
    }
    // Once stored, the same list changes nothing.
    let text = cerebras.text();
    let again = plan(&list, ListFormat::LiteLlm, &[("cerebras", &text)]);
    assert!(again.is_empty(), "{again:?}");
    assert_eq!(of(&again, "cerebras").text(), text);
}

#[test]
fn a_list_of_tokens_alone_takes_no_other_rates_from_models_it_confirms() {
    const HAD: &str = r#"{"m": {"as_of": "2026-08", "pricing_config": {
        "pay_as_you_go": {"request_token": {"price": "0.0001"}, "additional_units": {"web_search": {"price": "1"}}},
        "batch_config": {"request_token": {"price": "0.00005"}}}}}"#;
    let list = |input: u32| json!({ "groq": { "models": { "m": { "cost": { "input": input } } } } });
    let confirmed = plan(&list(1), ListFormat::ModelsDev, &[("groq", HAD)]);
    assert!(confirmed.is_empty());
    let dearer = plan(&list(2), ListFormat::ModelsDev, &[("groq", HAD)]);
    let [RowChange::Changed { rates, .. }] = &of(&dearer, "groq").changes[..] else { panic!("{dearer:?}") };
    let lines: Vec<String> = rates.iter().map(ToString::to_string).collect();
    assert_eq!(lines, ["batch request_token 0.00005 → none", "request_token 0.0001 → 0.0002", "web_search 1 → none"]);
}

#[test]
fn a_list_of_ours_is_the_whole_list_and_its_rows_keep_the_rules() {
    const HAD: &str = r#"{"old": {"as_of": "2026-07", "pricing_config": {"pay_as_you_go": {"request_token": {"price": "1e-4"}}}},
        "dear": {"as_of": "2026-07", "pricing_config": {"pay_as_you_go": {"request_token": {"price": "0.0001"}}}}}"#;
    let list = json!({
        "dated": { "as_of": "2026-10-01", "pricing_config": { "pay_as_you_go": { "request_token": { "price": 0.0001 } } } },
        "undated": { "pricing_config": { "pay_as_you_go": { "request_token": { "price": "0.0002" } } } },
        "dear": { "pricing_config": { "pay_as_you_go": { "request_token": { "price": "5" } } } },
        "negative": { "pricing_config": { "pay_as_you_go": { "request_token": { "price": -1 } } } },
        "text": "price",
    });
    let plan = plan(&list, ListFormat::Ours, &[("openai", HAD)]);
    let file: BTreeMap<String, Value> = serde_json::from_str(&of(&plan, "openai").text()).unwrap();
    assert_eq!(file.keys().collect::<Vec<_>>(), ["dated", "dear", "undated"]);
    assert_eq!((&file["dated"]["as_of"], &file["undated"]["as_of"]), (&json!("2026-10-01"), &json!(TODAY)));
    assert_eq!(file["dear"]["as_of"], "2026-07", "a refused row changes nothing");
    assert!(of(&plan, "openai").changes.contains(&RowChange::Gone { model: "old".into(), stays_as_of: None }));
    for (model, reason) in
        [("dear", "more than a dollar for a thousand"), ("negative", "a price"), ("text", "invalid type")]
    {
        assert!(
            reasons(&plan, model).iter().any(|found| found.contains(reason)),
            "{model}: {:?}",
            reasons(&plan, model)
        );
    }
}

#[test]
fn the_format_is_told_by_the_rows() {
    for (text, expected) in [
        (r#"{"fallback_generalizations": {}, "m": {"litellm_provider": "openai"}}"#, Some("litellm")),
        (r#"{"openai": {"id": "openai", "models": {"m": {"cost": {"input": 1}}}}}"#, Some("models.dev")),
        (r#"{"m": {"pricing_config": {}}}"#, Some("ours")),
        (r#"{"m": {"price": 1}}"#, None),
        (r#"{"openai": {"models": {}}}"#, None),
        ("{}", None),
    ] {
        let read = SourceList::read(text, None, "openai").ok().map(|list| match list {
            SourceList::Public { format, .. } => format.name(),
            SourceList::Ours(_) => "ours",
        });
        assert_eq!(read, expected, "{text}");
    }
}

#[test]
fn a_list_with_the_bundled_price_of_a_model_changes_nothing() {
    let list = json!({ "gpt-4o": { "litellm_provider": "openai", "mode": "chat", "input_cost_per_token": 2.5e-06,
        "output_cost_per_token": 1e-05, "cache_read_input_token_cost": 1.25e-06, "input_cost_per_token_batches": 1.25e-06,
        "output_cost_per_token_batches": 5e-06, "input_cost_per_token_priority": 4.25e-06,
        "output_cost_per_token_priority": 1.7e-05, "cache_read_input_token_cost_priority": 2.125e-06 } });
    let installed = crate::cost::prices::bundled::text(crate::cost::prices::Kind::Pricing, "openai").unwrap();
    let plan = plan(&list, ListFormat::LiteLlm, &[("openai", installed)]);
    assert!(plan.is_empty(), "{:?}", of(&plan, "openai").changes);
    let count = bundled_prices("openai").unwrap().len();
    assert_eq!(PriceList::parse(&of(&plan, "openai").text()).unwrap().len(), count);
}
