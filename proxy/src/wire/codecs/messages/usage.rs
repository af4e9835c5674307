//! Usage in Anthropic's sense: what was cached stands beside the input, not in it.

use crate::wire::codecs::json_reader::{FieldPath, Fields};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::conversation::{Extra, Usage, WireFormat};
use serde_json::{Map, Value};

pub(super) fn read(map: Map<String, Value>) -> Usage {
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let mut creation = fields.inner("cache_creation");
    let (five_minutes, hour) =
        (creation.count("ephemeral_5m_input_tokens"), creation.count("ephemeral_1h_input_tokens"));
    let written = fields.count("cache_creation_input_tokens");
    Usage {
        fresh: fields.count("input_tokens"),
        cached: fields.count("cache_read_input_tokens"),
        cache_write: written.max(five_minutes.saturating_add(hour)),
        cache_write_hour: hour,
        output: fields.count("output_tokens"),
        reasoning: fields.inner("output_tokens_details").count("thinking_tokens"),
        extra: Extra::new(WireFormat::Messages, fields.rest()),
        ..Usage::default()
    }
}

pub(super) fn write(w: &mut JsonWriter<'_>, usage: &Usage) {
    w.object_field("usage");
    w.integer_field("input_tokens", usage.fresh);
    w.integer_field("cache_creation_input_tokens", usage.cache_write);
    w.integer_field("cache_read_input_tokens", usage.cached);
    if usage.cache_write_hour > 0 {
        w.object_field("cache_creation");
        let five_minutes = usage.cache_write.saturating_sub(usage.cache_write_hour);
        w.integer_field("ephemeral_5m_input_tokens", five_minutes);
        w.integer_field("ephemeral_1h_input_tokens", usage.cache_write_hour);
        w.close_object();
    }
    w.integer_field("output_tokens", usage.output);
    if usage.reasoning > 0 {
        w.object_field("output_tokens_details");
        w.integer_field("thinking_tokens", usage.reasoning);
        w.close_object();
    }
    w.fields(usage.extra.fields_for(WireFormat::Messages));
    w.close_object();
}
