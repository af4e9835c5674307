//! The older transport: a GET opens a stream, whose first event names where messages are posted to, and answers come over
//! the stream. Messages go to the host of the stream alone: a server could otherwise have credentials sent elsewhere.

use super::{ANSWER_BYTES, Exchange, HeldConnection, McpError};
use crate::outbound::Outbound;
use axum::http::{HeaderMap, HeaderValue, Method, header};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::Value;
use shared::mcp::{self, EventReader};
use std::collections::VecDeque;
use url::Url;

pub struct SseLink {
    body: hyper::body::Incoming,
    events: EventReader,
    heard: VecDeque<String>,
    /// Bytes that came since the last message was sent.
    length: usize,
    /// Where messages are posted to.
    place: String,
    _connection: HeldConnection,
}

impl SseLink {
    pub async fn open(outbound: &Outbound, url: &str, headers: &HeaderMap) -> Result<Self, McpError> {
        let mut headers = headers.clone();
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ACCEPT, HeaderValue::from_static("text/event-stream"));
        let opened = outbound.send(Method::GET, url, &headers, Bytes::new()).await?;
        let mut link = Self {
            body: opened.body,
            events: EventReader::new(ANSWER_BYTES),
            heard: VecDeque::new(),
            length: 0,
            place: String::new(),
            _connection: opened.connection,
        };
        let named = link.next().await?;
        link.place = same_host(url, &named).ok_or_else(|| "it wants messages to be sent to another host".to_owned())?;
        Ok(link)
    }

    /// `id` is none for what has no answer.
    pub async fn ask(
        &mut self,
        outbound: &Outbound,
        headers: &HeaderMap,
        id: Option<u64>,
        message: &Value,
    ) -> Result<Exchange, McpError> {
        let sent = outbound.send(Method::POST, &self.place, headers, Bytes::from(message.to_string())).await?;
        let status = sent.head.status.as_u16();
        self.length = 0;
        let Some(id) = id else { return Ok(Exchange { status, session: None, answer: None }) };
        loop {
            let event = self.next().await.map_err(|message| McpError { status: Some(status), message })?;
            let parsed = serde_json::from_str::<Value>(&event).unwrap_or_default();
            if let Some(answer) = mcp::answer_to(id, &parsed) {
                return Ok(Exchange { status, session: None, answer: Some(answer) });
            }
        }
    }

    async fn next(&mut self) -> Result<String, String> {
        let too_long = || format!("its answer has more than {ANSWER_BYTES} bytes");
        loop {
            if let Some(event) = self.heard.pop_front() {
                return Ok(event);
            }
            let frame = self.body.frame().await.ok_or_else(|| "its stream ended before the answer".to_owned())?;
            let frame = frame.map_err(|_| "the answer broke off".to_owned())?;
            let Ok(piece) = frame.into_data() else { continue };
            self.length += piece.len();
            if self.length > ANSWER_BYTES {
                return Err(too_long());
            }
            self.heard.extend(self.events.push(&piece).map_err(|_| too_long())?);
        }
    }
}

fn same_host(url: &str, named: &str) -> Option<String> {
    let base = Url::parse(url).ok()?;
    let joined = base.join(named).ok()?;
    (joined.origin() == base.origin()).then(|| joined.into())
}

#[cfg(test)]
mod tests {
    use super::same_host;

    #[test]
    fn messages_stay_at_the_host_of_the_stream() {
        let url = "https://a.test/sse";
        assert_eq!(same_host(url, "/post?session=1").as_deref(), Some("https://a.test/post?session=1"));
        assert_eq!(same_host(url, "https://a.test/x").as_deref(), Some("https://a.test/x"));
        for elsewhere in ["https://b.test/x", "//b.test/x", "http://a.test/x", "https://a.test:8443/x"] {
            assert_eq!(same_host(url, elsewhere), None, "{elsewhere}");
        }
    }
}
