//! Headers that become metadata (`HEADERS_TO_METADATA`): platforms in front of the gateway set them, and policies and
//! logs use them.

use anyhow::{Context as _, bail};
use http::{HeaderMap, HeaderName};
use serde_json::{Map, Value};

/// Longest value of metadata, in characters; the rest of a longer header is left out.
const MAX_VALUE: usize = 128;

/// Headers whose values are nobody's to keep.
const SECRET: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
    "sec-websocket-protocol",
];

/// Each header with the name its value has in metadata.
#[derive(Debug, Clone, Default)]
pub struct HeadersToMetadata(Vec<(HeaderName, String)>);

impl HeadersToMetadata {
    /// Each entry is a header's name, or `header:name` where the metadata has another one.
    pub fn parse(entries: &[String]) -> anyhow::Result<Self> {
        let entries = entries.iter().map(|entry| entry.trim()).filter(|entry| !entry.is_empty());
        entries.map(Self::parse_one).collect::<anyhow::Result<_>>().map(Self)
    }

    fn parse_one(entry: &str) -> anyhow::Result<(HeaderName, String)> {
        let (header, name) = entry.split_once(':').unwrap_or((entry, entry));
        let header: HeaderName =
            header.trim().parse().with_context(|| format!("HEADERS_TO_METADATA: `{entry}` is no header"))?;
        let is_ours = header.as_str().starts_with(crate::request::headers::PREFIX);
        if is_ours || SECRET.contains(&header.as_str()) {
            bail!("HEADERS_TO_METADATA: `{header}` may hold a credential");
        }
        let name = name.trim().to_ascii_lowercase();
        if name.is_empty() || name.len() > MAX_VALUE {
            bail!("HEADERS_TO_METADATA: `{entry}` needs a name of 1 to {MAX_VALUE} characters");
        }
        Ok((header, name))
    }

    pub fn collect(&self, head: &HeaderMap) -> Map<String, Value> {
        let found = self.0.iter().filter_map(|(header, name)| {
            let text = head.get(header)?.to_str().ok()?.trim();
            let text: String = text.chars().take(MAX_VALUE).collect();
            (!text.is_empty()).then(|| (name.clone(), Value::String(text)))
        });
        found.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;
    use serde_json::json;

    fn parse(entries: &[&str]) -> anyhow::Result<HeadersToMetadata> {
        HeadersToMetadata::parse(&entries.iter().map(|entry| (*entry).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn headers_become_metadata_under_their_own_name_or_another() {
        let mut head = HeaderMap::new();
        head.insert("x-team", HeaderValue::from_static(" search "));
        head.insert("x-forwarded-user", HeaderValue::from_static("ada"));
        head.insert("x-empty", HeaderValue::from_static(""));
        head.insert("x-long", HeaderValue::from_str(&"x".repeat(200)).unwrap());
        let wanted = parse(&["X-Team", "x-forwarded-user:_user", "x-empty", "x-absent", "x-long:l", ""]).unwrap();
        let read = Value::Object(wanted.collect(&head));
        assert_eq!(read, json!({ "x-team": "search", "_user": "ada", "l": "x".repeat(128) }));
    }

    #[test]
    fn what_may_hold_a_credential_is_refused() {
        for entry in ["Authorization", "cookie:c", "x-gateway-api-key", "bad header", "x-a:"] {
            let error = parse(&[entry]).expect_err(entry).to_string();
            assert!(error.starts_with("HEADERS_TO_METADATA"), "{error}");
        }
    }
}
