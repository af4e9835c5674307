//! Asks an MCP server who it is and what it offers. Over Streamable HTTP each message is a POST; the answer is JSON or a
//! stream of events, of which no more is read than until the answer came. Servers of the older transport answer over a
//! stream of their own (`sse_link`). Pages, bytes and time are bounded, and nothing that a server says is repeated in an
//! error, because some repeat the credential.

mod sse_link;

use super::{AbortOnDrop, Outbound, broken};
use axum::http::response::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use shared::mcp::{self, Answer, Capability, EventReader, Kind, ListPage, ServerInfo};
use sse_link::SseLink;
use std::time::Duration;

/// For a greeting, and for everything.
pub const GREETING: Duration = Duration::from_secs(10);
pub const EVERYTHING: Duration = Duration::from_secs(30);
const ANSWER_BYTES: usize = 4 << 20;
const PAGES: usize = 50;
const CAPABILITIES: usize = 5000;
const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

/// Why there is no answer: a sentence, and the status where one came.
#[derive(Debug)]
pub struct McpError {
    pub status: Option<u16>,
    pub message: String,
}

impl From<String> for McpError {
    fn from(message: String) -> Self {
        Self { status: None, message }
    }
}

/// The head of an answer that says success, and its body, which comes for as long as the connection is held.
struct SentMessage {
    head: Parts,
    body: hyper::body::Incoming,
    connection: HeldConnection,
}

struct HeldConnection {
    _sender: SendRequest<Full<Bytes>>,
    _driver: AbortOnDrop,
}

struct Exchange {
    status: u16,
    session: Option<HeaderValue>,
    answer: Option<Answer>,
}

/// A server that was greeted.
pub struct McpSession<'a> {
    outbound: &'a Outbound,
    url: &'a str,
    headers: HeaderMap,
    /// Of the older transport.
    link: Option<SseLink>,
    pub info: ServerInfo,
    pub status: u16,
}

impl Outbound {
    /// Greets a server. `headers` are those that authenticate. Whoever calls it sets the time limit.
    pub async fn greet<'a>(
        &'a self,
        url: &'a str,
        transport: &str,
        mut headers: HeaderMap,
    ) -> Result<McpSession<'a>, McpError> {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        headers.insert(header::USER_AGENT, HeaderValue::from_static("portcullis"));
        let link = match transport {
            "sse" => Some(SseLink::open(self, url, &headers).await?),
            _ => None,
        };
        let mut session = McpSession { outbound: self, url, headers, link, info: ServerInfo::default(), status: 0 };
        let met = session.ask(Some(1), &mcp::initialize(1)).await?;
        (session.info, session.status) = (ServerInfo::from_result(&met.result("initialize")?), met.status);
        if let Some(given) = met.session {
            session.headers.insert(SESSION, given);
        }
        let version = session.info.protocol_version.as_deref().unwrap_or(mcp::REVISION);
        if let Ok(version) = HeaderValue::try_from(version) {
            session.headers.insert(VERSION, version);
        }
        Ok(session)
    }

    async fn send(&self, method: Method, url: &str, headers: &HeaderMap, body: Bytes) -> Result<SentMessage, McpError> {
        let (origin, path) =
            self.guard.custom_url(url).map_err(|rule| format!("its address cannot be used: {rule}"))?;
        let stream = self.connect(&origin).await?;
        let handshake = http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(broken)?;
        // Ended with the call, also by whoever stops waiting for it.
        let driver = AbortOnDrop(tokio::spawn(async move { drop(connection.await) }));
        let request = Request::builder().method(method).uri(path.as_str()).body(Full::new(body));
        let mut request = request.map_err(|_| "the request cannot be made".to_owned())?;
        *request.headers_mut() = headers.clone();
        request.headers_mut().insert(header::HOST, origin.authority_value().clone());
        let answer = sender.send_request(request).await.map_err(broken)?;
        let (head, body) = answer.into_parts();
        if !head.status.is_success() {
            let status = head.status.as_u16();
            let message = match status {
                401 | 403 => format!("it answered {status}: it needs credentials, or refuses these"),
                other => format!("it answered {other}"),
            };
            return Err(McpError { status: Some(status), message });
        }
        Ok(SentMessage { head, body, connection: HeldConnection { _sender: sender, _driver: driver } })
    }

    /// `id` is none for what has no answer.
    async fn send_message(
        &self,
        url: &str,
        headers: &HeaderMap,
        id: Option<u64>,
        message: &Value,
    ) -> Result<Exchange, McpError> {
        let sent = self.send(Method::POST, url, headers, Bytes::from(message.to_string())).await?;
        // The connection lives until the answer is read.
        let SentMessage { head, body, connection: _connection } = sent;
        let status = head.status.as_u16();
        let session = head.headers.get(SESSION).filter(|id| id.len() <= 1024).cloned();
        let Some(id) = id.filter(|_| status != 202) else { return Ok(Exchange { status, session, answer: None }) };
        let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let is_stream = kind.to_ascii_lowercase().starts_with("text/event-stream");
        let answer = read(body, is_stream, id).await.map_err(|message| McpError { status: Some(status), message })?;
        Ok(Exchange { status, session, answer })
    }
}

impl Exchange {
    fn result(&self, method: &str) -> Result<Value, McpError> {
        let status = Some(self.status);
        match &self.answer {
            Some(Answer::Result(result)) => Ok(result.clone()),
            Some(Answer::Refused { code }) => {
                Err(McpError { status, message: format!("it refused {method} with the code {code}") })
            }
            None => Err(McpError { status, message: format!("it did not answer {method} as the protocol says") }),
        }
    }
}

impl McpSession<'_> {
    async fn ask(&mut self, id: Option<u64>, message: &Value) -> Result<Exchange, McpError> {
        match &mut self.link {
            Some(link) => link.ask(self.outbound, &self.headers, id, message).await,
            None => self.outbound.send_message(self.url, &self.headers, id, message).await,
        }
    }

    /// Everything that it offers, each name once.
    pub async fn capabilities(&mut self) -> Result<Vec<Capability>, McpError> {
        self.ask(None, &mcp::initialized()).await?;
        let flags = self.info.clone();
        let mut found: Vec<Capability> = Vec::new();
        let mut id = 1;
        for kind in Kind::ALL.into_iter().filter(|kind| flags.has(*kind)) {
            let mut cursor: Option<String> = None;
            for page in 0.. {
                if page == PAGES {
                    return Err(format!("{} has more than {PAGES} pages", kind.method()).into());
                }
                id += 1;
                let asked = mcp::list(id, kind, cursor.as_deref());
                let met = self.ask(Some(id), &asked).await?;
                // Servers without templates often do not know the method.
                if kind == Kind::ResourceTemplate && met.answer == Some(Answer::Refused { code: -32601 }) {
                    break;
                }
                let page = ListPage::read(kind, met.result(kind.method())?).map_err(|fault| fault.to_string())?;
                found.extend(page.items);
                if found.len() > CAPABILITIES {
                    return Err(format!("it offers more than {CAPABILITIES} tools, prompts and resources").into());
                }
                match page.next {
                    Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                    Some(_) => return Err(format!("{} repeats a cursor", kind.method()).into()),
                    None => break,
                }
            }
        }
        let mut seen = std::collections::HashSet::new();
        found.retain(|one| seen.insert((one.kind.as_str(), one.name.clone())));
        Ok(found)
    }
}

/// The answer of this id in a body, of which at most `ANSWER_BYTES` are read.
async fn read(mut body: hyper::body::Incoming, is_stream: bool, id: u64) -> Result<Option<Answer>, String> {
    let too_long = || format!("its answer has more than {ANSWER_BYTES} bytes");
    let mut events = EventReader::new(ANSWER_BYTES);
    let (mut whole, mut length) = (Vec::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| "the answer broke off".to_owned())?;
        let Ok(piece) = frame.into_data() else { continue };
        length += piece.len();
        if length > ANSWER_BYTES {
            return Err(too_long());
        }
        if !is_stream {
            whole.extend_from_slice(&piece);
            continue;
        }
        for event in events.push(&piece).map_err(|_| too_long())? {
            let message = serde_json::from_str::<Value>(&event).unwrap_or_default();
            if let Some(answer) = mcp::answer_to(id, &message) {
                return Ok(Some(answer));
            }
        }
    }
    let message = serde_json::from_slice::<Value>(&whole).unwrap_or_default();
    Ok(mcp::answer_to(id, &message))
}
