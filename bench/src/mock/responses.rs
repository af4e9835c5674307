//! Answers in the shape of OpenAI's responses: whole, and as the typed, numbered events of a stream.

use bytes::Bytes;
use serde_json::{Value, json};

use super::ask::Ask;
use super::fault::Fault;
use super::openai::{CREATED, error, halves, spoil};
use super::reply::Reply;
use super::shape::Payload;
use super::tools::ToolCall;

pub fn response(ask: &Ask<'_>, fault: &Fault, id: u64) -> Payload {
    let reply = Reply::in_format(fault, ask.format().as_ref());
    let response = Response { ask, fault, reply: &reply, calls: ask.calls(fault), id };
    match ask.is_streaming() {
        true => Payload::Events(response.events()),
        false => Payload::whole(response.whole().to_string().into_bytes()),
    }
}

struct Response<'a> {
    ask: &'a Ask<'a>,
    fault: &'a Fault,
    reply: &'a Reply<'a>,
    calls: Vec<ToolCall>,
    id: u64,
}

impl Response<'_> {
    fn whole(&self) -> Value {
        let mut response = self.begun();
        response["status"] = json!("completed");
        response["output"] = match self.calls.is_empty() {
            true => json!([message(&self.reply.text, self.id, "completed")]),
            false => self.calls.iter().enumerate().map(|(index, call)| self.call(index, call, true)).collect(),
        };
        if !self.fault.no_usage {
            let (input, output) = (self.ask.prompt_tokens(), self.reply.tokens());
            response["usage"] = json!({
                "input_tokens": input, "input_tokens_details": { "cached_tokens": 0 },
                "output_tokens": output, "output_tokens_details": { "reasoning_tokens": 0 },
                "total_tokens": input + output,
            });
        }
        response
    }

    fn begun(&self) -> Value {
        let model: Value = serde_json::from_str(self.ask.model_json()).unwrap_or_default();
        json!({
            "id": format!("resp_{:016}", self.id), "object": "response", "created_at": CREATED,
            "status": "in_progress", "error": null, "incomplete_details": null, "instructions": null, "metadata": {},
            "model": model, "output": [], "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto",
            "tools": [], "top_p": 1.0,
        })
    }

    fn call(&self, index: usize, call: &ToolCall, is_done: bool) -> Value {
        let arguments = if is_done { call.arguments.to_string() } else { String::new() };
        let status = if is_done { "completed" } else { "in_progress" };
        let call_id = if index == 0 { "call_mock".to_owned() } else { format!("call_mock_{index}") };
        json!({ "type": "function_call", "id": self.call_item_id(index), "call_id": call_id, "name": call.name,
                "arguments": arguments, "status": status })
    }

    fn call_item_id(&self, index: usize) -> String {
        if index == 0 { format!("fc_{:016}", self.id) } else { format!("fc_{:016}_{index}", self.id) }
    }

    fn events(&self) -> Vec<Bytes> {
        let mut all = vec![
            json!({ "type": "response.created", "response": self.begun() }),
            json!({ "type": "response.in_progress", "response": self.begun() }),
        ];
        let preamble = if self.calls.is_empty() { all.len() + 2 } else { all.len() };
        if self.calls.is_empty() {
            all.extend(self.text_events());
        }
        for (index, call) in self.calls.iter().enumerate() {
            all.extend(self.call_events(index, call));
        }
        all.push(json!({ "type": "response.completed", "response": self.whole() }));
        let written = all.into_iter().enumerate().map(|(number, mut event)| {
            event["sequence_number"] = json!(number);
            let kind = event["type"].as_str().unwrap_or_default().to_owned();
            Bytes::from(format!("event: {kind}\ndata: {event}\n\n"))
        });
        let mut events: Vec<Bytes> = written.collect();
        let number = match self.fault.error_after_chunks {
            Some(count) if !self.fault.error_in_200 => (preamble + count).min(events.len()),
            _ => 0,
        };
        let failure = || {
            let message = &error(500, "mock error inside a stream")["error"]["message"];
            let event = json!({ "type": "error", "code": "server_error", "message": message, "param": null,
                                "sequence_number": number });
            format!("event: error\ndata: {event}\n\n")
        };
        spoil(&mut events, self.fault, preamble, failure);
        events
    }

    fn text_events(&self) -> Vec<Value> {
        let place = json!({ "item_id": format!("msg_{:016}", self.id), "output_index": 0, "content_index": 0 });
        let at = |kind: &str, more: Value| with(&place, kind, &more);
        let part = |text: &str| json!({ "part": { "type": "output_text", "text": text, "annotations": [] } });
        let mut open = message("", self.id, "in_progress");
        open["content"] = json!([]);
        let done = message(&self.reply.text, self.id, "completed");
        let mut events = vec![
            json!({ "type": "response.output_item.added", "output_index": 0, "item": open }),
            at("response.content_part.added", part("")),
        ];
        let delta = |piece: &&str| at("response.output_text.delta", json!({ "delta": piece, "logprobs": [] }));
        events.extend(self.reply.pieces().iter().map(delta));
        events.extend([
            at("response.output_text.done", json!({ "text": &*self.reply.text, "logprobs": [] })),
            at("response.content_part.done", part(&self.reply.text)),
            json!({ "type": "response.output_item.done", "output_index": 0, "item": done }),
        ]);
        events
    }

    fn call_events(&self, index: usize, call: &ToolCall) -> [Value; 5] {
        let place = json!({ "item_id": self.call_item_id(index), "output_index": index });
        let arguments = call.arguments.to_string();
        let (first, second) = halves(&arguments);
        let delta = |piece: &str| with(&place, "response.function_call_arguments.delta", &json!({ "delta": piece }));
        let done = json!({ "arguments": arguments, "name": call.name });
        let item = |kind: &str, is_done: bool| json!({ "type": kind, "output_index": index, "item": self.call(index, call, is_done) });
        [
            item("response.output_item.added", false),
            delta(first),
            delta(second),
            with(&place, "response.function_call_arguments.done", &done),
            item("response.output_item.done", true),
        ]
    }
}

fn message(text: &str, id: u64, status: &str) -> Value {
    let content = json!([{ "type": "output_text", "text": text, "annotations": [] }]);
    json!({ "type": "message", "id": format!("msg_{id:016}"), "role": "assistant", "status": status, "content": content })
}

/// An event of this kind at this place.
fn with(place: &Value, kind: &str, more: &Value) -> Value {
    let mut event = place.clone();
    event["type"] = json!(kind);
    for (name, value) in more.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    event
}
