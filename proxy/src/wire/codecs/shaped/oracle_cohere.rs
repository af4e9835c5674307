//! Cohere's models at Oracle: the last text apart from the history before it, tools with their parameters as a flat table,
//! and calls without ids, which are given some as those of every vendor without them are.

use super::{messages, rename, role_of, take, text_of, unsayable};
use crate::wire::codecs::error::CodecError;
use serde_json::{Map, Value, json};

const NAMES: &[(&str, &str)] = &[
    ("max_tokens", "maxTokens"),
    ("max_completion_tokens", "maxTokens"),
    ("temperature", "temperature"),
    ("top_p", "topP"),
    ("top_k", "topK"),
    ("frequency_penalty", "frequencyPenalty"),
    ("presence_penalty", "presencePenalty"),
    ("seed", "seed"),
    ("stop", "stopSequences"),
];

pub(super) fn request(body: &mut Map<String, Value>) -> Result<Map<String, Value>, CodecError> {
    let mut chat = Map::new();
    chat.insert("apiFormat".into(), "COHERE".into());
    write_history(messages(body), &mut chat)?;
    rename(body, NAMES, &mut chat);
    if let Some(Value::Array(tools)) = body.shift_remove("tools") {
        chat.insert("tools".into(), tools.into_iter().map(tool).collect());
    }
    let format = body.shift_remove("response_format");
    match format.as_ref().and_then(|format| format["type"].as_str()) {
        Some("json_schema") => {
            let schema = format.as_ref().and_then(|format| format.pointer("/json_schema/schema")).cloned();
            chat.insert("responseFormat".into(), json!({ "type": "JSON_OBJECT", "schema": schema }));
        }
        Some("json_object") => drop(chat.insert("responseFormat".into(), json!({ "type": "JSON_OBJECT" }))),
        _ => {}
    }
    Ok(chat)
}

fn write_history(messages: Vec<Value>, chat: &mut Map<String, Value>) -> Result<(), CodecError> {
    let (mut system, mut history, mut calls) = (Vec::new(), Vec::new(), Map::new());
    for mut message in messages {
        let role = role_of(&message).to_owned();
        let text = text_of(message.get_mut("content").map(Value::take), |part| Err(unsayable(&part)))?;
        match role.as_str() {
            "system" | "developer" => system.push(text),
            "assistant" => {
                let mut entry = json!({ "role": "CHATBOT", "message": text });
                let asked = message["tool_calls"].as_array().cloned().unwrap_or_default();
                for call in &asked {
                    let id = call["id"].as_str().unwrap_or_default();
                    calls.insert(id.to_owned(), called(call));
                }
                if !asked.is_empty() {
                    entry["toolCalls"] = asked.iter().map(called).collect();
                }
                history.push(entry);
            }
            "tool" => {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                let result = json!({ "call": calls.get(id), "outputs": [{ "output": text }] });
                match history.last_mut().filter(|last| last["role"] == "TOOL") {
                    Some(last) => {
                        last["toolResults"].as_array_mut().into_iter().for_each(|all| all.push(result.clone()))
                    }
                    None => history.push(json!({ "role": "TOOL", "toolResults": [result] })),
                }
            }
            _ => history.push(json!({ "role": "USER", "message": text })),
        }
    }
    let mut last = history.pop_if(|last| last["role"] != "CHATBOT").unwrap_or_default();
    chat.insert("message".into(), last.get_mut("message").map(Value::take).unwrap_or_else(|| "".into()));
    if let Some(results) = last.get_mut("toolResults").map(Value::take) {
        chat.insert("toolResults".into(), results);
    }
    if !history.is_empty() {
        chat.insert("chatHistory".into(), history.into());
    }
    if !system.is_empty() {
        chat.insert("preambleOverride".into(), system.join("\n\n").into());
    }
    Ok(())
}

fn called(call: &Value) -> Value {
    let arguments = call.pointer("/function/arguments").and_then(Value::as_str).unwrap_or("{}");
    let parameters: Value = serde_json::from_str(arguments).unwrap_or_else(|_| json!({}));
    json!({ "name": call.pointer("/function/name"), "parameters": parameters })
}

fn tool(tool: Value) -> Value {
    let function = &tool["function"];
    let required: Vec<&str> =
        function["parameters"]["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut definitions = Map::new();
    for (name, schema) in function["parameters"]["properties"].as_object().into_iter().flatten() {
        let kind = schema["type"].as_str().unwrap_or("string");
        let mut definition = json!({ "type": kind, "isRequired": required.contains(&name.as_str()) });
        if let Some(text) = schema["description"].as_str() {
            definition["description"] = text.into();
        }
        definitions.insert(name.clone(), definition);
    }
    let name = function["name"].clone();
    // Oracle demands a description.
    let description = function["description"].as_str().map_or_else(|| name.clone(), Value::from);
    json!({ "name": name, "description": description, "parameterDefinitions": definitions })
}

/// A choice, or a piece of one; `has_text` is false where the text has been told before.
pub(super) fn generic_choice(answer: &mut Value, name: &str, has_text: bool) -> Value {
    let mut written = json!({ "role": "assistant" });
    if has_text {
        written["content"] = take(answer, "text");
    }
    let calls = take(answer, "toolCalls");
    let calls = calls.as_array().into_iter().flatten().enumerate();
    let calls: Vec<Value> = calls
        .map(|(place, call)| {
            let function = json!({ "name": call["name"], "arguments": call["parameters"].to_string() });
            json!({ "index": place, "type": "function", "function": function })
        })
        .collect();
    let reason = match answer["finishReason"].as_str() {
        None => Value::Null,
        Some(_) if !calls.is_empty() => "tool_calls".into(),
        Some("MAX_TOKENS") => "length".into(),
        Some("ERROR_TOXIC") => "content_filter".into(),
        Some(_) => "stop".into(),
    };
    if !calls.is_empty() {
        written["tool_calls"] = calls.into();
    }
    json!({ "index": 0, name: written, "finish_reason": reason })
}
