//! Logs that applications report themselves, of calls that did not pass through the gateway. Read strictly where a row
//! depends on it; bodies are taken as they are.

use crate::http::{ApiError, json, text};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Most in one request.
pub const MAX_LOGS: usize = 1000;
const MAX_URL: usize = 2048;
const MAX_TEXT: usize = 255;
const MAX_VALUE: usize = 1024;
const MAX_PAIRS: usize = 50;

/// A reported call that can be stored.
#[derive(Debug)]
pub struct CustomLog {
    pub url: String,
    pub method: String,
    pub provider: Option<String>,
    pub request_headers: Map<String, Value>,
    pub request_body: Value,
    pub status: i32,
    pub response_headers: Map<String, Value>,
    pub response_body: Value,
    /// Milliseconds.
    pub response_time: i32,
    pub is_stream: bool,
    pub trace_id: Option<String>,
    pub span_id: Option<String>,
    pub span_name: Option<String>,
    pub parent_span_id: Option<String>,
    pub metadata: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "struct Sent")]
struct SentLog {
    request: SentRequest,
    response: SentResponse,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct SentRequest {
    url: String,
    #[serde(default)]
    provider: Option<String>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    headers: Option<Map<String, Value>>,
    body: Value,
}

#[derive(Deserialize)]
struct SentResponse {
    #[serde(default)]
    status: Option<i32>,
    #[serde(default)]
    headers: Option<Map<String, Value>>,
    body: Value,
    #[serde(default, alias = "time")]
    response_time: Option<f64>,
    #[serde(default, rename = "streamingMode", alias = "streaming_mode")]
    streaming_mode: Option<bool>,
}

/// One or many.
pub fn received(body: &[u8]) -> Result<Vec<CustomLog>, ApiError> {
    match json::value(body)? {
        Value::Array(items) if items.is_empty() || items.len() > MAX_LOGS => {
            Err(ApiError::invalid(format!("The body must have 1 to {MAX_LOGS} items")))
        }
        Value::Array(items) => {
            let one = |(n, item)| parse(item).map_err(|error| error.under(&format!("[{n}]")));
            items.into_iter().enumerate().map(one).collect()
        }
        one => Ok(vec![parse(one)?]),
    }
}

fn parse(item: Value) -> Result<CustomLog, ApiError> {
    let SentLog { request, response, metadata } = json::parse(item)?;
    let mut metadata = metadata.unwrap_or_default();
    let mut take = |names: [&str; 2]| taken(&mut metadata, names);
    let trace_id = take(["trace_id", "traceId"])?;
    let span_id = take(["span_id", "spanId"])?;
    let span_name = take(["span_name", "spanName"])?;
    let parent_span_id = take(["parent_span_id", "parentSpanId"])?;
    Ok(CustomLog {
        url: text::sized("request.url", without_secrets(&request.url), 1..=MAX_URL)?,
        method: method(request.method)?,
        provider: request.provider.map(provider).transpose()?.flatten(),
        request_headers: request.headers.unwrap_or_default(),
        request_body: request.body,
        status: status(response.status)?,
        response_headers: response.headers.unwrap_or_default(),
        response_body: response.body,
        response_time: time(response.response_time)?,
        is_stream: response.streaming_mode.unwrap_or(false),
        trace_id,
        span_id,
        span_name,
        parent_span_id,
        metadata: pairs(metadata)?,
    })
}

/// A name of a trace or span, in either spelling, taken out of the metadata.
fn taken(metadata: &mut Map<String, Value>, names: [&str; 2]) -> Result<Option<String>, ApiError> {
    let mut found = None;
    for name in names {
        match metadata.shift_remove(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(sent)) if sent.is_empty() => {}
            Some(Value::String(sent)) => {
                let sent = text::sized(&format!("metadata.{name}"), sent, 1..=MAX_TEXT)?;
                found.get_or_insert(sent);
            }
            Some(_) => return Err(ApiError::field(format!("metadata.{name}"), "must be a string")),
        }
    }
    Ok(found)
}

/// What is left of the metadata. Two names are those that the gateway's own metadata has an underscore before.
fn pairs(metadata: Map<String, Value>) -> Result<Map<String, Value>, ApiError> {
    if metadata.len() > MAX_PAIRS {
        return Err(ApiError::field("metadata", format!("must have at most {MAX_PAIRS} pairs")));
    }
    let mut accepted = Map::new();
    for (name, value) in metadata {
        let place = || format!("metadata.{}", name.chars().take(64).collect::<String>());
        match &value {
            Value::Null => continue,
            Value::String(text) if text.chars().count() <= MAX_VALUE => {}
            Value::Number(_) | Value::Bool(_) => {}
            _ => {
                let message = format!("must be a text of at most {MAX_VALUE} characters, a number or a boolean");
                return Err(ApiError::field(place(), message));
            }
        }
        if name.is_empty() || name.chars().count() > MAX_TEXT {
            return Err(ApiError::field(place(), format!("must have a name of 1 to {MAX_TEXT} characters")));
        }
        let name = match name.as_str() {
            "user" => "_user".to_owned(),
            "organization" | "organisation" => "_organisation".to_owned(),
            _ => name,
        };
        accepted.insert(name, value);
    }
    Ok(accepted)
}

fn method(sent: Option<String>) -> Result<String, ApiError> {
    let method = sent.filter(|sent| !sent.is_empty()).unwrap_or_else(|| "POST".into());
    let is_word = method.len() <= 16 && method.bytes().all(|byte| byte.is_ascii_alphabetic());
    if is_word {
        Ok(method.to_ascii_uppercase())
    } else {
        Err(ApiError::field("request.method", "must be a word as POST"))
    }
}

fn provider(sent: String) -> Result<Option<String>, ApiError> {
    let name = text::sized("request.provider", sent, 0..=MAX_TEXT)?.trim().to_owned();
    // Slugs of a workspace's own are as they are written.
    let name = if name.starts_with('@') { name } else { name.to_lowercase() };
    Ok((!name.is_empty()).then_some(name))
}

fn status(sent: Option<i32>) -> Result<i32, ApiError> {
    let status = sent.unwrap_or(200);
    if (100..=599).contains(&status) {
        Ok(status)
    } else {
        Err(ApiError::field("response.status", "must be from 100 to 599"))
    }
}

fn time(sent: Option<f64>) -> Result<i32, ApiError> {
    let time = sent.unwrap_or(0.0);
    if (0.0..=f64::from(i32::MAX)).contains(&time) {
        // Within bounds, so nothing is cut but the fraction.
        #[expect(clippy::cast_possible_truncation, reason = "the range was just checked")]
        return Ok(time.round() as i32);
    }
    Err(ApiError::field("response.response_time", "must be milliseconds, from 0 on"))
}

/// Keys are sent in queries and before the host, too.
fn without_secrets(sent: &str) -> String {
    let (place, query) = sent.split_once('?').map_or((sent, None), |(place, query)| (place, Some(query)));
    let place = match place.split_once("://") {
        Some((scheme, rest)) => {
            let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            format!("{scheme}://{}{path}", host.rsplit('@').next().unwrap_or_default())
        }
        None => place.to_owned(),
    };
    let is_harmless = |pair: &&str| !super::mask::is_secret(pair.split('=').next().unwrap_or_default());
    let query: Vec<&str> = query.into_iter().flat_map(|query| query.split('&')).filter(is_harmless).collect();
    if query.is_empty() { place } else { format!("{place}?{}", query.join("&")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn refusal(item: Value) -> String {
        received(item.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn a_reported_call_is_read_in_both_spellings() {
        let sent = json!([{
            "request": { "url": "https://user:s3cret@api.openai.com/v1/x?key=s3cret&a=1", "provider": "OpenAI", "body": { "model": "m" } },
            "response": { "body": null, "time": 12.6, "streamingMode": true },
            "metadata": { "traceId": "t", "spanName": "s", "user": "ada", "n": 5, "nothing": null },
        }]);
        let log = received(sent.to_string().as_bytes()).unwrap().remove(0);
        assert_eq!(log.url, "https://api.openai.com/v1/x?a=1");
        assert_eq!((log.method.as_str(), log.status, log.response_time, log.is_stream), ("POST", 200, 13, true));
        assert_eq!((log.trace_id.as_deref(), log.span_name.as_deref()), (Some("t"), Some("s")));
        assert_eq!(Value::Object(log.metadata), json!({ "_user": "ada", "n": 5 }));
        assert_eq!(log.provider.as_deref(), Some("openai"));
    }

    #[test]
    fn what_a_row_cannot_hold_is_refused_by_its_place() {
        let log = |request: Value, response: Value, metadata: Value| {
            let mut log =
                json!({ "request": { "url": "/", "body": {} }, "response": { "body": {} }, "metadata": metadata });
            for (name, more) in [("request", request), ("response", response)] {
                log[name].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            }
            log
        };
        let none = || json!({});
        for (item, place) in [
            (json!({ "request": { "url": "/", "body": {} } }), "response"),
            (json!({ "request": { "url": "/" }, "response": { "body": 1 } }), "request.body"),
            (log(json!({ "url": "" }), none(), none()), "request.url"),
            (log(json!({ "method": "GET /" }), none(), none()), "request.method"),
            (log(none(), json!({ "status": 99 }), none()), "response.status"),
            (log(none(), json!({ "status": 1e40 }), none()), "response.status"),
            (log(none(), json!({ "time": -1 }), none()), "response.response_time"),
            (log(none(), none(), json!({ "trace_id": 5 })), "metadata.trace_id"),
            (log(none(), none(), json!({ "a": {} })), "metadata.a"),
            (log(none(), none(), json!({ "a": "x".repeat(1025) })), "metadata.a"),
            (json!([log(none(), none(), none()), log(none(), json!({ "status": 0 }), none())]), "[1].response.status"),
        ] {
            let refused = refusal(item.clone());
            assert!(refused.starts_with(place), "{item}: {refused}");
        }
        for wrong in [json!([]), json!(vec![0; MAX_LOGS + 1]), json!("text")] {
            refusal(wrong);
        }
    }
}
