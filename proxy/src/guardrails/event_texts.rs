//! Where the texts stand in the events of a stream, by the dialect that the client speaks. A text grows in a channel: a choice,
//! a block, a call of a tool. Some events repeat a text as a whole.

use serde_json::Value;
use shared::guardrails::Shape;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamShape {
    Chat,
    Completions,
    Messages,
    Responses,
}

/// A text of an event.
#[derive(Debug, PartialEq, Eq)]
pub struct EventText {
    /// What it goes on with; empty for a text that is whole in itself.
    pub channel: String,
    /// A JSON pointer.
    pub place: String,
}

impl StreamShape {
    pub fn new(shape: Shape) -> Option<Self> {
        match shape {
            Shape::Chat => Some(Self::Chat),
            Shape::Completions => Some(Self::Completions),
            Shape::Messages => Some(Self::Messages),
            Shape::Responses => Some(Self::Responses),
            Shape::Embeddings | Shape::Other => None,
        }
    }

    /// Whether everything was said with this event.
    pub fn is_last(self, event: Option<&Value>, data: &[u8]) -> bool {
        let kind = event.and_then(|event| event.get("type")).and_then(Value::as_str).unwrap_or_default();
        match self {
            Self::Chat | Self::Completions => data == b"[DONE]",
            Self::Messages => kind == "message_stop",
            Self::Responses => {
                matches!(kind, "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled")
            }
        }
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
        }
    }
}

/// The texts of one event.
pub fn event_texts(shape: StreamShape, event: &Value) -> Vec<EventText> {
    let mut found = Vec::new();
    match shape {
        StreamShape::Chat => {
            for (at, choice) in items(event.get("choices")) {
                let index = number(choice, "index");
                for name in ["content", "refusal"] {
                    push(&mut found, event, format!("{name}{index}"), format!("/choices/{at}/delta/{name}"));
                }
                for (call, said) in items(choice.pointer("/delta/tool_calls")) {
                    let channel = format!("call{index}.{}", number(said, "index"));
                    push(
                        &mut found,
                        event,
                        channel,
                        format!("/choices/{at}/delta/tool_calls/{call}/function/arguments"),
                    );
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
        }
        StreamShape::Responses => responses(event, &mut found),
    }
    found
}

fn responses(event: &Value, found: &mut Vec<EventText>) {
    let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
    if kind.ends_with(".delta") {
        let texts = ["response.output_text.delta", "response.refusal.delta", "response.function_call_arguments.delta"];
        if texts.contains(&kind) {
            let channel = format!("{kind}{}.{}", number(event, "output_index"), number(event, "content_index"));
            push(found, event, channel, "/delta".into());
        }
        return;
    }
    for place in ["/text", "/refusal", "/arguments", "/part/text", "/part/refusal", "/item/arguments"] {
        push(found, event, String::new(), place.into());
    }
    item(found, event, "/item");
    for (at, _) in items(event.pointer("/response/output")) {
        let place = format!("/response/output/{at}");
        push(found, event, String::new(), format!("{place}/arguments"));
        item(found, event, &place);
    }
}

fn item(found: &mut Vec<EventText>, event: &Value, place: &str) {
    for (at, _) in items(event.pointer(&format!("{place}/content"))) {
        push(found, event, String::new(), format!("{place}/content/{at}/text"));
        push(found, event, String::new(), format!("{place}/content/{at}/refusal"));
    }
}

fn push(found: &mut Vec<EventText>, event: &Value, channel: String, place: String) {
    if event.pointer(&place).and_then(Value::as_str).is_some_and(|text| !text.is_empty()) {
        found.push(EventText { channel, place });
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
            (StreamShape::Completions, json!({ "choices": [{ "index": 0, "text": "a" }] }), &["text0"]),
            (
                StreamShape::Messages,
                json!({ "type": "content_block_delta", "index": 3, "delta": { "text": "a" } }),
                &["block3"],
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
        ] {
            let found = event_texts(shape, &event);
            let channels: Vec<&str> = found.iter().map(|text| text.channel.as_str()).collect();
            assert_eq!(channels, expected, "{event}");
            assert!(found.iter().all(|text| event.pointer(&text.place).is_some()));
        }
    }
}
