//! Bodies of logs in the log store: written for reported calls, read for whoever looks at a log.

use crate::app::App;
use crate::http::ApiError;
use serde_json::{Map, Value, json};
use shared::log_store;
use shared::telemetry::{Brief, LogLimit};

/// The longest that an object is unpacked to: two bodies of the largest size, JSON inside JSON, and heads.
const MAX_UNPACKED: usize = 128 << 20;

/// What a log shows of the object beside its row.
static PARTS: &[&str] = &["request", "response", "finalUntransformedRequest", "transformedRequest", "originalResponse"];

/// Stores the body of a log and answers its place.
pub async fn store(app: &App, path: String, mut body: Value) -> Result<String, ApiError> {
    for part in ["request", "response"] {
        shorten(&mut body[part]["body"], app.longest_body);
    }
    let stored = async {
        let packed = tokio::task::spawn_blocking(move || log_store::pack(body.to_string().as_bytes())).await;
        let packed = packed.map_err(|error| error.to_string())?.map_err(|error| error.to_string())?;
        app.log_store.put(&path, packed).await.map_err(|error| error.to_string())
    };
    match stored.await {
        Ok(()) => Ok(path),
        Err(error) => {
            static UNSTORED: LogLimit = LogLimit::new();
            if let Some(skipped) = UNSTORED.pass() {
                tracing::error!(error = %Brief(error), skipped, "a body could not be stored");
            }
            Err(ApiError::Internal)
        }
    }
}

/// Of what is too long the beginning is kept, as text.
fn shorten(body: &mut Value, longest: usize) {
    let written = match &*body {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    if written.len() <= longest {
        return;
    }
    let end = (0..=longest).rev().find(|end| written.is_char_boundary(*end)).unwrap_or(0);
    *body = json!(log_store::shortened(&written[..end], end as u64, written.len() as u64));
}

/// The parts of a log that were kept. A log without its bodies is better than none, so what cannot be read is left out and
/// said in our own log.
pub async fn load(app: &App, key: &str) -> Map<String, Value> {
    let found = async {
        let Some(packed) = app.log_store.body(key, MAX_UNPACKED).await? else { return Ok(None) };
        let unpacked = tokio::task::spawn_blocking(move || log_store::unpack(&packed, MAX_UNPACKED)).await;
        unpacked.map_err(|_| log_store::Error::Damaged)?.map(Some)
    };
    let object: Value = match found.await {
        Ok(Some(json)) => serde_json::from_slice(&json).unwrap_or_default(),
        Ok(None) => Value::Null,
        Err(error) => {
            static UNREAD: LogLimit = LogLimit::new();
            if let Some(skipped) = UNREAD.pass() {
                tracing::warn!(error = %Brief(error), skipped, "the body of a log could not be read");
            }
            Value::Null
        }
    };
    let Value::Object(mut object) = object else { return Map::new() };
    derive(&mut object);
    let parts = PARTS.iter().filter_map(|part| Some(((*part).to_owned(), object.shift_remove(*part)?)));
    parts.filter(|(_, part)| part.is_object()).collect()
}

/// What is the same as another part is stored once: what was asked for before it took the provider's form, and what the
/// provider answered before it took the client's.
fn derive(object: &mut Map<String, Value>) {
    let body = |part: &str| object.get(part).and_then(|part| part.get("body")).filter(|body| !body.is_null()).cloned();
    let (asked, sent, answered) = (body("request"), body("transformedRequest"), body("response"));
    let has_target = object.contains_key("transformedRequest");
    for (name, body) in [("finalUntransformedRequest", sent.or(asked)), ("originalResponse", answered)] {
        if let (Some(body), true) = (body, has_target) {
            object.entry(name).or_insert_with(|| json!({ "body": body }));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stored_once_is_shown_under_each_of_its_names() {
        let mut log = json!({
            "request": { "body": { "a": 1 } }, "transformedRequest": { "url": "u" }, "response": { "body": "text" },
        });
        derive(log.as_object_mut().unwrap());
        assert_eq!(log["finalUntransformedRequest"], json!({ "body": { "a": 1 } }), "it was sent as it came");
        assert_eq!(log["originalResponse"], json!({ "body": "text" }));
        let mut edited = json!({ "request": { "body": 1 }, "transformedRequest": { "body": 2 }, "response": {} });
        derive(edited.as_object_mut().unwrap());
        assert_eq!((&edited["finalUntransformedRequest"]["body"], edited.get("originalResponse")), (&json!(2), None));
        let mut refused = json!({ "request": { "body": 1 }, "response": { "body": 2 } });
        derive(refused.as_object_mut().unwrap());
        assert_eq!((refused.get("finalUntransformedRequest"), refused.get("originalResponse")), (None, None));
    }

    #[test]
    fn of_a_long_body_the_beginning_is_kept_and_the_rest_is_said() {
        for (body, longest, expected) in [
            (json!({ "a": 1 }), 7, json!({ "a": 1 })),
            (json!({ "a": 1 }), 3, json!("{\"a…[truncated: 3 of 7 bytes kept]")),
            (json!("äö"), 3, json!("ä…[truncated: 2 of 4 bytes kept]")),
            (json!("text"), 4, json!("text")),
        ] {
            let mut short = body.clone();
            shorten(&mut short, longest);
            assert_eq!(short, expected, "{body}");
        }
    }
}
