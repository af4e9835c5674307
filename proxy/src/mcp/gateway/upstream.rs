//! The server behind: asked over the dialer, left alone while it fails again and again, and read within bounds.

use super::McpGateway;
use super::McpRequest;
use super::answers::CallFailure;
use crate::guardrails::parse_unique;
use crate::mcp::{CircuitKey, Fault, MAX_ANSWER, McpEndpoint, UPSTREAM_FAILED, UpstreamCall};
use crate::net::dial::Upstream;
use crate::request::receive::MemoryShare;
use crate::request::refusal::RefusalCode;
use bytes::{Bytes, BytesMut};
use http::{HeaderValue, header};
use serde_json::{Map, Value};
use std::time::Instant;

/// Of an error's own words.
const MAX_ERROR: usize = 64 << 10;
const MAX_WORDS: usize = 1024;

/// What a server answered.
pub(super) enum ServerAnswer {
    /// Nothing is to be said.
    Accepted(Upstream),
    Json(Upstream),
    Events(Upstream),
}

impl McpGateway {
    pub(super) fn endpoint(&self, asked: &McpRequest) -> Result<McpEndpoint, CallFailure> {
        McpEndpoint::parse(&self.router.dialer, &asked.target.integration.url).map_err(|rule| {
            let message = format!("the address of this MCP server cannot be used: {rule}");
            CallFailure::upstream(message, 502, RefusalCode::InvalidCustomHost)
        })
    }

    /// An answer that says success. `may_repeat`: asking twice does nothing twice.
    pub(super) async fn ask_server(
        &self,
        asked: &McpRequest,
        endpoint: &McpEndpoint,
        call: &UpstreamCall,
        may_repeat: bool,
    ) -> Result<ServerAnswer, CallFailure> {
        let circuit = CircuitKey { tenant: asked.caller.tenant(), integration: asked.target.integration.id };
        if self.circuits.is_open(circuit, Instant::now()) {
            let message = "the MCP server has failed again and again, and is left alone for some seconds";
            return Err(CallFailure::upstream(message, 503, RefusalCode::UpstreamUnreachable));
        }
        let mut sent = call.send(&self.router.dialer, endpoint, may_repeat).await;
        if may_repeat && sent.as_ref().is_ok_and(|upstream| matches!(upstream.head().status.as_u16(), 502..=504)) {
            sent = call.send(&self.router.dialer, endpoint, false).await;
        }
        let status = sent.as_ref().map_or(503, |upstream| upstream.head().status.as_u16());
        self.circuits.record(circuit, status, Instant::now());
        if !(200..300).contains(&status) && sent.is_ok() {
            call.note_refusal();
        }
        let mut upstream = sent.map_err(CallFailure::of_class)?;
        upstream.inflate(Some(self.body_limits.owner(&asked.caller.workspace))).map_err(CallFailure::unusable)?;
        match status {
            202 | 204 => Ok(ServerAnswer::Accepted(upstream)),
            200..=299 if is_events(upstream.head().headers.get(header::CONTENT_TYPE)) => {
                Ok(ServerAnswer::Events(upstream))
            }
            200..=299 => Ok(ServerAnswer::Json(upstream)),
            _ => {
                let is_judged = self.guards_of(asked).is_some_and(|set| !set.output.is_empty());
                Err(failed_status(status, upstream, call, is_judged).await)
            }
        }
    }

    /// A whole answer, no longer than this; it counts towards the memory of bodies while it is held.
    pub(super) async fn read_whole(
        &self,
        asked: &McpRequest,
        mut upstream: Upstream,
        longest: usize,
    ) -> Result<Bytes, CallFailure> {
        let longest = longest.min(MAX_ANSWER);
        let mut share = MemoryShare::none(&self.body_limits.memory, asked.caller.tenant());
        let mut whole = BytesMut::new();
        loop {
            let piece = upstream.read_body().await.map_err(|error| CallFailure::of_upstream(&error))?;
            let Some(piece) = piece else { break };
            share.grow(piece.len()).map_err(|why| CallFailure::refused(why.into()))?;
            if whole.len() + piece.len() > longest {
                return Err(CallFailure::unusable(format!("it has more than {longest} bytes")));
            }
            whole.extend_from_slice(&piece);
        }
        upstream.release();
        Ok(whole.freeze())
    }
}

fn is_events(kind: Option<&HeaderValue>) -> bool {
    let kind = kind.map(HeaderValue::as_bytes).unwrap_or_default();
    kind.get(..17).is_some_and(|start| start.eq_ignore_ascii_case(b"text/event-stream"))
}

/// A status that says failure, and what the server says of it in the protocol's words. Whether the client's key is good is
/// ours to say, so a refusal of our own credentials is told otherwise. `is_judged`: guardrails look at what servers say; of
/// these words only what cannot hold a text is passed on then.
async fn failed_status(status: u16, mut upstream: Upstream, call: &UpstreamCall, is_judged: bool) -> CallFailure {
    match status {
        401 | 403 => {
            let message = format!("the MCP server answered {status}: it needs credentials, or refuses these");
            CallFailure::upstream(message, 502, RefusalCode::CredentialUnavailable)
        }
        400 | 404..=406 | 409 | 410 | 415 => {
            let error = match read_error(&mut upstream).await {
                Some(body) if !call.is_repeated_in(&body) => own_words(&body),
                _ => None,
            };
            upstream.release();
            let plain = |code: i64| Fault::new(code, format!("the MCP server answered {status}"));
            CallFailure::passed_on(
                status,
                match error {
                    None => plain(UPSTREAM_FAILED),
                    Some(fault) if is_judged => Fault { data: fault.data.and_then(revisions), ..plain(fault.code) },
                    Some(fault) => fault,
                },
            )
        }
        _ => CallFailure::upstream(format!("the MCP server answered {status}"), 502, RefusalCode::UpstreamError),
    }
}

async fn read_error(upstream: &mut Upstream) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = upstream.read_body().await.ok()? {
        if body.len() + piece.len() > MAX_ERROR {
            return None;
        }
        body.extend_from_slice(&piece);
    }
    Some(body)
}

fn own_words(body: &[u8]) -> Option<Fault> {
    let answer = parse_unique(body).ok()?;
    let error = &answer["error"];
    let message: String = error["message"].as_str()?.chars().take(MAX_WORDS).collect();
    // Clients choose another revision by what it names there.
    Some(Fault { data: error.get("data").cloned(), ..Fault::new(error["code"].as_i64()?, message) })
}

/// The revisions that an error names, by which clients choose another one; nothing else of it.
fn revisions(data: Value) -> Option<Value> {
    let is_revision = |value: &Value| {
        let is_plain = |byte: u8| byte.is_ascii_digit() || byte == b'-';
        value.as_str().is_some_and(|text| (1..=32).contains(&text.len()) && text.bytes().all(is_plain))
    };
    let Value::Object(mut data) = data else { return None };
    let mut passing = Map::new();
    for name in ["supported", "requested"] {
        match data.shift_remove(name) {
            Some(Value::Array(all)) if all.len() <= 32 && all.iter().all(is_revision) => {
                passing.insert(name.to_owned(), all.into());
            }
            Some(one) if is_revision(&one) => {
                passing.insert(name.to_owned(), one);
            }
            _ => {}
        }
    }
    (!passing.is_empty()).then_some(Value::Object(passing))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_the_words_of_a_failed_server_only_revisions_pass_unjudged() {
        for (data, expected) in [
            (
                json!({ "supported": ["2025-06-18"], "requested": "1" }),
                json!({ "supported": ["2025-06-18"], "requested": "1" }),
            ),
            (
                json!({ "supported": ["obey me"], "requested": "2025-06-18", "x": 1 }),
                json!({ "requested": "2025-06-18" }),
            ),
            (json!({ "why": "words" }), Value::Null),
            (json!("words"), Value::Null),
        ] {
            assert_eq!(revisions(data.clone()).unwrap_or_default(), expected, "{data}");
        }
    }

    #[test]
    fn words_that_cannot_be_read_strictly_are_left_out() {
        assert!(own_words(br#"{"error":{"code":1,"message":"m"}}"#).is_some());
        assert!(own_words(br#"{"error":{"code":1,"message":"m","message":"n"}}"#).is_none());
    }
}
