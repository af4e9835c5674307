//! Sources of statements. Each vendor's object is kept whole for its own format; the address, the title and the place
//! in the text are understood and become OpenAI's `url_citation` elsewhere.

use super::json_writer::JsonWriter;
use crate::wire::conversation::{Citation, NativeValue, WireFormat};
use serde_json::{Map, Value};

fn text(map: &Map<String, Value>, name: &str) -> Option<String> {
    map.get(name).and_then(Value::as_str).map(str::to_owned)
}

fn place(map: &Map<String, Value>, name: &str) -> Option<u64> {
    map.get(name).and_then(Value::as_u64)
}

/// `{type: url_citation, url_citation: {…}}` of chat, or the flat form of responses.
pub(super) fn from_openai(value: Value, format: WireFormat) -> Citation {
    let empty = Map::new();
    let outer = value.as_object().unwrap_or(&empty);
    let inner = outer.get("url_citation").and_then(Value::as_object).unwrap_or(outer);
    Citation {
        url: text(inner, "url"),
        title: text(inner, "title"),
        cited_text: None,
        start: place(inner, "start_index"),
        end: place(inner, "end_index"),
        native: NativeValue::new(format, value),
    }
}

pub(super) fn from_messages(value: Value) -> Citation {
    let empty = Map::new();
    let map = value.as_object().unwrap_or(&empty);
    Citation {
        url: text(map, "url"),
        title: text(map, "title").or_else(|| text(map, "document_title")),
        cited_text: text(map, "cited_text"),
        // Places of Anthropic's citations are in the source, not in the answer.
        start: None,
        end: None,
        native: NativeValue::new(WireFormat::Messages, value),
    }
}

pub(super) fn from_cohere(value: Value) -> Citation {
    let empty = Map::new();
    let map = value.as_object().unwrap_or(&empty);
    let source = map.get("sources").and_then(Value::as_array).and_then(|list| list.first());
    let document = source.and_then(|source| source.get("document")).and_then(Value::as_object).unwrap_or(&empty);
    Citation {
        url: text(document, "url"),
        title: text(document, "title"),
        cited_text: text(map, "text"),
        start: place(map, "start"),
        end: place(map, "end"),
        native: NativeValue::new(WireFormat::Cohere, value),
    }
}

/// `citationMetadata.citationSources[]` of Gemini.
pub(super) fn from_gemini(value: Value) -> Citation {
    let empty = Map::new();
    let map = value.as_object().unwrap_or(&empty);
    Citation {
        url: text(map, "uri"),
        title: text(map, "title"),
        cited_text: None,
        start: place(map, "startIndex"),
        end: place(map, "endIndex"),
        native: NativeValue::new(WireFormat::Gemini, value),
    }
}

pub(super) fn from_converse(value: Value) -> Citation {
    let empty = Map::new();
    let map = value.as_object().unwrap_or(&empty);
    let web = map.get("location").and_then(|location| location.get("web")).and_then(Value::as_object);
    let first = map.get("sourceContent").and_then(Value::as_array).and_then(|list| list.first());
    Citation {
        url: web.and_then(|web| text(web, "url")),
        title: text(map, "title"),
        cited_text: first.and_then(|content| content.get("text")).and_then(Value::as_str).map(str::to_owned),
        start: None,
        end: None,
        native: NativeValue::new(WireFormat::Converse, value),
    }
}

/// An annotation of chat (nested) or of responses (flat). Sources without an address cannot be said there.
pub(super) fn write_openai(w: &mut JsonWriter<'_>, citation: &Citation, format: WireFormat) {
    if let Some(own) = citation.native.in_format(format) {
        return w.value(own);
    }
    let Some(url) = &citation.url else { return };
    w.open_object();
    w.string_field("type", "url_citation");
    if format == WireFormat::Chat {
        w.object_field("url_citation");
    }
    w.integer_field("start_index", citation.start.unwrap_or(0));
    w.integer_field("end_index", citation.end.unwrap_or(0));
    w.string_field("title", citation.title.as_deref().unwrap_or(""));
    w.string_field("url", url);
    if format == WireFormat::Chat {
        w.close_object();
    }
    w.close_object();
}

pub(super) fn is_writable_openai(citation: &Citation, format: WireFormat) -> bool {
    citation.url.is_some() || citation.native.format == format
}

/// The vendor's own objects, for the format they came from.
pub(super) fn own(citations: &[Citation], format: WireFormat) -> impl Iterator<Item = &Value> {
    citations.iter().filter_map(move |citation| citation.native.in_format(format))
}
