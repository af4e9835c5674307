//! A config that came with a request, as logs show it: whole but for the secrets inside. Whoever looks for why a request
//! went where it went needs it, and a mask over all of it would tell nothing.

use super::mask::{MASK, sounds_secret};
use serde_json::{Map, Value};
use shared::config::credentials;
use uuid::Uuid;

/// Whether a header carries a config; names are in lower case.
pub fn is_config(name: &str) -> bool {
    name.ends_with("-config")
}

/// The value of such a header. The slug or id of a saved config is shown; what is neither that nor JSON could be anything.
pub fn masked(value: &[u8]) -> Vec<u8> {
    if is_saved(value) {
        return value.to_vec();
    }
    match serde_json::from_slice::<Value>(value) {
        Ok(config @ Value::Object(_)) => without_secrets(config, false).to_string().into_bytes(),
        _ => MASK.as_bytes().to_vec(),
    }
}

fn is_saved(value: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_slug = value.starts_with(b"pc-") && value.len() <= 255 && value.iter().all(is_plain);
    is_slug || Uuid::try_parse_ascii(value).is_ok()
}

/// The fields whose texts are words of the config language or names of things. A secret that somebody wrote into any other
/// is masked, also in a config that is refused for it.
const SHOWN: &[&str] =
    &["provider", "virtualkey", "mode", "name", "model", "then", "default", "forwardheaders", "customhost"];

fn without_secrets(value: Value, is_shown: bool) -> Value {
    match value {
        Value::Object(fields) => Value::Object(fields.into_iter().map(field).collect::<Map<_, _>>()),
        Value::Array(items) => items.into_iter().map(|item| without_secrets(item, is_shown)).collect(),
        // An address may name a user and a password, or carry a key.
        Value::String(text) if !is_shown || (text.contains("://") && text.contains(['@', '?'])) => MASK.into(),
        other => other,
    }
}

fn field((name, value): (String, Value)) -> (String, Value) {
    let lower = name.to_ascii_lowercase();
    let plain = lower.replace('_', "");
    let is_hidden = sounds_secret(&lower) || credentials::names_secret(&name) || is_headers(&lower, &value);
    let is_harmless = matches!(value, Value::Null | Value::Bool(_) | Value::Number(_)) || is_reference(&lower);
    match is_hidden && !is_harmless {
        true => (name, MASK.into()),
        false => (name, without_secrets(value, SHOWN.contains(&plain.as_str()))),
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
                { "provider": "openai", "retry": "sk-3", "override_params": { "user": "sk-4" }, "odd": ["sk-5"] },
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
                { "provider": "openai", "retry": MASK, "override_params": { "user": MASK }, "odd": [MASK] },
            ],
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_no_config_is_a_slug_or_masked() {
        for (sent, shown) in [
            ("pc-main-3f9a01", "pc-main-3f9a01"),
            ("sk-live-123", MASK),
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
