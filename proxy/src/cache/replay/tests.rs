//! A kept answer is given again as a stream that says the same, in every format.

use super::*;
use crate::wire::codecs;
use crate::wire::codecs::WireEvent;
use crate::wire::conversation::{Answer, Assembler, Part, WireFormat};
use crate::wire::sse;
use serde_json::{Value, json};

fn options() -> AnswerOptions<'static> {
    AnswerOptions {
        is_strict: false,
        id: "made".into(),
        created: 1,
        model: "other".into(),
        provider: "".into(),
        include_usage: true,
        request: None,
    }
}

/// What a client sees of an answer.
pub fn seen(answer: &Answer) -> Vec<String> {
    let mut seen = vec![format!("{:?} {:?} {:?}", answer.id, answer.model, answer.created)];
    for choice in &answer.choices {
        for part in &choice.parts {
            seen.push(match part {
                Part::Text(text) => format!("text {}", text.text),
                Part::Refusal(text) => format!("refusal {text}"),
                Part::Thinking(thinking) => format!("thinking {}", thinking.text),
                Part::ToolUse(call) => format!("call {} {} {}", call.id, call.name, call.arguments),
                _ => "something else".to_owned(),
            });
        }
        seen.push(format!("{:?}", choice.finish.as_ref().map(|finish| finish.reason)));
    }
    seen.push(format!("{:?}", answer.usage.as_ref().map(|usage| (usage.prompt(), usage.output))));
    // Where there is no text some formats say an empty one.
    seen.retain(|part| part != "text ");
    seen
}

fn read_back(format: WireFormat, events: &Bytes) -> Answer {
    let mut reader = codecs::by_format(format).unwrap().stream_reader();
    let (mut deltas, mut assembler) = (Vec::new(), Assembler::default());
    for event in sse::events(events) {
        reader.push(&WireEvent { name: event.name.as_deref(), data: &event.data }, &mut deltas).unwrap();
    }
    reader.finish(&mut deltas).unwrap();
    deltas.into_iter().for_each(|delta| assembler.push(delta).unwrap());
    assembler.finish().unwrap()
}

/// Answers of every format: texts, calls of tools, thoughts, refusals, several choices, and what they used.
pub fn kept() -> Vec<(WireFormat, Value)> {
    let usage = json!({ "prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5 });
    let call = json!({ "id": "call_1", "type": "function", "function": { "name": "f", "arguments": "{\"a\":1}" } });
    let chat = |message: Value, finish: &str| {
        json!({ "id": "c-1", "object": "chat.completion", "created": 7, "model": "m", "usage": usage,
            "choices": [{ "index": 0, "message": message, "finish_reason": finish }] })
    };
    vec![
        (WireFormat::Chat, chat(json!({ "role": "assistant", "content": "Hé ".repeat(600) }), "stop")),
        (WireFormat::Chat, chat(json!({ "role": "assistant", "content": null, "tool_calls": [call] }), "tool_calls")),
        (WireFormat::Chat, chat(json!({ "role": "assistant", "content": null, "refusal": "I will not." }), "stop")),
        (
            WireFormat::Chat,
            chat(json!({ "role": "assistant", "content": "so", "reasoning_content": "because" }), "length"),
        ),
        (
            WireFormat::Chat,
            json!({ "id": "c-1", "object": "chat.completion", "created": 7, "model": "m", "usage": usage, "choices": [
                { "index": 0, "message": { "role": "assistant", "content": "one" }, "finish_reason": "stop" },
                { "index": 1, "message": { "role": "assistant", "content": "two" }, "finish_reason": "length" }] }),
        ),
        (
            WireFormat::Completions,
            json!({ "id": "c-1", "object": "text_completion", "created": 7, "model": "m", "usage": usage,
                "choices": [{ "index": 0, "text": "Hi", "finish_reason": "stop", "logprobs": null }] }),
        ),
        (
            WireFormat::Messages,
            json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use",
                "stop_sequence": null, "usage": { "input_tokens": 3, "output_tokens": 2 }, "content": [
                    { "type": "thinking", "thinking": "because", "signature": "s" },
                    { "type": "text", "text": "Hi" },
                    { "type": "tool_use", "id": "t_1", "name": "f", "input": { "a": 1 } }] }),
        ),
        (
            WireFormat::Messages,
            json!({ "id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "refusal",
                "stop_sequence": null, "usage": { "input_tokens": 3, "output_tokens": 2 }, "content": [
                    { "type": "text", "text": "I will" }] }),
        ),
        (
            WireFormat::Responses,
            json!({ "id": "resp_1", "object": "response", "created_at": 7, "model": "m", "status": "completed",
                "usage": { "input_tokens": 3, "output_tokens": 2, "total_tokens": 5 }, "output": [
                    { "type": "reasoning", "id": "rs_1", "summary": [{ "type": "summary_text", "text": "because" }] },
                    { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                        "content": [{ "type": "output_text", "text": "so", "annotations": [] }] }] }),
        ),
        (
            WireFormat::Responses,
            json!({ "id": "resp_1", "object": "response", "created_at": 7, "model": "m", "status": "completed",
                "usage": { "input_tokens": 3, "output_tokens": 2, "total_tokens": 5 }, "output": [
                    { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                        "content": [{ "type": "refusal", "refusal": "I will not." }] }] }),
        ),
        (
            WireFormat::Responses,
            json!({ "id": "resp_1", "object": "response", "created_at": 7, "model": "m", "status": "completed",
                "usage": { "input_tokens": 3, "output_tokens": 2, "total_tokens": 5 }, "output": [
                    { "type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
                        "content": [{ "type": "output_text", "text": "Hi", "annotations": [] }] },
                    { "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f", "arguments": "{\"a\":1}",
                        "status": "completed" }] }),
        ),
        (
            WireFormat::Gemini,
            json!({ "candidates": [{ "index": 0, "finishReason": "STOP",
                    "content": { "role": "model", "parts": [{ "text": "Hi" }] } }],
                "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5 },
                "modelVersion": "m", "responseId": "r-1" }),
        ),
        (
            WireFormat::Gemini,
            json!({ "candidates": [{ "index": 0, "finishReason": "STOP", "content": { "role": "model", "parts": [
                    { "text": "because", "thought": true }, { "text": "so" },
                    { "functionCall": { "id": "t_1", "name": "f", "args": { "a": 1 } } }] } }],
                "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5 },
                "modelVersion": "m", "responseId": "r-1" }),
        ),
        (
            WireFormat::Gemini,
            json!({ "candidates": [{ "index": 0, "finishReason": "SAFETY",
                    "content": { "role": "model", "parts": [{ "text": "I will" }] } }],
                "usageMetadata": { "promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5 },
                "modelVersion": "m", "responseId": "r-1" }),
        ),
        (
            WireFormat::Converse,
            json!({ "output": { "message": { "role": "assistant", "content": [
                    { "reasoningContent": { "reasoningText": { "text": "because", "signature": "s" } } },
                    { "text": "so" }] } },
                "stopReason": "content_filtered", "usage": { "inputTokens": 3, "outputTokens": 2, "totalTokens": 5 } }),
        ),
        (
            WireFormat::Converse,
            json!({ "output": { "message": { "role": "assistant", "content": [
                    { "text": "Hi" }, { "toolUse": { "toolUseId": "t_1", "name": "f", "input": { "a": 1 } } }] } },
                "stopReason": "tool_use", "usage": { "inputTokens": 3, "outputTokens": 2, "totalTokens": 5 } }),
        ),
    ]
}

#[test]
fn a_stream_says_what_the_kept_answer_says() {
    for (format, body) in kept() {
        let codec = codecs::by_format(format).unwrap();
        let bytes = body.to_string();
        let original = codec.read_answer(bytes.as_bytes()).unwrap();
        let events = as_events(bytes.as_bytes(), codec, &options()).unwrap();
        let replayed = read_back(format, &events);
        assert_eq!(seen(&replayed), seen(&original), "{format:?}: {}", String::from_utf8_lossy(&events));
    }
}

#[test]
fn texts_are_cut_calls_are_whole_and_usage_comes_once() {
    let arguments = "x".repeat(2_000);
    let call = json!({ "id": "t", "type": "function", "function": { "name": "f", "arguments": arguments } });
    let message = json!({ "role": "assistant", "content": "y".repeat(1_200), "tool_calls": [call] });
    let body = json!({ "id": "c", "created": 7, "model": "m", "usage": { "prompt_tokens": 1, "completion_tokens": 1,
        "total_tokens": 2 }, "choices": [{ "index": 0, "message": message, "finish_reason": "tool_calls" }] });
    let codec = codecs::by_format(WireFormat::Chat).unwrap();
    let events = as_events(body.to_string().as_bytes(), codec, &options()).unwrap();
    let text = String::from_utf8(events.to_vec()).unwrap();
    let pieces = |letter: &str, length: usize| text.matches(&format!("\"{}\"", letter.repeat(length))).count();
    assert_eq!((pieces("y", 500), pieces("y", 200), pieces("x", 2_000)), (2, 1, 1), "{text}");
    assert_eq!(text.matches("total_tokens").count(), 1);
    assert!(text.ends_with("data: [DONE]\n\n"));
}

#[test]
fn what_its_own_codec_cannot_read_is_no_stream() {
    for body in [&b""[..], b"<html>", br#"{"error":{"message":"m"}}"#] {
        assert!(as_events(body, codecs::by_format(WireFormat::Chat).unwrap(), &options()).is_none());
    }
}
