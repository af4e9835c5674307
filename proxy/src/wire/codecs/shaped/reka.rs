//! Reka's first interface: a history in which the two sides take turns, and one image at most, at its beginning. What has
//! no side of its own, as a system text, is the human's.

use super::{ChatShape, messages, rename, required, role_of, text_of, unsayable, usage};
use crate::wire::codecs::Codec;
use crate::wire::codecs::chat::ChatCodec;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::options::RequestOptions;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct Reka;

const NAMES: &[(&str, &str)] = &[
    ("model", "model_name"),
    ("max_tokens", "request_output_len"),
    ("temperature", "temperature"),
    ("top_p", "runtime_top_p"),
    ("top_k", "runtime_top_k"),
    ("stop", "stop_words"),
    ("seed", "random_seed"),
    ("frequency_penalty", "frequency_penalty"),
    ("presence_penalty", "presence_penalty"),
    ("length_penalty", "length_penalty"),
    ("retrieval_dataset", "retrieval_dataset"),
    ("use_search_engine", "use_search_engine"),
];

impl ChatShape for Reka {
    fn name(&self) -> &'static str {
        "reka"
    }

    fn base(&self) -> &'static dyn Codec {
        &ChatCodec
    }

    fn request(&self, body: &mut Map<String, Value>, _: &RequestOptions<'_>) -> Result<Value, CodecError> {
        let mut shaped = Map::new();
        if body.contains_key("tools") {
            return Err(CodecError::field("tools", "cannot be said to this provider"));
        }
        shaped.insert("conversation_history".into(), history(messages(body))?);
        rename(body, NAMES, &mut shaped);
        Ok(Value::Object(shaped))
    }

    fn answer(&self, mut reply: Value) -> Result<Value, CodecError> {
        let text = required(&mut reply, "/text")?;
        let reason = match reply["finish_reason"].as_str() {
            Some("length" | "context") => "length",
            _ => "stop",
        };
        let count = |name: &str| reply["metadata"][name].as_u64();
        let usage = usage(count("input_tokens"), count("generated_tokens"));
        let message = json!({ "role": "assistant", "content": text });
        Ok(json!({ "choices": [{ "index": 0, "message": message, "finish_reason": reason }], "usage": usage }))
    }
}

struct Side {
    is_human: bool,
    text: String,
}

fn history(messages: Vec<Value>) -> Result<Value, CodecError> {
    let mut sides: Vec<Side> = Vec::new();
    let mut image = None;
    for mut message in messages {
        let is_human = role_of(&message) != "assistant";
        if message.get("tool_calls").is_some() || role_of(&message) == "tool" {
            return Err(CodecError::field("messages.tool_calls", "cannot be said to this provider"));
        }
        let text = text_of(message.get_mut("content").map(Value::take), |part| match part.pointer("/image_url/url") {
            Some(url) if image.is_none() => {
                image = Some(url.clone());
                Ok(())
            }
            Some(_) => Err(CodecError::field("messages.image_url", "may stand once only for this provider")),
            None => Err(unsayable(&part)),
        })?;
        match sides.last_mut() {
            Some(last) if last.is_human == is_human => {
                last.text.push_str("\n\n");
                last.text.push_str(&text);
            }
            _ => sides.push(Side { is_human, text }),
        }
    }
    // The human begins.
    if sides.first().is_none_or(|first| !first.is_human) {
        sides.insert(0, Side { is_human: true, text: String::new() });
    }
    let written = sides.into_iter().enumerate().map(|(place, side)| {
        let mut entry = json!({ "type": if side.is_human { "human" } else { "model" }, "text": side.text });
        if let Some(url) = image.take_if(|_| place == 0) {
            entry["media_url"] = url;
        }
        entry
    });
    Ok(Value::Array(written.collect()))
}
