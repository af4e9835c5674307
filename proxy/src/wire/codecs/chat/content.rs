//! The content of a message: a string, or a list of parts.

use crate::wire::codecs::data_url::{data_url, media_from_data, media_from_url, type_of_name};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_PARTS, check_count};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::conversation::{
    CacheControl, Media, MediaSource, NativeValue, Part, Signature, Signer, TextPart, Thinking, WireFormat,
};
use serde_json::Value;

pub(in crate::wire::codecs) fn read(content: Option<Value>, path: &FieldPath<'_>) -> Result<Vec<Part>, CodecError> {
    match content {
        None => Ok(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::text(text)]),
        Some(Value::Array(list)) => {
            check_count(&list, MAX_PARTS, path)?;
            list.into_iter().enumerate().map(|(index, part)| read_part(part, path.item(index))).collect()
        }
        Some(_) => Err(path.problem("must be a string or a list of parts")),
    }
}

fn read_part(value: Value, path: FieldPath<'_>) -> Result<Part, CodecError> {
    if let Value::String(text) = value {
        return Ok(Part::text(text));
    }
    let mut part = Fields::new(value, path)?;
    let cache = read_cache(&mut part)?;
    let with_cache = |mut media: Media, cache| {
        media.cache = cache;
        media
    };
    let kind = part.peek_str("type").unwrap_or("text").to_owned();
    Ok(match kind.as_str() {
        "text" => Part::Text(TextPart { text: part.required_string("text")?, cache, ..TextPart::default() }),
        "refusal" => Part::Refusal(part.required_string("refusal")?),
        "image_url" => Part::Image(with_cache(read_image(&mut part)?, cache)),
        "input_audio" => {
            let path = path.field("input_audio");
            let object = part.object("input_audio")?.ok_or_else(|| path.problem("is missing"))?;
            let mut audio = Fields::from_map(object, path);
            let format = audio.string("format")?.unwrap_or_else(|| "wav".into());
            let data = audio.required_string("data")?;
            Part::Audio(with_cache(media_from_data(data, Some(audio_type(&format))), cache))
        }
        "file" => Part::File(with_cache(read_file(&mut part)?, cache)),
        // What answers carry back in `content_blocks`, and what Mistral puts among its parts.
        "thinking" => read_thinking(&mut part)?,
        "redacted_thinking" => Part::RedactedThinking(Signature::new(Signer::Anthropic, part.required_string("data")?)),
        _ => Part::Native(NativeValue::new(WireFormat::Chat, part.into_value())),
    })
}

fn read_image(part: &mut Fields<'_>) -> Result<Media, CodecError> {
    let path = part.path;
    let path = path.field("image_url");
    let mut image = match part.take("image_url") {
        Some(Value::String(url)) => return Ok(media_from_url(url, None)),
        Some(value) => Fields::new(value, path)?,
        None => return Err(path.problem("is missing")),
    };
    let media_type = image.string("mime_type")?;
    let mut media = media_from_url(image.required_string("url")?, media_type);
    media.detail = image.string("detail")?;
    Ok(media)
}

/// OpenAI's `{file_data, file_id, filename}` and the contract's `{file_url, file_name, mime_type}`.
fn read_file(part: &mut Fields<'_>) -> Result<Media, CodecError> {
    let path = part.path;
    let path = path.field("file");
    let object = part.object("file")?.ok_or_else(|| path.problem("is missing"))?;
    let mut file = Fields::from_map(object, path);
    let name = file.string("filename")?.or(file.string("file_name")?);
    let media_type = file.string("mime_type")?;
    let (data, url, id) = (file.string("file_data")?, file.string("file_url")?, file.string("file_id")?);
    let mut media = match (data, url, id) {
        (Some(data), ..) => media_from_data(data, media_type),
        (None, Some(url), _) => media_from_url(url, media_type),
        (None, None, Some(id)) => Media::new(MediaSource::FileId(id), media_type),
        (None, None, None) => return Err(path.problem("has neither file_data, file_url nor file_id")),
    };
    if media.media_type.is_none() {
        media.media_type = name.as_deref().and_then(type_of_name).map(str::to_owned);
    }
    media.name = name;
    Ok(media)
}

fn read_thinking(part: &mut Fields<'_>) -> Result<Part, CodecError> {
    let text = match part.take("thinking") {
        Some(Value::String(text)) => text,
        Some(Value::Array(list)) => list.iter().filter_map(|piece| piece.get("text").and_then(Value::as_str)).collect(),
        _ => String::new(),
    };
    let signature = part.string("signature")?.filter(|value| !value.is_empty());
    let signature = signature.map(|value| Signature::new(Signer::Anthropic, value));
    Ok(Part::Thinking(Thinking { text, signature, id: None }))
}

pub(super) fn read_cache(fields: &mut Fields<'_>) -> Result<Option<CacheControl>, CodecError> {
    let path = fields.path;
    let Some(object) = fields.object("cache_control")? else { return Ok(None) };
    let mut cache = Fields::from_map(object, path.field("cache_control"));
    Ok(Some(CacheControl { ttl: cache.string("ttl")? }))
}

/// False where this format has no such part. Marks for a cache are an extension that OpenAI itself refuses.
pub(in crate::wire::codecs) fn write_part(w: &mut JsonWriter<'_>, part: &Part, shows_cache: bool) -> bool {
    match part {
        Part::Text(text) => {
            w.open_object();
            w.string_field("type", "text");
            w.string_field("text", &text.text);
            write_cache(w, text.cache.as_ref().filter(|_| shows_cache));
        }
        Part::Refusal(text) => {
            w.open_object();
            w.string_field("type", "refusal");
            w.string_field("refusal", text);
        }
        Part::Image(media) => write_image(w, media, shows_cache),
        Part::Audio(Media { source: MediaSource::Base64(data), media_type, cache, .. }) => {
            w.open_object();
            w.string_field("type", "input_audio");
            w.object_field("input_audio");
            w.string_field("data", data);
            w.string_field("format", audio_format(media_type.as_deref()));
            w.close_object();
            write_cache(w, cache.as_ref().filter(|_| shows_cache));
        }
        Part::File(media) => write_file(w, media, shows_cache),
        Part::Native(native) => {
            let Some(own) = native.in_format(WireFormat::Chat) else { return false };
            w.value(own);
            return true;
        }
        _ => return false,
    }
    w.close_object();
    true
}

fn write_image(w: &mut JsonWriter<'_>, media: &Media, shows_cache: bool) {
    w.open_object();
    w.string_field("type", "image_url");
    w.object_field("image_url");
    match &media.source {
        MediaSource::Base64(data) => {
            w.string_field("url", &data_url(media.media_type.as_deref().unwrap_or("image/png"), data));
        }
        MediaSource::Url(url) | MediaSource::FileId(url) | MediaSource::Text(url) => w.string_field("url", url),
    }
    w.optional_string("detail", media.detail.as_deref());
    w.close_object();
    write_cache(w, media.cache.as_ref().filter(|_| shows_cache));
}

fn write_file(w: &mut JsonWriter<'_>, media: &Media, shows_cache: bool) {
    w.open_object();
    w.string_field("type", "file");
    w.object_field("file");
    let media_type = media.media_type.as_deref();
    match &media.source {
        MediaSource::Base64(data) => {
            w.string_field("file_data", &data_url(media_type.unwrap_or("application/pdf"), data));
        }
        MediaSource::Text(text) => {
            let data = crate::wire::codecs::base64_text::encode(text);
            w.string_field("file_data", &data_url(media_type.unwrap_or("text/plain"), &data));
        }
        MediaSource::Url(url) => {
            w.string_field("file_url", url);
            w.optional_string("mime_type", media_type);
        }
        MediaSource::FileId(id) => w.string_field("file_id", id),
    }
    w.optional_string("filename", media.name.as_deref());
    w.close_object();
    write_cache(w, media.cache.as_ref().filter(|_| shows_cache));
}

pub(super) fn write_cache(w: &mut JsonWriter<'_>, cache: Option<&CacheControl>) {
    let Some(cache) = cache else { return };
    w.object_field("cache_control");
    w.string_field("type", "ephemeral");
    w.optional_string("ttl", cache.ttl.as_deref());
    w.close_object();
}

/// Contract 7.4: wav, mp3, opus → ogg, flac, pcm16 → pcm.
static AUDIO_FORMATS: &[(&str, &str)] = &[
    ("wav", "audio/wav"),
    ("mp3", "audio/mp3"),
    ("opus", "audio/ogg"),
    ("flac", "audio/flac"),
    ("pcm16", "audio/pcm"),
    ("mp3", "audio/mpeg"),
    ("aac", "audio/aac"),
];

pub(in crate::wire::codecs) fn audio_type(format: &str) -> String {
    let known = AUDIO_FORMATS.iter().find(|(name, _)| *name == format);
    known.map_or_else(|| format!("audio/{format}"), |(_, media_type)| (*media_type).to_owned())
}

pub(in crate::wire::codecs) fn audio_format(media_type: Option<&str>) -> &str {
    let media_type = media_type.unwrap_or("audio/wav");
    let known = AUDIO_FORMATS.iter().find(|(_, known)| *known == media_type);
    known.map_or_else(|| media_type.trim_start_matches("audio/"), |(name, _)| name)
}
