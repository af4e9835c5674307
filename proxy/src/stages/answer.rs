//! Upstream answer → client, on the engine lane.
//!
//! A plain answer of ordinary size is gathered before its first byte leaves, so that a cut one becomes a clean 502
//! instead of half a JSON. A stream is passed on event by event; its head leaves with the first content event, until
//! then a failure is an ordinary error answer, after it one error event in the client's dialect.

use crate::dial::{Class, Upstream, UpstreamError};
use crate::downstream::{ClientGone, Downstream};
use crate::events::{Splitter, events};
use crate::metrics::Outcome;
use crate::refusal::Refusal;
use crate::visit::Visit;
use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, header};
use pingora_http::ResponseHeader;
use serde::Deserialize;

/// A plain answer up to this size is held until it is whole.
const HELD_WHOLE: usize = 256 << 10;

#[derive(Debug)]
pub enum Ended {
    /// The whole answer was delivered.
    Complete,
    /// Nothing was sent to the client yet: the caller may answer otherwise.
    Failed(Failure),
    /// The client has had a well-formed error event.
    BrokenOff(Class),
    /// The client has half a body; its connection must not look complete.
    Torn(Class),
    ClientGone,
}

#[derive(Debug)]
pub struct Failure {
    pub refusal: Refusal,
    /// How the attempt ended, if there was one.
    pub outcome: Option<Outcome>,
}

impl From<ClientGone> for Ended {
    fn from(_: ClientGone) -> Self {
        Self::ClientGone
    }
}

pub async fn answer(client: &mut impl Downstream, upstream: &mut Upstream, visit: &mut Visit) -> Ended {
    let is_stream = is_event_stream(upstream.head());
    let delivered = match is_stream {
        true => stream(client, upstream, visit).await,
        false => plain(client, upstream, visit).await,
    };
    delivered.unwrap_or_else(|ended| ended)
}

async fn plain(client: &mut impl Downstream, upstream: &mut Upstream, visit: &mut Visit) -> Result<Ended, Ended> {
    let mut held = BytesMut::new();
    let mut last;
    loop {
        last = next(client, upstream).await?.map_err(|error| failed(&error, visit))?;
        match &last {
            Some(piece) if held.len() + piece.len() <= HELD_WHOLE && !upstream.is_done() => {
                held.extend_from_slice(piece)
            }
            _ => break,
        }
    }
    let head = client_head(upstream.take_head(), visit);
    client.write_head(head).await?;
    let first = match last {
        Some(piece) if held.is_empty() => piece,
        Some(piece) => {
            held.extend_from_slice(&piece);
            held.freeze()
        }
        None => held.freeze(),
    };
    let mut is_last = upstream.is_done();
    client.write_body(first, is_last).await?;
    while !is_last {
        let piece = next(client, upstream).await?.map_err(|error| Ended::Torn(error.class()))?;
        is_last = piece.is_none() || upstream.is_done();
        client.write_body(piece.unwrap_or_default(), is_last).await?;
    }
    Ok(Ended::Complete)
}

async fn stream(client: &mut impl Downstream, upstream: &mut Upstream, visit: &mut Visit) -> Result<Ended, Ended> {
    let mut splitter = Splitter::default();
    let mut held = BytesMut::new();
    // Before the first content event everything is still open.
    let first = loop {
        let piece = next(client, upstream).await?.map_err(|error| failed(&error, visit))?;
        let is_end = piece.is_none();
        let whole = match piece {
            Some(piece) => splitter.push(piece).map_err(|error| unusable(&error, visit))?,
            None => splitter.rest(),
        };
        let first_event = events(&whole).next();
        if let Some(refusal) = first_event.as_ref().and_then(|event| reported_error(&event.data)) {
            return Err(Ended::Failed(Failure { refusal, outcome: Some(Outcome::StreamError) }));
        }
        let has_event = first_event.is_some();
        if is_end && !has_event && held.is_empty() && whole.is_empty() {
            return Err(unusable(&"the stream ended before its first event", visit));
        }
        if has_event || is_end {
            break join(held, whole);
        }
        held.extend_from_slice(&whole);
    };
    let mut head = client_head(upstream.take_head(), visit);
    // Should the stream break off, one event more will be written than was announced.
    head.remove_header(&header::CONTENT_LENGTH);
    client.write_head(head).await?;
    let mut is_last = upstream.is_done();
    if is_last {
        let tail = splitter.rest();
        client.write_body(join(BytesMut::from(first.as_ref()), tail), true).await?;
        return Ok(Ended::Complete);
    }
    client.write_body(first, false).await?;
    while !is_last {
        let piece = match next(client, upstream).await? {
            Ok(piece) => piece,
            Err(error) => return break_off(client, visit, &error).await,
        };
        is_last = piece.is_none() || upstream.is_done();
        let whole = match splitter.push(piece.unwrap_or_default()) {
            Ok(whole) if is_last => join(BytesMut::from(whole.as_ref()), splitter.rest()),
            Ok(whole) => whole,
            Err(_) => return break_off(client, visit, &UpstreamError::protocol("an event is too large")).await,
        };
        if !whole.is_empty() || is_last {
            client.write_body(whole, is_last).await?;
        }
    }
    Ok(Ended::Complete)
}

/// The next piece of the answer, unless the client leaves first. The outer error ends everything at once.
async fn next(
    client: &mut impl Downstream,
    upstream: &mut Upstream,
) -> Result<Result<Option<Bytes>, UpstreamError>, Ended> {
    tokio::select! {
        biased;
        piece = upstream.read_body() => Ok(piece),
        () = client.gone() => Err(Ended::ClientGone),
    }
}

/// Ends a stream that has begun: whole events were passed on, so one more is well-formed whatever happened.
async fn break_off(client: &mut impl Downstream, visit: &mut Visit, error: &UpstreamError) -> Result<Ended, Ended> {
    let refusal = Refusal::invalid_upstream_response(provider(visit), error);
    tracing::warn!(request_id = visit.id(), class = error.class().label(), %error, "a stream broke off");
    client.write_body(refusal.event(visit.dialect, visit.id()), true).await?;
    Ok(Ended::BrokenOff(error.class()))
}

fn failed(error: &UpstreamError, visit: &Visit) -> Ended {
    let refusal = Refusal::invalid_upstream_response(provider(visit), error);
    Ended::Failed(Failure { refusal, outcome: Some(Outcome::Failed(error.class())) })
}

fn unusable(why: &dyn std::fmt::Display, visit: &Visit) -> Ended {
    let refusal = Refusal::invalid_upstream_response(provider(visit), why);
    Ended::Failed(Failure { refusal, outcome: Some(Outcome::Failed(Class::Protocol)) })
}

fn provider(visit: &Visit) -> &str {
    visit.provider.as_ref().and_then(|name| name.to_str().ok()).unwrap_or("the provider")
}

fn join(mut head: BytesMut, tail: Bytes) -> Bytes {
    if head.is_empty() {
        return tail;
    }
    head.extend_from_slice(&tail);
    head.freeze()
}

fn is_event_stream(head: &ResponseHeader) -> bool {
    head.status.is_success()
        && head.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"))
}

/// The upstream's head without its hop, and with ours. Edited as plain parts: Pingora's setters also keep each header's
/// spelling, which costs more than everything else here.
fn client_head(upstream: ResponseHeader, visit: &mut Visit) -> ResponseHeader {
    let mut parts = http::response::Parts::from(upstream);
    let hops: Vec<HeaderName> = parts.headers.keys().filter(|name| is_hop_by_hop(name)).cloned().collect();
    for name in hops {
        parts.headers.remove(name);
    }
    parts.version = http::Version::HTTP_11;
    visit.status = parts.status.as_u16();
    visit.stamp_map(&mut parts.headers);
    ResponseHeader::from(parts)
}

fn is_hop_by_hop(name: &HeaderName) -> bool {
    matches!(
        name.as_str(),
        "connection"
            | "transfer-encoding"
            | "upgrade"
            | "te"
            | "trailer"
            | "keep-alive"
            | "proxy-connection"
            | "proxy-authenticate"
    )
}

/// Some providers answer 200 and report the failure as the first event.
fn reported_error(data: &[u8]) -> Option<Refusal> {
    #[derive(Deserialize)]
    struct Envelope {
        error: Reported,
    }
    #[derive(Deserialize)]
    struct Reported {
        #[serde(default)]
        message: Option<String>,
        #[serde(default, rename = "type")]
        kind: Option<String>,
        #[serde(default)]
        code: serde_json::Value,
    }
    if !data.starts_with(b"{") || memchr::memmem::find(data, b"\"error\"").is_none() {
        return None;
    }
    let Envelope { error } = serde_json::from_slice(data).ok()?;
    let kind = error.kind.unwrap_or_default();
    let code = error.code.as_str().unwrap_or_default();
    let says = |word| kind.contains(word) || code.contains(word);
    let status = match error.code.as_u64().or_else(|| code.parse().ok()) {
        Some(code @ 400..=599) => code as u16,
        _ if says("rate_limit") => 429,
        _ if says("overloaded") => 529,
        _ => 502,
    };
    Some(Refusal::upstream_error(status, error.message.unwrap_or_else(|| "the provider reported an error".into())))
}

/// Answers for the gateway itself.
pub async fn refuse(client: &mut impl Downstream, visit: &mut Visit, refusal: &Refusal) -> Result<(), ClientGone> {
    let body = refusal.body(visit.dialect, visit.id());
    let head = refusal_head(visit, refusal, body.len());
    client.write_head(head).await?;
    client.write_body(body, true).await
}

/// The head of a refusal, for lanes that write the body themselves.
pub fn refusal_head(visit: &mut Visit, refusal: &Refusal, body_length: usize) -> ResponseHeader {
    let mut head = ResponseHeader::build_no_case(refusal.status, Some(8))
        .unwrap_or_else(|_| ResponseHeader::build_no_case(500, None).expect("500 is a status"));
    let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body_length));
    if let Some(seconds) = refusal.retry_after_s {
        let _ = head.insert_header(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    visit.status = refusal.status;
    visit.stamp(&mut head);
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_inside_a_success_keeps_the_status_it_names() {
        for (data, status) in [
            (r#"{"error":{"message":"m","type":"x","code":503}}"#, Some(503)),
            (r#"{"error":{"type":"rate_limit_error"}}"#, Some(429)),
            (r#"{"error":{"type":"requests","code":"rate_limit_exceeded"}}"#, Some(429)),
            (r#"{"error":{"message":"m","code":"404"}}"#, Some(404)),
            (r#"{"type":"error","error":{"type":"overloaded_error","message":"m"}}"#, Some(529)),
            (r#"{"error":{"message":"m","code":"weird"}}"#, Some(502)),
            (r#"{"choices":[{"delta":{"content":"an \"error\" in prose"}}]}"#, None),
            (r#"{"error":null,"choices":[]}"#, None),
            ("[DONE]", None),
        ] {
            assert_eq!(reported_error(data.as_bytes()).map(|refusal| refusal.status), status, "{data}");
        }
    }
}
