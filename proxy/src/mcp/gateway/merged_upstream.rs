//! The gateway itself as a client of the servers behind a merged one: it greets them, and asks for their lists.

use super::McpGateway;
use super::McpRequest;
use super::answers::CallFailure;
use super::upstream::ServerAnswer;
use crate::guardrails::parse_unique;
use crate::mcp::{ListCache, ListEntries, MAX_LIST, PROTOCOL_VERSION, SESSION_ID, UpstreamCall};
use crate::wire::sse::{Splitter, events};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method};
use pingora_http::RequestHeader;
use serde_json::Value;
use shared::mcp::{self, Answer, Kind, ListPage, ServerInfo};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For each request to a server.
pub(super) const GREETING: Duration = Duration::from_secs(10);
/// Pages of one list, and entries of it.
const PAGES: usize = 20;
const MAX_ENTRIES: usize = 2000;
const MAX_ID: usize = 1024;

impl McpGateway {
    /// Opens a session. None where the server has none.
    pub(super) async fn greet(&self, head: &RequestHeader, asked: &McpRequest) -> Result<Option<String>, CallFailure> {
        let (answer, session) = self.ask_own(head, asked, None, &HeaderMap::new(), 1, &mcp::initialize(1)).await?;
        let info = ServerInfo::from_result(&result(answer)?);
        let revision = info.protocol_version.as_deref().unwrap_or(mcp::REVISION);
        let revision = HeaderValue::try_from(revision).map_err(|_| CallFailure::unusable("it names no revision"))?;
        let headers = HeaderMap::from_iter([(PROTOCOL_VERSION.clone(), revision)]);
        self.ask_own(head, asked, session.as_deref(), &headers, 0, &mcp::initialized()).await?;
        Ok(session)
    }

    /// Everything that a server lists of a kind, as it was a moment ago. `known` is its session, if one was opened.
    pub(super) async fn list_of(
        &self,
        head: &RequestHeader,
        asked: &McpRequest,
        known: Option<Option<&str>>,
        kind: Kind,
    ) -> Result<ListEntries, CallFailure> {
        let (version, now) = (self.snapshot.progress().version, Instant::now());
        let (tenant, own) = (asked.caller.tenant(), asked.caller.key.id.uuid());
        let key = ListCache::key(tenant, asked.target.server.id, own, kind);
        if let Some(cached) = self.lists.find(&key, version, now) {
            return Ok(cached);
        }
        let session = match known {
            Some(session) => session.map(str::to_owned),
            None => self.greet(head, asked).await?,
        };
        let mut entries = Vec::new();
        let mut cursor: Option<String> = None;
        for page in 0..PAGES {
            let id = page as u64 + 2;
            let message = mcp::list(id, kind, cursor.as_deref());
            let (answer, _) = self.ask_own(head, asked, session.as_deref(), &HeaderMap::new(), id, &message).await?;
            // A server without any often does not know the method.
            if answer == Some(Answer::Refused { code: -32601 }) {
                break;
            }
            let page = ListPage::read(kind, result(answer)?).map_err(CallFailure::unusable)?;
            entries.extend(page.items.into_iter().map(|item| item.definition));
            if entries.len() > MAX_ENTRIES {
                return Err(CallFailure::unusable(format!("its list has more than {MAX_ENTRIES} entries")));
            }
            match page.next {
                Some(next) if cursor.as_ref() != Some(&next) => cursor = Some(next),
                _ => break,
            }
        }
        let entries = Arc::new(entries);
        self.lists.keep(key, version, &entries, now);
        Ok(entries)
    }

    /// One message of our own; the answer to it, and the session that it opened.
    async fn ask_own(
        &self,
        head: &RequestHeader,
        asked: &McpRequest,
        session: Option<&str>,
        headers: &HeaderMap,
        id: u64,
        message: &Value,
    ) -> Result<(Option<Answer>, Option<String>), CallFailure> {
        let endpoint = self.endpoint(asked)?;
        let own = self.mcp_headers(head, asked).await?;
        let session = session.map(str::as_bytes);
        let call = UpstreamCall::new(Method::POST, headers, session, &own, Bytes::from(message.to_string()))
            .within(GREETING, GREETING);
        let answer = self.ask_server(asked, &endpoint, &call, true).await?;
        let (ServerAnswer::Accepted(upstream) | ServerAnswer::Json(upstream) | ServerAnswer::Events(upstream)) =
            &answer;
        let given = upstream.head().headers.get(&SESSION_ID).filter(|id| id.len() <= MAX_ID);
        let given = given.and_then(|id| id.to_str().ok()).map(str::to_owned);
        let answered = match answer {
            ServerAnswer::Accepted(upstream) => {
                upstream.release();
                None
            }
            ServerAnswer::Json(upstream) => {
                let body = self.read_whole(asked, upstream, MAX_LIST).await?;
                mcp::answer_to(id, &parse_unique(&body).unwrap_or_default())
            }
            ServerAnswer::Events(mut upstream) => {
                let mut splitter = Splitter::new(self.body_limits.owner(&asked.caller.workspace));
                let mut length = 0;
                loop {
                    let piece = upstream.read_body().await.map_err(|error| CallFailure::of_upstream(&error))?;
                    let Some(piece) = piece else { break None };
                    length += piece.len();
                    if length > MAX_LIST {
                        return Err(CallFailure::unusable(format!("it has more than {MAX_LIST} bytes")));
                    }
                    let whole = splitter.push(piece).map_err(CallFailure::unheld)?;
                    let mut messages = events(&whole).map(|event| parse_unique(&event.data).unwrap_or_default());
                    if let Some(answer) = messages.find_map(|message: Value| mcp::answer_to(id, &message)) {
                        break Some(answer);
                    }
                }
            }
        };
        Ok((answered, given))
    }
}

fn result(answer: Option<Answer>) -> Result<Value, CallFailure> {
    match answer {
        Some(Answer::Result(result)) => Ok(result),
        Some(Answer::Refused { code }) => Err(CallFailure::unusable(format!("it refuses with the code {code}"))),
        None => Err(CallFailure::unusable("it does not answer the request")),
    }
}
