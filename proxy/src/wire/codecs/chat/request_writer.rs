//! The model → a chat request for a provider.

use super::content::{write_cache, write_part};
use super::content_blocks;
use super::tools::{write_choice, write_function};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::{Dropped, RequestOptions};
use crate::wire::codecs::reasoning::{effort_of, openai_effort};
use crate::wire::conversation::{
    MediaSource, Part, Request, ResponseFormat, Role, Settings, Signer, Tool, ToolResult, ToolUse, Turn, WireFormat,
};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Chat;
/// In place of the text of a tool's result that is an image or a file.
pub(in crate::wire::codecs) const ATTACHED: &str = "The result is attached to the next message.";

pub(super) fn write(request: &Request, options: &RequestOptions<'_>, out: &mut Vec<u8>) -> Result<Dropped, CodecError> {
    let mut dropped = Dropped::default();
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    w.optional_string("model", options.model.or(request.model.as_deref()));
    write_messages(w, request, options, &mut dropped)?;
    write_tools(w, request, !options.is_strict)?;
    if let Some(format) = &request.response_format {
        write_response_format(w, format);
    }
    write_settings(w, &request.settings, options, &mut dropped);
    w.fields(request.extra.fields_for(FORMAT));
    dropped.note_if(options.is_strict && request.has_cache_control(), "cache_control");
    dropped.note_extra(request, FORMAT)?;
    w.close_object();
    Ok(dropped)
}

fn write_messages(
    w: &mut JsonWriter<'_>,
    request: &Request,
    options: &RequestOptions<'_>,
    dropped: &mut Dropped,
) -> Result<(), CodecError> {
    let shows_cache = !options.is_strict;
    w.array_field("messages");
    for system in &request.system {
        w.open_object();
        w.string_field("role", if system.is_developer { "developer" } else { "system" });
        match system.cache.as_ref().filter(|_| shows_cache) {
            None => w.string_field("content", &system.text),
            Some(cache) => {
                w.array_field("content");
                w.open_object();
                w.string_field("type", "text");
                w.string_field("text", &system.text);
                write_cache(w, Some(cache));
                w.close_object();
                w.close_array();
            }
        }
        w.close_object();
    }
    for turn in &request.turns {
        match turn.role {
            Role::System => {
                write_plain(w, "system", turn, &turn.parts.iter().collect::<Vec<_>>(), shows_cache, dropped)
            }
            Role::User => write_user(w, turn, shows_cache, dropped),
            Role::Assistant => write_assistant(w, turn, options, dropped),
        }
    }
    w.close_array();
    Ok(())
}

/// Contract 6.3: tool results first, one message each, then the rest. A tool message holds text only, so what a tool
/// returned besides follows as the user's.
fn write_user(w: &mut JsonWriter<'_>, turn: &Turn, shows_cache: bool, dropped: &mut Dropped) {
    let mut rest: Vec<&Part> = Vec::new();
    for part in &turn.parts {
        match part {
            Part::ToolResult(result) => {
                write_tool_result(w, result, shows_cache, dropped);
                rest.extend(result.parts.iter().filter(|part| !matches!(part, Part::Text(_))));
            }
            other => rest.push(other),
        }
    }
    if !rest.is_empty() || turn.parts.is_empty() {
        write_plain(w, "user", turn, &rest, shows_cache, dropped);
    }
}

fn write_tool_result(w: &mut JsonWriter<'_>, result: &ToolResult, shows_cache: bool, dropped: &mut Dropped) {
    w.open_object();
    w.string_field("role", "tool");
    w.string_field("tool_call_id", &result.id);
    let texts: Vec<&str> = result.parts.iter().filter_map(text_of).collect();
    let has_media = result.parts.len() > texts.len();
    match texts.as_slice() {
        [] if has_media => w.string_field("content", ATTACHED),
        [] => w.string_field("content", ""),
        [text] => w.string_field("content", text),
        texts => {
            w.array_field("content");
            for text in texts {
                w.open_object();
                w.string_field("type", "text");
                w.string_field("text", text);
                w.close_object();
            }
            w.close_array();
        }
    }
    write_cache(w, result.cache.as_ref().filter(|_| shows_cache));
    dropped.note_if(result.is_error, "tool_result.is_error");
    w.close_object();
}

fn write_plain(
    w: &mut JsonWriter<'_>,
    role: &str,
    turn: &Turn,
    parts: &[&Part],
    shows_cache: bool,
    dropped: &mut Dropped,
) {
    w.open_object();
    w.string_field("role", role);
    w.optional_string("name", turn.name.as_deref());
    match parts {
        [] => w.string_field("content", ""),
        [Part::Text(text)] if text.cache.is_none() || !shows_cache => w.string_field("content", &text.text),
        parts => {
            w.array_field("content");
            for part in parts {
                if !write_part(w, part, shows_cache) {
                    dropped.note(["messages.", part.kind()].concat());
                }
            }
            w.close_array();
        }
    }
    w.fields(turn.extra.fields_for(FORMAT));
    w.close_object();
}

fn write_assistant(w: &mut JsonWriter<'_>, turn: &Turn, options: &RequestOptions<'_>, dropped: &mut Dropped) {
    let shows_cache = !options.is_strict;
    w.open_object();
    w.string_field("role", "assistant");
    w.optional_string("name", turn.name.as_deref());
    let texts: Vec<&Part> = turn.parts.iter().filter(|part| matches!(part, Part::Text(_))).collect();
    match texts.as_slice() {
        [] => w.null_field("content"),
        [Part::Text(text)] if text.cache.is_none() || !shows_cache => w.string_field("content", &text.text),
        texts => {
            w.array_field("content");
            texts.iter().for_each(|part| {
                write_part(w, part, shows_cache);
            });
            w.close_array();
        }
    }
    let mut calls: Vec<&ToolUse> = Vec::new();
    let shows_blocks = !options.is_strict && content_blocks::is_needed(&turn.parts);
    for part in &turn.parts {
        match part {
            Part::Text(_) => {}
            Part::Refusal(text) => w.string_field("refusal", text),
            Part::ToolUse(call) => calls.push(call),
            Part::Audio(media) => match &media.source {
                MediaSource::FileId(id) => {
                    w.object_field("audio");
                    w.string_field("id", id);
                    w.close_object();
                }
                _ => dropped.note("messages.audio"),
            },
            Part::Thinking(_) | Part::RedactedThinking(_) | Part::Image(_) if shows_blocks => {}
            other => dropped.note(["messages.", other.kind()].concat()),
        }
    }
    if shows_blocks {
        content_blocks::write(w, &turn.parts);
    }
    if !calls.is_empty() {
        w.array_field("tool_calls");
        calls.into_iter().for_each(|call| write_call(w, call));
        w.close_array();
    }
    w.fields(turn.extra.fields_for(FORMAT));
    w.close_object();
}

fn write_call(w: &mut JsonWriter<'_>, call: &ToolUse) {
    w.open_object();
    w.string_field("id", &call.id);
    w.string_field("type", "function");
    w.object_field("function");
    w.string_field("name", &call.name);
    w.string_field("arguments", if call.arguments.is_empty() { "{}" } else { &call.arguments });
    // Google's own chat endpoint wants it back.
    w.optional_string("thought_signature", call.signature.as_ref().and_then(|own| own.by(Signer::Google)));
    w.close_object();
    w.close_object();
}

fn write_tools(w: &mut JsonWriter<'_>, request: &Request, shows_cache: bool) -> Result<(), CodecError> {
    if !request.tools.is_empty() {
        w.array_field("tools");
        for (index, tool) in request.tools.iter().enumerate() {
            match tool {
                Tool::Function(function) => write_function(w, function, FORMAT, shows_cache),
                Tool::Native(native) => match native.in_format(FORMAT) {
                    Some(own) => w.value(own),
                    None => return Err(CodecError::unsupported_tool(index, native, FORMAT)),
                },
            }
        }
        w.close_array();
    }
    if let Some(choice) = &request.tool_choice {
        write_choice(w, choice);
    }
    Ok(())
}

fn write_response_format(w: &mut JsonWriter<'_>, format: &ResponseFormat) {
    w.object_field("response_format");
    match format {
        ResponseFormat::Text => w.string_field("type", "text"),
        ResponseFormat::JsonObject => w.string_field("type", "json_object"),
        ResponseFormat::JsonSchema(schema) => {
            w.string_field("type", "json_schema");
            w.object_field("json_schema");
            // OpenAI demands a name.
            w.string_field("name", schema.name.as_deref().unwrap_or("answer"));
            w.optional_string("description", schema.description.as_deref());
            w.value_field("schema", &schema.schema);
            if let Some(strict) = schema.strict {
                w.bool_field("strict", strict);
            }
            w.close_object();
        }
    }
    w.close_object();
}

fn write_settings(w: &mut JsonWriter<'_>, settings: &Settings, options: &RequestOptions<'_>, dropped: &mut Dropped) {
    if let Some(most) = settings.max_tokens {
        w.integer_field(options.chat_max_tokens, most);
    }
    // Contract 7.1: clamped to what OpenAI takes.
    let clamped = [
        ("temperature", settings.temperature, 0.0, 2.0),
        ("top_p", settings.top_p, 0.0, 1.0),
        ("presence_penalty", settings.presence_penalty, -2.0, 2.0),
        ("frequency_penalty", settings.frequency_penalty, -2.0, 2.0),
    ];
    for (name, value, least, most) in clamped {
        if let Some(value) = value {
            w.number_field(name, value.clamp(least, most));
        }
    }
    match settings.stop.as_slice() {
        [] => {}
        stops => {
            w.array_field("stop");
            stops.iter().for_each(|stop| w.string(stop));
            w.close_array();
        }
    }
    if let Some(seed) = settings.seed {
        w.value_field("seed", &Value::from(seed));
    }
    for (name, value) in [("n", settings.n), ("top_logprobs", settings.top_logprobs)] {
        if let Some(value) = value {
            w.integer_field(name, value);
        }
    }
    for (name, value) in [("logprobs", settings.logprobs), ("parallel_tool_calls", settings.parallel_tool_calls)] {
        if let Some(value) = value {
            w.bool_field(name, value);
        }
    }
    for (name, map) in
        [("logit_bias", &settings.logit_bias), ("metadata", &settings.metadata), ("audio", &settings.audio)]
    {
        if let Some(map) = map {
            w.object_field(name);
            w.fields(map.iter().map(|(name, value)| (name.as_str(), value)));
            w.close_object();
        }
    }
    if let Some(effort) = effort_of(&settings.reasoning) {
        w.string_field("reasoning_effort", openai_effort(effort));
    }
    w.optional_string("user", settings.user.as_deref());
    w.optional_string("service_tier", settings.service_tier.as_deref());
    if !settings.modalities.is_empty() {
        w.array_field("modalities");
        settings.modalities.iter().for_each(|modality| w.string(modality));
        w.close_array();
    }
    dropped.note_settings(settings, &["top_k", "safety_settings"]);
    if settings.is_streaming {
        w.bool_field("stream", true);
        if options.asks_for_usage {
            w.object_field("stream_options");
            w.bool_field("include_usage", true);
            w.close_object();
        }
    }
}

fn text_of(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(&text.text),
        _ => None,
    }
}
