//! One call of one target: connect or take a held connection, send, and read until the answer is worth passing on.

use super::answer;
use super::answer::{
    AnswerFailure, AnswerSource, Ended, GuardedCall, HeldStart, Steps, StreamFrames, WireDialect, with_heartbeats,
};
use super::fair_turn::Turn;
use super::prepare::{ProviderHeaders, Unsigned, upstream_head};
use super::sent_mark::SentMark;
use super::translate::TranslatedCall;
use crate::cache::Keeper;
use crate::catalog::providers::ProviderNumber;
use crate::catalog::secrets::Secrets;
use crate::catalog::signing::{AccountCredential, SignedBody, Signing, SigningError};
use crate::catalog::target::Target;
use crate::context::metrics::{Metrics, Outcome};
use crate::context::{PaidAnswer, Visit};
use crate::limits::fairness::{Fairness, Permit};
use crate::net::dial::{Class, DialError, Dialer, Upstream, UpstreamError, UpstreamRequest};
use crate::net::downstream::Downstream;
use crate::request::classify::Endpoint;
use crate::request::headers::Aliases;
use crate::request::refusal::Refusal;
use crate::routing::plan::{Hedging, Leaf};
use crate::runtime::memory::MemoryOwner;
use crate::runtime::timeout::with_deadline;
use bytes::Bytes;
use http::{HeaderValue, StatusCode, header};
use pingora_http::RequestHeader;
use shared::telemetry::{Brief, LogLimit};
use std::borrow::Cow;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// An answer whose beginning is held: the provider's, good or bad.
pub(super) struct HeldAnswer {
    pub source: AnswerSource,
    pub held: HeldStart,
    pub steps: Steps,
    /// Until its head came.
    pub waited: Duration,
    /// Its place among those under way, where these are limited.
    pub permit: Option<Permit>,
    /// What keeps it for others. In a box, as all that is rare.
    pub keeper: Option<Box<Keeper>>,
    /// It was kept, or is the gateway's own: no provider was asked.
    pub is_hit: bool,
}

impl HeldAnswer {
    /// The provider's, or another that a step gives it.
    pub fn status(&self) -> u16 {
        let denied = self.denial().map(|refusal| refusal.status);
        denied.or_else(|| self.steps.status()).unwrap_or_else(|| self.source.head().status.as_u16())
    }

    /// Why the client does not get it.
    pub fn denial(&self) -> Option<&Refusal> {
        match &self.held {
            HeldStart::Changed(body) => body.denial.as_deref(),
            HeldStart::Plain(_) | HeldStart::Stream(_) => None,
        }
    }
}

/// What is the same for every try of a target.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub endpoint: Endpoint,
    pub meant: &'c ProviderHeaders,
    pub leaf: &'c Leaf,
    pub target: &'c Target,
    /// What the target's answer is written in.
    pub wire: WireDialect,
    /// How the client takes a stream, where that is said by its route.
    pub frames: Option<StreamFrames>,
    /// How it is asked where that is not at a place of its own in the client's words.
    pub translated: Option<&'c TranslatedCall>,
    pub body: &'c Bytes,
    /// The same before we wished for anything of our own; none of forms.
    pub edited: Option<&'c Bytes>,
    /// We wished for usage that the client did not ask for.
    pub asks_usage: bool,
    /// When the whole request must be over.
    pub deadline: Option<Instant>,
    /// For log lines.
    pub request_id: Uuid,
    /// When the target was turned to.
    pub asked: Instant,
    /// What a call beside it has to ask for.
    pub turn: Option<&'c Turn<'c>>,
    /// What hooks said of the request, and which its answer must pass.
    pub guarded: Option<&'c Arc<GuardedCall>>,
    /// A plain answer is passed on when it is whole.
    pub needs_whole: bool,
    /// Where what is gathered of its answer counts.
    pub room: MemoryOwner<'c>,
}

/// Why there is no answer.
pub(super) enum NotCalled {
    /// The provider cannot have worked on the request: sending it again is safe.
    Unread,
    Ended(Ended),
}

impl From<Ended> for NotCalled {
    fn from(ended: Ended) -> Self {
        Self::Ended(ended)
    }
}

/// A computed credential, and the token that stands for it in a request.
type SentCredential = (Arc<AccountCredential>, Option<HeaderValue>);

/// What calls of providers need.
pub struct ProviderCalls {
    pub dialer: Arc<Dialer>,
    pub secrets: Arc<Secrets>,
    pub signing: Arc<Signing>,
    /// Whose turn it is at providers that limit their concurrency.
    pub fairness: Fairness,
    pub metrics: Arc<Metrics>,
    pub aliases: Arc<Aliases>,
    /// Steps that tests put behind those of the plan.
    #[cfg(test)]
    pub more_steps: fn(&mut Steps),
}

impl ProviderCalls {
    /// One call, and a second on a new connection if the first was on one that had died, or if its token was refused and
    /// another may be had.
    pub(super) async fn call_or_redial(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        call: Call<'_>,
        permit: Option<Permit>,
    ) -> Result<HeldAnswer, Ended> {
        for fresh in [false, true] {
            let (mut request, unsigned) = self.prepare(call, client.head()).map_err(refused)?;
            let mut signed = None;
            if let Some(credential) = unsigned {
                with_heartbeats(client, visit, Box::pin(self.sign(call, &credential, &mut request))).await??;
                let sent = request.headers().find(|(name, _)| **name == header::AUTHORIZATION);
                signed = Some(Box::new((credential, sent.map(|(_, value)| value.clone()))));
            }
            if let Some(log) = &mut visit.observer.log {
                log.sends(&request, call.target, call.edited, call.asks_usage);
            }
            let sent = SentMark::default();
            let called = match call.leaf.hedge.as_ref().and_then(Hedging::delay) {
                None => match with_heartbeats(client, visit, pin!(self.call(call, request, fresh, &sent))).await {
                    Ok(called) => called,
                    Err(ended) => {
                        given_up(visit, &sent);
                        return Err(ended);
                    }
                },
                // Boxed, as all that is rare: its state would be part of every request's, and is copied with it.
                Some(delay) => {
                    let first = self.call(call, request, fresh, &sent);
                    Box::pin(self.hedged(client, visit, call, (first, &sent), delay)).await
                }
            };
            match called {
                Ok(answer) if !fresh && self.is_token_refused(signed.as_deref(), &answer) => {
                    self.set_aside(call.target.provider.number, Ok(answer));
                }
                Ok(mut answer) => {
                    // A second attempt that won has its own.
                    if answer.permit.is_none() {
                        answer.permit = permit;
                    }
                    return Ok(answer);
                }
                Err(NotCalled::Ended(ended)) => return Err(ended),
                Err(NotCalled::Unread) => self.metrics.pool_stale.inc(),
            }
        }
        Err(unreachable(call, Class::Reset, &"a new connection was closed at once"))
    }

    /// Whether the provider does not take the token that was sent, and another may be had.
    fn is_token_refused(&self, signed: Option<&SentCredential>, answer: &HeldAnswer) -> bool {
        let is_refused = answer.source.head().status == StatusCode::UNAUTHORIZED;
        signed.is_some_and(|(credential, sent)| is_refused && self.signing.retire(credential, sent.as_ref()))
    }

    /// Counts an attempt that another one replaces; its connection may serve again if its answer was read whole.
    pub(super) fn set_aside(&self, provider: ProviderNumber, tried: Result<HeldAnswer, NotCalled>) {
        match tried {
            Ok(answer) => {
                self.metrics.attempt(provider, answer.source.head().status.as_u16(), Outcome::Answered);
                answer.source.release();
            }
            Err(NotCalled::Ended(Ended::Failed(AnswerFailure { outcome: Some(outcome), .. }))) => {
                self.metrics.attempt(provider, 0, outcome);
            }
            Err(_) => {}
        }
    }

    pub(super) async fn call(
        &self,
        call: Call<'_>,
        request: UpstreamRequest,
        fresh: bool,
        sent: &SentMark,
    ) -> Result<HeldAnswer, NotCalled> {
        let target = call.target;
        let limit = call.asked + target.timeout;
        let limit = call.deadline.map_or(limit, |deadline| limit.min(deadline));
        let called = self.send(target, request, call.body.clone(), limit, fresh, sent).await;
        let is_over = || call.deadline.is_some_and(|deadline| deadline <= Instant::now());
        let upstream = called.map_err(|error| match error {
            CallError::TooLate if is_over() => out_of_time().into(),
            CallError::Upstream(error) if error.class() == Class::FirstByteTimeout && is_over() => {
                with_unheard(out_of_time(), sent).into()
            }
            CallError::TooLate => unreachable(call, Class::FirstByteTimeout, &"no connection in time").into(),
            CallError::Dial(error) => unreachable(call, error.class(), &error).into(),
            CallError::Upstream(error) if error.is_unread() && !fresh => NotCalled::Unread,
            CallError::Upstream(error) => with_unheard(unreachable(call, error.class(), &error), sent).into(),
        })?;
        if !upstream.head().status.is_success() {
            sent.clear();
        }
        let waited = call.asked.elapsed();
        let is_stream = call.translated.is_some_and(|translated| translated.is_stream);
        let mut source = AnswerSource::new(upstream, call.wire, is_stream, call.room);
        let mut steps = self.response_steps(call);
        let mut read = Bytes::new();
        let held = {
            let holding = pin!(answer::hold(&mut source, target, call.wire, &mut steps, limit, call.room, &mut read));
            match call.deadline {
                None => holding.await,
                Some(deadline) => with_deadline(deadline, holding).await.unwrap_or_else(|_| Err(out_of_time())),
            }
        };
        let held = held.map_err(|ended| with_paid(ended, &source, read))?;
        Ok(HeldAnswer { held, source, steps, waited, permit: None, keeper: None, is_hit: false })
    }

    /// The head of the request for the provider, from the client's.
    pub(super) fn prepare(&self, call: Call<'_>, head: &RequestHeader) -> Result<(UpstreamRequest, Unsigned), Refusal> {
        let row = &call.target.provider.row;
        let path = match (call.translated, row.native_path(call.endpoint.family())) {
            // The caller's query is in its own words too.
            (Some(translated), _) => Cow::Borrowed(&*translated.path),
            (None, Some(path)) => with_query(path.into(), head),
            (None, None) => {
                let path = row.upstream_path(&head.method, call.endpoint.path());
                let path = path.map_err(|why| Refusal::endpoint_not_supported(&call.target.provider.name, why))?;
                with_query(path, head)
            }
        };
        let forward = call.leaf.forward_headers.as_deref();
        let (mut prepared, unsigned) = upstream_head(call.target, &path, head, call.meant, forward, &self.aliases)?;
        if call.endpoint.takes_forms()
            && let Some(kind) = head.headers.get(header::CONTENT_TYPE)
        {
            // It names the form's boundary.
            prepared.put(header::CONTENT_TYPE, kind.clone());
        }
        if let Some(kind) = call.translated.and_then(|translated| translated.content_type.as_ref()) {
            prepared.put(header::CONTENT_TYPE, kind.clone());
        }
        Ok((prepared, unsigned))
    }

    /// Puts a computed credential on a head that is complete. A wait for a login ends with the request.
    pub(super) async fn sign(
        &self,
        call: Call<'_>,
        credential: &AccountCredential,
        request: &mut UpstreamRequest,
    ) -> Result<(), Ended> {
        let signing = pin!(self.authorise(call.target, credential, request, call.body));
        match call.deadline {
            None => signing.await.map_err(refused),
            Some(deadline) => match with_deadline(deadline, signing).await {
                Ok(signed) => signed.map_err(refused),
                Err(_) => Err(out_of_time()),
            },
        }
    }

    pub(crate) async fn authorise(
        &self,
        target: &Target,
        credential: &AccountCredential,
        request: &mut UpstreamRequest,
        body: &[u8],
    ) -> Result<(), Refusal> {
        self.authorise_body(target, credential, request, SignedBody::Whole(body)).await
    }

    /// The same for a body that may come in pieces.
    pub(crate) async fn authorise_body(
        &self,
        target: &Target,
        credential: &AccountCredential,
        request: &mut UpstreamRequest,
        body: SignedBody<'_>,
    ) -> Result<(), Refusal> {
        let signed = self.signing.authorise(credential, &target.origin, request, body).await;
        signed.map_err(|error| unsigned(target, &error))
    }

    /// Sends the request and waits for the head of the answer. `sent` tells of one that was sent whole, unless the provider
    /// cannot have worked on it.
    pub(crate) async fn send(
        &self,
        target: &Target,
        request: UpstreamRequest,
        body: Bytes,
        limit: Instant,
        fresh: bool,
        sent: &SentMark,
    ) -> Result<Upstream, CallError> {
        let connect = with_deadline(limit, pin!(self.dialer.connect(&target.origin, fresh))).await;
        let mut upstream = connect.map_err(|_| CallError::TooLate)??;
        match upstream.is_reused() {
            true => self.metrics.pool_reused(),
            false => self.metrics.pool_opened.inc(),
        }
        upstream.set_deadline(limit, target.stream_idle);
        upstream.send(request, body).await?;
        sent.set();
        upstream.read_head().await.inspect_err(|error| {
            if error.is_unread() {
                sent.clear();
            }
        })?;
        Ok(upstream)
    }
}

/// Of a call that was sent whole, somebody may want to be paid although no answer came.
fn with_unheard(mut ended: Ended, sent: &SentMark) -> Ended {
    if let (Ended::Failed(failure), true) = (&mut ended, sent.is_set()) {
        failure.paid = Some(Box::new(PaidAnswer::unheard()));
    }
    ended
}

/// Nobody waits for the call any more.
pub(super) fn given_up(visit: &mut Visit, sent: &SentMark) {
    if sent.is_set() {
        visit.pays(&PaidAnswer::unheard());
    }
}

/// What an answer was that is of no use: the provider will be paid for it, if its status said success.
fn with_paid(ended: Ended, source: &AnswerSource, read: Bytes) -> Ended {
    match ended {
        Ended::Failed(mut failure) if source.head().status.is_success() => {
            let is_error = failure.outcome == Some(Outcome::StreamError);
            let is_stream = answer::is_stream(source);
            failure.paid = Some(Box::new(PaidAnswer { is_error, ..PaidAnswer::heard(read, is_stream) }));
            Ended::Failed(failure)
        }
        ended => ended,
    }
}

/// Some endpoints take options from the query.
fn with_query<'p>(path: Cow<'p, str>, head: &RequestHeader) -> Cow<'p, str> {
    match head.uri.query() {
        None => path,
        Some(query) => [&*path, "?", query].concat().into(),
    }
}

pub(crate) enum CallError {
    /// The limit ended before a connection came about.
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

/// The target cannot be asked without its credential.
pub(crate) fn unsigned(target: &Target, error: &SigningError) -> Refusal {
    let provider = &target.provider.name;
    static NO_CREDENTIAL: LogLimit = LogLimit::new();
    if let Some(skipped) = NO_CREDENTIAL.pass() {
        tracing::warn!(provider, error = %Brief(error), skipped, "a credential could not be had");
    }
    error.refusal(provider)
}

/// We do not ask the provider.
pub(super) fn refused(refusal: Refusal) -> Ended {
    Ended::Failed(AnswerFailure::new(refusal, None))
}

fn unreachable(call: Call<'_>, class: Class, error: &dyn std::fmt::Display) -> Ended {
    let target = call.target;
    let provider = &target.provider.name;
    static FAILED: LogLimit = LogLimit::new();
    if let Some(skipped) = FAILED.pass() {
        let (request_id, class, error) = (call.request_id, class.label(), Brief(error));
        tracing::warn!(%request_id, provider, class, %error, skipped, "an upstream attempt failed");
    }
    Ended::Failed(AnswerFailure::new(unreached(target, class, error), Some(Outcome::Failed(class))))
}

/// What the client is told of a call that failed.
pub(crate) fn unreached(target: &Target, class: Class, error: &dyn std::fmt::Display) -> Refusal {
    let provider = &target.provider.name;
    match class {
        Class::Blocked => Refusal::invalid_custom_host(error),
        Class::Protocol => Refusal::invalid_upstream_response(provider, error),
        Class::FirstByteTimeout => target.timed_out(),
        _ => Refusal::upstream_unreachable(provider, error),
    }
}

fn out_of_time() -> Ended {
    let outcome = Some(Outcome::Failed(Class::FirstByteTimeout));
    Ended::Failed(AnswerFailure::new(Refusal::out_of_time(), outcome))
}
