//! Counting the tokens of a messages request at those who count in their own words. The conversation is written as it
//! would be asked; only what stands around it differs.

use super::{AskedObject, ObjectCodec};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::options::{Dropped, RequestOptions};
use crate::wire::codecs::{Codec, converse, foreign_tools, gemini, messages};
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct GeminiCount;

impl ObjectCodec for GeminiCount {
    fn name(&self) -> &'static str {
        "gemini_count"
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let (mut body, dropped) = written(&gemini::GeminiCodec, request, model)?;
        body.insert("model".into(), ["models/", model].concat().into());
        Ok((json!({ "generateContentRequest": body }), dropped))
    }

    fn read_answer(&self, reply: Value, _: &AskedObject) -> Result<Value, CodecError> {
        counted(&reply, "totalTokens")
    }
}

/// Vertex has the request without what stands around it.
#[derive(Debug)]
pub(super) struct VertexCount;

impl ObjectCodec for VertexCount {
    fn name(&self) -> &'static str {
        "vertex_count"
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let (mut body, dropped) = written(&gemini::GeminiCodec, request, model)?;
        body.retain(|name, _| ["contents", "systemInstruction", "tools"].contains(&name.as_str()));
        Ok((Value::Object(body), dropped))
    }

    fn read_answer(&self, reply: Value, _: &AskedObject) -> Result<Value, CodecError> {
        counted(&reply, "totalTokens")
    }
}

/// Claude's models on Vertex are all counted at one place, so that the body names the model.
#[derive(Debug)]
pub(super) struct VertexClaudeCount;

impl ObjectCodec for VertexClaudeCount {
    fn name(&self) -> &'static str {
        "vertex_claude_count"
    }

    fn write_request(&self, mut request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        if !request.get("messages").is_some_and(Value::is_array) {
            return Err(CodecError::field("messages", "must be a list"));
        }
        request.insert("model".into(), model.into());
        request.entry("anthropic_version").or_insert_with(|| "vertex-2023-10-16".into());
        Ok((Value::Object(request), Dropped::default()))
    }

    fn read_answer(&self, reply: Value, _: &AskedObject) -> Result<Value, CodecError> {
        counted(&reply, "input_tokens")
    }
}

#[derive(Debug)]
pub(super) struct ConverseCount;

impl ObjectCodec for ConverseCount {
    fn name(&self) -> &'static str {
        "converse_count"
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let (mut body, dropped) = written(&converse::ConverseCodec, request, model)?;
        // Of a conversation only what the model reads is counted.
        body.retain(|name, _| ["messages", "system", "toolConfig"].contains(&name.as_str()));
        Ok((json!({ "input": { "converse": body } }), dropped))
    }

    fn read_answer(&self, reply: Value, _: &AskedObject) -> Result<Value, CodecError> {
        counted(&reply, "inputTokens")
    }
}

fn written(
    codec: &dyn Codec,
    request: Map<String, Value>,
    model: &str,
) -> Result<(Map<String, Value>, Dropped), CodecError> {
    let body = serde_json::to_vec(&request).map_err(|error| CodecError::Malformed(error.to_string()))?;
    let mut request = messages::MessagesCodec.read_request(&body)?;
    foreign_tools::fit(&mut request, codec.format(), false, &mut Dropped::default());
    let mut out = Vec::with_capacity(body.len());
    let options = RequestOptions { model: Some(model), ..RequestOptions::default() };
    let dropped = codec.write_request(&request, &options, &mut out)?;
    let written = serde_json::from_slice(&out).map_err(|error| CodecError::Malformed(error.to_string()))?;
    Ok((written, dropped))
}

fn counted(reply: &Value, name: &'static str) -> Result<Value, CodecError> {
    let count = reply.get(name).and_then(Value::as_u64);
    let count = count.ok_or_else(|| CodecError::field(name, "is missing in the answer"))?;
    Ok(json!({ "input_tokens": count }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::codecs::objects::by_name;

    #[test]
    fn a_conversation_is_counted_as_it_would_be_asked() {
        let request =
            json!({ "model": "x", "system": "Be brief.", "messages": [{ "role": "user", "content": "Hello" }] });
        for (name, place, reply) in [
            ("gemini_count", "/generateContentRequest/contents/0/parts/0/text", json!({ "totalTokens": 7 })),
            ("converse_count", "/input/converse/messages/0/content/0/text", json!({ "inputTokens": 7 })),
            ("vertex_count", "/contents/0/parts/0/text", json!({ "totalTokens": 7 })),
            ("vertex_claude_count", "/messages/0/content", json!({ "input_tokens": 7 })),
        ] {
            let codec = by_name(name).unwrap();
            let (body, _) = codec.write_request(request.as_object().cloned().unwrap(), "m").unwrap();
            assert_eq!(body.pointer(place), Some(&json!("Hello")), "{body}");
            let answer = codec.read_answer(reply, &AskedObject::default()).unwrap();
            assert_eq!(answer, json!({ "input_tokens": 7 }));
            assert!(codec.read_answer(json!({}), &AskedObject::default()).is_err(), "{name}");
            assert!(codec.write_request(Map::new(), "m").is_err(), "{name}");
        }
    }
}
