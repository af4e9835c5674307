//! Gemini's wire, on Google's own host and on Vertex: content (whole, as events, as a JSON array), embeddings, token
//! counts and models. Vertex differs in its paths, and in `:predict` for embeddings.

mod shape;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::openai::{spoil_with, vector};
use super::question::{Question, list, texts};
use super::sample::JsonFormat;
use super::shape::Payload;
use super::small_wires;
use super::tools::{Choice, Tool, ToolCall};
use super::vendors::{Call, Vendor, unescaped};

const MODELS: [&str; 3] = ["gemini-2.5-flash", "gemini-2.5-pro", "gemini-embedding-001"];
/// What stands below these is the caller's own and keeps its spelling.
const OPAQUE: [&str; 8] = [
    "args",
    "response",
    "parameters",
    "parametersJsonSchema",
    "responseSchema",
    "responseJsonSchema",
    "_responseJsonSchema",
    "labels",
];

pub struct Gemini;

impl Vendor for Gemini {
    /// Google reads both `generation_config` and `generationConfig`.
    fn spelled(&self, body: Value) -> Value {
        camel(body, 0)
    }

    fn question(&self, call: &Call<'_>, body: &Value) -> Question {
        let (model, method) = asked(call.path);
        let mut question = Question::new(model);
        question.is_streaming = method == "streamGenerateContent";
        match method {
            "embedContent" => question.embeds([joined(&body["content"]).as_str()], &body["outputDimensionality"]),
            "batchEmbedContents" => {
                let texts: Vec<String> = list(&body["requests"]).map(|request| joined(&request["content"])).collect();
                let dimensions = &body["requests"][0]["outputDimensionality"];
                question.embeds(texts.iter().map(String::as_str), dimensions);
            }
            "predict" => {
                let texts = list(&body["instances"]).map(|instance| instance["content"].as_str().unwrap_or_default());
                question.embeds(texts, &body["parameters"]["outputDimensionality"]);
            }
            _ => {
                let asked = &body["generateContentRequest"];
                read_content(&mut question, if asked.is_object() { asked } else { body });
            }
        }
        question
    }

    fn flaw(&self, call: &Call<'_>, body: &Value) -> Option<(u16, String)> {
        let flaw = match asked(call.path).1 {
            "generateContent" | "streamGenerateContent" => shape::GENERATE.flaw(body),
            "embedContent" => shape::EMBED.flaw(body),
            "batchEmbedContents" => shape::BATCH.flaw(body),
            "predict" if small_wires::predicted(body).is_some() => None,
            "predict" => shape::PREDICT.flaw(body),
            "countTokens" => shape::COUNT.flaw(body),
            _ => None,
        };
        let flaw = flaw.or_else(|| match &body["contents"] {
            Value::Array(contents) if contents.is_empty() => Some("contents: contents is not specified".to_owned()),
            _ => None,
        });
        flaw.map(|flaw| (400, format!("Invalid JSON payload received. {flaw}")))
    }

    fn answer(&self, call: &Call<'_>, body: &Value, question: &Question, fault: &Fault, id: u64) -> Payload {
        let answer = match asked(call.path).1 {
            "generateContent" => whole(question, fault, id),
            "streamGenerateContent" => return stream(call.query, question, fault, id),
            "embedContent" => embedded(question, fault),
            "batchEmbedContents" => json!({ "embeddings": vectors(question) }),
            "predict" => small_wires::predicted(body).unwrap_or_else(|| predicted(question)),
            "countTokens" => counted(question),
            _ => listed(call.path),
        };
        Payload::whole(answer.to_string().into_bytes())
    }

    fn error(&self, status: u16, message: &str) -> Value {
        let name = match status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            403 => "PERMISSION_DENIED",
            404 => "NOT_FOUND",
            409 => "ABORTED",
            429 => "RESOURCE_EXHAUSTED",
            499 => "CANCELLED",
            503 => "UNAVAILABLE",
            504 => "DEADLINE_EXCEEDED",
            402..500 => "FAILED_PRECONDITION",
            _ => "INTERNAL",
        };
        json!({ "error": { "code": status, "message": message, "status": name } })
    }
}

/// Model and method of `…/models/{model}:{method}`; the method is empty for models themselves.
fn asked(path: &str) -> (String, &str) {
    let (before, method) = match path.rsplit_once(':') {
        Some((before, method)) if !method.contains('/') => (before, method),
        _ => (path, ""),
    };
    let model = ["/models/", "/tunedModels/", "/endpoints/"].iter().find_map(|kind| before.rsplit_once(*kind));
    (model.map_or_else(String::new, |(_, model)| unescaped(model)), method)
}

fn read_content(question: &mut Question, body: &Value) {
    question.reads(texts(&body["systemInstruction"]["parts"]));
    list(&body["contents"]).for_each(|content| question.reads(texts(&content["parts"])));
    let is_user = |content: &&Value| matches!(content["role"].as_str(), None | Some("user"));
    if let Some(content) = list(&body["contents"]).rev().find(is_user) {
        question.last_user = texts(&content["parts"]).into_iter().map(str::to_owned).collect();
    }
    let declared = list(&body["tools"]).flat_map(|tool| list(&tool["functionDeclarations"]));
    question.tools = declared.filter_map(|tool| Tool::read(tool, &["parametersJsonSchema", "parameters"])).collect();
    let calling = &body["toolConfig"]["functionCallingConfig"];
    question.choice = match (calling["mode"].as_str(), calling["allowedFunctionNames"][0].as_str()) {
        (Some("ANY"), Some(name)) => Choice::Named(name.to_owned()),
        (Some("ANY"), None) => Choice::Any,
        _ => Choice::Free,
    };
    let config = &body["generationConfig"];
    let schemas = ["responseJsonSchema", "_responseJsonSchema", "responseSchema"].map(|name| &config[name]);
    let schema = schemas.into_iter().find(|schema| schema.is_object());
    question.format = (config["responseMimeType"] == "application/json")
        .then(|| schema.cloned().map_or(JsonFormat::Object, JsonFormat::Schema));
}

fn whole(question: &Question, fault: &Fault, id: u64) -> Value {
    let reply = question.reply(fault);
    let calls = question.calls(fault);
    let parts = if calls.is_empty() { json!([{ "text": &*reply.text }]) } else { parts_of(&calls) };
    let mut answer = chunk(question, &parts, true, id);
    if !fault.no_usage {
        answer["usageMetadata"] = usage(question, Some(reply.tokens()));
    }
    answer
}

fn parts_of(calls: &[ToolCall]) -> Value {
    calls.iter().map(|call| json!({ "functionCall": { "name": call.name, "args": call.arguments } })).collect()
}

fn chunk(question: &Question, parts: &Value, is_last: bool, id: u64) -> Value {
    let mut candidate = json!({ "content": { "parts": parts, "role": "model" }, "index": 0 });
    if is_last {
        candidate["finishReason"] = json!("STOP");
    }
    json!({ "candidates": [candidate], "modelVersion": question.model, "responseId": format!("mock{id:016}") })
}

fn usage(question: &Question, output: Option<u64>) -> Value {
    let prompt = question.prompt_tokens;
    let details = json!([{ "modality": "TEXT", "tokenCount": prompt }]);
    let mut usage = json!({ "promptTokenCount": prompt, "totalTokenCount": prompt + output.unwrap_or(0),
                            "promptTokensDetails": details });
    if let Some(output) = output {
        usage["candidatesTokenCount"] = json!(output);
    }
    usage
}

/// Events when `alt=sse` asks for them, else the elements of one JSON array, each sent when it is ready.
fn stream(query: Option<&str>, question: &Question, fault: &Fault, id: u64) -> Payload {
    let reply = question.reply(fault);
    let calls = question.calls(fault);
    let parts: Vec<Value> = match calls.is_empty() {
        true => reply.pieces().iter().map(|piece| json!([{ "text": piece }])).collect(),
        false => calls.chunks(1).map(parts_of).collect(),
    };
    let last = parts.len().saturating_sub(1);
    let chunks = parts.iter().enumerate().map(|(index, parts)| {
        let mut chunk = chunk(question, parts, index == last, id);
        if !fault.no_usage {
            // Counts are those so far: what was said is known at the end.
            chunk["usageMetadata"] = usage(question, (index == last).then(|| reply.tokens()));
        }
        chunk.to_string()
    });
    let mut chunks: Vec<String> = chunks.collect();
    let broken = "{\"candidates\":[{\"content\":".to_owned();
    spoil_with(&mut chunks, fault, 0, broken, || Gemini.error(500, "mock error inside a stream").to_string());
    let is_sse = query.is_some_and(|query| query.split('&').any(|pair| pair == "alt=sse"));
    if is_sse {
        return Payload::Events(chunks.iter().map(|chunk| Bytes::from(format!("data: {chunk}\r\n\r\n"))).collect());
    }
    let last = chunks.len().saturating_sub(1);
    let written = chunks.iter().enumerate().map(|(index, chunk)| {
        let before = if index == 0 { "[" } else { ",\r\n" };
        let after = if index == last { "]" } else { "" };
        Bytes::from(format!("{before}{chunk}{after}"))
    });
    Payload::Pieces("application/json; charset=UTF-8", written.collect())
}

fn embedded(question: &Question, fault: &Fault) -> Value {
    let values = vectors(question).into_iter().next();
    let mut answer = json!({ "embedding": values });
    if !fault.no_usage {
        answer["usageMetadata"] = json!({ "promptTokenCount": question.prompt_tokens });
    }
    answer
}

fn vectors(question: &Question) -> Vec<Value> {
    let dimensions = question.dimensions();
    question.inputs.iter().map(|text| json!({ "values": vector(text, dimensions) })).collect()
}

fn predicted(question: &Question) -> Value {
    let prediction = |text: &String| {
        let statistics = json!({ "token_count": super::ask::tokens(text), "truncated": false });
        json!({ "embeddings": { "values": vector(text, question.dimensions()), "statistics": statistics } })
    };
    json!({ "predictions": question.inputs.iter().map(prediction).collect::<Vec<_>>() })
}

fn counted(question: &Question) -> Value {
    let count = question.prompt_tokens;
    json!({ "totalTokens": count, "promptTokensDetails": [{ "modality": "TEXT", "tokenCount": count }] })
}

/// All models, or the one that the path names; any name is one.
fn listed(path: &str) -> Value {
    let model = |id: &str| {
        json!({ "name": format!("models/{id}"), "version": "001", "displayName": id, "inputTokenLimit": 1_048_576,
                "outputTokenLimit": 65_536, "supportedGenerationMethods": ["generateContent", "countTokens"] })
    };
    match asked(path).0.as_str() {
        "" => json!({ "models": MODELS.map(model) }),
        id => model(id),
    }
}

/// The texts of a content as one, as an embedding takes them.
fn joined(content: &Value) -> String {
    texts(&content["parts"]).concat()
}

/// Names with underscores become those with humps. Deeper than any request of this wire is nothing to rename.
fn camel(value: Value, depth: usize) -> Value {
    match value {
        Value::Object(object) if depth < 16 => {
            let rename = |(name, value): (String, Value)| {
                let name = humped(&name);
                let value = if OPAQUE.contains(&name.as_str()) { value } else { camel(value, depth + 1) };
                (name, value)
            };
            Value::Object(object.into_iter().map(rename).collect::<Map<_, _>>())
        }
        Value::Array(items) if depth < 16 => items.into_iter().map(|item| camel(item, depth + 1)).collect(),
        value => value,
    }
}

fn humped(name: &str) -> String {
    let mut is_after_underscore = false;
    let mut humped = String::with_capacity(name.len());
    for letter in name.chars() {
        match letter {
            '_' if !humped.is_empty() => is_after_underscore = true,
            _ if is_after_underscore => {
                humped.push(letter.to_ascii_uppercase());
                is_after_underscore = false;
            }
            _ => humped.push(letter),
        }
    }
    humped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_model_and_method() {
        for (path, model, method) in [
            ("/v1beta/models/gemini-2.5-pro:generateContent", "gemini-2.5-pro", "generateContent"),
            ("/v1beta/models/fault%2Fstatus%3D429:countTokens", "fault/status=429", "countTokens"),
            ("/v1/projects/p/locations/eu/publishers/google/models/g:predict", "g", "predict"),
            ("/v1beta/models", "", ""),
            ("/v1beta/models/g", "g", ""),
        ] {
            assert_eq!(asked(path), (model.to_owned(), method), "{path}");
        }
    }

    #[test]
    fn both_spellings_are_one_but_for_what_is_the_callers_own() {
        let snake = json!({ "generation_config": { "top_p": 1 }, "args": { "my_key": 1 }, "_responseX": 1 });
        let humped = json!({ "generationConfig": { "topP": 1 }, "args": { "my_key": 1 }, "_responseX": 1 });
        assert_eq!(camel(snake, 0), humped);
    }
}
