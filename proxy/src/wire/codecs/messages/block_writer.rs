//! Parts → content blocks.

use crate::wire::codecs::arguments::object_text;
use crate::wire::codecs::base64_text;
use crate::wire::codecs::citations;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::Dropped;
use crate::wire::conversation::{CacheControl, Media, MediaSource, Part, Signer, TextPart, ToolResult, WireFormat};

const FORMAT: WireFormat = WireFormat::Messages;

/// Writes a block of a request; what Anthropic does not take is noted.
pub(super) fn write_block(w: &mut JsonWriter<'_>, part: &Part, dropped: &mut Dropped) -> Result<(), CodecError> {
    match part {
        // Empty text is refused there.
        Part::Text(text) if text.text.is_empty() => {}
        Part::Text(text) => write_text(w, text),
        Part::Refusal(text) => write_text(w, &TextPart::new(text.as_str())),
        Part::Image(media) => write_media(w, media, "image"),
        Part::File(media) => {
            let is_image = media.media_type.as_deref().is_some_and(|name| name.starts_with("image/"));
            write_media(w, media, if is_image { "image" } else { "document" });
        }
        Part::Thinking(thinking) => {
            let signature = thinking.signature.as_ref().and_then(|own| own.by(Signer::Anthropic));
            // A thought without Anthropic's signature is refused there (contract 6.3).
            let Some(signature) = signature else {
                dropped.note("messages.thinking");
                return Ok(());
            };
            w.open_object();
            w.string_field("type", "thinking");
            w.string_field("thinking", &thinking.text);
            w.string_field("signature", signature);
            w.close_object();
        }
        Part::RedactedThinking(sealed) => match sealed.by(Signer::Anthropic) {
            Some(data) => {
                w.open_object();
                w.string_field("type", "redacted_thinking");
                w.string_field("data", data);
                w.close_object();
            }
            None => dropped.note("messages.redacted_thinking"),
        },
        Part::ToolUse(call) => {
            let input = object_text(call, FORMAT)?;
            w.open_object();
            w.string_field("type", "tool_use");
            w.string_field("id", &call.id);
            w.string_field("name", &call.name);
            w.key("input");
            w.raw(input);
            write_cache(w, call.cache.as_ref());
            w.close_object();
        }
        Part::ToolResult(result) => write_result(w, result, dropped)?,
        Part::Native(native) => match native.in_format(FORMAT) {
            Some(own) => w.value(own),
            None => dropped.note("messages.native_block"),
        },
        Part::Audio(_) => return Err(CodecError::unsupported("messages.audio", FORMAT)),
    }
    Ok(())
}

fn write_result(w: &mut JsonWriter<'_>, result: &ToolResult, dropped: &mut Dropped) -> Result<(), CodecError> {
    w.open_object();
    w.string_field("type", "tool_result");
    w.string_field("tool_use_id", &result.id);
    match result.parts.as_slice() {
        [] => {}
        [Part::Text(text)] if text.cache.is_none() => w.string_field("content", &text.text),
        parts => {
            w.array_field("content");
            for part in parts {
                write_block(w, part, dropped)?;
            }
            w.close_array();
        }
    }
    if result.is_error {
        w.bool_field("is_error", true);
    }
    write_cache(w, result.cache.as_ref());
    w.close_object();
    Ok(())
}

pub(super) fn write_text(w: &mut JsonWriter<'_>, text: &TextPart) {
    w.open_object();
    w.string_field("type", "text");
    w.string_field("text", &text.text);
    if text.citations.iter().any(|citation| citation.native.format == FORMAT) {
        w.array_field("citations");
        citations::own(&text.citations, FORMAT).for_each(|own| w.value(own));
        w.close_array();
    }
    write_cache(w, text.cache.as_ref());
    w.close_object();
}

/// Contract 7.3: a file is a PDF unless it says otherwise; plain text goes as text.
fn write_media(w: &mut JsonWriter<'_>, media: &Media, kind: &str) {
    let media_type = media.media_type.as_deref();
    let is_text = kind == "document" && media_type.is_some_and(|name| name.starts_with("text/"));
    w.open_object();
    let is_pdf_image = kind == "image" && media_type == Some("application/pdf");
    w.string_field("type", if is_pdf_image { "document" } else { kind });
    w.object_field("source");
    let decoded = match &media.source {
        MediaSource::Base64(data) if is_text => base64_text::decode(data),
        _ => None,
    };
    match (&media.source, decoded) {
        (MediaSource::Text(text), _) => write_text_source(w, text),
        (_, Some(text)) => write_text_source(w, &text),
        (MediaSource::Base64(data), None) => {
            let default = if kind == "image" { "image/png" } else { "application/pdf" };
            w.string_field("type", "base64");
            w.string_field("media_type", media_type.unwrap_or(default));
            w.string_field("data", data);
        }
        (MediaSource::Url(url), None) => {
            w.string_field("type", "url");
            w.string_field("url", url);
        }
        (MediaSource::FileId(id), None) => {
            w.string_field("type", "file");
            w.string_field("file_id", id);
        }
    }
    w.close_object();
    if kind == "document" {
        w.optional_string("title", media.name.as_deref());
        w.optional_string("context", media.context.as_deref());
        if let Some(is_citable) = media.is_citable {
            w.object_field("citations");
            w.bool_field("enabled", is_citable);
            w.close_object();
        }
    }
    write_cache(w, media.cache.as_ref());
    w.close_object();
}

fn write_text_source(w: &mut JsonWriter<'_>, text: &str) {
    w.string_field("type", "text");
    w.string_field("media_type", "text/plain");
    w.string_field("data", text);
}

pub(super) fn write_cache(w: &mut JsonWriter<'_>, cache: Option<&CacheControl>) {
    let Some(cache) = cache else { return };
    w.object_field("cache_control");
    w.string_field("type", "ephemeral");
    w.optional_string("ttl", cache.ttl.as_deref());
    w.close_object();
}
