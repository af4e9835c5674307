//! Whole answers, both ways. What was cached stands beside the input tokens, as with Anthropic.

use super::blocks::{read_content, write_call, write_reasoning, write_redacted, write_text};
use crate::wire::codecs::arguments::object_value;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::finish_reasons;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_PARTS};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::conversation::{
    Answer, Choice, Extra, Finish, FinishReason, Part, Signer, TextPart, Usage, WireFormat,
};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Converse;

pub(super) fn read(body: &[u8]) -> Result<Answer, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    if !body.has("output") {
        return Err(path.field("output").problem("is missing"));
    }
    let content = body.inner("output").inner("message").bounded_list("content", MAX_PARTS)?;
    let parts = read_content(content, &path.field("output.message.content"))?;
    let finish = body.string("stopReason")?.map(|word| finish_reasons::read(FORMAT, word));
    let mut answer = Answer {
        usage: body.object("usage")?.map(read_usage),
        choices: vec![Choice { parts, finish, ..Choice::default() }],
        ..Answer::default()
    };
    answer.extra = Extra::new(FORMAT, body.rest());
    Ok(answer)
}

pub(super) fn read_usage(map: Map<String, Value>) -> Usage {
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let is_hour = |detail: &&Value| detail.get("ttl").and_then(Value::as_str) == Some("1h");
    let details = fields.list("cacheDetails").ok().flatten().unwrap_or_default();
    let hour = details.iter().filter(is_hour).filter_map(|detail| detail.get("inputTokens")?.as_u64()).sum();
    Usage {
        fresh: fields.count("inputTokens"),
        cached: fields.count("cacheReadInputTokens"),
        cache_write: fields.count("cacheWriteInputTokens"),
        cache_write_hour: hour,
        output: fields.count("outputTokens"),
        ..Usage::default()
    }
}

pub(super) fn write(answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    let choice = answer.choices.first();
    w.open_object();
    w.object_field("output");
    w.object_field("message");
    w.string_field("role", "assistant");
    w.array_field("content");
    for (place, part) in choice.into_iter().flat_map(|choice| &choice.parts).enumerate() {
        write_part(w, part, place as u32, options);
    }
    w.close_array();
    w.close_object();
    w.close_object();
    w.string_field("stopReason", stop_reason(choice.and_then(|choice| choice.finish.as_ref())));
    write_usage(w, answer.usage.as_ref().unwrap_or(&Usage::default()));
    write_metrics(w, answer.extra.get(FORMAT, "metrics"));
    w.fields(answer.extra.fields_for(FORMAT).filter(|(name, _)| *name != "metrics"));
    w.close_object();
}

pub(super) fn stop_reason(finish: Option<&Finish>) -> &str {
    match finish {
        Some(finish) => finish_reasons::word_for(FORMAT, finish, true).unwrap_or("end_turn"),
        None => finish_reasons::write(FORMAT, FinishReason::Stop).unwrap_or("end_turn"),
    }
}

/// Its presence is part of the format; how long it took is not known here.
pub(super) fn write_metrics(w: &mut JsonWriter<'_>, metrics: Option<&Value>) {
    match metrics {
        Some(metrics) => w.value_field("metrics", metrics),
        None => {
            w.object_field("metrics");
            w.integer_field("latencyMs", 0);
            w.close_object();
        }
    }
}

pub(super) fn write_usage(w: &mut JsonWriter<'_>, usage: &Usage) {
    w.object_field("usage");
    w.integer_field("inputTokens", usage.fresh);
    w.integer_field("outputTokens", usage.output);
    w.integer_field("totalTokens", usage.total());
    for (name, count) in [("cacheReadInputTokens", usage.cached), ("cacheWriteInputTokens", usage.cache_write)] {
        if count > 0 {
            w.integer_field(name, count);
        }
    }
    if usage.cache_write_hour > 0 {
        w.array_field("cacheDetails");
        w.open_object();
        w.string_field("ttl", "1h");
        w.integer_field("inputTokens", usage.cache_write_hour);
        w.close_object();
        w.close_array();
    }
    w.close_object();
}

fn write_part(w: &mut JsonWriter<'_>, part: &Part, place: u32, options: &AnswerOptions<'_>) {
    match part {
        Part::Text(text) => write_text(w, text),
        Part::Refusal(text) => write_text(w, &TextPart::new(text.as_str())),
        Part::Thinking(thinking) => {
            let signature = thinking.signature.as_ref().and_then(|own| own.by(Signer::Anthropic));
            write_reasoning(w, &thinking.text, signature);
        }
        Part::RedactedThinking(sealed) => {
            if let Some(data) = sealed.by(Signer::Anthropic) {
                write_redacted(w, data);
            }
        }
        Part::ToolUse(call) => {
            let made;
            let id = if call.id.is_empty() {
                made = options.tool_id(0, place);
                &made
            } else {
                &call.id
            };
            write_call(w, call, id, |w| w.value(&object_value(&call.arguments)));
        }
        Part::Native(native) => native.in_format(FORMAT).into_iter().for_each(|own| w.value(own)),
        Part::Audio(media) => {
            if let Some(words) = &media.transcript {
                write_text(w, &TextPart::new(words.as_str()));
            }
        }
        Part::Image(_) | Part::File(_) | Part::ToolResult(_) => {}
    }
}
