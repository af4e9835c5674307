//! What an MCP client gets from the gateway itself: answers of a server that were read whole, and failures in the words of
//! JSON-RPC. The log tells the failure by its own status; HTTP says 200 where a request has its answer.

use super::McpGateway;
use crate::context::Visit;
use crate::engine::Delivered;
use crate::mcp::{Fault, NoCredential, Outcome, SESSION_NOT_FOUND, UPSTREAM_FAILED, UpstreamCall, fault_body};
use crate::net::dial::{Class, UpstreamError};
use crate::net::downstream::Downstream;
use crate::request::refusal::{JSON_RPC_REFUSED, Refusal, RefusalCode};
use crate::wire::sse::Unheld;
use bytes::Bytes;
use http::{HeaderName, HeaderValue, header};
use pingora_http::ResponseHeader;
use serde_json::json;
use std::time::Duration;

/// For a comment in a silent stream: a client that has gone is noticed, and nobody on the way takes it for dead.
pub(super) const HEARTBEAT: Duration = Duration::from_secs(25);

/// Why a message has no answer of the server's.
#[derive(Debug)]
pub(super) struct CallFailure {
    pub fault: Fault,
    /// As the log tells it.
    pub status: u16,
    pub code: RefusalCode,
    /// As HTTP tells it, whatever the message was; none: 200 for requests, `status` for others.
    pub http: Option<u16>,
}

impl CallFailure {
    /// The message itself is at fault.
    pub fn malformed(fault: Fault) -> Self {
        Self { fault, status: 400, code: RefusalCode::InvalidJson, http: Some(400) }
    }

    /// It asks for something that does not exist, as far as the caller may know.
    pub fn unknown(fault: Fault) -> Self {
        Self { fault, status: 404, code: RefusalCode::NotFound, http: None }
    }

    /// Also for sessions of others. The protocol wants 404, upon which clients begin anew.
    pub fn unknown_session() -> Self {
        let fault = Fault::new(SESSION_NOT_FOUND, "session not found");
        Self { fault, status: 404, code: RefusalCode::NotFound, http: Some(404) }
    }

    /// Another process holds the session. A client that gets 404 begins anew, which a balancer without stickiness would make
    /// it do for ever.
    pub fn session_elsewhere() -> Self {
        let message = "this session is held by another proxy: MCP servers with the transport sse need a balancer that sends \
                       all requests of a client to the same proxy";
        Self {
            fault: Fault::new(SESSION_NOT_FOUND, message),
            status: 421,
            code: RefusalCode::NotFound,
            http: Some(421),
        }
    }

    pub fn refused(refusal: Refusal) -> Self {
        Self { fault: Fault::of_refusal(&refusal), status: refusal.status, code: refusal.code, http: None }
    }

    /// The server's operator wants a token of another issuer, and there is none that holds.
    pub fn bad_token(why: &str) -> Self {
        let data = json!({ "type": RefusalCode::InvalidApiKey.as_str() });
        let fault = Fault { data: Some(data), ..Fault::new(JSON_RPC_REFUSED, why) };
        Self { fault, status: 401, code: RefusalCode::InvalidApiKey, http: Some(401) }
    }

    pub fn no_credential(why: NoCredential) -> Self {
        Self::upstream(why.to_string(), 502, RefusalCode::CredentialUnavailable)
    }

    pub fn upstream(message: impl Into<String>, status: u16, code: RefusalCode) -> Self {
        Self { fault: Fault::new(UPSTREAM_FAILED, message), status, code, http: None }
    }

    pub fn of_class(class: Class) -> Self {
        let message = format!("the MCP server cannot be reached ({})", class.label().replace('_', " "));
        match class {
            Class::FirstByteTimeout | Class::IdleTimeout => Self::upstream(message, 504, RefusalCode::GatewayTimeout),
            _ => Self::upstream(message, 503, RefusalCode::UpstreamUnreachable),
        }
    }

    /// What the server sends does not come, or the gateway cannot hold it.
    pub fn of_upstream(error: &UpstreamError) -> Self {
        match error.lacks_room() {
            Some(why) => Self::refused(why.into()),
            None => Self::of_class(error.class()),
        }
    }

    /// An event of the server cannot be held until it is whole.
    pub fn unheld(why: Unheld) -> Self {
        match why {
            Unheld::NoRoom(why) => Self::refused(why.into()),
            Unheld::TooLarge => Self::unusable(why),
        }
    }

    /// The server's answer cannot be passed on.
    pub fn unusable(why: impl std::fmt::Display) -> Self {
        let message = format!("the MCP server's answer cannot be used: {why}");
        Self::upstream(message, 502, RefusalCode::InvalidUpstreamResponse)
    }

    /// A stream that was only listened to ends before the server ended it. Clients open it again.
    pub fn listening_ended() -> Self {
        let message = "the gateway ended this stream: it restarts, or the key, person or server has changed";
        Self::upstream(message, 503, RefusalCode::NotReady)
    }

    /// The server's own status passes, with an error in the protocol's words.
    pub fn passed_on(status: u16, fault: Fault) -> Self {
        Self { fault, status, code: RefusalCode::UpstreamError, http: Some(status) }
    }

    pub fn http_status(&self, has_id: bool) -> u16 {
        self.http.unwrap_or(if has_id { 200 } else { self.status })
    }
}

impl McpGateway {
    /// `id` is that of the request which has no other answer.
    pub(super) async fn tell_failure(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        id: Option<&str>,
        failure: &CallFailure,
    ) -> Delivered {
        self.metrics.refused(failure.code);
        visit.answer.error_code = Some(failure.code);
        let body = fault_body(id, &failure.fault);
        write_whole(client, visit, [failure.http_status(id.is_some()), failure.status], &[], body).await
    }
}

/// An answer that is known whole, `[as HTTP tells it, as the log tells it]`. It is noted before it leaves.
pub(super) async fn write_whole(
    client: &mut impl Downstream,
    visit: &mut Visit,
    [http, logged]: [u16; 2],
    more: &[(HeaderName, HeaderValue)],
    body: Bytes,
) -> Delivered {
    let mut head = head(http, more);
    if !body.is_empty() {
        let _ = head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let _ = head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
    visit.answer.status = http;
    visit.answer.head_after = Some(visit.request.started.elapsed());
    visit.stamp(&mut head);
    note_end(visit, &head, logged, &body);
    let written = async {
        client.write_head(head).await?;
        client.write_body(body, true).await
    };
    match written.await {
        Ok(()) => Delivered::Answered,
        Err(_) => Delivered::ClientGone,
    }
}

/// A call that was sent whole is paid for, whatever becomes of its answer, unless that says that it failed.
pub(super) fn note_sent(visit: &mut Visit, call: &UpstreamCall) {
    if let Some(log) = visit.observer.log.as_mut().filter(|_| call.is_sent()) {
        log.sent_whole();
    }
}

/// What the log says of a call, which HTTP does not.
pub(super) fn noted(visit: &mut Visit, outcome: Outcome) -> u16 {
    if outcome.is_failure() {
        visit.answer.error_code = Some(RefusalCode::UpstreamError);
        if let Some(log) = &mut visit.observer.log {
            log.not_worked_on();
        }
    }
    outcome.status()
}

pub(super) fn gone(visit: &mut Visit) -> Delivered {
    visit.answer.status = 499;
    Delivered::ClientGone
}

/// The log learns what the client gets, and what became of the call.
fn note_end(visit: &mut Visit, head: &ResponseHeader, logged: u16, body: &[u8]) {
    let http = visit.answer.status;
    visit.answer.status = logged;
    visit.answers(&head.headers);
    visit.ends_with(body);
    visit.answer.status = http;
}

/// The head of an event stream.
pub(super) fn stream_head(visit: &mut Visit, more: &[(HeaderName, HeaderValue)]) -> ResponseHeader {
    let mut head = head(200, more);
    for (name, value) in [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-cache, no-transform"),
        (HeaderName::from_static("x-accel-buffering"), "no"),
    ] {
        let _ = head.insert_header(name, HeaderValue::from_static(value));
    }
    visit.answer.status = 200;
    visit.answer.head_after = Some(visit.request.started.elapsed());
    visit.stamp(&mut head);
    visit.answers(&head.headers);
    head
}

fn head(status: u16, more: &[(HeaderName, HeaderValue)]) -> ResponseHeader {
    let mut head = ResponseHeader::build_no_case(status, Some(16))
        .unwrap_or_else(|_| ResponseHeader::build_no_case(500, None).expect("500 is a status"));
    for (name, value) in more {
        let _ = head.insert_header(name.clone(), value.clone());
    }
    head
}
