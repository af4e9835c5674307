//! Request bodies as JSON. Errors name the field by its path and never repeat a value: a mistyped secret would end
//! up in the answer and in the log. serde's words about a mismatch name the type; one that was renamed keeps them by
//! `#[serde(expecting = "…")]`.

mod strict;

use self::strict::Strict;
use crate::http::ApiError;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The body as an object. No body is an empty object: some clients send none where every field is optional.
pub fn object(body: &[u8]) -> Result<Map<String, Value>, ApiError> {
    match value(body)? {
        Value::Object(object) => Ok(object),
        _ => Err(ApiError::invalid("The body must be a JSON object")),
    }
}

/// The body as any JSON; no body is an empty object.
pub fn value(body: &[u8]) -> Result<Value, ApiError> {
    if body.trim_ascii().is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let Ok(value) = serde_json::from_slice(body) else {
        return Err(ApiError::invalid("The body is not valid JSON"));
    };
    match path_of_nul(&value) {
        Some(path) => Err(ApiError::field(path, "must not contain the character NUL")),
        None => Ok(value),
    }
}

/// Reads a body into its type.
pub fn parse<T: DeserializeOwned>(body: Value) -> Result<T, ApiError> {
    serde_path_to_error::deserialize(Strict(body)).map_err(|error| {
        let path = error.path().to_string();
        refusal(if path == "." { "" } else { &path }, &error.inner().to_string())
    })
}

/// Reads a body straight into its type, with no tree of it in between: for bodies of callers whom nobody knows yet.
pub fn parse_bytes<T: DeserializeOwned>(body: &[u8]) -> Result<T, ApiError> {
    let body = if body.trim_ascii().is_empty() { b"{}" } else { body };
    // serde would also take an array for a struct.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(ApiError::invalid("The body must be a JSON object"));
    }
    let mut reader = serde_json::Deserializer::from_slice(body);
    let read = serde_path_to_error::deserialize(&mut reader);
    let read = read.map_err(|error| match error.inner().is_data() {
        true => {
            let (path, message) = (error.path().to_string(), error.inner().to_string());
            let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
            refusal(if path == "." { "" } else { &path }, message)
        }
        false => ApiError::invalid("The body is not valid JSON"),
    })?;
    reader.end().map_err(|_| ApiError::invalid("The body is not valid JSON"))?;
    Ok(read)
}

/// As `parse`, for a value found at `field` of the body.
pub fn parse_at<T: DeserializeOwned>(field: &str, body: Value) -> Result<T, ApiError> {
    parse(body).map_err(|error| error.under(field))
}

/// Turns serde's message into one about the field. serde quotes the offending value; only what it expected is kept.
fn refusal(path: &str, message: &str) -> ApiError {
    let quoted = |prefix: &str| message.strip_prefix(prefix)?.split('`').nth(1);
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    if let Some(name) = quoted("missing field ") {
        return ApiError::field(below(name), "is required");
    }
    if let Some(name) = quoted("unknown field ") {
        // serde has already stepped into the field on some ways, and not on others.
        let path = if path.rsplit('.').next() == Some(name) { path.to_owned() } else { below(name) };
        return ApiError::field(path, "is not a field of this object");
    }
    let text = match message.rsplit_once(", expected ") {
        Some((_, expected)) => format!("must be {expected}"),
        None => message.to_owned(),
    };
    if path.is_empty() { ApiError::invalid(text) } else { ApiError::field(path, text) }
}

/// Postgres cannot store NUL in text, and nobody means it.
fn path_of_nul(value: &Value) -> Option<String> {
    let joined = |name: String, rest: String| if rest.is_empty() { name } else { format!("{name}.{rest}") };
    match value {
        Value::String(text) => text.contains('\0').then(String::new),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(n, item)| path_of_nul(item).map(|rest| joined(format!("[{n}]"), rest)))
        }
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let rest = if name.contains('\0') { Some(String::new()) } else { path_of_nul(field) };
            rest.map(|rest| joined(name.replace('\0', "\u{fffd}"), rest))
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its reading is of interest")]
    struct Body {
        name: String,
        limits: Option<Vec<Limit>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only its reading is of interest")]
    struct Limit {
        unit: Unit,
        value: u32,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Unit {
        Rpm,
    }

    #[test]
    fn an_error_names_the_field_and_never_the_value() {
        for (body, field, message) in [
            (json!({}), "name", "is required"),
            (json!({ "name": 7 }), "name", "must be a string"),
            (json!({ "name": ["s3cret"] }), "name", "must be a string"),
            (json!({ "name": "a", "limits": [["rpm", 1]] }), "limits[0]", "must be an object"),
            (json!({ "name": "a", "limits": { "unit": "rpm" } }), "limits", "must be a sequence"),
            (
                json!({ "name": "a", "limits": [{ "unit": "rpm", "value": "s3cret" }] }),
                "limits[0].value",
                "must be u32",
            ),
            (json!({ "name": "a", "limits": [{ "unit": "s3cret", "value": 1 }] }), "limits[0].unit", "must be `rpm`"),
            (json!({ "name": "a", "limits": [{ "value": 1 }] }), "limits[0].unit", "is required"),
            (
                json!({ "name": "a", "limits": [{ "unit": "rpm", "value": 1, "x": 1 }] }),
                "limits[0].x",
                "is not a field of this object",
            ),
        ] {
            match parse::<Body>(body.clone()).unwrap_err() {
                ApiError::Invalid { field: Some(at), message: text } => {
                    assert_eq!((at.as_str(), text.as_str()), (field, message), "{body}");
                }
                other => panic!("{body}: {other}"),
            }
        }
        assert!(parse::<Body>(json!({ "name": "a", "id": 1, "limits": null })).is_ok(), "other fields are ignored");
    }

    #[test]
    fn what_is_read_directly_is_refused_in_the_same_words() {
        for body in [
            "",
            "{}",
            r#"{ "name": 7 }"#,
            r#"{ "name": ["s3cret"] }"#,
            r#"{ "name": "a", "limits": [{ "unit": "rpm", "value": "s3cret" }] }"#,
            r#"{ "name": "a", "limits": [{ "unit": "s3cret", "value": 1 }] }"#,
            r#"{ "name": "a", "limits": [{ "value": 1 }] }"#,
            r#"{ "name": "a", "limits": [{ "unit": "rpm", "value": 1, "x": 1 }] }"#,
            r#"["a", null]"#,
            "{",
            r#"{ "name": "a" } {}"#,
        ] {
            let by_tree = object(body.as_bytes()).and_then(|object| parse::<Body>(Value::Object(object))).unwrap_err();
            let directly = parse_bytes::<Body>(body.as_bytes()).unwrap_err();
            assert_eq!(directly.to_string(), by_tree.to_string(), "{body}");
        }
        assert!(parse_bytes::<Body>(br#" { "name": "a", "more": [1] } "#).is_ok());
    }

    #[test]
    fn only_an_object_without_nuls_is_a_body() {
        for (body, accepted) in [
            ("", true),
            (" {} ", true),
            ("[]", false),
            ("null", false),
            ("{", false),
            ("{\"a\": \"\\u0000\"}", false),
            ("{\"a\": [1, {\"b\\u0000\": 1}]}", false),
            ("{\"a\": \"\\ud83d\"}", false),
            ("{\"a\": 1e999}", false),
        ] {
            assert_eq!(object(body.as_bytes()).is_ok(), accepted, "{body}");
        }
        let nul = object(br#"{"a": [1, {"b": "x\u0000"}]}"#).unwrap_err();
        assert!(nul.to_string().starts_with("a.[1].b"), "{nul}");
        assert!(object(&vec![b'['; 1 << 20]).is_err(), "deep nesting is refused, not followed");
    }
}
