//! Embeddings of those who do not speak OpenAI's form. Vectors are taken over as they were written; those who tell no
//! tokens are counted as the log counts them.

use super::{AskedObject, ObjectCodec, without_nulls};
use crate::wire::codecs::base64_text;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::options::Dropped;
use serde_json::{Map, Value, json};

/// More texts than any vendor takes at once.
const MAX_TEXTS: usize = 4096;

/// A client's request in no vendor's words.
struct Wanted {
    texts: Vec<String>,
    dimensions: Option<Value>,
    /// What the vectors are for, in the vendor's own words.
    purpose: Option<Value>,
    dropped: Dropped,
}

impl Wanted {
    /// `purposes` are the names of fields that say what the vectors are for.
    fn read(mut request: Map<String, Value>, purposes: &[&str]) -> Result<Self, CodecError> {
        let texts = match request.shift_remove("input") {
            Some(Value::String(text)) => vec![text],
            Some(Value::Array(items)) if items.len() > MAX_TEXTS => {
                return Err(CodecError::TooMany { field: "input".into(), most: MAX_TEXTS });
            }
            Some(Value::Array(items)) => items.into_iter().map(text).collect::<Result<_, _>>()?,
            _ => return Err(CodecError::field("input", "must be a text or a list of texts")),
        };
        let dimensions = request.shift_remove("dimensions").filter(|value| !value.is_null());
        let purpose = purposes.iter().find_map(|name| request.shift_remove(*name)).filter(|value| !value.is_null());
        let mut dropped = Dropped::default();
        for name in request.keys().filter(|name| !["model", "encoding_format"].contains(&name.as_str())) {
            dropped.note(name.clone());
        }
        Ok(Self { texts, dimensions, purpose, dropped })
    }

    fn only_text(&mut self) -> Result<String, CodecError> {
        match (self.texts.pop(), self.texts.is_empty()) {
            (Some(text), true) => Ok(text),
            _ => Err(CodecError::field("input", "must be one text: this model takes no list")),
        }
    }
}

fn text(item: Value) -> Result<String, CodecError> {
    match item {
        Value::String(text) => Ok(text),
        _ => Err(CodecError::field("input", "must be texts: tokens are known to OpenAI's models alone")),
    }
}

/// OpenAI's answer around vectors.
fn answer(vectors: Vec<Value>, tokens: Option<u64>, asked: &AskedObject) -> Result<Value, CodecError> {
    let mut data = Vec::with_capacity(vectors.len());
    for (index, vector) in vectors.into_iter().enumerate() {
        let embedding = if asked.is_base64 { packed(&vector)? } else { vector };
        data.push(json!({ "object": "embedding", "index": index, "embedding": embedding }));
    }
    let tokens = tokens.unwrap_or(0);
    Ok(json!({
        "object": "list", "data": data, "model": asked.model, "provider": asked.provider,
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    }))
}

fn packed(vector: &Value) -> Result<Value, CodecError> {
    let numbers = vector.as_array().ok_or_else(no_vectors)?.iter();
    let bytes: Vec<u8> = numbers.flat_map(|number| (number.as_f64().unwrap_or(0.0) as f32).to_le_bytes()).collect();
    Ok(base64_text::encode(bytes).into())
}

fn no_vectors() -> CodecError {
    CodecError::field("embeddings", "are missing in the answer")
}

/// The list at this place.
fn list(answer: &mut Value, place: &str) -> Result<Vec<Value>, CodecError> {
    match answer.pointer_mut(place).map(Value::take) {
        Some(Value::Array(items)) => Ok(items),
        _ => Err(no_vectors()),
    }
}

/// The list at this place of each item of another.
fn lists(answer: &mut Value, place: &str, inner: &str) -> Result<Vec<Value>, CodecError> {
    list(answer, place)?.iter_mut().map(|item| list(item, inner).map(Value::Array)).collect()
}

fn count(answer: &Value, place: &str) -> Option<u64> {
    answer.pointer(place).and_then(Value::as_f64).map(|count| count as u64)
}

#[derive(Debug)]
pub(super) struct GeminiEmbeddings;

impl ObjectCodec for GeminiEmbeddings {
    fn name(&self) -> &'static str {
        "gemini_embeddings"
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let wanted = Wanted::read(request, &["task_type", "taskType", "input_type"])?;
        let model = ["models/", model].concat();
        let requests = wanted.texts.into_iter().map(|text| {
            without_nulls(json!({
                "model": model, "content": { "parts": [{ "text": text }] },
                "taskType": wanted.purpose, "outputDimensionality": wanted.dimensions,
            }))
        });
        Ok((json!({ "requests": requests.collect::<Vec<_>>() }), wanted.dropped))
    }

    fn read_answer(&self, mut reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        answer(lists(&mut reply, "/embeddings", "/values")?, None, asked)
    }
}

#[derive(Debug)]
pub(super) struct VertexEmbeddings;

impl ObjectCodec for VertexEmbeddings {
    fn name(&self) -> &'static str {
        "vertex_embeddings"
    }

    fn write_request(&self, request: Map<String, Value>, _: &str) -> Result<(Value, Dropped), CodecError> {
        let wanted = Wanted::read(request, &["task_type", "taskType", "input_type"])?;
        let instances =
            wanted.texts.into_iter().map(|text| without_nulls(json!({ "content": text, "task_type": wanted.purpose })));
        let instances: Vec<Value> = instances.collect();
        let parameters = without_nulls(json!({ "outputDimensionality": wanted.dimensions }));
        Ok((json!({ "instances": instances, "parameters": parameters }), wanted.dropped))
    }

    fn read_answer(&self, mut reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let predictions = reply.get("predictions").and_then(Value::as_array).into_iter().flatten();
        let tokens = predictions.filter_map(|one| count(one, "/embeddings/statistics/token_count")).sum();
        answer(lists(&mut reply, "/predictions", "/embeddings/values")?, Some(tokens), asked)
    }
}

#[derive(Debug)]
pub(super) struct CohereEmbeddings;

impl ObjectCodec for CohereEmbeddings {
    fn name(&self) -> &'static str {
        "cohere_embeddings"
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let wanted = Wanted::read(request, &["input_type"])?;
        let body = json!({
            "model": model, "texts": wanted.texts, "embedding_types": ["float"],
            // Cohere demands one.
            "input_type": wanted.purpose.unwrap_or_else(|| "search_document".into()),
            "output_dimension": wanted.dimensions,
        });
        Ok((without_nulls(body), wanted.dropped))
    }

    fn read_answer(&self, mut reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let tokens = count(&reply, "/meta/billed_units/input_tokens");
        answer(list(&mut reply, "/embeddings/float")?, tokens, asked)
    }
}

#[derive(Debug)]
pub(super) struct TitanEmbeddings;

impl ObjectCodec for TitanEmbeddings {
    fn name(&self) -> &'static str {
        "titan_embeddings"
    }

    fn write_request(&self, request: Map<String, Value>, _: &str) -> Result<(Value, Dropped), CodecError> {
        let mut wanted = Wanted::read(request, &[])?;
        let text = wanted.only_text()?;
        Ok((without_nulls(json!({ "inputText": text, "dimensions": wanted.dimensions })), wanted.dropped))
    }

    fn read_answer(&self, mut reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let tokens = count(&reply, "/inputTextTokenCount");
        answer(vec![list(&mut reply, "/embedding").map(Value::Array)?], tokens, asked)
    }
}

/// Cohere's models on Bedrock take the older form.
#[derive(Debug)]
pub(super) struct BedrockCohereEmbeddings;

impl ObjectCodec for BedrockCohereEmbeddings {
    fn name(&self) -> &'static str {
        "bedrock_cohere_embeddings"
    }

    fn write_request(&self, request: Map<String, Value>, _: &str) -> Result<(Value, Dropped), CodecError> {
        let mut wanted = Wanted::read(request, &["input_type"])?;
        wanted.dropped.note_if(wanted.dimensions.is_some(), "dimensions");
        let purpose = wanted.purpose.unwrap_or_else(|| "search_document".into());
        Ok((json!({ "texts": wanted.texts, "input_type": purpose }), wanted.dropped))
    }

    fn read_answer(&self, mut reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        answer(list(&mut reply, "/embeddings")?, None, asked)
    }
}

#[derive(Debug)]
pub(super) struct NomicEmbeddings;

impl ObjectCodec for NomicEmbeddings {
    fn name(&self) -> &'static str {
        "nomic_embeddings"
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let wanted = Wanted::read(request, &["task_type", "input_type"])?;
        let body = json!({
            "model": model, "texts": wanted.texts, "task_type": wanted.purpose, "dimensionality": wanted.dimensions,
        });
        Ok((without_nulls(body), wanted.dropped))
    }

    fn read_answer(&self, mut reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let tokens = count(&reply, "/usage/prompt_tokens").or(count(&reply, "/usage/total_tokens"));
        answer(list(&mut reply, "/embeddings")?, tokens, asked)
    }
}

#[derive(Debug)]
pub(super) struct PineconeEmbeddings;

impl ObjectCodec for PineconeEmbeddings {
    fn name(&self) -> &'static str {
        "pinecone_embeddings"
    }

    fn write_request(&self, request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let wanted = Wanted::read(request, &["input_type"])?;
        let inputs: Vec<Value> = wanted.texts.into_iter().map(|text| json!({ "text": text })).collect();
        let purpose = wanted.purpose.unwrap_or_else(|| "passage".into());
        let parameters = without_nulls(json!({ "input_type": purpose, "dimension": wanted.dimensions }));
        Ok((json!({ "model": model, "inputs": inputs, "parameters": parameters }), wanted.dropped))
    }

    fn read_answer(&self, mut reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let tokens = count(&reply, "/usage/total_tokens");
        answer(lists(&mut reply, "/data", "/values")?, tokens, asked)
    }
}

/// Its older interface.
#[derive(Debug)]
pub(super) struct Ai21Embeddings;

impl ObjectCodec for Ai21Embeddings {
    fn name(&self) -> &'static str {
        "ai21_embeddings"
    }

    fn write_request(&self, request: Map<String, Value>, _: &str) -> Result<(Value, Dropped), CodecError> {
        let mut wanted = Wanted::read(request, &["type", "input_type"])?;
        wanted.dropped.note_if(wanted.dimensions.is_some(), "dimensions");
        Ok((without_nulls(json!({ "texts": wanted.texts, "type": wanted.purpose })), wanted.dropped))
    }

    fn read_answer(&self, mut reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        answer(lists(&mut reply, "/results", "/embedding")?, None, asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::codecs::objects::by_name;

    fn object(value: Value) -> Map<String, Value> {
        value.as_object().cloned().unwrap()
    }

    #[test]
    fn every_form_is_written_and_read() {
        let asked = AskedObject { model: "m".into(), provider: "p".into(), ..AskedObject::default() };
        for (name, sent, reply, tokens) in [
            (
                "gemini_embeddings",
                json!({ "requests": [
                    { "model": "models/m", "content": { "parts": [{ "text": "a" }] }, "outputDimensionality": 2 },
                    { "model": "models/m", "content": { "parts": [{ "text": "b" }] }, "outputDimensionality": 2 }] }),
                json!({ "embeddings": [{ "values": [1, 2] }, { "values": [3, 4] }] }),
                0,
            ),
            (
                "vertex_embeddings",
                json!({ "instances": [{ "content": "a" }, { "content": "b" }], "parameters": { "outputDimensionality": 2 } }),
                json!({ "predictions": [
                    { "embeddings": { "values": [1, 2], "statistics": { "token_count": 3.0 } } },
                    { "embeddings": { "values": [3, 4], "statistics": { "token_count": 4 } } }] }),
                7,
            ),
            (
                "cohere_embeddings",
                json!({ "model": "m", "texts": ["a", "b"], "embedding_types": ["float"], "input_type": "search_document",
                    "output_dimension": 2 }),
                json!({ "embeddings": { "float": [[1, 2], [3, 4]] }, "meta": { "billed_units": { "input_tokens": 5.0 } } }),
                5,
            ),
            (
                "bedrock_cohere_embeddings",
                json!({ "texts": ["a", "b"], "input_type": "search_document" }),
                json!({ "embeddings": [[1, 2], [3, 4]] }),
                0,
            ),
            (
                "nomic_embeddings",
                json!({ "model": "m", "texts": ["a", "b"], "dimensionality": 2 }),
                json!({ "embeddings": [[1, 2], [3, 4]], "usage": { "prompt_tokens": 6 } }),
                6,
            ),
            (
                "pinecone_embeddings",
                json!({ "model": "m", "inputs": [{ "text": "a" }, { "text": "b" }],
                    "parameters": { "input_type": "passage", "dimension": 2 } }),
                json!({ "data": [{ "values": [1, 2] }, { "values": [3, 4] }], "usage": { "total_tokens": 8 } }),
                8,
            ),
        ] {
            let codec = by_name(name).unwrap();
            let request = object(json!({ "model": "x", "input": ["a", "b"], "dimensions": 2, "user": "u" }));
            let (body, dropped) = codec.write_request(request, "m").unwrap();
            assert_eq!(body, sent, "{name}");
            assert!(dropped.names().any(|dropped| dropped == "user"), "{name}");
            let answer = codec.read_answer(reply, &asked).unwrap();
            assert_eq!(answer["data"][1], json!({ "object": "embedding", "index": 1, "embedding": [3, 4] }), "{name}");
            assert_eq!((&answer["usage"]["prompt_tokens"], &answer["model"]), (&json!(tokens), &json!("m")), "{name}");
            assert!(codec.read_answer(json!({ "odd": 1 }), &asked).is_err(), "{name}");
        }
    }

    #[test]
    fn titan_takes_one_text_and_nobody_takes_tokens() {
        let titan = by_name("titan_embeddings").unwrap();
        let (body, _) = titan.write_request(object(json!({ "input": ["a"] })), "m").unwrap();
        assert_eq!(body, json!({ "inputText": "a" }));
        assert!(titan.write_request(object(json!({ "input": ["a", "b"] })), "m").is_err());
        for input in [json!([1, 2]), json!(7), json!(null)] {
            assert!(titan.write_request(object(json!({ "input": input })), "m").is_err(), "{input}");
        }
        let asked = AskedObject { is_base64: true, ..AskedObject::default() };
        let answer = titan.read_answer(json!({ "embedding": [1.0, -2.0], "inputTextTokenCount": 2 }), &asked).unwrap();
        assert_eq!(answer["data"][0]["embedding"], "AACAPwAAAMA=");
    }
}
