//! Anthropic's usage: the prompt is counted without what was read from or written to the cache.

use super::{Usage, at};
use serde_json::Value;

pub fn read(usage: &Value) -> Usage {
    let hour = at(usage, &["cache_creation", "ephemeral_1h_input_tokens"]);
    let by_lifetime = at(usage, &["cache_creation", "ephemeral_5m_input_tokens"]).saturating_add(hour);
    let counted = Usage {
        input: at(usage, &["input_tokens"]),
        cache_read: at(usage, &["cache_read_input_tokens"]),
        cache_write: at(usage, &["cache_creation_input_tokens"]).max(by_lifetime),
        cache_write_1h: hour,
        output: at(usage, &["output_tokens"]),
        ..Usage::default()
    };
    counted.count("web_search", at(usage, &["server_tool_use", "web_search_requests"]))
}
