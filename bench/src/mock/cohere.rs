//! Cohere's second version: chats whole and as typed events, embeddings by type, reranking.

mod shape;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::fault::Fault;
use super::openai::{halves, spoil, vector};
use super::question::{Question, list, texts};
use super::route::Endpoint;
use super::sample::JsonFormat;
use super::shape::Payload;
use super::tools::{Choice, Tool, ToolCall};
use super::vendors::{Call, Vendor};

pub struct Cohere;

impl Vendor for Cohere {
    fn question(&self, call: &Call<'_>, body: &Value) -> Question {
        let model = body["model"].as_str().unwrap_or_default().to_owned();
        let mut question = Question::new(model);
        match call.endpoint {
            Endpoint::CohereEmbed => question.embeds(embedded_texts(body), &body["output_dimension"]),
            Endpoint::CohereRerank => question.reads(documents(body).into_iter().chain(body["query"].as_str())),
            _ => read_chat(&mut question, body),
        }
        question
    }

    fn flaw(&self, call: &Call<'_>, body: &Value) -> Option<(u16, String)> {
        let flaw = match call.endpoint {
            Endpoint::CohereEmbed => shape::EMBED.flaw(body).or_else(|| {
                let has_input = ["texts", "images", "inputs"].iter().any(|name| body[*name].is_array());
                (!has_input).then(|| "one of texts, images and inputs is required".to_owned())
            }),
            Endpoint::CohereRerank => shape::RERANK.flaw(body),
            _ => shape::CHAT.flaw(body),
        };
        flaw.map(|flaw| (400, format!("invalid request: {flaw}")))
    }

    fn answer(&self, call: &Call<'_>, body: &Value, question: &Question, fault: &Fault, id: u64) -> Payload {
        let answer = match call.endpoint {
            Endpoint::CohereEmbed => embedded(body, question, fault, id),
            Endpoint::CohereRerank => reranked(body, fault, id),
            _ if question.is_streaming => return Payload::Events(events(question, fault, id)),
            _ => whole(question, fault, id),
        };
        Payload::whole(answer.to_string().into_bytes())
    }

    fn error(&self, _status: u16, message: &str) -> Value {
        json!({ "id": "00000000-0000-4000-8000-000000000000", "message": message })
    }
}

fn read_chat(question: &mut Question, body: &Value) {
    question.is_streaming = body["stream"] == true;
    list(&body["messages"]).for_each(|message| question.reads(texts(&message["content"])));
    if let Some(message) = list(&body["messages"]).rev().find(|message| message["role"] == "user") {
        question.last_user = texts(&message["content"]).into_iter().map(str::to_owned).collect();
    }
    let functions = list(&body["tools"]).map(|tool| &tool["function"]);
    question.tools = functions.filter_map(|tool| Tool::read(tool, &["parameters"])).collect();
    question.choice = if body["tool_choice"] == "REQUIRED" { Choice::Any } else { Choice::Free };
    let format = &body["response_format"];
    let schema = [&format["json_schema"], &format["schema"]].into_iter().find(|schema| schema.is_object());
    question.format =
        (format["type"] == "json_object").then(|| schema.cloned().map_or(JsonFormat::Object, JsonFormat::Schema));
}

fn whole(question: &Question, fault: &Fault, id: u64) -> Value {
    let reply = question.reply(fault);
    let calls = question.calls(fault);
    let message = match calls.is_empty() {
        true => json!({ "role": "assistant", "content": [{ "type": "text", "text": &*reply.text }] }),
        false => {
            let calls: Vec<Value> =
                calls.iter().enumerate().map(|(index, call)| call_object(call, id, index)).collect();
            json!({ "role": "assistant", "tool_plan": "I will call a tool.", "tool_calls": calls })
        }
    };
    let mut answer = json!({ "id": chat_id(id), "finish_reason": reason(&calls), "message": message });
    if !fault.no_usage {
        answer["usage"] = usage(question, reply.tokens());
    }
    answer
}

fn chat_id(id: u64) -> String {
    format!("00000000-0000-4000-8000-{:012}", id % 1_000_000_000_000)
}

fn reason(calls: &[ToolCall]) -> &'static str {
    if calls.is_empty() { "COMPLETE" } else { "TOOL_CALL" }
}

fn call_object(call: &ToolCall, id: u64, index: usize) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
    json!({ "id": format!("call_{id:016}_{index}"), "type": "function", "function": function })
}

fn usage(question: &Question, output: u64) -> Value {
    let counts = json!({ "input_tokens": question.prompt_tokens, "output_tokens": output });
    json!({ "billed_units": counts, "tokens": counts })
}

fn events(question: &Question, fault: &Fault, id: u64) -> Vec<Bytes> {
    let reply = question.reply(fault);
    let calls = question.calls(fault);
    let at = |kind: &str, index: usize, message: Value| json!({ "type": kind, "index": index, "delta": { "message": message } });
    let start = json!({ "role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": [] });
    let mut all = vec![json!({ "id": chat_id(id), "type": "message-start", "delta": { "message": start } })];
    if calls.is_empty() {
        all.push(at("content-start", 0, json!({ "content": { "type": "text", "text": "" } })));
        all.extend(reply.pieces().iter().map(|piece| at("content-delta", 0, json!({ "content": { "text": piece } }))));
        all.push(json!({ "type": "content-end", "index": 0 }));
    } else {
        let plan = json!({ "message": { "tool_plan": "I will call a tool." } });
        all.push(json!({ "type": "tool-plan-delta", "delta": plan }));
    }
    for (index, call) in calls.iter().enumerate() {
        let mut opening = call_object(call, id, index);
        opening["function"]["arguments"] = json!("");
        let arguments = call.arguments.to_string();
        let (first, second) = halves(&arguments);
        let delta =
            |piece: &str| at("tool-call-delta", index, json!({ "tool_calls": { "function": { "arguments": piece } } }));
        all.push(at("tool-call-start", index, json!({ "tool_calls": opening })));
        all.extend([first, second].map(delta));
        all.push(json!({ "type": "tool-call-end", "index": index }));
    }
    let mut end = json!({ "finish_reason": reason(&calls) });
    if !fault.no_usage {
        end["usage"] = usage(question, reply.tokens());
    }
    all.push(json!({ "id": chat_id(id), "type": "message-end", "delta": end }));
    let written = all.iter().map(|event| {
        let kind = event["type"].as_str().unwrap_or_default();
        Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
    });
    let mut events: Vec<Bytes> = written.collect();
    // Text has its opening after the message's; a call's plan is content already.
    let preamble = if calls.is_empty() { 2 } else { 1 };
    let failed = json!({ "type": "message-end", "id": chat_id(id),
                         "delta": { "finish_reason": "ERROR", "error": "mock error inside a stream" } });
    spoil(&mut events, fault, preamble, || format!("event: message-end\ndata: {failed}\n\n"));
    events
}

/// Texts, or the texts among mixed inputs.
fn embedded_texts(body: &Value) -> Vec<&str> {
    match body["texts"].is_array() {
        true => list(&body["texts"]).filter_map(Value::as_str).collect(),
        false => list(&body["inputs"]).flat_map(|input| texts(&input["content"])).collect(),
    }
}

fn embedded(body: &Value, question: &Question, fault: &Fault, id: u64) -> Value {
    let kinds: Vec<&str> = match body["embedding_types"].as_array() {
        Some(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        None => vec!["float"],
    };
    let vectors: Vec<Vec<f32>> = question.inputs.iter().map(|text| vector(text, question.dimensions())).collect();
    let mut embeddings = Map::new();
    for kind in kinds {
        embeddings.insert(kind.to_owned(), vectors.iter().map(|vector| in_type(kind, vector)).collect());
    }
    let mut answer = json!({ "id": chat_id(id), "embeddings": embeddings, "texts": question.inputs,
                             "response_type": "embeddings_by_type" });
    if !fault.no_usage {
        let billed = json!({ "input_tokens": question.prompt_tokens });
        answer["meta"] = json!({ "api_version": { "version": "2" }, "billed_units": billed });
    }
    answer
}

fn in_type(kind: &str, vector: &[f32]) -> Value {
    let whole = |low: f32| vector.iter().map(|number| json!((number * 127.0 + low) as i64)).collect::<Value>();
    match kind {
        "float" => json!(vector),
        "base64" => {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            json!(openssl::base64::encode_block(&bytes))
        }
        "uint8" | "ubinary" => whole(128.0),
        _ => whole(0.0),
    }
}

fn documents(body: &Value) -> Vec<&str> {
    list(&body["documents"]).filter_map(|document| document.as_str().or(document["text"].as_str())).collect()
}

/// The more words of the query a document holds, the nearer it is; equals keep their order.
fn reranked(body: &Value, fault: &Fault, id: u64) -> Value {
    let query: Vec<&str> = body["query"].as_str().unwrap_or_default().split_whitespace().collect();
    let score = |document: &str| {
        let held = query.iter().filter(|word| document.contains(**word)).count();
        (held as f64 + 0.1) / (query.len() as f64 + 0.2)
    };
    let mut scored: Vec<(usize, f64)> = documents(body).into_iter().map(score).enumerate().collect();
    scored.sort_by(|one, other| other.1.total_cmp(&one.1));
    let most = body["top_n"].as_u64().map_or(usize::MAX, |count| usize::try_from(count).unwrap_or(usize::MAX));
    let result = |(index, score): &(usize, f64)| json!({ "index": index, "relevance_score": score });
    let results: Vec<Value> = scored.iter().take(most).map(result).collect();
    let mut answer = json!({ "id": chat_id(id), "results": results });
    if !fault.no_usage {
        answer["meta"] = json!({ "api_version": { "version": "2" }, "billed_units": { "search_units": 1 } });
    }
    answer
}
