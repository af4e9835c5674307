//! Content blocks → parts. A block of a type that is not known here is carried whole.

use crate::wire::codecs::citations;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_PARTS, check_count};
use crate::wire::conversation::{
    CacheControl, Media, MediaSource, NativeValue, Part, Signature, Signer, TextPart, Thinking, ToolResult, ToolUse,
    WireFormat,
};
use serde_json::Value;

pub(super) fn read_content(content: Option<Value>, path: &FieldPath<'_>) -> Result<Vec<Part>, CodecError> {
    match content {
        None => Ok(Vec::new()),
        Some(Value::String(text)) if text.is_empty() => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Part::text(text)]),
        Some(Value::Array(list)) => {
            check_count(&list, MAX_PARTS, path)?;
            list.into_iter().enumerate().map(|(index, block)| read_block(block, path.item(index))).collect()
        }
        Some(_) => Err(path.problem("must be a string or a list of blocks")),
    }
}

pub(super) fn read_block(value: Value, path: FieldPath<'_>) -> Result<Part, CodecError> {
    let mut block = Fields::new(value, path)?;
    let kind = match block.peek_str("type") {
        Some(kind) => kind.to_owned(),
        None => return Err(path.field("type").problem("is missing")),
    };
    Ok(match kind.as_str() {
        "text" => {
            let cited = block.list("citations")?.unwrap_or_default();
            Part::Text(TextPart {
                text: block.required_string("text")?,
                citations: cited.into_iter().map(citations::from_messages).collect(),
                signature: None,
                cache: read_cache(&mut block)?,
            })
        }
        "image" | "document" => match read_media(block)? {
            Ok(media) if kind == "image" => Part::Image(media),
            Ok(media) => Part::File(media),
            Err(native) => Part::Native(NativeValue::new(WireFormat::Messages, native)),
        },
        "thinking" => {
            let signature = block.string("signature")?.filter(|value| !value.is_empty());
            Part::Thinking(Thinking {
                text: block.string("thinking")?.unwrap_or_default(),
                signature: signature.map(|value| Signature::new(Signer::Anthropic, value)),
                id: None,
            })
        }
        "redacted_thinking" => {
            Part::RedactedThinking(Signature::new(Signer::Anthropic, block.required_string("data")?))
        }
        "tool_use" => Part::ToolUse(ToolUse {
            id: block.required_string("id")?,
            name: block.required_string("name")?,
            arguments: block.take("input").map_or_else(String::new, |input| input.to_string()),
            signature: None,
            cache: read_cache(&mut block)?,
        }),
        "tool_result" => {
            let cache = read_cache(&mut block)?;
            Part::ToolResult(ToolResult {
                id: block.required_string("tool_use_id")?,
                name: None,
                parts: read_content(block.take("content"), &path.field("content"))?,
                is_error: block.boolean("is_error")?.unwrap_or(false),
                cache,
            })
        }
        _ => Part::Native(NativeValue::new(WireFormat::Messages, block.into_value())),
    })
}

/// The media, or the whole block back where its source is not one that other formats have.
fn read_media(mut block: Fields<'_>) -> Result<Result<Media, Value>, CodecError> {
    let path = block.path;
    let inner = path.field("source");
    let kind = match block.take("source") {
        Some(source) => Fields::new(source, inner)?,
        None => return Err(inner.problem("is missing")),
    };
    let mut source = kind;
    let media_source = match source.peek_str("type").unwrap_or_default() {
        "base64" => MediaSource::Base64(source.required_string("data")?),
        "text" => MediaSource::Text(source.required_string("data")?),
        "url" => MediaSource::Url(source.required_string("url")?),
        "file" => MediaSource::FileId(source.required_string("file_id")?),
        _ => {
            let mut whole = block.rest();
            whole.insert("source".into(), source.into_value());
            return Ok(Err(Value::Object(whole)));
        }
    };
    let mut media = Media::new(media_source, source.string("media_type")?);
    media.name = block.string("title")?;
    media.context = block.string("context")?;
    media.is_citable = block.inner("citations").boolean("enabled")?;
    media.cache = read_cache(&mut block)?;
    Ok(Ok(media))
}

pub(super) fn read_cache(fields: &mut Fields<'_>) -> Result<Option<CacheControl>, CodecError> {
    let path = fields.path;
    let Some(object) = fields.object("cache_control")? else { return Ok(None) };
    let mut cache = Fields::from_map(object, path.field("cache_control"));
    Ok(Some(CacheControl { ttl: cache.string("ttl")? }))
}
