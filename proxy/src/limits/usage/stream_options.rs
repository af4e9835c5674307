//! Usage of streams in OpenAI's dialect comes only when it is asked for. We ask where the client did not, and take out
//! what it did not ask for: one event with no choices and the usage. Everything else passes as it came.

use crate::request::body::Fields;
use crate::request::body::edit::Edits;
use bytes::{Bytes, BytesMut};
use memchr::memmem;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};

const OPTIONS: &str = "stream_options";

/// The body with a wish for usage, when it is a stream's and has none.
pub fn asking(body: &Bytes) -> Option<Bytes> {
    let fields = Fields::parse_object(body).ok()?;
    if !fields.is_true("stream") {
        return None;
    }
    let mut options = match (fields.get(OPTIONS), fields.value(OPTIONS)) {
        (None, _) | (_, Some(Value::Null)) => Map::new(),
        (_, Some(Value::Object(options))) => options,
        // Not ours to mend.
        _ => return None,
    };
    if options.get("include_usage") == Some(&Value::Bool(true)) {
        return None;
    }
    options.insert("include_usage".to_owned(), json!(true));
    let overrides = Map::from_iter([(OPTIONS.to_owned(), Value::Object(options))]);
    Some(Edits::new(Some(&overrides), None, Vec::new()).apply(body, &fields, None))
}

/// Whole events without the one that carries nothing but usage.
pub fn without_usage(whole: Bytes) -> Bytes {
    if memmem::find(&whole, b"\"usage\"").is_none() {
        return whole;
    }
    let mut remaining = BytesMut::new();
    let mut start = 0;
    let mut dropped = false;
    for end in ends(&whole) {
        match is_usage(&whole[start..end]) {
            true => dropped = true,
            false => remaining.extend_from_slice(&whole[start..end]),
        }
        start = end;
    }
    if !dropped {
        return whole;
    }
    remaining.extend_from_slice(&whole[start..]);
    remaining.freeze()
}

/// Where each event ends: after the blank line that follows it.
fn ends(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut at = 0;
    std::iter::from_fn(move || {
        while let Some(newline) = memchr::memchr(b'\n', bytes.get(at..)?) {
            let line = at + newline + 1;
            at = line;
            let blank = if bytes.get(line) == Some(&b'\r') { line + 1 } else { line };
            if bytes.get(blank) == Some(&b'\n') {
                at = blank + 1;
                return Some(at);
            }
        }
        None
    })
}

fn is_usage(event: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Shape {
        choices: Vec<IgnoredAny>,
        usage: Map<String, Value>,
    }
    let data = crate::wire::sse::events(event).next();
    let shape = data.and_then(|event| serde_json::from_slice::<Shape>(&event.data).ok());
    shape.is_some_and(|shape| shape.choices.is_empty() && !shape.usage.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_asked_for_where_nobody_did() {
        for (body, expected) in [
            (r#"{"stream":true}"#, Some(r#"{"stream":true,"stream_options":{"include_usage":true}}"#)),
            (r#"{"stream":true,"stream_options":{"include_usage":true}}"#, None),
            (
                r#"{"stream":true, "stream_options":{"include_usage":false,"x":1}, "n":1}"#,
                Some(r#"{"stream":true, "stream_options":{"include_usage":true,"x":1}, "n":1}"#),
            ),
            (r#"{"stream":true,"stream_options":7}"#, None),
            (r#"{"stream":false}"#, None),
            ("{}", None),
            ("not JSON", None),
        ] {
            let asked = asking(&Bytes::copy_from_slice(body.as_bytes()));
            assert_eq!(asked.as_deref(), expected.map(str::as_bytes), "{body}");
        }
    }

    #[test]
    fn only_the_event_of_usage_alone_is_taken_out() {
        let role = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"usage\":null}\n\n";
        let last = "data: {\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":{\"total_tokens\":1}}\n\n";
        let usage = "data: {\"choices\":[],\"usage\":{\"total_tokens\":1}}\n\n";
        let filter = "data: {\"choices\":[],\"prompt_filter_results\":[]}\n\n";
        for newline in ["\n", "\r\n"] {
            let text = |parts: &[&str]| parts.concat().replace('\n', newline);
            for (before, after) in [
                (text(&[role, usage, "data: [DONE]\n\n"]), text(&[role, "data: [DONE]\n\n"])),
                (text(&[role, last]), text(&[role, last])),
                (text(&[filter, role]), text(&[filter, role])),
                (text(&[usage]), String::new()),
                (text(&[": comment\n\n", usage, role]), text(&[": comment\n\n", role])),
                (
                    "data: {\"choices\":[],\"usage\":{\"half".to_owned(),
                    "data: {\"choices\":[],\"usage\":{\"half".to_owned(),
                ),
            ] {
                let stripped = without_usage(Bytes::from(before.clone()));
                assert_eq!(String::from_utf8_lossy(&stripped), after, "{before}");
            }
        }
    }
}
