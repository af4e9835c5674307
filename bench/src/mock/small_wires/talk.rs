//! Conversations of Oracle, Reka and Triton.

use serde_json::{Value, json};

use super::super::fault::Fault;
use super::super::openai::spoil;
use super::super::question::{Question, list};
use super::super::shape::Payload;
use super::super::tools::{Choice, Tool};
use super::super::vendors::Call;
use super::{data, joined, whole};

/// What of a body these wires say a conversation with.
pub fn read(question: &mut Question, call: &Call<'_>, body: &Value) {
    let chat = &body["chatRequest"];
    question.is_streaming = chat["isStream"] == true || call.path.ends_with("/generate_stream");
    let mut texts: Vec<String> = list(&chat["messages"]).map(|message| joined(&message["content"])).collect();
    texts.extend(list(&chat["chatHistory"]).filter_map(|entry| entry["message"].as_str().map(str::to_owned)));
    texts.extend(list(&body["conversation_history"]).filter_map(|entry| entry["text"].as_str().map(str::to_owned)));
    texts.extend(
        [&chat["message"], &body["text_input"]].into_iter().filter_map(|text| text.as_str().map(str::to_owned)),
    );
    question.reads(texts.iter().map(String::as_str));
    question.last_user = texts.last().cloned().into_iter().collect();
    question.tools = list(&chat["tools"]).filter_map(|tool| Tool::read(tool, &["parameters"])).collect();
    question.choice = match chat["toolChoice"]["type"].as_str() {
        Some("REQUIRED") => Choice::Any,
        Some("FUNCTION") => Choice::Named(chat["toolChoice"]["name"].as_str().unwrap_or_default().to_owned()),
        _ => Choice::Free,
    };
}

pub fn oracle(_: &Call<'_>, body: &Value, question: &Question, fault: &Fault) -> Payload {
    let reply = question.reply(fault);
    let calls = question.calls(fault);
    let (prompt, completion) = (question.prompt_tokens, reply.tokens());
    let usage = json!({ "promptTokens": prompt, "completionTokens": completion, "totalTokens": prompt + completion });
    let is_cohere = body["chatRequest"]["apiFormat"] == "COHERE";
    let content = |text: &str| json!([{ "type": "TEXT", "text": text }]);
    let called = |(index, call): (usize, &super::super::tools::ToolCall)| json!({ "type": "FUNCTION", "id": format!("call_{index}"), "name": call.name, "arguments": call.arguments.to_string() });
    let called: Vec<Value> = calls.iter().enumerate().map(called).collect();
    let reason = if called.is_empty() { "stop" } else { "tool_calls" };
    if question.is_streaming {
        let piece = |text: &&str| match is_cohere {
            true => data(&json!({ "apiFormat": "COHERE", "text": text, "pad": "aa" })),
            false => {
                data(&json!({ "index": 0, "message": { "role": "ASSISTANT", "content": content(text) }, "pad": "aa" }))
            }
        };
        let mut events: Vec<_> = reply.pieces().iter().map(piece).collect();
        events.push(data(&match is_cohere {
            true => json!({ "apiFormat": "COHERE", "text": &*reply.text, "finishReason": "COMPLETE", "usage": usage }),
            false => {
                let message = json!({ "role": "ASSISTANT", "toolCalls": called });
                json!({ "index": 0, "message": message, "finishReason": reason, "usage": usage })
            }
        }));
        let failed = json!({ "error": { "code": "InternalError", "message": "mock error inside a stream" } });
        spoil(&mut events, fault, 0, || format!("data: {failed}\n\n"));
        return Payload::Events(events);
    }
    let answer = match is_cohere {
        true => json!({ "apiFormat": "COHERE", "text": &*reply.text, "finishReason": "COMPLETE", "usage": usage }),
        false => {
            let text = if called.is_empty() { content(&reply.text) } else { json!([]) };
            let message = json!({ "role": "ASSISTANT", "content": text, "toolCalls": called });
            let choice = json!({ "index": 0, "message": message, "finishReason": reason });
            json!({ "apiFormat": "GENERIC", "timeCreated": "2026-01-01T00:00:00Z", "choices": [choice], "usage": usage })
        }
    };
    let model = &body["servingMode"]["modelId"];
    whole(&json!({ "modelId": model, "modelVersion": "1.0", "chatResponse": answer }))
}

pub fn reka(_: &Call<'_>, _: &Value, question: &Question, fault: &Fault) -> Payload {
    let reply = question.reply(fault);
    let metadata = json!({ "input_tokens": question.prompt_tokens, "generated_tokens": reply.tokens() });
    whole(&json!({ "type": "model", "text": &*reply.text, "finish_reason": "stop", "metadata": metadata }))
}

pub fn triton(_: &Call<'_>, _: &Value, question: &Question, fault: &Fault) -> Payload {
    let reply = question.reply(fault);
    let chunk = |text: &str| json!({ "model_name": "ensemble", "model_version": "1", "text_output": text });
    if question.is_streaming {
        return Payload::Events(reply.pieces().iter().map(|piece| data(&chunk(piece))).collect());
    }
    whole(&chunk(&reply.text))
}
