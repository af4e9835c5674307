//! Where secrets stand in an object: whole fields, credentials inside of a config, and parameters of guardrail checks.
//!
//! The API masks the credentials of configs and shows those of checks as they are. Neither can be compared, so both sides are
//! reduced to the fact that a secret is there; files keep variables in these places, and exports write them.

use crate::kinds::SECRET_FIELDS;
use serde_json::Value;

/// What takes the place of a secret in comparisons, plans and hashes.
pub const PLACEHOLDER: &str = "(secret)";

/// Fields of a config and its targets that the server seals, in snake case.
const CONFIG_SECRETS: &[&str] = &[
    "api_key",
    "azure_ad_token",
    "azure_entra_client_secret",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_external_id",
    "vertex_service_account_json",
    "oracle_private_key",
    "oracle_key_passphrase",
    "snowflake_private_key",
    "snowflake_private_key_passphrase",
];

/// Ends of names that hold a credential, in snake case.
const SECRET_ENDINGS: &[&str] = &[
    "apikey",
    "api_key",
    "access_key",
    "secret_key",
    "private_key",
    "signing_key",
    "subscription_key",
    "account_key",
    "auth_key",
    "secret",
    "token",
    "password",
    "passphrase",
    "credential",
    "credentials",
    "authorization",
    "cookie",
];

/// Lists of hooks in a config or a target, in snake case.
const HOOKS: &[&str] = &[
    "before_request_hooks",
    "after_request_hooks",
    "input_guardrails",
    "output_guardrails",
    "input_mutators",
    "output_mutators",
];

/// What a hook says of itself, in snake case. Any other field of it is a check in short, with its parameters.
const HOOK_FIELDS: &[&str] = &[
    "id",
    "type",
    "deny",
    "async",
    "sequential",
    "on_fail",
    "on_success",
    "guardrail_version_id",
    "soft_deny_200",
    "stream",
    "scope",
    "message",
    "audit",
];

/// Where a value stands in its object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Open,
    /// A config, or a target of one.
    Config,
    /// A hook of a config.
    Hook,
    Check,
    CheckParameters,
    /// A secret as a whole.
    Secret,
    /// An object whose names are open and whose values are secrets, as headers are.
    SecretValues,
}

impl Place {
    pub fn of_field(field: &str) -> Self {
        match field {
            "config" => Self::Config,
            "checks" => Self::Check,
            field if SECRET_FIELDS.contains(&field) => Self::Secret,
            _ => Self::Open,
        }
    }

    /// The place of a named part of a value that stands here. Items of lists stand where their list does.
    pub fn inside(self, name: &str) -> Self {
        match self {
            Self::Config if snake(name) == "targets" => Self::Config,
            Self::Config if CONFIG_SECRETS.contains(&snake(name).as_str()) => Self::Secret,
            Self::Config if HOOKS.contains(&snake(name).as_str()) => Self::Hook,
            Self::Config | Self::Open => Self::Open,
            Self::Hook if name == "checks" => Self::Check,
            Self::Hook if HOOK_FIELDS.contains(&snake(name).as_str()) => Self::Open,
            Self::Hook => Self::CheckParameters,
            Self::Check if name == "parameters" => Self::CheckParameters,
            Self::Check => Self::Open,
            Self::CheckParameters if snake(name).ends_with("headers") || is_secret_name(name) => Self::SecretValues,
            other => other,
        }
    }

    pub fn is_secret(self) -> bool {
        matches!(self, Self::Secret | Self::SecretValues)
    }
}

/// Whether a credential usually has such a name, in snake, camel or header case.
pub fn is_secret_name(name: &str) -> bool {
    let name = snake(name);
    CONFIG_SECRETS.contains(&name.as_str()) || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// A field with every secret replaced by what `replace` makes of its names.
pub fn replaced(field: &str, value: &Value, replace: &mut impl FnMut(&[String]) -> Value) -> Value {
    replaced_at(Place::of_field(field), value, &mut Vec::new(), replace)
}

fn replaced_at(
    place: Place,
    value: &Value,
    path: &mut Vec<String>,
    replace: &mut impl FnMut(&[String]) -> Value,
) -> Value {
    // Figures and switches are no credentials, whatever they are called.
    let is_plain = value.is_null() || value.is_number() || value.is_boolean();
    match (place, value) {
        (Place::Secret, value) if !value.is_null() => replace(path),
        (Place::SecretValues, value) if is_plain => value.clone(),
        (place, Value::Object(parts)) => {
            let mut changed = serde_json::Map::new();
            for (name, part) in parts {
                path.push(name.clone());
                changed.insert(name.clone(), replaced_at(place.inside(name), part, path, replace));
                path.pop();
            }
            Value::Object(changed)
        }
        (place, Value::Array(items)) => {
            let mut changed = Vec::new();
            for (at, item) in items.iter().enumerate() {
                path.push(at.to_string());
                changed.push(replaced_at(place, item, path, replace));
                path.pop();
            }
            Value::Array(changed)
        }
        (Place::SecretValues, _) => replace(path),
        (_, value) => value.clone(),
    }
}

/// What can be compared, shown and hashed of a field.
pub fn redacted(field: &str, value: &Value) -> Value {
    replaced(field, value, &mut |_| PLACEHOLDER.into())
}

/// Whether a field holds a secret anywhere.
pub fn has_secret(field: &str, value: &Value) -> bool {
    let mut has_secret = false;
    replaced(field, value, &mut |_| {
        has_secret = true;
        Value::Null
    });
    has_secret
}

/// A value of this name without the values of all names that sound secret, and of all headers.
pub fn hidden_by_name(name: &str, value: &Value, placeholder: &str) -> Value {
    let is_open = value.is_null() || value.is_number() || value.is_boolean();
    if !is_open && (is_secret_name(name) || snake(name).ends_with("headers")) {
        return placeholder.into();
    }
    match value {
        Value::Array(items) => items.iter().map(|item| hidden_by_name("", item, placeholder)).collect(),
        Value::Object(parts) => {
            let parts = parts.iter().map(|(name, part)| (name.clone(), hidden_by_name(name, part, placeholder)));
            Value::Object(parts.collect())
        }
        Value::String(text) => hidden_text(text, placeholder).into(),
        other => other.clone(),
    }
}

/// Some texts hold JSON, as the header with a config does.
pub fn hidden_text(text: &str, placeholder: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(inner) if inner.is_object() || inner.is_array() => hidden_by_name("", &inner, placeholder).to_string(),
        _ => text.to_owned(),
    }
}

fn snake(name: &str) -> String {
    let mut found = String::new();
    let mut begins_word = true;
    for letter in name.chars() {
        let is_upper = letter.is_ascii_uppercase();
        if is_upper && !begins_word {
            found.push('_');
        }
        found.push(if letter == '-' { '_' } else { letter.to_ascii_lowercase() });
        begins_word = is_upper || matches!(letter, '-' | '_');
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn credentials_inside_of_configs_and_checks_are_found_and_nothing_else() {
        let config = json!({
            "api_key": "a", "provider": "@p", "override_params": { "api_key": "no credential of the gateway's" },
            "targets": [{ "apiKey": "b", "aws_region": "r" }, { "vertex_service_account_json": { "x": 1 }, "api_key": null }],
            "before_request_hooks": [{ "id": "h", "deny": true, "checks": [{ "id": "webhook", "parameters": { "headers": { "x": "c" }, "url": "u" } }] }],
            "outputGuardrails": ["pg", { "deny": true, "webhook": { "headers": { "x": "d" }, "timeout": 5 } }],
        });
        let expected = json!({
            "api_key": "(secret)", "provider": "@p", "override_params": { "api_key": "no credential of the gateway's" },
            "targets": [{ "apiKey": "(secret)", "aws_region": "r" }, { "vertex_service_account_json": "(secret)", "api_key": null }],
            "before_request_hooks": [{ "id": "h", "deny": true, "checks": [{ "id": "webhook", "parameters": { "headers": { "x": "(secret)" }, "url": "u" } }] }],
            "outputGuardrails": ["pg", { "deny": true, "webhook": { "headers": { "x": "(secret)" }, "timeout": 5 } }],
        });
        assert_eq!(redacted("config", &config), expected);
        let checks = json!([{ "id": "a.token", "parameters": {
            "headers": { "Authorization": "Bearer x" }, "credentials": { "apiKey": "k" }, "max_token": 5, "words": ["secret"], "url": "u",
        } }]);
        let expected = json!([{ "id": "a.token", "parameters": {
            "headers": { "Authorization": "(secret)" }, "credentials": { "apiKey": "(secret)" }, "max_token": 5, "words": ["secret"], "url": "u",
        } }]);
        assert_eq!(redacted("checks", &checks), expected);
        assert!(has_secret("key", &json!("x")) && !has_secret("key", &Value::Null) && !has_secret("name", &json!("x")));
    }

    #[test]
    fn names_of_credentials_are_known_in_every_spelling() {
        for name in
            ["api_key", "apiKey", "X-Api-Key", "API_KEY", "Authorization", "clientSecret", "access_token", "Cookie"]
        {
            assert!(is_secret_name(name), "{name}");
        }
        for name in ["name", "max_tokens", "keys", "blockedKeys", "config", "metadata"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
