//! Parts of a content, both ways. Thoughts are texts with a mark; media are bytes or addresses with a type.

use crate::wire::codecs::arguments::object_text;
use crate::wire::codecs::base64_text;
use crate::wire::codecs::data_url::type_of_name;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::Dropped;
use crate::wire::conversation::{
    Media, MediaSource, NativeValue, Part, Request, Signature, Signer, TextPart, Thinking, ToolResult, ToolUse,
    WireFormat,
};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Gemini;

pub(super) fn read(value: Value, path: FieldPath<'_>) -> Result<Part, CodecError> {
    let mut part = Fields::new(value, path)?;
    let signature = part.either("thoughtSignature", "thought_signature");
    let signature = match signature {
        Some(Value::String(value)) => Some(Signature::new(Signer::Google, value)),
        _ => None,
    };
    if part.has("text") {
        let text = part.required_string("text")?;
        return Ok(match part.boolean("thought")? {
            Some(true) => Part::Thinking(Thinking { text, signature, id: None }),
            _ => Part::Text(TextPart { text, signature, ..TextPart::default() }),
        });
    }
    if let Some(value) = part.either("functionCall", "function_call") {
        let mut call = Fields::new(value, path.field("functionCall"))?;
        return Ok(Part::ToolUse(ToolUse {
            id: call.string("id")?.unwrap_or_default(),
            name: call.required_string("name")?,
            arguments: call.take("args").map_or_else(String::new, |args| args.to_string()),
            signature,
            cache: None,
        }));
    }
    if let Some(value) = part.either("functionResponse", "function_response") {
        return read_result(Fields::new(value, path.field("functionResponse"))?);
    }
    if let Some(value) = part.either("inlineData", "inline_data") {
        let mut data = Fields::new(value, path.field("inlineData"))?;
        let media_type = data.either_string("mimeType", "mime_type");
        let name = data.either_string("displayName", "display_name");
        let source = MediaSource::Base64(data.required_string("data")?);
        return Ok(by_type(Media { name, ..Media::new(source, media_type) }));
    }
    if let Some(value) = part.either("fileData", "file_data") {
        let mut file = Fields::new(value, path.field("fileData"))?;
        let media_type = file.either_string("mimeType", "mime_type");
        let missing = || path.field("fileData.fileUri").problem("is missing");
        let uri = file.either_string("fileUri", "file_uri").ok_or_else(missing)?;
        return Ok(by_type(Media::new(MediaSource::Url(uri), media_type)));
    }
    Ok(Part::Native(NativeValue::new(FORMAT, part.into_value())))
}

fn by_type(media: Media) -> Part {
    match media.media_type.as_deref().unwrap_or("") {
        name if name.starts_with("image/") => Part::Image(media),
        name if name.starts_with("audio/") => Part::Audio(media),
        _ => Part::File(media),
    }
}

/// `{output}` and `{error}` are Google's own names for what a function returned; anything else is passed as JSON.
fn read_result(mut response: Fields<'_>) -> Result<Part, CodecError> {
    let id = response.string("id")?.unwrap_or_default();
    let name = Some(response.required_string("name")?);
    let body = response.object("response")?.unwrap_or_default();
    let (text, is_error) = match (body.len(), body.get("output"), body.get("error")) {
        (0, ..) => (String::new(), false),
        (1, Some(Value::String(text)), _) => (text.clone(), false),
        (1, _, Some(Value::String(text))) => (text.clone(), true),
        _ => (Value::Object(body).to_string(), false),
    };
    let parts = if text.is_empty() { Vec::new() } else { vec![Part::text(text)] };
    Ok(Part::ToolResult(ToolResult { id, name, parts, is_error, cache: None }))
}

/// Writes one part of a request; a tool's result may become several.
pub(super) fn write(
    w: &mut JsonWriter<'_>,
    part: &Part,
    request: &Request,
    dropped: &mut Dropped,
) -> Result<(), CodecError> {
    match part {
        Part::Text(text) if text.text.is_empty() && text.signature.is_none() => {}
        Part::Text(text) => write_text(w, &text.text, false, text.signature.as_ref()),
        Part::Refusal(text) => write_text(w, text, false, None),
        Part::Thinking(thinking) => match &thinking.signature {
            Some(signature) if signature.signer == Signer::Google => {
                write_text(w, &thinking.text, true, Some(signature));
            }
            _ => dropped.note("messages.thinking"),
        },
        Part::Image(media) | Part::Audio(media) | Part::File(media) => write_media(w, media),
        Part::ToolUse(call) => {
            let args = object_text(call, FORMAT)?;
            write_call(w, call, |w| w.raw(args));
        }
        Part::ToolResult(result) => write_result(w, result, request),
        Part::Native(native) => match native.in_format(FORMAT) {
            Some(own) => w.value(own),
            None => dropped.note("messages.native_block"),
        },
        Part::RedactedThinking(_) => dropped.note("messages.redacted_thinking"),
    }
    Ok(())
}

pub(super) fn write_text(w: &mut JsonWriter<'_>, text: &str, is_thought: bool, signature: Option<&Signature>) {
    w.open_object();
    w.string_field("text", text);
    if is_thought {
        w.bool_field("thought", true);
    }
    w.optional_string("thoughtSignature", signature.and_then(|own| own.by(Signer::Google)));
    w.close_object();
}

pub(super) fn write_call(w: &mut JsonWriter<'_>, call: &ToolUse, args: impl FnOnce(&mut JsonWriter<'_>)) {
    w.open_object();
    w.object_field("functionCall");
    if !call.id.is_empty() {
        w.string_field("id", &call.id);
    }
    w.string_field("name", &call.name);
    w.key("args");
    args(w);
    w.close_object();
    w.optional_string("thoughtSignature", call.signature.as_ref().and_then(|own| own.by(Signer::Google)));
    w.close_object();
}

pub(super) fn write_media(w: &mut JsonWriter<'_>, media: &Media) {
    w.open_object();
    let encoded;
    let data = match &media.source {
        MediaSource::Base64(data) => Some(data),
        MediaSource::Text(text) => {
            encoded = base64_text::encode(text);
            Some(&encoded)
        }
        MediaSource::Url(_) | MediaSource::FileId(_) => None,
    };
    let media_type = media.media_type.as_deref();
    match (&media.source, data) {
        (_, Some(data)) => {
            let named = media.name.as_deref().and_then(type_of_name);
            w.object_field("inlineData");
            w.string_field("mimeType", media_type.or(named).unwrap_or("application/octet-stream"));
            w.string_field("data", data);
        }
        (
            MediaSource::Url(uri) | MediaSource::FileId(uri) | MediaSource::Base64(uri) | MediaSource::Text(uri),
            None,
        ) => {
            w.object_field("fileData");
            w.optional_string("mimeType", media_type.or_else(|| type_of_name(uri)));
            w.string_field("fileUri", uri);
        }
    }
    w.close_object();
    w.close_object();
}

/// The name is the one of the call it answers, whatever the message says. Media follow beside it.
fn write_result(w: &mut JsonWriter<'_>, result: &ToolResult, request: &Request) {
    let texts: Vec<&str> = result
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        })
        .collect();
    let name = request.tool_name_of(&result.id).or(result.name.as_deref());
    w.open_object();
    w.object_field("functionResponse");
    if !result.id.is_empty() {
        w.string_field("id", &result.id);
    }
    w.string_field("name", name.unwrap_or(&result.id));
    w.object_field("response");
    w.string_field(if result.is_error { "error" } else { "output" }, &texts.concat());
    w.close_object();
    w.close_object();
    w.close_object();
    for part in &result.parts {
        if let Part::Image(media) | Part::Audio(media) | Part::File(media) = part {
            write_media(w, media);
        }
    }
}
