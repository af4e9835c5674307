//! What a request asks the mock to do wrong. A fault is a JSON object, and reaches the mock in whichever way survives
//! the proxy under test; the first of these that is present wins:
//! the header `x-mock-fault`; the query parameter `mock`; the queue of `POST /__mock/script`; a model named
//! `fault/{…}` or `fault/status=429,retry_after=2`; a last user message that is `{"mock":{…}}`.
//! An unknown field is answered with 400, so that a misspelt fault cannot pass for a healthy provider.

use std::collections::BTreeMap;
use std::time::Duration;

use http::HeaderMap;
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Fault {
    /// Status of the answer; from 400 on with the provider's error body.
    pub status: Option<u16>,
    /// Text or number for `retry-after`.
    pub retry_after: Option<Value>,
    pub retry_after_ms: Option<u64>,
    /// Further response headers.
    pub headers: BTreeMap<String, String>,
    /// Body instead of the usual one, with its content type.
    pub body: Option<String>,
    pub content_type: Option<String>,
    /// Wait before the head of the answer.
    pub latency_ms: Option<u64>,
    /// A 200 whose body, or first event, is an error.
    pub error_in_200: bool,
    /// An error event after so many content events of a stream.
    pub error_after_chunks: Option<usize>,
    /// Closes the connection after so many body bytes.
    pub cut_at: Option<u64>,
    /// Makes `cut_at` and `no_answer` a TCP reset instead of an orderly close.
    pub reset: bool,
    /// Closes the connection instead of answering.
    pub no_answer: bool,
    /// Goes silent after so many body bytes, for `stall_ms` (an hour when absent).
    pub stall_after_bytes: Option<u64>,
    pub stall_ms: Option<u64>,
    /// Wait before every event or piece but the first.
    pub chunk_delay_ms: Option<u64>,
    /// Number of content events of a stream.
    pub chunks: Option<usize>,
    /// Body, or one event, that is not JSON.
    pub bad_json: bool,
    pub no_usage: bool,
    /// Answers in multi-byte text and ends a write inside every such character.
    pub split_utf8: bool,
    /// Writes of at most so many bytes.
    pub chunk_bytes: Option<usize>,
    /// The text of the answer, or its length.
    pub reply: Option<String>,
    pub reply_bytes: Option<usize>,
    /// The text is so many words of one token each (see `reply`), and a stream brings them one by one.
    pub words: Option<usize>,
    /// Calls so many of the tools that the request offers, side by side, though it insists on none.
    pub tool_calls: Option<usize>,
    /// Holds a request to the fields of its wire where the mock is lenient (chat, messages, responses).
    pub strict: bool,
    /// The name under which the mock notes how many of those words left it.
    pub tag: Option<String>,
    /// Answers before the body is read, then closes. Only by header, query or queue.
    pub early_answer: bool,
    /// Closes the connection after the answer without having said so.
    pub close_idle: bool,
    pub no_content_length: bool,
    /// Sends `103 Early Hints` first (HTTP/1.1 only).
    pub informational: bool,
    /// Puts the time of sending into each event as `mock_sent_ns`.
    pub stamp: bool,
    /// Calls this tool with these arguments, whatever the request insists on.
    pub call: Option<ScriptedCall>,
    /// In the queue: serves only a request whose body holds all of these texts. The first entry that fits is taken; those
    /// without texts are for any request, and come before.
    pub contains: Vec<String>,
    /// In the queue: how many requests this entry serves (one when absent).
    pub times: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    pub name: String,
    pub arguments: Value,
}

#[derive(Debug, PartialEq)]
pub struct BadFault(pub String);

impl Fault {
    pub fn from_headers(headers: &HeaderMap) -> Result<Option<Self>, BadFault> {
        match headers.get("x-mock-fault") {
            Some(value) => parse(&String::from_utf8_lossy(value.as_bytes())).map(Some),
            None => Ok(None),
        }
    }

    pub fn from_query(query: Option<&str>) -> Result<Option<Self>, BadFault> {
        let Some(query) = query.filter(|query| query.contains("mock=")) else { return Ok(None) };
        let value = url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "mock");
        value.map(|(_, value)| parse(&value)).transpose()
    }

    pub fn from_model(model: &str) -> Result<Option<Self>, BadFault> {
        model.strip_prefix("fault/").map(parse).transpose()
    }

    pub fn from_message(text: &str) -> Result<Option<Self>, BadFault> {
        #[derive(Deserialize)]
        struct Carrier {
            mock: Fault,
        }
        if !text.trim_start().starts_with("{\"mock\"") {
            return Ok(None);
        }
        match serde_json::from_str::<Carrier>(text) {
            Ok(carrier) => Ok(Some(carrier.mock)),
            Err(error) => Err(BadFault(error.to_string())),
        }
    }

    /// Whether this entry of the queue is for that body.
    pub fn is_for(&self, body: &[u8]) -> bool {
        let holds = |text: &String| memchr::memmem::find(body, text.as_bytes()).is_some();
        !self.contains.is_empty() && self.contains.iter().all(holds)
    }

    pub fn latency(&self) -> Option<Duration> {
        self.latency_ms.map(Duration::from_millis)
    }

    pub fn stall(&self) -> Duration {
        Duration::from_millis(self.stall_ms.unwrap_or(3_600_000))
    }
}

/// JSON, or `name=value,name=value` for places where quotes are a nuisance.
fn parse(text: &str) -> Result<Fault, BadFault> {
    let value = if text.trim_start().starts_with('{') {
        serde_json::from_str(text).map_err(|error| BadFault(error.to_string()))?
    } else {
        Value::Object(text.split(',').filter(|pair| !pair.is_empty()).map(pair).collect::<Map<_, _>>())
    };
    serde_json::from_value(value).map_err(|error| BadFault(error.to_string()))
}

fn pair(text: &str) -> (String, Value) {
    let (name, value) = text.split_once('=').unwrap_or((text, "true"));
    (name.trim().to_owned(), serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_in_yields_the_same_fault() {
        let expected = Fault { status: Some(429), retry_after: Some(Value::String("soon".into())), ..Fault::default() };
        let json = r#"{"status":429,"retry_after":"soon"}"#;
        let mut headers = HeaderMap::new();
        headers.insert("x-mock-fault", json.parse().unwrap());
        let query = format!("a=1&mock={}", json.replace('"', "%22"));
        for found in [
            Fault::from_headers(&headers),
            Fault::from_query(Some(&query)),
            Fault::from_query(Some("mock=status%3D429,retry_after%3Dsoon")),
            Fault::from_model(&format!("fault/{json}")),
            Fault::from_model("fault/status=429,retry_after=soon"),
            Fault::from_message(&format!(r#"{{"mock":{json}}}"#)),
        ] {
            assert_eq!(found, Ok(Some(expected.clone())));
        }
    }

    #[test]
    fn ordinary_text_is_no_fault() {
        for found in [
            Fault::from_headers(&HeaderMap::new()),
            Fault::from_query(Some("mocking=1")),
            Fault::from_query(None),
            Fault::from_model("gpt-4o"),
            Fault::from_message("tell me about {\"mock\":{}}"),
        ] {
            assert_eq!(found, Ok(None));
        }
    }

    #[test]
    fn a_misspelt_fault_is_refused() {
        assert!(Fault::from_model("fault/sttaus=429").is_err());
        assert!(Fault::from_model("fault/{").is_err());
        assert!(Fault::from_message(r#"{"mock":{"late":1}}"#).is_err());
    }

    #[test]
    fn a_bare_name_means_true() {
        assert!(Fault::from_model("fault/bad_json").unwrap().unwrap().bad_json);
    }
}
