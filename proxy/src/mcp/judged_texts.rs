//! Where messages say something that guardrails judge, whatever kind of message it is: of a client the arguments of calls and
//! every parameter of other requests, notifications and answers; of a server results, errors and the parameters of its own
//! requests and notifications. What is found and what is replaced is walked in one order, so the two cannot differ.

use super::client_message::Asked;
use bytes::Bytes;
use serde_json::{Map, Value};
use std::collections::HashMap;

/// More texts than checks look at (`TextPlaces`), by one: so they say that there were too many.
const MAX_TEXTS: usize = 10_001;
/// Shorter numbers say nothing that anybody looks for.
const MIN_NUMBER: usize = 7;
/// Tokens that one side made for the other to repeat.
const TOKENS: [&str; 5] = ["progressToken", "requestId", "taskId", "nextCursor", "cursor"];
const MAX_TOKEN_LENGTH: usize = 128;
/// Words of the protocol itself.
const PROTOCOL_WORDS: [&str; 9] =
    ["text", "image", "audio", "resource", "resource_link", "tool_use", "tool_result", "user", "assistant"];
/// Below these names objects are the server's own: the names of their fields are texts, too.
const FREE_OBJECTS: [&str; 4] = ["structuredContent", "_meta", "data", "input"];

/// The texts of a server's message.
pub struct AnswerTexts {
    message: Value,
    pub texts: Vec<String>,
}

impl AnswerTexts {
    pub fn find(message: Value) -> Self {
        let mut texts = Vec::new();
        let message = walk_message(message, &mut |text: String| {
            if texts.len() < MAX_TEXTS {
                texts.push(text.clone());
            }
            text
        });
        Self { message, texts }
    }

    /// The message with other texts in their places; those beyond the list stay.
    pub fn with(self, texts: Vec<String>) -> Bytes {
        let mut texts = texts.into_iter();
        let message = walk_message(self.message, &mut |text| texts.next().unwrap_or(text));
        Bytes::from(message.to_string())
    }
}

fn walk_message(mut message: Value, replace: &mut impl FnMut(String) -> String) -> Value {
    let mut walk = Walk { replace, names: HashMap::new() };
    for name in ["result", "error", "params"] {
        if let Some(place) = message.get_mut(name) {
            *place = walk.value(std::mem::take(place), name, false);
        }
    }
    message
}

struct Walk<'f, F> {
    replace: &'f mut F,
    /// Names of fields are judged once, however often a table repeats them.
    names: HashMap<String, String>,
}

impl<F: FnMut(String) -> String> Walk<'_, F> {
    /// `is_free`: inside of an object whose form the protocol does not know.
    fn value(&mut self, value: Value, name: &str, is_free: bool) -> Value {
        match value {
            Value::String(text) if is_prose(&text, name, is_free) => Value::String((self.replace)(text)),
            Value::Number(number) if number.to_string().len() >= MIN_NUMBER => {
                let text = number.to_string();
                match (self.replace)(text.clone()) {
                    same if same == text => Value::Number(number),
                    other => Value::String(other),
                }
            }
            Value::Array(items) => items.into_iter().map(|item| self.value(item, name, is_free)).collect(),
            Value::Object(fields) => Value::Object(self.object(fields, name, is_free)),
            other => other,
        }
    }

    fn object(&mut self, fields: Map<String, Value>, name: &str, is_free: bool) -> Map<String, Value> {
        let is_free = is_free || FREE_OBJECTS.contains(&name);
        let is_media = matches!(fields.get("type").and_then(Value::as_str), Some("image" | "audio"));
        let is_media = is_media || (fields.contains_key("uri") && fields.contains_key("blob"));
        let mut walked = Map::new();
        for (field, value) in fields {
            let value = match &value {
                Value::String(text) if !is_free && is_media && is_encoded(&field, text) => value,
                _ => self.value(value, &field, is_free),
            };
            let field = if is_free { self.name(field) } else { field };
            walked.insert(field, value);
        }
        walked
    }

    fn name(&mut self, field: String) -> String {
        if let Some(known) = self.names.get(&field) {
            return known.clone();
        }
        let other = (self.replace)(field.clone());
        self.names.insert(field, other.clone());
        other
    }
}

/// Whether a text says something: neither a word of the protocol nor a token that is only repeated.
fn is_prose(text: &str, name: &str, is_free: bool) -> bool {
    let is_token = TOKENS.contains(&name) && text.len() <= MAX_TOKEN_LENGTH;
    let is_word = ["type", "role", "audience"].contains(&name) && PROTOCOL_WORDS.contains(&text);
    !text.is_empty() && !is_token && (is_free || !is_word)
}

/// The bytes of a picture or a sound, which are no text.
fn is_encoded(field: &str, text: &str) -> bool {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=-_\r\n".contains(&byte);
    ["data", "blob"].contains(&field) && text.bytes().all(is_base64)
}

/// The texts of a client's message: each judged parameter as JSON, which some checks read, and beside it the texts inside
/// that JSON writes otherwise than they are (line breaks, quotes), as what they are.
pub struct SentTexts {
    message: Value,
    parts: Vec<Part>,
}

struct Part {
    text: String,
    place: Place,
}

enum Place {
    /// The parameter at this pointer, as JSON.
    Json(String),
    /// The text at this pointer.
    Text(String),
    /// The name of a field, which cannot be replaced.
    Name,
}

impl SentTexts {
    pub fn find(message: Value, asked: &Asked) -> Self {
        let mut found = Self { parts: Vec::new(), message: Value::Null };
        for place in judged_places(&message, asked) {
            match message.pointer(&place) {
                Some(Value::String(text)) => found.push(text, Place::Text(place)),
                Some(value) => {
                    found.push(&value.to_string(), Place::Json(place.clone()));
                    found.inside(value, &place);
                }
                None => {}
            }
        }
        found.message = message;
        found
    }

    pub fn texts(&self) -> impl ExactSizeIterator<Item = &str> {
        self.parts.iter().map(|part| part.text.as_str())
    }

    /// The message with other texts in their places. None for what cannot be written back.
    pub fn with(mut self, texts: &[String]) -> Option<Bytes> {
        let changed: Vec<_> = self.parts.iter().zip(texts).filter(|(part, text)| part.text != **text).collect();
        for (part, text) in &changed {
            if let Place::Json(place) = &part.place {
                let slot = self.message.pointer_mut(place)?;
                let value: Value = serde_json::from_str(text).ok()?;
                (value.is_object() == slot.is_object() && value.is_array() == slot.is_array()).then_some(())?;
                *slot = value;
            }
        }
        for (part, text) in &changed {
            match &part.place {
                Place::Json(_) => {}
                Place::Text(place) => *self.message.pointer_mut(place)? = Value::String((*text).clone()),
                Place::Name => return None,
            }
        }
        Some(Bytes::from(self.message.to_string()))
    }

    fn push(&mut self, text: &str, place: Place) {
        if self.parts.len() < MAX_TEXTS && !text.is_empty() {
            self.parts.push(Part { text: text.to_owned(), place });
        }
    }

    fn inside(&mut self, value: &Value, at: &str) {
        let is_escaped = |text: &str| text.bytes().any(|byte| byte < b' ' || matches!(byte, b'"' | b'\\'));
        match value {
            Value::String(text) if is_escaped(text) => self.push(text, Place::Text(at.to_owned())),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.inside(item, &format!("{at}/{index}"));
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    if is_escaped(name) {
                        self.push(name, Place::Name);
                    }
                    self.inside(value, &pointer(at, name));
                }
            }
            _ => {}
        }
    }
}

/// Which parameters of a message are judged, as JSON pointers. What a client says to open a session, or to ask for lists,
/// is nobody's text.
fn judged_places(message: &Value, asked: &Asked) -> Vec<String> {
    match asked {
        Asked::Initialize | Asked::List(_) | Asked::Ping | Asked::Invalid(_) => return Vec::new(),
        Asked::Answer => return vec!["/result".to_owned(), "/error".to_owned()],
        _ => {}
    }
    let params = match message.get("params") {
        Some(Value::Object(params)) => params,
        Some(_) => return vec!["/params".to_owned()],
        None => return Vec::new(),
    };
    let is_call = asked.call().is_some();
    // Checks that read JSON find the arguments first.
    let mut names: Vec<&String> =
        params.iter().filter(|(name, value)| is_judged(name, value, is_call)).map(|(name, _)| name).collect();
    names.sort_by_key(|name| !matches!(name.as_str(), "arguments" | "uri"));
    names.into_iter().map(|name| pointer("/params", name)).collect()
}

fn is_judged(name: &str, value: &Value, is_call: bool) -> bool {
    let is_token = |value: &Value| match value {
        Value::String(text) => text.len() <= MAX_TOKEN_LENGTH,
        value => value.is_number(),
    };
    match name {
        // Which tool it is was judged before.
        "name" => !is_call,
        "_meta" => value
            .as_object()
            .is_none_or(|meta| meta.iter().any(|(name, value)| name != "progressToken" || !is_token(value))),
        name if TOKENS.contains(&name) => !is_token(value),
        _ => true,
    }
}

fn pointer(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use shared::mcp::Kind;

    #[test]
    fn every_text_of_a_servers_message_is_found_wherever_it_stands() {
        for (message, expected) in [
            (
                json!({ "result": { "content": [{ "type": "text", "text": "a" }, { "type": "image", "data": "eA==", "mimeType": "b" }] } }),
                vec!["a", "b"],
            ),
            (json!({ "result": { "content": [{ "type": "image", "data": "plain text" }] } }), vec!["plain text"]),
            (
                json!({ "result": { "content": [{ "type": "resource", "resource": { "uri": "u", "text": "b" } }] } }),
                vec!["u", "b"],
            ),
            (json!({ "result": { "contents": [{ "uri": "u", "blob": "eA==" }] } }), vec!["u"]),
            (
                json!({ "result": { "messages": [{ "role": "user", "content": { "type": "text", "text": "c" } }] } }),
                vec!["c"],
            ),
            (
                json!({ "result": { "content": [{ "type": "resource_link", "name": "n", "description": "d" }] } }),
                vec!["n", "d"],
            ),
            (
                json!({ "result": { "structuredContent": { "x": ["e", 7, 4111111111111111_u64] } } }),
                vec!["e", "4111111111111111", "x"],
            ),
            (json!({ "result": { "structuredContent": [{ "x": "1" }, { "x": "2" }] } }), vec!["1", "x", "2"]),
            (json!({ "result": { "_meta": { "note": "f" } } }), vec!["f", "note"]),
            (json!({ "result": { "completion": { "values": ["g"] } } }), vec!["g"]),
            (json!({ "result": { "task": { "taskId": "t", "statusMessage": "h" } } }), vec!["h"]),
            (json!({ "error": { "code": 1, "message": "m", "data": { "why": "i" } } }), vec!["m", "i", "why"]),
            (json!({ "id": 1, "method": "sampling/createMessage", "params": { "systemPrompt": "j" } }), vec!["j"]),
            (
                json!({ "id": 1, "method": "elicitation/create", "params": { "message": "k", "requestedSchema": { "properties": { "p": { "description": "l" } } } } }),
                vec!["k", "l"],
            ),
            (
                json!({ "method": "notifications/progress", "params": { "progressToken": "t", "progress": 1, "message": "o" } }),
                vec!["o"],
            ),
            (json!({ "result": {} }), vec![]),
            (json!({ "result": 7 }), vec![]),
        ] {
            let found = AnswerTexts::find(message.clone());
            assert_eq!(found.texts, expected, "{message}");
            let same = found.texts.clone();
            assert_eq!(serde_json::from_slice::<Value>(&found.with(same)).unwrap(), message);
            let found = AnswerTexts::find(message.clone());
            let covered = found.texts.iter().map(|_| "#".to_owned()).collect();
            let written = found.with(covered);
            let left = AnswerTexts::find(serde_json::from_slice(&written).unwrap()).texts;
            assert!(left.iter().all(|text| text == "#"), "{message}: {left:?}");
        }
    }

    #[test]
    fn every_parameter_of_a_clients_message_is_found_and_what_is_escaped_is_found_as_it_is() {
        let request = |params: Value| json!({ "id": 1, "method": "m", "params": params });
        let tool = || Asked::Tool("t".to_owned());
        for (message, asked, expected) in [
            (request(json!({ "name": "t", "arguments": { "q": "a" } })), tool(), vec![r#"{"q":"a"}"#]),
            (request(json!({ "name": "t", "arguments": { "q": "a\n4" } })), tool(), vec![r#"{"q":"a\n4"}"#, "a\n4"]),
            (
                request(json!({ "_meta": { "x": "b" }, "name": "t", "arguments": { "n": 1 } })),
                tool(),
                vec![r#"{"n":1}"#, r#"{"x":"b"}"#],
            ),
            (request(json!({ "name": "t", "_meta": { "progressToken": 7 } })), tool(), vec![]),
            (request(json!({ "uri": "a://b" })), Asked::Resource("a://b".into()), vec!["a://b"]),
            (
                request(json!({ "argument": { "value": "c" } })),
                Asked::About(Kind::Prompt, "p".into()),
                vec![r#"{"value":"c"}"#],
            ),
            (request(json!({ "name": "n" })), Asked::Other, vec!["n"]),
            (request(json!(["d"])), Asked::Other, vec![r#"["d"]"#]),
            (
                json!({ "id": 1, "result": { "content": { "text": "e" } } }),
                Asked::Answer,
                vec![r#"{"content":{"text":"e"}}"#],
            ),
            (json!({ "id": 1, "error": { "message": "f" } }), Asked::Answer, vec![r#"{"message":"f"}"#]),
            (request(json!({ "clientInfo": { "name": "x" } })), Asked::Initialize, vec![]),
        ] {
            let found = SentTexts::find(message.clone(), &asked);
            assert_eq!(found.texts().collect::<Vec<_>>(), expected, "{message}");
            let same: Vec<String> = found.texts().map(str::to_owned).collect();
            let written = found.with(&same).unwrap();
            assert_eq!(serde_json::from_slice::<Value>(&written).unwrap(), message);
        }
    }

    #[test]
    fn what_a_guardrail_changed_is_what_is_sent() {
        let message = json!({ "params": { "name": "t", "arguments": { "q": "a\n4", "r": "b" } } });
        let change = |texts: [&str; 2]| {
            let found = SentTexts::find(message.clone(), &Asked::Tool("t".into()));
            let written = found.with(&texts.map(str::to_owned))?;
            Some(serde_json::from_slice::<Value>(&written).unwrap()["params"]["arguments"].clone())
        };
        let same = r#"{"q":"a\n4","r":"b"}"#;
        for (texts, expected) in [
            ([r#"{"q":"a\n4","r":"*"}"#, "a\n4"], Some(json!({ "q": "a\n4", "r": "*" }))),
            ([same, "a\n#"], Some(json!({ "q": "a\n#", "r": "b" }))),
            ([r#"{"q":"a\n4","r":"*"}"#, "#"], Some(json!({ "q": "#", "r": "*" }))),
            (["no JSON", "a\n4"], None),
            (["7", "a\n4"], None),
        ] {
            assert_eq!(change(texts), expected, "{texts:?}");
        }
    }
}
