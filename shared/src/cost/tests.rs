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

#[test]
fn cents_are_stored_with_ten_decimals() {
    let rates = json!({ "request_token": { "price": "0.00000000006" } });
    let found = cost(&Usage::parse(&json!({ "prompt_tokens": 1 })).unwrap(), &entry(rates), &Terms::default()).unwrap();
    assert_eq!(found.cents().to_string(), "0.0000000001");
}
