//! The model → a messages request (contract 7.3 and 7.12).

use super::block_writer::{write_block, write_cache};
use super::tools;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::{Dropped, RequestOptions, ThinkingStyle};
use crate::wire::codecs::{reasoning, schema};
use crate::wire::conversation::{Effort, Part, Request, ResponseFormat, Role, Settings, SystemText, Turn, WireFormat};

const FORMAT: WireFormat = WireFormat::Messages;
/// Anthropic has no mode for "any JSON object"; this is the mode.
pub(in crate::wire::codecs) const JSON_INSTRUCTION: &str = "Answer with one JSON object and nothing else.";
/// Contract 7.3, last row.
static UNSUPPORTED_SETTINGS: &[&str] = &[
    "n",
    "presence_penalty",
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "top_logprobs",
    "seed",
    "metadata",
    "modalities",
    "audio",
    "safety_settings",
];

const BETAS: &str = "anthropic_beta";

pub(super) fn write(request: &Request, options: &RequestOptions<'_>, out: &mut Vec<u8>) -> Result<Dropped, CodecError> {
    let mut dropped = Dropped::default();
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    w.optional_string("anthropic_version", options.anthropic_version);
    // On Vertex and Bedrock the model stands in the path.
    if options.anthropic_version.is_none() {
        w.optional_string("model", options.model.or(request.model.as_deref()));
    }
    write_system(w, request);
    write_messages(w, request, &mut dropped)?;
    tools::write(w, request)?;
    write_settings(w, request, options, &mut dropped);
    let betas = options.body_betas(request.extra.get(FORMAT, BETAS));
    w.fields(betas.iter().map(|betas| (BETAS, betas)));
    w.fields(request.extra.fields_for(FORMAT).filter(|(name, _)| *name != BETAS));
    dropped.note_extra(request, FORMAT)?;
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
        w.string_field("type", "text");
        w.string_field("text", &text.text);
        write_cache(w, text.cache.as_ref());
        w.close_object();
    }
    w.close_array();
}

fn write_messages(w: &mut JsonWriter<'_>, request: &Request, dropped: &mut Dropped) -> Result<(), CodecError> {
    w.array_field("messages");
    for turn in &request.turns {
        let role = match turn.role {
            Role::System => continue,
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        // A turn without content is refused there.
        if turn.parts.iter().all(is_empty) {
            continue;
        }
        w.open_object();
        w.string_field("role", role);
        write_content(w, turn, dropped)?;
        w.fields(turn.extra.fields_for(FORMAT));
        dropped.note_if(turn.name.is_some(), "messages.name");
        w.close_object();
    }
    w.close_array();
    Ok(())
}

fn write_content(w: &mut JsonWriter<'_>, turn: &Turn, dropped: &mut Dropped) -> Result<(), CodecError> {
    if let [Part::Text(text)] = turn.parts.as_slice()
        && text.cache.is_none()
        && text.citations.is_empty()
    {
        w.string_field("content", &text.text);
        return Ok(());
    }
    w.array_field("content");
    for part in &turn.parts {
        write_block(w, part, dropped)?;
    }
    w.close_array();
    Ok(())
}

fn is_empty(part: &Part) -> bool {
    matches!(part, Part::Text(text) if text.text.is_empty())
}

fn write_settings(w: &mut JsonWriter<'_>, request: &Request, options: &RequestOptions<'_>, dropped: &mut Dropped) {
    let settings = &request.settings;
    let is_adaptive = options.thinking == ThinkingStyle::Adaptive || settings.reasoning.is_adaptive;
    let budget = if is_adaptive { None } else { thinking_budget(settings, dropped) };
    // Contract 7.12: a budget must be below what we fill in.
    let default = budget.map_or(options.default_max_tokens, |budget| budget.saturating_add(4096));
    w.integer_field("max_tokens", settings.max_tokens.unwrap_or(default));
    let is_thinking = write_thinking(w, settings, budget, is_adaptive);
    write_sampling(w, settings, options, is_thinking, dropped);
    if !settings.stop.is_empty() {
        w.array_field("stop_sequences");
        settings.stop.iter().for_each(|stop| w.string(stop));
        w.close_array();
    }
    if let Some(user) = &settings.user {
        w.object_field("metadata");
        w.string_field("user_id", user);
        w.close_object();
    }
    match settings.service_tier.as_deref() {
        None => {}
        Some("auto") => w.string_field("service_tier", "auto"),
        Some("default") => w.string_field("service_tier", "standard_only"),
        Some(_) => dropped.note("service_tier"),
    }
    write_output_config(w, request, is_adaptive);
    dropped.note_settings(settings, UNSUPPORTED_SETTINGS);
    if settings.is_streaming {
        w.bool_field("stream", true);
    }
}

/// What a model that takes budgets is given. One made of an effort gives way to the caller's `max_tokens`.
pub(in crate::wire::codecs) fn thinking_budget(settings: &Settings, dropped: &mut Dropped) -> Option<u64> {
    let reasoning = &settings.reasoning;
    if reasoning.budget.is_some() {
        return reasoning.budget;
    }
    let budget = reasoning::anthropic_budget(reasoning.effort?)?;
    match settings.max_tokens {
        Some(most) if most <= reasoning::MIN_BUDGET => {
            dropped.note("reasoning_effort");
            None
        }
        Some(most) => Some(budget.min(most - 1)),
        None => Some(budget),
    }
}

fn write_thinking(w: &mut JsonWriter<'_>, settings: &Settings, budget: Option<u64>, is_adaptive: bool) -> bool {
    let reasoning = &settings.reasoning;
    let is_off = reasoning.is_disabled || reasoning.effort == Some(Effort::None);
    let is_wanted = reasoning.is_adaptive || reasoning.effort.is_some() || reasoning.budget.is_some();
    let kind = match budget {
        _ if is_off => "disabled",
        Some(_) => "enabled",
        None if is_adaptive && is_wanted => "adaptive",
        None => return false,
    };
    w.object_field("thinking");
    w.string_field("type", kind);
    if let (Some(budget), "enabled") = (budget, kind) {
        w.integer_field("budget_tokens", budget);
    }
    w.close_object();
    kind != "disabled"
}

/// Contract 7.3: temperature up to 1, and not with `top_p`. Neither temperature nor `top_k` goes with thinking.
fn write_sampling(
    w: &mut JsonWriter<'_>,
    settings: &Settings,
    options: &RequestOptions<'_>,
    is_thinking: bool,
    dropped: &mut Dropped,
) {
    let takes_temperature = options.has_sampling && !is_thinking;
    match settings.temperature {
        Some(temperature) if takes_temperature => w.number_field("temperature", temperature.clamp(0.0, 1.0)),
        Some(_) => dropped.note("temperature"),
        None => {}
    }
    let takes_top_p = options.has_sampling && !(settings.temperature.is_some() && takes_temperature);
    match settings.top_p {
        Some(top_p) if takes_top_p => w.number_field("top_p", top_p.clamp(0.0, 1.0)),
        Some(_) => dropped.note("top_p"),
        None => {}
    }
    match settings.top_k {
        Some(top_k) if takes_temperature => w.integer_field("top_k", top_k),
        Some(_) => dropped.note("top_k"),
        None => {}
    }
}

fn write_output_config(w: &mut JsonWriter<'_>, request: &Request, is_adaptive: bool) {
    let effort = request.settings.reasoning.effort.filter(|effort| is_adaptive && *effort != Effort::None);
    let format = match &request.response_format {
        Some(ResponseFormat::JsonSchema(format)) => Some(format),
        _ => None,
    };
    if effort.is_none() && format.is_none() {
        return;
    }
    w.object_field("output_config");
    if let Some(effort) = effort {
        w.string_field("effort", reasoning::anthropic_effort(effort));
    }
    if let Some(format) = format {
        w.object_field("format");
        w.string_field("type", "json_schema");
        w.value_field("schema", &schema::closed_objects(&format.schema));
        w.close_object();
    }
    w.close_object();
}
