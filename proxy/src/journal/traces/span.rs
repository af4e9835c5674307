//! One record → its spans, in OTLP's JSON form and with the names of the GenAI conventions. Pure.

use crate::journal::record::Record;
use crate::journal::ship::Priced;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

/// Kinds of spans as OTLP numbers them.
const SERVER: u8 = 2;
const CLIENT: u8 = 3;
const FAILED: u8 = 2;

/// The span of the target that was tried, and with the last of a request's targets the one of the whole request.
pub fn spans(record: &Record<'_>, priced: &Priced<'_>) -> Vec<Value> {
    let is_last = record.id == record.internal_trace_id;
    let mut spans = Vec::with_capacity(2);
    if record.ai_org.is_some() {
        spans.push(attempt(record, priced, is_last));
    }
    if is_last {
        spans.push(request(record));
    }
    spans
}

/// The id of a record's span, for logs: the caller's own, or that of the span which the collector gets.
pub fn id(record: &Record<'_>) -> String {
    match record.id == record.internal_trace_id {
        true => request_span(record),
        false => hex(lower(record.id)),
    }
}

fn request(record: &Record<'_>) -> Value {
    let begin = nanos(record);
    let mut attributes = vec![
        text("http.request.method", record.method),
        text("url.path", record.url),
        count("http.response.status_code", u64::from(record.status)),
        text("gateway.organisation.id", &record.organisation_id.to_string()),
        text("gateway.workspace.id", &record.workspace_id.to_string()),
        text("gateway.request.id", &record.internal_trace_id.to_string()),
        text("gateway.strategy", record.mode.name()),
    ];
    attributes.extend(record.config.map(|config| text("gateway.config", config)));
    attributes.extend(metadata(record));
    let mut span = span(record, SERVER, &format!("{} {}", record.method, record.url), begin, record.response_time);
    span.insert("spanId".into(), request_span(record).into());
    if let Some(parent) = record.parent_span_id.filter(|id| is_span_id(id)) {
        span.insert("parentSpanId".into(), parent.to_ascii_lowercase().into());
    }
    span.insert("attributes".into(), attributes.into());
    Value::Object(span)
}

fn attempt(record: &Record<'_>, priced: &Priced<'_>, is_last: bool) -> Value {
    let operation = operation(record.url);
    let model = record.requested_model.or(record.answered_model);
    let name = model.map_or_else(|| operation.to_owned(), |model| format!("{operation} {model}"));
    // A record of its own says when its target was turned to; the last one says when the request came.
    let (after, took) = match is_last {
        true => (record.turned_after, record.response_time.saturating_sub(record.turned_after)),
        false => (0, record.response_time),
    };
    let mut attributes = vec![
        text("gen_ai.operation.name", operation),
        count("http.response.status_code", u64::from(record.status)),
        count("gateway.attempt", u64::from(record.attempt)),
        json!({ "key": "gateway.stream", "value": { "boolValue": record.is_stream } }),
    ];
    for (key, value) in [
        ("gen_ai.provider.name", record.ai_org),
        ("gen_ai.request.model", record.requested_model),
        ("gen_ai.response.model", record.answered_model),
        ("gateway.provider", record.virtual_key),
        ("gateway.option", record.option),
    ] {
        attributes.extend(value.map(|value| text(key, value)));
    }
    let (prompt, completion) = (priced.usage.prompt_tokens(), priced.usage.completion_tokens());
    if prompt > 0 || completion > 0 {
        attributes.push(count("gen_ai.usage.input_tokens", prompt));
        attributes.push(count("gen_ai.usage.output_tokens", completion));
    }
    if let Some(cost) = priced.cost {
        attributes.push(text("gateway.cost.cents", &cost.normalize().to_string()));
    }
    let mut span = span(record, CLIENT, &name, nanos(record) + u64::from(after) * 1_000_000, took);
    span.insert("spanId".into(), hex(lower(record.id)).into());
    span.insert("parentSpanId".into(), request_span(record).into());
    span.insert("attributes".into(), attributes.into());
    Value::Object(span)
}

fn span(record: &Record<'_>, kind: u8, name: &str, begin: u64, millis: u32) -> Map<String, Value> {
    let end = begin + u64::from(millis) * 1_000_000;
    let mut span = Map::new();
    span.insert("traceId".into(), trace_id(record.trace_id).into());
    span.insert("name".into(), name.into());
    span.insert("kind".into(), kind.into());
    // Numbers of this size are texts in OTLP's JSON.
    span.insert("startTimeUnixNano".into(), begin.to_string().into());
    span.insert("endTimeUnixNano".into(), end.to_string().into());
    let is_failure = kind == SERVER && record.status >= 500 || kind == CLIENT && record.status >= 400;
    if is_failure {
        span.insert("status".into(), json!({ "code": FAILED, "message": record.error_code.unwrap_or_default() }));
    }
    span
}

/// The caller's own trace where it is one: 32 hex digits, or a UUID. Other names are mapped to one, always the same.
fn trace_id(name: &str) -> String {
    match Uuid::try_parse(name) {
        Ok(id) if !id.is_nil() => id.simple().to_string(),
        _ => Sha256::digest(name).iter().take(16).map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// What the caller calls this request, else a number that no target's span has.
fn request_span(record: &Record<'_>) -> String {
    match record.span_id.filter(|id| is_span_id(id)) {
        Some(id) => id.to_ascii_lowercase(),
        None => hex(!lower(record.internal_trace_id)),
    }
}

fn is_span_id(text: &str) -> bool {
    text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) && text.bytes().any(|byte| byte != b'0')
}

fn lower(id: Uuid) -> u64 {
    id.as_u64_pair().1
}

fn hex(id: u64) -> String {
    // Every row has one, and formatting costs several times as much.
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let (mut rest, mut text) = (id.max(1), [0; 16]);
    for digit in text.iter_mut().rev() {
        *digit = DIGITS[(rest & 0xf) as usize];
        rest >>= 4;
    }
    String::from_utf8(text.to_vec()).unwrap_or_default()
}

fn nanos(record: &Record<'_>) -> u64 {
    u64::try_from(record.created_at().timestamp_millis()).unwrap_or(0) * 1_000_000
}

/// What was asked for, in the conventions' words where they have one.
fn operation(path: &str) -> &'static str {
    let path = path.trim_start_matches("/v1");
    match path {
        "/chat/completions" | "/messages" | "/responses" => "chat",
        "/completions" => "text_completion",
        "/embeddings" => "embeddings",
        _ if path.starts_with("/images") => "generate_content",
        _ => "call",
    }
}

/// The caller's own words about the call, each by its name.
fn metadata(record: &Record<'_>) -> Vec<Value> {
    let fields = record.metadata.and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
    let attribute = |(name, value): (String, Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        text(&format!("gateway.metadata.{name}"), &value)
    };
    fields.unwrap_or_default().into_iter().map(attribute).collect()
}

pub fn text(key: &str, value: &str) -> Value {
    json!({ "key": key, "value": { "stringValue": value } })
}

fn count(key: &str, value: u64) -> Value {
    json!({ "key": key, "value": { "intValue": value.to_string() } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use shared::cost::Usage;
    use std::time::{Duration, UNIX_EPOCH};

    fn id(millis: u64) -> Uuid {
        crate::request::request_id::new(UNIX_EPOCH + Duration::from_millis(millis))
    }

    fn attribute<'s>(span: &'s Value, key: &str) -> Option<&'s Value> {
        span["attributes"].as_array()?.iter().find(|attribute| attribute["key"] == key).map(|found| &found["value"])
    }

    #[test]
    fn ids_of_spans_have_sixteen_digits_and_are_never_zero() {
        for (number, expected) in [(0, "0000000000000001"), (0x1a, "000000000000001a"), (u64::MAX, "ffffffffffffffff")]
        {
            assert_eq!(hex(number), expected);
            assert!(is_span_id(expected));
        }
    }

    #[test]
    fn each_target_is_a_span_below_the_one_of_its_request() {
        let request = id(1_700_000_000_000);
        let common = Record {
            internal_trace_id: request,
            trace_id: "mine",
            url: "/v1/chat/completions",
            method: "POST",
            ..Record::default()
        };
        let failed = Record {
            id: id(1_700_000_000_010),
            ai_org: Some("openai"),
            status: 503,
            response_time: 40,
            ..common.clone()
        };
        let last = Record {
            id: request,
            ai_org: Some("anthropic"),
            requested_model: Some("claude"),
            status: 200,
            response_time: 100,
            turned_after: 60,
            attempt: 1,
            metadata: Some(r#"{"_user":"u"}"#),
            ..common
        };
        let priced = Priced { usage: Usage { input: 3, output: 4, ..Usage::default() }, ..Priced::default() };
        let spans = [spans(&failed, &Priced::default()), spans(&last, &priced)].concat();
        let [first, second, whole] = &spans[..] else { panic!("{spans:?}") };
        assert!(spans.iter().all(|span| span["traceId"] == whole["traceId"]));
        assert_eq!((&first["parentSpanId"], &second["parentSpanId"]), (&whole["spanId"], &whole["spanId"]));
        assert_ne!(first["spanId"], second["spanId"]);
        assert_eq!((&first["status"]["code"], second.get("status")), (&json!(FAILED), None));
        assert_eq!(second["name"], "chat claude");
        assert_eq!(second["startTimeUnixNano"], "1700000000060000000");
        assert_eq!(second["endTimeUnixNano"], "1700000000100000000");
        assert_eq!(whole["startTimeUnixNano"], "1700000000000000000");
        assert_eq!(attribute(second, "gen_ai.usage.input_tokens"), Some(&json!({ "intValue": "3" })));
        assert_eq!(attribute(whole, "gateway.metadata._user"), Some(&json!({ "stringValue": "u" })));
    }

    #[test]
    fn a_callers_own_ids_are_kept_where_they_are_ids() {
        let trace = "4bf92f3577b34da6a3ce929d0e0e4736";
        let own = Record {
            id: Uuid::from_u128(9),
            internal_trace_id: Uuid::from_u128(9),
            trace_id: trace,
            span_id: Some("00F067AA0BA902B7"),
            parent_span_id: Some("not an id"),
            ..Record::default()
        };
        let span = &spans(&own, &Priced::default())[0];
        assert_eq!((span["traceId"].as_str(), span["spanId"].as_str()), (Some(trace), Some("00f067aa0ba902b7")));
        assert_eq!(span.get("parentSpanId"), None);
        for name in ["", "any words", "00000000-0000-0000-0000-000000000000"] {
            let id = trace_id(name);
            assert_eq!((id.len(), &id), (32, &trace_id(name)), "{name}");
        }
    }
}
