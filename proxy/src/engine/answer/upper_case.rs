//! A step for tests alone: writes the texts of chats in capitals. It does a little of everything that a step can do. It
//! marks the head, changes the length of bodies, and counts the events that it changed until the stream is complete.

use super::steps::{ResponseStep, Unusable};
use bytes::Bytes;
use http::HeaderValue;
use http::response::Parts;
use pingora_http::ResponseHeader;
use serde_json::Value;

/// A text that it refuses to change.
pub const UNSPEAKABLE: &str = "unspeakable";

#[derive(Default)]
pub struct UpperCase {
    changed: usize,
}

impl ResponseStep for UpperCase {
    fn head(&self, head: &mut Parts) {
        head.headers.insert("x-upper-case", HeaderValue::from_static("yes"));
    }

    fn takes_body(&self, head: &ResponseHeader) -> bool {
        let kind = head.headers.get("content-type");
        head.status.is_success() && kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
    }

    fn body(&mut self, body: Bytes) -> Result<Bytes, Unusable> {
        capitals(&body, "/message/content").map(Bytes::from)
    }

    fn events(&mut self, events: Bytes) -> Result<Bytes, Unusable> {
        let mut changed = Vec::new();
        for line in events.split_inclusive(|byte| *byte == b'\n') {
            match line.strip_prefix(b"data: ").filter(|data| data.starts_with(b"{")) {
                None => changed.extend_from_slice(line),
                Some(data) => {
                    self.changed += 1;
                    changed.extend_from_slice(b"data: ");
                    changed.extend(capitals(data, "/delta/content")?);
                    changed.extend_from_slice(&data[data.trim_ascii_end().len()..]);
                }
            }
        }
        Ok(Bytes::from(changed))
    }

    fn finish(&mut self) -> Result<Bytes, Unusable> {
        Ok(Bytes::from(format!(": {} in capitals\n\n", self.changed)))
    }
}

fn capitals(json: &[u8], place: &str) -> Result<Vec<u8>, Unusable> {
    let mut value: Value = serde_json::from_slice(json).map_err(|error| Unusable(error.to_string().into()))?;
    for choice in value.get_mut("choices").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(Value::String(text)) = choice.pointer_mut(place) {
            if text == UNSPEAKABLE {
                return Err(Unusable("it cannot be said aloud".into()));
            }
            *text = text.to_uppercase();
        }
    }
    Ok(value.to_string().into_bytes())
}
