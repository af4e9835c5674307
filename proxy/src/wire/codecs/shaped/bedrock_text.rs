//! The text models of Bedrock that came before Converse (contract 7.6): Cohere's first commands and AI21's Jurassic. They
//! are invoked with a prompt, and never in a stream. Their errors are those of all of Bedrock.

use super::{ChatShape, rename, required, usage};
use crate::wire::codecs::Codec;
use crate::wire::codecs::completions::CompletionsCodec;
use crate::wire::codecs::converse::ConverseCodec;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::options::RequestOptions;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct CohereText;

impl ChatShape for CohereText {
    fn name(&self) -> &'static str {
        "bedrock_cohere_text"
    }

    fn base(&self) -> &'static dyn Codec {
        &CompletionsCodec
    }

    fn errors(&self) -> &'static dyn Codec {
        &ConverseCodec
    }

    fn request(&self, body: &mut Map<String, Value>, _: &RequestOptions<'_>) -> Result<Value, CodecError> {
        const NAMES: &[(&str, &str)] = &[
            ("prompt", "prompt"),
            ("max_tokens", "max_tokens"),
            ("temperature", "temperature"),
            ("top_p", "p"),
            ("top_k", "k"),
            ("stop", "stop_sequences"),
            ("n", "num_generations"),
            ("logit_bias", "logit_bias"),
        ];
        let mut shaped = Map::new();
        rename(body, NAMES, &mut shaped);
        Ok(Value::Object(shaped))
    }

    fn answer(&self, mut reply: Value) -> Result<Value, CodecError> {
        let texts = texts(&mut reply, "/generations")?;
        let choices = texts.into_iter().enumerate().map(|(index, one)| {
            let reason = match one["finish_reason"].as_str() {
                Some("MAX_TOKENS") => "length",
                Some("ERROR_TOXIC") => "content_filter",
                _ => "stop",
            };
            json!({ "index": index, "text": one["text"], "finish_reason": reason })
        });
        Ok(json!({ "id": reply["id"].as_str(), "choices": choices.collect::<Vec<_>>() }))
    }
}

#[derive(Debug)]
pub(super) struct JurassicText;

impl ChatShape for JurassicText {
    fn name(&self) -> &'static str {
        "bedrock_ai21_text"
    }

    fn base(&self) -> &'static dyn Codec {
        &CompletionsCodec
    }

    fn errors(&self) -> &'static dyn Codec {
        &ConverseCodec
    }

    fn request(&self, body: &mut Map<String, Value>, _: &RequestOptions<'_>) -> Result<Value, CodecError> {
        const NAMES: &[(&str, &str)] = &[
            ("prompt", "prompt"),
            ("max_tokens", "maxTokens"),
            ("temperature", "temperature"),
            ("top_p", "topP"),
            ("stop", "stopSequences"),
            ("n", "numResults"),
        ];
        let mut shaped = Map::new();
        rename(body, NAMES, &mut shaped);
        for (name, theirs) in [("presence_penalty", "presencePenalty"), ("frequency_penalty", "frequencyPenalty")] {
            if let Some(scale) = body.shift_remove(name) {
                shaped.insert(theirs.into(), json!({ "scale": scale }));
            }
        }
        Ok(Value::Object(shaped))
    }

    fn answer(&self, mut reply: Value) -> Result<Value, CodecError> {
        let texts = texts(&mut reply, "/completions")?;
        let count = |tokens: Option<&Value>| tokens.and_then(Value::as_array).map(|tokens| tokens.len() as u64);
        let completion = texts.iter().filter_map(|one| count(one.pointer("/data/tokens"))).reduce(u64::saturating_add);
        let usage = usage(count(reply.pointer("/prompt/tokens")), completion);
        let choices = texts.iter().enumerate().map(|(index, one)| {
            let reason = one.pointer("/finishReason/reason").and_then(Value::as_str);
            let reason = if reason == Some("length") { "length" } else { "stop" };
            json!({ "index": index, "text": one.pointer("/data/text"), "finish_reason": reason })
        });
        // Its ids are numbers.
        Ok(json!({ "choices": choices.collect::<Vec<_>>(), "usage": usage }))
    }
}

/// What was written, of which there is at least one.
fn texts(reply: &mut Value, place: &'static str) -> Result<Vec<Value>, CodecError> {
    let wrong = |why| Err(CodecError::field(place.trim_start_matches('/'), why));
    match required(reply, place)? {
        Value::Array(texts) if texts.is_empty() => wrong("is empty in the answer"),
        Value::Array(texts) if texts.iter().all(Value::is_object) => Ok(texts),
        _ => wrong("must be a list of objects"),
    }
}
