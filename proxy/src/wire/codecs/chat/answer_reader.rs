//! A chat completion → the model.

use super::content;
use super::request_reader::read_call;
use super::usage;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_CHOICES, MAX_PARTS};
use crate::wire::codecs::{citations, finish_reasons, logprobs};
use crate::wire::conversation::{
    Answer, Choice, Extra, Media, MediaSource, NativeValue, Part, Thinking, ToolUse, WireFormat,
};
use serde_json::{Map, Value};

pub(super) fn read(body: &[u8]) -> Result<Answer, CodecError> {
    let mut body = Fields::parse(body)?;
    if !body.has("choices") {
        return Err(body.path.field("choices").problem("is missing"));
    }
    let path = body.path;
    let path = path.field("choices");
    let mut answer = Answer {
        id: body.string("id")?,
        model: body.string("model")?,
        created: body.integer("created")?,
        usage: body.object("usage")?.map(usage::read),
        ..Answer::default()
    };
    let groq = body.inner("x_groq").object("usage")?;
    answer.usage = answer.usage.or(groq.map(usage::read));
    answer.safety = body.take("prompt_filter_results").map(|value| NativeValue::new(WireFormat::Chat, value));
    for (index, value) in body.bounded_list("choices", MAX_CHOICES)?.into_iter().enumerate() {
        answer.choices.push(read_choice(Fields::new(value, path.item(index))?, index)?);
    }
    body.take("object");
    body.take("provider");
    answer.extra = Extra::new(WireFormat::Chat, body.rest());
    Ok(answer)
}

fn read_choice(mut choice: Fields<'_>, place: usize) -> Result<Choice, CodecError> {
    let path = choice.path;
    let index = choice.integer("index")?.and_then(|index| u32::try_from(index).ok());
    let inner = path.field("message");
    let message = choice.object("message")?.ok_or_else(|| inner.problem("is missing"))?;
    let mut read = Choice { index: index.unwrap_or(place as u32), ..Choice::default() };
    read_message(Fields::from_map(message, inner), &mut read)?;
    read.finish = choice.string("finish_reason")?.map(|word| finish_reasons::read(WireFormat::Chat, word));
    read.logprobs = choice.inner("logprobs").list("content")?.map(logprobs::read).unwrap_or_default();
    let ratings = choice.take("content_filter_results");
    read.safety = ratings.map(|value| NativeValue::new(WireFormat::Chat, value));
    read.extra = Extra::new(WireFormat::Chat, choice.rest());
    Ok(read)
}

fn read_message(mut message: Fields<'_>, choice: &mut Choice) -> Result<(), CodecError> {
    let path = message.path;
    let plain = content::read(message.take("content"), &path.field("content"))?;
    let blocks = content::read(message.take("content_blocks"), &path.field("content_blocks"))?;
    let mut parts = if blocks.is_empty() { plain } else { blocks };
    let thought = message.string("reasoning_content")?.or(message.string("reasoning")?);
    if let Some(text) = thought.filter(|text| !text.is_empty())
        && !parts.iter().any(|part| matches!(part, Part::Thinking(_)))
    {
        parts.insert(0, Part::Thinking(Thinking { text, ..Thinking::default() }));
    }
    let annotations = message.list("annotations")?.unwrap_or_default();
    if let Some(Part::Text(text)) = parts.iter_mut().rev().find(|part| matches!(part, Part::Text(_))) {
        text.citations = annotations.into_iter().map(|value| citations::from_openai(value, WireFormat::Chat)).collect();
    }
    parts.extend(message.string("refusal")?.map(Part::Refusal));
    if let Some(audio) = message.object("audio")? {
        parts.push(Part::Audio(read_audio(audio)?));
    }
    let calls = path.field("tool_calls");
    for (index, value) in message.bounded_list("tool_calls", MAX_PARTS)?.into_iter().enumerate() {
        parts.push(Part::ToolUse(read_call(Fields::new(value, calls.item(index))?)?));
    }
    if let Some(call) = message.object("function_call")? {
        let mut call = Fields::from_map(call, path.field("function_call"));
        let name = call.required_string("name")?;
        let arguments = call.string("arguments")?.unwrap_or_default();
        parts.push(Part::ToolUse(ToolUse { name, arguments, ..ToolUse::default() }));
    }
    choice.parts = parts;
    Ok(())
}

fn read_audio(map: Map<String, Value>) -> Result<Media, CodecError> {
    let mut audio = Fields::from_map(map, FieldPath::Root);
    let data = audio.string("data")?.unwrap_or_default();
    Ok(Media {
        id: audio.string("id")?,
        transcript: audio.string("transcript")?,
        expires_at: audio.integer("expires_at")?,
        ..Media::new(MediaSource::Base64(data), None)
    })
}
