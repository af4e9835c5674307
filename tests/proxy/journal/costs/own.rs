//! Vectors whose price depends on the account behind the call: its region, its factors and its own prices for a model, all
//! stored by the control plane.

use super::forms::calls;
use super::{ask, judge, lists, stack_with, vectors};
use crate::families::{KEY, application};
use harness::Stack;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const TERMS: [&str; 5] = ["region", "multipliers", "own_price", "pricing_adjustments", "model_pricing_config"];

pub fn has_terms(vector: &Value) -> bool {
    TERMS.iter().any(|name| !vector[name].is_null())
}

/// Numbers, as the control plane takes them; the vectors write decimals as texts. Nothing is sent for nothing.
fn numbers(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sent = fields.iter().filter(|(_, value)| !value.is_null());
            sent.map(|(name, value)| (name.clone(), numbers(value))).collect()
        }
        Value::String(text) => text.parse::<f64>().map_or_else(|_| value.clone(), |number| json!(number)),
        other => other.clone(),
    }
}

/// An integration of the workspace with these terms, and its provider of the same name.
async fn integrate(stack: &Stack, slug: &str, provider: &str, vector: &Value) {
    let mut body = json!({
        "name": slug, "slug": slug, "ai_provider_id": provider, "key": KEY,
        "workspace_id": stack.home.workspace_id, "default_provider_slug": slug,
        "configurations": { "custom_host": stack.mock.url() },
    });
    if let Some(region) = vector["region"].as_str() {
        body["configurations"]["aws_region"] = json!(region);
        body["configurations"]["aws_auth_type"] = json!("apiKey");
    }
    if !vector["multipliers"].is_null() {
        body["pricing_adjustments"] = json!({ "multiplier": numbers(&vector["multipliers"]) });
    } else if !vector["pricing_adjustments"].is_null() {
        body["pricing_adjustments"] = numbers(&vector["pricing_adjustments"]);
    }
    let administrator = stack.administrator();
    let answer = administrator.post("/integrations", &body).await;
    assert_eq!(answer.status, 200, "{body}: {}", answer.text());
    if let Some(price) = ["own_price", "model_pricing_config"].iter().map(|name| &vector[name]).find(|it| !it.is_null())
    {
        let model =
            json!({ "slug": vector["rule"], "enabled": true, "is_custom": true, "pricing_config": numbers(price) });
        let path = format!("/integrations/{slug}/models");
        let answer = administrator.put(&path, &json!({ "models": [model] })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

async fn seen(stack: &Stack) {
    const LAST: &str = "SELECT greatest((SELECT max(changed_xid::text::bigint) FROM integration_models),
        (SELECT max(changed_xid::text::bigint) FROM providers))::float8";
    let last: f64 = stack.database.client().await.query_one(LAST, &[]).await.unwrap().get(0);
    let arrived = async || stack.metric("gateway_snapshot_cursor").await.is_some_and(|cursor| cursor > last);
    stack.until("the integrations have arrived", arrived).await;
}

#[tokio::test]
async fn every_vector_of_an_account_costs_what_was_worked_out_by_hand() {
    let vectors: Vec<_> = vectors().into_iter().filter(|(_, vector)| has_terms(vector)).collect();
    assert!(vectors.len() >= 10, "{}", vectors.len());
    let prices = lists(&vectors);
    let stack = stack_with(&prices).await;
    let mut asked = Vec::new();
    for (number, (provider, vector)) in vectors.iter().enumerate() {
        let calls = calls(provider, vector);
        assert!(!calls.is_empty(), "{} can be told", vector["rule"]);
        for call in calls {
            // By the account of whoever speaks this dialect.
            let slug = format!("account-{number}-{}", call.form.replace(' ', "-"));
            integrate(&stack, &slug, &call.provider, vector).await;
            asked.push((slug, call));
        }
    }
    seen(&stack).await;
    let mut sent = BTreeMap::new();
    for (slug, call) in asked {
        let client = application(&stack).with("x-gateway-provider", format!("@{slug}"));
        sent.insert(ask(&stack, &client, &call).await, call);
    }
    judge(&stack, &sent).await;
}
