//! Event streams of servers, passed on event by event. Every message in them is looked at (`messages`): of the one that
//! answers the request the log is made, and what may not pass is left out.
//!
//! A stream that breaks off before its answer is ended with an error for the request's id, unless its events have ids: then
//! the client may ask for the rest.

use super::McpGateway;
use super::McpRequest;
use super::answers::{CallFailure, gone, noted, stream_head};
use super::messages::Looked;
use crate::context::Visit;
use crate::engine::Delivered;
use crate::engine::answer::with_heartbeats;
use crate::mcp::{Asked, ClientMessage, Outcome, fault_body};
use crate::net::dial::Upstream;
use crate::net::downstream::Downstream;
use crate::wire::sse::{Splitter, events, raw_events};
use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue};
use std::pin::pin;

/// What is looked for in the events of a stream.
pub(super) struct EventPass<'m> {
    /// The request that the stream answers, and its id; none for a stream that is only listened to.
    pub(super) answers: Option<(&'m ClientMessage, &'m str)>,
    /// Whether the client could ask for what it did not get.
    is_resumable: bool,
    is_answered: bool,
}

impl<'m> EventPass<'m> {
    pub fn for_answer(message: &'m ClientMessage, id: &'m str) -> Self {
        Self { answers: Some((message, id)), is_resumable: false, is_answered: false }
    }

    pub fn for_listener() -> Self {
        Self { answers: None, is_resumable: true, is_answered: true }
    }

    /// Whether the stream has no answer that ends it, only what the server sends of its own accord.
    pub fn is_listener(&self) -> bool {
        self.answers.is_none_or(|(message, _)| message.asked == Asked::Listen)
    }

    /// Whether it was opened by a request that has its answer now.
    pub fn is_answered_request(&self) -> bool {
        self.answers.is_some() && self.is_answered
    }

    /// The request that has no answer yet, and its id.
    pub fn awaited(&self) -> Option<(&'m ClientMessage, &'m str)> {
        self.answers.filter(|_| !self.is_answered)
    }
}

impl McpGateway {
    /// From the head of a stream to its end.
    pub(super) async fn pass_events(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        mut upstream: Upstream,
        mut pass: EventPass<'_>,
        more: &[(HeaderName, HeaderValue)],
    ) -> Delivered {
        let head = stream_head(visit, more);
        if client.write_head(head).await.is_err() {
            return gone(visit);
        }
        let ended = self.pass_pieces(client, visit, asked, &mut upstream, &mut pass).await;
        let last = match ended {
            Err(Stop::Gone) => return gone(visit),
            Ok(rest) => rest,
            Err(Stop::Revoked) => self.failed_event(visit, &mut pass, &CallFailure::listening_ended()),
            Err(Stop::Broken(_)) if pass.is_resumable => Bytes::new(),
            Err(Stop::Failed(failure) | Stop::Broken(failure)) => self.failed_event(visit, &mut pass, &failure),
        };
        // The server ended it without an answer, and nobody could ask for it.
        let last = match pass.is_answered || pass.is_resumable {
            true => last,
            false => {
                let failure = CallFailure::unusable("its stream ended before the answer");
                [last, self.failed_event(visit, &mut pass, &failure)].concat().into()
            }
        };
        visit.ends_with(&last);
        match client.write_body(last, true).await {
            Ok(()) => {
                upstream.release();
                Delivered::Answered
            }
            Err(_) => gone(visit),
        }
    }

    /// Whole events as they come. What is left at the end of the stream is not written yet.
    async fn pass_pieces(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        upstream: &mut Upstream,
        pass: &mut EventPass<'_>,
    ) -> Result<Bytes, Stop> {
        let mut splitter = Splitter::new(self.body_limits.owner(&asked.caller.workspace));
        let mut revoked = pin!(self.until_revoked(asked, pass.is_listener()));
        loop {
            let read = pin!(async {
                tokio::select! {
                    biased;
                    () = &mut revoked => None,
                    piece = upstream.read_body() => Some(piece),
                }
            });
            let piece = with_heartbeats(client, visit, read).await.map_err(|_| Stop::Gone)?;
            let piece = match piece.ok_or(Stop::Revoked)? {
                Ok(Some(piece)) => piece,
                // An event that lacks its end was never whole.
                Ok(None) => return Ok(Bytes::new()),
                Err(_) if pass.is_answered => return Ok(Bytes::new()),
                Err(error) => return Err(Stop::Broken(CallFailure::of_upstream(&error))),
            };
            let whole = splitter.push(piece).map_err(|why| Stop::Failed(CallFailure::unheld(why)))?;
            if whole.is_empty() {
                continue;
            }
            let passed = self.look_at_events(visit, asked, pass, &whole).await.map_err(Stop::Failed)?;
            if passed.is_empty() {
                continue;
            }
            if let Some(log) = &mut visit.observer.log {
                log.tells(&passed);
            }
            client.write_body(passed, false).await.map_err(|_| Stop::Gone)?;
        }
    }

    pub(super) async fn look_at_events(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        pass: &mut EventPass<'_>,
        whole: &Bytes,
    ) -> Result<Bytes, CallFailure> {
        let mut passed = BytesMut::with_capacity(whole.len());
        for raw in raw_events(whole) {
            pass.is_resumable |= raw.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"id:"));
            let event = events(&raw).next();
            let Some(event) = event.filter(|event| !event.data.is_empty()) else {
                passed.extend_from_slice(&raw);
                continue;
            };
            // Clients of the protocol read no others.
            if !matches!(event.name.as_deref(), None | Some("" | "message")) {
                continue;
            }
            let (looked, outcome) = self.look_at_data(visit, asked, pass, &event.data).await?;
            match looked {
                Looked::Same => passed.extend_from_slice(&raw),
                Looked::Changed(data) => passed.extend_from_slice(&with_data(&raw, &data)),
                Looked::Withheld => {}
            }
            if outcome != Outcome::NotYet {
                pass.is_answered = true;
                note(visit, outcome, &passed);
            }
        }
        Ok(passed.freeze())
    }

    /// An event that takes the place of the answer. It is what the log learns, too.
    pub(super) fn failed_event(&self, visit: &mut Visit, pass: &mut EventPass<'_>, failure: &CallFailure) -> Bytes {
        let Some((_, id)) = pass.awaited() else { return Bytes::new() };
        pass.is_answered = true;
        self.metrics.refused(failure.code);
        visit.answer.error_code = Some(failure.code);
        let event = event_of(&fault_body(Some(id), &failure.fault));
        visit.answer.status = failure.status;
        visit.ends_with(&event);
        visit.answer.status = 200;
        event
    }
}

/// Why no more events come.
enum Stop {
    Gone,
    /// A stream that is only listened to must end: the process leaves, or its caller may not listen any more.
    Revoked,
    /// What came cannot be passed on.
    Failed(CallFailure),
    /// The server fell silent, or its connection broke.
    Broken(CallFailure),
}

/// The call is noted with its answer, before that leaves.
fn note(visit: &mut Visit, outcome: Outcome, passed: &[u8]) {
    visit.answer.status = noted(visit, outcome);
    visit.ends_with(passed);
    visit.answer.status = 200;
}

/// A message as an event.
pub(super) fn event_of(message: &[u8]) -> Bytes {
    Bytes::from([b"event: message\ndata: ", message, b"\n\n"].concat())
}

/// An event with other data: its name and its id stay.
fn with_data(raw: &[u8], data: &[u8]) -> Bytes {
    let mut event = BytesMut::with_capacity(raw.len());
    for line in raw.split(|byte| matches!(byte, b'\n' | b'\r')) {
        if !line.is_empty() && !line.starts_with(b"data") {
            event.extend_from_slice(line);
            event.extend_from_slice(b"\n");
        }
    }
    event.extend_from_slice(b"data: ");
    event.extend_from_slice(data);
    event.extend_from_slice(b"\n\n");
    event.freeze()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_with_other_data_keeps_its_id_and_name() {
        let raw = b"id: 7\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\n";
        assert_eq!(&with_data(raw, b"{}")[..], b"id: 7\nevent: message\ndata: {}\n\n");
        assert_eq!(&with_data(b"data: x\n\n", b"{}")[..], b"data: {}\n\n");
    }
}
