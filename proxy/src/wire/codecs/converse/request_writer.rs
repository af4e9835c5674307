//! The model → a Converse request (contract 7.6 and 7.12).

use super::blocks::{write_block, write_cache};
use super::tools;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::messages::{JSON_INSTRUCTION, thinking_budget};
use crate::wire::codecs::options::{Dropped, RequestOptions};
use crate::wire::conversation::{Effort, Part, Request, ResponseFormat, Role, Settings, SystemText, WireFormat};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Converse;
static UNSUPPORTED_SETTINGS: &[&str] = &[
    "n",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "seed",
    "modalities",
    "audio",
    "safety_settings",
    "parallel_tool_calls",
];
/// What callers of chat may write in snake case.
static FROM_CHAT: &[(&str, &str)] = &[
    ("guardrail_config", "guardrailConfig"),
    ("performance_config", "performanceConfig"),
    ("additional_model_response_field_paths", "additionalModelResponseFieldPaths"),
];
static CHAT_EXTRAS: &[&str] = &[
    "guardrail_config",
    "performance_config",
    "additional_model_response_field_paths",
    "additional_model_request_fields",
    "anthropic_beta",
];

pub(super) fn write(request: &Request, options: &RequestOptions<'_>, out: &mut Vec<u8>) -> Result<Dropped, CodecError> {
    let mut dropped = Dropped::default();
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    write_system(w, request);
    w.array_field("messages");
    for (role, turn) in request.alternating_turns() {
        let is_empty = |part: &&Part| matches!(part, Part::Text(text) if text.text.is_empty());
        if turn.iter().all(is_empty) {
            continue;
        }
        w.open_object();
        w.string_field("role", if role == Role::Assistant { "assistant" } else { "user" });
        w.array_field("content");
        for part in turn {
            write_block(w, part, &mut dropped)?;
        }
        w.close_array();
        w.close_object();
    }
    w.close_array();
    tools::write(w, request, &mut dropped)?;
    let budget = if options.is_claude { thinking_budget(&request.settings, &mut dropped) } else { None };
    write_inference(w, &request.settings, options, budget, &mut dropped);
    write_model_fields(w, request, options, budget, &mut dropped);
    write_output_config(w, request);
    for (snake, camel) in FROM_CHAT {
        if let Some(value) = request.extra.get(WireFormat::Chat, snake) {
            w.value_field(camel, value);
        }
    }
    w.fields(request.extra.fields_for(FORMAT).filter(|(name, _)| *name != "additionalModelRequestFields"));
    dropped.note_settings(&request.settings, UNSUPPORTED_SETTINGS);
    dropped.note_extra_but(request, FORMAT, CHAT_EXTRAS)?;
    w.close_object();
    Ok(dropped)
}

fn write_system(w: &mut JsonWriter<'_>, request: &Request) {
    let mut texts = request.all_system_texts();
    texts.retain(|text| !text.text.is_empty());
    if request.response_format == Some(ResponseFormat::JsonObject) {
        texts.push(SystemText { text: JSON_INSTRUCTION.into(), ..SystemText::default() });
    }
    if texts.is_empty() {
        return;
    }
    w.array_field("system");
    for text in texts {
        w.open_object();
        w.string_field("text", &text.text);
        w.close_object();
        write_cache(w, text.cache.as_ref());
    }
    w.close_array();
}

fn write_inference(
    w: &mut JsonWriter<'_>,
    settings: &Settings,
    options: &RequestOptions<'_>,
    budget: Option<u64>,
    dropped: &mut Dropped,
) {
    // A budget must be below the most tokens, as with Anthropic itself.
    let most = settings.max_tokens.or(budget.map(|budget| budget.saturating_add(4096)));
    let takes_temperature = options.has_sampling && budget.is_none();
    w.object_field("inferenceConfig");
    if let Some(most) = most {
        w.integer_field("maxTokens", most);
    }
    match settings.temperature {
        Some(value) if takes_temperature => w.number_field("temperature", value.clamp(0.0, 1.0)),
        Some(_) => dropped.note("temperature"),
        None => {}
    }
    match settings.top_p {
        Some(value) if options.has_sampling => w.number_field("topP", value.clamp(0.0, 1.0)),
        Some(_) => dropped.note("top_p"),
        None => {}
    }
    if !settings.stop.is_empty() {
        w.array_field("stopSequences");
        settings.stop.iter().for_each(|stop| w.string(stop));
        w.close_array();
    }
    w.close_object();
    match settings.service_tier.as_deref() {
        None => {}
        Some(tier @ ("default" | "flex" | "priority" | "reserved")) => {
            w.object_field("serviceTier");
            w.string_field("type", tier);
            w.close_object();
        }
        Some(_) => dropped.note("service_tier"),
    }
    if let Some(metadata) = &settings.metadata {
        w.object_field("requestMetadata");
        w.fields(metadata.iter().filter(|(_, value)| value.is_string()).map(|(name, value)| (name.as_str(), value)));
        w.close_object();
    }
}

fn write_model_fields(
    w: &mut JsonWriter<'_>,
    request: &Request,
    options: &RequestOptions<'_>,
    budget: Option<u64>,
    dropped: &mut Dropped,
) {
    let settings = &request.settings;
    let own = request.extra.get(FORMAT, "additionalModelRequestFields");
    let given = own.or(request.extra.get(WireFormat::Chat, "additional_model_request_fields"));
    let mut fields: Map<String, Value> = given.and_then(Value::as_object).cloned().unwrap_or_default();
    let named = fields.remove("anthropic_beta");
    let betas = options.body_betas(named.as_ref().or(request.extra.get(WireFormat::Chat, "anthropic_beta")));
    fields.extend(betas.map(|betas| ("anthropic_beta".to_owned(), betas)));
    if options.is_claude {
        let is_off = settings.reasoning.is_disabled || settings.reasoning.effort == Some(Effort::None);
        let thinking = match budget {
            Some(budget) => Some(serde_json::json!({ "type": "enabled", "budget_tokens": budget })),
            None if is_off => Some(serde_json::json!({ "type": "disabled" })),
            None if settings.reasoning.is_adaptive => Some(serde_json::json!({ "type": "adaptive" })),
            None => None,
        };
        fields.extend(thinking.map(|thinking| ("thinking".to_owned(), thinking)));
        if let (Some(top_k), true, None) = (settings.top_k, options.has_sampling, budget) {
            fields.insert("top_k".into(), top_k.into());
        } else {
            dropped.note_settings(settings, &["top_k"]);
        }
        if let Some(user) = &settings.user {
            fields.insert("metadata".into(), serde_json::json!({ "user_id": user }));
        }
    } else {
        dropped.note_settings(settings, &["top_k", "reasoning_effort", "user"]);
    }
    if !fields.is_empty() {
        w.object_field("additionalModelRequestFields");
        w.fields(fields.iter().map(|(name, value)| (name.as_str(), value)));
        w.close_object();
    }
}

fn write_output_config(w: &mut JsonWriter<'_>, request: &Request) {
    let Some(ResponseFormat::JsonSchema(format)) = &request.response_format else { return };
    w.object_field("outputConfig");
    w.object_field("textFormat");
    w.string_field("type", "json_schema");
    w.object_field("structure");
    w.object_field("jsonSchema");
    w.string_field("schema", &format.schema.to_string());
    w.optional_string("name", format.name.as_deref());
    w.optional_string("description", format.description.as_deref());
    w.close_object();
    w.close_object();
    w.close_object();
    w.close_object();
}
