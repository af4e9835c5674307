//! The model → a chat completion (contract 7.0).

use super::{content_blocks, usage};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::logprobs::MissingBytes;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::{citations, finish_reasons, logprobs};
use crate::wire::conversation::{
    Answer, Choice, Citation, Media, MediaSource, NativeValue, Part, Signer, TokenLogprob, ToolUse, WireFormat,
};

const FORMAT: WireFormat = WireFormat::Chat;

pub(super) fn write(answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    w.string_field("id", answer.id.as_deref().unwrap_or(&options.id));
    w.string_field("object", "chat.completion");
    w.integer_field("created", answer.created.unwrap_or(options.created));
    w.string_field("model", answer.model.as_deref().unwrap_or(&options.model));
    if !options.provider.is_empty() {
        w.string_field("provider", &options.provider);
    }
    w.array_field("choices");
    for choice in &answer.choices {
        write_choice(w, choice, options);
    }
    w.close_array();
    if let Some(counts) = &answer.usage {
        usage::write(w, counts);
    }
    write_safety(w, answer.safety.as_ref(), "prompt_filter_results", "promptFeedback", options.is_strict);
    w.fields(answer.extra.fields_for(FORMAT));
    w.close_object();
}

fn write_choice(w: &mut JsonWriter<'_>, choice: &Choice, options: &AnswerOptions<'_>) {
    w.open_object();
    w.integer_field("index", u64::from(choice.index));
    w.object_field("message");
    write_message(w, choice, options);
    w.close_object();
    write_logprobs(w, &choice.logprobs);
    let word = choice.finish.as_ref().and_then(|finish| finish_reasons::word_for(FORMAT, finish, options.is_strict));
    w.string_field("finish_reason", word.unwrap_or("stop"));
    write_safety(w, choice.safety.as_ref(), "content_filter_results", "safetyRatings", options.is_strict);
    w.fields(choice.extra.fields_for(FORMAT));
    if !options.is_strict
        && let Some(grounding) = choice.extra.get(WireFormat::Gemini, "groundingMetadata")
    {
        w.value_field("groundingMetadata", grounding);
    }
    w.close_object();
}

fn write_message(w: &mut JsonWriter<'_>, choice: &Choice, options: &AnswerOptions<'_>) {
    w.string_field("role", "assistant");
    let mut texts = String::new();
    let mut thoughts = String::new();
    let mut cited: Vec<&Citation> = Vec::new();
    let mut refusal = None;
    let mut has_text = false;
    for part in &choice.parts {
        match part {
            Part::Text(text) => {
                texts.push_str(&text.text);
                cited.extend(text.citations.iter().filter(|own| citations::is_writable_openai(own, FORMAT)));
                has_text = true;
            }
            Part::Thinking(thinking) => thoughts.push_str(&thinking.text),
            Part::Refusal(text) => refusal = Some(text.as_str()),
            _ => {}
        }
    }
    let has_other = choice.has_tool_use() || refusal.is_some();
    match has_text || !has_other {
        true => w.string_field("content", &texts),
        false => w.null_field("content"),
    }
    match refusal {
        Some(text) => w.string_field("refusal", text),
        None => w.null_field("refusal"),
    }
    if !options.is_strict {
        if !thoughts.is_empty() {
            w.string_field("reasoning_content", &thoughts);
        }
        if content_blocks::is_needed(&choice.parts) {
            content_blocks::write(w, &choice.parts);
        }
    }
    if !cited.is_empty() {
        w.array_field("annotations");
        cited.into_iter().for_each(|citation| citations::write_openai(w, citation, FORMAT));
        w.close_array();
    }
    for part in &choice.parts {
        if let Part::Audio(media) = part {
            write_audio(w, media);
        }
    }
    write_calls(w, choice, options);
}

fn write_calls(w: &mut JsonWriter<'_>, choice: &Choice, options: &AnswerOptions<'_>) {
    if !choice.has_tool_use() {
        return;
    }
    w.array_field("tool_calls");
    for (place, part) in choice.parts.iter().enumerate() {
        let Part::ToolUse(call) = part else { continue };
        w.open_object();
        w.string_field("id", &call_id(call, options, choice.index, place as u32));
        w.string_field("type", "function");
        w.object_field("function");
        w.string_field("name", &call.name);
        w.string_field("arguments", if call.arguments.is_empty() { "{}" } else { &call.arguments });
        if !options.is_strict {
            w.optional_string("thought_signature", call.signature.as_ref().and_then(|own| own.by(Signer::Google)));
        }
        w.close_object();
        w.close_object();
    }
    w.close_array();
}

pub(super) fn call_id(call: &ToolUse, options: &AnswerOptions<'_>, choice: u32, part: u32) -> String {
    if call.id.is_empty() { options.tool_id(choice, part) } else { call.id.clone() }
}

pub(super) fn write_audio(w: &mut JsonWriter<'_>, media: &Media) {
    let MediaSource::Base64(data) = &media.source else { return };
    w.object_field("audio");
    w.string_field("id", media.id.as_deref().unwrap_or(""));
    if let Some(at) = media.expires_at {
        w.integer_field("expires_at", at);
    }
    w.string_field("data", data);
    w.string_field("transcript", media.transcript.as_deref().unwrap_or(""));
    w.close_object();
}

pub(super) fn write_logprobs(w: &mut JsonWriter<'_>, tokens: &[TokenLogprob]) {
    if tokens.is_empty() {
        w.null_field("logprobs");
        return;
    }
    w.object_field("logprobs");
    w.key("content");
    logprobs::write(w, tokens, MissingBytes::Null);
    w.null_field("refusal");
    w.close_object();
}

/// Azure's ratings under its own name; Google's under Google's, outside strict mode.
pub(super) fn write_safety(
    w: &mut JsonWriter<'_>,
    ratings: Option<&NativeValue>,
    own_name: &str,
    google_name: &str,
    is_strict: bool,
) {
    match ratings {
        Some(NativeValue { format: FORMAT, value }) => w.value_field(own_name, value),
        Some(NativeValue { format: WireFormat::Gemini, value }) if !is_strict => w.value_field(google_name, value),
        _ => {}
    }
}
