//! Triton's generate extension: one text in, one text out. Its streams end with their connection.

use super::{ChatShape, rename, required};
use crate::wire::codecs::Codec;
use crate::wire::codecs::completions::CompletionsCodec;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::options::RequestOptions;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct Triton;

const NAMES: &[(&str, &str)] = &[
    ("prompt", "text_input"),
    ("max_tokens", "max_tokens"),
    ("temperature", "temperature"),
    ("top_p", "top_p"),
    ("top_k", "top_k"),
    ("stop", "stop_words"),
    ("bad_words", "bad_words"),
    ("seed", "random_seed"),
];

impl ChatShape for Triton {
    fn name(&self) -> &'static str {
        "triton"
    }

    fn base(&self) -> &'static dyn Codec {
        &CompletionsCodec
    }

    fn request(&self, body: &mut Map<String, Value>, _: &RequestOptions<'_>) -> Result<Value, CodecError> {
        let mut shaped = Map::new();
        rename(body, NAMES, &mut shaped);
        Ok(Value::Object(shaped))
    }

    fn answer(&self, mut reply: Value) -> Result<Value, CodecError> {
        let text = required(&mut reply, "/text_output")?;
        Ok(json!({ "choices": [{ "index": 0, "text": text, "finish_reason": "stop" }] }))
    }

    fn chunk(&self, mut event: Value) -> Option<Value> {
        let text = event.get_mut("text_output").map(Value::take)?;
        Some(json!({ "choices": [{ "index": 0, "text": text, "finish_reason": null }] }))
    }

    fn closing(&self) -> Option<Value> {
        Some(json!({ "choices": [{ "index": 0, "text": "", "finish_reason": "stop" }] }))
    }
}
