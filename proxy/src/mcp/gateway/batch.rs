//! Batches, which one revision of the protocol has: each message is asked by itself, in their order, and the answers come as
//! events. So each call has its own limits and its own log, whatever it came with.

use super::McpGateway;
use super::McpRequest;
use super::answers::{CallFailure, gone, note_sent, noted, stream_head, write_whole};
use super::stream::{EventPass, event_of};
use super::upstream::ServerAnswer;
use crate::context::Visit;
use crate::context::metrics::Lane;
use crate::engine::Delivered;
use crate::engine::answer::with_heartbeats;
use crate::mcp::{ClientMessage, MAX_ANSWER, Mirrored, Outcome, fault_body};
use crate::net::dial::Upstream;
use crate::net::downstream::Downstream;
use crate::request::headers::GatewayHeaders;
use crate::wire::sse::Splitter;
use bytes::{Bytes, BytesMut};
use std::pin::pin;
use std::time::Instant;

impl McpGateway {
    pub(super) async fn batch(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
        messages: &[ClientMessage],
    ) -> Delivered {
        visit.observer.log = None;
        let has_requests = messages.iter().any(|message| message.id.is_some());
        if has_requests {
            let head = stream_head(visit, &[]);
            if client.write_head(head).await.is_err() {
                return gone(visit);
            }
        }
        for message in messages {
            let mut own = self.part_of(client, visit, asked);
            let answered = self.part(client, &mut own, asked, session, message).await;
            own.answer.status = if answered.is_ok() { 200 } else { 499 };
            own.settle(&self.metrics);
            let Ok(events) = answered else { return gone(visit) };
            if has_requests && client.write_body(events, false).await.is_err() {
                return gone(visit);
            }
        }
        if !has_requests {
            return write_whole(client, visit, [202, 202], &[], Bytes::new()).await;
        }
        match client.write_body(Bytes::new(), true).await {
            Ok(()) => Delivered::Answered,
            Err(_) => gone(visit),
        }
    }

    /// A message of a batch is a request of its own, in the trace of the batch.
    fn part_of(&self, client: &impl Downstream, visit: &mut Visit, asked: &McpRequest) -> Visit {
        let mut own = Visit::begin();
        own.request.trace_id = Some(visit.request.trace_id().clone());
        own.request.dialect = visit.request.dialect;
        own.request.workspace_id = visit.request.workspace_id;
        own.routing.config = visit.routing.config.clone();
        own.enter(Lane::Relay, &self.metrics);
        let head = client.head();
        if let Ok(headers) = GatewayHeaders::from_headers(&head.headers, &self.aliases)
            && self.recorder.open_log(&asked.caller, head, &headers, &mut own).is_ok()
            && let Some(log) = &mut own.observer.log
        {
            log.describe(&asked.metadata);
        }
        own
    }

    /// The events of one message; the error is that the client has left.
    async fn part(
        &self,
        client: &mut impl Downstream,
        own: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
        message: &ClientMessage,
    ) -> Result<Bytes, ()> {
        let answered = match self.prepare_message(client, own, asked, session, message, Mirrored::default()).await {
            Err(failure) => Err(failure),
            Ok(ready) => {
                let began = Instant::now();
                let may_repeat = message.asked.is_idempotent();
                let answer = pin!(self.ask_server(asked, &ready.endpoint, &ready.call, may_repeat));
                let answer = with_heartbeats(client, own, answer).await;
                note_sent(own, &ready.call);
                let answer = answer.map_err(drop)?;
                own.routing.upstream = began.elapsed();
                match (answer, message.id.as_deref()) {
                    (Err(failure), _) => Err(failure),
                    (Ok(_), None) => Ok(Bytes::new()),
                    (Ok(answer), Some(id)) => {
                        let mut unwatched = Visit::begin();
                        let events = pin!(self.part_events(own, asked, message, id, answer));
                        with_heartbeats(client, &mut unwatched, events).await.map_err(drop)?
                    }
                }
            }
        };
        Ok(match (answered, message.id.as_deref()) {
            (Ok(events), _) => events,
            (Err(_), None) => Bytes::new(),
            (Err(failure), Some(id)) => {
                own.answer.error_code = Some(failure.code);
                let event = event_of(&fault_body(Some(id), &failure.fault));
                own.answer.status = failure.status;
                own.ends_with(&event);
                event
            }
        })
    }

    async fn part_events(
        &self,
        own: &mut Visit,
        asked: &McpRequest,
        message: &ClientMessage,
        id: &str,
        answer: ServerAnswer,
    ) -> Result<Bytes, CallFailure> {
        match answer {
            ServerAnswer::Accepted(_) => Err(CallFailure::unusable("it does not answer the request")),
            ServerAnswer::Json(upstream) => {
                let body = self.read_whole(asked, upstream, MAX_ANSWER).await?;
                let (body, outcome) = self.pass_body(own, asked, message, id, body).await?;
                let event = event_of(&on_one_line(&body));
                note(own, outcome, &event);
                Ok(event)
            }
            ServerAnswer::Events(upstream) => self.gather_events(own, asked, message, id, upstream).await,
        }
    }

    /// All events until the answer, held together.
    async fn gather_events(
        &self,
        own: &mut Visit,
        asked: &McpRequest,
        message: &ClientMessage,
        id: &str,
        mut upstream: Upstream,
    ) -> Result<Bytes, CallFailure> {
        let mut pass = EventPass::for_answer(message, id);
        let mut splitter = Splitter::new(self.body_limits.owner(&asked.caller.workspace));
        let mut gathered = BytesMut::new();
        while !pass.is_answered_request() {
            let piece = upstream.read_body().await.map_err(|error| CallFailure::of_upstream(&error))?;
            let Some(piece) = piece else {
                return Err(CallFailure::unusable("its stream ended before the answer"));
            };
            let whole = splitter.push(piece).map_err(CallFailure::unheld)?;
            gathered.extend_from_slice(&self.look_at_events(own, asked, &mut pass, &whole).await?);
            if gathered.len() > MAX_ANSWER {
                return Err(CallFailure::unusable(format!("it has more than {MAX_ANSWER} bytes")));
            }
        }
        Ok(gathered.freeze())
    }
}

fn note(own: &mut Visit, outcome: Outcome, event: &[u8]) {
    own.answer.status = noted(own, outcome);
    own.ends_with(event);
}

/// JSON may be written over several lines; an event's data may not.
fn on_one_line(json: &Bytes) -> Bytes {
    if !json.contains(&b'\n') && !json.contains(&b'\r') {
        return json.clone();
    }
    // Outside of strings a line break is white space, and inside of them it is written otherwise.
    json.iter().map(|byte| if matches!(byte, b'\n' | b'\r') { b' ' } else { *byte }).collect::<Vec<u8>>().into()
}
