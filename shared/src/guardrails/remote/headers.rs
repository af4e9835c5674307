//! Headers that a tenant writes into the parameters of a check: an object, or JSON of one in a text.

use super::super::fault::{Fault, FaultKind};
use super::forwarded::is_of_the_connection;
use http::{HeaderName, HeaderValue};
use serde_json::Value;

const MAX_HEADERS: usize = 50;
const MAX_VALUE: usize = 8 << 10;

/// All of them secret: which of them are credentials nobody says.
pub fn configured_headers(written: Option<&Value>, path: &str) -> Result<Vec<(HeaderName, HeaderValue)>, Fault> {
    let unusable = |at: String, why: &str| Fault::new(FaultKind::Unusable, at, why);
    let read;
    let fields = match written {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(Vec::new()),
        Some(Value::String(text)) => {
            read = serde_json::from_str::<Value>(text).ok();
            read.as_ref().and_then(Value::as_object)
        }
        Some(value) => value.as_object(),
    };
    let Some(fields) = fields else { return Err(unusable(path.into(), "must be an object of names and texts")) };
    if fields.len() > MAX_HEADERS {
        return Err(Fault::new(FaultKind::TooMany, path, format!("must not have more than {MAX_HEADERS} headers")));
    }
    let mut headers = Vec::with_capacity(fields.len());
    for (written, value) in fields {
        let at = || format!("{path}.{written}");
        let Ok(name) = HeaderName::from_bytes(written.as_bytes()) else {
            return Err(unusable(path.into(), "has a name that is no name of a header"));
        };
        // What is sent is JSON, and many say so.
        if name == http::header::CONTENT_TYPE {
            continue;
        }
        if is_of_the_connection(&name) {
            return Err(unusable(at(), "is set by the gateway itself"));
        }
        let text = match value {
            Value::String(text) => text.clone(),
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            _ => return Err(Fault::new(FaultKind::WrongType, at(), "must be a text")),
        };
        let value = HeaderValue::from_str(&text).ok().filter(|_| text.len() <= MAX_VALUE);
        let Some(mut value) = value else { return Err(unusable(at(), "cannot be the value of a header")) };
        value.set_sensitive(true);
        headers.push((name, value));
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn headers_are_an_object_or_its_json_and_never_those_of_the_connection() {
        for (written, expected) in [
            (json!(null), Ok(0)),
            (json!({}), Ok(0)),
            (json!(""), Ok(0)),
            (json!({ "x-a": "1", "Authorization": "Bearer k" }), Ok(2)),
            (json!("{\"x-a\": \"1\"}"), Ok(1)),
            (json!({ "x-a": 1 }), Ok(1)),
            (json!({ "Content-Type": "application/json" }), Ok(0)),
            (json!("{"), Err(FaultKind::Unusable)),
            (json!([]), Err(FaultKind::Unusable)),
            (json!({ "a b": "1" }), Err(FaultKind::Unusable)),
            (json!({ "x-a": "1\r\nx: y" }), Err(FaultKind::Unusable)),
            (json!({ "x-a": ["1"] }), Err(FaultKind::WrongType)),
            (json!({ "Host": "inside" }), Err(FaultKind::Unusable)),
            (json!({ "Content-Length": "1" }), Err(FaultKind::Unusable)),
            (json!({ "transfer-encoding": "chunked" }), Err(FaultKind::Unusable)),
            (json!({ "x-a": "v".repeat(MAX_VALUE + 1) }), Err(FaultKind::Unusable)),
            (
                Value::Object((0..=MAX_HEADERS).map(|n| (format!("x-{n}"), json!("1"))).collect()),
                Err(FaultKind::TooMany),
            ),
        ] {
            let read = configured_headers(Some(&written), "headers");
            assert!(read.iter().flatten().all(|(_, value)| value.is_sensitive()));
            assert_eq!(read.map(|headers| headers.len()).map_err(|fault| fault.kind), expected, "{written}");
        }
    }
}
