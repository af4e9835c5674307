//! The events of Google's and Bedrock's own streams. Google's are answers in small: a text grows from one to the next, and the
//! arguments of a call come whole. Bedrock's are told apart by what they hold.

use super::{EventText, TooManyTexts, items, number};
use serde_json::{Value, json};
use shared::guardrails::{Hook, Scope, Shape, TextPlaces};
use std::collections::BTreeSet;

pub(super) fn gemini(event: &Value, found: &mut Vec<EventText>) -> Result<(), TooManyTexts> {
    let places = TextPlaces::find(event, Shape::Gemini, Hook::AfterRequest, Scope::Judged);
    if places.is_cut {
        return Err(TooManyTexts);
    }
    for place in places.pointers() {
        if event.pointer(place).and_then(Value::as_str).is_none_or(str::is_empty) {
            continue;
        }
        let channel = growing(event, place).unwrap_or_default();
        found.push(EventText { channel, place: place.to_owned(), is_repeated: false });
    }
    Ok(())
}

/// What a text goes on with: those of parts do, those inside of calls do not.
fn growing(event: &Value, place: &str) -> Option<String> {
    let part = place.strip_suffix("/text")?;
    let (content, index) = part.rsplit_once("/parts")?;
    // Deeper inside stand the arguments of calls.
    if index.trim_start_matches('/').contains('/') {
        return None;
    }
    let candidate = event.pointer(content.strip_suffix("/content")?)?;
    let is_thought = event.pointer(part)?.get("thought").and_then(Value::as_bool) == Some(true);
    Some(format!("{}{}", if is_thought { "thought" } else { "content" }, number(candidate, "index")))
}

/// Nothing but texts, so that it may be left out without them.
pub(super) fn is_bare_gemini(event: &Value) -> bool {
    let is_text = |part: &Value| part.as_object().is_some_and(|part| part.keys().all(|key| key == "text"));
    let is_bare = |candidate: &Value| {
        candidate.get("finishReason").is_none_or(Value::is_null)
            && items(candidate.pointer("/content/parts")).all(|(_, part)| is_text(part))
    };
    event.get("usageMetadata").is_none()
        && event["candidates"].as_array().is_some_and(|list| !list.is_empty() && list.iter().all(is_bare))
}

pub(super) fn ends_gemini(event: &Value) -> bool {
    let is_over = |candidate: &Value| candidate.get("finishReason").is_some_and(|why| !why.is_null());
    items(event.get("candidates")).any(|(_, candidate)| is_over(candidate)) || event.get("promptFeedback").is_some()
}

/// Which of Google's candidates have not said all yet.
#[derive(Default)]
pub struct Candidates {
    open: BTreeSet<u64>,
    has_finished: bool,
}

/// More than any answer has.
const MAX_CANDIDATES: usize = 1024;

impl Candidates {
    /// Whether everything was said with this event.
    pub fn see(&mut self, event: &Value) -> bool {
        for (_, candidate) in items(event.get("candidates")) {
            let index = number(candidate, "index");
            if candidate.get("finishReason").is_some_and(|why| !why.is_null()) {
                self.has_finished = true;
                self.open.remove(&index);
            } else if self.open.len() < MAX_CANDIDATES {
                self.open.insert(index);
            }
        }
        self.has_finished && self.open.is_empty() && event.get("usageMetadata").is_some()
    }
}

/// What Bedrock says last.
pub(super) fn is_converse_metadata(event: &Value) -> bool {
    event.get("usage").is_some() && event.get("delta").is_none()
}

/// An event that can bring more of the text at `place`, and says nothing else.
pub fn gemini_carrier(event: &Value, place: &str) -> (Value, String) {
    let candidate = place.split_once("/content/").and_then(|(candidate, _)| event.pointer(candidate));
    let index = candidate.map_or(0, |candidate| number(candidate, "index"));
    let is_thought = growing(event, place).is_some_and(|channel| channel.starts_with("thought"));
    let part = if is_thought { json!({ "text": "", "thought": true }) } else { json!({ "text": "" }) };
    let mut carrier = json!({ "candidates": [{ "index": index, "content": { "parts": [part], "role": "model" } }] });
    for name in ["modelVersion", "responseId"] {
        if let Some(value) = event.get(name) {
            carrier[name] = value.clone();
        }
    }
    (carrier, "/candidates/0/content/parts/0/text".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_of_nothing_but_text_is_bare_and_one_that_finishes_ends_texts() {
        let with = |candidate: Value| json!({ "candidates": [candidate] });
        for (event, bare, ends) in [
            (with(json!({ "content": { "parts": [{ "text": "a" }] } })), true, false),
            (with(json!({ "content": { "parts": [{ "text": "a", "thoughtSignature": "s" }] } })), false, false),
            (with(json!({ "content": { "parts": [{ "functionCall": {} }] } })), false, false),
            (with(json!({ "content": { "parts": [{ "text": "a" }] }, "finishReason": "STOP" })), false, true),
            (json!({ "promptFeedback": { "blockReason": "SAFETY" } }), false, true),
        ] {
            assert_eq!((is_bare_gemini(&event), ends_gemini(&event)), (bare, ends), "{event}");
        }
    }

    #[test]
    fn a_stream_is_over_when_all_its_candidates_are() {
        let event = |index: u64, finish: Option<&str>| json!({ "candidates": [{ "index": index, "finishReason": finish }], "usageMetadata": {} });
        let mut candidates = Candidates::default();
        let said = [(0, None), (1, None), (0, Some("STOP")), (1, Some("STOP"))];
        let over: Vec<bool> = said.map(|(index, finish)| candidates.see(&event(index, finish))).into();
        assert_eq!(over, [false, false, false, true]);
    }

    #[test]
    fn a_carrier_goes_on_with_its_text_and_repeats_no_call() {
        let event = json!({ "responseId": "r", "candidates": [{ "index": 1, "content": { "parts": [
            { "functionCall": { "name": "f", "args": { "text": "x" } } }, { "text": "a", "thought": true }] } }] });
        let mut found = Vec::new();
        gemini(&event, &mut found).unwrap();
        let channels: Vec<&str> = found.iter().map(|text| text.channel.as_str()).collect();
        assert_eq!(channels, ["", "thought1"], "what is called `text` inside of a call does not grow");
        let (carrier, place) = gemini_carrier(&event, &found[1].place);
        assert_eq!(growing(&carrier, &place), Some("thought1".to_owned()));
        assert_eq!((carrier.to_string().contains("functionCall"), &carrier["responseId"]), (false, &json!("r")));
    }
}
