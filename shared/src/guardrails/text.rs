//! Where the texts stand in a body, by its shape. Found once as places (JSON pointers), so that what is read and what is
//! replaced cannot differ.

mod escapes;
mod every_text;
mod key_case;
mod token_texts;
mod vendor_routes;

pub use escapes::{read_escapes, with_blanks, with_readings};
pub use key_case::other_letters;
pub use token_texts::{TokenPlaces, token_places};

use super::subject::{Hook, Shape};
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Which texts of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Of a request its last message, of an answer what it says: for checks that count, edit or validate.
    Judged,
    /// All that leaves or comes back, reasoning too: for checks that look for something forbidden. In the last message alone it
    /// would be missed in the turns before, which are sent again.
    All,
}

/// Beyond this many parts a body is no conversation; the rest is not looked at, and checks say so.
const MAX_PLACES: usize = 10_000;
/// How deep parts may stand in parts.
const MAX_PART_DEPTH: usize = 8;

/// JSON pointers to texts, in the order of the body.
#[derive(Debug, Default)]
pub struct TextPlaces {
    places: Vec<String>,
    /// Texts that cannot be replaced: names and long numbers.
    names: Vec<String>,
    /// There were more than are looked at.
    pub is_cut: bool,
}

impl TextPlaces {
    pub fn find(json: &Value, shape: Shape, hook: Hook, scope: Scope) -> Self {
        let mut found = Self::default();
        match (hook, scope) {
            (Hook::BeforeRequest, Scope::All) => found.every_text(json),
            (Hook::BeforeRequest, Scope::Judged) => found.request(json, shape),
            (Hook::AfterRequest, Scope::All) => found.whole_response(json, shape),
            (Hook::AfterRequest, Scope::Judged) => found.response(json, shape),
        }
        found
    }

    /// As JSON pointers.
    pub fn pointers(&self) -> impl Iterator<Item = &str> {
        self.places.iter().map(String::as_str)
    }

    pub fn texts<'j>(&self, json: &'j Value) -> impl Iterator<Item = &'j str> {
        self.places.iter().filter_map(|place| json.pointer(place)?.as_str())
    }

    /// The parts joined by a new line.
    pub fn text<'j>(&self, json: &'j Value) -> Cow<'j, str> {
        let mut texts = self.texts(json);
        let (Some(first), second) = (texts.next(), texts.next()) else { return Cow::Borrowed("") };
        let Some(second) = second else { return Cow::Borrowed(first) };
        let mut joined = format!("{first}\n{second}");
        for text in texts {
            joined.push('\n');
            joined.push_str(text);
        }
        Cow::Owned(joined)
    }

    /// Texts that can be judged and not be replaced.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// All of them for who looks for something in them: with the names, and with JSON inside of a text as it reads.
    pub fn searched_text<'j>(&self, json: &'j Value) -> Cow<'j, str> {
        let has_escapes = self.texts(json).any(|text| text.contains('\\'));
        if !has_escapes && self.names.is_empty() {
            return self.text(json);
        }
        let mut joined = String::new();
        for text in self.texts(json).chain(self.names()) {
            if !joined.is_empty() {
                joined.push('\n');
            }
            joined.push_str(&with_readings(text));
        }
        Cow::Owned(joined)
    }

    /// The body with its texts replaced, if any was. The copy is made only then.
    pub fn replace(&self, json: &Value, mut replace: impl FnMut(&str) -> Option<String>) -> Option<Value> {
        let mut changed: Option<Value> = None;
        for place in &self.places {
            let Some(text) = json.pointer(place).and_then(Value::as_str) else { continue };
            let Some(other) = replace(text) else { continue };
            if let Some(slot) = changed.get_or_insert_with(|| json.clone()).pointer_mut(place) {
                *slot = Value::String(other);
            }
        }
        changed
    }

    fn request(&mut self, json: &Value, shape: Shape) {
        match shape {
            Shape::Chat | Shape::Messages => self.last_turn(json, "messages"),
            Shape::Responses => {
                self.text_at(json.get("input"), "/input");
                self.last_turn(json, "input");
            }
            Shape::Completions => {
                self.strings(json.get("prompt"), "/prompt");
                self.text_at(json.get("suffix"), "/suffix");
            }
            Shape::Embeddings => self.strings(json.get("input"), "/input"),
            Shape::Gemini => self.gemini_request(json),
            Shape::Converse => self.converse_request(json),
            Shape::Other | Shape::Unread => {}
        }
    }

    /// The last message of a list.
    fn last_turn(&mut self, json: &Value, list: &str) {
        let Some(turns) = json.get(list).and_then(Value::as_array) else { return };
        if let Some(turn) = turns.last() {
            self.message(turn, &format!("/{list}/{}", turns.len() - 1));
        }
    }

    /// All that an answer says, without what stands around it.
    fn whole_response(&mut self, json: &Value, shape: Shape) {
        match shape {
            Shape::Chat => self.each(json, "choices", |found, choice, at| {
                found.every_text_at(choice.get("message"), &format!("{at}/message"));
            }),
            Shape::Completions => self.response(json, shape),
            Shape::Messages => self.every_text_at(json.get("content"), "/content"),
            Shape::Responses => self.every_text_at(json.get("output"), "/output"),
            Shape::Gemini => self.each(json, "candidates", |found, candidate, at| {
                found.every_text_at(candidate.get("content"), &format!("{at}/content"));
            }),
            Shape::Converse => self.every_text_at(json.pointer("/output/message"), "/output/message"),
            Shape::Other => self.every_text(json),
            Shape::Embeddings | Shape::Unread => {}
        }
    }

    fn response(&mut self, json: &Value, shape: Shape) {
        match shape {
            Shape::Chat => self.each(json, "choices", |found, choice, at| {
                if let Some(message) = choice.get("message") {
                    found.message(message, &format!("{at}/message"));
                }
            }),
            Shape::Completions => {
                self.each(json, "choices", |found, choice, at| {
                    found.text_at(choice.get("text"), &format!("{at}/text"))
                });
            }
            Shape::Messages => self.content(json.get("content"), "/content"),
            Shape::Responses => self.each(json, "output", |found, item, at| found.message(item, at)),
            Shape::Gemini => self.each(json, "candidates", |found, candidate, at| {
                found.gemini_content(candidate.get("content"), &format!("{at}/content"));
            }),
            Shape::Converse => self.converse_response(json),
            Shape::Embeddings | Shape::Other | Shape::Unread => {}
        }
    }

    /// A turn, or an item of `/responses`: what it says, and the arguments of what it calls.
    fn message(&mut self, message: &Value, at: &str) {
        self.content(message.get("content"), &format!("{at}/content"));
        self.text_at(message.get("arguments"), &format!("{at}/arguments"));
        self.text_at(message.get("input"), &format!("{at}/input"));
        self.text_at(message.pointer("/function_call/arguments"), &format!("{at}/function_call/arguments"));
        self.strings(message.get("output"), &format!("{at}/output"));
        // What a shell shall run, and a patch change.
        for name in ["action", "operation"] {
            if let Some(asked) = message.get(name).filter(|asked| asked.is_object()) {
                self.inside(Some(asked), &format!("{at}/{name}"), 0);
            }
        }
        for (index, call) in list(message.get("tool_calls")) {
            let arguments = call.pointer("/function/arguments");
            self.text_at(arguments, &format!("{at}/tool_calls/{index}/function/arguments"));
            let input = call.pointer("/custom/input");
            self.text_at(input, &format!("{at}/tool_calls/{index}/custom/input"));
        }
    }

    /// A text, or parts of which some are texts.
    fn content(&mut self, content: Option<&Value>, at: &str) {
        self.content_inside(content, at, 0);
    }

    /// The same of parts that stand in other parts: results of tools, documents, finds of a search.
    fn content_inside(&mut self, content: Option<&Value>, at: &str, depth: usize) {
        self.text_at(content, at);
        // Deeper than any message's: not silently unseen.
        if depth > MAX_PART_DEPTH {
            self.is_cut |= content.is_some_and(Value::is_array);
            return;
        }
        for (index, part) in list(content) {
            let at = format!("{at}/{index}");
            self.text_at(part.get("text"), &format!("{at}/text"));
            self.text_at(part.get("refusal"), &format!("{at}/refusal"));
            match part.get("type").and_then(Value::as_str) {
                Some("tool_use") => self.inside(part.get("input"), &format!("{at}/input"), 0),
                Some("tool_result") => self.content_inside(part.get("content"), &format!("{at}/content"), depth + 1),
                Some("search_result") => {
                    self.text_at(part.get("title"), &format!("{at}/title"));
                    self.content_inside(part.get("content"), &format!("{at}/content"), depth + 1);
                }
                Some("document") => self.document(part, &at, depth),
                _ => {}
            }
        }
    }

    /// A document that is written out; one that is encoded or elsewhere has no text here.
    fn document(&mut self, part: &Value, at: &str, depth: usize) {
        self.text_at(part.get("title"), &format!("{at}/title"));
        self.text_at(part.get("context"), &format!("{at}/context"));
        match part.pointer("/source/type").and_then(Value::as_str) {
            Some("text") => self.text_at(part.pointer("/source/data"), &format!("{at}/source/data")),
            Some("content") => {
                let content = part.pointer("/source/content");
                self.content_inside(content, &format!("{at}/source/content"), depth + 1);
            }
            _ => {}
        }
    }

    /// Every text inside the arguments of a tool, which are JSON there and not a text.
    fn inside(&mut self, value: Option<&Value>, at: &str, depth: usize) {
        match value {
            Some(Value::String(_)) => self.text_at(value, at),
            Some(Value::Array(items)) if depth < 32 => {
                for (index, item) in items.iter().enumerate() {
                    self.inside(Some(item), &format!("{at}/{index}"), depth + 1);
                }
            }
            Some(Value::Object(fields)) if depth < 32 => {
                for (key, value) in fields {
                    let key = key.replace('~', "~0").replace('/', "~1");
                    self.inside(Some(value), &format!("{at}/{key}"), depth + 1);
                }
            }
            // Deeper than any tool's: not silently unseen.
            Some(Value::Array(_) | Value::Object(_)) => self.is_cut = true,
            _ => {}
        }
    }

    /// A text or a list of texts.
    fn strings(&mut self, value: Option<&Value>, at: &str) {
        self.text_at(value, at);
        for (index, item) in list(value) {
            self.text_at(Some(item), &format!("{at}/{index}"));
            self.text_at(item.get("text"), &format!("{at}/{index}/text"));
        }
    }

    fn each(&mut self, json: &Value, name: &str, mut visit: impl FnMut(&mut Self, &Value, &str)) {
        let mut at = String::new();
        for (index, item) in list(json.get(name)) {
            at.clear();
            // Writing to a string does not fail.
            let _ = write!(at, "/{name}/{index}");
            visit(self, item, &at);
        }
    }

    fn text_at(&mut self, value: Option<&Value>, at: &str) {
        if !value.is_some_and(Value::is_string) {
            return;
        }
        if self.has_room() {
            self.places.push(at.to_owned());
        }
    }

    fn name(&mut self, name: &str) {
        if self.has_room() {
            self.names.push(name.to_owned());
        }
    }

    fn has_room(&mut self) -> bool {
        let has_room = self.places.len() + self.names.len() < MAX_PLACES;
        self.is_cut |= !has_room;
        has_room
    }
}

fn list(value: Option<&Value>) -> impl Iterator<Item = (usize, &Value)> {
    value.and_then(Value::as_array).into_iter().flatten().enumerate()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_last_message_is_judged_and_its_text_parts_are_joined() {
        let before = Hook::BeforeRequest;
        for (shape, body, judged, all) in [
            (Shape::Chat, json!({ "messages": [{ "content": "a" }, { "content": "b" }] }), "b", "a\nb"),
            (
                Shape::Chat,
                json!({ "messages": [{ "content": [{ "type": "text", "text": "a" }, { "type": "image_url" },
                { "type": "text", "text": "b" }] }] }),
                "a\nb",
                "a\nb",
            ),
            (
                Shape::Chat,
                json!({ "messages": [{ "content": null, "tool_calls": [{ "function": { "arguments": "{}" } }] }] }),
                "{}",
                "{}",
            ),
            (Shape::Chat, json!({ "messages": [] }), "", ""),
            (Shape::Chat, json!({ "messages": "odd" }), "", "odd"),
            (Shape::Chat, json!({}), "", ""),
            (Shape::Messages, json!({ "system": "s", "messages": [{ "content": "a" }] }), "a", "s\na"),
            (
                Shape::Messages,
                json!({ "messages": [{ "content": [{ "type": "tool_result", "content": "r" }] }] }),
                "r",
                "r",
            ),
            (
                Shape::Messages,
                json!({ "messages": [{ "content": [{ "type": "tool_use", "input": { "a/b": ["x"] } }] }] }),
                "x",
                "x",
            ),
            (Shape::Completions, json!({ "prompt": ["a", "b"] }), "a\nb", "a\nb"),
            (Shape::Completions, json!({ "prompt": "a" }), "a", "a"),
            (Shape::Embeddings, json!({ "input": ["a", 1] }), "a", "a"),
            (Shape::Responses, json!({ "instructions": "i", "input": "a" }), "a", "i\na"),
            (
                Shape::Responses,
                json!({ "input": [{ "content": "a" }, { "content": [{ "type": "input_text", "text": "b" }] }] }),
                "b",
                "a\nb",
            ),
            (Shape::Responses, json!({ "input": [{ "type": "function_call_output", "output": "o" }] }), "o", "o"),
            (Shape::Other, json!({ "prompt": "a" }), "", "a"),
        ] {
            for (scope, expected) in [(Scope::Judged, judged), (Scope::All, all)] {
                assert_eq!(TextPlaces::find(&body, shape, before, scope).text(&body), expected, "{shape:?} {body}");
            }
        }
    }

    #[test]
    fn an_answer_says_its_texts_and_the_arguments_of_its_calls() {
        for (shape, body, expected) in [
            (Shape::Chat, json!({ "choices": [{ "message": { "content": "a" } }] }), "a"),
            (
                Shape::Chat,
                json!({ "choices": [{ "message": { "content": "a" } }, { "message": { "content": "b" } }] }),
                "a\nb",
            ),
            (Shape::Chat, json!({ "choices": [{ "message": { "content": null } }] }), ""),
            (Shape::Chat, json!({ "choices": [] }), ""),
            (Shape::Completions, json!({ "choices": [{ "text": "a" }] }), "a"),
            (
                Shape::Messages,
                json!({ "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }] }),
                "a\nb",
            ),
            (
                Shape::Responses,
                json!({ "output": [{ "type": "reasoning" },
                { "type": "message", "content": [{ "type": "output_text", "text": "a" }] },
                { "type": "function_call", "arguments": "{}" }] }),
                "a\n{}",
            ),
            (Shape::Embeddings, json!({ "data": [] }), ""),
        ] {
            let places = TextPlaces::find(&body, shape, Hook::AfterRequest, Scope::Judged);
            assert_eq!(places.text(&body), expected, "{shape:?} {body}");
        }
    }

    #[test]
    fn texts_of_documents_searches_and_calls_of_every_kind_are_found() {
        let part = |part: Value| json!({ "messages": [{ "content": [part] }] });
        let found = json!({ "type": "search_result", "title": "t", "source": "s", "content": [{ "type": "text", "text": "x" }] });
        for (shape, body, expected) in [
            (Shape::Messages, part(json!({ "type": "document", "source": { "type": "text", "data": "x" } })), "x"),
            (Shape::Messages, part(json!({ "type": "document", "source": { "type": "base64", "data": "x" } })), ""),
            (
                Shape::Messages,
                part(json!({ "type": "document", "title": "t", "context": "c",
                    "source": { "type": "content", "content": [{ "type": "text", "text": "x" }] } })),
                "t\nc\nx",
            ),
            (Shape::Messages, part(found.clone()), "t\nx"),
            (Shape::Messages, part(json!({ "type": "tool_result", "content": [found] })), "t\nx"),
            (Shape::Chat, json!({ "messages": [{ "function_call": { "name": "f", "arguments": "x" } }] }), "x"),
            (Shape::Chat, json!({ "messages": [{ "tool_calls": [{ "custom": { "input": "x" } }] }] }), "x"),
            (Shape::Completions, json!({ "prompt": "a", "suffix": "x" }), "a\nx"),
            (Shape::Responses, json!({ "input": [{ "type": "custom_tool_call", "input": "x" }] }), "x"),
            (
                Shape::Responses,
                json!({ "input": [{ "type": "local_shell_call", "action": { "command": ["x"] } }] }),
                "x",
            ),
            (Shape::Responses, json!({ "input": [{ "type": "apply_patch_call", "operation": { "diff": "x" } }] }), "x"),
        ] {
            let places = TextPlaces::find(&body, shape, Hook::BeforeRequest, Scope::Judged);
            assert_eq!(places.text(&body), expected, "{shape:?} {body}");
            let changed = places.replace(&body, |text| (text == "x").then(|| "y".to_owned()));
            assert_eq!(changed.is_some(), expected.ends_with('x'), "{shape:?} {body}");
        }
        let mut deep = json!("x");
        for _ in 0..=MAX_PART_DEPTH + 1 {
            deep = json!([{ "type": "tool_result", "content": deep }]);
        }
        let body = json!({ "messages": [{ "content": deep }] });
        assert!(TextPlaces::find(&body, Shape::Messages, Hook::BeforeRequest, Scope::Judged).is_cut);
    }

    #[test]
    fn what_is_replaced_is_what_was_read_and_a_body_without_changes_is_not_copied() {
        let body = json!({ "messages": [{ "content": "x" }, { "content": [{ "type": "tool_use", "input": { "a/b~": "x" } }] }] });
        let places = TextPlaces::find(&body, Shape::Messages, Hook::BeforeRequest, Scope::All);
        assert_eq!(places.replace(&body, |_| None), None);
        let changed = places.replace(&body, |text| Some(text.replace('x', "y")));
        let expected = json!({ "messages": [{ "content": "y" }, { "content": [{ "type": "tool_use", "input": { "a/b~": "y" } }] }] });
        assert_eq!(changed, Some(expected));
    }
}
