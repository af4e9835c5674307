//! `content_blocks` (contract 7.0): everything an answer holds, thinking with its signature included, beside OpenAI's
//! `content`. Callers who want to go on send it back unchanged. Outside strict mode only.

use crate::wire::codecs::data_url::data_url;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::conversation::{MediaSource, Part, Signer};

pub(super) fn is_needed(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Thinking(_) | Part::RedactedThinking(_) | Part::Image(_)))
}

pub(super) fn write(w: &mut JsonWriter<'_>, parts: &[Part]) {
    w.array_field("content_blocks");
    for part in parts {
        match part {
            Part::Text(text) => {
                w.open_object();
                w.string_field("type", "text");
                w.string_field("text", &text.text);
                w.close_object();
            }
            Part::Thinking(thinking) => {
                w.open_object();
                w.string_field("type", "thinking");
                w.string_field("thinking", &thinking.text);
                let signature = thinking.signature.as_ref().and_then(|signature| signature.by(Signer::Anthropic));
                w.optional_string("signature", signature);
                w.close_object();
            }
            Part::RedactedThinking(sealed) if sealed.signer == Signer::Anthropic => {
                w.open_object();
                w.string_field("type", "redacted_thinking");
                w.string_field("data", &sealed.value);
                w.close_object();
            }
            Part::Image(image) => {
                w.open_object();
                w.string_field("type", "image_url");
                w.object_field("image_url");
                match &image.source {
                    MediaSource::Base64(data) => {
                        w.string_field("url", &data_url(image.media_type.as_deref().unwrap_or("image/png"), data));
                    }
                    MediaSource::Url(url) | MediaSource::FileId(url) | MediaSource::Text(url) => {
                        w.string_field("url", url);
                    }
                }
                w.close_object();
                w.close_object();
            }
            _ => {}
        }
    }
    w.close_array();
}
