//! One message and its answer.

use super::McpGateway;
use super::McpRequest;
use super::admit_call::log_name;
use super::answers::{CallFailure, HEARTBEAT, gone, note_sent, noted, write_whole};
use super::messages::Looked;
use super::stream::EventPass;
use super::upstream::ServerAnswer;
use crate::context::{Heartbeats, Visit};
use crate::engine::Delivered;
use crate::engine::answer::with_heartbeats;
use crate::mcp::{
    Asked, ClientMessage, Fault, INVALID_REQUEST, MAX_ANSWER, MAX_LIST, McpEndpoint, Mirrored, Outcome,
    PROTOCOL_VERSION, SESSION_ID, UpstreamCall, mirrored,
};
use crate::net::dial::Upstream;
use crate::net::downstream::Downstream;
use crate::request::refusal::RefusalCode;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use shared::mcp::SERVICE;
use std::pin::pin;
use std::time::Instant;

/// The one revision that has batches; requests that name none may be of it.
const BATCHING: &[u8] = b"2025-03-26";
const MAX_REVISION: usize = 32;

/// A message that may leave, and where to.
pub(super) struct ReadyCall {
    pub endpoint: McpEndpoint,
    pub call: UpstreamCall,
}

impl McpGateway {
    pub(super) async fn post_message(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
    ) -> Delivered {
        let received = match self.receive_messages(client, visit, asked.caller.tenant(), may_batch).await {
            Ok(received) => received,
            Err(delivered) => return delivered,
        };
        match &received.content.messages[..] {
            [message] if !received.content.is_batch => match mirrored(&client.head().headers, message) {
                Ok(mirrored) => self.single(client, visit, asked, session, message, mirrored).await,
                Err(fault) => {
                    visit.observer.log = None;
                    let id = message.id.as_deref();
                    self.tell_failure(client, visit, id, &CallFailure::malformed(fault)).await
                }
            },
            messages => Box::pin(self.batch(client, visit, asked, session, messages)).await,
        }
    }

    /// `mirrored`: what the client says in headers besides the body, and the server may want so.
    pub(super) async fn single(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
        message: &ClientMessage,
        mirrored: Mirrored,
    ) -> Delivered {
        let id = message.id.as_deref();
        let ready = match self.prepare_message(client, visit, asked, session, message, mirrored).await {
            Ok(ready) => ready,
            Err(failure) => return self.tell_failure(client, visit, id, &failure).await,
        };
        if let Some(session) = session.filter(|_| message.asked.call().is_some()) {
            let settled = pin!(self.opening.settled(asked.target.server.id, session));
            if with_heartbeats(client, visit, settled).await.is_err() {
                return gone(visit);
            }
        }
        let began = Instant::now();
        let may_repeat = message.asked.is_idempotent();
        let answer = pin!(self.ask_server(asked, &ready.endpoint, &ready.call, may_repeat));
        let answer = with_heartbeats(client, visit, answer).await;
        note_sent(visit, &ready.call);
        let Ok(answer) = answer else { return gone(visit) };
        visit.routing.upstream = began.elapsed();
        let answer = match answer {
            Ok(answer) => answer,
            Err(failure) => return self.tell_failure(client, visit, id, &failure).await,
        };
        match (answer, id) {
            (ServerAnswer::Accepted(upstream), _) => {
                upstream.release();
                write_whole(client, visit, [202, 202], &[], Bytes::new()).await
            }
            // Some servers say more than they must to what is no request.
            (ServerAnswer::Json(_) | ServerAnswer::Events(_), None) => {
                write_whole(client, visit, [202, 202], &[], Bytes::new()).await
            }
            (ServerAnswer::Json(upstream), Some(id)) => {
                let more = match self.given_session(asked, message, &upstream) {
                    Ok(more) => more,
                    Err(failure) => return self.tell_failure(client, visit, Some(id), &failure).await,
                };
                let read = pin!(self.read_whole(asked, upstream, longest(&message.asked)));
                let Ok(read) = with_heartbeats(client, visit, read).await else { return gone(visit) };
                let passed = match read {
                    Ok(body) => self.pass_body(visit, asked, message, id, body).await,
                    Err(failure) => Err(failure),
                };
                match passed {
                    Ok((body, outcome)) => {
                        let logged = noted(visit, outcome);
                        write_whole(client, visit, [200, logged], &more, body).await
                    }
                    Err(failure) => self.tell_failure(client, visit, Some(id), &failure).await,
                }
            }
            (ServerAnswer::Events(upstream), Some(id)) => match self.given_session(asked, message, &upstream) {
                Ok(more) => {
                    if message.asked == Asked::Listen {
                        visit.answer.pulse = Heartbeats { every: Some(HEARTBEAT), has_begun: true };
                    }
                    let pass = EventPass::for_answer(message, id);
                    self.pass_events(client, visit, asked, upstream, pass, &more).await
                }
                Err(failure) => self.tell_failure(client, visit, Some(id), &failure).await,
            },
        }
    }

    /// Everything that may stand against a message, and what is to be sent if nothing does. Calls are logged from here on,
    /// and nothing else is.
    pub(super) async fn prepare_message(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
        message: &ClientMessage,
        mirrored: Mirrored,
    ) -> Result<ReadyCall, CallFailure> {
        match message.asked.call().filter(|_| message.id.is_some()) {
            None => visit.observer.log = None,
            Some(name) => {
                if let Some(log) = &mut visit.observer.log {
                    log.received(&message.bytes);
                    log.turn_to_service(SERVICE, &log_name(&asked.target.server.slug, name));
                }
            }
        }
        asked.target.visible.judge(&message.asked).map_err(CallFailure::unknown)?;
        let mut body = message.bytes.clone();
        if let Some(name) = message.asked.call() {
            if message.id.is_none() {
                return Err(CallFailure::malformed(Fault::new(INVALID_REQUEST, "a call needs an id")));
            }
            self.admit_call(visit, asked, name).await?;
        }
        if let Some(changed) = self.guard_sent(visit, asked, message).await? {
            body = changed;
        }
        let endpoint = self.endpoint(asked)?;
        let own = self.mcp_headers(client.head(), asked).await?;
        let idle = if message.asked == Asked::Listen { self.stream_idle } else { self.call_timeout };
        let mut call = UpstreamCall::new(Method::POST, &client.head().headers, session, &own, body)
            .within(self.call_timeout, idle);
        if mirrored != Mirrored::default() {
            let method = mirrored.method.then_some(message.method.as_str());
            call = call.mirroring(method, message.asked.call().filter(|_| mirrored.name));
        }
        if let Some(log) = &mut visit.observer.log {
            log.sends_to_service(endpoint.authority(), endpoint.path(), call.headers());
        }
        Ok(ReadyCall { endpoint, call })
    }

    /// An answer that came whole, as the client may have it, and what became of its request.
    pub(super) async fn pass_body(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        message: &ClientMessage,
        id: &str,
        body: Bytes,
    ) -> Result<(Bytes, Outcome), CallFailure> {
        let pass = EventPass::for_answer(message, id);
        let (looked, outcome) = self.look_at_data(visit, asked, &pass, &body).await?;
        match (looked, outcome) {
            (_, Outcome::NotYet) | (Looked::Withheld, _) => {
                Err(CallFailure::unusable("it is no answer to the request"))
            }
            (Looked::Same, outcome) => Ok((body, outcome)),
            (Looked::Changed(body), outcome) => Ok((body, outcome)),
        }
    }

    /// The id of a session that the server opens, as the client gets it.
    fn given_session(
        &self,
        asked: &McpRequest,
        message: &ClientMessage,
        upstream: &Upstream,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, CallFailure> {
        let given = upstream.head().headers.get(&SESSION_ID).filter(|_| message.asked == Asked::Initialize);
        let Some(given) = given else { return Ok(Vec::new()) };
        match self.sessions.seal(&asked.owner(), given.as_bytes()) {
            Some(sealed) => Ok(vec![(SESSION_ID.clone(), sealed)]),
            None => {
                let message = "the session cannot be kept: its id is too long, or the gateway has no master key";
                Err(CallFailure::upstream(message, 502, RefusalCode::InternalError))
            }
        }
    }
}

fn longest(asked: &Asked) -> usize {
    if matches!(asked, Asked::List(_)) { MAX_LIST } else { MAX_ANSWER }
}

fn may_batch(headers: &HeaderMap) -> Result<bool, Fault> {
    let Some(revision) = headers.get(&PROTOCOL_VERSION) else { return Ok(true) };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'.';
    if revision.len() > MAX_REVISION || !revision.as_bytes().iter().copied().all(is_plain) {
        return Err(Fault::new(INVALID_REQUEST, "mcp-protocol-version names no revision"));
    }
    Ok(revision.as_bytes() == BATCHING)
}
