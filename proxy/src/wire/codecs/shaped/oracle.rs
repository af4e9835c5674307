//! Oracle's generative AI: a request inside of another that says who pays (the compartment) and what serves it. Models of
//! Cohere's have a form of their own there (`oracle_cohere`), all others the generic one, which is OpenAI's in other words.

use super::{ChatShape, messages, oracle_cohere, rename, required, role_of, take, usage};
use crate::wire::codecs::Codec;
use crate::wire::codecs::chat::ChatCodec;
use crate::wire::codecs::error::CodecError;
use crate::wire::codecs::options::RequestOptions;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) struct Oracle;

const NAMES: &[(&str, &str)] = &[
    ("max_tokens", "maxTokens"),
    ("max_completion_tokens", "maxCompletionTokens"),
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("frequency_penalty", "frequencyPenalty"),
    ("presence_penalty", "presencePenalty"),
    ("seed", "seed"),
    ("stop", "stop"),
    ("n", "numGenerations"),
    ("logit_bias", "logitBias"),
    ("top_logprobs", "logProbs"),
    ("parallel_tool_calls", "isParallelToolCalls"),
    ("metadata", "metadata"),
];

impl ChatShape for Oracle {
    fn name(&self) -> &'static str {
        "oracle"
    }

    fn base(&self) -> &'static dyn Codec {
        &ChatCodec
    }

    fn request(&self, body: &mut Map<String, Value>, options: &RequestOptions<'_>) -> Result<Value, CodecError> {
        let compartment = options.placed("compartment");
        let compartment = compartment.ok_or_else(|| CodecError::field("oracle_compartment_id", "is missing"))?;
        let model = options.model.unwrap_or_default();
        let serving = match options.placed("serving") {
            Some("DEDICATED") => json!({ "servingType": "DEDICATED", "endpointId": model }),
            _ => json!({ "servingType": "ON_DEMAND", "modelId": model }),
        };
        let mut chat = match model.starts_with("cohere.") {
            true => oracle_cohere::request(body)?,
            false => generic(body)?,
        };
        if body.get("stream") == Some(&Value::Bool(true)) {
            chat.insert("isStream".into(), true.into());
            chat.insert("streamOptions".into(), json!({ "isIncludeUsage": true }));
        }
        Ok(json!({ "compartmentId": compartment, "servingMode": serving, "chatRequest": chat }))
    }

    fn answer(&self, mut reply: Value) -> Result<Value, CodecError> {
        let model = reply.get_mut("modelId").map(Value::take);
        let mut answer = required(&mut reply, "/chatResponse")?;
        let usage = counted(&answer);
        let choices = match answer.get_mut("choices").map(Value::take) {
            Some(Value::Array(choices)) => {
                choices.into_iter().map(|choice| generic_choice(choice, "message")).collect()
            }
            _ if answer.get("text").is_some() => vec![oracle_cohere::generic_choice(&mut answer, "message", true)],
            _ => return Err(CodecError::field("chatResponse.choices", "is missing in the answer")),
        };
        Ok(json!({ "model": model, "choices": choices, "usage": usage }))
    }

    fn chunk(&self, mut event: Value) -> Option<Value> {
        let usage = counted(&event);
        let choice = match event.get("text").is_some() {
            // The last event repeats the whole text.
            true => {
                let is_last = event.get("finishReason").is_some_and(|reason| !reason.is_null());
                oracle_cohere::generic_choice(&mut event, "delta", !is_last)
            }
            false => generic_choice(event, "delta"),
        };
        Some(json!({ "choices": [choice], "usage": usage }))
    }
}

fn counted(answer: &Value) -> Value {
    let count = |name: &str| answer.pointer("/usage").and_then(|usage| usage.get(name)).and_then(Value::as_u64);
    let mut counted = usage(count("promptTokens"), count("completionTokens"));
    let part = |place: &str| answer.pointer(place).and_then(Value::as_u64);
    if let Some(cached) = part("/usage/promptTokensDetails/cachedTokens").filter(|_| counted.is_object()) {
        counted["prompt_tokens_details"] = json!({ "cached_tokens": cached });
    }
    if let Some(thought) = part("/usage/completionTokensDetails/reasoningTokens").filter(|_| counted.is_object()) {
        counted["completion_tokens_details"] = json!({ "reasoning_tokens": thought });
    }
    counted
}

fn generic(body: &mut Map<String, Value>) -> Result<Map<String, Value>, CodecError> {
    let mut chat = Map::new();
    chat.insert("apiFormat".into(), "GENERIC".into());
    let written = messages(body).into_iter().map(message).collect::<Result<Vec<_>, _>>()?;
    chat.insert("messages".into(), written.into());
    rename(body, NAMES, &mut chat);
    if let Some(Value::Array(tools)) = body.shift_remove("tools") {
        let tools = tools.into_iter().map(|mut tool| {
            let mut function = take(&mut tool, "function");
            let mut written = json!({ "type": "FUNCTION" });
            for name in ["name", "description", "parameters"] {
                if let Some(value) = function.get_mut(name).map(Value::take) {
                    written[name] = value;
                }
            }
            written
        });
        chat.insert("tools".into(), tools.collect());
    }
    if let Some(choice) = body.shift_remove("tool_choice") {
        chat.insert("toolChoice".into(), tool_choice(&choice));
    }
    if let Some(format) = body.shift_remove("response_format") {
        chat.insert("responseFormat".into(), response_format(format));
    }
    if let Some(Value::String(effort)) = body.shift_remove("reasoning_effort") {
        chat.insert("reasoningEffort".into(), effort.to_ascii_uppercase().into());
    }
    Ok(chat)
}

fn tool_choice(choice: &Value) -> Value {
    match (choice.as_str(), choice.pointer("/function/name")) {
        (Some(word), _) => json!({ "type": word.to_ascii_uppercase() }),
        (None, Some(name)) => json!({ "type": "FUNCTION", "name": name }),
        // Some of the tools: the nearest is any of them.
        (None, None) if choice.pointer("/allowed_tools/mode") == Some(&json!("required")) => {
            json!({ "type": "REQUIRED" })
        }
        (None, None) => json!({ "type": "AUTO" }),
    }
}

fn response_format(mut format: Value) -> Value {
    let kind = format["type"].as_str().unwrap_or("text").to_ascii_uppercase();
    let mut written = json!({ "type": kind });
    if let Some(mut schema) = format.get_mut("json_schema").map(Value::take) {
        if let Some(strict) = schema.as_object_mut().and_then(|schema| schema.shift_remove("strict")) {
            schema["isStrict"] = strict;
        }
        written["jsonSchema"] = schema;
    }
    written
}

fn message(mut message: Value) -> Result<Value, CodecError> {
    let mut written = json!({ "role": role_of(&message).to_ascii_uppercase() });
    let parts = match message.get_mut("content").map(Value::take) {
        Some(Value::String(text)) => vec![json!({ "type": "TEXT", "text": text })],
        Some(Value::Array(parts)) => parts.into_iter().map(part).collect::<Result<_, _>>()?,
        _ => Vec::new(),
    };
    written["content"] = parts.into();
    if let Some(id) = message.get_mut("tool_call_id").map(Value::take) {
        written["toolCallId"] = id;
    }
    if let Some(name) = message.get_mut("name").map(Value::take) {
        written["name"] = name;
    }
    if let Some(Value::Array(calls)) = message.get_mut("tool_calls").map(Value::take) {
        let calls = calls.into_iter().map(|mut call| {
            let mut function = take(&mut call, "function");
            let (name, arguments) = (take(&mut function, "name"), take(&mut function, "arguments"));
            json!({ "type": "FUNCTION", "id": take(&mut call, "id"), "name": name, "arguments": arguments })
        });
        written["toolCalls"] = calls.collect();
    }
    Ok(written)
}

fn part(mut part: Value) -> Result<Value, CodecError> {
    match part["type"].as_str() {
        Some("text") => Ok(json!({ "type": "TEXT", "text": take(&mut part, "text") })),
        Some("image_url") => {
            let mut image = take(&mut part, "image_url");
            let mut written = json!({ "url": take(&mut image, "url") });
            if let Some(detail) = image["detail"].as_str() {
                written["detail"] = detail.to_ascii_uppercase().into();
            }
            Ok(json!({ "type": "IMAGE", "imageUrl": written }))
        }
        _ => Err(super::unsayable(&part)),
    }
}

/// A choice, or a piece of one, in the generic form.
fn generic_choice(mut choice: Value, name: &str) -> Value {
    let mut message = take(&mut choice, "message");
    let mut written = json!({ "role": "assistant" });
    let texts = message["content"].as_array().into_iter().flatten();
    let text: String = texts.filter_map(|part| part["text"].as_str()).collect();
    if !text.is_empty() || name == "message" {
        written["content"] = text.into();
    }
    if let Some(thought) = message.get_mut("reasoningContent").map(Value::take).filter(Value::is_string) {
        written["reasoning_content"] = thought;
    }
    if let Some(Value::Array(calls)) = message.get_mut("toolCalls").map(Value::take) {
        let calls = calls.into_iter().enumerate().map(|(place, mut call)| {
            let mut function = json!({ "arguments": take(&mut call, "arguments") });
            if let Some(name) = call.get_mut("name").map(Value::take).filter(Value::is_string) {
                function["name"] = name;
            }
            let mut written = json!({ "index": place, "type": "function", "function": function });
            if let Some(id) = call.get_mut("id").map(Value::take).filter(Value::is_string) {
                written["id"] = id;
            }
            written
        });
        written["tool_calls"] = calls.collect();
    }
    let reason = choice.get_mut("finishReason").map(Value::take);
    let index = choice["index"].as_u64().unwrap_or(0);
    json!({ "index": index, name: written, "finish_reason": reason })
}
