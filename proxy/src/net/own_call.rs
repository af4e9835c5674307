//! Calls of the gateway's own to an address that the operator named, again and again: connections are pooled, unlike those of
//! rare errands. Under the dialer's rules like everything else.

use super::dial::{BadHost, Dialer, Origin, Upstream, UpstreamError, internal_call};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderName, HeaderValue, header};
use pingora_http::RequestHeader;
use std::sync::Arc;
use std::time::Duration;

/// Whoever calls has a shorter limit for the whole.
const LIMIT: Duration = Duration::from_secs(60);

pub struct OwnCall {
    dialer: Arc<Dialer>,
    origin: Arc<Origin>,
    path: PathAndQuery,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// What was answered.
#[derive(Debug)]
pub struct OwnAnswer {
    pub status: u16,
    pub body: Vec<u8>,
}

impl OwnCall {
    /// The headers go along with each call, and their values are shown nowhere.
    pub fn new(dialer: Arc<Dialer>, url: &str, mut headers: Vec<(HeaderName, HeaderValue)>) -> Result<Self, BadHost> {
        let origin = dialer.known_host(url.split_once('?').map_or(url, |(before, _)| before))?;
        let path = shared::outbound::path_of(url)?;
        headers.iter_mut().for_each(|(_, value)| value.set_sensitive(true));
        Ok(Self { dialer, origin, path, headers })
    }

    /// Sends JSON. The answer is an error beyond `longest` bytes; errors repeat nothing of either.
    pub async fn post(&self, body: Bytes, longest: usize) -> Result<OwnAnswer, String> {
        let mut upstream = self.connect(false).await?;
        let mut sent = send(&mut upstream, self.head()?, body.clone()).await;
        // A connection that waited may have been closed meanwhile.
        if sent.is_err() && upstream.is_reused() {
            upstream = self.connect(true).await?;
            sent = send(&mut upstream, self.head()?, body).await;
        }
        sent.map_err(|error| internal_call::spoken(error.class()))?;
        let status = upstream.head().status.as_u16();
        upstream.inflate(None)?;
        let body = internal_call::whole(&mut upstream, longest).await?;
        upstream.release();
        Ok(OwnAnswer { status, body })
    }

    async fn connect(&self, fresh: bool) -> Result<Upstream, String> {
        let upstream = self.dialer.connect(&self.origin, fresh).await;
        let mut upstream = upstream.map_err(|error| internal_call::spoken(error.class()))?;
        upstream.set_timeouts(LIMIT, LIMIT);
        Ok(upstream)
    }

    fn head(&self) -> Result<RequestHeader, String> {
        let mut head = RequestHeader::build("POST", self.path.as_str().as_bytes(), Some(4 + self.headers.len()))
            .map_err(|_| "its path is not valid")?;
        for (name, value) in [(header::CONTENT_TYPE, "application/json"), (header::USER_AGENT, "portcullis")] {
            let _ = head.insert_header(name, HeaderValue::from_static(value));
        }
        for (name, value) in &self.headers {
            let _ = head.insert_header(name.clone(), value.clone());
        }
        Ok(head)
    }
}

async fn send(upstream: &mut Upstream, head: RequestHeader, body: Bytes) -> Result<(), UpstreamError> {
    upstream.send(head, body).await?;
    upstream.read_head().await
}
