//! Credentials of a vendor as they are sent: few short fields. Which of them are secret differs from vendor to vendor, so
//! all are.

use crate::http::{ApiError, FieldFault};
use serde_json::{Map, Value};
use shared::identity::api_key;

const MAX_CREDENTIALS: usize = 20;
const MAX_NAME: usize = 64;
/// Keys of service accounts are whole documents.
const MAX_VALUE: usize = 16 << 10;
/// Before a field's name in an answer, and never a field of its own.
const MASKED: &str = "masked_";
/// Characters from which on the ends of a value are shown: of a shorter one they would be too much.
const MIN_SHOWN: usize = 20;

pub fn checked(sent: Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    let fields: Map<String, Value> = sent.into_iter().filter(|(_, value)| !value.is_null()).collect();
    if fields.is_empty() || fields.len() > MAX_CREDENTIALS {
        return Err(ApiError::field("credentials", format!("must have 1 to {MAX_CREDENTIALS} fields")));
    }
    let faults: Vec<FieldFault> = fields.iter().filter_map(|(name, value)| fault(name, value)).collect();
    if faults.is_empty() { Ok(fields) } else { Err(ApiError::Faults(faults)) }
}

/// Never with the value.
fn fault(name: &str, value: &Value) -> Option<FieldFault> {
    let is_name = (1..=MAX_NAME).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if !is_name {
        return Some(FieldFault::new("credentials", "must have names of 1 to 64 letters, digits, `_`, `-` and `.`"));
    }
    let at = format!("credentials.{name}");
    if name.starts_with(MASKED) {
        return Some(FieldFault::new(at, "is a mask; send the field itself, they are all replaced"));
    }
    match value {
        Value::String(text) if text.is_empty() => Some(FieldFault::new(at, "must not be empty")),
        Value::String(text) if text.len() > MAX_VALUE || text.contains('\0') => {
            Some(FieldFault::new(at, format!("must be at most {MAX_VALUE} bytes without NUL")))
        }
        Value::String(_) | Value::Number(_) | Value::Bool(_) => None,
        Value::Object(_) if value.to_string().len() <= MAX_VALUE => None,
        _ => Some(FieldFault::new(at, format!("must be a text, or an object of at most {MAX_VALUE} bytes"))),
    }
}

/// What may be stored beside the sealed ones.
pub fn masks(fields: &Map<String, Value>) -> Value {
    let masks = fields.iter().map(|(name, value)| {
        let long = value.as_str().filter(|text| text.chars().count() >= MIN_SHOWN);
        let mask = long.map_or_else(|| "*****".to_owned(), api_key::mask);
        (name.clone(), mask.into())
    });
    Value::Object(masks.collect())
}

/// As answers have it.
pub fn shown(masks: &Value) -> Value {
    let fields = masks.as_object().into_iter().flatten();
    Value::Object(fields.map(|(name, mask)| (format!("{MASKED}{name}"), mask.clone())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fields(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn nothing_of_a_value_is_shown_but_its_ends() {
        let (long, short) = ("ag-s3cret-0123456789", "ag-s3cret-012345678");
        let sent = json!({ "apiKey": long, "short": short, "json": { "k": "s3cret" }, "port": 7 });
        let fields = checked(fields(sent)).unwrap();
        let shown = shown(&masks(&fields));
        let expected = json!({ "masked_apiKey": "ag*****789", "masked_short": "*****", "masked_json": "*****", "masked_port": "*****" });
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_no_credential_is_named_without_its_value() {
        let long = "s3cret".repeat(MAX_VALUE);
        for (sent, field) in [
            (json!({}), "credentials"),
            (json!({ "a": null }), "credentials"),
            (json!({ "a b": "s3cret" }), "credentials"),
            (json!({ "masked_apiKey": "ag*****789" }), "credentials.masked_apiKey"),
            (json!({ "apiKey": "" }), "credentials.apiKey"),
            (json!({ "apiKey": ["s3cret"] }), "credentials.apiKey"),
            (json!({ "apiKey": long }), "credentials.apiKey"),
            (json!({ "apiKey": { "a": long } }), "credentials.apiKey"),
            (Value::Object((0..21).map(|n| (format!("f{n}"), json!("x"))).collect()), "credentials"),
        ] {
            let refused = checked(fields(sent.clone())).unwrap_err().to_string();
            assert!(refused.starts_with(&format!("{field}: ")), "{refused}");
            assert!(!refused.contains("s3cret"), "{refused}");
        }
    }
}
