//! Answers in Anthropic's shape: messages, plain and as typed events, and the token count.

use bytes::Bytes;
use serde_json::{Value, json};

use super::ask::Ask;
use super::fault::Fault;
use super::openai::{Events, STAMP, halves, spoil, write, write_string};
use super::reply::Reply;
use super::shape::Payload;
use super::tools::ToolCall;

pub fn message(ask: &Ask<'_>, fault: &Fault, id: u64) -> Payload {
    let reply = Reply::in_format(fault, ask.format().as_ref());
    let calls = ask.calls(fault);
    if ask.is_streaming() {
        return Payload::Events(events(ask, fault, &reply, &calls, id));
    }
    let mut out = Vec::with_capacity(400 + reply.text.len());
    write_head(&mut out, ask, id);
    if !calls.is_empty() {
        let block = |(index, call): (usize, &ToolCall)| json!({ "type": "tool_use", "id": call_id(id, index), "name": call.name, "input": call.arguments });
        let blocks = Value::Array(calls.iter().enumerate().map(block).collect());
        write(&mut out, format_args!(r#","content":{blocks},"stop_reason":"tool_use","stop_sequence":null"#));
    } else {
        out.extend_from_slice(br#","content":[{"type":"text","text":"#);
        write_string(&mut out, &reply.text);
        out.extend_from_slice(br#"}],"stop_reason":"end_turn","stop_sequence":null"#);
    }
    if !fault.no_usage {
        write_usage(&mut out, ask, reply.tokens());
    }
    out.push(b'}');
    Payload::whole(out)
}

/// The first call of an answer keeps the number of its request.
fn call_id(id: u64, index: usize) -> String {
    if index == 0 { format!("toolu_{id:016}") } else { format!("toolu_{id:016}_{index}") }
}

fn events(ask: &Ask<'_>, fault: &Fault, reply: &Reply<'_>, calls: &[ToolCall], id: u64) -> Vec<Bytes> {
    let stamp = if fault.stamp { format!(r#","mock_sent_ns":{STAMP}"#) } else { String::new() };
    let mut events = Events::default();
    events.push(|out| {
        out.extend_from_slice(b"event: message_start\ndata: {\"type\":\"message_start\",\"message\":");
        write_head(out, ask, id);
        out.extend_from_slice(br#","content":[],"stop_reason":null,"stop_sequence":null"#);
        if !fault.no_usage {
            write_usage(out, ask, 1);
        }
        out.extend_from_slice(b"}}");
    });
    let preamble = if calls.is_empty() { 3 } else { 1 };
    if calls.is_empty() {
        push_text(&mut events, reply, &stamp);
    }
    for (index, call) in calls.iter().enumerate() {
        push_call(&mut events, call, id, index);
    }
    events.push(|out| {
        out.extend_from_slice(b"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":");
        let reason = if calls.is_empty() { "end_turn" } else { "tool_use" };
        write(out, format_args!(r#"{{"stop_reason":"{reason}","stop_sequence":null}}"#));
        if !fault.no_usage {
            write(out, format_args!(r#","usage":{{"output_tokens":{}}}"#, reply.tokens()));
        }
        out.push(b'}');
    });
    events.push(|out| out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}"));
    let mut events = events.cut();
    let failure = || format!("event: error\ndata: {}\n\n", error(529, "mock error inside a stream"));
    spoil(&mut events, fault, preamble, failure);
    events
}

fn push_text(events: &mut Events, reply: &Reply<'_>, stamp: &str) {
    events.push(|out| {
        out.extend_from_slice(b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,");
        out.extend_from_slice(br#""content_block":{"type":"text","text":""}}"#);
    });
    events.push(|out| out.extend_from_slice(b"event: ping\ndata: {\"type\":\"ping\"}"));
    for piece in reply.pieces() {
        events.push(|out| {
            out.extend_from_slice(b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",");
            out.extend_from_slice(br#""index":0,"delta":{"type":"text_delta","text":"#);
            write_string(out, piece);
            write(out, format_args!("}}{stamp}}}"));
        });
    }
    events.push(|out| {
        out.extend_from_slice(b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}");
    });
}

/// A call as a stream tells it: its name, its input in two pieces, its end.
fn push_call(events: &mut Events, call: &ToolCall, id: u64, index: usize) {
    let block = json!({ "type": "tool_use", "id": call_id(id, index), "name": call.name, "input": {} });
    let input = call.arguments.to_string();
    let (first, second) = halves(&input);
    let delta = |piece: &str| {
        let delta = json!({ "type": "input_json_delta", "partial_json": piece });
        json!({ "type": "content_block_delta", "index": index, "delta": delta })
    };
    for event in [
        json!({ "type": "content_block_start", "index": index, "content_block": block }),
        delta(first),
        delta(second),
        json!({ "type": "content_block_stop", "index": index }),
    ] {
        let kind = event["type"].as_str().unwrap_or_default();
        events.push(|out| write(out, format_args!("event: {kind}\ndata: {event}")));
    }
}

pub fn count_tokens(ask: &Ask<'_>) -> Payload {
    Payload::whole(json!({ "input_tokens": ask.prompt_tokens() }).to_string().into_bytes())
}

/// The error body that belongs to a status.
pub fn error(status: u16, message: &str) -> Value {
    let kind = match status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        _ => "api_error",
    };
    json!({ "type": "error", "error": { "type": kind, "message": message } })
}

fn write_head(out: &mut Vec<u8>, ask: &Ask<'_>, id: u64) {
    write(
        out,
        format_args!(r#"{{"id":"msg_{id:016}","type":"message","role":"assistant","model":{}"#, ask.model_json()),
    );
}

fn write_usage(out: &mut Vec<u8>, ask: &Ask<'_>, output: u64) {
    let input = ask.prompt_tokens();
    write(out, format_args!(r#","usage":{{"input_tokens":{input},"cache_creation_input_tokens":0,"#));
    write(out, format_args!(r#""cache_read_input_tokens":0,"output_tokens":{output}}}"#));
}
