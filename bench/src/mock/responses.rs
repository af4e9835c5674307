//! Answers in the shape of OpenAI's responses: whole, and as the typed events of a stream.

use bytes::Bytes;
use serde_json::{Value, json};

use super::ask::Ask;
use super::fault::Fault;
use super::openai::{CREATED, error, spoil};
use super::reply::Reply;
use super::shape::Payload;

pub fn response(ask: &Ask<'_>, fault: &Fault, id: u64) -> Payload {
    let reply = Reply::of(fault);
    if ask.is_streaming() {
        return Payload::Events(events(ask, fault, &reply, id));
    }
    Payload::whole(whole(ask, fault, &reply, id).to_string().into_bytes())
}

fn whole(ask: &Ask<'_>, fault: &Fault, reply: &Reply<'_>, id: u64) -> Value {
    let mut response = begun(ask, id);
    response["status"] = json!("completed");
    response["output"] = json!([item(&reply.text, id, "completed")]);
    if let Some((name, arguments)) = ask.forced_tool() {
        response["output"] = json!([{ "type": "function_call", "id": format!("fc_{id:016}"), "call_id": "call_mock",
                                      "name": name, "arguments": arguments, "status": "completed" }]);
    }
    if !fault.no_usage {
        let (input, output) = (ask.prompt_tokens(), reply.tokens());
        response["usage"] = json!({
            "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
            "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 },
            "total_tokens": input + output,
        });
    }
    response
}

fn begun(ask: &Ask<'_>, id: u64) -> Value {
    let model: Value = serde_json::from_str(ask.model_json()).unwrap_or_default();
    json!({
        "id": format!("resp_{id:016}"), "object": "response", "created_at": CREATED, "status": "in_progress",
        "error": null, "incomplete_details": null, "instructions": null, "metadata": {}, "model": model, "output": [],
        "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
    })
}

fn item(text: &str, id: u64, status: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    json!({ "type": "message", "id": format!("msg_{id:016}"), "role": "assistant", "status": status, "content": content })
}

fn events(ask: &Ask<'_>, fault: &Fault, reply: &Reply<'_>, id: u64) -> Vec<Bytes> {
    let place = json!({ "item_id": format!("msg_{id:016}"), "output_index": 0, "content_index": 0 });
    let at = |kind: &str, more: Value| {
        let mut event = place.clone();
        event["type"] = json!(kind);
        for (name, value) in more.as_object().into_iter().flatten() {
            event[name] = value.clone();
        }
        event
    };
    let part = |text: &str| json!({ "part": { "type": "output_text", "text": text, "annotations": [] } });
    let mut open = item("", id, "in_progress");
    open["content"] = json!([]);
    let mut all = vec![
        json!({ "type": "response.created", "response": begun(ask, id) }),
        json!({ "type": "response.in_progress", "response": begun(ask, id) }),
        json!({ "type": "response.output_item.added", "output_index": 0, "item": open }),
        at("response.content_part.added", part("")),
    ];
    let preamble = all.len();
    all.extend(
        reply.pieces().iter().map(|piece| at("response.output_text.delta", json!({ "delta": piece, "logprobs": [] }))),
    );
    all.extend([
        at("response.output_text.done", json!({ "text": &*reply.text, "logprobs": [] })),
        at("response.content_part.done", part(&reply.text)),
        json!({ "type": "response.output_item.done", "output_index": 0, "item": item(&reply.text, id, "completed") }),
        json!({ "type": "response.completed", "response": whole(ask, fault, reply, id) }),
    ]);
    let written = all.into_iter().enumerate().map(|(number, mut event)| {
        event["sequence_number"] = json!(number);
        let kind = event["type"].as_str().unwrap_or_default().to_owned();
        Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
    });
    let mut events: Vec<Bytes> = written.collect();
    let failure = || {
        let message = &error(500, "mock error inside a stream")["error"]["message"];
        let event =
            json!({ "type": "error", "code": "server_error", "message": message, "param": null, "sequence_number": 0 });
        format!("event: error\ndata: {event}\n\n")
    };
    spoil(&mut events, fault, preamble, failure);
    events
}
