//! The model → a generateContent answer, whole or as one chunk of a stream.

use super::{parts, usage};
use crate::wire::codecs::arguments::object_value;
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::codecs::{citations, finish_reasons};
use crate::wire::conversation::{Answer, Choice, Part, TokenLogprob, WireFormat};

const FORMAT: WireFormat = WireFormat::Gemini;

pub(super) fn write(answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    w.array_field("candidates");
    for choice in &answer.choices {
        write_candidate(w, choice);
    }
    w.close_array();
    if let Some(feedback) = answer.safety.as_ref().and_then(|safety| safety.in_format(FORMAT)) {
        w.value_field("promptFeedback", feedback);
    }
    if let Some(counts) = &answer.usage {
        usage::write(w, counts);
    }
    write_tail(w, answer.id.as_deref(), answer.model.as_deref(), options);
    w.fields(answer.extra.fields_for(FORMAT));
    w.close_object();
}

pub(super) fn write_tail(w: &mut JsonWriter<'_>, id: Option<&str>, model: Option<&str>, options: &AnswerOptions<'_>) {
    w.string_field("modelVersion", model.unwrap_or(&options.model));
    w.string_field("responseId", id.unwrap_or(&options.id));
}

pub(super) fn write_candidate(w: &mut JsonWriter<'_>, choice: &Choice) {
    w.open_object();
    w.object_field("content");
    w.array_field("parts");
    for part in &choice.parts {
        write_part(w, part);
    }
    w.close_array();
    w.string_field("role", "model");
    w.close_object();
    let word = choice.finish.as_ref().and_then(|finish| finish_reasons::word_for(FORMAT, finish, true));
    w.optional_string("finishReason", word);
    w.integer_field("index", u64::from(choice.index));
    let cited = choice.parts.iter().filter_map(|part| match part {
        Part::Text(text) => Some(&text.citations),
        _ => None,
    });
    let cited: Vec<_> = cited.flat_map(|list| citations::own(list, FORMAT)).collect();
    if !cited.is_empty() {
        w.object_field("citationMetadata");
        w.array_field("citationSources");
        cited.into_iter().for_each(|own| w.value(own));
        w.close_array();
        w.close_object();
    }
    write_logprobs(w, &choice.logprobs);
    if let Some(ratings) = choice.safety.as_ref().and_then(|safety| safety.in_format(FORMAT)) {
        w.value_field("safetyRatings", ratings);
    }
    w.fields(choice.extra.fields_for(FORMAT));
    w.close_object();
}

fn write_part(w: &mut JsonWriter<'_>, part: &Part) {
    match part {
        Part::Text(text) => parts::write_text(w, &text.text, false, text.signature.as_ref()),
        Part::Refusal(text) => parts::write_text(w, text, false, None),
        Part::Thinking(thinking) => parts::write_text(w, &thinking.text, true, thinking.signature.as_ref()),
        Part::ToolUse(call) => parts::write_call(w, call, |w| w.value(&object_value(&call.arguments))),
        Part::Image(media) | Part::File(media) => parts::write_media(w, media),
        Part::Audio(media) => {
            parts::write_media(w, media);
            if let Some(words) = &media.transcript {
                parts::write_text(w, words, false, None);
            }
        }
        Part::Native(native) => native.in_format(FORMAT).into_iter().for_each(|own| w.value(own)),
        Part::RedactedThinking(_) | Part::ToolResult(_) => {}
    }
}

fn write_logprobs(w: &mut JsonWriter<'_>, tokens: &[TokenLogprob]) {
    if tokens.is_empty() {
        return;
    }
    let write = |w: &mut JsonWriter<'_>, token: &TokenLogprob| {
        w.open_object();
        w.string_field("token", &token.token);
        w.number_field("logProbability", token.logprob);
        w.close_object();
    };
    w.object_field("logprobsResult");
    w.array_field("topCandidates");
    for token in tokens {
        w.open_object();
        w.array_field("candidates");
        token.top.iter().for_each(|candidate| write(w, candidate));
        w.close_array();
        w.close_object();
    }
    w.close_array();
    w.array_field("chosenCandidates");
    tokens.iter().for_each(|token| write(w, token));
    w.close_array();
    w.close_object();
}
