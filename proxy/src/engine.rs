//! The request's walk: what each stage decides, in order, for both lanes. Knows no socket of the client's: that side
//! is a `Downstream`.

use crate::deployment::Identity;
use crate::dial::{Class, DialError, Dialer, Upstream, UpstreamError};
use crate::downstream::Downstream;
use crate::headers::{Aliases, GatewayHeaders};
use crate::hosts::Hosts;
use crate::metrics::{Lane, Metrics, Outcome};
use crate::providers::Providers;
use crate::refusal::Refusal;
use crate::snapshot::Snapshot;
use crate::stages::answer::{self, Ended, Failure};
use crate::stages::classify::{Endpoint, Route, classify, dialect};
use crate::stages::identify::{Identified, Principal, identify};
use crate::stages::plan::{Target, plan};
use crate::stages::prepare::upstream_head;
use crate::stages::receive::{BodyMemory, Bounds, NotReceived, check_content_type, peek, receive};
use crate::stages::trace::{check_metadata, trace_id};
use crate::tokens::trail::Failure as TokenFailure;
use crate::tokens::{Refused, Tokens};
use crate::visit::Visit;
use crate::within::within;
use bytes::Bytes;
use chrono::Utc;
use http::HeaderValue;
use ipnet::IpNet;
use pingora_http::RequestHeader;
use shared::client_ip::client_ip;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Heads beyond this are refused with 431. Pingora itself gives up at 1 MiB or 256 headers.
const MAX_HEAD: usize = 64 << 10;

pub struct Engine {
    pub snapshot: Arc<Snapshot>,
    pub dialer: Arc<Dialer>,
    pub providers: Providers,
    /// Which deployment this proxy is, if it says so.
    pub deployment: Option<Identity>,
    pub hosts: Hosts,
    pub metrics: Arc<Metrics>,
    pub aliases: Aliases,
    pub tokens: Tokens,
    /// Peers whose word about the client's address is taken.
    pub trusted_proxies: Vec<IpNet>,
    pub body_memory: Arc<BodyMemory>,
    pub bounds: Limits,
}

/// The settings the walk needs.
#[derive(Debug, Clone)]
pub struct Limits {
    pub max_body: usize,
    pub body_timeout: Duration,
    pub first_byte: Duration,
    pub stream_idle: Duration,
}

/// Where a request goes after its head was read.
#[derive(Debug)]
pub enum Next {
    Greeting,
    Preflight,
    ControlPlane,
    Engine { endpoint: Endpoint, target: Target },
    Relay { target: Target, path_and_query: String },
}

/// How an engine exchange left the client's connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Answered in full, by the provider or by us.
    Answered,
    /// Half an answer went out; the connection must be closed so that nobody takes it for whole.
    Torn,
    ClientGone,
}

impl Engine {
    /// Everything that is decided from the head alone.
    /// `peer` is the other end of the connection.
    pub async fn open(&self, head: &RequestHeader, peer: Option<IpAddr>, visit: &mut Visit) -> Result<Next, Refusal> {
        let path = head.uri.path();
        let route = classify(&head.method, path);
        visit.dialect = dialect(&route);
        visit.enter(lane(&route), &self.metrics);
        if head_size(head) > MAX_HEAD {
            return Err(Refusal::headers_too_large(MAX_HEAD));
        }
        let headers = GatewayHeaders::of(&head.headers, &self.aliases)?;
        visit.alias = headers.alias.clone();
        visit.trace_id = trace_id(&headers)?;
        match route {
            Route::Greeting => Ok(Next::Greeting),
            Route::Preflight => Ok(Next::Preflight),
            Route::ControlPlane => Ok(Next::ControlPlane),
            Route::NotFound => Err(Refusal::not_found()),
            Route::MethodNotAllowed => Err(Refusal::method_not_allowed(head.method.as_str())),
            Route::Engine(endpoint) => {
                let target = self.admit(head, peer, &headers, visit).await?;
                check_content_type(headers.content_type)?;
                match target.provider.row.native_path(endpoint.family()) {
                    Some(_) => Ok(Next::Engine { endpoint, target }),
                    None => relay(target, endpoint.path(), head),
                }
            }
            Route::Relay(path) => {
                let target = self.admit(head, peer, &headers, visit).await?;
                relay(target, path, head)
            }
        }
    }

    async fn admit(
        &self,
        head: &RequestHeader,
        peer: Option<IpAddr>,
        headers: &GatewayHeaders<'_>,
        visit: &mut Visit,
    ) -> Result<Target, Refusal> {
        let now = Utc::now();
        let principal: Principal = match identify(headers, &self.snapshot, now)? {
            Identified::Key(principal) => principal,
            Identified::Token { text, hash } => {
                // Boxed, or its state would be part of every request's.
                let identified = Box::pin(self.tokens.identify(text, hash, &self.snapshot, now)).await;
                identified.map_err(|refused| self.reject(refused, text, head, peer, visit))?
            }
        };
        if let Some(deployment) = &self.deployment {
            deployment.admit(&principal.workspace, &self.snapshot)?;
        }
        check_metadata(headers.metadata)?;
        let target = plan(headers, &self.providers, &self.hosts, &self.dialer, self.bounds.first_byte)?;
        visit.provider = HeaderValue::from_str(&target.provider.name).ok();
        Ok(target)
    }

    /// Tells the audit trail of the organisation, later and elsewhere, and the client at once.
    fn reject(
        &self,
        refused: Refused,
        text: &[u8],
        head: &RequestHeader,
        peer: Option<IpAddr>,
        visit: &Visit,
    ) -> Refusal {
        const LONGEST_PATH: usize = 2048;
        let refusal = Refusal::rejected_token(&refused.rejection);
        self.tokens.trail.note(TokenFailure {
            organisation_id: refused.organisation_id,
            rejection: refused.rejection,
            mask: shared::jwt::mask(&String::from_utf8_lossy(text)),
            method: head.method.as_str().to_owned(),
            path: head.uri.path().chars().take(LONGEST_PATH).collect(),
            request_id: visit.id().parse().ok(),
            client_ip: peer.map(|peer| client_ip(peer, &head.headers, &self.trusted_proxies)),
        });
        refusal
    }

    /// One exchange on the engine lane, from the body to the last byte of the answer.
    pub async fn run(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        endpoint: Endpoint,
        target: &Target,
    ) -> Delivered {
        match self.exchange(client, visit, endpoint, target).await {
            Ended::Complete => {
                self.metrics.attempt(Outcome::Answered);
                Delivered::Answered
            }
            Ended::BrokenOff(class) => {
                self.metrics.attempt(Outcome::Failed(class));
                Delivered::Answered
            }
            Ended::Torn(class) => {
                self.metrics.attempt(Outcome::Failed(class));
                Delivered::Torn
            }
            Ended::ClientGone => {
                self.metrics.attempt(Outcome::ClientLeft);
                visit.status = 499;
                Delivered::ClientGone
            }
            Ended::Failed(failure) => {
                if let Some(outcome) = failure.outcome {
                    self.metrics.attempt(outcome);
                }
                self.refuse(client, visit, &failure.refusal).await
            }
        }
    }

    /// Answers for the gateway itself, and counts why.
    pub async fn refuse(&self, client: &mut impl Downstream, visit: &mut Visit, refusal: &Refusal) -> Delivered {
        self.metrics.refused(refusal.code);
        tracing::debug!(request_id = visit.id(), code = refusal.code, status = refusal.status, "refused");
        match answer::refuse(client, visit, refusal).await {
            Ok(()) => Delivered::Answered,
            Err(_) => Delivered::ClientGone,
        }
    }

    async fn exchange(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        endpoint: Endpoint,
        target: &Target,
    ) -> Ended {
        let bounds =
            Bounds { max_bytes: self.bounds.max_body, timeout: self.bounds.body_timeout, memory: &self.body_memory };
        let body = match receive(client, &bounds).await {
            Ok(body) => body,
            Err(NotReceived::Gone) => return Ended::ClientGone,
            Err(NotReceived::Refused(refusal)) => return refused(refusal),
        };
        if let Err(refusal) = peek(&body.bytes) {
            return refused(refusal);
        }
        let asked = Instant::now();
        let deadline = asked + target.timeout;
        let mut called = self.call(client, endpoint, target, &body.bytes, deadline, false).await;
        if let Err(NotCalled::Stale) = called {
            // The provider had closed the held connection and never saw this request: sending it again is safe.
            self.metrics.pool_stale.inc();
            called = self.call(client, endpoint, target, &body.bytes, deadline, true).await;
        }
        visit.upstream = asked.elapsed();
        let mut upstream = match called {
            Ok(upstream) => upstream,
            Err(NotCalled::Ended(ended)) => return ended,
            Err(NotCalled::Stale) => return unreachable(target, Class::Reset, &"a new connection was closed at once"),
        };
        self.metrics.first_byte(Lane::Engine, visit.started.elapsed());
        self.metrics.overhead(visit.started.elapsed().saturating_sub(visit.upstream));
        let ended = match answer::hold(client, &mut upstream, visit).await {
            Ok(held) => answer::deliver(client, &mut upstream, held, visit).await,
            Err(ended) => ended,
        };
        upstream.release();
        ended
    }

    /// Sends the request and waits for the head of the answer, unless the client leaves first.
    async fn call(
        &self,
        client: &mut impl Downstream,
        endpoint: Endpoint,
        target: &Target,
        body: &Bytes,
        deadline: Instant,
        fresh: bool,
    ) -> Result<Upstream, NotCalled> {
        let head = self.prepare(client.head(), endpoint, target).map_err(refused)?;
        let attempt = self.attempt(target, head, body.clone(), deadline, fresh);
        let called = tokio::select! {
            biased;
            called = attempt => called,
            () = client.gone() => return Err(Ended::ClientGone.into()),
        };
        called.map_err(|error| match error {
            CallError::TooLate => unreachable(target, Class::FirstByteTimeout, &"no connection in time").into(),
            CallError::Dial(error) => unreachable(target, error.class(), &error).into(),
            CallError::Upstream(error) if error.is_stale_reuse() && !fresh => NotCalled::Stale,
            CallError::Upstream(error) => unreachable(target, error.class(), &error).into(),
        })
    }

    fn prepare(&self, head: &RequestHeader, endpoint: Endpoint, target: &Target) -> Result<RequestHeader, Refusal> {
        let headers = GatewayHeaders::of(&head.headers, &self.aliases)?;
        let path = target.provider.row.native_path(endpoint.family()).unwrap_or(endpoint.path());
        upstream_head(target, path, &head.headers, &headers, &self.aliases)
    }

    async fn attempt(
        &self,
        target: &Target,
        head: RequestHeader,
        body: Bytes,
        deadline: Instant,
        fresh: bool,
    ) -> Result<Upstream, CallError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let connect = within(left, self.dialer.connect(&target.origin, fresh)).await;
        let mut upstream = connect.map_err(|_| CallError::TooLate)??;
        match upstream.is_reused() {
            true => self.metrics.pool_reused.inc(),
            false => self.metrics.pool_opened.inc(),
        }
        upstream.set_timeouts(deadline.saturating_duration_since(Instant::now()), self.bounds.stream_idle);
        upstream.send(head, body).await?;
        upstream.read_head().await?;
        Ok(upstream)
    }
}

/// Why there is no head of an answer.
enum NotCalled {
    /// A held connection turned out to be dead.
    Stale,
    Ended(Ended),
}

impl From<Ended> for NotCalled {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}

enum CallError {
    /// The caller's own limit ended before a connection came about.
    TooLate,
    Dial(DialError),
    Upstream(UpstreamError),
}

impl From<DialError> for CallError {
    fn from(error: DialError) -> Self {
        Self::Dial(error)
    }
}

impl From<UpstreamError> for CallError {
    fn from(error: UpstreamError) -> Self {
        Self::Upstream(error)
    }
}

fn refused(refusal: Refusal) -> Ended {
    Ended::Failed(Failure { refusal, outcome: None })
}

fn unreachable(target: &Target, class: Class, error: &dyn std::fmt::Display) -> Ended {
    let provider = &target.provider.name;
    tracing::warn!(provider, class = class.label(), %error, "an upstream attempt failed");
    let refusal = match class {
        Class::Blocked => Refusal::invalid_custom_host(error),
        Class::Protocol => Refusal::invalid_upstream_response(provider, error),
        Class::FirstByteTimeout => Refusal::timeout(target.timeout.as_millis()),
        _ => Refusal::upstream_unreachable(provider, error),
    };
    Ended::Failed(Failure { refusal, outcome: Some(Outcome::Failed(class)) })
}

fn lane(route: &Route<'_>) -> Lane {
    match route {
        Route::Engine(_) => Lane::Engine,
        Route::Relay(_) => Lane::Relay,
        Route::ControlPlane => Lane::ControlPlane,
        Route::Greeting | Route::Preflight | Route::NotFound | Route::MethodNotAllowed => Lane::Own,
    }
}

fn head_size(head: &RequestHeader) -> usize {
    let headers = head.headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    headers.sum::<usize>() + head.uri.path_and_query().map_or(0, |path| path.as_str().len())
}

/// A call for the relay lane, to the place where the provider has what the path means.
fn relay(target: Target, path: &str, head: &RequestHeader) -> Result<Next, Refusal> {
    let place = target.provider.row.upstream_path(&head.method, path);
    let place = place.map_err(|why| Refusal::endpoint_not_supported(&target.provider.name, why))?;
    Ok(Next::Relay { path_and_query: path_and_query(&place, head), target })
}

fn path_and_query(path: &str, head: &RequestHeader) -> String {
    match head.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}
