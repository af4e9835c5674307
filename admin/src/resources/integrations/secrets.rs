//! Which fields of a provider's settings are secret, and what may be shown of them. Fields that nobody described are
//! kept, so their names decide: one that sounds like a secret is treated as one.

use crate::audit::mask;
use serde_json::{Map, Value};
use shared::identity::api_key;

pub type Fields = Map<String, Value>;

static SECRET: &[&str] = &[
    "azure_entra_client_secret",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_external_id",
    "vertex_service_account_json",
    "custom_headers",
    "headers",
    "oauth_metadata",
    "external_auth_config",
];
/// Before a field's name in an answer, and never a field of its own.
const MASKED: &str = "masked_";

/// Told apart: what may be stored and shown as it is, and what may not.
#[derive(Debug, Default, PartialEq)]
pub struct SplitFields {
    pub plain: Fields,
    pub secret: Fields,
}

pub fn parted(fields: Fields) -> SplitFields {
    let (secret, plain) = fields.into_iter().partition(|(name, value)| is_secret(name, value));
    SplitFields { plain, secret }
}

pub fn is_secret(name: &str, value: &Value) -> bool {
    // `max_tokens` sounds like one and is none.
    let could_be = !matches!(value, Value::Number(_) | Value::Bool(_) | Value::Null);
    SECRET.contains(&name) || (could_be && mask::is_secret(name)) || holds_secret(value)
}

/// A part with a secret makes the whole one.
fn holds_secret(value: &Value) -> bool {
    match value {
        Value::Object(fields) => fields.iter().any(|(name, value)| is_secret(name, value)),
        Value::Array(items) => items.iter().any(holds_secret),
        _ => false,
    }
}

/// What is shown of each secret.
pub fn masks(secret: &Fields) -> Fields {
    secret.iter().map(|(name, value)| (name.clone(), masked(name, value))).collect()
}

fn masked(name: &str, value: &Value) -> Value {
    match value {
        Value::String(text) => api_key::mask(text).into(),
        Value::Object(headers) if matches!(name, "custom_headers" | "headers") => {
            let mask = |value: &Value| api_key::mask(value.as_str().unwrap_or_default()).into();
            Value::Object(headers.iter().map(|(name, value)| (name.clone(), mask(value))).collect())
        }
        _ => "*****".into(),
    }
}

/// What was sent over what is stored, name by name; null takes a field away. A mask that a client sends back is no
/// new value.
pub fn replaced(mut stored: Fields, sent: Fields, masks: &Fields) -> Fields {
    for (name, value) in sent {
        if name.starts_with(MASKED) || masks.get(&name) == Some(&value) {
            continue;
        }
        if value.is_null() {
            stored.shift_remove(&name);
        } else {
            stored.insert(name, value);
        }
    }
    stored
}

/// The fields with `masked_<field>` in the place of each secret.
pub fn shown(plain: &Value, masks: &Value) -> Value {
    let mut shown = plain.as_object().cloned().unwrap_or_default();
    let masks = masks.as_object().into_iter().flatten();
    shown.extend(masks.map(|(name, mask)| (format!("{MASKED}{name}"), mask.clone())));
    Value::Object(shown)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Fields {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn secrets_are_told_by_the_list_or_by_their_sound_wherever_they_stand() {
        let parts = parted(fields(json!({
            "aws_region": "us-east-1",
            "aws_role_arn": "arn:aws:iam::1:role/r",
            "aws_access_key_id": "AKIAEXAMPLE",
            "azure_entra_client_id": "c",
            "azure_entra_client_secret": "s3cret",
            "custom_headers": { "x-team": "s3cret" },
            "vertex_service_account_json": { "private_key": "s3cret" },
            "invented_api_key": "s3cret",
            "invented": { "deep": [{ "password": "s3cret" }] },
            "openai_organization": "org-1",
            "max_tokens": 100,
            "snowflake_account": "a",
            "azure_deployment_config": [{ "azure_model_slug": "gpt-4o", "azure_api_version": "v" }],
        })));
        let plain: Vec<_> = parts.plain.keys().collect();
        let expected = [
            "aws_region",
            "aws_role_arn",
            "azure_entra_client_id",
            "openai_organization",
            "max_tokens",
            "snowflake_account",
            "azure_deployment_config",
        ];
        assert_eq!(plain, expected);
        let shown = shown(&Value::Object(parts.plain), &Value::Object(masks(&parts.secret)));
        assert!(!shown.to_string().contains("s3cret"), "{shown}");
        assert_eq!(shown["masked_aws_access_key_id"], "AK*****PLE");
        assert_eq!(shown["masked_custom_headers"], json!({ "x-team": "*****" }));
        assert_eq!(shown["masked_vertex_service_account_json"], "*****");
    }

    #[test]
    fn fields_are_replaced_one_by_one_and_masks_that_come_back_are_ignored() {
        let stored = fields(json!({ "a": 1, "b": 2, "api_key": "0123456789" }));
        let masks = masks(&parted(stored.clone()).secret);
        let sent = json!({ "b": null, "c": 3, "api_key": "01*****789", "masked_api_key": "01*****789" });
        let expected = json!({ "a": 1, "api_key": "0123456789", "c": 3 });
        assert_eq!(replaced(stored.clone(), fields(sent), &masks), fields(expected));
        let changed = replaced(stored, fields(json!({ "api_key": "new" })), &masks);
        assert_eq!(changed["api_key"], "new");
    }
}
