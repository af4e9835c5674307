//! Clients of Streamable HTTP at servers of the older transport, where a GET opens the session and everything that the server
//! says comes over it. The first message of a client opens it, and a task reads it until either side ends it.

use super::McpGateway;
use super::McpRequest;
use super::answers::{CallFailure, HEARTBEAT, gone, note_sent, stream_head, write_whole};
use super::stream::{EventPass, event_of};
use super::upstream::ServerAnswer;
use crate::context::{Heartbeats, Visit};
use crate::engine::Delivered;
use crate::engine::answer::with_heartbeats;
use crate::mcp::{
    Asked, Bridge, ClientMessage, Fault, HeldMessage, HeldSession, INVALID_REQUEST, McpEndpoint, Mirrored, SESSION_ID,
    UpstreamCall,
};
use crate::net::dial::Upstream;
use crate::net::downstream::Downstream;
use crate::request::refusal::{Refusal, RefusalCode};
use crate::wire::sse::{Splitter, events};
use bytes::Bytes;
use chrono::Utc;
use http::{HeaderMap, HeaderValue, Method, header};
use pingora_http::RequestHeader;
use shared::telemetry::LogLimit;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long a server may take to say where messages are sent to.
const OPENING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_secs(60);

impl McpGateway {
    pub(super) async fn run_bridged(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        session: Option<&[u8]>,
    ) -> Delivered {
        let bridge = match session.map(|id| self.bridges.find(id, Utc::now())) {
            None => None,
            Some(HeldSession::Here(bridge)) => Some(bridge),
            Some(held) => {
                let failure =
                    if held == HeldSession::Elsewhere { held_elsewhere() } else { CallFailure::unknown_session() };
                visit.observer.log = None;
                return self.tell_failure(client, visit, None, &failure).await;
            }
        };
        let method = client.head().method.clone();
        match (method, bridge) {
            (Method::POST, bridge) => self.post_bridged(client, visit, asked, bridge).await,
            (Method::GET, Some(bridge)) => {
                visit.observer.log = None;
                visit.answer.pulse = Heartbeats { every: Some(HEARTBEAT), has_begun: true };
                let heard = bridge.listen();
                self.pass_heard(client, visit, asked, heard, EventPass::for_listener(), None, self.stream_idle).await
            }
            (Method::DELETE, Some(bridge)) => {
                visit.observer.log = None;
                self.bridges.close(&bridge);
                write_whole(client, visit, [200, 200], &[], Bytes::new()).await
            }
            (_, _) => {
                visit.observer.log = None;
                self.tell_failure(client, visit, None, &no_session()).await
            }
        }
    }

    async fn post_bridged(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        bridge: Option<Arc<Bridge>>,
    ) -> Delivered {
        let received = match self.receive_message(client, visit, asked.caller.tenant()).await {
            Ok(received) => received,
            Err(delivered) => return delivered,
        };
        let message = &received.content;
        let ready = match self.prepare_message(client, visit, asked, None, message, Mirrored::default()).await {
            Ok(ready) => ready,
            Err(failure) => return self.tell_failure(client, visit, message.id.as_deref(), &failure).await,
        };
        let opened = match bridge {
            Some(bridge) => Ok((bridge, None)),
            None if message.asked != Asked::Initialize => Err(no_session()),
            None => {
                let head = client.head().clone();
                let opened = pin!(self.open_bridge(&head, asked));
                let Ok(opened) = with_heartbeats(client, visit, opened).await else { return gone(visit) };
                opened.and_then(|bridge| match self.sessions.seal(&asked.owner(), &self.bridges.session_id(&bridge)) {
                    Some(given) => Ok((bridge, Some(given))),
                    None => {
                        self.bridges.close(&bridge);
                        let message = "the session cannot be kept: the gateway has no master key";
                        Err(CallFailure::upstream(message, 502, RefusalCode::InternalError))
                    }
                })
            }
        };
        let (sent, given) = match opened {
            Err(failure) => (Err(failure), None),
            Ok((bridge, given)) => {
                let sending = pin!(self.send_bridged(asked, &bridge, &ready.call, message));
                let sent = with_heartbeats(client, visit, sending).await;
                note_sent(visit, &ready.call);
                let Ok(sent) = sent else { return gone(visit) };
                (sent, given)
            }
        };
        match (sent, message.id.as_deref()) {
            (Err(failure), id) => self.tell_failure(client, visit, id, &failure).await,
            (Ok(Some(heard)), Some(id)) => {
                let pass = EventPass::for_answer(message, id);
                self.pass_heard(client, visit, asked, heard, pass, given, self.call_timeout).await
            }
            (Ok(_), _) => write_whole(client, visit, [202, 202], &[], Bytes::new()).await,
        }
    }

    /// Opens the connection that is the session, and a task that reads it.
    async fn open_bridge(&self, head: &RequestHeader, asked: &McpRequest) -> Result<Arc<Bridge>, CallFailure> {
        let endpoint = self.endpoint(asked)?;
        let own = self.mcp_headers(head, asked).await?;
        let mut accepting = HeaderMap::new();
        accepting.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let call =
            UpstreamCall::new(Method::GET, &accepting, None, &own, Bytes::new()).within(OPENING, self.stream_idle);
        let ServerAnswer::Events(mut upstream) = self.ask_server(asked, &endpoint, &call, true).await? else {
            return Err(CallFailure::unusable("it opens no stream, as this transport does"));
        };
        let mut splitter = Splitter::new(self.body_limits.owner(&asked.caller.workspace));
        let place = tokio::time::timeout(OPENING, first_event(&mut upstream, &mut splitter)).await;
        let place =
            place.unwrap_or_else(|_| Err(CallFailure::unusable("it does not say where messages are sent to")))?;
        let place = self.bridge_endpoint(asked, &place)?;
        let bridge = self.bridges.open(asked.caller.tenant(), place).ok_or_else(|| {
            let message = "too many sessions with servers of the older transport are open";
            CallFailure::upstream(message, 503, RefusalCode::Overloaded)
        })?;
        let (bridges, held, idle) = (self.bridges.clone(), bridge.clone(), self.stream_idle);
        tokio::spawn(async move {
            tokio::select! {
                () = read_bridge(upstream, splitter, &held) => {}
                () = held.ended.notified() => {}
                () = until_idle(&held, idle) => {}
            }
            bridges.close(&held);
        });
        Ok(bridge)
    }

    /// Messages go to the same host: a server could otherwise have credentials sent elsewhere.
    fn bridge_endpoint(&self, asked: &McpRequest, place: &str) -> Result<McpEndpoint, CallFailure> {
        let base = url::Url::parse(&asked.target.integration.url).ok();
        let joined = base.as_ref().and_then(|base| base.join(place).ok());
        let joined = joined.filter(|joined| base.is_some_and(|base| base.origin() == joined.origin()));
        let joined = joined.ok_or_else(|| CallFailure::unusable("it wants messages to be sent to another host"))?;
        McpEndpoint::parse(&self.router.dialer, joined.as_str()).map_err(CallFailure::unusable)
    }

    /// Sends a message; what hears the answer, where it has one.
    async fn send_bridged(
        &self,
        asked: &McpRequest,
        bridge: &Bridge,
        call: &UpstreamCall,
        message: &ClientMessage,
    ) -> Result<Option<mpsc::Receiver<HeldMessage>>, CallFailure> {
        let heard = match &message.id {
            None => None,
            Some(id) => Some(bridge.await_answer(id).ok_or_else(|| {
                CallFailure::unknown(Fault::new(INVALID_REQUEST, "a request of this id, or too many, wait for answers"))
            })?),
        };
        self.ask_server(asked, &bridge.endpoint, call, false).await?;
        Ok(heard)
    }

    /// What comes over the session for this client, as events.
    #[expect(clippy::too_many_arguments, reason = "a stream, what is looked for in it, and how it begins and ends")]
    async fn pass_heard(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &McpRequest,
        mut heard: mpsc::Receiver<HeldMessage>,
        mut pass: EventPass<'_>,
        given: Option<HeaderValue>,
        patience: Duration,
    ) -> Delivered {
        let more: Vec<_> = given.map(|id| (SESSION_ID.clone(), id)).into_iter().collect();
        let head = stream_head(visit, &more);
        if client.write_head(head).await.is_err() {
            return gone(visit);
        }
        let mut revoked = pin!(self.until_revoked(asked, pass.is_listener()));
        loop {
            let next = pin!(async {
                tokio::select! {
                    biased;
                    () = &mut revoked => None,
                    next = tokio::time::timeout(patience, heard.recv()) => Some(next),
                }
            });
            let Ok(next) = with_heartbeats(client, visit, next).await else { return gone(visit) };
            // Held until it is written.
            let looked = match &next {
                None => Err(CallFailure::listening_ended()),
                Some(Ok(Some(message))) => {
                    self.look_at_events(visit, asked, &mut pass, &event_of(&message.bytes)).await
                }
                Some(Ok(None)) => Err(CallFailure::unusable("its session ended before the answer")),
                Some(Err(_)) => {
                    Err(CallFailure::upstream("the MCP server took too long", 504, RefusalCode::GatewayTimeout))
                }
            };
            let (events, is_last) = match looked {
                Ok(events) => (events, pass.is_answered_request()),
                Err(failure) => (self.failed_event(visit, &mut pass, &failure), true),
            };
            if events.is_empty() && !is_last {
                continue;
            }
            if client.write_body(events, is_last).await.is_err() {
                return gone(visit);
            }
            if is_last {
                return Delivered::Answered;
            }
        }
    }
}

fn held_elsewhere() -> CallFailure {
    static ELSEWHERE: LogLimit = LogLimit::new();
    if let Some(skipped) = ELSEWHERE.pass() {
        tracing::warn!(
            skipped,
            "an MCP session with transport sse is held by another proxy: the balancer must be sticky"
        );
    }
    CallFailure::session_elsewhere()
}

fn no_session() -> CallFailure {
    let refusal = Refusal::invalid_header("mcp-session-id", "this server's sessions begin with initialize");
    CallFailure { http: Some(400), ..CallFailure::refused(refusal) }
}

/// The address that a server names first.
async fn first_event(upstream: &mut Upstream, splitter: &mut Splitter) -> Result<String, CallFailure> {
    const MAX_ADDRESS_EVENT: usize = 64 << 10;
    let mut length = 0;
    loop {
        let piece = upstream.read_body().await.map_err(|error| CallFailure::of_upstream(&error))?;
        let Some(piece) = piece else { return Err(CallFailure::unusable("it ends its stream at once")) };
        length += piece.len();
        let whole = splitter.push(piece).map_err(CallFailure::unheld)?;
        let mut named = events(&whole).filter(|event| event.name.as_deref() == Some("endpoint"));
        if let Some(event) = named.next() {
            return Ok(String::from_utf8_lossy(&event.data).into_owned());
        }
        if length > MAX_ADDRESS_EVENT {
            return Err(CallFailure::unusable("it does not say where messages are sent to"));
        }
    }
}

async fn read_bridge(mut upstream: Upstream, mut splitter: Splitter, bridge: &Bridge) {
    let Some(mut unfinished) = bridge.memory.hold(0) else { return };
    let mut length = 0;
    while let Ok(Some(piece)) = upstream.read_body().await {
        length += piece.len();
        let Ok(whole) = splitter.push(piece) else { return };
        length = length.saturating_sub(whole.len());
        if !unfinished.resize(length) {
            return;
        }
        for event in events(&whole).filter(|event| matches!(event.name.as_deref(), None | Some("message"))) {
            bridge.dispatch(&Bytes::copy_from_slice(&event.data));
        }
    }
}

async fn until_idle(bridge: &Bridge, most: Duration) {
    while !bridge.is_idle(most) {
        tokio::time::sleep(LOOK.min(most)).await;
    }
}
