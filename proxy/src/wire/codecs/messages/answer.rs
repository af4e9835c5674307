//! Whole messages, both ways.

use super::block_reader::read_content;
use super::block_writer::write_text;
use super::usage;
use crate::wire::codecs::arguments::object_value;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::finish_reasons;
use crate::wire::codecs::json_reader::Fields;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::conversation::{
    Answer, Choice, Extra, Finish, FinishReason, Part, Signer, TextPart, Usage, WireFormat,
};

const FORMAT: WireFormat = WireFormat::Messages;

pub(super) fn read(body: &[u8]) -> Result<Answer, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    if !body.has("content") {
        return Err(path.field("content").problem("is missing"));
    }
    let parts = read_content(body.take("content"), &path.field("content"))?;
    let stop_sequence = body.string("stop_sequence")?;
    let finish = body.string("stop_reason")?.map(|word| finish_reasons::read(FORMAT, word));
    let finish = finish.map(|finish| Finish { stop_sequence, ..finish });
    let mut answer = Answer {
        id: body.string("id")?,
        model: body.string("model")?,
        usage: body.object("usage")?.map(usage::read),
        choices: vec![Choice { parts, finish, ..Choice::default() }],
        ..Answer::default()
    };
    body.take("type");
    body.take("role");
    answer.extra = Extra::new(FORMAT, body.rest());
    Ok(answer)
}

/// Anthropic's answers have no choices: the first one is the answer.
pub(super) fn write(answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    let choice = answer.choices.first();
    w.open_object();
    w.string_field("id", answer.id.as_deref().unwrap_or(&options.id));
    w.string_field("type", "message");
    w.string_field("role", "assistant");
    w.string_field("model", answer.model.as_deref().unwrap_or(&options.model));
    w.array_field("content");
    for (place, part) in choice.into_iter().flat_map(|choice| &choice.parts).enumerate() {
        write_part(w, part, place as u32, options);
    }
    w.close_array();
    let finish = choice.and_then(|choice| choice.finish.as_ref());
    write_finish(w, finish);
    usage::write(w, answer.usage.as_ref().unwrap_or(&Usage::default()));
    w.fields(answer.extra.fields_for(FORMAT));
    w.close_object();
}

pub(super) fn write_finish(w: &mut JsonWriter<'_>, finish: Option<&Finish>) {
    let stop = Finish::new(FinishReason::Stop);
    let finish = finish.unwrap_or(&stop);
    let stop_sequence = finish.stop_sequence.as_deref();
    w.string_field("stop_reason", finish_reasons::word_for(FORMAT, finish, true).unwrap_or("end_turn"));
    match stop_sequence {
        Some(text) => w.string_field("stop_sequence", text),
        None => w.null_field("stop_sequence"),
    }
}

fn write_part(w: &mut JsonWriter<'_>, part: &Part, place: u32, options: &AnswerOptions<'_>) {
    match part {
        Part::Text(text) => write_text(w, text),
        Part::Refusal(text) => write_text(w, &TextPart::new(text.as_str())),
        Part::Thinking(thinking) => {
            let signature = thinking.signature.as_ref().and_then(|own| own.by(Signer::Anthropic));
            w.open_object();
            w.string_field("type", "thinking");
            w.string_field("thinking", &thinking.text);
            // The field must be there; a thought that comes back without a signature is left out again.
            w.string_field("signature", signature.unwrap_or(""));
            w.close_object();
        }
        Part::RedactedThinking(sealed) => {
            let Some(data) = sealed.by(Signer::Anthropic) else { return };
            w.open_object();
            w.string_field("type", "redacted_thinking");
            w.string_field("data", data);
            w.close_object();
        }
        Part::ToolUse(call) => {
            w.open_object();
            w.string_field("type", "tool_use");
            match call.id.as_str() {
                "" => w.string_field("id", &options.tool_id(0, place)),
                id => w.string_field("id", id),
            }
            w.string_field("name", &call.name);
            w.value_field("input", &object_value(&call.arguments));
            w.close_object();
        }
        Part::Native(native) => {
            if let Some(own) = native.in_format(FORMAT) {
                w.value(own);
            }
        }
        // Spoken answers have words; images have no place in an answer of this format.
        Part::Audio(media) => {
            if let Some(words) = &media.transcript {
                write_text(w, &TextPart::new(words.as_str()));
            }
        }
        Part::Image(_) | Part::File(_) | Part::ToolResult(_) => {}
    }
}
