//! Pingora's callbacks, and nothing else: each gathers what a stage needs, calls it and acts on the result. The only
//! file that knows `ProxyHttp`; it lives in the binary so that an edit elsewhere does not recompile Pingora's generics.
//!
//! `open` chooses the capability that serves a request, `serve` assembles the process.
//!
//! Retries: the engine lane has its own loop. That of the relay lane is in `to_provider`.

pub(crate) mod access_log;
mod admin_addresses;
pub(crate) mod capabilities;
mod client;
pub(crate) mod client_connection;
pub(crate) mod client_connection_app;
pub(crate) mod control_plane;
mod deadline;
pub(crate) mod fresh_connections;
pub(crate) mod idle_timeout;
mod next_step;
mod open;
mod pages;
pub mod serve;
pub mod tasks;
pub(crate) mod ticks;
mod to_provider;
mod walk;
mod websocket;
pub(crate) mod write_stall;

use crate::gateway::access_log::AccessLog;
use crate::gateway::capabilities::Capabilities;
use crate::gateway::client_connection::ClientConnection;
use crate::gateway::control_plane::ControlPlane;
use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt as _;
use http::{StatusCode, Version, header};
use pingora_core::modules::http::HttpModules;
use pingora_core::upstreams::peer::HttpPeer;
use pingora_core::{Error, ErrorSource, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session};
use proxy::catalog::target::Target;
use proxy::context::Visit;
use proxy::context::metrics::{Outcome, RequestLane};
use proxy::engine::Services;
use proxy::relay::Passage;
use proxy::relay::head_edits;
use proxy::request::realtime::Websocket;
use proxy::request::refusal::Refusal;
use shared::headers::client_ip::client_ip;
use std::borrow::Cow;
use std::net::IpAddr;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After we answered without reading a body, this long is spent on reading it away, so that the client sees the
/// answer and the connection can be used again.
const DRAIN: Duration = Duration::from_secs(5);

/// How long a client may take to hear that its websocket is over.
const MAX_CLOSE_WAIT: Duration = Duration::from_secs(2);

#[derive(Clone)]
pub struct Gateway {
    pub services: Services,
    pub capabilities: Arc<Capabilities>,
    pub control_plane: Arc<ControlPlane>,
    /// For an HTTP/2 client to take a piece of its answer: its window may be shut while its connection is not.
    pub write_timeout: Duration,
    /// Says why the process should get no traffic, if it should not; None where only the metrics port is asked.
    pub readiness: Option<Readiness>,
    pub access_log: Option<AccessLog>,
}

/// Whether the process should get traffic, or why not; either in words.
pub type Readiness = Arc<dyn Fn() -> Result<Cow<'static, str>, Cow<'static, str>> + Send + Sync>;

pub struct Ctx {
    visit: Visit,
    relay: Option<Relay>,
    /// Counted by its lane.
    is_counted: bool,
    /// When the relay lane turned to its upstream.
    asked: Option<Instant>,
    /// A refusal that a callback without a way to answer leaves for `fail_to_proxy`.
    refusal: Option<Refusal>,
}

/// Where Pingora takes a request natively.
enum Relay {
    Provider(Box<Passage>),
    ControlPlane,
}

impl Relay {
    fn passage(&self) -> Option<&Passage> {
        match self {
            Self::Provider(passage) => Some(passage),
            Self::ControlPlane => None,
        }
    }

    fn target(&self) -> Option<&Target> {
        self.passage().map(|passage| &passage.target)
    }
}

impl Gateway {
    /// Counts a request by its lane, once.
    fn count(&self, ctx: &mut Ctx, lane: RequestLane) {
        if !std::mem::replace(&mut ctx.is_counted, true) {
            self.services.metrics.begun(lane);
        }
    }

    /// To those who read along: a request is over.
    fn tell(&self, head: &RequestHeader, peer: Option<IpAddr>, visit: &mut Visit, error: Option<&Error>) {
        tracing::debug!(
            request_id = visit.id(),
            status = visit.answer.status,
            took_ms = visit.request.started.elapsed().as_millis() as u64,
            error = error.map(tracing::field::display),
            "answered"
        );
        if let Some(access_log) = &self.access_log {
            let trusted = &self.services.authenticator.trusted_proxies;
            access_log.note(head, peer.map(|peer| client_ip(peer, &head.headers, trusted)), visit);
        }
    }
}

#[async_trait]
impl ProxyHttp for Gateway {
    /// In a box: Pingora moves it with its own state several times for every request.
    type CTX = Box<Ctx>;

    fn new_ctx(&self) -> Box<Ctx> {
        Box::new(Ctx { visit: Visit::begin(), relay: None, is_counted: false, asked: None, refusal: None })
    }

    /// No modules: the default one would compress, and hold event streams back in its encoder.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn request_filter(&self, session: &mut Session, ctx: &mut Self::CTX) -> Result<bool> {
        let client = &mut session.downstream_session;
        client.set_total_drain_timeout(Some(DRAIN));
        // Off by default; a request that came early would then end the one before it.
        client.set_pipelining_enabled(true);
        // Pingora itself waits for ever between requests, and for an answer to be read: `ClientConnection` does not.
        ClientConnection::begins(client.stream());
        if client.is_http2() {
            client.set_write_timeout(Some(self.write_timeout));
        }
        // A body we did not read is read away after the answer: closing at once would reset the connection and could
        // take the answer with it. A client that waits for permission to send its body gets none.
        let waits = client.req_header().headers.contains_key(header::EXPECT);
        client.set_close_on_response_before_downstream_finish(waits);
        ctx.visit.request.is_from_browser = client.req_header().headers.contains_key(header::ORIGIN);
        // Pinned where it stands, as what it waits for is: handed on, its state would be copied for every request.
        let walk = AssertUnwindSafe(pin!(self.walk(session, ctx))).catch_unwind().await;
        match walk {
            Ok(handled) => handled,
            Err(_) => {
                self.services.metrics.panics.inc();
                self.count(ctx, RequestLane::Refused);
                self.refuse(session, ctx, &Refusal::internal()).await
            }
        }
    }

    async fn upstream_peer(&self, session: &mut Session, ctx: &mut Self::CTX) -> Result<Box<HttpPeer>> {
        let found = match &mut ctx.relay {
            Some(Relay::Provider(passage)) => self.provider_peer(session, passage, &mut ctx.visit).await,
            Some(Relay::ControlPlane) => self.control_plane.peer().ok_or_else(Refusal::control_plane_unavailable),
            None => Err(Refusal::internal()),
        };
        // A wait for its turn is the gateway's own time.
        ctx.asked.get_or_insert_with(Instant::now);
        found.map(Box::new).map_err(|refusal| {
            ctx.refusal = Some(refusal);
            Error::new(ErrorType::InternalError)
        })
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        head: &mut RequestHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        let aliases = &self.services.aliases;
        let edited = match &mut ctx.relay {
            Some(Relay::Provider(passage)) => passage.send_head(head, aliases, &self.services.calls.signing).await,
            Some(Relay::ControlPlane) => {
                let client = session.client_addr().and_then(|address| address.as_inet()).map(|address| address.ip());
                let trusted = &self.services.authenticator.trusted_proxies;
                head_edits::towards_admin(head, client, trusted, &ctx.visit.request.id_header(), aliases)
            }
            None => Err(Refusal::internal()),
        };
        edited.map_err(|refusal| {
            ctx.refusal = Some(refusal);
            Error::new(ErrorType::InternalError)
        })?;
        if let (Some(Relay::Provider(passage)), Some(log)) = (&ctx.relay, &mut ctx.visit.observer.log) {
            log.sends_on(head, &passage.target);
        }
        Ok(())
    }

    /// That a piece is missing means nothing here.
    async fn request_body_filter(
        &self,
        session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        if ctx.visit.answer.websocket.is_some() {
            let piece = body.as_deref().unwrap_or_default();
            return self.client_says(session.req_header(), piece, end_of_stream, ctx).await;
        }
        if let Some(Relay::Provider(passage)) = &mut ctx.relay {
            passage.rejoin(body);
        }
        if let (Some(piece), Some(log)) = (&body, &mut ctx.visit.observer.log) {
            log.receives(piece);
        }
        let Some(Relay::Provider(passage)) = &mut ctx.relay else { return Ok(()) };
        if let Err(refusal) = passage.pass(body) {
            ctx.refusal = Some(refusal);
            return Err(Error::new(ErrorType::InternalError));
        }
        if let (true, Some(log)) = (end_of_stream, &mut ctx.visit.observer.log) {
            log.sent_whole();
        }
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        ctx: &mut Self::CTX,
    ) -> Result<()> {
        let visit = &mut ctx.visit;
        if head.status.is_informational() && head.status.as_u16() != 101 {
            // Once the provider lets the client send its body, the answer need not end the connection.
            session.downstream_session.set_close_on_response_before_downstream_finish(false);
            return Ok(());
        }
        visit.answer.status = head.status.as_u16();
        if head.status == StatusCode::SWITCHING_PROTOCOLS {
            head.remove_header(&header::SEC_WEBSOCKET_EXTENSIONS);
            let owner = self.capabilities.relay.session_memory(ctx.relay.as_ref().and_then(Relay::passage));
            visit.answer.websocket = Websocket::from_answer_head(&head.headers, owner);
        }
        visit.routing.upstream = ctx.asked.map_or(Duration::ZERO, |asked| asked.elapsed());
        // HTTP/1.0 knows no chunks: the end of the connection is the end of the answer.
        if session.req_header().version == Version::HTTP_10 && head.remove_header(&header::TRANSFER_ENCODING).is_some()
        {
            session.set_keepalive(None);
        }
        let lane = visit.observer.lane();
        self.services.metrics.first_byte(lane, visit.request.started.elapsed());
        if let Some(Relay::Provider(passage)) = &ctx.relay {
            let provider = passage.target.provider.number;
            self.services.metrics.attempt(provider, visit.answer.status, Outcome::Answered);
            if let Some(contention) = self.capabilities.relay.begin_relayed_answer(passage, head, visit) {
                ClientConnection::yield_under(session.downstream_session.stream(), contention);
            }
        }
        visit.answers_relayed(head, matches!(ctx.relay, Some(Relay::Provider(_))));
        if let (Some(Relay::Provider(passage)), true) = (&mut ctx.relay, visit.answer.websocket.is_some()) {
            passage.begin_session(visit);
        }
        Ok(())
    }

    /// Only looks: the bytes of a relayed answer are passed on as they are, and at most something is said after them.
    fn response_body_filter(
        &self,
        session: &mut Session,
        body: &mut Option<Bytes>,
        end_of_stream: bool,
        ctx: &mut Self::CTX,
    ) -> Result<Option<Duration>> {
        if ctx.visit.answer.websocket.is_none() {
            ctx.visit.relays(body.as_ref().unwrap_or(&Bytes::new()), end_of_stream);
        } else if self.provider_says(session.req_header(), body, end_of_stream, ctx) {
            // A client that does not answer the farewell is waited for no longer than one that asks for nothing.
            ClientConnection::ends(session.downstream_session.stream(), Instant::now(), false);
        }
        if let Some(limit) = deadline::for_write(&mut ctx.visit, self.write_timeout)? {
            session.downstream_session.set_write_timeout(Some(limit));
        }
        Ok(None)
    }

    fn fail_to_connect(
        &self,
        session: &mut Session,
        peer: &HttpPeer,
        ctx: &mut Self::CTX,
        mut error: Box<Error>,
    ) -> Box<Error> {
        self.turn_after_failed_connect(session, peer, ctx, &mut error);
        error
    }

    fn error_while_proxy(
        &self,
        peer: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        ctx: &mut Self::CTX,
        client_reused: bool,
    ) -> Box<Error> {
        if *error.esource() == ErrorSource::Upstream && session.response_written().is_none() {
            let target = ctx.relay.as_ref().and_then(Relay::target);
            ctx.refusal.get_or_insert_with(|| deadline::refusal(&ctx.visit, self.relay_refusal(target, &error)));
            if let (true, Some(log)) = (to_provider::is_unread(&error, client_reused), &mut ctx.visit.observer.log) {
                log.not_worked_on();
            }
        }
        let mut error = error.more_context(format!("peer: {peer}"));
        let is_repeatable = to_provider::is_repeatable(session, &error, client_reused);
        error.set_retry(is_repeatable);
        if let (true, Some(log)) = (is_repeatable, &mut ctx.visit.observer.log) {
            log.sends_again();
        }
        if let (Some(Relay::Provider(passage)), false, None) = (&ctx.relay, error.retry(), session.response_written()) {
            passage.answered(503);
        }
        error
    }

    async fn fail_to_proxy(&self, session: &mut Session, error: &Error, ctx: &mut Self::CTX) -> FailToProxy {
        // Some headers Pingora judges only when it builds the upstream's head; then the client is still there to be told.
        let is_bad_head = *error.etype() == ErrorType::InvalidHTTPHeader;
        let is_client = *error.esource() == ErrorSource::Downstream && !is_bad_head;
        if is_client || session.response_written().is_some() {
            if is_client {
                ctx.visit.answer.status = 499;
            } else if let (Some(Relay::Provider(passage)), None) = (&ctx.relay, &ctx.visit.answer.websocket) {
                // The client has had its status; that the body is cut is for the log.
                let cut = deadline::refusal(&ctx.visit, to_provider::failed_call(&passage.target, error));
                ctx.visit.answer.error_code.get_or_insert(cut.code);
            }
            let close = ctx.visit.answer.websocket.as_mut().filter(|_| !is_client).and_then(|websocket| {
                websocket.provider_ends();
                websocket.closing_frame()
            });
            if let Some(close) = close {
                let writing = session.downstream_session.write_response_body(close, true);
                let _ = tokio::time::timeout(MAX_CLOSE_WAIT, writing).await;
            }
            return FailToProxy { error_code: 0, can_reuse_downstream: false };
        }
        let refusal = match ctx.refusal.take() {
            Some(refusal) => refusal,
            None if *error.esource() == ErrorSource::Downstream => {
                Refusal::invalid_header("connection", "it names a header that cannot be dropped")
            }
            None => self.relay_refusal(ctx.relay.as_ref().and_then(Relay::target), error),
        };
        // Pingora closes the connection after a failed proxy loop whatever we return; the head must say so.
        session.set_keepalive(None);
        let _ = self.refuse(session, ctx, &refusal).await;
        FailToProxy { error_code: refusal.status, can_reuse_downstream: false }
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, ctx: &mut Self::CTX) {
        let visit = &mut ctx.visit;
        if visit.answer.status == 0 {
            visit.answer.status = session.response_written().map_or(499, |head| head.status.as_u16());
        }
        let peer = session.client_addr().and_then(|address| address.as_inet()).map(|address| address.ip());
        self.tell(session.req_header(), peer, visit, error);
        if let (Some(Relay::Provider(passage)), true) = (&mut ctx.relay, visit.answer.websocket.is_some()) {
            passage.end_session(visit);
        }
        let now = visit.settle(&self.services.metrics);
        let is_body_read = session.downstream_session.is_body_done();
        ClientConnection::ends(session.downstream_session.stream(), now, is_body_read);
        // With it goes its place among the calls under way.
        ctx.relay = None;
    }

    /// `fail_to_proxy` and the engine log what matters, with the request id and without the request.
    fn suppress_error_log(&self, _session: &Session, _ctx: &Self::CTX, _error: &Error) -> bool {
        true
    }

    /// Attempts are counted by how they ended.
    fn suppress_proxy_warn_log(&self, _: &Session, _: &Self::CTX, _: &Error, _: ProxyWarnLogContext) -> bool {
        true
    }
}
