//! What hooks said as bytes of an answer: a field of a body, an event of a stream, and events whose texts are rewritten.

use super::GuardedCall;
use crate::engine::answer::steps::Unusable;
use crate::guardrails::{Rewriting, SideResult};
use crate::request::refusal::strip_denial_details;
use crate::wire::event_texts::StreamShape;
use crate::wire::sse;
use bytes::{Bytes, BytesMut};
use serde_json::Value;
use shared::guardrails::Shape;

/// Bytes around what hooks said.
const ENVELOPE: usize = 80;

/// An event whose texts are rewritten; what is no JSON passes behind what was held.
pub(super) fn rewrite(
    rewriting: &mut Rewriting,
    raw: &Bytes,
    shape: Shape,
    out: &mut BytesMut,
) -> Result<(), Unusable> {
    let whole = with_blank_line(raw);
    let event = sse::events(&whole).next();
    let Some(event) = event else {
        out.extend_from_slice(raw);
        return Ok(());
    };
    let read: Option<Value> = serde_json::from_slice(&event.data).ok();
    let is_last = StreamShape::new(shape).is_some_and(|shape| shape.is_last(read.as_ref(), event.data.trim_ascii()));
    let rewritten = match &read {
        Some(read) => rewriting.push(event.name.as_deref(), read),
        None if is_last => Ok(Some(rewriting.flush())),
        None => Ok(None),
    };
    let rewritten = rewritten.map_err(|_| Unusable("it is longer than a guardrail can hold".into()))?;
    for (name, event) in rewritten.iter().flatten() {
        put_event(out, name.as_deref(), event);
    }
    if rewritten.is_none() || read.is_none() {
        out.extend_from_slice(raw);
    }
    Ok(())
}

pub(super) fn put_event(out: &mut BytesMut, name: Option<&str>, event: &Value) {
    if let Some(name) = name {
        out.extend_from_slice(format!("event: {name}\n").as_bytes());
    }
    out.extend_from_slice(format!("data: {event}\n\n").as_bytes());
}

/// One more event, of ours.
pub(super) fn put_results(out: &mut BytesMut, shape: Shape, side: &str, results: &str) {
    let name = matches!(shape, Shape::Messages | Shape::Responses | Shape::Converse);
    let name = if name { "event: hook_results\n" } else { "" };
    for part in [name, "data: {\"hook_results\":{\"", side, "\":", results, "}}\n\n"] {
        out.extend_from_slice(part.as_bytes());
    }
}

/// What hooks said of a request, before the events of a stream that no hook looks at any more; nothing where streams keep to
/// their format.
pub fn results_event(call: &GuardedCall) -> Bytes {
    let mut out = BytesMut::new();
    if !call.is_strict && call.input.tells() {
        put_results(&mut out, call.shape, "before_request_hooks", &call.input.to_json());
    }
    out.freeze()
}

/// A body with one more field: what hooks said. Everything else of it stays as it was written.
pub fn with_results(body: Bytes, call: &GuardedCall, output: Option<&SideResult>) -> Bytes {
    let text = body.trim_ascii();
    let Some(inside) = text.strip_prefix(b"{").and_then(|text| text.strip_suffix(b"}")) else { return body };
    let comma: &[u8] = if inside.trim_ascii().is_empty() { b"" } else { b"," };
    let size: usize = [Some(&call.input), output].into_iter().flatten().map(SideResult::size).sum();
    let mut out = Vec::with_capacity(body.len() + size + ENVELOPE);
    for part in [b"{", inside, comma, b"\"hook_results\":{\"before_request_hooks\":["] {
        out.extend_from_slice(part);
    }
    call.input.tell(&mut out);
    out.extend_from_slice(b"],\"after_request_hooks\":[");
    if let Some(output) = output {
        output.tell(&mut out);
    }
    out.extend_from_slice(b"]}}");
    Bytes::from(out)
}

/// A denial that looks like an answer: it tells what a denial does.
pub fn with_denial(body: Bytes, call: &GuardedCall, output: Option<&SideResult>) -> Bytes {
    let mut results: Value = serde_json::from_str(&call.results(output)).unwrap_or_default();
    strip_denial_details(&mut results);
    match serde_json::from_slice::<Value>(&body) {
        Ok(Value::Object(mut fields)) => {
            fields.insert("hook_results".into(), results);
            Bytes::from(Value::Object(fields).to_string())
        }
        _ => body,
    }
}

/// The last event of a stream may lack what ends it.
pub(super) fn with_blank_line(event: &Bytes) -> Bytes {
    if [&b"\n\n"[..], b"\r\n\r\n", b"\r\r"].iter().any(|blank| event.ends_with(blank)) {
        return event.clone();
    }
    let mut whole = BytesMut::from(event.as_ref());
    whole.extend_from_slice(b"\n\n");
    whole.freeze()
}
