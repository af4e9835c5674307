//! `usageMetadata`: the prompt includes what was cached, thoughts stand beside the answer.

use crate::wire::codecs::json_reader::{FieldPath, Fields};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::conversation::{Extra, Usage, WireFormat};
use serde_json::{Map, Value};

pub(super) fn read(map: Map<String, Value>) -> Usage {
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let prompt = fields.count("promptTokenCount").saturating_add(fields.count("toolUsePromptTokenCount"));
    let thoughts = fields.count("thoughtsTokenCount");
    let output = fields.count("candidatesTokenCount").saturating_add(thoughts);
    let cached = fields.count("cachedContentTokenCount");
    let audio_input = audio_of(fields.take("promptTokensDetails"));
    let audio_output = audio_of(fields.take("candidatesTokensDetails"));
    fields.take("totalTokenCount");
    Usage {
        reasoning: thoughts,
        audio_input,
        audio_output,
        extra: Extra::new(WireFormat::Gemini, fields.rest()),
        ..Usage::from_sums(prompt, cached, 0, output)
    }
}

fn audio_of(details: Option<Value>) -> u64 {
    let Some(Value::Array(list)) = details else { return 0 };
    let is_audio = |entry: &&Value| entry.get("modality").and_then(Value::as_str) == Some("AUDIO");
    list.iter().filter(is_audio).filter_map(|entry| entry.get("tokenCount")?.as_u64()).sum()
}

pub(super) fn write(w: &mut JsonWriter<'_>, usage: &Usage) {
    w.object_field("usageMetadata");
    w.integer_field("promptTokenCount", usage.prompt());
    w.integer_field("candidatesTokenCount", usage.output.saturating_sub(usage.reasoning));
    w.integer_field("totalTokenCount", usage.total());
    for (name, count) in [("thoughtsTokenCount", usage.reasoning), ("cachedContentTokenCount", usage.cached)] {
        if count > 0 {
            w.integer_field(name, count);
        }
    }
    let details = [
        ("promptTokensDetails", usage.prompt(), usage.audio_input),
        ("candidatesTokensDetails", usage.output.saturating_sub(usage.reasoning), usage.audio_output),
    ];
    for (name, all, audio) in details {
        if audio > 0 {
            w.array_field(name);
            for (modality, count) in [("TEXT", all.saturating_sub(audio)), ("AUDIO", audio)] {
                w.open_object();
                w.string_field("modality", modality);
                w.integer_field("tokenCount", count);
                w.close_object();
            }
            w.close_array();
        }
    }
    w.fields(usage.extra.fields_for(WireFormat::Gemini));
    w.close_object();
}
