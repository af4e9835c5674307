//! Whole completions, both ways, with log probabilities in their older shape.

use crate::wire::codecs::chat::usage;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::finish_reasons;
use crate::wire::codecs::json_reader::{FieldPath, Fields, MAX_CHOICES};
use crate::wire::codecs::json_writer::JsonWriter;
use crate::wire::codecs::options::AnswerOptions;
use crate::wire::conversation::{Answer, Choice, Extra, Finish, Part, TokenLogprob, WireFormat};
use serde_json::{Map, Value};

const FORMAT: WireFormat = WireFormat::Completions;

pub(super) fn read(body: &[u8]) -> Result<Answer, CodecError> {
    let mut body = Fields::parse(body)?;
    let path = body.path;
    let path = path.field("choices");
    if !body.has("choices") {
        return Err(path.problem("is missing"));
    }
    let mut answer = Answer {
        id: body.string("id")?,
        model: body.string("model")?,
        created: body.integer("created")?,
        usage: body.object("usage")?.map(usage::read),
        ..Answer::default()
    };
    for (place, value) in body.bounded_list("choices", MAX_CHOICES)?.into_iter().enumerate() {
        let mut choice = Fields::new(value, path.item(place))?;
        let text = choice.string("text")?.unwrap_or_default();
        let index = choice.integer("index")?.and_then(|index| u32::try_from(index).ok());
        answer.choices.push(Choice {
            index: index.unwrap_or(place as u32),
            parts: vec![Part::text(text)],
            finish: choice.string("finish_reason")?.map(|word| finish_reasons::read(FORMAT, word)),
            logprobs: read_logprobs(choice.inner("logprobs"))?,
            extra: Extra::new(FORMAT, choice.rest()),
            ..Choice::default()
        });
    }
    body.take("object");
    body.take("provider");
    answer.extra = Extra::new(FORMAT, body.rest());
    Ok(answer)
}

/// `{tokens, token_logprobs, top_logprobs, text_offset}`: lists side by side.
pub(super) fn read_logprobs(mut fields: Fields<'_>) -> Result<Vec<TokenLogprob>, CodecError> {
    let tokens = fields.list("tokens")?.unwrap_or_default();
    let values = fields.list("token_logprobs")?.unwrap_or_default();
    let top = fields.list("top_logprobs")?.unwrap_or_default();
    let one =
        |token: &str, logprob: f64| TokenLogprob { token: token.to_owned(), logprob, bytes: None, top: Vec::new() };
    let mut read = Vec::with_capacity(tokens.len());
    for (place, token) in tokens.iter().enumerate() {
        let Some(token) = token.as_str() else { continue };
        let logprob = values.get(place).and_then(Value::as_f64).unwrap_or(0.0);
        let candidates = top.get(place).and_then(Value::as_object).into_iter().flatten();
        let candidates = candidates.filter_map(|(token, value)| Some(one(token, value.as_f64()?)));
        read.push(TokenLogprob { top: candidates.collect(), ..one(token, logprob) });
    }
    Ok(read)
}

pub(super) fn write(answer: &Answer, options: &AnswerOptions<'_>, out: &mut Vec<u8>) {
    let mut writer = JsonWriter::new(out);
    let w = &mut writer;
    w.open_object();
    write_head(w, answer.id.as_deref(), answer.created, answer.model.as_deref(), options);
    w.array_field("choices");
    for choice in &answer.choices {
        let texts = choice.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            Part::Refusal(text) => Some(text.as_str()),
            Part::Audio(media) => media.transcript.as_deref(),
            _ => None,
        });
        let text: String = texts.collect();
        let finish = choice.finish.as_ref();
        write_choice(w, choice.index, &text, &choice.logprobs, finish.map(|end| word(end, options)).or(Some("stop")));
    }
    w.close_array();
    if let Some(counts) = &answer.usage {
        usage::write(w, counts);
    }
    w.fields(answer.extra.fields_for(FORMAT));
    w.close_object();
}

pub(super) fn word<'f>(finish: &'f Finish, options: &AnswerOptions<'_>) -> &'f str {
    finish_reasons::word_for(FORMAT, finish, options.is_strict).unwrap_or("stop")
}

pub(super) fn write_head(
    w: &mut JsonWriter<'_>,
    id: Option<&str>,
    created: Option<u64>,
    model: Option<&str>,
    options: &AnswerOptions<'_>,
) {
    w.string_field("id", id.unwrap_or(&options.id));
    w.string_field("object", "text_completion");
    w.integer_field("created", created.unwrap_or(options.created));
    w.string_field("model", model.unwrap_or(&options.model));
    if !options.provider.is_empty() {
        w.string_field("provider", &options.provider);
    }
}

pub(super) fn write_choice(
    w: &mut JsonWriter<'_>,
    index: u32,
    text: &str,
    tokens: &[TokenLogprob],
    finish: Option<&str>,
) {
    w.open_object();
    w.string_field("text", text);
    w.integer_field("index", u64::from(index));
    write_logprobs(w, tokens);
    match finish {
        Some(word) => w.string_field("finish_reason", word),
        None => w.null_field("finish_reason"),
    }
    w.close_object();
}

fn write_logprobs(w: &mut JsonWriter<'_>, tokens: &[TokenLogprob]) {
    if tokens.is_empty() {
        return w.null_field("logprobs");
    }
    w.object_field("logprobs");
    w.array_field("tokens");
    tokens.iter().for_each(|token| w.string(&token.token));
    w.close_array();
    w.array_field("token_logprobs");
    tokens.iter().for_each(|token| w.number(token.logprob));
    w.close_array();
    w.array_field("top_logprobs");
    for token in tokens {
        let map: Map<String, Value> =
            token.top.iter().map(|candidate| (candidate.token.clone(), candidate.logprob.into())).collect();
        w.value(&Value::Object(map));
    }
    w.close_array();
    w.array_field("text_offset");
    let mut offset = 0;
    for token in tokens {
        w.number(offset as f64);
        offset += token.token.chars().count();
    }
    w.close_array();
    w.close_object();
}

/// Paths of answers are told to operators only; the root is enough for chunks.
pub(super) const ROOT: FieldPath<'static> = FieldPath::Root;
