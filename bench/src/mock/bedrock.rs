//! Bedrock's wire: Converse whole and as AWS's framed events, and `invoke` for the embeddings of Titan and Cohere, images,
//! rankings and the older text models.
//! The model is a segment of the path, escaped, and may be an ARN.

mod shape;

use serde_json::{Value, json};

use super::event_stream;
use super::fault::Fault;
use super::openai::{halves, spoil_with, vector};
use super::question::{Question, list, texts};
use super::route::Endpoint;
use super::sample::JsonFormat;
use super::shape::Payload;
use super::small_wires;
use super::tools::{Choice, Tool, ToolCall};
use super::vendors::{Call, Vendor, unescaped};

pub struct Bedrock;

impl Vendor for Bedrock {
    fn question(&self, call: &Call<'_>, body: &Value) -> Question {
        let (model, action) = asked(call.path);
        let mut question = Question::new(unescaped(model));
        question.is_streaming = action == "converse-stream";
        match call.endpoint {
            Endpoint::Invoke if body["texts"].is_array() => {
                question.embeds(list(&body["texts"]).filter_map(Value::as_str), &body["output_dimension"]);
            }
            Endpoint::Invoke if small_wires::invoked(body).is_some() => question.reads(body["query"].as_str()),
            Endpoint::Invoke => question.embeds(body["inputText"].as_str(), &body["dimensions"]),
            _ => read_conversation(&mut question, body),
        }
        question
    }

    fn flaw(&self, call: &Call<'_>, body: &Value) -> Option<(u16, String)> {
        if asked(call.path).0.contains('/') {
            return Some((404, "The model id is not one segment of the path: escape its slashes".to_owned()));
        }
        let flaw = match call.endpoint {
            Endpoint::Invoke if body["texts"].is_array() => shape::COHERE_EMBED.flaw(body),
            Endpoint::Invoke if small_wires::invoked(body).is_some() => None,
            Endpoint::Invoke => shape::TITAN_EMBED.flaw(body),
            _ => shape::CONVERSE.flaw(body).or_else(|| order_flaw(body)),
        };
        flaw.map(|flaw| (400, format!("The request is not valid: {flaw}")))
    }

    fn answer(&self, call: &Call<'_>, body: &Value, question: &Question, fault: &Fault, id: u64) -> Payload {
        let answer = match call.endpoint {
            Endpoint::Invoke if body["texts"].is_array() => cohere_embedded(body, question, id),
            Endpoint::Invoke => small_wires::invoked(body).unwrap_or_else(|| titan_embedded(question)),
            _ if question.is_streaming => return stream(question, fault, id),
            _ => whole(question, fault, id),
        };
        Payload::whole(answer.to_string().into_bytes())
    }

    fn error(&self, _status: u16, message: &str) -> Value {
        json!({ "message": message })
    }

    /// The kind of an error stands in a header, the tokens of an embedding in another.
    fn headers(&self, question: &Question, status: u16) -> Vec<(&'static str, String)> {
        let kind = match status {
            ..400 if question.inputs.is_empty() => return Vec::new(),
            ..400 => return vec![("x-amzn-bedrock-input-token-count", question.prompt_tokens.to_string())],
            401 => "UnrecognizedClientException",
            403 => "AccessDeniedException",
            404 => "ResourceNotFoundException",
            408 => "ModelTimeoutException",
            424 => "ModelErrorException",
            429 => "ThrottlingException",
            503 => "ServiceUnavailableException",
            400..500 => "ValidationException",
            _ => "InternalServerException",
        };
        vec![("x-amzn-errortype", format!("{kind}:http://internal.amazon.com/coral/com.amazon.bedrock/"))]
    }
}

/// Model, as it was escaped, and action of `/model/{model}/{action}`.
fn asked(path: &str) -> (&str, &str) {
    let after = path.split_once("/model/").map_or("", |(_, after)| after);
    after.rsplit_once('/').unwrap_or((after, ""))
}

fn read_conversation(question: &mut Question, body: &Value) {
    question.reads(texts(&body["system"]));
    list(&body["messages"]).for_each(|message| question.reads(texts(&message["content"])));
    if let Some(message) = list(&body["messages"]).rev().find(|message| message["role"] == "user") {
        question.last_user = texts(&message["content"]).into_iter().map(str::to_owned).collect();
    }
    let specifications = list(&body["toolConfig"]["tools"]).map(|tool| &tool["toolSpec"]);
    let read = |tool: &Value| {
        let schema = tool["inputSchema"]["json"].clone();
        Some(Tool { name: tool["name"].as_str()?.to_owned(), schema })
    };
    question.tools = specifications.filter_map(read).collect();
    let choice = &body["toolConfig"]["toolChoice"];
    question.choice = match choice["tool"]["name"].as_str() {
        Some(name) => Choice::Named(name.to_owned()),
        None if choice["any"].is_object() => Choice::Any,
        None => Choice::Free,
    };
    // The schema is JSON inside a string.
    let schema = body["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"].as_str();
    question.format = schema.map(|text| JsonFormat::Schema(serde_json::from_str(text).unwrap_or_default()));
}

/// What the tables cannot say: a user begins, roles alternate, and who speaks of tools declares them.
fn order_flaw(body: &Value) -> Option<String> {
    let roles = list(&body["messages"]).map(|message| &message["role"]);
    let roles: Vec<&Value> = roles.filter(|role| **role != "system").collect();
    if roles.first().is_none_or(|role| *role != "user") {
        return Some("messages: a conversation must start with a user message".to_owned());
    }
    if roles.windows(2).any(|pair| pair[0] == pair[1]) {
        return Some("messages: a conversation must alternate between user and assistant roles".to_owned());
    }
    let mut blocks = list(&body["messages"]).flat_map(|message| list(&message["content"]));
    let speaks_of_tools = blocks.any(|block| block["toolUse"].is_object() || block["toolResult"].is_object());
    (speaks_of_tools && !body["toolConfig"].is_object())
        .then(|| "toolConfig must be defined when using toolUse and toolResult content blocks".to_owned())
}

fn whole(question: &Question, fault: &Fault, id: u64) -> Value {
    let reply = question.reply(fault);
    let calls = question.calls(fault);
    let content: Value = match calls.is_empty() {
        true => json!([{ "text": &*reply.text }]),
        false => calls.iter().enumerate().map(|(index, call)| json!({ "toolUse": used(call, id, index) })).collect(),
    };
    let mut answer = json!({
        "output": { "message": { "role": "assistant", "content": content } },
        "stopReason": reason(&calls), "metrics": { "latencyMs": 1 },
    });
    if !fault.no_usage {
        answer["usage"] = usage(question, reply.tokens());
    }
    answer
}

fn used(call: &ToolCall, id: u64, index: usize) -> Value {
    json!({ "toolUseId": tool_use_id(id, index), "name": call.name, "input": call.arguments })
}

fn tool_use_id(id: u64, index: usize) -> String {
    format!("tooluse_{id:016}_{index}")
}

fn reason(calls: &[ToolCall]) -> &'static str {
    if calls.is_empty() { "end_turn" } else { "tool_use" }
}

fn usage(question: &Question, output: u64) -> Value {
    let input = question.prompt_tokens;
    json!({ "inputTokens": input, "outputTokens": output, "totalTokens": input + output })
}

fn stream(question: &Question, fault: &Fault, id: u64) -> Payload {
    let reply = question.reply(fault);
    let calls = question.calls(fault);
    // `p` pads events to hide their length, and means nothing.
    let delta = |index: usize, delta: Value| {
        let payload = json!({ "contentBlockIndex": index, "delta": delta, "p": "abcdefgh" });
        event_stream::event("contentBlockDelta", payload.to_string().as_bytes())
    };
    let event = |kind: &str, payload: Value| event_stream::event(kind, payload.to_string().as_bytes());
    let mut events = vec![event("messageStart", json!({ "role": "assistant" }))];
    let preamble = events.len();
    if calls.is_empty() {
        events.extend(reply.pieces().iter().map(|piece| delta(0, json!({ "text": piece }))));
        events.push(event("contentBlockStop", json!({ "contentBlockIndex": 0 })));
    }
    for (index, call) in calls.iter().enumerate() {
        let start = json!({ "toolUse": { "toolUseId": tool_use_id(id, index), "name": call.name } });
        let input = call.arguments.to_string();
        let (first, second) = halves(&input);
        events.push(event("contentBlockStart", json!({ "contentBlockIndex": index, "start": start })));
        events.extend([first, second].map(|piece| delta(index, json!({ "toolUse": { "input": piece } }))));
        events.push(event("contentBlockStop", json!({ "contentBlockIndex": index })));
    }
    events.push(event("messageStop", json!({ "stopReason": reason(&calls) })));
    if !fault.no_usage {
        let metadata = json!({ "usage": usage(question, reply.tokens()), "metrics": { "latencyMs": 1 } });
        events.push(event("metadata", metadata));
    }
    let broken = event_stream::event("contentBlockDelta", b"{\"contentBlockIndex\":0,\"delta\":");
    let message = json!({ "message": "mock error inside a stream" }).to_string();
    let failure = || event_stream::exception("internalServerException", message.as_bytes());
    spoil_with(&mut events, fault, preamble, broken, failure);
    Payload::Pieces("application/vnd.amazon.eventstream", events)
}

fn titan_embedded(question: &Question) -> Value {
    let text = question.inputs.first().map_or("", String::as_str);
    let vector = vector(text, question.dimensions());
    json!({ "embedding": vector, "embeddingsByType": { "float": vector },
            "inputTextTokenCount": question.prompt_tokens })
}

/// By type when types were asked for, else floats alone.
fn cohere_embedded(body: &Value, question: &Question, id: u64) -> Value {
    let vectors: Vec<_> = question.inputs.iter().map(|text| vector(text, question.dimensions())).collect();
    let is_by_type = body["embedding_types"].is_array();
    let embeddings = if is_by_type { json!({ "float": vectors }) } else { json!(vectors) };
    let kind = if is_by_type { "embeddings_by_type" } else { "embeddings_floats" };
    json!({ "id": format!("{id:016}"), "embeddings": embeddings, "response_type": kind, "texts": question.inputs })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_names_model_and_action() {
        for (path, model, action) in [
            ("/model/anthropic.claude-x%3A0/converse", "anthropic.claude-x:0", "converse"),
            (
                "/v1/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fus.x/converse-stream",
                "arn:aws:bedrock:us-east-1:1:inference-profile/us.x",
                "converse-stream",
            ),
        ] {
            let found = asked(path);
            assert_eq!((unescaped(found.0).as_str(), found.1), (model, action), "{path}");
        }
    }

    #[test]
    fn a_conversation_out_of_order_is_refused() {
        let text = json!([{ "text": "x" }]);
        let used = json!([{ "toolUse": { "toolUseId": "1", "name": "n", "input": {} } }]);
        for (messages, is_good) in [
            (json!([{ "role": "user", "content": text }]), true),
            (json!([{ "role": "assistant", "content": text }]), false),
            (json!([{ "role": "user", "content": text }, { "role": "user", "content": text }]), false),
            (json!([{ "role": "user", "content": text }, { "role": "assistant", "content": used }]), false),
        ] {
            assert_eq!(order_flaw(&json!({ "messages": messages })).is_none(), is_good, "{messages}");
        }
    }
}
