//! Which trace a request belongs to, and the metadata it carries.

use super::identify::Principal;
use crate::headers::GatewayHeaders;
use crate::refusal::Refusal;
use http::HeaderValue;
use serde_json::{Map, Value};

const LONGEST_TRACE_ID: usize = 128;
const LONGEST_METADATA_VALUE: usize = 128;

/// The given id, else the one in `traceparent`; `None` when a new one is to be made.
pub fn trace_id(headers: &GatewayHeaders<'_>) -> Result<Option<HeaderValue>, Refusal> {
    if let Some(given) = headers.trace_id {
        let fits = !given.is_empty() && given.len() <= LONGEST_TRACE_ID && given.to_str().is_ok();
        return match fits {
            true => Ok(Some(given.clone())),
            false => Err(Refusal::invalid_header("x-gateway-trace-id", "1 to 128 printable characters")),
        };
    }
    Ok(headers.traceparent.and_then(from_traceparent))
}

/// `00-<32 hex>-<16 hex>-<2 hex>`; anything else is ignored, as the W3C recommendation asks.
fn from_traceparent(value: &HeaderValue) -> Option<HeaderValue> {
    let mut parts = value.to_str().ok()?.split('-');
    let (version, trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_hex = |text: &str, length| text.len() == length && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_valid = is_hex(version, 2) && is_hex(trace, 32) && is_hex(span, 16) && is_hex(flags, 2);
    (is_valid && trace.bytes().any(|byte| byte != b'0')).then(|| HeaderValue::from_str(trace).ok()).flatten()
}

/// What the request says about itself, under what its key and its workspace say about all their requests.
pub fn metadata(value: Option<&HeaderValue>, caller: &Principal) -> Result<Map<String, Value>, Refusal> {
    let mut metadata = own_metadata(value)?;
    let defaults = caller.key.defaults.as_ref().map(|defaults| &defaults.metadata);
    for (name, value) in [defaults, caller.workspace.metadata.as_ref()].into_iter().flatten().flatten() {
        metadata.insert(name.clone(), value.clone());
    }
    Ok(metadata)
}

/// Metadata must be a JSON object of scalars. Ignoring a bad one would evade the policies that look at it.
fn own_metadata(value: Option<&HeaderValue>) -> Result<Map<String, Value>, Refusal> {
    let Some(value) = value else { return Ok(Map::new()) };
    let parsed: Value =
        serde_json::from_slice(value.as_bytes()).map_err(|_| Refusal::invalid_metadata("it is not valid JSON"))?;
    let Value::Object(fields) = parsed else {
        return Err(Refusal::invalid_metadata("it must be a JSON object"));
    };
    for (name, value) in &fields {
        match value {
            Value::Array(_) | Value::Object(_) => {
                return Err(Refusal::invalid_metadata(&format!("`{name}` must be a string, number or boolean")));
            }
            Value::String(text) if text.chars().count() > LONGEST_METADATA_VALUE => {
                return Err(Refusal::invalid_metadata(&format!("`{name}` is longer than 128 characters")));
            }
            _ => {}
        }
    }
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_well_formed_traceparent_names_a_trace() {
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        for (text, trace) in [
            (valid, Some("4bf92f3577b34da6a3ce929d0e0e4736")),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
            ("00-4bf92f-00f067aa0ba902b7-01", None),
            ("nonsense", None),
        ] {
            let found = from_traceparent(&HeaderValue::from_static(text));
            assert_eq!(found.as_ref().map(|v| v.to_str().unwrap()), trace, "{text}");
        }
    }

    #[test]
    fn metadata_is_an_object_of_scalars_or_refused() {
        let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(129));
        for (text, accepted) in [
            (r#"{"a":"b","n":1,"t":true,"z":null}"#, true),
            ("{}", true),
            ("[]", false),
            ("text", false),
            (r#"{"a":{}}"#, false),
            (r#"{"a":[1]}"#, false),
            (long.as_str(), false),
        ] {
            let value = HeaderValue::from_str(text).unwrap();
            assert_eq!(own_metadata(Some(&value)).is_ok(), accepted, "{text}");
        }
    }
}
