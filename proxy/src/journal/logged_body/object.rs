//! A record and what was gathered beside it → the object in the log store, as JSON. Pure, and off the threads that carry
//! requests.
//!
//! A body that is JSON stands in it as it was written, any other as a text. What was not kept is said in its place,
//! in square brackets.

use super::head_lines;
use crate::journal::Record;
use crate::journal::body_frame::{StoredBodies, StoredText};
use crate::limits::usage::stream_options;
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use shared::headers::header_prefix::Aliases;
use shared::log_store::shortened;
use shared::model::id::{OrganisationId, WorkspaceId};
use std::borrow::Cow;
use uuid::Uuid;

/// Lists of numbers beyond this are vectors.
const MAX_LIST: usize = 16;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Object<'a> {
    #[serde(rename = "_id")]
    id: Uuid,
    #[serde(rename = "organisation_id")]
    organisation_id: OrganisationId,
    #[serde(rename = "workspace_id")]
    workspace_id: WorkspaceId,
    #[serde(rename = "created_at")]
    created_at: String,
    request: LoggedRequest<'a>,
    response: LoggedAnswer<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transformed_request: Option<LoggedUpstreamRequest<'a>>,
    #[serde(rename = "log_format")]
    log_format: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoggedRequest<'a> {
    url: Cow<'a, str>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Content<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_headers: Option<Map<String, Value>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LoggedAnswer<'a> {
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    headers: Option<Map<String, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Content<'a>>,
    response_time: u32,
    last_used_option_json_path: Option<&'a str>,
}

#[derive(Serialize)]
struct LoggedUpstreamRequest<'a> {
    url: Cow<'a, str>,
    method: &'a str,
    headers: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<Content<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Content<'a> {
    Json(&'a RawValue),
    Own(Box<RawValue>),
    Value(Value),
    Text(Cow<'a, str>),
}

/// The object of a call.
pub fn object(record: &Record<'_>, body: &StoredBodies<'_>, aliases: &Aliases) -> Result<Vec<u8>, serde_json::Error> {
    let (url, asked) = first_line(body.asked_head);
    let (ours, theirs): (Vec<_>, Vec<_>) =
        head_lines::parse(asked).partition(|(name, _)| aliases.suffix(name).is_some());
    let is_vectors = record.url.contains("embed");
    let has_answer = !body.answered_head.is_empty();
    let object = Object {
        id: record.id,
        organisation_id: record.organisation_id,
        workspace_id: record.workspace_id,
        created_at: record.created_at().to_rfc3339_opts(chrono::SecondsFormat::Millis, true),
        request: LoggedRequest {
            url: String::from_utf8_lossy(url),
            method: record.method,
            body: body.is_debug.then(|| content(body.request, content_type(&theirs))).flatten(),
            headers: body.is_debug.then(|| map(theirs.iter().cloned())),
            gateway_headers: body.is_debug.then(|| map(ours.into_iter())),
        },
        response: LoggedAnswer {
            status: record.status,
            headers: has_answer.then(|| map(head_lines::parse(body.answered_head))),
            body: answer(body, is_vectors),
            response_time: record.response_time,
            last_used_option_json_path: record.option,
        },
        transformed_request: sent(record, body),
        log_format: "v1",
    };
    serde_json::to_vec(&object)
}

fn answer<'b>(body: &StoredBodies<'b>, is_vectors: bool) -> Option<Content<'b>> {
    let head: Vec<_> = head_lines::parse(body.answered_head).collect();
    if !is_vectors || !body.response.is_text {
        return content(body.response, content_type(&head));
    }
    match serde_json::from_slice(body.response.bytes) {
        Ok(mut value) => {
            redact(&mut value, false);
            Some(Content::Value(value))
        }
        Err(_) if body.response.length == 0 => None,
        Err(_) => Some(left_out(content_type(&head), body.response.length)),
    }
}

/// What the provider was sent, if one was.
fn sent<'b>(record: &'b Record<'_>, body: &StoredBodies<'b>) -> Option<LoggedUpstreamRequest<'b>> {
    if body.sent_head.is_empty() {
        return None;
    }
    let (url, lines) = first_line(body.sent_head);
    let own = if body.sent.is_empty() { body.request.bytes } else { body.sent };
    let body = match body.asks_usage {
        // The wish is ours, and the same whenever it is worked out.
        true => stream_options::asking(&Bytes::copy_from_slice(own))
            .and_then(|asking| RawValue::from_string(String::from_utf8(asking.into()).ok()?).ok())
            .map(Content::Own),
        false if body.sent.is_empty() => None,
        false => content(StoredText { bytes: own, length: own.len() as u64, is_text: true }, None),
    };
    Some(LoggedUpstreamRequest {
        url: String::from_utf8_lossy(url),
        method: record.method,
        headers: map(head_lines::parse(lines)),
        body,
    })
}

/// A body as it stands in the object; none when there is none.
fn content<'b>(text: StoredText<'b>, kind: Option<&str>) -> Option<Content<'b>> {
    if text.length == 0 {
        return None;
    }
    if !text.is_text {
        return Some(left_out(kind, text.length));
    }
    let stored = text.bytes.len() as u64;
    if stored < text.length {
        let beginning = String::from_utf8_lossy(text.bytes);
        let beginning = beginning.trim_end_matches(char::REPLACEMENT_CHARACTER);
        return Some(Content::Text(shortened(beginning, stored, text.length).into()));
    }
    match serde_json::from_slice::<&RawValue>(text.bytes) {
        Ok(json) => Some(Content::Json(json)),
        Err(_) => Some(Content::Text(String::from_utf8_lossy(text.bytes))),
    }
}

fn left_out(kind: Option<&str>, length: u64) -> Content<'static> {
    Content::Text(format!("[{}: {length} bytes not kept]", kind.unwrap_or("of no stated kind")).into())
}

/// Vectors say nothing to a reader, and are most of an answer.
fn redact(value: &mut Value, is_vector: bool) {
    match value {
        Value::Array(items) if (is_vector || items.len() > MAX_LIST) && items.iter().all(Value::is_number) => {
            *value = json!(format!("[{} numbers not kept]", items.len()));
        }
        Value::String(text) if is_vector => *value = json!(format!("[{} characters not kept]", text.len())),
        Value::Array(items) => items.iter_mut().for_each(|item| redact(item, is_vector)),
        Value::Object(fields) => fields.iter_mut().for_each(|(name, field)| redact(field, name == "embedding")),
        _ => {}
    }
}

/// A header that came more than once is one text, as HTTP joins it.
fn map(pairs: impl Iterator<Item = (String, String)>) -> Map<String, Value> {
    let mut map = Map::new();
    for (name, value) in pairs {
        match map.get_mut(&name) {
            Some(Value::String(present)) => {
                present.push_str(", ");
                present.push_str(&value);
            }
            _ => {
                map.insert(name, Value::String(value));
            }
        }
    }
    map
}

fn content_type(pairs: &[(String, String)]) -> Option<&str> {
    let kind = pairs.iter().find(|(name, _)| name == "content-type").map(|(_, value)| value.as_str())?;
    kind.split(';').next().map(str::trim)
}

fn first_line(head: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memchr(b'\n', head) {
        Some(end) => (&head[..end], &head[end + 1..]),
        None => (head, &[]),
    }
}

#[cfg(test)]
mod tests;
