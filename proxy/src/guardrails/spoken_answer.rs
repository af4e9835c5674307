//! What a whole stream said, put together as one plain answer: for whoever holds a stream to its end and judges it once, as
//! plain answers are judged, with everything that checks do there. A text that came in pieces is one text again. Events of
//! another form than their path says are read text by text, wherever these stand.

use crate::wire::event_texts::{StreamShape, UNSPOKEN, event_texts};
use serde_json::{Value, json};
use shared::guardrails::{Hook, Scope, Shape, TextPlaces};
use std::collections::HashMap;

/// More than any answer has: choices, calls, and places of texts in events that nobody here knows.
const MAX_CHANNELS: usize = 10_000;

#[derive(Debug, Default)]
pub struct SpokenAnswer {
    shape: Option<StreamShape>,
    channels: Vec<String>,
    places: HashMap<String, usize>,
    /// The texts of events that nobody here knows, each by itself: they may be no pieces.
    apart: String,
}

/// There is more in it than anybody looks at.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("it has more texts than are looked at")]
pub struct TooManyChannels;

impl SpokenAnswer {
    /// The form of the answer that it becomes.
    pub const SHAPE: Shape = Shape::Chat;

    /// Of a stream whose plain answers have this form.
    pub fn new(shape: Shape) -> Self {
        Self { shape: StreamShape::new(shape), ..Self::default() }
    }

    pub fn push(&mut self, event: &Value) -> Result<(), TooManyChannels> {
        match self.shape.filter(|shape| is_known(*shape, event)) {
            Some(shape) => self.push_known(shape, event),
            None => self.push_any(event),
        }
    }

    fn push_known(&mut self, shape: StreamShape, event: &Value) -> Result<(), TooManyChannels> {
        for text in event_texts(shape, event).map_err(|_| TooManyChannels)? {
            let piece = event.pointer(&text.place).and_then(Value::as_str).unwrap_or_default();
            if !text.channel.is_empty() {
                self.grow(text.channel, piece)?;
            } else if !text.is_repeated || !self.channels.iter().any(|channel| channel == piece) {
                self.grow(format!("whole{}", self.channels.len()), piece)?;
            }
        }
        Ok(())
    }

    fn push_any(&mut self, event: &Value) -> Result<(), TooManyChannels> {
        let places = TextPlaces::find(event, Shape::Other, Hook::AfterRequest, Scope::All);
        if places.is_cut {
            return Err(TooManyChannels);
        }
        for place in places.pointers() {
            let piece = event.pointer(place).and_then(Value::as_str).unwrap_or_default();
            self.grow(place.to_owned(), piece)?;
            self.put_apart(piece);
        }
        places.names().for_each(|name| self.put_apart(name));
        Ok(())
    }

    fn grow(&mut self, channel: String, piece: &str) -> Result<(), TooManyChannels> {
        let next = self.channels.len();
        let at = *self.places.entry(channel).or_insert(next);
        if at == MAX_CHANNELS {
            return Err(TooManyChannels);
        }
        match self.channels.get_mut(at) {
            Some(text) => text.push_str(piece),
            None => self.channels.push(piece.to_owned()),
        }
        Ok(())
    }

    fn put_apart(&mut self, piece: &str) {
        self.apart.push_str(piece);
        self.apart.push('\n');
    }

    /// An answer of a chat that says the same. What was only thought, and what may be no pieces, stands where checks that
    /// count words do not look.
    pub fn into_answer(self) -> Value {
        let Self { channels, places, apart, .. } = self;
        let mut order: Vec<(usize, bool)> = places.iter().map(|(name, at)| (*at, name.starts_with(UNSPOKEN))).collect();
        order.sort_unstable();
        let joined = |is_unspoken: bool| {
            let wanted = order.iter().filter(|(_, of)| *of == is_unspoken).filter_map(|(at, _)| channels.get(*at));
            wanted.map(String::as_str).collect::<Vec<_>>().join("\n")
        };
        let message = json!({ "content": joined(false), "reasoning_content": joined(true), "apart": apart });
        json!({ "choices": [{ "message": message }] })
    }
}

/// Whether an event is of the form that its path says.
fn is_known(shape: StreamShape, event: &Value) -> bool {
    let has = |names: &[&str]| names.iter().any(|name| event.get(name).is_some());
    match shape {
        StreamShape::Chat | StreamShape::Completions => event.get("choices").is_some_and(Value::is_array),
        StreamShape::Messages => {
            has(&["type"]) && has(&["message", "content_block", "delta", "index", "error"])
                || event.as_object().is_some_and(|event| event.len() == 1 && event.contains_key("type"))
        }
        StreamShape::Responses => {
            event.get("type").and_then(Value::as_str).is_some_and(|kind| kind.starts_with("response."))
        }
        StreamShape::Gemini => has(&["candidates", "promptFeedback", "usageMetadata"]),
        StreamShape::Converse => has(&["contentBlockIndex", "role", "stopReason", "metrics", "usage"]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(shape: Shape, events: &[Value]) -> Value {
        let mut answer = SpokenAnswer::new(shape);
        events.iter().for_each(|event| answer.push(event).unwrap());
        answer.into_answer()["choices"][0]["message"].take()
    }

    #[test]
    fn pieces_of_a_text_are_one_text_in_every_form_and_where_nobody_knows_it() {
        let chat = |text: &str| json!({ "choices": [{ "index": 0, "delta": { "content": text } }] });
        let block = |text: &str| json!({ "type": "content_block_delta", "index": 0, "delta": { "text": text } });
        let delta = |text: &str| json!({ "type": "response.output_text.delta", "delta": text });
        let gemini = |text: &str| json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }] });
        let other = |text: &str| json!({ "type": "chunk", "text": text });
        for (shape, events) in [
            (Shape::Chat, [chat("forb"), chat("idden")]),
            (Shape::Messages, [block("forb"), block("idden")]),
            (Shape::Responses, [delta("forb"), delta("idden")]),
            (Shape::Gemini, [gemini("forb"), gemini("idden")]),
            (Shape::Other, [other("forb"), other("idden")]),
            (Shape::Embeddings, [other("forb"), other("idden")]),
            (Shape::Chat, [other("forb"), other("idden")]),
            (Shape::Messages, [other("forb"), other("idden")]),
            (Shape::Responses, [other("forb"), other("idden")]),
            (Shape::Converse, [other("forb"), other("idden")]),
        ] {
            assert_eq!(piece(shape, &events)["content"], "forbidden", "{shape:?} {events:?}");
        }
    }

    #[test]
    fn thoughts_stand_apart_and_what_is_said_again_is_said_once() {
        let event = |delta: Value| json!({ "choices": [{ "index": 0, "delta": delta }] });
        let message = piece(
            Shape::Chat,
            &[event(json!({ "reasoning_content": "hm" })), event(json!({ "content": "a" })), event(json!({}))],
        );
        assert_eq!((&message["content"], &message["reasoning_content"]), (&json!("a"), &json!("hm")));
        let again = piece(
            Shape::Responses,
            &[
                json!({ "type": "response.output_text.delta", "delta": "a b" }),
                json!({ "type": "response.output_text.done", "text": "a b" }),
                json!({ "type": "response.output_text.done", "text": "c" }),
            ],
        );
        assert_eq!(again["content"], "a b\nc");
        let words = piece(Shape::Other, &[json!({ "text": "one" }), json!({ "text": "two" })]);
        assert_eq!((&words["content"], &words["apart"]), (&json!("onetwo"), &json!("one\ntwo\n")));
    }

    #[test]
    fn what_has_too_many_texts_is_not_passed_over() {
        let mut answer = SpokenAnswer::new(Shape::Other);
        let many: Vec<String> = (0..MAX_CHANNELS + 2).map(|number| format!("text number {number}")).collect();
        assert_eq!(answer.push(&json!({ "texts": many })), Err(TooManyChannels));
        let odd = json!({ "choices": [{ "delta": { "content": { "text": "a" } } }] });
        assert_eq!(SpokenAnswer::new(Shape::Chat).push(&odd), Err(TooManyChannels));
    }
}
