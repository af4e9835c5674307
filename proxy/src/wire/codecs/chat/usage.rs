//! Usage in OpenAI's sense (decision 74): sums, with what was cached or thought as details of them.

use crate::wire::codecs::json_reader::{FieldPath, Fields};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::conversation::{Extra, Usage, WireFormat};
use serde_json::{Map, Value};

pub(in crate::wire::codecs) fn read(map: Map<String, Value>) -> Usage {
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let prompt = fields.count("prompt_tokens");
    let output = fields.count("completion_tokens");
    let mut of_prompt = fields.inner("prompt_tokens_details");
    let mut of_answer = fields.inner("completion_tokens_details");
    // DeepSeek's and Anthropic's names of the same counts.
    let hit = fields.count("prompt_cache_hit_tokens").max(fields.count("cache_read_input_tokens"));
    let written = fields.count("cache_creation_input_tokens").max(of_prompt.count("cache_write_tokens"));
    let cached = of_prompt.count("cached_tokens").max(hit);
    fields.take("total_tokens");
    fields.take("prompt_cache_miss_tokens");
    Usage {
        reasoning: of_answer.count("reasoning_tokens"),
        audio_input: of_prompt.count("audio_tokens"),
        audio_output: of_answer.count("audio_tokens"),
        accepted_prediction: of_answer.count("accepted_prediction_tokens"),
        rejected_prediction: of_answer.count("rejected_prediction_tokens"),
        extra: Extra::new(WireFormat::Chat, fields.rest()),
        ..Usage::from_sums(prompt, cached, written, output)
    }
}

pub(in crate::wire::codecs) fn write(w: &mut JsonWriter<'_>, usage: &Usage) {
    w.object_field("usage");
    w.integer_field("prompt_tokens", usage.prompt());
    w.integer_field("completion_tokens", usage.output);
    w.integer_field("total_tokens", usage.total());
    w.object_field("prompt_tokens_details");
    w.integer_field("cached_tokens", usage.cached);
    w.integer_field("audio_tokens", usage.audio_input);
    w.close_object();
    w.object_field("completion_tokens_details");
    w.integer_field("reasoning_tokens", usage.reasoning);
    w.integer_field("audio_tokens", usage.audio_output);
    w.integer_field("accepted_prediction_tokens", usage.accepted_prediction);
    w.integer_field("rejected_prediction_tokens", usage.rejected_prediction);
    w.close_object();
    // Contract 7.3: Anthropic's own counts beside them, where there are any.
    if usage.cached > 0 {
        w.integer_field("cache_read_input_tokens", usage.cached);
    }
    if usage.cache_write > 0 {
        w.integer_field("cache_creation_input_tokens", usage.cache_write);
    }
    w.fields(usage.extra.fields_for(WireFormat::Chat));
    w.close_object();
}
