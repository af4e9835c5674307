//! What integrations say about prices, and what is left of it when it cannot be read.

use super::super::{Entry, Images, Usage, cost};
use super::*;
use crate::model::Status;
use serde_json::json;
use uuid::Uuid;

fn integration(adjustments: Option<Value>) -> Integration {
    Integration {
        id: Uuid::nil().into(),
        organisation_id: Uuid::nil().into(),
        workspace_id: None,
        slug: "main".into(),
        ai_provider_id: "openai".into(),
        configurations: json!({}),
        sealed: None,
        secret_mappings: json!([]),
        pricing_adjustments: adjustments,
        allow_all_models: true,
        status: Status::Active,
    }
}

fn model(base: Option<&str>, price: Option<Value>) -> IntegrationModel {
    IntegrationModel {
        id: Uuid::nil(),
        organisation_id: Uuid::nil().into(),
        integration_id: Uuid::nil().into(),
        slug: "mine".into(),
        enabled: true,
        is_custom: true,
        is_finetune: false,
        base_model_slug: base.map(str::to_owned),
        pricing_config: price,
        configurations: None,
        sealed: None,
    }
}

#[test]
fn nested_and_dotted_factors_mean_the_same() {
    let entry: Entry = serde_json::from_value(json!({ "pricing_config": { "pay_as_you_go": {
        "request_token": { "price": 1 }, "image": { "default": { "default": { "price": 10 } } },
        "additional_units": { "web_search": { "price": 100 } },
    } } }))
    .unwrap();
    let mut usage = Usage::parse(&json!({ "prompt_tokens": 1, "num_search_queries": 1 })).unwrap();
    usage.images = Some(Images { quality: "hd".into(), size: "x".into(), count: 1 });
    for factors in [
        json!({ "default": 3, "image": { "default": 2 }, "additional_units": { "web_search": 0.5 } }),
        json!({ "default": 3, "image.default": 2, "additional_units.web_search": 0.5 }),
    ] {
        let integration = integration(Some(json!({ "multiplier": factors })));
        let own = OwnPrices::for_model(&integration, None).unwrap();
        let found = cost(&usage, &entry, &own.terms(None, PriceMode::Standard)).unwrap();
        assert_eq!(found.cents().to_string(), "73", "3 + 2×10 + 0.5×100: {factors}");
    }
}

#[test]
fn a_model_that_no_list_knows_costs_its_own_price_times_the_factors() {
    let integration = integration(Some(json!({ "multiplier": { "response_token": 0.5, "request_token": null } })));
    let price = json!({ "type": "static", "pay_as_you_go": {
        "request_token": { "price": 0.00025 }, "response_token": { "price": "0.001" } } });
    let own = OwnPrices::for_model(&integration, Some(&model(None, Some(price)))).unwrap();
    assert!(own.has_price());
    let usage = Usage::parse(&json!({ "prompt_tokens": 1000, "completion_tokens": 100 })).unwrap();
    let found = cost(&usage, &Entry::default(), &own.terms(None, PriceMode::Standard)).unwrap();
    assert_eq!(found.cents().to_string(), "0.3", "1000×0.00025 + 100×0.001×0.5");
}

#[test]
fn an_integration_that_says_nothing_leaves_the_list_as_it_is() {
    for adjustments in [None, Some(json!({})), Some(json!({ "multiplier": null })), Some(Value::Null)] {
        let own = OwnPrices::for_model(&integration(adjustments), Some(&model(None, None))).unwrap();
        assert_eq!(own, OwnPrices::default());
    }
    assert_eq!(listed_name(None, "gpt-x"), "gpt-x");
    assert_eq!(listed_name(Some(&model(Some("gpt-x"), None)), "mine"), "gpt-x");
    assert_eq!(listed_name(Some(&model(None, None)), "mine"), "mine");
}

#[test]
fn what_cannot_be_read_is_told_by_its_field() {
    let field = |adjustments: Value, price: Value| {
        OwnPrices::parse(Some(&adjustments), Some(&price)).err().map(|error| error.field)
    };
    let rate = |price: Value| json!({ "pay_as_you_go": { "request_token": { "price": price } } });
    assert_eq!(field(json!({ "multiplier": { "default": -1 } }), Value::Null), Some("pricing_adjustments"));
    assert_eq!(
        field(json!({ "multiplier": { "image": { "a": { "b": 1 } } } }), Value::Null),
        Some("pricing_adjustments")
    );
    for price in
        [rate(json!(-1)), rate(json!(1e300)), json!({ "pay_as_you_go": { "other": { "group": { "price": 1 } } } })]
    {
        assert_eq!(field(Value::Null, price.clone()), Some("pricing_config"), "{price}");
    }
    assert_eq!(field(json!({ "multiplier": { "default": 1.1 } }), rate(json!(1))), None);
}
