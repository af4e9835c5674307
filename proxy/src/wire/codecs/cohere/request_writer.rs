//! The model → a Cohere request (contract 7.7 and 7.12).

use crate::wire::codecs::chat::content::write_part;
use crate::wire::codecs::chat::tools::write_function;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::{Dropped, RequestOptions};
use crate::wire::codecs::reasoning::anthropic_budget;
use crate::wire::conversation::{
    Effort, Part, Request, ResponseFormat, Role, Settings, Tool, ToolChoice, ToolResult, ToolUse, Turn, WireFormat,
};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Cohere;
static UNSUPPORTED_SETTINGS: &[&str] = &[
    "n",
    "logit_bias",
    "top_logprobs",
    "user",
    "metadata",
    "service_tier",
    "parallel_tool_calls",
    "modalities",
    "audio",
    "safety_settings",
];
/// What callers of chat may pass through (contract 7.7).
static FROM_CHAT: &[&str] = &["documents", "citation_options", "safety_mode"];

pub(super) fn write(request: &Request, options: &RequestOptions<'_>, out: &mut Vec<u8>) -> Result<Dropped, CodecError> {
    let mut dropped = Dropped::default();
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    w.optional_string("model", options.model.or(request.model.as_deref()));
    w.array_field("messages");
    for text in &request.system {
        w.open_object();
        w.string_field("role", "system");
        w.string_field("content", &text.text);
        w.close_object();
    }
    for turn in &request.turns {
        match turn.role {
            Role::System => write_message(w, "system", &turn.parts.iter().collect::<Vec<_>>(), &mut dropped)?,
            Role::User => write_user(w, turn, &mut dropped)?,
            Role::Assistant => write_assistant(w, turn, &mut dropped)?,
        }
    }
    w.close_array();
    write_tools(w, request)?;
    write_format(w, request);
    write_settings(w, &request.settings, &mut dropped);
    for name in FROM_CHAT {
        if let Some(value) = request.extra.get(WireFormat::Chat, name) {
            w.value_field(name, value);
        }
    }
    w.fields(request.extra.fields_for(FORMAT));
    dropped.note_if(request.has_cache_control(), "cache_control");
    dropped.note_extra_but(request, FORMAT, FROM_CHAT)?;
    w.close_object();
    Ok(dropped)
}

fn write_user(w: &mut JsonWriter<'_>, turn: &Turn, dropped: &mut Dropped) -> Result<(), CodecError> {
    let mut rest: Vec<&Part> = Vec::new();
    for part in &turn.parts {
        match part {
            Part::ToolResult(result) => {
                write_result(w, result, dropped);
                // A tool's images follow as the user's.
                rest.extend(result.parts.iter().filter(|part| matches!(part, Part::Image(_))));
            }
            other => rest.push(other),
        }
    }
    if rest.is_empty() { Ok(()) } else { write_message(w, "user", &rest, dropped) }
}

fn write_result(w: &mut JsonWriter<'_>, result: &ToolResult, dropped: &mut Dropped) {
    w.open_object();
    w.string_field("role", "tool");
    w.string_field("tool_call_id", &result.id);
    let is_own = |part: &Part| matches!(part, Part::Native(native) if native.format == FORMAT);
    if result.parts.iter().any(is_own) {
        w.array_field("content");
        for part in &result.parts {
            write_content(w, part, dropped);
        }
        w.close_array();
    } else {
        let texts = result.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        w.string_field("content", &texts.collect::<String>());
    }
    dropped.note_if(result.is_error, "tool_result.is_error");
    w.close_object();
}

fn write_message(w: &mut JsonWriter<'_>, role: &str, parts: &[&Part], dropped: &mut Dropped) -> Result<(), CodecError> {
    w.open_object();
    w.string_field("role", role);
    match parts {
        [Part::Text(text)] => w.string_field("content", &text.text),
        parts => {
            w.array_field("content");
            for part in parts {
                if let Part::Audio(_) | Part::File(_) = part {
                    return Err(CodecError::unsupported(["messages.", part.kind()].concat(), FORMAT));
                }
                write_content(w, part, dropped);
            }
            w.close_array();
        }
    }
    w.close_object();
    Ok(())
}

fn write_content(w: &mut JsonWriter<'_>, part: &Part, dropped: &mut Dropped) {
    match part {
        Part::Text(_) => {
            write_part(w, part, false);
        }
        Part::Image(_) => {
            write_part(w, part, false);
        }
        Part::Native(native) if native.format == FORMAT => w.value(&native.value),
        other => dropped.note(["messages.", other.kind()].concat()),
    }
}

/// What the model thought before it called tools is its plan.
fn write_assistant(w: &mut JsonWriter<'_>, turn: &Turn, dropped: &mut Dropped) -> Result<(), CodecError> {
    let mut text = String::new();
    let mut thought = String::new();
    let mut calls: Vec<&ToolUse> = Vec::new();
    for part in &turn.parts {
        match part {
            Part::Text(own) => text.push_str(&own.text),
            Part::Refusal(own) => text.push_str(own),
            Part::Thinking(own) => thought.push_str(&own.text),
            Part::ToolUse(call) => calls.push(call),
            other => dropped.note(["messages.", other.kind()].concat()),
        }
    }
    w.open_object();
    w.string_field("role", "assistant");
    if calls.is_empty() && !thought.is_empty() {
        w.array_field("content");
        w.open_object();
        w.string_field("type", "thinking");
        w.string_field("thinking", &thought);
        w.close_object();
        w.open_object();
        w.string_field("type", "text");
        w.string_field("text", &text);
        w.close_object();
        w.close_array();
    } else if !text.is_empty() || calls.is_empty() {
        w.string_field("content", &text);
    }
    if !calls.is_empty() {
        if !thought.is_empty() {
            w.string_field("tool_plan", &thought);
        }
        w.array_field("tool_calls");
        calls.into_iter().for_each(|call| write_call(w, call, &call.id));
        w.close_array();
    }
    w.fields(turn.extra.fields_for(FORMAT));
    w.close_object();
    Ok(())
}

pub(super) fn write_call(w: &mut JsonWriter<'_>, call: &ToolUse, id: &str) {
    w.open_object();
    w.string_field("id", id);
    w.string_field("type", "function");
    w.object_field("function");
    w.string_field("name", &call.name);
    w.string_field("arguments", if call.arguments.is_empty() { "{}" } else { &call.arguments });
    w.close_object();
    w.close_object();
}

fn write_tools(w: &mut JsonWriter<'_>, request: &Request) -> Result<(), CodecError> {
    // One tool by name is said by sending that tool alone and demanding a call.
    let named = match &request.tool_choice {
        Some(ToolChoice::Named(name)) => Some(name),
        _ => None,
    };
    let (tools, choice) = request.narrowed_tools();
    let mut is_strict = false;
    if !tools.is_empty() {
        w.array_field("tools");
        for (index, tool) in tools.into_iter().enumerate() {
            match tool {
                Tool::Function(function) if named.is_some_and(|name| *name != function.name) => {}
                Tool::Function(function) => {
                    is_strict |= function.strict == Some(true);
                    write_function(w, function, FORMAT, false);
                }
                Tool::Native(native) => return Err(CodecError::unsupported_tool(index, native, FORMAT)),
            }
        }
        w.close_array();
    }
    match choice {
        Some(ToolChoice::Required | ToolChoice::Named(_)) => w.string_field("tool_choice", "REQUIRED"),
        Some(ToolChoice::None) => w.string_field("tool_choice", "NONE"),
        None | Some(ToolChoice::Auto | ToolChoice::Allowed { .. }) => {}
    }
    if is_strict {
        w.bool_field("strict_tools", true);
    }
    Ok(())
}

fn write_format(w: &mut JsonWriter<'_>, request: &Request) {
    let Some(format) = &request.response_format else { return };
    w.object_field("response_format");
    match format {
        ResponseFormat::Text => w.string_field("type", "text"),
        ResponseFormat::JsonObject => w.string_field("type", "json_object"),
        ResponseFormat::JsonSchema(schema) => {
            w.string_field("type", "json_object");
            w.value_field("json_schema", &schema.schema);
        }
    }
    w.close_object();
}

fn write_settings(w: &mut JsonWriter<'_>, settings: &Settings, dropped: &mut Dropped) {
    if let Some(most) = settings.max_tokens {
        w.integer_field("max_tokens", most);
    }
    let numbers = [
        ("temperature", settings.temperature.map(|value| value.clamp(0.0, 1.0))),
        ("p", settings.top_p.map(|value| value.clamp(0.01, 0.99))),
        ("presence_penalty", settings.presence_penalty.map(|value| value.clamp(0.0, 1.0))),
        ("frequency_penalty", settings.frequency_penalty.map(|value| value.clamp(0.0, 1.0))),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            w.number_field(name, value);
        }
    }
    if let Some(k) = settings.top_k {
        w.integer_field("k", k.min(500));
    }
    if !settings.stop.is_empty() {
        w.array_field("stop_sequences");
        settings.stop.iter().for_each(|stop| w.string(stop));
        w.close_array();
    }
    if let Some(seed) = settings.seed {
        w.value_field("seed", &Value::from(seed));
    }
    if let Some(wanted) = settings.logprobs {
        w.bool_field("logprobs", wanted);
    }
    let reasoning = &settings.reasoning;
    let budget = reasoning.budget.or(reasoning.effort.and_then(anthropic_budget));
    let is_off = reasoning.is_disabled || reasoning.effort == Some(Effort::None);
    if is_off || budget.is_some() || reasoning.is_adaptive {
        w.object_field("thinking");
        w.string_field("type", if is_off { "disabled" } else { "enabled" });
        if let (Some(budget), false) = (budget, is_off) {
            w.integer_field("token_budget", budget);
        }
        w.close_object();
    }
    dropped.note_settings(settings, UNSUPPORTED_SETTINGS);
    if settings.is_streaming {
        w.bool_field("stream", true);
    }
}
