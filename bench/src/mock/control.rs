//! The mock's own endpoints under `/__mock/`: what it counted, what it received, what it shall do next. They need no
//! credential and are not counted themselves.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use http::{Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::{Value, json};

use super::body::{Abort, Ending, Outgoing};
use super::counts::Outcome;
use super::record::Recorded;
use super::state::State;
use super::wire::Link;

pub async fn answer(head: &Parts, body: Incoming, link: Arc<Link>) -> Result<Response<Outgoing>, Abort> {
    let body = body.collect().await.map_err(|_| Abort)?.to_bytes();
    let path = head.uri.path().trim_start_matches("/__mock/");
    let (status, answer) = match (head.method.as_str(), path) {
        ("GET", "counts") => (StatusCode::OK, json!(link.state.counts())),
        ("GET", "requests") => (StatusCode::OK, requests(&link.state, head.uri.query())),
        ("POST", "script") => script(&link.state, &body),
        ("GET", "script") => (StatusCode::OK, queued(&link.state)),
        ("POST", "reset") => {
            link.state.reset();
            (StatusCode::OK, json!({}))
        }
        _ => (StatusCode::NOT_FOUND, json!({ "error": "counts, requests, script or reset" })),
    };
    let text = Bytes::from(answer.to_string());
    let mut response = Response::new(Outgoing::whole(text, Ending::plain(link, None, Outcome::Ok)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(response)
}

/// The last `limit` requests with what is kept of their bodies, oldest first.
fn requests(state: &State, query: Option<&str>) -> Value {
    let limit = query.and_then(|query| query.strip_prefix("limit=")).and_then(|limit| limit.parse().ok());
    let requests = state.requests();
    let from = requests.len().saturating_sub(limit.unwrap_or(usize::MAX));
    let written = requests[from..].iter().map(|request: &Recorded| {
        let mut written = request.to_json();
        written["body"] = String::from_utf8_lossy(&request.body).into();
        written
    });
    written.collect()
}

/// What is still queued: for which bodies, and how often.
fn queued(state: &State) -> Value {
    let entries = state.queued();
    entries.iter().map(|fault| json!({ "contains": fault.contains, "times": fault.times.unwrap_or(1) })).collect()
}

fn script(state: &State, body: &[u8]) -> (StatusCode, Value) {
    match serde_json::from_slice(body) {
        Ok(faults) => {
            state.script(faults);
            (StatusCode::OK, json!({}))
        }
        Err(error) => (StatusCode::BAD_REQUEST, json!({ "error": error.to_string() })),
    }
}
