//! What the head of a realtime session (`GET /realtime`, a websocket) says: the model stands in the query, and a browser, which
//! cannot set headers, brings its key among the subprotocols that it offers.

use super::refusal::Refusal;
use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;

const PATH: &str = "/realtime";
const KEY: &str = "openai-insecure-api-key.";

/// What a value in a query may show as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// The model that a session asks for; other paths have none in their query. Two of them could mean one to us and the other
/// to the provider, so they are refused.
pub fn model<'q>(path: &str, query: Option<&'q str>) -> Result<Option<Cow<'q, str>>, Refusal> {
    let pairs = query.filter(|_| is_session(path)).into_iter().flat_map(|query| query.split('&'));
    let mut models = pairs.filter(|pair| is_model(pair));
    let Some(first) = models.next() else { return Ok(None) };
    if models.next().is_some() {
        return Err(Refusal::invalid_query("model", "given once"));
    }
    let value = first.split_once('=').map_or("", |(_, value)| value);
    match percent_decode_str(value).decode_utf8() {
        Ok(model) => Ok(Some(model)),
        Err(_) => Err(Refusal::invalid_query("model", "UTF-8")),
    }
}

/// The same path and query, asking for another model.
pub fn asking(path_and_query: &str, model: &str) -> String {
    let model = format!("model={}", utf8_percent_encode(model, PLAIN));
    let Some((path, query)) = path_and_query.split_once('?') else { return format!("{path_and_query}?{model}") };
    let mut is_there = false;
    let mut pairs: Vec<&str> = query
        .split('&')
        .map(|pair| match is_model(pair) {
            true => {
                is_there = true;
                &*model
            }
            false => pair,
        })
        .collect();
    if !is_there {
        pairs.push(&model);
    }
    format!("{path}?{}", pairs.join("&"))
}

/// However it is spelled: providers read escaped letters and a slash at the end as the same path.
pub fn is_session(path: &str) -> bool {
    percent_decode_str(path.trim_end_matches('/')).eq(PATH.bytes())
}

/// Whether a pair of a query is the model's, also where letters of its name are escaped.
fn is_model(pair: &str) -> bool {
    let name = pair.split_once('=').map_or(pair, |(name, _)| name);
    percent_decode_str(name).eq(b"model".iter().copied())
}

/// The key among the subprotocols, if there is one.
pub fn key(protocols: &HeaderValue) -> Option<&[u8]> {
    protocols.as_bytes().split(|byte| *byte == b',').find_map(|one| one.trim_ascii().strip_prefix(KEY.as_bytes()))
}

/// The subprotocols without any key; None when nothing else is left.
pub fn without_key(protocols: &HeaderValue) -> Option<HeaderValue> {
    let others = protocols.as_bytes().split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    let others: Vec<&[u8]> = others.filter(|one| !one.starts_with(KEY.as_bytes())).collect();
    HeaderValue::from_bytes(&others.join(&b", "[..])).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests;
