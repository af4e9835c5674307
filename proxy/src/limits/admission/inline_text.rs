//! Whether the whole input of a request is text inside the request itself. Images, sounds and files are not counted by
//! their bytes, and what an id, a URL or a search refers to cannot be measured here.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Kinds of parts of messages and of items that are text, or calls of tools and what came of them.
const TEXT: &[&str] = &[
    "text",
    "input_text",
    "output_text",
    "refusal",
    "message",
    "thinking",
    "redacted_thinking",
    "tool_use",
    "tool_result",
    "function_call",
    "function_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
];

/// Names under which a message or a part has something else than text, whatever kind it says it is.
const NOT_TEXT: &[&str] = &[
    "image",
    "image_url",
    "audio",
    "audio_url",
    "input_audio",
    "video",
    "video_url",
    "file",
    "file_id",
    "file_url",
    "file_data",
    "fileData",
    "inline_data",
    "inlineData",
    "source",
    "document",
];

/// Fields of a request that make the provider read, search or write more than the request says.
const ELSEWHERE: &[&str] = &[
    "previous_response_id",
    "conversation",
    "web_search_options",
    "search_parameters",
    "enable_search",
    "data_sources",
    "plugins",
    "connectors",
    "mcp_servers",
    "container",
    "attachments",
    "file_ids",
    "thread_id",
    "assistant_id",
    "tool_resources",
    // Of this the provider also bills what it did not use.
    "prediction",
    // An answer that is spoken has prices of its own.
    "audio",
];

/// The messages or the input of a request. What cannot be read is not.
pub fn is_inline(json: &[u8]) -> bool {
    serde_json::from_slice::<Inline>(json).is_ok_and(|inline| inline.0)
}

/// Any other field.
pub fn refers_elsewhere(key: &str, json: &[u8]) -> bool {
    match key {
        "tools" => !serde_json::from_slice::<Vec<Tool<'_>>>(json).is_ok_and(|tools| tools.iter().all(Tool::is_callers)),
        "modalities" => {
            !serde_json::from_slice::<Vec<Cow<'_, str>>>(json).is_ok_and(|all| all.iter().all(|one| one == "text"))
        }
        key => ELSEWHERE.contains(&key) && json != b"false",
    }
}

/// A tool that the caller runs has no kind, or one of two; those of providers read what they like.
struct Tool<'t> {
    kind: Option<Cow<'t, str>>,
}

impl Tool<'_> {
    fn is_callers(&self) -> bool {
        self.kind.as_deref().is_none_or(|kind| matches!(kind, "function" | "custom"))
    }
}

impl<'de: 't, 't> Deserialize<'de> for Tool<'t> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(serde::Deserialize)]
        struct Named<'n> {
            #[serde(rename = "type", borrow, default)]
            kind: Option<Cow<'n, str>>,
        }
        Named::deserialize(deserializer).map(|named| Self { kind: named.kind })
    }
}

/// Whether a value is text, or made of parts that all are.
struct Inline(bool);

impl<'de> Deserialize<'de> for Inline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(InlineVisitor)
    }
}

struct InlineVisitor;

impl<'de> Visitor<'de> for InlineVisitor {
    type Value = Inline;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or its parts")
    }

    fn visit_str<E>(self, _: &str) -> Result<Inline, E> {
        Ok(Inline(true))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Inline, E> {
        Ok(Inline(true))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Inline, E> {
        Ok(Inline(true))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Inline, E> {
        Ok(Inline(true))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Inline, E> {
        Ok(Inline(true))
    }

    fn visit_unit<E>(self) -> Result<Inline, E> {
        Ok(Inline(true))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Inline, A::Error> {
        let mut is_inline = true;
        while let Some(Inline(one)) = items.next_element()? {
            is_inline &= one;
        }
        Ok(Inline(is_inline))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Inline, A::Error> {
        let mut is_inline = true;
        while let Some(name) = fields.next_key::<Cow<'de, str>>()? {
            is_inline &= match &*name {
                "type" => TEXT.contains(&&*fields.next_value::<Cow<'de, str>>()?),
                "content" | "output" | "parts" | "toolResult" => fields.next_value::<Inline>()?.0,
                name if NOT_TEXT.contains(&name) => fields.next_value::<Option<IgnoredAny>>()?.is_none(),
                _ => {
                    fields.next_value::<IgnoredAny>()?;
                    true
                }
            };
        }
        Ok(Inline(is_inline))
    }
}
