//! Realtime sessions (`GET /realtime`, a websocket): the model stands in the query, and a browser, which cannot set
//! headers, brings its key among the subprotocols it offers. What is said in them is watched by `websocket`.

mod frames;
mod websocket;

pub use websocket::Websocket;

use http::HeaderValue;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;

const PATH: &str = "/realtime";
const KEY: &str = "openai-insecure-api-key.";

/// What a value in a query may show as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'/');

/// The model that a session asks for; other paths have none in their query.
pub fn model<'q>(path: &str, query: Option<&'q str>) -> Option<Cow<'q, str>> {
    if path != PATH {
        return None;
    }
    let raw = query?.split('&').find_map(|pair| pair.strip_prefix("model="))?;
    percent_decode_str(raw).decode_utf8().ok()
}

/// The same path and query, asking for another model.
pub fn asking(path_and_query: &str, model: &str) -> String {
    let model = format!("model={}", utf8_percent_encode(model, PLAIN));
    let Some((path, query)) = path_and_query.split_once('?') else { return format!("{path_and_query}?{model}") };
    let mut is_there = false;
    let mut pairs: Vec<&str> = query
        .split('&')
        .map(|pair| match pair.starts_with("model=") {
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
mod tests {
    use super::*;

    #[test]
    fn the_model_is_read_from_the_query_of_a_session_alone() {
        for (path, query, found) in [
            ("/realtime", Some("model=%40prod%2Fgpt-realtime&x=1"), Some("@prod/gpt-realtime")),
            ("/realtime", Some("x=1&model=@prod/m"), Some("@prod/m")),
            ("/realtime", Some("xmodel=a"), None),
            ("/realtime", Some("model=%ff"), None),
            ("/realtime", None, None),
            ("/models", Some("model=@prod/m"), None),
        ] {
            assert_eq!(model(path, query).as_deref(), found, "{path} {query:?}");
        }
    }

    #[test]
    fn another_model_changes_nothing_else_of_the_query() {
        for (before, after) in [
            ("/realtime?model=%40p%2Fm&x=%20&y", "/realtime?model=new/m%20odd&x=%20&y"),
            ("/realtime?x=1", "/realtime?x=1&model=new/m%20odd"),
            ("/realtime", "/realtime?model=new/m%20odd"),
        ] {
            assert_eq!(asking(before, "new/m odd"), after);
        }
    }

    #[test]
    fn a_key_is_found_among_the_subprotocols_and_left_out() {
        for (sent, found, left) in [
            (
                "realtime, openai-insecure-api-key.pk_1, openai-beta.realtime-v1",
                Some("pk_1"),
                Some("realtime, openai-beta.realtime-v1"),
            ),
            ("openai-insecure-api-key.pk_1", Some("pk_1"), None),
            ("realtime", None, Some("realtime")),
        ] {
            let value = HeaderValue::from_static(sent);
            assert_eq!(key(&value), found.map(str::as_bytes), "{sent}");
            assert_eq!(without_key(&value), left.map(HeaderValue::from_static), "{sent}");
        }
    }
}
