//! The model → a response (contract 6.4), with what was asked repeated as OpenAI does.

use super::known_tools;
use super::request_writer::{write_choice, write_function};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::logprobs::MissingBytes;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::{citations, finish_reasons, logprobs};
use crate::wire::conversation::carried_tools::freeform_input;
use crate::wire::conversation::{
    Answer, CarriedAs, CarriedTool, Choice, Finish, FinishReason, Part, ProviderError, Request, Signer, TextPart,
    Thinking, TokenLogprob, Tool, ToolUse, Usage, WireFormat,
};

const FORMAT: WireFormat = WireFormat::Responses;

/// `error` turns it into a failed response.
pub(super) fn write(
    w: &mut JsonWriter<'_>,
    answer: &Answer,
    options: &AnswerOptions<'_>,
    error: Option<&ProviderError>,
) {
    let choice = answer.choices.first();
    let finish = choice.and_then(|choice| choice.finish.as_ref());
    let reason = finish.and_then(incomplete_reason);
    let status = match (error, reason) {
        (Some(_), _) => "failed",
        (None, Some(_)) => "incomplete",
        (None, None) => "completed",
    };
    w.open_object();
    write_head(w, answer, options, status);
    match error {
        Some(error) => write_error(w, error, options),
        None => w.null_field("error"),
    }
    match reason {
        Some(reason) => {
            w.object_field("incomplete_details");
            w.string_field("reason", reason);
            w.close_object();
        }
        None => w.null_field("incomplete_details"),
    }
    w.array_field("output");
    if let Some(choice) = choice {
        write_output(w, choice, options, status);
    }
    w.close_array();
    match &answer.usage {
        Some(usage) => write_usage(w, usage),
        None => w.null_field("usage"),
    }
    write_echo(w, answer, options);
    w.close_object();
}

/// Only two reasons make a response incomplete.
fn incomplete_reason(finish: &Finish) -> Option<&'static str> {
    match finish.reason.coarse() {
        FinishReason::Length | FinishReason::ContentFilter => finish_reasons::write(FORMAT, finish.reason),
        _ => None,
    }
}

pub(super) fn write_head(w: &mut JsonWriter<'_>, answer: &Answer, options: &AnswerOptions<'_>, status: &str) {
    let id = answer.id.as_deref().unwrap_or(&options.id);
    match id.starts_with("resp_") {
        true => w.string_field("id", id),
        false => w.string_field("id", &["resp_", id].concat()),
    }
    w.string_field("object", "response");
    w.integer_field("created_at", answer.created.unwrap_or(options.created));
    w.string_field("status", status);
    w.string_field("model", answer.model.as_deref().unwrap_or(&options.model));
}

fn write_error(w: &mut JsonWriter<'_>, error: &ProviderError, options: &AnswerOptions<'_>) {
    use crate::wire::conversation::ErrorKind;
    let code = match error.kind {
        ErrorKind::RateLimit | ErrorKind::Billing => "rate_limit_exceeded",
        ErrorKind::InvalidRequest | ErrorKind::TooLarge => "invalid_prompt",
        _ => "server_error",
    };
    w.object_field("error");
    w.string_field("code", code);
    w.string_field("message", &[&*options.provider, " error: ", &error.message].concat());
    w.close_object();
}

/// Neighbouring texts are one message; thoughts and calls are items of their own.
fn write_output(w: &mut JsonWriter<'_>, choice: &Choice, options: &AnswerOptions<'_>, status: &str) {
    let mut item = 0_u32;
    let mut tokens = choice.logprobs.as_slice();
    let mut parts = choice.parts.iter().enumerate().peekable();
    while let Some((place, part)) = parts.next() {
        match part {
            Part::Text(_) | Part::Refusal(_) | Part::Audio(_) => {
                w.open_object();
                w.string_field("type", "message");
                w.string_field("id", &item_id("msg", options, item));
                w.string_field("status", if status == "incomplete" { "incomplete" } else { "completed" });
                w.string_field("role", "assistant");
                w.array_field("content");
                write_content(w, part, tokens);
                tokens = &[];
                while let Some((_, next)) =
                    parts.next_if(|(_, next)| matches!(next, Part::Text(_) | Part::Refusal(_) | Part::Audio(_)))
                {
                    write_content(w, next, tokens);
                }
                w.close_array();
                w.close_object();
            }
            Part::Thinking(thinking) => write_reasoning(w, thinking, &item_id("rs", options, item)),
            Part::ToolUse(call) => {
                let call_id = call_id(&call.id, options, place as u32);
                write_call(w, call, &call_id, item, "completed", options);
            }
            Part::Native(native) if native.format == FORMAT => w.value(&native.value),
            _ => continue,
        }
        item += 1;
    }
}

pub(super) fn item_id(prefix: &str, options: &AnswerOptions<'_>, item: u32) -> String {
    let letters: String = options.id.chars().filter(char::is_ascii_alphanumeric).collect();
    format!("{prefix}_{letters}_{item}")
}

pub(super) fn call_id(id: &str, options: &AnswerOptions<'_>, part: u32) -> String {
    if id.is_empty() { options.tool_id(0, part) } else { id.to_owned() }
}

pub(super) fn write_content(w: &mut JsonWriter<'_>, part: &Part, tokens: &[TokenLogprob]) {
    match part {
        Part::Text(text) => write_text(w, text, tokens),
        Part::Refusal(text) => {
            w.open_object();
            w.string_field("type", "refusal");
            w.string_field("refusal", text);
            w.close_object();
        }
        Part::Audio(media) => write_text(w, &TextPart::new(media.transcript.clone().unwrap_or_default()), tokens),
        _ => {}
    }
}

/// `logprobs` may be empty and must be there (contract 7.12).
fn write_text(w: &mut JsonWriter<'_>, text: &TextPart, tokens: &[TokenLogprob]) {
    w.open_object();
    w.string_field("type", "output_text");
    w.string_field("text", &text.text);
    w.array_field("annotations");
    for citation in text.citations.iter().filter(|own| citations::is_writable_openai(own, FORMAT)) {
        citations::write_openai(w, citation, FORMAT);
    }
    w.close_array();
    w.key("logprobs");
    logprobs::write(w, tokens, MissingBytes::OfText);
    w.close_object();
}

pub(super) fn write_reasoning(w: &mut JsonWriter<'_>, thinking: &Thinking, made_id: &str) {
    w.open_object();
    w.string_field("type", "reasoning");
    w.string_field("id", thinking.id.as_deref().unwrap_or(made_id));
    w.array_field("summary");
    if !thinking.text.is_empty() {
        w.open_object();
        w.string_field("type", "summary_text");
        w.string_field("text", &thinking.text);
        w.close_object();
    }
    w.close_array();
    w.optional_string("encrypted_content", thinking.signature.as_ref().and_then(|own| own.by(Signer::OpenAi)));
    w.close_object();
}

/// What the caller wrote in place of the function of this name.
pub(super) fn carried<'o>(name: &str, options: &'o AnswerOptions<'_>) -> Option<&'o CarriedTool> {
    options.request.as_ref()?.carried.as_ref()?.find(name)
}

/// The id of the item of a call.
pub(super) fn call_item_id(name: &str, options: &AnswerOptions<'_>, item: u32) -> String {
    let prefix = match carried(name, options).map(|tool| tool.carried_as) {
        None | Some(CarriedAs::Function) => "fc",
        Some(CarriedAs::Freeform) => "ctc",
        Some(other) => known_tools::by_carried(other).map_or("fc", |tool| tool.id_prefix),
    };
    item_id(prefix, options, item)
}

pub(super) fn write_call(
    w: &mut JsonWriter<'_>,
    call: &ToolUse,
    call_id: &str,
    item: u32,
    status: &str,
    options: &AnswerOptions<'_>,
) {
    let carried = carried(&call.name, options);
    if let Some(tool) = carried.and_then(|tool| known_tools::by_carried(tool.carried_as)) {
        w.open_object();
        w.string_field("type", tool.call);
        w.string_field("id", &call_item_id(&call.name, options, item));
        w.string_field("call_id", call_id);
        tool.write_field(w, &call.arguments);
        w.string_field("status", status);
        w.close_object();
        return;
    }
    let is_freeform = carried.is_some_and(|tool| tool.carried_as == CarriedAs::Freeform);
    w.open_object();
    w.string_field("type", if is_freeform { "custom_tool_call" } else { "function_call" });
    w.string_field("id", &call_item_id(&call.name, options, item));
    w.string_field("call_id", call_id);
    w.string_field("name", carried.map_or(&call.name, |tool| &tool.name));
    w.optional_string("namespace", carried.and_then(|tool| tool.namespace.as_deref()));
    let is_whole = status == "completed";
    match is_freeform {
        true if is_whole => w.string_field("input", &freeform_input(&call.arguments)),
        true => w.string_field("input", ""),
        false => {
            w.string_field("arguments", if call.arguments.is_empty() && is_whole { "{}" } else { &call.arguments });
        }
    }
    w.string_field("status", status);
    w.close_object();
}

fn write_usage(w: &mut JsonWriter<'_>, usage: &Usage) {
    w.object_field("usage");
    w.integer_field("input_tokens", usage.prompt());
    w.object_field("input_tokens_details");
    w.integer_field("cached_tokens", usage.cached);
    w.integer_field("cache_write_tokens", usage.cache_write);
    w.close_object();
    w.integer_field("output_tokens", usage.output);
    w.object_field("output_tokens_details");
    w.integer_field("reasoning_tokens", usage.reasoning);
    w.close_object();
    w.integer_field("total_tokens", usage.total());
    w.close_object();
}

/// OpenAI's own repetition if it is there, else what was asked of another provider.
pub(super) fn write_echo(w: &mut JsonWriter<'_>, answer: &Answer, options: &AnswerOptions<'_>) {
    if !answer.extra.is_empty() && answer.extra.fields_for(FORMAT).next().is_some() {
        return w.fields(answer.extra.fields_for(FORMAT));
    }
    let nothing = Request::default();
    let request = options.request.as_deref().unwrap_or(&nothing);
    let settings = &request.settings;
    let instructions = request.system.first().map(|text| text.text.as_str());
    match instructions {
        Some(text) => w.string_field("instructions", text),
        None => w.null_field("instructions"),
    }
    w.object_field("metadata");
    w.fields(settings.metadata.iter().flatten().map(|(name, value)| (name.as_str(), value)));
    w.close_object();
    w.bool_field("parallel_tool_calls", settings.parallel_tool_calls.unwrap_or(true));
    for (name, value) in [("temperature", settings.temperature), ("top_p", settings.top_p)] {
        match value {
            Some(value) => w.number_field(name, value),
            None => w.null_field(name),
        }
    }
    w.key("tool_choice");
    match &request.tool_choice {
        Some(choice) => write_choice(w, choice),
        None => w.string("auto"),
    }
    w.array_field("tools");
    if let Some(carried) = &request.carried {
        carried.written.iter().for_each(|tool| w.value(tool));
    }
    for tool in request.tools.iter().filter(|_| request.carried.is_none()) {
        match tool {
            Tool::Function(function) => write_function(w, function),
            Tool::Native(native) => native.in_format(FORMAT).into_iter().for_each(|own| w.value(own)),
        }
    }
    w.close_array();
    match settings.max_tokens {
        Some(most) => w.integer_field("max_output_tokens", most),
        None => w.null_field("max_output_tokens"),
    }
}
