//! Wires that serve one or two families each: images of several vendors, Oracle's, Reka's and Triton's conversations,
//! rankings and embeddings of single vendors. Where a path says nothing but the model, the vendor stands before it
//! (`/segmind`, `/fal`).

mod images;
mod shape;
mod talk;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::fields::Shape;
use super::openai::vector;
use super::question::{Question, list, texts};
use super::shape::Payload;
use super::vendors::{Call, Vendor};

/// One wire: where it is, what it takes, and what it answers.
pub struct SmallWire {
    is_at: fn(&str) -> bool,
    shape: &'static Shape,
    answer: fn(&Call<'_>, &Value, &Question, &Fault) -> Payload,
}

static WIRES: &[SmallWire] = &[
    SmallWire {
        is_at: |path| path.contains("/generation/") && path.ends_with("/text-to-image"),
        shape: &shape::STABILITY_FIRST,
        answer: |_, body, _, _| images::listed(body, "samples", "artifacts", "base64"),
    },
    SmallWire {
        is_at: |path| path.starts_with("/v2beta/stable-image/generate/"),
        shape: &shape::STABILITY_SECOND,
        answer: |_, _, _, _| whole(&json!({ "image": images::BASE64, "finish_reason": "SUCCESS", "seed": 1 })),
    },
    SmallWire {
        is_at: |path| path.contains("/image_generation/"),
        shape: &shape::FIREWORKS,
        answer: |_, body, _, _| images::bare_list(body),
    },
    SmallWire {
        is_at: |path| path.contains("/workflows/") && path.ends_with("/text_to_image"),
        shape: &shape::FIREWORKS_WORKFLOW,
        answer: |_, _, _, _| whole(&json!({ "base64": [images::BASE64], "finishReason": "SUCCESS", "seed": 1 })),
    },
    SmallWire {
        is_at: |path| path.ends_with("/text-to-image"),
        shape: &shape::SILICONFLOW,
        answer: |_, body, _, _| images::listed(body, "batch_size", "images", "url"),
    },
    SmallWire {
        is_at: |path| path == "/image/generation",
        shape: &shape::HYPERBOLIC,
        answer: |_, body, _, _| images::listed(body, "", "images", "image"),
    },
    SmallWire {
        is_at: |path| path.starts_with("/run/"),
        shape: &shape::WORKERS,
        answer: |call, _, _, _| images::of_workers(call.path),
    },
    SmallWire {
        is_at: |path| path.starts_with("/segmind/"),
        shape: &shape::SEGMIND,
        answer: |_, _, _, _| whole(&json!({ "image": images::BASE64, "status": "Success" })),
    },
    SmallWire {
        is_at: |path| path.starts_with("/fal/"),
        shape: &shape::FAL,
        answer: |_, body, _, _| images::of_fal(body),
    },
    SmallWire { is_at: |path| path.ends_with("/actions/chat"), shape: &shape::ORACLE, answer: talk::oracle },
    SmallWire { is_at: |path| path == "/chat", shape: &shape::REKA, answer: talk::reka },
    SmallWire {
        is_at: |path| matches!(path, "/generate" | "/generate_stream"),
        shape: &shape::TRITON,
        answer: talk::triton,
    },
    SmallWire {
        is_at: |path| path.ends_with(":rank"),
        shape: &shape::RANK,
        answer: |_, body, _, _| whole(&ranked(body)),
    },
    SmallWire {
        is_at: |path| path.ends_with("/studio/v1/embed"),
        shape: &shape::AI21_EMBED,
        answer: |_, _, question, _| {
            let vectors = question.inputs.iter().map(|text| json!({ "embedding": vector(text, 8) }));
            whole(&json!({ "id": "e", "results": vectors.collect::<Vec<_>>() }))
        },
    },
];

/// The wire at a path without its version.
pub fn wire_at(path: &str) -> Option<&'static SmallWire> {
    let path = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    WIRES.iter().find(|wire| (wire.is_at)(path))
}

/// Triton asks for no credential.
pub fn is_open(path: &str) -> bool {
    matches!(path, "/generate" | "/generate_stream")
}

pub struct SmallWires;

impl Vendor for SmallWires {
    fn read(&self, body: &[u8]) -> Result<Value, String> {
        match body.starts_with(b"--") {
            true => Ok(form(body)),
            false => serde_json::from_slice(body).map_err(|error| error.to_string()),
        }
    }

    fn question(&self, call: &Call<'_>, body: &Value) -> Question {
        let model = ["model", "model_name"].iter().find_map(|name| body[*name].as_str());
        let model = model.or(body["servingMode"]["modelId"].as_str()).unwrap_or_default();
        let mut question = Question::new(model.to_owned());
        talk::read(&mut question, call, body);
        question.reads(body["query"].as_str());
        if body["texts"].is_array() {
            question.embeds(list(&body["texts"]).filter_map(Value::as_str), &Value::Null);
        }
        question
    }

    fn flaw(&self, call: &Call<'_>, body: &Value) -> Option<(u16, String)> {
        let flaw = wire_at(call.path)?.shape.flaw(body)?;
        Some((400, format!("the request is not valid: {flaw}")))
    }

    fn answer(&self, call: &Call<'_>, body: &Value, question: &Question, fault: &Fault, _: u64) -> Payload {
        match wire_at(call.path) {
            Some(wire) => (wire.answer)(call, body, question, fault),
            None => whole(&json!({})),
        }
    }

    fn error(&self, status: u16, message: &str) -> Value {
        json!({ "code": status.to_string(), "message": message })
    }
}

fn whole(value: &Value) -> Payload {
    Payload::whole(value.to_string().into_bytes())
}

/// The text fields of a form; numbers become numbers.
fn form(body: &[u8]) -> Value {
    let text = String::from_utf8_lossy(body);
    let boundary = text.lines().next().unwrap_or_default().to_owned();
    let mut fields = Map::new();
    for part in text.split(&boundary) {
        let Some((head, value)) = part.split_once("\r\n\r\n") else { continue };
        let Some(name) = head.split_once("name=\"").and_then(|(_, rest)| rest.split('"').next()) else { continue };
        let value = value.strip_suffix("\r\n").unwrap_or(value);
        let value = value.parse::<i64>().map_or_else(|_| json!(value), |number| json!(number));
        fields.insert(name.to_owned(), value);
    }
    Value::Object(fields)
}

/// The more words of the query a record holds, the nearer it is.
fn ranked(body: &Value) -> Value {
    let query: Vec<&str> = body["query"].as_str().unwrap_or_default().split_whitespace().collect();
    let mut records: Vec<(f64, &Value)> = list(&body["records"])
        .map(|record| {
            let held = query.iter().filter(|word| record["content"].as_str().is_some_and(|text| text.contains(**word)));
            (held.count() as f64 / (query.len() + 1) as f64, &record["id"])
        })
        .collect();
    records.sort_by(|one, other| other.0.total_cmp(&one.0));
    let most = body["topN"].as_u64().map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let records = records.iter().take(most).map(|(score, id)| json!({ "id": id, "score": score }));
    json!({ "records": records.collect::<Vec<_>>() })
}

/// What `invoke` is asked for beside embeddings, by what stands in its body.
pub fn invoked(body: &Value) -> Option<Value> {
    if body["query"].is_string() && body["documents"].is_array() {
        let records: Vec<Value> = list(&body["documents"])
            .enumerate()
            .map(|(index, text)| json!({ "id": index.to_string(), "content": text }))
            .collect();
        let ranked = ranked(&json!({ "query": body["query"], "records": records, "topN": body["top_n"] }));
        let result = |record: &Value| {
            let index: u64 = record["id"].as_str().and_then(|id| id.parse().ok()).unwrap_or(0);
            json!({ "index": index, "relevance_score": record["score"] })
        };
        return Some(json!({ "results": list(&ranked["records"]).map(result).collect::<Vec<_>>() }));
    }
    if body["taskType"] == "TEXT_IMAGE" {
        let count = body["imageGenerationConfig"]["numberOfImages"].as_u64().unwrap_or(1).min(8) as usize;
        return Some(json!({ "images": vec![images::BASE64; count] }));
    }
    if body["text_prompts"].is_array() {
        return Some(
            json!({ "result": "success", "artifacts": [{ "base64": images::BASE64, "finishReason": "SUCCESS" }] }),
        );
    }
    if body["mode"] == "text-to-image" {
        return Some(json!({ "images": [images::BASE64], "seeds": [1], "finish_reasons": [null] }));
    }
    if body["prompt"].is_string() && body.get("maxTokens").is_some() {
        let data = json!({ "text": "Hi", "tokens": [{}, {}] });
        return Some(json!({ "id": 1, "prompt": { "tokens": [{}, {}, {}] },
            "completions": [{ "data": data, "finishReason": { "reason": "endoftext" } }] }));
    }
    let is_text = body["prompt"].is_string();
    is_text.then(|| json!({ "id": "g", "generations": [{ "text": "Hi", "finish_reason": "COMPLETE" }] }))
}

/// A prediction of images; none where another is asked for.
pub fn predicted(body: &Value) -> Option<Value> {
    let prompt = body["instances"][0]["prompt"].as_str()?;
    let count = body["parameters"]["sampleCount"].as_u64().unwrap_or(4).min(8) as usize;
    let image = json!({ "bytesBase64Encoded": images::BASE64, "mimeType": "image/png", "prompt": prompt });
    Some(json!({ "predictions": vec![image; count] }))
}

fn data(value: &Value) -> Bytes {
    Bytes::from(format!("data: {value}\n\n"))
}

fn joined(content: &Value) -> String {
    texts(content).concat()
}
