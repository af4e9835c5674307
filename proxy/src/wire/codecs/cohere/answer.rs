//! Whole answers, both ways. Counts may be floats, and billed units stand in for tokens where those are missing.

use super::request_writer::write_call;
use super::{read_calls, read_content};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::{citations, finish_reasons};
use crate::wire::conversation::{
    Answer, Choice, Citation, Extra, Finish, FinishReason, Part, TextPart, Thinking, Usage, WireFormat,
};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Cohere;

pub(super) fn read(body: &[u8]) -> Result<Answer, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    let path = path.field("message");
    let message = body.object("message")?.ok_or_else(|| path.problem("is missing"))?;
    let mut message = Fields::from_map(message, path);
    let mut parts = read_content(message.take("content"), &path.field("content"))?;
    if let Some(text) = message.string("tool_plan")? {
        parts.insert(0, Part::Thinking(Thinking { text, ..Thinking::default() }));
    }
    let cited = message.list("citations")?.unwrap_or_default();
    if let Some(Part::Text(text)) = parts.iter_mut().rev().find(|part| matches!(part, Part::Text(_))) {
        text.citations = cited.into_iter().map(citations::from_cohere).collect();
    }
    read_calls(&mut message, &mut parts)?;
    let finish = body.string("finish_reason")?.map(|word| finish_reasons::read(FORMAT, word));
    let mut answer = Answer {
        id: body.string("id")?,
        usage: body.object("usage")?.map(read_usage),
        choices: vec![Choice { parts, finish, ..Choice::default() }],
        ..Answer::default()
    };
    answer.extra = Extra::new(FORMAT, body.rest());
    Ok(answer)
}

pub(super) fn read_usage(map: Map<String, Value>) -> Usage {
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let mut billed = fields.inner("billed_units");
    let (billed_input, billed_output) = (billed.count("input_tokens"), billed.count("output_tokens"));
    let has_tokens = fields.has("tokens");
    let mut tokens = fields.inner("tokens");
    let (input, output) = match has_tokens {
        true => (tokens.count("input_tokens"), tokens.count("output_tokens")),
        false => (billed_input, billed_output),
    };
    Usage::from_sums(input, fields.count("cached_tokens"), 0, output)
}

pub(super) fn write(answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    let nothing = Choice::default();
    let choice = answer.choices.first().unwrap_or(&nothing);
    w.open_object();
    w.string_field("id", answer.id.as_deref().unwrap_or(&options.id));
    w.string_field("finish_reason", finish_word(choice.finish.as_ref()));
    w.object_field("message");
    w.string_field("role", "assistant");
    write_message(w, choice, options);
    w.close_object();
    if let Some(usage) = &answer.usage {
        write_usage(w, usage);
    }
    w.fields(answer.extra.fields_for(FORMAT));
    w.close_object();
}

pub(super) fn finish_word(finish: Option<&Finish>) -> &str {
    match finish {
        Some(finish) => finish_reasons::word_for(FORMAT, finish, true).unwrap_or("COMPLETE"),
        None => finish_reasons::write(FORMAT, FinishReason::Stop).unwrap_or("COMPLETE"),
    }
}

fn write_message(w: &mut JsonWriter<'_>, choice: &Choice, options: &AnswerOptions<'_>) {
    let has_calls = choice.has_tool_use();
    let mut cited: Vec<&Citation> = Vec::new();
    let mut plan = String::new();
    w.array_field("content");
    for part in &choice.parts {
        match part {
            Part::Text(text) => {
                write_text(w, text);
                cited.extend(&text.citations);
            }
            Part::Refusal(text) => write_text(w, &TextPart::new(text.as_str())),
            Part::Audio(media) => {
                if let Some(words) = &media.transcript {
                    write_text(w, &TextPart::new(words.as_str()));
                }
            }
            Part::Thinking(thinking) if has_calls => plan.push_str(&thinking.text),
            Part::Thinking(thinking) => {
                w.open_object();
                w.string_field("type", "thinking");
                w.string_field("thinking", &thinking.text);
                w.close_object();
            }
            _ => {}
        }
    }
    w.close_array();
    if !plan.is_empty() {
        w.string_field("tool_plan", &plan);
    }
    if has_calls {
        w.array_field("tool_calls");
        for (place, part) in choice.parts.iter().enumerate() {
            let Part::ToolUse(call) = part else { continue };
            match call.id.as_str() {
                "" => write_call(w, call, &options.tool_id(0, place as u32)),
                id => write_call(w, call, id),
            }
        }
        w.close_array();
    }
    let own: Vec<&Value> = cited.into_iter().filter_map(|citation| citation.native.in_format(FORMAT)).collect();
    if !own.is_empty() {
        w.array_field("citations");
        own.into_iter().for_each(|citation| w.value(citation));
        w.close_array();
    }
}

fn write_text(w: &mut JsonWriter<'_>, text: &TextPart) {
    w.open_object();
    w.string_field("type", "text");
    w.string_field("text", &text.text);
    w.close_object();
}

pub(super) fn write_usage(w: &mut JsonWriter<'_>, usage: &Usage) {
    w.object_field("usage");
    for name in ["billed_units", "tokens"] {
        w.object_field(name);
        w.integer_field("input_tokens", usage.prompt());
        w.integer_field("output_tokens", usage.output);
        w.close_object();
    }
    if usage.cached > 0 {
        w.integer_field("cached_tokens", usage.cached);
    }
    w.close_object();
}
