//! Every text of a body, wherever it stands: what a check that looks for something forbidden must see. A body is structure that
//! the provider defines (`type`, `role`, ids, encoded files), which says nothing, and inside of it parts that are the caller's own
//! in every word: arguments of tools, schemas, documents, metadata. There even names and long numbers are texts.

use super::TextPlaces;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Structure,
    /// The caller's own in every word.
    Free,
}

/// Fields whose objects and lists are the caller's own. `input` is only where it is an object: the arguments of a tool.
const FREE: &[&str] = &[
    "action",
    "arguments",
    "args",
    "documents",
    "input",
    "inputSchema",
    "input_schema",
    "json",
    "metadata",
    "operation",
    "parameters",
    "promptVariables",
    "response",
    "responseSchema",
    "response_schema",
    "schema",
    "variables",
];

/// Fields of which a single word says nothing: one of a list that the provider defines.
const KEYWORDS: &[&str] = &[
    "background",
    "detail",
    "effort",
    "encoding_format",
    "finish_reason",
    "format",
    "include",
    "input_type",
    "media_type",
    "mimeType",
    "mime_type",
    "modalities",
    "mode",
    "moderation",
    "object",
    "output_format",
    "quality",
    "reasoning_effort",
    "response_format",
    "role",
    "service_tier",
    "size",
    "status",
    "stop_reason",
    "style",
    "tool_choice",
    "truncate",
    "truncation",
    "type",
    "verbosity",
    "voice",
];

/// Names of things, and what only their maker can read.
const HANDLES: &[&str] = &[
    "call_id",
    "encrypted_content",
    "file_id",
    "id",
    "item_id",
    "previous_response_id",
    "prompt_cache_key",
    "redacted_thinking",
    "response_id",
    "signature",
    "thoughtSignature",
    "thought_signature",
    "toolUseId",
    "tool_call_id",
    "tool_use_id",
];

/// Words of JSON Schema: in a schema they are no texts.
const SCHEMA_WORDS: &[&str] = &[
    "$defs",
    "$ref",
    "$schema",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "default",
    "definitions",
    "description",
    "enum",
    "examples",
    "format",
    "items",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "nullable",
    "oneOf",
    "pattern",
    "properties",
    "propertyOrdering",
    "required",
    "strict",
    "title",
    "type",
    "uniqueItems",
];

const SCHEMA_TYPES: &[&str] = &["array", "boolean", "integer", "null", "number", "object", "string"];

/// Shorter numbers are nobody's card or account.
const LONG_NUMBER: usize = 9;
const MAX_KEYWORD_LENGTH: usize = 64;
/// Of what only its maker can read; a handle is shorter.
const MAX_HANDLE_LENGTH: usize = 256;

impl TextPlaces {
    /// Of a whole body.
    pub(super) fn every_text(&mut self, json: &Value) {
        let Some(fields) = json.as_object() else { return self.walk(json, &mut String::new(), "", Part::Structure) };
        for (key, value) in fields {
            // It says which model is asked, and is judged by checks of its own.
            if key != "model" || !value.is_string() {
                self.field(key, value, fields, &mut String::new(), Part::Structure);
            }
        }
    }

    /// Of a part of one.
    pub(super) fn every_text_at(&mut self, part: Option<&Value>, at: &str) {
        if let Some(part) = part {
            self.walk(part, &mut at.to_owned(), "", Part::Structure);
        }
    }

    fn field(&mut self, key: &str, value: &Value, siblings: &Map<String, Value>, at: &mut String, part: Part) {
        if part == Part::Structure && is_encoded(key, value, siblings) {
            return;
        }
        if part == Part::Free && !SCHEMA_WORDS.contains(&key) {
            self.name(key);
        }
        let inside = if is_own_part(key, value) { Part::Free } else { part };
        let length = at.len();
        at.push('/');
        match key.contains(['~', '/']) {
            true => at.push_str(&key.replace('~', "~0").replace('/', "~1")),
            false => at.push_str(key),
        }
        self.walk(value, at, key, inside);
        at.truncate(length);
    }

    /// `key` is the field that the value stands in, or the list of it.
    fn walk(&mut self, value: &Value, at: &mut String, key: &str, part: Part) {
        match value {
            Value::String(text) if says_nothing(key, text, part) => {}
            Value::String(_) => self.text_at(Some(value), at),
            Value::Array(items) => {
                let length = at.len();
                for (index, item) in items.iter().enumerate() {
                    at.push('/');
                    at.push_str(&index.to_string());
                    self.walk(item, at, key, part);
                    at.truncate(length);
                }
            }
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.field(key, value, fields, at, part)),
            Value::Number(number) if part == Part::Free => {
                let written = number.to_string();
                if written.len() >= LONG_NUMBER {
                    self.name(&written);
                }
            }
            Value::Number(_) | Value::Bool(_) | Value::Null => {}
        }
    }
}

/// Whether a field's value is the caller's own in every word.
pub(super) fn is_own_part(key: &str, value: &Value) -> bool {
    match key {
        "input" | "response" => value.is_object(),
        _ => FREE.contains(&key) && !value.is_string(),
    }
}

fn says_nothing(key: &str, text: &str, part: Part) -> bool {
    match part {
        Part::Free => key == "type" && SCHEMA_TYPES.contains(&text),
        Part::Structure if KEYWORDS.contains(&key) => is_word(text),
        Part::Structure if HANDLES.contains(&key) => {
            let is_sealed = matches!(key, "encrypted_content" | "signature" | "thoughtSignature" | "thought_signature");
            (is_sealed || text.len() <= MAX_HANDLE_LENGTH) && !text.contains(char::is_whitespace)
        }
        Part::Structure => false,
    }
}

fn is_word(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/' | b'+');
    text.len() <= MAX_KEYWORD_LENGTH && !text.contains("://") && text.bytes().all(is_part)
}

/// Whether a field is a file in letters: an image, a sound, a document.
fn is_encoded(key: &str, value: &Value, siblings: &Map<String, Value>) -> bool {
    let Some(text) = value.as_str() else { return false };
    let has = |name: &str| siblings.get(name).is_some_and(Value::is_string);
    let is_named = match key {
        "b64_json" | "bytes" | "file_data" | "partial_image_b64" => true,
        "data" => {
            let is_base64 = siblings.get("type").and_then(Value::as_str) == Some("base64");
            is_base64 || ["mimeType", "mime_type", "format", "media_type"].into_iter().any(has) && !is_plain(siblings)
        }
        _ => text.starts_with("data:") && text.get(..256.min(text.len())).is_some_and(|head| head.contains(";base64,")),
    };
    // What has blanks in it is no such file.
    is_named && !text.bytes().take(4096).any(|byte| byte == b' ')
}

/// A document that is written out has its text where others have their file.
fn is_plain(siblings: &Map<String, Value>) -> bool {
    siblings.get("type").and_then(Value::as_str) == Some("text")
}

#[cfg(test)]
mod tests {
    use crate::guardrails::{Hook, Scope, Shape, TextPlaces};
    use serde_json::{Value, json};

    fn judged(shape: Shape, hook: Hook, body: &Value) -> String {
        TextPlaces::find(body, shape, hook, Scope::All).searched_text(body).into_owned()
    }

    #[test]
    fn every_place_of_a_request_where_a_text_can_stand_is_judged() {
        let chat = |field: &str, value: Value| {
            let mut body = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
            body[field] = value;
            (Shape::Chat, body)
        };
        let message =
            |message: Value| (Shape::Chat, json!({ "messages": [message, { "role": "user", "content": "hi" }] }));
        let block = |block: Value| (Shape::Messages, json!({ "messages": [{ "role": "user", "content": [block] }] }));
        let item = |item: Value| (Shape::Responses, json!({ "input": [item, { "role": "user", "content": "hi" }] }));
        let schema =
            json!({ "type": "object", "properties": { "a": { "type": "string", "description": "forbidden" } } });
        let named = json!({ "type": "object", "properties": { "forbidden": { "type": "string" } } });
        let mut places = vec![
            chat("system", json!("forbidden")),
            chat("prediction", json!({ "type": "content", "content": "forbidden" })),
            chat("response_format", json!({ "type": "json_schema", "json_schema": { "name": "n", "schema": schema } })),
            chat("user", json!("forbidden")),
            chat("stop", json!(["forbidden"])),
            chat("Messages", json!([{ "role": "user", "content": "forbidden" }])),
            chat("unheard_of", json!({ "deep": [{ "er": "forbidden" }] })),
            chat("metadata", json!({ "forbidden": "x" })),
            chat("web_search_options", json!({ "user_location": { "approximate": { "city": "forbidden" } } })),
            message(json!({ "role": "system", "content": "forbidden" })),
            message(json!({ "role": "user", "content": { "text": "forbidden" } })),
            message(json!({ "role": "assistant", "reasoning_content": "forbidden" })),
            message(json!({ "role": "assistant", "audio": { "transcript": "forbidden" } })),
            message(json!({ "role": "user", "name": "forbidden", "content": "x" })),
            message(json!({ "role": "user", "content": [{ "type": "file", "file": { "filename": "forbidden" } }] })),
            message(
                json!({ "role": "user", "content": [{ "type": "image_url", "image_url": { "url": "https://a/forbidden" } }] }),
            ),
            block(json!({ "type": "thinking", "thinking": "forbidden", "signature": "s" })),
            block(json!({ "type": "server_tool_use", "input": { "query": "forbidden" } })),
            block(json!({ "type": "mcp_tool_use", "input": { "forbidden": 1 } })),
            block(json!({ "type": "mcp_tool_result", "content": [{ "type": "text", "text": "forbidden" }] })),
            block(
                json!({ "type": "document", "source": { "type": "text", "media_type": "text/plain", "data": "forbidden" } }),
            ),
            block(json!({ "type": "web_search_tool_result", "content": [{ "title": "forbidden" }] })),
            item(json!({ "type": "reasoning", "summary": [{ "type": "summary_text", "text": "forbidden" }] })),
            item(json!({ "type": "file_search_call", "results": [{ "text": "forbidden" }] })),
            (Shape::Responses, json!({ "prompt": { "id": "p", "variables": { "a": "forbidden" } }, "input": "hi" })),
            (Shape::Responses, json!({ "instructions": "forbidden", "input": "hi" })),
            (Shape::Completions, json!({ "prompt": "hi", "suffix": "forbidden" })),
            (Shape::Embeddings, json!({ "input": ["hi", "forbidden"] })),
            (Shape::Gemini, json!({ "systemInstruction": { "parts": [{ "text": "forbidden" }] }, "contents": [] })),
            (
                Shape::Gemini,
                json!({ "contents": [], "tools": [{ "functionDeclarations": [{ "description": "forbidden" }] }] }),
            ),
            (Shape::Gemini, json!({ "contents": [], "generationConfig": { "responseSchema": schema } })),
            (Shape::Converse, json!({ "messages": [], "system": [{ "text": "forbidden" }] })),
            (
                Shape::Converse,
                json!({ "messages": [], "toolConfig": { "tools": [{ "toolSpec": { "inputSchema": { "json": schema } } }] } }),
            ),
            (Shape::Converse, json!({ "messages": [], "promptVariables": { "a": { "text": "forbidden" } } })),
            (Shape::Other, json!({ "prompt": "forbidden", "size": "1024x1024" })),
            (Shape::Other, json!({ "input": "forbidden", "voice": "alloy" })),
            (Shape::Other, json!({ "input": "hi", "voice": "alloy", "instructions": "forbidden" })),
            (Shape::Other, json!({ "query": "forbidden", "documents": ["x"] })),
            (Shape::Other, json!({ "query": "x", "documents": ["forbidden", { "text": "y" }] })),
            (Shape::Other, json!({ "query": "x", "documents": [{ "title": "t", "type": "forbidden" }] })),
            (Shape::Other, json!({ "input": [{ "type": "text", "text": "forbidden" }] })),
            (Shape::Other, json!({ "chat_history": [{ "role": "USER", "message": "forbidden" }], "message": "x" })),
        ];
        for schema in [&schema, &named] {
            places.push(chat(
                "tools",
                json!([{ "type": "function", "function": { "name": "f", "parameters": schema } }]),
            ));
            places.push(chat("functions", json!([{ "name": "f", "parameters": schema }])));
            places
                .push((Shape::Messages, json!({ "messages": [], "tools": [{ "name": "t", "input_schema": schema }] })));
            places.push((
                Shape::Responses,
                json!({ "input": "x", "text": { "format": { "type": "json_schema", "schema": schema } } }),
            ));
        }
        for (shape, body) in places {
            assert!(judged(shape, Hook::BeforeRequest, &body).contains("forbidden"), "{shape:?} {body}");
        }
    }

    #[test]
    fn what_the_provider_defines_is_no_text() {
        let image = format!("data:image/png;base64,{}", "A".repeat(100));
        let body = json!({
            "model": "m", "stream": true, "service_tier": "auto", "tool_choice": "auto", "previous_response_id": "resp_1",
            "messages": [
                { "role": "assistant", "tool_calls": [{ "id": "call_1", "type": "function", "function": { "arguments": "" } }] },
                { "role": "user", "content": [{ "type": "image_url", "image_url": { "url": image, "detail": "low" } },
                    { "type": "input_audio", "input_audio": { "data": "AAAA", "format": "wav" } },
                    { "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": "AAAA" } }] }],
            "tools": [{ "type": "function", "function": { "parameters": { "type": "object", "required": [], "properties": {} } } }],
        });
        assert_eq!(judged(Shape::Chat, Hook::BeforeRequest, &body).trim(), "");
        let spoken =
            json!({ "content": [{ "type": "image", "source": { "type": "base64", "data": "a text with blanks" } }] });
        assert!(judged(Shape::Other, Hook::BeforeRequest, &spoken).contains("blanks"), "it is no file");
    }

    #[test]
    fn everything_that_an_answer_says_is_judged_and_not_its_envelope() {
        let chat = |message: Value| {
            let choice = json!({ "index": 0, "finish_reason": "stop", "message": message });
            (Shape::Chat, json!({ "id": "forbidden", "object": "chat.completion", "choices": [choice] }))
        };
        let block =
            |block: Value| (Shape::Messages, json!({ "id": "forbidden", "role": "assistant", "content": [block] }));
        let item =
            |item: Value| (Shape::Responses, json!({ "id": "forbidden", "status": "completed", "output": [item] }));
        for (shape, body) in [
            chat(json!({ "role": "assistant", "content": "x" })),
            chat(json!({ "role": "assistant", "content": null, "reasoning_content": "x" })),
            chat(json!({ "role": "assistant", "reasoning": "x" })),
            chat(json!({ "reasoning_details": [{ "type": "reasoning.text", "text": "x" }] })),
            chat(json!({ "audio": { "id": "a", "data": "AAAA", "format": "wav", "transcript": "x" } })),
            chat(json!({ "tool_calls": [{ "id": "c", "type": "function", "function": { "arguments": "x" } }] })),
            block(json!({ "type": "thinking", "thinking": "x", "signature": "forbidden" })),
            block(json!({ "type": "tool_use", "id": "forbidden", "input": { "a": "x" } })),
            block(json!({ "type": "server_tool_use", "id": "forbidden", "input": { "a": "x" } })),
            item(
                json!({ "type": "reasoning", "id": "forbidden", "summary": [{ "type": "summary_text", "text": "x" }] }),
            ),
            item(json!({ "type": "code_interpreter_call", "code": "x" })),
            (
                Shape::Gemini,
                json!({ "candidates": [{ "content": { "role": "model", "parts": [{ "text": "x", "thought": true }] } }] }),
            ),
            (
                Shape::Converse,
                json!({ "output": { "message": { "content": [{ "reasoningContent": { "reasoningText": { "text": "x" } } }] } } }),
            ),
            (Shape::Completions, json!({ "choices": [{ "text": "x" }] })),
            (Shape::Other, json!({ "text": "x" })),
            (Shape::Other, json!({ "data": [{ "revised_prompt": "x", "b64_json": "AAAA" }] })),
            (Shape::Other, json!({ "results": [{ "document": { "text": "x" }, "index": 0 }] })),
            (Shape::Other, json!({ "pages": [{ "markdown": "x" }] })),
        ] {
            let said = judged(shape, Hook::AfterRequest, &body);
            assert!(said.contains('x') && !said.contains("forbidden"), "{shape:?} {body}: {said}");
        }
    }

    #[test]
    fn texts_inside_of_json_texts_are_judged_as_they_read() {
        for (arguments, expected) in [
            (r#"{"q":"card:\n4111 1111 1111 1111"}"#, "card:\n4111 1111 1111 1111"),
            (r#"{"q":"\u0066orbidden"}"#, "forbidden"),
            (r#"{"q":"{\"r\":\"a\\nforbidden\"}"}"#, "a\nforbidden"),
            (r#"{"q":"a\nforbidden","q":1"#, "a\nforbidden"),
        ] {
            let call = json!({ "type": "function", "function": { "name": "f", "arguments": arguments } });
            let body = json!({ "messages": [{ "role": "assistant", "tool_calls": [call] }] });
            assert!(judged(Shape::Chat, Hook::BeforeRequest, &body).contains(expected), "{arguments}");
        }
        let number =
            json!({ "messages": [{ "content": [{ "type": "tool_use", "input": { "card": 4111111111111111_u64 } }] }] });
        assert!(judged(Shape::Messages, Hook::BeforeRequest, &number).contains("4111111111111111"));
    }
}
