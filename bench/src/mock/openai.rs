//! Answers in OpenAI's shape. They are written as text around a few variable parts: the mock must cost less than what
//! is measured against it.

use std::io::Write;

use bytes::Bytes;
use serde_json::{Value, json};

use super::ask::Ask;
use super::fault::Fault;
use super::reply::Reply;
use super::shape::Payload;
use super::tools::ToolCall;

/// Answers are reproducible, so their time stands still.
pub const CREATED: u64 = 1_750_000_000;
/// Replaced when the event is sent; as long as any nanosecond clock until the year 2286.
pub const STAMP: &str = "1000000000000000000";
const MODELS: [&str; 5] = ["gpt-4o", "gpt-4o-mini", "text-embedding-3-small", "claude-sonnet-4-20250514", "mock-model"];

pub fn chat(ask: &Ask<'_>, fault: &Fault, id: u64) -> Payload {
    let reply = Reply::in_format(fault, ask.format().as_ref());
    let calls = ask.calls(fault);
    if ask.is_streaming() {
        return Payload::Events(chat_events(ask, fault, &reply, &calls, id));
    }
    if !calls.is_empty() {
        return Payload::whole(called(ask, &calls, fault, &reply, id));
    }
    let mut out = Vec::with_capacity(640 + reply.text.len());
    write(&mut out, format_args!(r#"{{"id":"chatcmpl-{id:016}","object":"chat.completion","created":{CREATED},"#));
    write(&mut out, format_args!(r#""model":{},"choices":[{{"index":0,"message":"#, ask.model_json()));
    out.extend_from_slice(br#"{"role":"assistant","content":"#);
    write_string(&mut out, &reply.text);
    out.extend_from_slice(br#","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}]"#);
    write_usage(&mut out, ask, fault, &reply);
    out.extend_from_slice(br#","service_tier":"default","system_fingerprint":"fp_mock"}"#);
    Payload::whole(out)
}

/// An answer that calls tools.
fn called(ask: &Ask<'_>, calls: &[ToolCall], fault: &Fault, reply: &Reply<'_>, id: u64) -> Vec<u8> {
    let calls: Vec<Value> = (0..).zip(calls).map(|(index, call)| call_object(id, index, call)).collect();
    let message = json!({ "role": "assistant", "content": null, "refusal": null, "tool_calls": calls });
    let mut out = Vec::new();
    write(&mut out, format_args!(r#"{{"id":"chatcmpl-{id:016}","object":"chat.completion","created":{CREATED},"#));
    write(&mut out, format_args!(r#""model":{},"choices":[{{"index":0,"message":{message},"#, ask.model_json()));
    out.extend_from_slice(br#""logprobs":null,"finish_reason":"tool_calls"}]"#);
    write_usage(&mut out, ask, fault, reply);
    out.push(b'}');
    out
}

fn call_object(id: u64, index: usize, call: &ToolCall) -> Value {
    let function = json!({ "name": call.name, "arguments": call.arguments.to_string() });
    json!({ "id": call_id(id, index), "type": "function", "function": function })
}

/// The first call of an answer keeps the number of its request.
fn call_id(id: u64, index: usize) -> String {
    if index == 0 { format!("call_{id:016}") } else { format!("call_{id:016}_{index}") }
}

/// What a stream says of its calls: the name of each, then its arguments in two pieces.
fn call_deltas(calls: &[ToolCall], id: u64) -> Vec<String> {
    let delta = |index: usize, call: Value| {
        let mut call = call;
        call["index"] = json!(index);
        json!({ "tool_calls": [call] }).to_string()
    };
    let mut deltas = Vec::new();
    for (index, call) in calls.iter().enumerate() {
        let arguments = call.arguments.to_string();
        let (first, second) = halves(&arguments);
        let mut opening = call_object(id, index, call);
        opening["function"]["arguments"] = json!("");
        deltas.push(delta(index, opening));
        for piece in [first, second] {
            deltas.push(delta(index, json!({ "function": { "arguments": piece } })));
        }
    }
    deltas
}

/// Two pieces of a text, cut between characters.
pub fn halves(text: &str) -> (&str, &str) {
    let middle = (text.len() / 2..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    text.split_at(middle)
}

fn chat_events(ask: &Ask<'_>, fault: &Fault, reply: &Reply<'_>, calls: &[ToolCall], id: u64) -> Vec<Bytes> {
    let usage_field = if ask.wants_usage_chunk() { r#","usage":null"# } else { "" };
    let stamp = if fault.stamp { format!(r#","mock_sent_ns":{STAMP}"#) } else { String::new() };
    let head = format!(
        r#"data: {{"id":"chatcmpl-{id:016}","object":"chat.completion.chunk","created":{CREATED},"model":{},"service_tier":"default","system_fingerprint":"fp_mock","#,
        ask.model_json()
    );
    let mut events = Events::default();
    let mut choice = |delta: &dyn Fn(&mut Vec<u8>), finish: &str| {
        events.push(|out| {
            write(out, format_args!(r#"{head}"choices":[{{"index":0,"delta":"#));
            delta(out);
            write(out, format_args!(r#","logprobs":null,"finish_reason":{finish}}}]{usage_field}{stamp}}}"#));
        });
    };
    choice(&|out| out.extend_from_slice(br#"{"role":"assistant","content":"","refusal":null}"#), "null");
    for delta in call_deltas(calls, id) {
        choice(&|out| out.extend_from_slice(delta.as_bytes()), "null");
    }
    let pieces = if calls.is_empty() { reply.pieces() } else { Vec::new() };
    for piece in &pieces {
        choice(&|out| write_object(out, "content", piece), "null");
    }
    let finish = if calls.is_empty() { "\"stop\"" } else { "\"tool_calls\"" };
    choice(&|out| out.extend_from_slice(b"{}"), finish);
    if ask.wants_usage_chunk() && !fault.no_usage {
        events.push(|out| {
            write(out, format_args!(r#"{head}"choices":[]"#));
            write_usage(out, ask, fault, reply);
            out.push(b'}');
        });
    }
    events.push(|out| out.extend_from_slice(b"data: [DONE]"));
    let mut events = events.cut();
    spoil(&mut events, fault, 1, || format!("data: {}\n\n", error(500, "mock error inside a stream")));
    events
}

pub fn completion(ask: &Ask<'_>, fault: &Fault, id: u64) -> Payload {
    let reply = Reply::of(fault);
    let head = format!(
        r#"{{"id":"cmpl-{id:016}","object":"text_completion","created":{CREATED},"model":{}"#,
        ask.model_json()
    );
    let write_choice = |out: &mut Vec<u8>, text: &str, finish: &str| {
        write(out, format_args!(r#"{head},"choices":[{{"index":0,"text":"#));
        write_string(out, text);
        write(out, format_args!(r#","logprobs":null,"finish_reason":{finish}}}]"#));
    };
    if !ask.is_streaming() {
        let mut out = Vec::with_capacity(400 + reply.text.len());
        write_choice(&mut out, &reply.text, "\"stop\"");
        write_usage(&mut out, ask, fault, &reply);
        out.push(b'}');
        return Payload::whole(out);
    }
    let mut events = Events::default();
    for piece in reply.pieces() {
        events.push(|out| {
            out.extend_from_slice(b"data: ");
            write_choice(out, piece, "null");
            out.push(b'}');
        });
    }
    events.push(|out| {
        out.extend_from_slice(b"data: ");
        write_choice(out, "", "\"stop\"");
        if ask.wants_usage_chunk() {
            write_usage(out, ask, fault, &reply);
        }
        out.push(b'}');
    });
    events.push(|out| out.extend_from_slice(b"data: [DONE]"));
    let mut events = events.cut();
    spoil(&mut events, fault, 0, || format!("data: {}\n\n", error(500, "mock error inside a stream")));
    Payload::Events(events)
}

/// Vectors depend on the text alone. Numbers by default, base64 of little-endian floats when asked (as SDKs do).
pub fn embeddings(ask: &Ask<'_>, fault: &Fault) -> Payload {
    let inputs = ask.inputs();
    let data = inputs.iter().enumerate().map(|(index, input)| {
        let vector = vector(input, ask.dimensions.unwrap_or(8));
        let embedding = match ask.wants_base64() {
            true => Value::String(openssl::base64::encode_block(
                &vector.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<_>>(),
            )),
            false => json!(vector),
        };
        json!({ "object": "embedding", "index": index, "embedding": embedding })
    });
    let model: Value = serde_json::from_str(ask.model_json()).unwrap_or_default();
    let mut answer = json!({ "object": "list", "data": data.collect::<Vec<_>>(), "model": model });
    if !fault.no_usage {
        let count = ask.prompt_tokens();
        answer["usage"] = json!({ "prompt_tokens": count, "total_tokens": count });
    }
    Payload::whole(answer.to_string().into_bytes())
}

pub fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let seed = openssl::sha::sha256(text.as_bytes());
    (0..dimensions).map(|index| f32::from(seed[index % 32] as i8) / 128.0 / (1 + index / 32) as f32).collect()
}

pub fn models() -> Payload {
    let data: Vec<_> = MODELS.iter().map(|id| model_object(id)).collect();
    Payload::whole(json!({ "object": "list", "data": data }).to_string().into_bytes())
}

pub fn model(id: &str) -> Option<Payload> {
    MODELS.contains(&id).then(|| Payload::whole(model_object(id).to_string().into_bytes()))
}

fn model_object(id: &str) -> Value {
    json!({ "id": id, "object": "model", "created": CREATED, "owned_by": "mock" })
}

/// The error body that belongs to a status.
pub fn error(status: u16, message: &str) -> Value {
    let (kind, code) = match status {
        400 => ("invalid_request_error", Value::Null),
        401 => ("invalid_request_error", json!("invalid_api_key")),
        403 => ("invalid_request_error", json!("unsupported_country_region_territory")),
        404 => ("invalid_request_error", json!("model_not_found")),
        429 => ("requests", json!("rate_limit_exceeded")),
        _ => ("server_error", Value::Null),
    };
    json!({ "error": { "message": message, "type": kind, "param": null, "code": code } })
}

fn write_usage(out: &mut Vec<u8>, ask: &Ask<'_>, fault: &Fault, reply: &Reply<'_>) {
    if fault.no_usage {
        return;
    }
    let (prompt, completion) = (ask.prompt_tokens(), reply.tokens());
    let total = prompt + completion;
    write(out, format_args!(r#","usage":{{"prompt_tokens":{prompt},"completion_tokens":{completion},"#));
    write(out, format_args!(r#""total_tokens":{total},"prompt_tokens_details":{{"cached_tokens":0}},"#));
    out.extend_from_slice(br#""completion_tokens_details":{"reasoning_tokens":0}}"#);
}

/// Events written one after the other into one buffer, cut apart at the end.
#[derive(Default)]
pub struct Events {
    buffer: Vec<u8>,
    ends: Vec<usize>,
}

impl Events {
    pub fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.buffer);
        self.buffer.extend_from_slice(b"\n\n");
        self.ends.push(self.buffer.len());
    }

    pub fn cut(self) -> Vec<Bytes> {
        let mut rest = Bytes::from(self.buffer);
        let mut from = 0;
        let take = |end: usize| {
            let event = rest.split_to(end - from);
            from = end;
            event
        };
        self.ends.into_iter().map(take).collect()
    }
}

/// Puts the wrong events a fault asks for into a stream whose first `preamble` events carry no content.
pub fn spoil(events: &mut Vec<Bytes>, fault: &Fault, preamble: usize, error: impl Fn() -> String) {
    let broken = Bytes::from_static(b"data: {\"id\":\"chatcmpl-broken\",\"choices\":[{\"delta\":\n\n");
    spoil_with(events, fault, preamble, broken, || Bytes::from(error()));
}

/// As `spoil`, for streams of another framing.
pub fn spoil_with<E>(events: &mut Vec<E>, fault: &Fault, preamble: usize, broken: E, error: impl Fn() -> E) {
    if fault.bad_json {
        let middle = (preamble + 1).min(events.len());
        events.insert(middle, broken);
    }
    let first_bad = if fault.error_in_200 { Some(0) } else { fault.error_after_chunks.map(|count| preamble + count) };
    if let Some(index) = first_bad {
        events.truncate(index);
        events.push(error());
    }
}

pub fn write(out: &mut Vec<u8>, arguments: std::fmt::Arguments<'_>) {
    out.write_fmt(arguments).expect("a Vec takes whatever is written");
}

pub fn write_string(out: &mut Vec<u8>, text: &str) {
    serde_json::to_writer(out, text).expect("a string is always JSON and a Vec takes it");
}

pub fn write_object(out: &mut Vec<u8>, key: &str, text: &str) {
    write(out, format_args!("{{\"{key}\":"));
    write_string(out, text);
    out.push(b'}');
}

/// The answer of `POST /fixed`.
pub fn fixed() -> Bytes {
    let ask = Ask::parse(b"{\"model\":\"gpt-4o-mini\"}").expect("this is JSON");
    match chat(&ask, &Fault::default(), 0) {
        Payload::Whole(body) => body,
        _ => Bytes::new(),
    }
}
