//! The model → a generateContent request (contract 7.4 and 7.12).

use super::{parts, tools};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::{Dropped, GeminiThinking, RequestOptions};
use crate::wire::codecs::reasoning::{effort_of, gemini_budget, gemini_level};
use crate::wire::conversation::{Part, Request, ResponseFormat, Role, Settings, WireFormat};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Gemini;
static UNSUPPORTED_SETTINGS: &[&str] =
    &["logit_bias", "user", "metadata", "service_tier", "parallel_tool_calls", "audio"];
/// What callers of chat may write in snake case (contract 7.4).
static FROM_CHAT: &[&str] = &["image_config", "cached_content"];

pub(super) fn write(request: &Request, options: &RequestOptions<'_>, out: &mut Vec<u8>) -> Result<Dropped, CodecError> {
    let mut dropped = Dropped::default();
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    write_system(w, request);
    w.array_field("contents");
    for (role, turn) in request.alternating_turns() {
        write_turn(w, role, &turn, request, &mut dropped)?;
    }
    w.close_array();
    tools::write(w, request)?;
    write_config(w, request, options, &mut dropped);
    if let Some(settings) = &request.settings.safety_settings {
        w.array_field("safetySettings");
        settings.iter().for_each(|setting| w.value(setting));
        w.close_array();
    }
    if let Some(cached) = request.extra.get(WireFormat::Chat, "cached_content") {
        w.value_field("cachedContent", cached);
    }
    w.fields(request.extra.fields_for(FORMAT).filter(|(name, _)| *name != "generationConfig"));
    dropped.note_if(request.has_cache_control(), "cache_control");
    dropped.note_extra_but(request, FORMAT, FROM_CHAT)?;
    w.close_object();
    Ok(dropped)
}

/// All system texts are one instruction in several parts.
fn write_system(w: &mut JsonWriter<'_>, request: &Request) {
    let mut texts = request.all_system_texts();
    texts.retain(|text| !text.text.is_empty());
    if texts.is_empty() {
        return;
    }
    w.object_field("systemInstruction");
    w.array_field("parts");
    texts.iter().for_each(|text| parts::write_text(w, &text.text, false, None));
    w.close_array();
    w.close_object();
}

fn write_turn(
    w: &mut JsonWriter<'_>,
    role: Role,
    turn: &[&Part],
    request: &Request,
    dropped: &mut Dropped,
) -> Result<(), CodecError> {
    let is_empty = |part: &&Part| matches!(part, Part::Text(text) if text.text.is_empty());
    if turn.iter().all(is_empty) {
        return Ok(());
    }
    w.open_object();
    w.string_field("role", if role == Role::Assistant { "model" } else { "user" });
    w.array_field("parts");
    for part in turn {
        parts::write(w, part, request, dropped)?;
    }
    w.close_array();
    w.close_object();
    Ok(())
}

fn write_config(w: &mut JsonWriter<'_>, request: &Request, options: &RequestOptions<'_>, dropped: &mut Dropped) {
    let settings = &request.settings;
    let empty = Map::new();
    let own = request.extra.get(FORMAT, "generationConfig").and_then(Value::as_object).unwrap_or(&empty);
    dropped.note_settings(settings, UNSUPPORTED_SETTINGS);
    w.object_field("generationConfig");
    let numbers = [
        ("temperature", settings.temperature.map(|value| value.clamp(0.0, 2.0))),
        ("topP", settings.top_p.map(|value| value.clamp(0.0, 1.0))),
        ("presencePenalty", settings.presence_penalty),
        ("frequencyPenalty", settings.frequency_penalty),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            w.number_field(name, value);
        }
    }
    let counts = [
        ("topK", settings.top_k),
        ("maxOutputTokens", settings.max_tokens),
        ("candidateCount", settings.n),
        ("logprobs", settings.top_logprobs),
    ];
    for (name, value) in counts {
        if let Some(value) = value {
            w.integer_field(name, value);
        }
    }
    if let Some(seed) = settings.seed {
        w.value_field("seed", &Value::from(seed));
    }
    if let Some(wanted) = settings.logprobs {
        w.bool_field("responseLogprobs", wanted);
    }
    if !settings.stop.is_empty() {
        w.array_field("stopSequences");
        settings.stop.iter().for_each(|stop| w.string(stop));
        w.close_array();
    }
    if !settings.modalities.is_empty() {
        w.array_field("responseModalities");
        settings.modalities.iter().for_each(|modality| w.string(&modality.to_ascii_uppercase()));
        w.close_array();
    }
    match &request.response_format {
        None => {}
        Some(ResponseFormat::Text) => w.string_field("responseMimeType", "text/plain"),
        Some(ResponseFormat::JsonObject) => w.string_field("responseMimeType", "application/json"),
        Some(ResponseFormat::JsonSchema(format)) => {
            w.string_field("responseMimeType", "application/json");
            w.value_field("responseJsonSchema", &format.schema);
        }
    }
    write_thinking(w, settings, options);
    write_image_config(w, request);
    w.fields(own.iter().map(|(name, value)| (name.as_str(), value)));
    w.close_object();
}

fn write_thinking(w: &mut JsonWriter<'_>, settings: &Settings, options: &RequestOptions<'_>) {
    let reasoning = &settings.reasoning;
    let effort = effort_of(reasoning);
    if effort.is_none() && reasoning.is_shown.is_none() && !reasoning.is_adaptive {
        return;
    }
    w.object_field("thinkingConfig");
    if let Some(is_shown) = reasoning.is_shown {
        w.bool_field("includeThoughts", is_shown);
    }
    match (reasoning.budget, effort, options.gemini_thinking) {
        (Some(budget), ..) => w.integer_field("thinkingBudget", budget),
        (None, _, _) if reasoning.is_disabled => w.integer_field("thinkingBudget", 0),
        (None, Some(effort), GeminiThinking::Level) => w.string_field("thinkingLevel", gemini_level(effort)),
        (None, Some(effort), GeminiThinking::Budget) => {
            w.integer_field("thinkingBudget", gemini_budget(effort).unwrap_or(0));
        }
        (None, None, _) if reasoning.is_adaptive => w.value_field("thinkingBudget", &Value::from(-1)),
        (None, None, _) => {}
    }
    w.close_object();
}

fn write_image_config(w: &mut JsonWriter<'_>, request: &Request) {
    let Some(Value::Object(config)) = request.extra.get(WireFormat::Chat, "image_config") else { return };
    w.object_field("imageConfig");
    for (snake, camel) in [("aspect_ratio", "aspectRatio"), ("image_size", "imageSize")] {
        if let Some(value) = config.get(snake) {
            w.value_field(camel, value);
        }
    }
    w.close_object();
}
