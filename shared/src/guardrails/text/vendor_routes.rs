//! Where texts stand in the bodies of Google's and Bedrock's own routes. Google takes every field in two spellings, and one object
//! where a list is meant, so all of them are read, each at its own place: what a provider would read is never unseen.

use super::{MAX_PART_DEPTH, TextPlaces, list};
use serde_json::Value;

impl TextPlaces {
    /// The last turn.
    pub(super) fn gemini_request(&mut self, json: &Value) {
        if let Some((at, turn)) = one_or_more(json.get("contents"), "/contents").pop() {
            self.gemini_content(Some(turn), &at);
        }
    }

    /// A turn: its texts, what its calls say and what they came back with.
    pub(super) fn gemini_content(&mut self, content: Option<&Value>, at: &str) {
        for (at, part) in one_or_more(content.and_then(|content| content.get("parts")), &format!("{at}/parts")) {
            self.text_at(part.get("text"), &format!("{at}/text"));
            for (names, field) in [
                (["functionCall", "function_call"], "args"),
                (["functionResponse", "function_response"], "response"),
                (["executableCode", "executable_code"], "code"),
                (["codeExecutionResult", "code_execution_result"], "output"),
            ] {
                for name in names {
                    let inside = part.get(name).and_then(|inside| inside.get(field));
                    self.inside(inside, &format!("{at}/{name}/{field}"), 0);
                }
            }
        }
    }

    /// The last turn, and what a stored prompt is filled with.
    pub(super) fn converse_request(&mut self, json: &Value) {
        self.inside(json.get("promptVariables"), "/promptVariables", 0);
        let turns = json.get("messages").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if let Some(turn) = turns.last() {
            self.converse_blocks(turn.get("content"), &format!("/messages/{}/content", turns.len() - 1), 0);
        }
    }

    pub(super) fn converse_response(&mut self, json: &Value) {
        let place = "/output/message/content";
        self.converse_blocks(json.pointer(place), place, 0);
    }

    /// Blocks, of which results of tools hold others.
    fn converse_blocks(&mut self, blocks: Option<&Value>, at: &str, depth: usize) {
        if depth > MAX_PART_DEPTH {
            self.is_cut |= blocks.is_some_and(Value::is_array);
            return;
        }
        for (index, block) in list(blocks) {
            let at = format!("{at}/{index}");
            for place in [
                "/text",
                "/guardContent/text/text",
                "/document/name",
                "/document/context",
                "/document/source/text",
                "/searchResult/title",
            ] {
                self.text_at(block.pointer(place), &format!("{at}{place}"));
            }
            for place in ["/toolUse/input", "/json"] {
                self.inside(block.pointer(place), &format!("{at}{place}"), 0);
            }
            for place in [
                "/toolResult/content",
                "/document/source/content",
                "/citationsContent/content",
                "/searchResult/content",
            ] {
                self.converse_blocks(block.pointer(place), &format!("{at}{place}"), depth + 1);
            }
        }
    }
}

/// The items of a list, or the one thing that stands in its place.
fn one_or_more<'j>(value: Option<&'j Value>, at: &str) -> Vec<(String, &'j Value)> {
    match value {
        Some(Value::Array(items)) => {
            items.iter().enumerate().map(|(index, item)| (format!("{at}/{index}"), item)).collect()
        }
        Some(one @ Value::Object(_)) => vec![(at.to_owned(), one)],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Hook, Scope, Shape};
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_of_both_vendors_are_read_in_every_spelling_and_changed_where_they_were_read() {
        for (shape, body, judged, all) in [
            (
                Shape::Gemini,
                json!({ "systemInstruction": { "parts": [{ "text": "s" }] },
                    "contents": [{ "parts": [{ "text": "a" }] }, { "parts": [{ "text": "b" }, { "inlineData": {} }, { "text": "c" }] }] }),
                "b\nc",
                "s\na\nb\nc",
            ),
            (
                Shape::Gemini,
                json!({ "system_instruction": { "parts": { "text": "s" } }, "contents": { "parts": { "text": "a" } } }),
                "a",
                "s\na",
            ),
            (Shape::Gemini, json!({ "systemInstruction": "s", "contents": [] }), "", "s"),
            (
                Shape::Gemini,
                json!({ "contents": [{ "parts": [{ "functionCall": { "name": "f", "args": { "x": ["a"] } } },
                    { "function_response": { "name": "f", "response": { "y": "b" } } },
                    { "executableCode": { "language": "PYTHON", "code": "c" } },
                    { "code_execution_result": { "output": "d" } }] }] }),
                "a\nb\nc\nd",
                "f\na\nf\nb\nPYTHON\nc\nd",
            ),
            (Shape::Gemini, json!({ "contents": "odd" }), "", "odd"),
            (
                Shape::Converse,
                json!({ "system": [{ "text": "s" }], "messages": [{ "content": [{ "text": "a" }] },
                    { "content": [{ "text": "b" }, { "image": {} }, { "guardContent": { "text": { "text": "c" } } }] }] }),
                "b\nc",
                "s\na\nb\nc",
            ),
            (
                Shape::Converse,
                json!({ "messages": [{ "content": [
                    { "toolUse": { "input": { "x": "a" } } },
                    { "toolResult": { "content": [{ "text": "b" }, { "json": { "y": "c" } }] } },
                    { "document": { "name": "n", "source": { "text": "d" } } },
                    { "document": { "name": "m", "source": { "content": [{ "text": "e" }] } } }] }] }),
                "a\nb\nc\nn\nd\nm\ne",
                "a\nb\nc\nn\nd\nm\ne",
            ),
            (Shape::Converse, json!({ "promptVariables": { "v": { "text": "a" } } }), "a", "a"),
        ] {
            for (scope, expected) in [(Scope::Judged, judged), (Scope::All, all)] {
                let places = TextPlaces::find(&body, shape, Hook::BeforeRequest, scope);
                assert_eq!(places.text(&body), expected, "{body}");
                let changed = places.replace(&body, |text| Some(text.to_uppercase())).unwrap_or(body.clone());
                assert_eq!(places.text(&changed), expected.to_uppercase(), "{changed}");
            }
        }
    }

    #[test]
    fn answers_of_both_vendors_are_read() {
        for (shape, body, expected) in [
            (
                Shape::Gemini,
                json!({ "candidates": [{ "content": { "parts": [{ "text": "a" }, { "functionCall": { "args": { "x": "b" } } }] } },
                    { "content": { "parts": [{ "text": "c" }] } }] }),
                "a\nb\nc",
            ),
            (Shape::Gemini, json!({ "promptFeedback": { "blockReason": "SAFETY" } }), ""),
            (
                Shape::Converse,
                json!({ "output": { "message": { "content": [{ "text": "a" }, { "toolUse": { "input": { "x": "b" } } },
                    { "citationsContent": { "content": [{ "text": "c" }] } }] } } }),
                "a\nb\nc",
            ),
            (Shape::Converse, json!({ "output": {} }), ""),
        ] {
            let places = TextPlaces::find(&body, shape, Hook::AfterRequest, Scope::Judged);
            assert_eq!(places.text(&body), expected, "{body}");
        }
    }

    #[test]
    fn blocks_that_stand_deeper_than_any_message_do_not_go_unseen() {
        let mut deep = json!([{ "text": "x" }]);
        for _ in 0..=MAX_PART_DEPTH + 1 {
            deep = json!([{ "toolResult": { "content": deep } }]);
        }
        let body = json!({ "messages": [{ "content": deep }] });
        assert!(TextPlaces::find(&body, Shape::Converse, Hook::BeforeRequest, Scope::Judged).is_cut);
    }
}
