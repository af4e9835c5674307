//! A request as it reached the mock: the proof of what a proxy forwarded.

use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Map, Value, json};

/// Bodies above this are remembered by length and hash alone.
pub const MAX_RECORDED_BODY: usize = 1 << 20;

#[derive(Debug, Clone)]
pub struct Recorded {
    /// Which connection it came over, counted from 1: tells whether a pool was used.
    pub connection: u64,
    pub method: String,
    pub path: String,
    pub query: Option<String>,
    pub version: &'static str,
    pub headers: HeaderMap,
    /// The body, or its beginning when it is longer than a megabyte.
    pub body: Bytes,
    pub body_bytes: u64,
    pub body_sha256: String,
}

impl Recorded {
    /// The value of a header; empty when absent or not text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    pub fn to_json(&self) -> Value {
        json!({
            "method": self.method,
            "path": self.path,
            "query": self.query,
            "version": self.version,
            "connection": self.connection,
            "headers": headers_to_json(&self.headers),
            "body_bytes": self.body_bytes,
            "body_sha256": self.body_sha256,
        })
    }
}

/// Repeated headers are joined as HTTP allows, except that a comma inside a value stays ambiguous.
fn headers_to_json(headers: &HeaderMap) -> Map<String, Value> {
    let mut object = Map::new();
    for (name, value) in headers {
        let value = String::from_utf8_lossy(value.as_bytes());
        match object.get_mut(name.as_str()) {
            Some(Value::String(earlier)) => {
                earlier.push_str(", ");
                earlier.push_str(&value);
            }
            _ => {
                object.insert(name.as_str().to_owned(), Value::String(value.into_owned()));
            }
        }
    }
    object
}
