//! Rerank of those whose form is not the common one. Results are sorted by their score, the best first.

use super::{AskedObject, ObjectCodec, without_nulls};
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::options::Dropped;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct VoyageRerank;

impl ObjectCodec for VoyageRerank {
    fn name(&self) -> &'static str {
        "voyage_rerank"
    }

    fn write_request(&self, mut request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let documents = documents(&mut request)?;
        let mut body = json!({ "model": model, "query": query(&mut request)?, "documents": documents });
        for (name, theirs) in
            [("top_n", "top_k"), ("return_documents", "return_documents"), ("truncation", "truncation")]
        {
            if let Some(value) = request.shift_remove(name) {
                body[theirs] = value;
            }
        }
        Ok((body, rest(&request)))
    }

    fn read_answer(&self, reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let usage = reply.get("usage").cloned().unwrap_or_default();
        answer(&reply, &VOYAGE, usage, asked)
    }
}

#[derive(Debug)]
pub(super) struct PineconeRerank;

impl ObjectCodec for PineconeRerank {
    fn name(&self) -> &'static str {
        "pinecone_rerank"
    }

    fn write_request(&self, mut request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let documents: Vec<Value> = documents(&mut request)?.into_iter().map(|text| json!({ "text": text })).collect();
        let mut body = json!({ "model": model, "query": query(&mut request)?, "documents": documents });
        for name in ["top_n", "return_documents", "rank_fields", "parameters"] {
            if let Some(value) = request.shift_remove(name) {
                body[name] = value;
            }
        }
        Ok((body, rest(&request)))
    }

    fn read_answer(&self, reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let units = reply.pointer("/usage/rerank_units").cloned().unwrap_or_default();
        answer(&reply, &PINECONE, json!({ "search_units": units }), asked)
    }
}

/// Cohere's own form, where it does not pass as it is: on Azure the model's name has a prefix of ours.
#[derive(Debug)]
pub(super) struct CohereRerank;

impl ObjectCodec for CohereRerank {
    fn name(&self) -> &'static str {
        "cohere_rerank"
    }

    fn write_request(&self, mut request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let documents = documents(&mut request)?;
        let mut body = json!({ "model": model, "query": query(&mut request)?, "documents": documents });
        for name in ["top_n", "max_tokens_per_doc", "priority", "return_documents", "rank_fields"] {
            if let Some(value) = request.shift_remove(name) {
                body[name] = value;
            }
        }
        Ok((body, rest(&request)))
    }

    fn read_answer(&self, reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let units = reply.pointer("/meta/billed_units/search_units").cloned();
        answer(&reply, &COHERE, units.map_or(Value::Null, |units| json!({ "search_units": units })), asked)
    }
}

/// Cohere's and Amazon's models, which are invoked. Cohere's want to be told the version of its interface.
#[derive(Debug)]
pub(super) struct BedrockRerank;

impl ObjectCodec for BedrockRerank {
    fn name(&self) -> &'static str {
        "bedrock_rerank"
    }

    fn write_request(&self, mut request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let documents = documents(&mut request)?;
        let mut body = json!({ "query": query(&mut request)?, "documents": documents });
        if model.contains("cohere.") {
            body["api_version"] = 2.into();
        }
        if let Some(most) = request.shift_remove("top_n") {
            body["top_n"] = most;
        }
        Ok((body, rest(&request)))
    }

    fn read_answer(&self, reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        answer(&reply, &COHERE, Value::Null, asked)
    }
}

/// Google's ranking, whose records are numbered by us.
#[derive(Debug)]
pub(super) struct VertexRerank;

impl ObjectCodec for VertexRerank {
    fn name(&self) -> &'static str {
        "vertex_rerank"
    }

    fn write_request(&self, mut request: Map<String, Value>, model: &str) -> Result<(Value, Dropped), CodecError> {
        let documents = documents(&mut request)?.into_iter().enumerate();
        let records: Vec<Value> =
            documents.map(|(index, text)| json!({ "id": index.to_string(), "content": text })).collect();
        let shows = request.shift_remove("return_documents").and_then(|value| value.as_bool()).unwrap_or(false);
        let mut body = json!({ "model": model, "query": query(&mut request)?, "records": records,
            "ignoreRecordDetailsInResponse": !shows });
        if let Some(most) = request.shift_remove("top_n") {
            body["topN"] = most;
        }
        Ok((body, rest(&request)))
    }

    fn read_answer(&self, reply: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        answer(&reply, &VERTEX, Value::Null, asked)
    }
}

/// What a vendor calls the results, and what stands in each of them.
struct ResultNames {
    results: &'static str,
    index: &'static str,
    score: &'static str,
    document: &'static str,
}

static VOYAGE: ResultNames =
    ResultNames { results: "data", index: "index", score: "relevance_score", document: "document" };
static PINECONE: ResultNames = ResultNames { results: "data", index: "index", score: "score", document: "document" };
static COHERE: ResultNames =
    ResultNames { results: "results", index: "index", score: "relevance_score", document: "document" };
static VERTEX: ResultNames = ResultNames { results: "records", index: "id", score: "score", document: "content" };

fn query(request: &mut Map<String, Value>) -> Result<Value, CodecError> {
    match request.shift_remove("query") {
        Some(query @ Value::String(_)) => Ok(query),
        _ => Err(CodecError::field("query", "must be a text")),
    }
}

/// Texts, or objects with a `text`.
fn documents(request: &mut Map<String, Value>) -> Result<Vec<Value>, CodecError> {
    const MAX_DOCUMENTS: usize = 16_384;
    let wrong = || CodecError::field("documents", "must be a list of texts");
    let Some(Value::Array(items)) = request.shift_remove("documents") else { return Err(wrong()) };
    if items.len() > MAX_DOCUMENTS {
        return Err(CodecError::TooMany { field: "documents".into(), most: MAX_DOCUMENTS });
    }
    let texts = items.into_iter().map(|item| match item {
        text @ Value::String(_) => Ok(text),
        Value::Object(mut map) => map.shift_remove("text").filter(Value::is_string).ok_or_else(wrong),
        _ => Err(wrong()),
    });
    texts.collect()
}

fn rest(request: &Map<String, Value>) -> Dropped {
    let mut dropped = Dropped::default();
    request.keys().filter(|name| *name != "model").for_each(|name| dropped.note(name.clone()));
    dropped
}

fn answer(reply: &Value, names: &ResultNames, usage: Value, asked: &AskedObject) -> Result<Value, CodecError> {
    let items = reply.get(names.results).and_then(Value::as_array);
    let items = items.ok_or_else(|| CodecError::field(names.results, "is missing in the answer"))?;
    let mut results: Vec<Value> = items
        .iter()
        .map(|item| {
            // A number, or the text of one.
            let index = item[names.index].as_str().and_then(|text| text.parse::<u64>().ok());
            let index = index.map_or_else(|| item[names.index].clone(), Value::from);
            let mut result = json!({ "index": index, "relevance_score": item[names.score] });
            match item.get(names.document) {
                None | Some(Value::Null) => {}
                Some(text @ Value::String(_)) => result["document"] = json!({ "text": text }),
                Some(document) => result["document"] = document.clone(),
            }
            result
        })
        .collect();
    let score_of = |result: &Value| result["relevance_score"].as_f64().unwrap_or(f64::MIN);
    results.sort_by(|one, other| score_of(other).total_cmp(&score_of(one)));
    Ok(without_nulls(json!({
        "id": asked.id, "object": "list", "results": results, "model": asked.model, "usage": usage, "provider": asked.provider,
    })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::codecs::objects::by_name;

    #[test]
    fn every_form_is_written_and_read() {
        let request =
            json!({ "model": "x", "query": "q", "documents": ["a", { "text": "b" }], "top_n": 1, "priority": 2 });
        let asked = AskedObject { id: "i".into(), model: "m".into(), provider: "p".into(), ..AskedObject::default() };
        for (name, sent, reply) in [
            (
                "voyage_rerank",
                json!({ "model": "m", "query": "q", "documents": ["a", "b"], "top_k": 1 }),
                json!({ "data": [{ "index": 0, "relevance_score": 0.1 }, { "index": 1, "relevance_score": 0.9, "document": "b" }],
                    "usage": { "total_tokens": 9 } }),
            ),
            (
                "pinecone_rerank",
                json!({ "model": "m", "query": "q", "documents": [{ "text": "a" }, { "text": "b" }], "top_n": 1 }),
                json!({ "data": [{ "index": 0, "score": 0.1 }, { "index": 1, "score": 0.9, "document": { "text": "b" } }],
                    "usage": { "rerank_units": 1 } }),
            ),
            (
                "bedrock_rerank",
                json!({ "query": "q", "documents": ["a", "b"], "top_n": 1 }),
                json!({ "results": [{ "index": 0, "relevance_score": 0.1 }, { "index": 1, "relevance_score": 0.9, "document": "b" }] }),
            ),
            (
                "vertex_rerank",
                json!({ "model": "m", "query": "q", "records": [{ "id": "0", "content": "a" }, { "id": "1", "content": "b" }],
                    "ignoreRecordDetailsInResponse": true, "topN": 1 }),
                json!({ "records": [{ "id": "0", "score": 0.1 }, { "id": "1", "score": 0.9, "content": "b" }] }),
            ),
        ] {
            let codec = by_name(name).unwrap();
            let (body, dropped) = codec.write_request(request.as_object().cloned().unwrap(), "m").unwrap();
            assert_eq!((body, dropped.names().collect::<Vec<_>>()), (sent, vec!["priority"]), "{name}");
            let answer = codec.read_answer(reply, &asked).unwrap();
            let best = json!({ "index": 1, "relevance_score": 0.9, "document": { "text": "b" } });
            assert_eq!((&answer["results"][0], &answer["object"]), (&best, &json!("list")), "{name}");
            assert!(codec.read_answer(json!({}), &asked).is_err() && codec.write_request(Map::new(), "m").is_err());
        }
        let cohere = by_name("bedrock_rerank").unwrap();
        let (body, _) = cohere.write_request(request.as_object().cloned().unwrap(), "cohere.rerank-v3-5:0").unwrap();
        assert_eq!(body["api_version"], 2);
        let (body, _) =
            by_name("cohere_rerank").unwrap().write_request(request.as_object().cloned().unwrap(), "m").unwrap();
        assert_eq!((&body["model"], &body["priority"]), (&json!("m"), &json!(2)));
    }
}
