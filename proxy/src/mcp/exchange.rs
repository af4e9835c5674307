//! One request to a server and the head of its answer, over the guarded dialer's pooled connections.

use super::mirrored_headers::{METHOD, NAME, encoded};
use super::{LAST_EVENT_ID, SESSION_ID, UpstreamHeaders};
use crate::net::dial::{BadHost, Class, Dialer, Origin, Upstream, UpstreamError, UpstreamRequest};
use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

/// The longest value of a header of the protocol that is passed on, and how many are.
const MAX_VALUE: usize = 1024;
const MAX_HEADERS: usize = 32;

/// Where a server is.
#[derive(Debug, Clone)]
pub struct McpEndpoint {
    origin: Arc<Origin>,
    path: PathAndQuery,
}

impl McpEndpoint {
    pub fn parse(dialer: &Dialer, url: &str) -> Result<Self, BadHost> {
        let (origin, path) = dialer.custom_url(url)?;
        Ok(Self { origin, path })
    }

    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    pub fn authority(&self) -> &HeaderValue {
        self.origin.authority_value()
    }

    pub fn path(&self) -> &str {
        self.path.path()
    }
}

/// What is sent, apart from where.
pub struct UpstreamCall {
    method: Method,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Bytes,
    /// Longest waits: for the head of the answer, and for each piece of it.
    head_within: Duration,
    idle: Duration,
    /// All of it was sent, and no answer has refused it. Who gives it up drops its future, which can say nothing then.
    is_sent: AtomicBool,
}

impl UpstreamCall {
    /// `client` is the head of the client's request, of which the headers of the protocol are passed on. `session` is the
    /// server's own id of it.
    pub fn new(method: Method, client: &HeaderMap, session: Option<&[u8]>, own: &UpstreamHeaders, body: Bytes) -> Self {
        let mut headers = Vec::with_capacity(12);
        let accept = client.get(header::ACCEPT).filter(|value| value.len() <= MAX_VALUE).cloned();
        let both = || HeaderValue::from_static("application/json, text/event-stream");
        headers.push((header::ACCEPT, accept.unwrap_or_else(both)));
        headers.push((header::USER_AGENT, HeaderValue::from_static("portcullis")));
        if method == Method::POST {
            headers.push((header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
        }
        let is_of_protocol = |name: &HeaderName| {
            let is_ours = [&SESSION_ID, &METHOD, &NAME].contains(&name);
            (name.as_str().starts_with("mcp-") && !is_ours) || *name == LAST_EVENT_ID
        };
        let passed = client.iter().filter(|(name, value)| is_of_protocol(name) && value.len() <= MAX_VALUE);
        headers.extend(passed.take(MAX_HEADERS).map(|(name, value)| (name.clone(), value.clone())));
        if let Some(mut session) = session.and_then(|id| HeaderValue::from_bytes(id).ok()) {
            session.set_sensitive(true);
            headers.push((SESSION_ID.clone(), session));
        }
        headers.extend(own.iter().cloned());
        let forever = Duration::from_secs(3600);
        Self { method, headers, body, head_within: forever, idle: forever, is_sent: AtomicBool::new(false) }
    }

    /// Whether the server may have done what it was asked: it got all of it, and did not refuse.
    pub fn is_sent(&self) -> bool {
        self.is_sent.load(Relaxed)
    }

    /// The server has refused it.
    pub fn note_refusal(&self) {
        self.is_sent.store(false, Relaxed);
    }

    /// The method and the name of the body, as far as they are said again in headers.
    #[must_use]
    pub fn mirroring(mut self, method: Option<&str>, name: Option<&str>) -> Self {
        let mirrored = [(&METHOD, method.and_then(encoded)), (&NAME, name.and_then(encoded))];
        self.headers.extend(mirrored.into_iter().filter_map(|(name, value)| Some((name.clone(), value?))));
        self
    }

    #[must_use]
    pub fn within(mut self, head: Duration, idle: Duration) -> Self {
        (self.head_within, self.idle) = (head, idle);
        self
    }

    pub fn headers(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.headers.iter().map(|(name, value)| (name, value))
    }

    /// Whether a text repeats a credential that was sent.
    pub fn is_repeated_in(&self, text: &[u8]) -> bool {
        const MIN_CREDENTIAL: usize = 8;
        let secrets = self.headers.iter().filter(|(_, value)| value.is_sensitive());
        secrets.map(|(_, value)| value.as_bytes()).any(|value| {
            let value = value.strip_prefix(b"Bearer ").unwrap_or(value);
            value.len() >= MIN_CREDENTIAL && memchr::memmem::find(text, value).is_some()
        })
    }

    /// The connection with the head of the answer read. What was not read by the server is sent again over a fresh
    /// connection; with `may_repeat` anything that failed is.
    pub async fn send(&self, dialer: &Dialer, endpoint: &McpEndpoint, may_repeat: bool) -> Result<Upstream, Class> {
        match self.send_once(dialer, endpoint, false).await {
            Ok(upstream) => Ok(upstream),
            Err(Failed { is_unread, .. }) if is_unread || may_repeat => {
                self.is_sent.store(false, Relaxed);
                let again = self.send_once(dialer, endpoint, true).await;
                again.map_err(|failed| failed.class)
            }
            Err(failed) => Err(failed.class),
        }
    }

    async fn send_once(&self, dialer: &Dialer, endpoint: &McpEndpoint, fresh: bool) -> Result<Upstream, Failed> {
        let unmade = Failed { class: Class::Protocol, is_unread: false };
        let connected = dialer.connect(&endpoint.origin, fresh).await;
        let mut upstream = connected.map_err(|error| Failed { class: error.class(), is_unread: false })?;
        upstream.set_timeouts(self.head_within, self.idle);
        let path = endpoint.path.as_str().to_owned();
        let mut request = UpstreamRequest::new(self.method.clone(), path).ok_or(unmade)?;
        for (name, value) in &self.headers {
            request.add(name.clone(), value.clone());
        }
        upstream.send(request, self.body.clone()).await?;
        self.is_sent.store(true, Relaxed);
        upstream.read_head().await?;
        Ok(upstream)
    }
}

struct Failed {
    class: Class,
    is_unread: bool,
}

impl From<UpstreamError> for Failed {
    fn from(error: UpstreamError) -> Self {
        Self { class: error.class(), is_unread: error.is_unread() }
    }
}
