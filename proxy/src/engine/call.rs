//! One call of one target: connect or take a held connection, send, and wait for the head of the answer.

use super::Engine;
use super::attempts::refused;
use crate::dial::{Class, DialError, Upstream, UpstreamError};
use crate::downstream::Downstream;
use crate::headers::GatewayHeaders;
use crate::metrics::Outcome;
use crate::plan::Leaf;
use crate::refusal::Refusal;
use crate::stages::answer::{Ended, Failure};
use crate::stages::classify::Endpoint;
use crate::stages::prepare::upstream_head;
use crate::target::Target;
use crate::within::within;
use bytes::Bytes;
use pingora_http::RequestHeader;
use std::time::Instant;

impl Engine {
    pub(super) async fn call_or_redial(
        &self,
        client: &mut impl Downstream,
        endpoint: Endpoint,
        leaf: &Leaf,
        target: &Target,
        body: &Bytes,
        deadline: Instant,
    ) -> Result<Upstream, Ended> {
        for fresh in [false, true] {
            let head = self.prepare(client.head(), endpoint, leaf, target).map_err(refused)?;
            match self.call(client, target, head, body.clone(), deadline, fresh).await {
                Ok(upstream) => return Ok(upstream),
                Err(NotCalled::Ended(ended)) => return Err(ended),
                // The provider had closed the held connection and never saw this request: sending it again is safe.
                Err(NotCalled::Stale) => self.metrics.pool_stale.inc(),
            }
        }
        Err(unreachable(target, Class::Reset, &"a new connection was closed at once"))
    }

    /// Sends the request and waits for the head of the answer, unless the client leaves first.
    async fn call(
        &self,
        client: &mut impl Downstream,
        target: &Target,
        head: RequestHeader,
        body: Bytes,
        deadline: Instant,
        fresh: bool,
    ) -> Result<Upstream, NotCalled> {
        let attempt = self.attempt(target, head, body, deadline, fresh);
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

    fn prepare(
        &self,
        head: &RequestHeader,
        endpoint: Endpoint,
        leaf: &Leaf,
        target: &Target,
    ) -> Result<RequestHeader, Refusal> {
        let headers = GatewayHeaders::of(&head.headers, &self.aliases)?;
        let row = &target.provider.row;
        let path = match row.native_path(endpoint.family()) {
            Some(path) => path,
            None => {
                let why = row
                    .upstream_path(&head.method, endpoint.path())
                    .err()
                    .map_or_else(String::new, |why| why.to_string());
                return Err(Refusal::endpoint_not_supported(&target.provider.name, why));
            }
        };
        upstream_head(target, path, head, &headers, leaf.forward_headers.as_deref(), &self.aliases)
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
        upstream.set_timeouts(deadline.saturating_duration_since(Instant::now()), target.stream_idle);
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
