//! Content blocks, both ways. A cache point is a block of its own behind what it marks.

use crate::wire::codecs::arguments::object_text;
use crate::wire::codecs::data_url::{ending_of, type_of_ending, type_of_name};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_PARTS, check_count};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::Dropped;
use crate::wire::codecs::{base64_text, citations};
use crate::wire::conversation::{
    CacheControl, Media, MediaSource, NativeValue, Part, Signature, Signer, TextPart, Thinking, ToolResult, ToolUse,
    WireFormat,
};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Converse;

pub(super) fn read_content(list: Vec<Value>, path: &FieldPath<'_>) -> Result<Vec<Part>, CodecError> {
    check_count(&list, MAX_PARTS, path)?;
    let mut parts: Vec<Part> = Vec::with_capacity(list.len());
    for (index, value) in list.into_iter().enumerate() {
        let mut block = Fields::new(value, path.item(index))?;
        if let Some(point) = block.object("cachePoint")? {
            set_cache(parts.last_mut(), read_cache(point));
            continue;
        }
        parts.push(read_block(block)?);
    }
    Ok(parts)
}

pub(super) fn read_cache(point: Map<String, Value>) -> CacheControl {
    CacheControl { ttl: point.get("ttl").and_then(Value::as_str).map(str::to_owned) }
}

fn set_cache(part: Option<&mut Part>, cache: CacheControl) {
    match part {
        Some(Part::Text(text)) => text.cache = Some(cache),
        Some(Part::Image(media) | Part::Audio(media) | Part::File(media)) => media.cache = Some(cache),
        Some(Part::ToolUse(call)) => call.cache = Some(cache),
        Some(Part::ToolResult(result)) => result.cache = Some(cache),
        _ => {}
    }
}

fn read_block(mut block: Fields<'_>) -> Result<Part, CodecError> {
    let path = block.path;
    if block.has("text") {
        return Ok(Part::text(block.required_string("text")?));
    }
    for kind in ["image", "audio", "document", "video"] {
        let Some(object) = block.object(kind)? else { continue };
        let whole = object.clone();
        return Ok(match (read_media(Fields::from_map(object, path.field(kind)), kind)?, kind) {
            (None, _) => {
                let mut map = Map::new();
                map.insert(kind.into(), Value::Object(whole));
                Part::Native(NativeValue::new(FORMAT, Value::Object(map)))
            }
            (Some(media), "image") => Part::Image(media),
            (Some(media), "audio") => Part::Audio(media),
            (Some(media), _) => Part::File(media),
        });
    }
    if let Some(object) = block.object("toolUse")? {
        let mut call = Fields::from_map(object, path.field("toolUse"));
        return Ok(Part::ToolUse(ToolUse {
            id: call.required_string("toolUseId")?,
            name: call.required_string("name")?,
            arguments: call.take("input").map_or_else(String::new, |input| input.to_string()),
            ..ToolUse::default()
        }));
    }
    if let Some(object) = block.object("toolResult")? {
        return read_result(Fields::from_map(object, path.field("toolResult")));
    }
    if let Some(object) = block.object("reasoningContent")? {
        return read_reasoning(Fields::from_map(object, path.field("reasoningContent")));
    }
    if let Some(object) = block.object("citationsContent")? {
        let mut cited = Fields::from_map(object, path.field("citationsContent"));
        let texts = cited.list("content")?.unwrap_or_default();
        let sources = cited.list("citations")?.unwrap_or_default();
        return Ok(Part::Text(TextPart {
            text: texts.iter().filter_map(|piece| piece.get("text")?.as_str()).collect(),
            citations: sources.into_iter().map(citations::from_converse).collect(),
            ..TextPart::default()
        }));
    }
    Ok(Part::Native(NativeValue::new(FORMAT, block.into_value())))
}

fn read_media(mut block: Fields<'_>, kind: &str) -> Result<Option<Media>, CodecError> {
    let format = block.string("format")?;
    let mut source = block.inner("source");
    let source = if let Some(bytes) = source.string("bytes")? {
        MediaSource::Base64(bytes)
    } else if let Some(text) = source.string("text")? {
        MediaSource::Text(text)
    } else if let Some(uri) = source.inner("s3Location").string("uri")? {
        MediaSource::Url(uri)
    } else {
        return Ok(None);
    };
    let media_type = format.map(|format| match (kind, type_of_ending(&format)) {
        ("audio", _) => ["audio/", &format].concat(),
        (_, Some(known)) => known.to_owned(),
        (kind, None) => [kind, "/", &format].concat(),
    });
    let mut media = Media::new(source, media_type);
    media.name = block.string("name")?;
    media.context = block.string("context")?;
    media.is_citable = block.inner("citations").boolean("enabled")?;
    Ok(Some(media))
}

fn read_result(mut result: Fields<'_>) -> Result<Part, CodecError> {
    let path = result.path;
    let path = path.field("content");
    let id = result.required_string("toolUseId")?;
    let is_error = result.string("status")?.as_deref() == Some("error");
    let mut parts = Vec::new();
    for (index, value) in result.bounded_list("content", MAX_PARTS)?.into_iter().enumerate() {
        let mut block = Fields::new(value, path.item(index))?;
        match block.take("json") {
            Some(json) => parts.push(Part::text(json.to_string())),
            None => parts.push(read_block(block)?),
        }
    }
    Ok(Part::ToolResult(ToolResult { id, name: None, parts, is_error, cache: None }))
}

fn read_reasoning(mut content: Fields<'_>) -> Result<Part, CodecError> {
    if let Some(data) = content.string("redactedContent")? {
        return Ok(Part::RedactedThinking(Signature::new(Signer::Anthropic, data)));
    }
    let mut text = content.inner("reasoningText");
    let signature = text.string("signature")?.filter(|value| !value.is_empty());
    Ok(Part::Thinking(Thinking {
        text: text.string("text")?.unwrap_or_default(),
        signature: signature.map(|value| Signature::new(Signer::Anthropic, value)),
        id: None,
    }))
}

/// Writes a block of a request and the cache point behind it.
pub(super) fn write_block(w: &mut JsonWriter<'_>, part: &Part, dropped: &mut Dropped) -> Result<(), CodecError> {
    let cache = match part {
        Part::Text(text) if text.text.is_empty() => return Ok(()),
        Part::Text(text) => {
            write_text(w, text);
            text.cache.as_ref()
        }
        Part::Refusal(text) => {
            write_text(w, &TextPart::new(text.as_str()));
            None
        }
        Part::Image(media) | Part::Audio(media) | Part::File(media) => {
            write_media(w, media, part.kind())?;
            media.cache.as_ref()
        }
        Part::Thinking(thinking) => {
            // Thoughts of other makers are refused (contract 6.3).
            match thinking.signature.as_ref().and_then(|own| own.by(Signer::Anthropic)) {
                Some(signature) => write_reasoning(w, &thinking.text, Some(signature)),
                None => dropped.note("messages.thinking"),
            }
            None
        }
        Part::RedactedThinking(sealed) => {
            match sealed.by(Signer::Anthropic) {
                Some(data) => write_redacted(w, data),
                None => dropped.note("messages.redacted_thinking"),
            }
            None
        }
        Part::ToolUse(call) => {
            let input = object_text(call, FORMAT)?;
            write_call(w, call, &call.id, |w| w.raw(input));
            call.cache.as_ref()
        }
        Part::ToolResult(result) => {
            write_result(w, result, dropped)?;
            result.cache.as_ref()
        }
        Part::Native(native) => {
            match native.in_format(FORMAT) {
                Some(own) => w.value(own),
                None => dropped.note("messages.native_block"),
            }
            None
        }
    };
    write_cache(w, cache);
    Ok(())
}

pub(super) fn write_cache(w: &mut JsonWriter<'_>, cache: Option<&CacheControl>) {
    let Some(cache) = cache else { return };
    w.open_object();
    w.object_field("cachePoint");
    w.string_field("type", "default");
    w.optional_string("ttl", cache.ttl.as_deref());
    w.close_object();
    w.close_object();
}

pub(super) fn write_text(w: &mut JsonWriter<'_>, text: &TextPart) {
    w.open_object();
    if text.citations.iter().any(|citation| citation.native.format == FORMAT) {
        w.object_field("citationsContent");
        w.array_field("content");
        w.open_object();
        w.string_field("text", &text.text);
        w.close_object();
        w.close_array();
        w.array_field("citations");
        citations::own(&text.citations, FORMAT).for_each(|own| w.value(own));
        w.close_array();
        w.close_object();
    } else {
        w.string_field("text", &text.text);
    }
    w.close_object();
}

pub(super) fn write_reasoning(w: &mut JsonWriter<'_>, text: &str, signature: Option<&str>) {
    w.open_object();
    w.object_field("reasoningContent");
    w.object_field("reasoningText");
    w.string_field("text", text);
    w.optional_string("signature", signature);
    w.close_object();
    w.close_object();
    w.close_object();
}

pub(super) fn write_redacted(w: &mut JsonWriter<'_>, data: &str) {
    w.open_object();
    w.object_field("reasoningContent");
    w.string_field("redactedContent", data);
    w.close_object();
    w.close_object();
}

pub(super) fn write_call(w: &mut JsonWriter<'_>, call: &ToolUse, id: &str, input: impl FnOnce(&mut JsonWriter<'_>)) {
    w.open_object();
    w.object_field("toolUse");
    w.string_field("toolUseId", id);
    w.string_field("name", &call.name);
    w.key("input");
    input(w);
    w.close_object();
    w.close_object();
}

fn write_result(w: &mut JsonWriter<'_>, result: &ToolResult, dropped: &mut Dropped) -> Result<(), CodecError> {
    w.open_object();
    w.object_field("toolResult");
    w.string_field("toolUseId", &result.id);
    w.array_field("content");
    for part in &result.parts {
        match part {
            Part::Text(text) if text.text.is_empty() => {}
            Part::Text(text) => write_text(w, &TextPart::new(text.text.as_str())),
            Part::Image(media) | Part::File(media) => write_media(w, media, part.kind())?,
            other => dropped.note(["messages.", other.kind()].concat()),
        }
    }
    w.close_array();
    if result.is_error {
        w.string_field("status", "error");
    }
    w.close_object();
    w.close_object();
    Ok(())
}

/// Contract 7.6. Addresses other than S3's are not read there: they are fetched before a request is written.
fn write_media(w: &mut JsonWriter<'_>, media: &Media, kind: &'static str) -> Result<(), CodecError> {
    if let MediaSource::Url(url) | MediaSource::FileId(url) = &media.source
        && !url.starts_with("s3:")
    {
        let field = ["messages.", kind].concat();
        return Err(CodecError::Unsupported { field, format: FORMAT, hint: ": send the bytes, or an s3: address" });
    }
    let url_type = match &media.source {
        MediaSource::Url(url) => type_of_name(url),
        _ => None,
    };
    let media_type = media.media_type.as_deref().or(url_type);
    let (block, default) = match (kind, media_type) {
        ("image", _) => ("image", "png"),
        ("audio", _) => ("audio", "wav"),
        (_, Some(name)) if name.starts_with("video/") => ("video", "mp4"),
        (_, Some(name)) if name.starts_with("image/") => ("image", "png"),
        _ => ("document", "pdf"),
    };
    let format = match (block, media_type) {
        ("audio", Some("audio/mpeg")) => "mp3",
        ("audio", Some(name)) => name.trim_start_matches("audio/"),
        (_, Some(name)) => ending_of(name).unwrap_or(default),
        (_, None) => default,
    };
    w.open_object();
    w.object_field(block);
    w.string_field("format", format);
    if block == "document" {
        w.string_field("name", &document_name(media.name.as_deref()));
    }
    w.object_field("source");
    match &media.source {
        MediaSource::Base64(data) => w.string_field("bytes", data),
        MediaSource::Text(text) => w.string_field("bytes", &base64_text::encode(text)),
        MediaSource::Url(uri) | MediaSource::FileId(uri) => {
            w.object_field("s3Location");
            w.string_field("uri", uri);
            w.close_object();
        }
    }
    w.close_object();
    if block == "document" {
        w.optional_string("context", media.context.as_deref());
        if let Some(is_citable) = media.is_citable {
            w.object_field("citations");
            w.bool_field("enabled", is_citable);
            w.close_object();
        }
    }
    w.close_object();
    w.close_object();
    Ok(())
}

/// Letters, digits, single spaces, hyphens and brackets only.
fn document_name(name: Option<&str>) -> String {
    let stem = name.and_then(|name| name.rsplit_once('.').map(|(stem, _)| stem).or(Some(name))).unwrap_or("document");
    let is_fine = |c: char| c.is_ascii_alphanumeric() || "-()[] ".contains(c);
    stem.chars().map(|c| if is_fine(c) { c } else { '-' }).collect()
}
