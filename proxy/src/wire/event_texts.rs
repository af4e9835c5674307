//! Where the texts stand in the events of a stream, by the dialect that the client speaks. A text grows in a channel: a choice,
//! a block, a call of a tool. Some events repeat a text as a whole.

mod vendor_events;

pub(crate) use vendor_events::{Candidates, gemini_carrier};

use super::framing::end_markers;
use serde_json::Value;
use shared::guardrails::{Hook, Scope, Shape, TextPlaces};

/// How the names of channels begin whose texts are thought and not said.
pub const UNSPOKEN: &str = "thinking";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamShape {
    Chat,
    Completions,
    Messages,
    Responses,
    Gemini,
    Converse,
}

/// An event has more texts than are looked at, or some where nobody looks.
#[derive(Debug, PartialEq, Eq)]
pub struct TooManyTexts;

/// A text of an event.
#[derive(Debug, PartialEq, Eq)]
pub struct EventText {
    /// What it goes on with; empty for a text that is whole in itself.
    pub channel: String,
    /// A JSON pointer.
    pub place: String,
    /// Of a whole text: it says again what grew before it, if anything did.
    pub is_repeated: bool,
}

impl StreamShape {
    pub fn new(shape: Shape) -> Option<Self> {
        match shape {
            Shape::Chat => Some(Self::Chat),
            Shape::Completions => Some(Self::Completions),
            Shape::Messages => Some(Self::Messages),
            Shape::Responses => Some(Self::Responses),
            Shape::Gemini => Some(Self::Gemini),
            Shape::Converse => Some(Self::Converse),
            Shape::Embeddings | Shape::Other | Shape::Unread => None,
        }
    }

    /// Whether everything was said with this event.
    pub fn is_last(self, event: Option<&Value>, data: &[u8]) -> bool {
        let kind = event.and_then(|event| event.get("type")).and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::Chat | Self::Completions => data == b"[DONE]",
            Self::Messages => end_markers::MESSAGES.contains(&kind),
            Self::Responses => end_markers::RESPONSES.contains(&kind),
            // Its end is that of the stream.
            Self::Gemini => false,
            Self::Converse => event.is_some_and(vendor_events::is_converse_metadata),
        }
    }

    /// Whether these bytes may hold the last event, told without reading them.
    pub fn may_end(self, events: &[u8]) -> bool {
        let marks: &[&str] = match self {
            Self::Chat | Self::Completions => &["[DONE]"],
            Self::Messages => end_markers::MESSAGES,
            Self::Responses => end_markers::RESPONSES,
            Self::Gemini => &["finishReason"],
            Self::Converse => &["\"usage\""],
        };
        marks.iter().any(|mark| memchr::memmem::find(events, mark.as_bytes()).is_some())
    }

    /// Whether an event says nothing but texts that grow, so that it may be left out without them.
    pub fn is_bare(self, event: &Value) -> bool {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        let is_open = |choice: &Value| choice.get("finish_reason").is_none_or(Value::is_null);
        match self {
            Self::Chat | Self::Completions => {
                event["choices"].as_array().is_some_and(|choices| !choices.is_empty() && choices.iter().all(is_open))
                    && event.get("usage").is_none_or(Value::is_null)
            }
            Self::Messages => kind == "content_block_delta",
            Self::Responses => kind.ends_with(".delta"),
            Self::Gemini => vendor_events::is_bare_gemini(event),
            Self::Converse => event.get("delta").is_some(),
        }
    }

    /// Whether texts end before this event, so that what is held of them must go first.
    pub fn ends_texts(self, event: &Value) -> bool {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::Chat | Self::Completions => {
                let choices = event["choices"].as_array();
                choices
                    .into_iter()
                    .flatten()
                    .any(|choice| choice.get("finish_reason").is_some_and(|why| !why.is_null()))
            }
            Self::Messages => matches!(kind, "content_block_stop" | "message_delta" | "message_stop"),
            Self::Responses => kind.ends_with(".done") || self.is_last(Some(event), b""),
            Self::Gemini => vendor_events::ends_gemini(event),
            Self::Converse => event.get("delta").is_none() && event.get("start").is_none(),
        }
    }
}

/// The texts of one event.
pub fn event_texts(shape: StreamShape, event: &Value) -> Result<Vec<EventText>, TooManyTexts> {
    let mut found = Vec::new();
    match shape {
        StreamShape::Chat => {
            for (at, choice) in items(event.get("choices")) {
                let index = number(choice, "index");
                let delta = format!("/choices/{at}/delta");
                for name in ["content", "refusal"] {
                    push(&mut found, event, format!("{name}{index}"), format!("{delta}/{name}"));
                }
                for name in ["reasoning_content", "reasoning"] {
                    push(&mut found, event, format!("{UNSPOKEN}.{name}{index}"), format!("{delta}/{name}"));
                }
                for (detail, value) in items(choice.pointer("/delta/reasoning_details")) {
                    for name in ["text", "summary"] {
                        let channel = format!("{UNSPOKEN}.{name}{index}.{}", number(value, "index"));
                        push(&mut found, event, channel, format!("{delta}/reasoning_details/{detail}/{name}"));
                    }
                }
                push(&mut found, event, format!("transcript{index}"), format!("{delta}/audio/transcript"));
                parts(&mut found, event, index, &format!("{delta}/content"))?;
                push(&mut found, event, format!("function{index}"), format!("{delta}/function_call/arguments"));
                for (call, value) in items(choice.pointer("/delta/tool_calls")) {
                    let channel = format!("call{index}.{}", number(value, "index"));
                    for text in ["function/arguments", "custom/input"] {
                        push(&mut found, event, channel.clone(), format!("{delta}/tool_calls/{call}/{text}"));
                    }
                }
            }
        }
        StreamShape::Completions => {
            for (at, choice) in items(event.get("choices")) {
                push(&mut found, event, format!("text{}", number(choice, "index")), format!("/choices/{at}/text"));
            }
        }
        StreamShape::Messages => {
            let channel = || format!("block{}", number(event, "index"));
            push(&mut found, event, channel(), "/delta/text".into());
            push(&mut found, event, channel(), "/delta/partial_json".into());
            push(&mut found, event, channel(), "/content_block/text".into());
            let thoughts = || format!("{UNSPOKEN}{}", number(event, "index"));
            push(&mut found, event, thoughts(), "/delta/thinking".into());
            push(&mut found, event, thoughts(), "/content_block/thinking".into());
            push(&mut found, event, String::new(), "/delta/citation/cited_text".into());
            if event.pointer("/content_block/content").is_some_and(Value::is_array) {
                whole_block(event, &mut found)?;
            }
        }
        StreamShape::Responses => responses(event, &mut found),
        StreamShape::Gemini => vendor_events::gemini(event, &mut found)?,
        StreamShape::Converse => {
            let channel = || format!("block{}", number(event, "contentBlockIndex"));
            push(&mut found, event, channel(), "/delta/text".into());
            push(&mut found, event, channel(), "/delta/toolUse/input".into());
            let thoughts = format!("{UNSPOKEN}{}", number(event, "contentBlockIndex"));
            push(&mut found, event, thoughts, "/delta/reasoningContent/text".into());
        }
    }
    Ok(found)
}

/// A block that comes whole: what a tool of the provider's own found.
fn whole_block(event: &Value, found: &mut Vec<EventText>) -> Result<(), TooManyTexts> {
    let answer = serde_json::json!({ "content": event.pointer("/content_block/content") });
    let places = TextPlaces::find(&answer, Shape::Messages, Hook::AfterRequest, Scope::All);
    if places.is_cut {
        return Err(TooManyTexts);
    }
    for place in places.pointers() {
        push(found, event, String::new(), format!("/content_block{place}"));
    }
    Ok(())
}

/// Content that comes as parts. What is neither a text nor parts is nothing that can be judged.
fn parts(found: &mut Vec<EventText>, event: &Value, index: u64, place: &str) -> Result<(), TooManyTexts> {
    match event.pointer(place) {
        None | Some(Value::Null | Value::String(_)) => Ok(()),
        Some(Value::Array(parts)) => {
            for at in 0..parts.len() {
                push(found, event, format!("content{index}"), format!("{place}/{at}/text"));
                push(found, event, format!("refusal{index}"), format!("{place}/{at}/refusal"));
            }
            Ok(())
        }
        Some(_) => Err(TooManyTexts),
    }
}

/// The events of `/responses` that bring more of a text which plain answers are judged by, too.
const RESPONSES_DELTAS: [&str; 12] = [
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_text.delta",
    "response.reasoning_summary_text.delta",
    "response.audio_transcript.delta",
    "response.output_audio_transcript.delta",
    "response.code_interpreter_call_code.delta",
    "response.function_call_arguments.delta",
    "response.custom_tool_call_input.delta",
    "response.mcp_call_arguments.delta",
    "response.apply_patch_call_operation_diff.delta",
    "response.shell_call_command.delta",
];

fn responses(event: &Value, found: &mut Vec<EventText>) {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind.ends_with(".delta") {
        if RESPONSES_DELTAS.contains(&kind) {
            let is_thought = kind.contains("reasoning");
            let index = number(event, if is_thought { "summary_index" } else { "content_index" });
            let index = index.max(number(event, "content_index"));
            let unspoken = if is_thought { UNSPOKEN } else { "" };
            let channel = format!("{unspoken}{kind}{}.{index}", number(event, "output_index"));
            push(found, event, channel, "/delta".into());
        }
        return;
    }
    for place in [
        "/text",
        "/refusal",
        "/arguments",
        "/input",
        "/transcript",
        "/code",
        "/command",
        "/diff",
        "/part/text",
        "/part/refusal",
        "/part/transcript",
    ] {
        push(found, event, String::new(), place.into());
    }
    item(found, event, "/item");
    for (at, _) in items(event.pointer("/response/output")) {
        item(found, event, &format!("/response/output/{at}"));
    }
}

fn item(found: &mut Vec<EventText>, event: &Value, place: &str) {
    for name in ["arguments", "input", "output", "code"] {
        push(found, event, String::new(), format!("{place}/{name}"));
    }
    for name in ["action", "operation"] {
        all_under(found, event, format!("{place}/{name}"));
    }
    for (at, _) in items(event.pointer(&format!("{place}/output"))) {
        push(found, event, String::new(), format!("{place}/output/{at}"));
        push(found, event, String::new(), format!("{place}/output/{at}/text"));
    }
    for (at, _) in items(event.pointer(&format!("{place}/summary"))) {
        push(found, event, String::new(), format!("{place}/summary/{at}/text"));
    }
    for (at, _) in items(event.pointer(&format!("{place}/results"))) {
        push(found, event, String::new(), format!("{place}/results/{at}/text"));
    }
    for (at, _) in items(event.pointer(&format!("{place}/content"))) {
        push(found, event, String::new(), format!("{place}/content/{at}/transcript"));
        push(found, event, String::new(), format!("{place}/content/{at}/text"));
        push(found, event, String::new(), format!("{place}/content/{at}/refusal"));
    }
}

/// Whatever a call says of what is to be done, but for its kind.
fn all_under(found: &mut Vec<EventText>, event: &Value, place: String) {
    let mut waiting = vec![place];
    while let Some(place) = waiting.pop() {
        match event.pointer(&place) {
            Some(Value::Object(fields)) => {
                let names = fields.keys().filter(|name| *name != "type");
                waiting.extend(names.map(|name| format!("{place}/{}", name.replace('~', "~0").replace('/', "~1"))));
            }
            Some(Value::Array(list)) => waiting.extend((0..list.len()).map(|at| format!("{place}/{at}"))),
            _ => push(found, event, String::new(), place),
        }
    }
}

fn push(found: &mut Vec<EventText>, event: &Value, channel: String, place: String) {
    if event.pointer(&place).and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
        let is_repeated = channel.is_empty();
        found.push(EventText { channel, place, is_repeated });
    }
}

pub fn set_text(event: &mut Value, place: &str, text: String) {
    if let Some(slot) = event.pointer_mut(place) {
        *slot = Value::String(text);
    }
}

fn items(value: Option<&Value>) -> impl Iterator<Item = (usize, &Value)> {
    value.and_then(Value::as_array).into_iter().flatten().enumerate()
}

fn number(value: &Value, name: &str) -> u64 {
    value.get(name).and_then(Value::as_u64).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_text_of_an_event_is_found_with_what_it_goes_on_with() {
        for (shape, event, expected) in [
            (
                StreamShape::Chat,
                json!({ "choices": [{ "index": 1, "delta": { "content": "a", "tool_calls":
                [{ "index": 2, "function": { "arguments": "{" } }] } }] }),
                &["content1", "call1.2"][..],
            ),
            (StreamShape::Chat, json!({ "choices": [{ "delta": { "role": "assistant", "content": "" } }] }), &[]),
            (
                StreamShape::Chat,
                json!({ "choices": [{ "delta": { "content": [{ "type": "text", "text": "a" }, { "type": "image" }],
                    "function_call": { "arguments": "{" }, "tool_calls": [{ "index": 1, "custom": { "input": "b" } }] } }] }),
                &["content0", "function0", "call0.1"],
            ),
            (
                StreamShape::Responses,
                json!({ "type": "response.custom_tool_call_input.delta", "output_index": 2, "delta": "a" }),
                &["response.custom_tool_call_input.delta2.0"],
            ),
            (StreamShape::Responses, json!({ "type": "response.custom_tool_call_input.done", "input": "a" }), &[""]),
            (
                StreamShape::Responses,
                json!({ "type": "response.output_item.done", "item": { "action": { "command": ["a", "b"], "env": {} } } }),
                &["", ""],
            ),
            (
                StreamShape::Responses,
                json!({ "type": "response.output_item.done", "item": { "operation": { "path": "a", "diff": "b" } } }),
                &["", ""],
            ),
            (
                StreamShape::Responses,
                json!({ "type": "response.output_item.done", "item": { "input": "a", "output": [{ "text": "b" }] } }),
                &["", ""],
            ),
            (StreamShape::Completions, json!({ "choices": [{ "index": 0, "text": "a" }] }), &["text0"]),
            (
                StreamShape::Messages,
                json!({ "type": "content_block_delta", "index": 3, "delta": { "text": "a" } }),
                &["block3"],
            ),
            (
                StreamShape::Messages,
                json!({ "type": "content_block_delta", "index": 3, "delta": { "type": "thinking_delta", "thinking": "a" } }),
                &["thinking3"],
            ),
            (
                StreamShape::Messages,
                json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "web_search_tool_result",
                    "content": [{ "title": "a", "url": "https://b", "encrypted_content": "c" }] } }),
                &["", ""],
            ),
            (
                StreamShape::Chat,
                json!({ "choices": [{ "delta": { "reasoning_content": "a", "reasoning": "b",
                    "reasoning_details": [{ "text": "c" }], "audio": { "transcript": "d" } } }] }),
                &["thinking.reasoning_content0", "thinking.reasoning0", "thinking.text0.0", "transcript0"],
            ),
            (
                StreamShape::Responses,
                json!({ "type": "response.reasoning_summary_text.delta", "output_index": 1, "summary_index": 2, "delta": "a" }),
                &["thinkingresponse.reasoning_summary_text.delta1.2"],
            ),
            (
                StreamShape::Converse,
                json!({ "contentBlockIndex": 2, "delta": { "reasoningContent": { "text": "a" } } }),
                &["thinking2"],
            ),
            (
                StreamShape::Responses,
                json!({ "type": "response.output_text.delta", "output_index": 1, "content_index": 0,
                "delta": "a" }),
                &["response.output_text.delta1.0"],
            ),
            (StreamShape::Responses, json!({ "type": "response.output_text.done", "text": "a" }), &[""]),
            (
                StreamShape::Responses,
                json!({ "type": "response.completed", "response": { "output": [{ "content":
                [{ "type": "output_text", "text": "a" }] }, { "arguments": "{}" }] } }),
                &["", ""],
            ),
            (StreamShape::Responses, json!({ "type": "response.audio.delta", "delta": "a" }), &[]),
            (
                StreamShape::Gemini,
                json!({ "candidates": [{ "index": 1, "content": { "parts": [{ "text": "a", "thought": true },
                    { "text": "b" }, { "functionCall": { "name": "f", "args": { "x": "c" } } }] } }] }),
                &["thought1", "content1", ""],
            ),
            (StreamShape::Gemini, json!({ "candidates": [{ "finishReason": "STOP" }], "usageMetadata": {} }), &[]),
            (StreamShape::Converse, json!({ "contentBlockIndex": 2, "delta": { "text": "a" } }), &["block2"]),
            (
                StreamShape::Converse,
                json!({ "contentBlockIndex": 1, "delta": { "toolUse": { "input": "{" } } }),
                &["block1"],
            ),
            (StreamShape::Converse, json!({ "stopReason": "end_turn" }), &[]),
        ] {
            let found = event_texts(shape, &event).unwrap();
            let channels: Vec<&str> = found.iter().map(|text| text.channel.as_str()).collect();
            assert_eq!(channels, expected, "{event}");
            assert!(found.iter().all(|text| event.pointer(&text.place).is_some()));
        }
    }

    #[test]
    fn content_that_is_neither_text_nor_parts_is_not_passed_over() {
        let odd = json!({ "choices": [{ "delta": { "content": { "text": "a" } } }] });
        assert_eq!(event_texts(StreamShape::Chat, &odd), Err(TooManyTexts));
    }
}
