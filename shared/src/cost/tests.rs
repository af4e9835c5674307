//! What the golden vectors do not reach: figures beyond all measure, and the parts of a cost.

use super::*;
use serde_json::json;

fn entry(rates: serde_json::Value) -> Entry {
    serde_json::from_value(json!({ "pricing_config": { "pay_as_you_go": rates } })).unwrap()
}

#[test]
fn a_cost_that_cannot_be_counted_is_an_error_and_no_panic() {
    let huge = "79228162514264337593543950335";
    for (rates, usage) in [
        (json!({ "request_token": { "price": huge } }), json!({ "prompt_tokens": u64::MAX })),
        (
            json!({ "additional_units": { "web_search": { "price": huge } } }),
            json!({ "prompt_tokens": 1, "num_search_queries": 2 }),
        ),
        (
            json!({ "request_token": { "price": huge }, "response_token": { "price": huge } }),
            json!({ "prompt_tokens": 1, "completion_tokens": 1 }),
        ),
    ] {
        let usage = Usage::parse(&usage).unwrap();
        assert_eq!(cost(&usage, &entry(rates.clone()), &Terms::default()), Err(TooLarge), "{rates}");
    }
    let fixed: Entry =
        serde_json::from_value(json!({ "pricing_config": { "pay_as_you_go": { "request_token": { "price": 1 } },
        "fixed_cost": { "request": { "price": huge }, "response": { "price": huge } } } }))
        .unwrap();
    let usage = Usage { input: 1, ..Usage::default() };
    assert_eq!(cost(&usage, &fixed, &Terms::default()), Err(TooLarge));
}

#[test]
fn the_parts_of_a_cost_are_told_apart() {
    let rates = json!({
        "request_token": { "price": 1 }, "response_token": { "price": 2 }, "additional_units": { "web_search": { "price": 3 } },
    });
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 5, "num_search_queries": 1 });
    let found = cost(&Usage::parse(&usage).unwrap(), &entry(rates), &Terms::default()).unwrap();
    assert_eq!((found.request, found.response, found.units), (10.into(), 10.into(), 3.into()));
    assert_eq!((found.cents().to_string(), found.usd().to_string()), ("23".into(), "0.23".into()));
}

/// Voyage's: the total holds the images as tokens.
#[test]
fn images_that_are_embedded_are_paid_once() {
    let usage = Usage::parse(&json!({ "text_tokens": 5, "image_pixels": 2_000_000, "total_tokens": 3576 })).unwrap();
    let tokens = json!({ "request_token": { "price": 1 } });
    let pixels =
        json!({ "request_token": { "price": 1 }, "additional_units": { "image_pixels": { "price": "0.001" } } });
    for (rates, cents, is_complete) in [(pixels, 5 + 2000, true), (tokens, 3576, false)] {
        let found = cost(&usage, &entry(rates.clone()), &Terms::default()).unwrap();
        assert_eq!((found.cents(), found.is_complete), (cents.into(), is_complete), "{rates}");
    }
    let rates =
        entry(json!({ "request_token": { "price": 1 }, "additional_units": { "image_pixels": { "price": 2 } } }));
    assert_eq!(unit_prices(&usage, &rates, &Terms::default()), r#"{"request_token":"1","image_pixels":"2"}"#);
}

#[test]
fn cents_are_stored_with_ten_decimals() {
    let rates = json!({ "request_token": { "price": "0.00000000006" } });
    let found = cost(&Usage::parse(&json!({ "prompt_tokens": 1 })).unwrap(), &entry(rates), &Terms::default()).unwrap();
    assert_eq!(found.cents().to_string(), "0.0000000001");
}

/// Kinds of tokens that providers charge like another kind unless they say otherwise; every other unit needs a rate of its own.
const CHARGED_LIKE: [(&str, &str); 6] = [
    ("cache_read", "input"),
    ("cache_read_audio", "audio_input"),
    ("image_input", "input"),
    ("cache_read_image", "image_input"),
    ("video_input", "input"),
    ("reasoning", "output"),
];

/// Each thing that can be used, used once, with the key of its rate.
fn one_of_each() -> Vec<(String, Usage, serde_json::Value)> {
    let nothing = Usage::default;
    let token = |key: &str| json!({ key: { "price": 1 } });
    let unit = |key: &str| json!({ "additional_units": { key: { "price": 1 } } });
    let images = Images { quality: "hd".into(), size: "1x1".into(), count: 1 };
    let mut found = vec![
        ("input".to_owned(), Usage { input: 1, ..nothing() }, token("request_token")),
        ("cache_read".into(), Usage { cache_read: 1, ..nothing() }, token("cache_read_input_token")),
        ("cache_write".into(), Usage { cache_write: 1, ..nothing() }, token("cache_write_input_token")),
        ("cache_write_1h".into(), Usage { cache_write: 1, cache_write_1h: 1, ..nothing() }, unit("cache_write_1h")),
        ("cache_write_12h".into(), Usage { cache_write: 1, cache_write_12h: 1, ..nothing() }, unit("cache_write_12h")),
        ("audio_input".into(), Usage { audio_input: 1, ..nothing() }, token("request_audio_token")),
        ("cache_read_audio".into(), Usage { cache_read_audio: 1, ..nothing() }, token("cache_read_audio_input_token")),
        ("image_input".into(), Usage { image_input: 1, ..nothing() }, token("request_image_token")),
        ("cache_read_image".into(), Usage { cache_read_image: 1, ..nothing() }, token("cache_read_image_input_token")),
        ("video_input".into(), Usage { video_input: 1, ..nothing() }, token("request_video_token")),
        ("output".into(), Usage { output: 1, ..nothing() }, token("response_token")),
        ("reasoning".into(), Usage { output: 1, reasoning: 1, ..nothing() }, token("reasoning_token")),
        ("audio_output".into(), Usage { audio_output: 1, ..nothing() }, token("response_audio_token")),
        ("image_output".into(), Usage { image_output: 1, ..nothing() }, token("response_image_token")),
        ("video_output".into(), Usage { video_output: 1, ..nothing() }, token("response_video_token")),
        (
            "images".into(),
            Usage { images: Some(images), ..nothing() },
            json!({ "image": { "hd": { "1x1": { "price": 1 } } } }),
        ),
    ];
    for name in unit_names().chain(["video_seconds_1080p"]) {
        let units = [(name.to_owned(), Decimal::ONE)].into();
        found.push((name.to_owned(), Usage { units, ..nothing() }, unit(name)));
    }
    found
}

#[test]
fn nothing_that_can_be_used_is_left_out_of_these_tests() {
    let mut is_used = [false; 17];
    for (_, usage, _) in one_of_each() {
        // A new field has to be named here.
        let Usage {
            input,
            cache_read,
            cache_write,
            cache_write_1h,
            cache_write_12h,
            audio_input,
            cache_read_audio,
            image_input,
            cache_read_image,
            video_input,
            output,
            reasoning,
            audio_output,
            image_output,
            video_output,
            images,
            units,
        } = usage;
        let tokens = [
            input,
            cache_read,
            cache_write - cache_write_1h - cache_write_12h,
            cache_write_1h,
            cache_write_12h,
            audio_input,
            cache_read_audio,
            image_input,
            cache_read_image,
            video_input,
            output - reasoning,
            reasoning,
            audio_output,
            image_output,
            video_output,
        ];
        let used = tokens.map(|count| count > 0).into_iter().chain([images.is_some(), !units.is_empty()]);
        is_used.iter_mut().zip(used).for_each(|(is_used, used)| *is_used |= used);
    }
    assert_eq!(is_used, [true; 17]);
}

#[test]
fn each_unit_without_a_rate_is_of_unknown_price_and_never_free() {
    let text = json!({ "request_token": { "price": 2 }, "response_token": { "price": 3 } });
    let formula = |counts: &str, rate: &str| json!({ "operation": "multiply", "operands": [{ "value": counts }, { "value": rate }] });
    let formulas = json!({ "request": formula("input_tokens", "rates.request_token"), "response": formula("output_tokens", "rates.response_token") });
    let by_formula: Entry =
        serde_json::from_value(json!({ "pricing_config": { "pay_as_you_go": text, "calculate": formulas } })).unwrap();
    for (name, usage, own) in one_of_each() {
        let is_text = ["input", "output"].contains(&&*name);
        let like = CHARGED_LIKE.iter().find(|(kind, _)| *kind == name).map(|(_, like)| *like);
        // Sound that was read from a cache is charged like other sound, which has no rate here either.
        let is_known = is_text || like.is_some_and(|like| like != "audio_input");
        for (entry, is_known, what) in [
            (entry(json!({})), false, "no rates"),
            (entry(text.clone()), is_known, "rates of text"),
            (by_formula.clone(), is_text || name == "reasoning", "formulas of text"),
            (entry(own), true, "its own rate"),
        ] {
            let found = bill(&usage, &entry, &Terms::default());
            assert_eq!(found.is_complete, is_known, "{name} with {what}: {found:?}");
            assert!(!is_known || found.cents.is_some_and(|cents| !cents.is_zero()), "{name} with {what}: {found:?}");
            let prices = unit_prices(&usage, &entry, &Terms::default());
            let prices: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&prices).unwrap();
            assert_eq!(prices.values().all(|price| !price.is_null()), is_known, "{name} with {what}: {prices:?}");
        }
    }
}

#[test]
fn a_formula_prices_its_own_half_of_a_call_and_what_it_counts() {
    let value = |name: &str| json!({ "value": name });
    let times = |one: &str, other: &str| json!({ "operation": "multiply", "operands": [value(one), value(other)] });
    let sum =
        |one: serde_json::Value, other: serde_json::Value| json!({ "operation": "sum", "operands": [one, other] });
    let text = || times("input_tokens", "rates.request_token");
    let usage = json!({ "prompt_tokens": 10, "completion_tokens": 4, "prompt_tokens_details": { "image_tokens": 3 } });
    for (formulas, cents, is_complete) in [
        // The other half has none: 10 × 2 of text and pictures, 4 × 5.
        (json!({ "response": times("output_tokens", "rates.response_token") }), 40, true),
        (json!({ "request": text() }), 34, false),
        (json!({ "request": sum(text(), times("image_input_tokens", "rates.request_token")) }), 40, true),
        (json!({ "request": sum(text(), times("image_input_tokens", "rates.request_image_token")) }), 40, false),
        (json!({ "request": sum(text(), times("image_input_tokens", "rates.unheard_of")) }), 34, false),
        // What is not used needs no rate.
        (
            json!({ "request": sum(sum(text(), times("image_input_tokens", "2")), times("audio_input_tokens", "rates.request_audio_token")) }),
            40,
            true,
        ),
        (json!({ "request": value("7") }), 27, true),
        (json!({ "request": value("0"), "response": value("0") }), 0, true),
        (json!({ "request": value("misspelt") }), 20, false),
    ] {
        let config = json!({ "pay_as_you_go": { "request_token": { "price": 2 }, "response_token": { "price": 5 } }, "calculate": formulas });
        let entry: Entry = serde_json::from_value(json!({ "pricing_config": config })).unwrap();
        let found = bill(&Usage::parse(&usage).unwrap(), &entry, &Terms::default());
        assert_eq!(found, Bill { cents: Some(cents.into()), is_complete }, "{formulas}");
        let prices = unit_prices(&Usage::parse(&usage).unwrap(), &entry, &Terms::default());
        assert_eq!(prices.matches("null").count(), usize::from(!is_complete), "{formulas}: {prices}");
        let read: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&prices).unwrap();
        assert_eq!(read.len(), prices.matches("\":").count(), "each key once: {prices}");
    }
}

#[test]
fn what_stands_in_for_a_missing_rate_is_counted_so_that_no_budget_misses_the_call() {
    let rates = json!({ "request_token": { "price": 2 }, "response_token": { "price": 3 },
        "additional_units": { "cache_write_1h": { "price": 5 } } });
    for (usage, cents) in [
        (json!({ "prompt_tokens": 10, "prompt_tokens_details": { "audio_tokens": 4 } }), 20),
        (
            json!({ "prompt_tokens": 0, "completion_tokens": 10, "completion_tokens_details": { "audio_tokens": 4 } }),
            30,
        ),
        (json!({ "input_tokens": 1, "cache_creation_input_tokens": 4 }), 10),
        (json!({ "input_tokens": 1, "cache_creation": { "ephemeral_12h_input_tokens": 4 } }), 22),
    ] {
        let found = bill(&Usage::parse(&usage).unwrap(), &entry(rates.clone()), &Terms::default());
        assert_eq!(found, Bill { cents: Some(cents.into()), is_complete: false }, "{usage}");
    }
}

#[test]
fn searches_are_paid_one_by_one_all_at_once_or_by_their_context() {
    let fee = |names: &[&str]| {
        let units: serde_json::Map<_, _> =
            names.iter().map(|name| ((*name).to_owned(), json!({ "price": 1 }))).collect();
        entry(json!({ "additional_units": units }))
    };
    let used = |names: &[&str]| Usage {
        units: names.iter().map(|name| ((*name).to_owned(), Decimal::TWO)).collect(),
        ..Usage::default()
    };
    for (used_units, listed, cents, is_complete) in [
        (&["web_search", "grounded_prompt"][..], &["web_search"][..], Some(2), true),
        (&["web_search", "grounded_prompt"], &["grounded_prompt"], Some(2), true),
        (&["web_search", "grounded_prompt"], &["web_search", "grounded_prompt"], Some(2), true),
        (&["web_search", "grounded_prompt"], &["maps"], None, false),
        (&["web_search", "request_low_context"], &["web_search"], Some(2), true),
        (&["web_search", "request_low_context"], &["request_low_context"], Some(2), true),
        (&["web_search", "request_low_context"], &["web_search", "request_low_context"], Some(4), true),
        (&["web_search", "request_low_context"], &["request_high_context"], None, false),
        (&["request_low_context"], &["web_search"], None, false),
        (&["web_search", "maps"], &["web_search"], Some(2), false),
    ] {
        let found = bill(&used(used_units), &fee(listed), &Terms::default());
        let expected = Bill { cents: cents.map(Decimal::from), is_complete };
        assert_eq!(found, expected, "{used_units:?} {listed:?}");
    }
}
