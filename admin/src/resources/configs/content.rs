//! What is saved as a config: an object by the strict rules of the schema, or its JSON as text.

use crate::http::{ApiError, json};
use serde_json::Value;
use shared::config::{self, Strictness};
use shared::settings::config_limits::ConfigLimits;

/// Every proxy keeps every config in memory.
const MAX_SIZE: usize = 1 << 20;

/// The object that was sent, not yet looked into.
pub fn parsed(sent: Value) -> Result<Value, ApiError> {
    let sent = match sent {
        Value::String(text) => json::value(text.as_bytes()).map_err(|_| not_json())?,
        other => other,
    };
    if !sent.is_object() {
        return Err(not_json());
    }
    if sent.to_string().len() > MAX_SIZE {
        return Err(ApiError::field("config", "must not be larger than 1 MiB"));
    }
    Ok(sent)
}

pub fn checked(sent: Value, limits: &ConfigLimits) -> Result<Value, ApiError> {
    match config::parse_config(&sent, Strictness::Saved, limits) {
        Ok(_) => Ok(sent),
        Err(faults) => Err(ApiError::Config(faults)),
    }
}

fn not_json() -> ApiError {
    ApiError::field("config", "must be a JSON object, or its text")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_config_is_an_object_or_its_text_and_follows_the_schema() {
        let limits = ConfigLimits::default();
        for (sent, accepted) in [
            (json!({ "provider": "@a" }), true),
            (json!("{\"provider\":\"@a\"}"), true),
            (json!("{"), false),
            (json!("[]"), false),
            (json!("{\"provider\":\"@a\\u0000\"}"), false),
            (json!([]), false),
            (json!({ "provider": "@a", "metadata": {} }), false),
            (json!({ "override_params": { "a": "x".repeat(MAX_SIZE) }, "provider": "@a" }), false),
        ] {
            let checked = parsed(sent.clone()).and_then(|sent| checked(sent, &limits));
            assert_eq!(checked.is_ok(), accepted, "{:.80}", sent.to_string());
        }
    }
}
