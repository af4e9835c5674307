//! A prompt ↔ a conversation.

use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::Fields;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::{Dropped, RequestOptions};
use crate::wire::conversation::{Extra, Part, Request, Role, Settings, Turn, WireFormat};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Completions;
static UNSUPPORTED_SETTINGS: &[&str] = &[
    "top_k",
    "metadata",
    "service_tier",
    "parallel_tool_calls",
    "reasoning_effort",
    "modalities",
    "audio",
    "safety_settings",
];

pub(super) fn read(body: &[u8]) -> Result<Request, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    let path = path.field("prompt");
    let mut request = Request { model: body.string("model")?, ..Request::default() };
    let text = match body.take("prompt") {
        None => return Err(path.problem("is missing")),
        Some(Value::String(text)) => text,
        Some(Value::Array(list)) => match list.as_slice() {
            [Value::String(text)] => text.clone(),
            [Value::String(_), ..] => return Err(path.problem("may hold one prompt only for this provider")),
            _ => return Err(path.problem("must be text: tokens mean nothing to another provider")),
        },
        Some(_) => return Err(path.problem("must be a string")),
    };
    request.turns.push(Turn::new(Role::User, vec![Part::text(text)]));
    let stream_options = body.object("stream_options")?;
    let top_logprobs = body.integer("logprobs")?;
    let seed = body.take("seed").and_then(|seed| seed.as_i64());
    request.settings = Settings {
        max_tokens: body.integer("max_tokens")?,
        temperature: body.number("temperature")?,
        top_p: body.number("top_p")?,
        stop: body.strings("stop")?,
        seed,
        n: body.integer("n")?,
        presence_penalty: body.number("presence_penalty")?,
        frequency_penalty: body.number("frequency_penalty")?,
        logit_bias: body.object("logit_bias")?,
        logprobs: top_logprobs.map(|_| true),
        top_logprobs,
        user: body.string("user")?,
        is_streaming: body.boolean("stream")?.unwrap_or(false),
        include_usage: stream_options.and_then(|options| options.get("include_usage")?.as_bool()),
        ..Settings::default()
    };
    request.extra = Extra::new(FORMAT, body.rest());
    Ok(request)
}

/// All texts in their order, with a blank line between them. Anything else cannot be said in a prompt.
pub(super) fn write(request: &Request, options: &RequestOptions<'_>, out: &mut Vec<u8>) -> Result<Dropped, CodecError> {
    if !request.tools.is_empty() {
        return Err(CodecError::unsupported("tools", FORMAT));
    }
    let mut dropped = Dropped::default();
    let mut texts: Vec<&str> = request.system.iter().map(|text| text.text.as_str()).collect();
    for part in request.turns.iter().flat_map(|turn| &turn.parts) {
        match part {
            Part::Text(text) => texts.push(&text.text),
            Part::Refusal(text) => texts.push(text),
            Part::Thinking(_) | Part::RedactedThinking(_) => dropped.note("messages.thinking"),
            other => return Err(CodecError::unsupported(["messages.", other.kind()].concat(), FORMAT)),
        }
    }
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    w.optional_string("model", options.model.or(request.model.as_deref()));
    w.string_field("prompt", &texts.join("\n\n"));
    write_settings(w, &request.settings, options);
    dropped.note_if(request.response_format.is_some(), "response_format");
    dropped.note_settings(&request.settings, UNSUPPORTED_SETTINGS);
    w.fields(request.extra.fields_for(FORMAT));
    dropped.note_if(request.has_cache_control(), "cache_control");
    dropped.note_extra(request, FORMAT)?;
    w.close_object();
    Ok(dropped)
}

fn write_settings(w: &mut JsonWriter<'_>, settings: &Settings, options: &RequestOptions<'_>) {
    let numbers = [
        ("temperature", settings.temperature.map(|value| value.clamp(0.0, 2.0))),
        ("top_p", settings.top_p.map(|value| value.clamp(0.0, 1.0))),
        ("presence_penalty", settings.presence_penalty.map(|value| value.clamp(-2.0, 2.0))),
        ("frequency_penalty", settings.frequency_penalty.map(|value| value.clamp(-2.0, 2.0))),
    ];
    for (name, value) in numbers {
        if let Some(value) = value {
            w.number_field(name, value);
        }
    }
    let logprobs = settings.logprobs.filter(|wanted| *wanted).map(|_| settings.top_logprobs.unwrap_or(0));
    for (name, value) in [("max_tokens", settings.max_tokens), ("n", settings.n), ("logprobs", logprobs)] {
        if let Some(value) = value {
            w.integer_field(name, value);
        }
    }
    if !settings.stop.is_empty() {
        w.array_field("stop");
        settings.stop.iter().for_each(|stop| w.string(stop));
        w.close_array();
    }
    if let Some(seed) = settings.seed {
        w.value_field("seed", &Value::from(seed));
    }
    if let Some(bias) = &settings.logit_bias {
        w.object_field("logit_bias");
        w.fields(bias.iter().map(|(name, value)| (name.as_str(), value)));
        w.close_object();
    }
    w.optional_string("user", settings.user.as_deref());
    if settings.is_streaming {
        w.bool_field("stream", true);
        if options.asks_for_usage {
            w.object_field("stream_options");
            w.bool_field("include_usage", true);
            w.close_object();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_named() {
        for (body, expected) in [
            (r#"{"model":"m"}"#, "`prompt` is missing"),
            (r#"{"prompt":["a","b"]}"#, "`prompt` may hold one prompt only for this provider"),
            (r#"{"prompt":[1,2]}"#, "`prompt` must be text: tokens mean nothing to another provider"),
        ] {
            assert_eq!(read(body.as_bytes()).unwrap_err().to_string(), expected, "{body}");
        }
    }
}
