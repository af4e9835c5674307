//! Queries against requests, operator by operator.

use super::*;
use serde_json::json;
use shared::config::{Strictness, parse_config};
use shared::settings::config_limits::ConfigLimits;

fn query(query: Value) -> Query {
    let config = json!({
        "strategy": { "mode": "conditional", "conditions": [{ "query": query, "then": "a" }], "default": "a" },
        "targets": [{ "name": "a", "provider": "@p" }],
    });
    let config = parse_config(&config, Strictness::Inline, &ConfigLimits::default())
        .unwrap_or_else(|faults| panic!("{faults:?}"));
    config.strategy.unwrap().conditions.remove(0).query
}

#[test]
fn each_operator_says_what_the_contract_says() {
    let metadata = json!({ "tier": "pro", "count": "5", "text": "12px", "flag": "true" });
    let body = br#"{"model":"gpt-4o","temperature":0.7,"user":null,"nested":{"a":1}}"#;
    let params = Fields::parse_object(body).unwrap();
    let facts =
        RequestFacts { metadata: metadata.as_object().unwrap(), params: &params, pathname: "/v1/chat/completions" };
    for (written, expected) in [
        (json!({ "metadata.tier": "pro" }), true),
        (json!({ "metadata.tier": { "$eq": "pro" } }), true),
        (json!({ "metadata.tier": { "$ne": "free" } }), true),
        (json!({ "metadata.none": { "$ne": "free" } }), true),
        (json!({ "metadata.none": { "$eq": "free" } }), false),
        (json!({ "metadata.count": "5" }), true),
        (json!({ "metadata.count": "5.0" }), false),
        (json!({ "metadata.count": { "$in": [4, 5] } }), true),
        (json!({ "metadata.count": { "$ne": 5 } }), false),
        (json!({ "metadata.count": 5.0 }), true),
        (json!({ "metadata.count": { "$gte": 5, "$lt": 6 } }), true),
        (json!({ "metadata.count": { "$gt": 5 } }), false),
        (json!({ "metadata.count": { "$lte": "5" } }), true),
        (json!({ "metadata.text": { "$gt": 11 } }), true),
        (json!({ "metadata.tier": { "$gt": 0 } }), false),
        (json!({ "metadata.none": { "$lt": 9 } }), false),
        (json!({ "metadata.tier": { "$in": ["free", "pro"] } }), true),
        (json!({ "metadata.tier": { "$nin": ["free"] } }), true),
        (json!({ "metadata.none": { "$nin": ["free"] } }), true),
        (json!({ "metadata.none": { "$in": ["free"] } }), false),
        (json!({ "metadata.tier": { "$in": "pro" } }), false),
        (json!({ "metadata.tier": { "$nin": "pro" } }), false),
        (json!({ "metadata.tier": { "$regex": "^p.o$" } }), true),
        (json!({ "metadata.count": { "$regex": "5" } }), true),
        (json!({ "metadata.tier": { "$regex": "P" } }), false),
        (json!({ "metadata.tier": { "$regex": "(" } }), false),
        (json!({ "metadata.none": { "$regex": "" } }), false),
        (json!({ "metadata.tier": { "$regex": "p", "$ne": "pro" } }), false),
        (json!({ "metadata.flag": true }), true),
        (json!({ "metadata.flag": false }), false),
        (json!({ "params.temperature": "0.7" }), false),
        (json!({ "params.model": { "$regex": "^gpt-4" } }), true),
        (json!({ "params.temperature": { "$gte": 0.5 } }), true),
        (json!({ "params.user": null }), true),
        (json!({ "params.nested.a": 1 }), false),
        (json!({ "url.pathname": "/v1/chat/completions" }), true),
        (json!({ "$and": [{ "metadata.tier": "pro" }, { "metadata.count": 5 }] }), true),
        (json!({ "$and": [{ "metadata.tier": "pro" }, { "metadata.count": 6 }] }), false),
        (json!({ "$or": [{ "metadata.tier": "free" }, { "metadata.count": 5 }] }), true),
        (json!({ "$or": [{ "metadata.tier": "pro" }], "metadata.count": 6 }), false),
        (json!({ "$or": [{ "$and": [{ "metadata.tier": "pro" }] }, { "metadata.none": 1 }] }), true),
        (json!({}), true),
    ] {
        assert_eq!(holds(&query(written.clone()), &facts), expected, "{written}");
    }
}
