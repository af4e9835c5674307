//! Items and their content → parts; requests and answers share them.

use super::known_tools;
use crate::wire::codecs::chat::content::audio_type;
use crate::wire::codecs::data_url::{media_from_data, media_from_url, type_of_name};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_PARTS, check_count};
use crate::wire::codecs::{citations, logprobs};
use crate::wire::conversation::carried_tools::{freeform_arguments, function_name};
use crate::wire::conversation::{
    Media, MediaSource, NativeValue, Part, Signature, Signer, TextPart, Thinking, TokenLogprob, ToolUse, WireFormat,
};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Responses;

/// Content of a message or of a tool's output. Probabilities of tokens are gathered apart.
pub(super) fn read_content(
    content: Option<Value>,
    path: &FieldPath<'_>,
    tokens: &mut Vec<TokenLogprob>,
) -> Result<Vec<Part>, CodecError> {
    match content {
        None => Ok(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::text(text)]),
        Some(Value::Array(list)) => {
            check_count(&list, MAX_PARTS, path)?;
            let mut parts = Vec::with_capacity(list.len());
            for (index, value) in list.into_iter().enumerate() {
                parts.push(read_part(Fields::new(value, path.item(index))?, tokens)?);
            }
            Ok(parts)
        }
        Some(_) => Err(path.problem("must be a string or a list of parts")),
    }
}

pub(super) fn read_part(mut part: Fields<'_>, tokens: &mut Vec<TokenLogprob>) -> Result<Part, CodecError> {
    let path = part.path;
    let kind = part.peek_str("type").unwrap_or("input_text").to_owned();
    Ok(match kind.as_str() {
        "input_text" => Part::text(part.required_string("text")?),
        "output_text" => {
            let annotations = part.list("annotations")?.unwrap_or_default();
            tokens.extend(logprobs::read(part.list("logprobs")?.unwrap_or_default()));
            Part::Text(TextPart {
                text: part.required_string("text")?,
                citations: annotations.into_iter().map(|value| citations::from_openai(value, FORMAT)).collect(),
                ..TextPart::default()
            })
        }
        "refusal" => Part::Refusal(part.required_string("refusal")?),
        "input_image" => {
            let mut media = match (part.string("image_url")?, part.string("file_id")?) {
                (Some(url), _) => media_from_url(url, None),
                (None, Some(id)) => Media::new(MediaSource::FileId(id), None),
                (None, None) => return Err(path.problem("has neither image_url nor file_id")),
            };
            media.detail = part.string("detail")?;
            Part::Image(media)
        }
        "input_file" => {
            let name = part.string("filename")?;
            let (data, url, id) = (part.string("file_data")?, part.string("file_url")?, part.string("file_id")?);
            let mut media = match (data, url, id) {
                (Some(data), ..) => media_from_data(data, None),
                (None, Some(url), _) => media_from_url(url, None),
                (None, None, Some(id)) => Media::new(MediaSource::FileId(id), None),
                (None, None, None) => return Err(path.problem("has neither file_data, file_url nor file_id")),
            };
            if media.media_type.is_none() {
                media.media_type = name.as_deref().and_then(type_of_name).map(str::to_owned);
            }
            media.name = name;
            Part::File(media)
        }
        "input_audio" => {
            let mut audio = part.inner("input_audio");
            let format = audio.string("format")?.unwrap_or_else(|| "wav".into());
            Part::Audio(media_from_data(audio.required_string("data")?, Some(audio_type(&format))))
        }
        _ => Part::Native(NativeValue::new(FORMAT, part.into_value())),
    })
}

/// An item that is neither a message nor a tool's output.
pub(super) fn read_item(mut item: Fields<'_>) -> Result<Part, CodecError> {
    if let Some(tool) = item.peek_str("type").and_then(known_tools::by_call) {
        return Ok(Part::ToolUse(ToolUse {
            id: item.string("call_id")?.or(item.string("id")?).unwrap_or_default(),
            name: tool.name.to_owned(),
            arguments: tool.arguments(item.take(tool.field)),
            ..ToolUse::default()
        }));
    }
    match item.peek_str("type") {
        Some("function_call") => Ok(Part::ToolUse(ToolUse {
            id: item.required_string("call_id")?,
            name: function_name(item.string("namespace")?.as_deref(), &item.required_string("name")?),
            arguments: item.string("arguments")?.unwrap_or_default(),
            ..ToolUse::default()
        })),
        Some("custom_tool_call") => Ok(Part::ToolUse(ToolUse {
            id: item.required_string("call_id")?,
            name: function_name(item.string("namespace")?.as_deref(), &item.required_string("name")?),
            arguments: freeform_arguments(&item.string("input")?.unwrap_or_default()),
            ..ToolUse::default()
        })),
        Some("reasoning") => read_reasoning(item),
        _ => Ok(Part::Native(NativeValue::new(FORMAT, item.into_value()))),
    }
}

fn read_reasoning(mut item: Fields<'_>) -> Result<Part, CodecError> {
    let texts = |list: Vec<Value>| -> Vec<String> {
        let text = |part: Value| part.get("text").and_then(Value::as_str).map(str::to_owned);
        list.into_iter().filter_map(text).collect()
    };
    let summary = texts(item.list("summary")?.unwrap_or_default());
    let content = texts(item.list("content")?.unwrap_or_default());
    let shown = if content.is_empty() { summary } else { content };
    let signature = item.string("encrypted_content")?.map(|value| Signature::new(Signer::OpenAi, value));
    Ok(Part::Thinking(Thinking { text: shown.join(PARAGRAPH), signature, id: item.string("id")? }))
}

/// Between the parts of a summary, which are one thought to everybody else.
pub(super) const PARAGRAPH: &str = "\n\n";
