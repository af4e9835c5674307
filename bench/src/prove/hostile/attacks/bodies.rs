//! Calls whose body, config or answer is meant to cost more than it should.

use super::{Attacker, status};
use crate::prove::client::chat;
use http::{HeaderValue, Method, header};
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

pub async fn long_model(by: Arc<Attacker>, length: usize) -> String {
    let mut model = String::with_capacity(length + 32);
    while model.len() < length {
        model.push_str(&Uuid::new_v4().simple().to_string());
    }
    let mut body = chat(&json!({}), false);
    body["model"] = model.into();
    status(&by.caller, by.caller.post_json("/v1/chat/completions", &body)).await
}

pub async fn patterns(by: Arc<Attacker>) -> String {
    let tests: Vec<_> = (0..1800).map(|n| json!({ "params.a": { "$regex": format!("x{n}") } })).collect();
    let target = json!({ "name": "t", "provider": "openai", "api_key": "sk-mock", "custom_host": format!("{}/v1", by.provider) });
    let strategy =
        json!({ "mode": "conditional", "conditions": [{ "query": { "$or": tests }, "then": "t" }], "default": "t" });
    let config = json!({ "strategy": strategy, "targets": [target] });
    let mut body = chat(&json!({}), false);
    body["a"] = "y".repeat(20 << 20).into();
    call_by_config(&by, &config, &body).await
}

/// A check of patterns that are slow for engines that go back, on two megabytes.
pub async fn slow_patterns(by: Arc<Attacker>) -> String {
    let check = json!({ "default.regexMatch": { "rule": "(a+)+(b|a)*c$", "not": true }, "deny": true });
    let config = json!({ "provider": "openai", "api_key": "sk-mock", "custom_host": format!("{}/v1", by.provider),
        "input_guardrails": [check] });
    let mut body = chat(&json!({}), false);
    body["messages"][0]["content"] = "a".repeat(2 << 20).into();
    call_by_config(&by, &config, &body).await
}

/// A megabyte of arrays in arrays.
pub async fn deep_body(by: Arc<Attacker>) -> String {
    let deep = ["{\"model\":\"m\",\"messages\":", &"[".repeat(500_000), &"]".repeat(500_000), "}"].concat();
    send_text(&by, deep).await
}

/// Four megabytes of text, each character of which is written as an escape.
pub async fn escapes(by: Arc<Attacker>) -> String {
    let text = "\\u0061".repeat(700_000);
    send_text(&by, format!(r#"{{"model":"m","messages":[{{"role":"user","content":"{text}"}}]}}"#)).await
}

/// Names that are nearly known, each of which would be compared with all that are.
pub async fn config_names(by: Arc<Attacker>) -> String {
    let names = (0..250).map(|n| (format!("custom_hos{n}"), json!({ "provide": n })));
    let mut config: serde_json::Map<String, Value> = names.collect();
    config.insert("provider".into(), "openai".into());
    call_by_config(&by, &config.into(), &chat(&json!({}), false)).await
}

/// Values of metadata that nobody had before: each is one more in figures.
pub async fn metadata(by: Arc<Attacker>) -> String {
    let values = (0..64).map(|n| (format!("name{n}"), Uuid::new_v4().to_string().into()));
    let values: serde_json::Map<String, Value> = values.collect();
    let Ok(caller) = by.caller.with("x-gateway-metadata", &Value::from(values).to_string()) else {
        return "none".into();
    };
    status(&caller, caller.chat(&json!({}), false)).await
}

/// A stream of the provider that the tenant runs itself.
pub async fn by_provider(by: Arc<Attacker>, provider: &'static str, answer: &'static str) -> String {
    let config = json!({ "provider": provider, "api_key": "sk-mock", "aws_access_key_id": "AK",
        "aws_secret_access_key": "sk", "aws_region": "eu-west-1",
        "custom_host": format!("{}/{answer}", by.own_provider) });
    let plain = ["endless-head", "deep", "drip"].contains(&answer);
    call_by_config(&by, &config, &chat(&json!({}), !plain)).await
}

async fn call_by_config(by: &Attacker, config: &Value, body: &Value) -> String {
    let Ok(caller) = by.by_config.with("x-gateway-config", &config.to_string()) else { return "no config".into() };
    status(&caller, caller.post_json("/v1/chat/completions", body)).await
}

async fn send_text(by: &Attacker, text: String) -> String {
    let mut request = by.caller.request(Method::POST, "/v1/chat/completions", crate::prove::client::whole(text));
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    status(&by.caller, request).await
}
