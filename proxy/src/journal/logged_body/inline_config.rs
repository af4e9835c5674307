//! A config that came with a request, as logs show it: whole but for the secrets inside. Whoever looks for why a request
//! went where it went needs it, and a mask over all of it would tell nothing.

use super::mask::{MASK, sounds_secret};
use serde_json::{Map, Value};
use shared::config::credentials;

/// Whether a header carries a config; names are in lower case.
pub fn is_config(name: &str) -> bool {
    name.ends_with("-config")
}

/// The value of such a header. A slug or id is shown; what is neither that nor JSON could be anything.
pub fn masked(value: &[u8]) -> Vec<u8> {
    if !value.is_empty() && value.len() <= 255 && value.iter().all(|byte| is_plain(*byte)) {
        return value.to_vec();
    }
    match serde_json::from_slice::<Value>(value) {
        Ok(config @ Value::Object(_)) => without_secrets(config).to_string().into_bytes(),
        _ => MASK.as_bytes().to_vec(),
    }
}

const fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_'
}

fn without_secrets(value: Value) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>()),
        Value::Array(items) => items.into_iter().map(without_secrets).collect(),
        // An address may name a user and a password.
        Value::String(text) if text.contains("://") && text.contains('@') => MASK.into(),
        other => other,
    }
}

fn field((name, value): (String, Value)) -> (String, Value) {
    let lower = name.to_ascii_lowercase();
    let is_hidden = sounds_secret(&lower) || credentials::names_secret(&name) || is_headers(&lower, &value);
    let is_harmless = matches!(value, Value::Null | Value::Bool(_) | Value::Number(_)) || is_reference(&lower);
    match is_hidden && !is_harmless {
        true => (name, MASK.into()),
        false => (name, without_secrets(value)),
    }
}

/// Headers with values; a list of names alone is none.
fn is_headers(name: &str, value: &Value) -> bool {
    name.ends_with("headers") && value.is_object()
}

/// Called a key, and only the name of a provider.
fn is_reference(name: &str) -> bool {
    matches!(name, "virtual_key" | "virtualkey")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_config_is_shown_with_its_secrets_masked_inside() {
        let sent = json!({
            "strategy": { "mode": "fallback", "on_status_codes": [429] },
            "forward_headers": ["x-team"],
            "targets": [
                { "provider": "openai", "api_key": "sk-1", "apiKey": "sk-2", "custom_headers": { "x-a": "s" } },
                { "virtual_key": "main", "weight": 1, "override_params": { "max_tokens": 5, "model": "m" } },
                { "provider": "vertex-ai", "vertexServiceAccountJson": { "private_key": "p" }, "awsExternalId": "e" },
                { "provider": "openai", "custom_host": "https://user:pass@llm.test/v1" },
            ],
        });
        let shown: Value = serde_json::from_slice(&masked(sent.to_string().as_bytes())).unwrap();
        let expected = json!({
            "strategy": { "mode": "fallback", "on_status_codes": [429] },
            "forward_headers": ["x-team"],
            "targets": [
                { "provider": "openai", "api_key": MASK, "apiKey": MASK, "custom_headers": MASK },
                { "virtual_key": "main", "weight": 1, "override_params": { "max_tokens": 5, "model": "m" } },
                { "provider": "vertex-ai", "vertexServiceAccountJson": MASK, "awsExternalId": MASK },
                { "provider": "openai", "custom_host": MASK },
            ],
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_no_config_is_a_slug_or_masked() {
        for (sent, shown) in [
            ("pc-main-3f9a01", "pc-main-3f9a01"),
            ("sk.with.dots", MASK),
            ("{broken", MASK),
            ("[1]", MASK),
            ("\"text\"", MASK),
            ("", MASK),
        ] {
            assert_eq!(masked(sent.as_bytes()), shown.as_bytes(), "{sent}");
        }
        assert!(is_config("x-gateway-config") && is_config("x-acme-config") && !is_config("x-gateway-api-key"));
    }
}
