//! What a provider may say in its `model_config`: the settings that proxies lay over those of the integration. Where its
//! credential goes, which one it is and what may be reached with it are the integration's to say, since a workspace may
//! use accounts that it must not lead elsewhere.

use crate::http::ApiError;
use crate::resources::integrations::{Fields, checked_headers};
use axum::http::HeaderValue;
use serde_json::Value;
use shared::config::WAYS;
use shared::model::{CUSTOM_HEADERS, OWN_SETTINGS};

const MAX_TEXT: usize = 4096;

pub fn check(settings: &Fields) -> Result<(), ApiError> {
    for (name, value) in settings {
        let at = format!("model_config.{name}");
        if !OWN_SETTINGS.contains(&name.as_str()) {
            let message = format!("is the integration's to say; a provider may have {}", OWN_SETTINGS.join(", "));
            return Err(ApiError::field(at, message));
        }
        match name.as_str() {
            CUSTOM_HEADERS => checked_headers(value).map_err(|error| error.under(&at))?,
            name if WAYS.contains(&name) => check_flag(value).map_err(|what| ApiError::field(at, what))?,
            _ => check_text(value).map_err(|what| ApiError::field(at, what))?,
        }
    }
    Ok(())
}

fn check_flag(value: &Value) -> Result<(), &'static str> {
    let is_flag = value.is_boolean() || matches!(value.as_str(), Some("true" | "false"));
    if is_flag { Ok(()) } else { Err("must be true or false") }
}

/// It will stand in a header or a path.
fn check_text(value: &Value) -> Result<(), &'static str> {
    let is_fit = |text: &str| (1..=MAX_TEXT).contains(&text.len()) && HeaderValue::try_from(text).is_ok();
    match value.as_str().is_some_and(is_fit) {
        true => Ok(()),
        false => Err("must be a text of 1 to 4096 bytes that a header can hold"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_setting_has_its_form_and_no_other_is_taken() {
        for name in OWN_SETTINGS {
            let value = match *name {
                CUSTOM_HEADERS => json!({ "x-team": "a" }),
                name if WAYS.contains(&name) => json!(true),
                _ => json!("said"),
            };
            assert!(check(json!({ *name: value }).as_object().unwrap()).is_ok(), "{name}");
            for wrong in [json!(7), json!([]), json!(""), json!("a\nb"), Value::Null] {
                assert!(check(json!({ *name: wrong }).as_object().unwrap()).is_err(), "{name}: {wrong}");
            }
        }
        for name in ["custom_host", "api_key", "aws_role_arn", "azure_foundry_url", "azure_deployment_id", "timeout"] {
            assert!(check(json!({ name: "x" }).as_object().unwrap()).is_err(), "{name}");
        }
    }
}
