//! Rerank of those whose form is not the common one. Results are sorted by their score, the best first.

use super::{AskedObject, ObjectCodec};
use crate::codecs::error::CodecError;
use crate::codecs::options::Dropped;
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

    fn read_answer(&self, told: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let usage = told.get("usage").cloned().unwrap_or_default();
        answer(&told, "relevance_score", usage, asked)
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

    fn read_answer(&self, told: Value, asked: &AskedObject) -> Result<Value, CodecError> {
        let units = told.pointer("/usage/rerank_units").cloned().unwrap_or_default();
        answer(&told, "score", json!({ "search_units": units }), asked)
    }
}

fn query(request: &mut Map<String, Value>) -> Result<Value, CodecError> {
    match request.shift_remove("query") {
        Some(query @ Value::String(_)) => Ok(query),
        _ => Err(CodecError::field("query", "must be a text")),
    }
}

/// Texts, or objects with a `text`.
fn documents(request: &mut Map<String, Value>) -> Result<Vec<Value>, CodecError> {
    const MOST: usize = 16_384;
    let wrong = || CodecError::field("documents", "must be a list of texts");
    let Some(Value::Array(items)) = request.shift_remove("documents") else { return Err(wrong()) };
    if items.len() > MOST {
        return Err(CodecError::TooMany { field: "documents".into(), most: MOST });
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

fn answer(told: &Value, score: &str, usage: Value, asked: &AskedObject) -> Result<Value, CodecError> {
    let items = told.get("data").and_then(Value::as_array);
    let items = items.ok_or_else(|| CodecError::field("data", "is missing in the answer"))?;
    let mut results: Vec<Value> = items
        .iter()
        .map(|item| {
            let mut result = json!({ "index": item["index"], "relevance_score": item[score] });
            match item.get("document") {
                None | Some(Value::Null) => {}
                Some(text @ Value::String(_)) => result["document"] = json!({ "text": text }),
                Some(document) => result["document"] = document.clone(),
            }
            result
        })
        .collect();
    let score_of = |result: &Value| result["relevance_score"].as_f64().unwrap_or(f64::MIN);
    results.sort_by(|one, other| score_of(other).total_cmp(&score_of(one)));
    Ok(json!({
        "id": asked.id, "object": "list", "results": results, "model": asked.model, "usage": usage, "provider": asked.provider,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codecs::objects::by_name;

    #[test]
    fn both_forms_are_written_and_read() {
        let request =
            json!({ "model": "x", "query": "q", "documents": ["a", { "text": "b" }], "top_n": 1, "priority": 2 });
        let asked = AskedObject { id: "i".into(), model: "m".into(), provider: "p".into(), is_base64: false };
        for (name, sent, told) in [
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
        ] {
            let codec = by_name(name).unwrap();
            let (body, dropped) = codec.write_request(request.as_object().cloned().unwrap(), "m").unwrap();
            assert_eq!((body, dropped.names().collect::<Vec<_>>()), (sent, vec!["priority"]), "{name}");
            let answer = codec.read_answer(told, &asked).unwrap();
            let best = json!({ "index": 1, "relevance_score": 0.9, "document": { "text": "b" } });
            assert_eq!((&answer["results"][0], &answer["object"]), (&best, &json!("list")), "{name}");
            assert!(codec.read_answer(json!({}), &asked).is_err() && codec.write_request(Map::new(), "m").is_err());
        }
    }
}
