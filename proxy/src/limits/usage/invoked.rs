//! What Bedrock says of a model that was invoked in the model's own format. A stream is frames of `{"bytes": "…"}`, the
//! base64 of events as the model's vendor writes them, of which the last has Bedrock's own count; a plain answer has that
//! count in its head.

use crate::request::text_bounds;
use http::HeaderMap;
use serde::Deserialize;
use std::borrow::Cow;

/// The key of the count in the last event.
pub const METRICS: &[u8] = b"amazon-bedrock-invocationMetrics";
const HEADERS: [(&str, &str); 4] = [
    ("x-amzn-bedrock-input-token-count", "inputTokens"),
    ("x-amzn-bedrock-output-token-count", "outputTokens"),
    ("x-amzn-bedrock-cache-read-input-token-count", "cacheReadInputTokens"),
    ("x-amzn-bedrock-cache-write-input-token-count", "cacheWriteInputTokens"),
];

const TIER_HEADER: &str = "x-amzn-bedrock-service-tier";

#[derive(Deserialize)]
struct Frame<'f> {
    #[serde(borrow)]
    bytes: Cow<'f, str>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Metrics {
    input_token_count: u64,
    output_token_count: u64,
    cache_read_input_token_count: u64,
    cache_write_input_token_count: u64,
}

/// The event inside of a frame; none of what is no such frame.
pub fn unwrapped(data: &[u8]) -> Option<Vec<u8>> {
    let frame: Frame<'_> = serde_json::from_slice(data).ok()?;
    openssl::base64::decode_block(frame.bytes.trim()).ok()
}

/// The count in the words of Converse.
pub fn usage_of_metrics(metrics: &[u8]) -> Option<String> {
    let found: Metrics = serde_json::from_slice(metrics).ok()?;
    if found.input_token_count == 0 && found.output_token_count == 0 {
        return None;
    }
    let counts = [
        found.input_token_count,
        found.output_token_count,
        found.cache_read_input_token_count,
        found.cache_write_input_token_count,
    ];
    written(counts.map(Some))
}

/// The same from the head of a plain answer.
pub fn usage_of_head(head: &HeaderMap) -> Option<String> {
    let count = |name: &str| head.get(name)?.to_str().ok()?.trim().parse().ok();
    if HEADERS[..2].iter().all(|(header, _)| !head.contains_key(*header)) {
        return None;
    }
    written(HEADERS.map(|(header, _)| count(header)))
}

/// The tier of service that a plain answer's head names.
pub fn tier_of_head(head: &HeaderMap) -> Option<String> {
    let tier = head.get(TIER_HEADER)?.to_str().ok()?.trim();
    (!tier.is_empty() && tier.len() <= text_bounds::WORD).then(|| tier.to_owned())
}

fn written(counts: [Option<u64>; 4]) -> Option<String> {
    let named = HEADERS.iter().zip(counts).filter_map(|((_, name), count)| Some(((*name).to_owned(), count?.into())));
    let usage: serde_json::Map<String, serde_json::Value> = named.collect();
    (!usage.is_empty()).then(|| serde_json::Value::Object(usage).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::{HeaderName, HeaderValue};

    #[test]
    fn a_frame_holds_an_event_and_anything_else_holds_none() {
        let inner = br#"{"type":"message_stop"}"#;
        let frame = serde_json::json!({ "bytes": openssl::base64::encode_block(inner), "p": "abcd" }).to_string();
        assert_eq!(unwrapped(frame.as_bytes()).as_deref(), Some(&inner[..]));
        for other in ["", "{}", r#"{"bytes":7}"#, r#"{"bytes":"not base64!"}"#, r#"{"usage":{"inputTokens":1}}"#] {
            assert_eq!(unwrapped(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn bedrocks_own_count_is_read_from_the_last_event_and_from_the_head() {
        let metrics = br#"{"inputTokenCount":9,"outputTokenCount":4,"invocationLatency":1,"firstByteLatency":1}"#;
        let usage: serde_json::Value = serde_json::from_str(&usage_of_metrics(metrics).unwrap()).unwrap();
        assert_eq!((&usage["inputTokens"], &usage["outputTokens"]), (&9.into(), &4.into()));
        assert_eq!(usage_of_metrics(b"[]"), None);
        let mut head = HeaderMap::new();
        assert_eq!(usage_of_head(&head), None);
        for (name, value) in [(HEADERS[0].0, "12"), (HEADERS[1].0, "x")] {
            head.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        assert_eq!(usage_of_head(&head).as_deref(), Some(r#"{"inputTokens":12}"#));
        assert_eq!(tier_of_head(&head), None);
        head.insert(TIER_HEADER, HeaderValue::from_static("priority"));
        assert_eq!(tier_of_head(&head).as_deref(), Some("priority"));
        head.insert(TIER_HEADER, HeaderValue::from_str(&"p".repeat(text_bounds::WORD + 1)).unwrap());
        assert_eq!(tier_of_head(&head), None);
    }
}
