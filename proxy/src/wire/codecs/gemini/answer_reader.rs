//! A generateContent answer → the model. A prompt that was blocked is an answer without content.

use super::{parts, usage};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_CHOICES, MAX_PARTS};
use crate::wire::codecs::{citations, finish_reasons};
use crate::wire::conversation::{
    Answer, Choice, Citation, Extra, Finish, FinishReason, NativeValue, Part, TokenLogprob, WireFormat,
};
use serde_json::Value;

const FORMAT: WireFormat = WireFormat::Gemini;

pub(super) fn read(body: &[u8]) -> Result<Answer, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    if !body.has("candidates") && !body.has("promptFeedback") {
        return Err(path.field("candidates").problem("is missing"));
    }
    let mut answer = Answer {
        id: body.string("responseId")?,
        model: body.string("modelVersion")?,
        usage: body.object("usageMetadata")?.map(usage::read),
        ..Answer::default()
    };
    let list = path.field("candidates");
    for (index, value) in body.bounded_list("candidates", MAX_CHOICES)?.into_iter().enumerate() {
        answer.choices.push(read_candidate(Fields::new(value, list.item(index))?, index)?);
    }
    if let Some(feedback) = body.take("promptFeedback") {
        if answer.choices.is_empty() {
            answer.choices.push(blocked(&feedback));
        }
        answer.safety = Some(NativeValue::new(FORMAT, feedback));
    }
    answer.extra = Extra::new(FORMAT, body.rest());
    Ok(answer)
}

pub(super) fn blocked(feedback: &Value) -> Choice {
    let word = feedback.get("blockReason").and_then(Value::as_str).unwrap_or("SAFETY").to_owned();
    let finish = Finish { native: Some((FORMAT, word)), ..Finish::new(FinishReason::ContentFilter) };
    Choice { finish: Some(finish), ..Choice::default() }
}

fn read_candidate(mut candidate: Fields<'_>, place: usize) -> Result<Choice, CodecError> {
    let path = candidate.path;
    let index = candidate.integer("index")?.and_then(|index| u32::try_from(index).ok());
    let mut choice = Choice { index: index.unwrap_or(place as u32), ..Choice::default() };
    let inner = path.field("content");
    if let Some(content) = candidate.object("content")? {
        let list = inner.field("parts");
        let values = Fields::from_map(content, inner).bounded_list("parts", MAX_PARTS)?;
        for (place, value) in values.into_iter().enumerate() {
            push_part(&mut choice.parts, parts::read(value, list.item(place))?);
        }
    }
    let cited = read_citations(&mut candidate)?;
    if let Some(Part::Text(text)) = choice.parts.iter_mut().rev().find(|part| matches!(part, Part::Text(_))) {
        text.citations = cited;
    }
    choice.logprobs = read_logprobs(candidate.take("logprobsResult"));
    choice.finish = candidate.string("finishReason")?.map(|word| finish_reasons::read(FORMAT, word));
    choice.safety = candidate.take("safetyRatings").map(|value| NativeValue::new(FORMAT, value));
    choice.extra = Extra::new(FORMAT, candidate.rest());
    finish_reasons::note_tool_use(&mut choice);
    Ok(choice)
}

/// Google cuts text into parts at will; unsigned neighbours are one text.
fn push_part(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), part) {
        (Some(Part::Text(last)), Part::Text(next)) if last.signature.is_none() => {
            last.text.push_str(&next.text);
            last.signature = next.signature;
        }
        (Some(Part::Thinking(last)), Part::Thinking(next)) if last.signature.is_none() => {
            last.text.push_str(&next.text);
            last.signature = next.signature;
        }
        (_, part) => parts.push(part),
    }
}

/// AI Studio says `citationSources`, Vertex `citations`.
pub(super) fn read_citations(candidate: &mut Fields<'_>) -> Result<Vec<Citation>, CodecError> {
    let mut metadata = candidate.inner("citationMetadata");
    let list = metadata.list("citationSources")?.or(metadata.list("citations")?);
    Ok(list.unwrap_or_default().into_iter().map(citations::from_gemini).collect())
}

pub(super) fn read_logprobs(result: Option<Value>) -> Vec<TokenLogprob> {
    let Some(Value::Object(map)) = result else { return Vec::new() };
    let mut fields = Fields::from_map(map, FieldPath::Root);
    let chosen = fields.list("chosenCandidates").ok().flatten().unwrap_or_default();
    let top = fields.list("topCandidates").ok().flatten().unwrap_or_default();
    let token = |value: &Value, top: Vec<TokenLogprob>| {
        let token = value.get("token")?.as_str()?.to_owned();
        let logprob = value.get("logProbability")?.as_f64()?;
        Some(TokenLogprob { bytes: Some(token.clone().into_bytes()), token, logprob, top })
    };
    let candidates = |place: usize| -> Vec<TokenLogprob> {
        let list = top.get(place).and_then(|entry| entry.get("candidates")).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(|value| token(value, Vec::new())).collect()
    };
    chosen.iter().enumerate().filter_map(|(place, value)| token(value, candidates(place))).collect()
}
