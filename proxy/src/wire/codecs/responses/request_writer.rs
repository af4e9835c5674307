//! The model → a responses request for a provider.

use crate::wire::codecs::base64_text;
use crate::wire::codecs::data_url::data_url;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::{Dropped, RequestOptions};
use crate::wire::codecs::reasoning::{effort_of, openai_effort};
use crate::wire::conversation::{
    FunctionTool, Media, MediaSource, Part, Request, ResponseFormat, Role, Signer, SystemText, Thinking, Tool,
    ToolChoice, ToolResult, WireFormat,
};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Responses;
static UNSUPPORTED_SETTINGS: &[&str] = &[
    "top_k",
    "stop",
    "seed",
    "n",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "modalities",
    "audio",
    "safety_settings",
];

pub(super) fn write(request: &Request, options: &RequestOptions<'_>, out: &mut Vec<u8>) -> Result<Dropped, CodecError> {
    let mut dropped = Dropped::default();
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    w.optional_string("model", options.model.or(request.model.as_deref()));
    let (instructions, system) = match request.system.split_first() {
        Some((first, rest)) if !first.is_developer => (Some(first), rest),
        _ => (None, request.system.as_slice()),
    };
    w.optional_string("instructions", instructions.map(|first| first.text.as_str()));
    w.array_field("input");
    system.iter().for_each(|text| write_system(w, text));
    for turn in &request.turns {
        write_turn(w, turn.role, &turn.parts, &mut dropped)?;
        dropped.note_if(turn.name.is_some(), "messages.name");
    }
    w.close_array();
    write_tools(w, request)?;
    write_settings(w, request, &mut dropped);
    w.fields(request.extra.fields_for(FORMAT).filter(|(name, _)| *name != "text" && *name != "include"));
    // No other format lets a vendor keep what was said, so whoever speaks it did not ask for that.
    if options.is_unstored && request.extra.get(FORMAT, "store").is_none() {
        w.bool_field("store", false);
    }
    dropped.note_if(request.has_cache_control(), "cache_control");
    dropped.note_extra(request, FORMAT)?;
    w.close_object();
    Ok(dropped)
}

fn write_system(w: &mut JsonWriter<'_>, text: &SystemText) {
    w.open_object();
    w.string_field("type", "message");
    w.string_field("role", if text.is_developer { "developer" } else { "system" });
    w.string_field("content", &text.text);
    w.close_object();
}

fn write_turn(w: &mut JsonWriter<'_>, role: Role, parts: &[Part], dropped: &mut Dropped) -> Result<(), CodecError> {
    let name = match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    // Content gathers in a message; items of their own end it.
    let mut content: Vec<&Part> = Vec::new();
    for part in parts {
        let is_item = matches!(part, Part::ToolUse(_) | Part::ToolResult(_) | Part::Thinking(_))
            || matches!(part, Part::RedactedThinking(_) | Part::Native(_));
        if !is_item {
            content.push(part);
            continue;
        }
        write_message(w, name, &std::mem::take(&mut content), dropped)?;
        match part {
            Part::ToolUse(call) => {
                w.open_object();
                w.string_field("type", "function_call");
                w.string_field("call_id", &call.id);
                w.string_field("name", &call.name);
                w.string_field("arguments", if call.arguments.is_empty() { "{}" } else { &call.arguments });
                w.close_object();
            }
            Part::ToolResult(result) => write_result(w, result, dropped)?,
            Part::Thinking(thinking) => write_reasoning(w, thinking, dropped),
            Part::Native(native) => match native.in_format(FORMAT) {
                Some(own) => w.value(own),
                None => dropped.note("messages.native_block"),
            },
            other => dropped.note(["messages.", other.kind()].concat()),
        }
    }
    write_message(w, name, &content, dropped)
}

fn write_message(w: &mut JsonWriter<'_>, role: &str, parts: &[&Part], dropped: &mut Dropped) -> Result<(), CodecError> {
    if parts.is_empty() {
        return Ok(());
    }
    let is_assistant = role == "assistant";
    w.open_object();
    w.string_field("type", "message");
    w.string_field("role", role);
    match parts {
        [Part::Text(text)] => w.string_field("content", &text.text),
        // Parts of what a model said belong to messages with ids, which only OpenAI gives: here they are one text.
        parts if is_assistant && parts.iter().all(|part| plain_text(part).is_some()) => {
            w.string_field("content", &parts.iter().filter_map(|part| plain_text(part)).collect::<String>());
        }
        parts => {
            w.array_field("content");
            for part in parts {
                write_part(w, part, is_assistant, dropped)?;
            }
            w.close_array();
        }
    }
    w.close_object();
    Ok(())
}

/// The words of a part that has nothing else.
fn plain_text(part: &Part) -> Option<&str> {
    match part {
        Part::Text(text) => Some(&text.text),
        Part::Refusal(text) => Some(text),
        Part::Audio(media) => media.transcript.as_deref(),
        _ => None,
    }
}

fn write_part(
    w: &mut JsonWriter<'_>,
    part: &Part,
    is_assistant: bool,
    dropped: &mut Dropped,
) -> Result<(), CodecError> {
    if let Some(text) = plain_text(part) {
        w.open_object();
        w.string_field("type", if is_assistant { "output_text" } else { "input_text" });
        w.string_field("text", text);
        if is_assistant {
            w.array_field("annotations");
            w.close_array();
        }
        w.close_object();
        return Ok(());
    }
    match part {
        Part::Image(media) => {
            w.open_object();
            w.string_field("type", "input_image");
            match &media.source {
                MediaSource::FileId(id) => w.string_field("file_id", id),
                MediaSource::Url(url) | MediaSource::Text(url) => w.string_field("image_url", url),
                MediaSource::Base64(data) => {
                    let media_type = media.media_type.as_deref().unwrap_or("image/png");
                    w.string_field("image_url", &data_url(media_type, data));
                }
            }
            w.string_field("detail", media.detail.as_deref().unwrap_or("auto"));
            w.close_object();
        }
        Part::File(media) => write_file(w, media),
        // There is no sound here. One that a user sends is the question: without it an answer would be about nothing.
        Part::Audio(_) if !is_assistant => return Err(CodecError::unsupported("messages.audio", FORMAT)),
        other => dropped.note(["messages.", other.kind()].concat()),
    }
    Ok(())
}

fn write_file(w: &mut JsonWriter<'_>, media: &Media) {
    let media_type = media.media_type.as_deref();
    w.open_object();
    w.string_field("type", "input_file");
    match &media.source {
        MediaSource::FileId(id) => w.string_field("file_id", id),
        MediaSource::Url(url) => w.string_field("file_url", url),
        MediaSource::Base64(data) => {
            w.string_field("file_data", &data_url(media_type.unwrap_or("application/pdf"), data));
        }
        MediaSource::Text(text) => {
            let data = base64_text::encode(text);
            w.string_field("file_data", &data_url(media_type.unwrap_or("text/plain"), &data));
        }
    }
    w.optional_string("filename", media.name.as_deref());
    w.close_object();
}

fn write_result(w: &mut JsonWriter<'_>, result: &ToolResult, dropped: &mut Dropped) -> Result<(), CodecError> {
    w.open_object();
    w.string_field("type", "function_call_output");
    w.string_field("call_id", &result.id);
    match result.parts.as_slice() {
        [] => w.string_field("output", ""),
        [Part::Text(text)] => w.string_field("output", &text.text),
        parts => {
            w.array_field("output");
            for part in parts {
                write_part(w, part, false, dropped)?;
            }
            w.close_array();
        }
    }
    dropped.note_if(result.is_error, "tool_result.is_error");
    w.close_object();
    Ok(())
}

/// Contract 6.4: reasoning that its maker did not seal is left out.
fn write_reasoning(w: &mut JsonWriter<'_>, thinking: &Thinking, dropped: &mut Dropped) {
    let sealed = thinking.signature.as_ref().and_then(|own| own.by(Signer::OpenAi));
    let Some(id) = thinking.id.as_ref().filter(|_| sealed.is_some()) else {
        dropped.note("messages.thinking");
        return;
    };
    w.open_object();
    w.string_field("type", "reasoning");
    w.string_field("id", id);
    w.array_field("summary");
    if !thinking.text.is_empty() {
        w.open_object();
        w.string_field("type", "summary_text");
        w.string_field("text", &thinking.text);
        w.close_object();
    }
    w.close_array();
    w.optional_string("encrypted_content", sealed);
    w.close_object();
}

fn write_tools(w: &mut JsonWriter<'_>, request: &Request) -> Result<(), CodecError> {
    if !request.tools.is_empty() {
        w.array_field("tools");
        for (index, tool) in request.tools.iter().enumerate() {
            match tool {
                Tool::Function(function) => write_function(w, function),
                Tool::Native(native) => match native.in_format(FORMAT) {
                    Some(own) => w.value(own),
                    None => return Err(CodecError::unsupported_tool(index, native, FORMAT)),
                },
            }
        }
        w.close_array();
    }
    if let Some(choice) = &request.tool_choice {
        w.key("tool_choice");
        write_choice(w, choice);
    }
    Ok(())
}

/// Left out, `strict` is true here and false in chat: so it is never left out.
pub(super) fn write_function(w: &mut JsonWriter<'_>, tool: &FunctionTool) {
    w.open_object();
    w.string_field("type", "function");
    w.string_field("name", &tool.name);
    w.optional_string("description", tool.description.as_deref());
    match &tool.parameters {
        Some(parameters) => w.value_field("parameters", parameters),
        None => w.null_field("parameters"),
    }
    w.bool_field("strict", tool.strict.unwrap_or(false));
    w.fields(tool.extra.fields_for(FORMAT));
    w.close_object();
}

pub(super) fn write_choice(w: &mut JsonWriter<'_>, choice: &ToolChoice) {
    let named = |w: &mut JsonWriter<'_>, name: &str| {
        w.open_object();
        w.string_field("type", "function");
        w.string_field("name", name);
        w.close_object();
    };
    match choice {
        ToolChoice::Auto => w.string("auto"),
        ToolChoice::None => w.string("none"),
        ToolChoice::Required => w.string("required"),
        ToolChoice::Named(name) => named(w, name),
        ToolChoice::Allowed { names, is_required } => {
            w.open_object();
            w.string_field("type", "allowed_tools");
            w.string_field("mode", if *is_required { "required" } else { "auto" });
            w.array_field("tools");
            names.iter().for_each(|name| named(w, name));
            w.close_array();
            w.close_object();
        }
    }
}

fn write_settings(w: &mut JsonWriter<'_>, request: &Request, dropped: &mut Dropped) {
    let settings = &request.settings;
    for (name, value) in [("max_output_tokens", settings.max_tokens), ("top_logprobs", settings.top_logprobs)] {
        if let Some(value) = value {
            w.integer_field(name, value);
        }
    }
    for (name, value, most) in [("temperature", settings.temperature, 2.0), ("top_p", settings.top_p, 1.0)] {
        if let Some(value) = value {
            w.number_field(name, value.clamp(0.0, most));
        }
    }
    if let Some(is_parallel) = settings.parallel_tool_calls {
        w.bool_field("parallel_tool_calls", is_parallel);
    }
    w.optional_string("user", settings.user.as_deref());
    w.optional_string("service_tier", settings.service_tier.as_deref());
    if let Some(metadata) = &settings.metadata {
        w.object_field("metadata");
        w.fields(metadata.iter().map(|(name, value)| (name.as_str(), value)));
        w.close_object();
    }
    let effort = effort_of(&settings.reasoning);
    if effort.is_some() || settings.reasoning.summary.is_some() {
        w.object_field("reasoning");
        w.optional_string("effort", effort.map(openai_effort));
        w.optional_string("summary", settings.reasoning.summary.as_deref());
        w.close_object();
    }
    write_text_config(w, request);
    write_include(w, request);
    dropped.note_settings(settings, UNSUPPORTED_SETTINGS);
    if settings.is_streaming {
        w.bool_field("stream", true);
    }
}

fn write_include(w: &mut JsonWriter<'_>, request: &Request) {
    let asked = request.extra.get(FORMAT, "include").and_then(Value::as_array);
    let has_logprobs = request.settings.logprobs == Some(true);
    if asked.is_none() && !has_logprobs {
        return;
    }
    w.array_field("include");
    asked.into_iter().flatten().for_each(|name| w.value(name));
    if has_logprobs {
        w.string("message.output_text.logprobs");
    }
    w.close_array();
}

fn write_text_config(w: &mut JsonWriter<'_>, request: &Request) {
    let empty = Map::new();
    let extra = request.extra.get(FORMAT, "text").and_then(Value::as_object).unwrap_or(&empty);
    if request.response_format.is_none() && extra.is_empty() {
        return;
    }
    w.object_field("text");
    match &request.response_format {
        None => {}
        Some(format) => {
            w.object_field("format");
            match format {
                ResponseFormat::Text => w.string_field("type", "text"),
                ResponseFormat::JsonObject => w.string_field("type", "json_object"),
                ResponseFormat::JsonSchema(schema) => {
                    w.string_field("type", "json_schema");
                    w.string_field("name", schema.name.as_deref().unwrap_or("answer"));
                    w.optional_string("description", schema.description.as_deref());
                    w.value_field("schema", &schema.schema);
                    if let Some(strict) = schema.strict {
                        w.bool_field("strict", strict);
                    }
                }
            }
            w.close_object();
        }
    }
    w.fields(extra.iter().map(|(name, value)| (name.as_str(), value)));
    w.close_object();
}
