//! One call of one target: connect or take a held connection, send, and read until the answer is worth passing on.

use super::Engine;
use super::turn::Turn;
use crate::dial::{Class, DialError, Request, Upstream, UpstreamError};
use crate::fairness::Permit;
use crate::metrics::Outcome;
use crate::plan::Leaf;
use crate::refusal::Refusal;
use crate::stages::answer::{self, AnswerSource, Ended, Failure, Held, Steps, WireDialect};
use crate::stages::classify::Endpoint;
use crate::stages::prepare::{Meant, upstream_head};
use crate::target::Target;
use crate::within::until;
use bytes::Bytes;
use http::header;
use pingora_http::RequestHeader;
use std::pin::pin;
use std::time::{Duration, Instant};

/// An answer whose beginning is held: the provider's, good or bad.
pub(super) struct Answer {
    pub source: AnswerSource,
    pub held: Held,
    pub steps: Steps,
    /// Until its head came.
    pub waited: Duration,
    /// Its place among those under way, where these are limited.
    pub permit: Option<Permit>,
}

/// What is the same for every try of a target.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub endpoint: Endpoint,
    pub meant: &'c Meant,
    pub leaf: &'c Leaf,
    pub target: &'c Target,
    /// What the target's answer is written in.
    pub wire: WireDialect,
    pub body: &'c Bytes,
    /// The same before we wished for anything of our own; none of forms.
    pub edited: Option<&'c Bytes>,
    /// We wished for usage that the client did not ask for.
    pub asks_usage: bool,
    /// When the whole request must be over.
    pub deadline: Option<Instant>,
    /// When the target was turned to.
    pub asked: Instant,
    /// What a call beside it has to ask for.
    pub turn: Option<&'c Turn<'c>>,
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

impl Engine {
    pub(super) async fn call(&self, call: Call<'_>, request: Request, fresh: bool) -> Result<Answer, NotCalled> {
        let target = call.target;
        let limit = call.asked + target.timeout;
        let limit = call.deadline.map_or(limit, |deadline| limit.min(deadline));
        let called = self.send(target, request, call.body.clone(), limit, fresh).await;
        let is_over = || call.deadline.is_some_and(|deadline| deadline <= Instant::now());
        let upstream = called.map_err(|error| match error {
            CallError::TooLate if is_over() => out_of_time().into(),
            CallError::Upstream(error) if error.class() == Class::FirstByteTimeout && is_over() => out_of_time().into(),
            CallError::TooLate => unreachable(target, Class::FirstByteTimeout, &"no connection in time").into(),
            CallError::Dial(error) => unreachable(target, error.class(), &error).into(),
            CallError::Upstream(error) if error.is_unread() && !fresh => NotCalled::Unread,
            CallError::Upstream(error) => unreachable(target, error.class(), &error).into(),
        })?;
        let waited = call.asked.elapsed();
        let mut source = AnswerSource::from(upstream);
        let mut steps = self.response_steps(call);
        let held = {
            let holding = pin!(answer::hold(&mut source, target, call.wire, &mut steps, limit));
            match call.deadline {
                None => holding.await,
                Some(deadline) => until(deadline, holding).await.unwrap_or_else(|_| Err(out_of_time())),
            }
        };
        Ok(Answer { held: held?, source, steps, waited, permit: None })
    }

    /// The head of the request for the provider, from the client's.
    pub(super) fn prepare(&self, call: Call<'_>, head: &RequestHeader) -> Result<Request, Refusal> {
        let row = &call.target.provider.row;
        let path = match row.native_path(call.endpoint.family()) {
            Some(path) => path.into(),
            None => row
                .upstream_path(&head.method, call.endpoint.path())
                .map_err(|why| Refusal::endpoint_not_supported(&call.target.provider.name, why))?,
        };
        let forward = call.leaf.forward_headers.as_deref();
        let mut prepared = upstream_head(call.target, &path, head, call.meant, forward, &self.aliases)?;
        if call.endpoint.takes_forms()
            && let Some(kind) = head.headers.get(header::CONTENT_TYPE)
        {
            // It names the form's boundary.
            prepared.put(header::CONTENT_TYPE, kind.clone());
        }
        Ok(prepared)
    }

    /// Sends the request and waits for the head of the answer.
    async fn send(
        &self,
        target: &Target,
        request: Request,
        body: Bytes,
        limit: Instant,
        fresh: bool,
    ) -> Result<Upstream, CallError> {
        let connect = until(limit, pin!(self.dialer.connect(&target.origin, fresh))).await;
        let mut upstream = connect.map_err(|_| CallError::TooLate)??;
        match upstream.is_reused() {
            true => self.metrics.pool_reused(),
            false => self.metrics.pool_opened.inc(),
        }
        upstream.set_deadline(limit, target.stream_idle);
        upstream.send(request, body).await?;
        upstream.read_head().await?;
        Ok(upstream)
    }
}

enum CallError {
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

pub(super) fn unreachable(target: &Target, class: Class, error: &dyn std::fmt::Display) -> Ended {
    let provider = &target.provider.name;
    tracing::warn!(provider, class = class.label(), %error, "an upstream attempt failed");
    let refusal = match class {
        Class::Blocked => Refusal::invalid_custom_host(error),
        Class::Protocol => Refusal::invalid_upstream_response(provider, error),
        Class::FirstByteTimeout => target.timed_out(),
        _ => Refusal::upstream_unreachable(provider, error),
    };
    Ended::Failed(Failure { refusal, outcome: Some(Outcome::Failed(class)) })
}

fn out_of_time() -> Ended {
    let outcome = Some(Outcome::Failed(Class::FirstByteTimeout));
    Ended::Failed(Failure { refusal: Refusal::out_of_time(), outcome })
}
