//! One server for all servers of a workspace: tools, prompts and resources of each, with its slug before their names and in
//! their addresses. It answers what is asked of itself, asks all of them for lists, and passes a call on to the one that it
//! is for, where it is like any call.

use super::McpGateway;
use super::answers::{CallFailure, gone, write_whole};
use super::merged_upstream::GREETING;
use super::{ClientHeaders, McpRequest};
use crate::context::Visit;
use crate::engine::answer::with_heartbeats;
use crate::engine::{Delivered, refuse};
use crate::identity::identify::Principal;
use crate::mcp::{
    Asked, ClientMessage, Fault, INVALID_PARAMS, McpTarget, MergedPlace, MergedSession, Mirrored, RESOURCE_NOT_FOUND,
    SESSION_ID, SessionOwner, UpstreamCall, may_be_seen, merged_name, merged_place, merged_uri, split_name, split_uri,
};
use crate::net::downstream::Downstream;
use crate::request::refusal::{Refusal, RefusalCode};
use crate::routing::plan::Plan;
use bytes::Bytes;
use futures::StreamExt as _;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use parking_lot::Mutex;
use pingora_http::RequestHeader;
use serde_json::{Map, Value, json};
use shared::mcp::Kind;
use shared::model::id::UserId;
use std::pin::pin;
use std::sync::Arc;

/// Servers of one merged server, and how many are asked at a time.
const MAX_SERVERS: usize = 64;
const AT_ONCE: usize = 8;
/// Entries of a merged list.
const MAX_ENTRIES: usize = 5000;
const METHOD_NOT_FOUND: i64 = -32601;
/// The newest first; it is offered to who asks for one that is not among them.
const REVISIONS: [&str; 3] = ["2025-11-25", "2025-06-18", "2025-03-26"];

#[derive(Debug)]
pub struct MergedRequest {
    pub(super) caller: Principal,
    pub(super) user: Option<UserId>,
    pub(super) metadata: Map<String, Value>,
    pub(super) plan: Arc<Plan>,
    pub(super) headers: ClientHeaders,
    pub(super) targets: Vec<McpTarget>,
}

impl MergedRequest {
    /// As a request for one of the servers.
    fn at(&self, target: &McpTarget) -> McpRequest {
        McpRequest {
            caller: self.caller.clone(),
            user: self.user,
            metadata: self.metadata.clone(),
            plan: self.plan.clone(),
            headers: self.headers.clone(),
            claimed: Mutex::default(),
            target: target.clone(),
        }
    }

    fn owner(&self) -> SessionOwner {
        SessionOwner::new(&self.caller, self.caller.workspace.id.uuid())
    }

    fn targets(&self) -> &[McpTarget] {
        &self.targets[..self.targets.len().min(MAX_SERVERS)]
    }
}

impl McpGateway {
    /// The servers that are behind the merged one of a caller.
    pub(super) fn merged_targets(&self, caller: &Principal, user: Option<UserId>) -> Vec<McpTarget> {
        let mut targets = McpTarget::all(&self.snapshot, caller, user);
        // A session of the older transport is a connection, which none of its own could carry.
        targets.retain(|target| target.integration.transport != "sse");
        targets
    }

    pub(super) async fn run_merged(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &MergedRequest,
    ) -> Delivered {
        let sent = client.head().headers.get(&SESSION_ID).cloned();
        let session = match sent {
            None => MergedSession::default(),
            Some(sent) => {
                let opened = self.sessions.open(&asked.owner(), &sent);
                let Some(session) = opened.and_then(|opened| MergedSession::read(&opened)) else {
                    visit.observer.log = None;
                    return self.tell_failure(client, visit, None, &CallFailure::unknown_session()).await;
                };
                session
            }
        };
        let method = client.head().method.clone();
        match method {
            Method::POST => self.post_merged(client, visit, asked, &session).await,
            Method::GET => self.listen_merged(client, visit, asked).await,
            Method::DELETE => self.end_merged(client, visit, asked, &session).await,
            _ => {
                visit.observer.log = None;
                refuse(&self.metrics, client, visit, &Refusal::method_not_allowed(method.as_str())).await
            }
        }
    }

    async fn post_merged(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &MergedRequest,
        session: &MergedSession,
    ) -> Delivered {
        let received = match self.receive_message(client, visit, asked.caller.tenant()).await {
            Ok(received) => received,
            Err(delivered) => return delivered,
        };
        let message = &received.content;
        let Some(id) = message.id.clone() else {
            // What is said to no server in particular.
            visit.observer.log = None;
            return write_whole(client, visit, [202, 202], &[], Bytes::new()).await;
        };
        if merged_place(&message.asked).is_some() {
            return self.merged_call(client, visit, asked, session, message).await;
        }
        visit.observer.log = None;
        let head = client.head().clone();
        let answered = {
            let answer = pin!(self.answer_merged(&head, asked, session, message));
            match with_heartbeats(client, visit, answer).await {
                Ok(answered) => answered,
                Err(_) => return gone(visit),
            }
        };
        match answered {
            Ok((result, more)) => {
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
                write_whole(client, visit, [200, 200], &more, Bytes::from(body)).await
            }
            Err(failure) => self.tell_failure(client, visit, Some(&id), &failure).await,
        }
    }

    async fn merged_call(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &MergedRequest,
        session: &MergedSession,
        message: &ClientMessage,
    ) -> Delivered {
        let id = message.id.as_deref();
        let (target, message) = match at_its_server(message, asked.targets()) {
            Ok(found) => found,
            Err(fault) => {
                visit.observer.log = None;
                return self.tell_failure(client, visit, id, &CallFailure::unknown(fault)).await;
            }
        };
        let one = asked.at(target);
        let opened = match session.at(&target.server.slug) {
            Some(known) => Ok(known.map(str::to_owned)),
            None => {
                let head = client.head().clone();
                let opened = pin!(self.greet(&head, &one));
                match with_heartbeats(client, visit, opened).await {
                    Ok(opened) => opened,
                    Err(_) => return gone(visit),
                }
            }
        };
        match opened {
            Ok(opened) => {
                self.single(client, visit, &one, opened.as_deref().map(str::as_bytes), &message, Mirrored::default())
                    .await
            }
            Err(failure) => self.tell_failure(client, visit, id, &failure).await,
        }
    }

    /// What is asked of the merged server itself: the result, and headers that go with it.
    async fn answer_merged(
        &self,
        head: &RequestHeader,
        asked: &MergedRequest,
        session: &MergedSession,
        message: &ClientMessage,
    ) -> Result<(Value, Vec<(HeaderName, HeaderValue)>), CallFailure> {
        match &message.asked {
            Asked::Initialize => self.greet_all(head, asked, message).await,
            Asked::Ping => Ok((json!({}), Vec::new())),
            Asked::List(kind) => {
                let entries = self.merged_list(head, asked, session, *kind).await?;
                Ok((json!({ kind.field(): entries }), Vec::new()))
            }
            Asked::Invalid(why) => Err(CallFailure::unknown(Fault::new(INVALID_PARAMS, why.clone()))),
            _ => {
                let why = "the merged server has tools, prompts and resources; other things are asked of /{slug}/mcp";
                Err(CallFailure::unknown(Fault::new(METHOD_NOT_FOUND, why)))
            }
        }
    }

    /// Opens a session at each server that answers.
    async fn greet_all(
        &self,
        head: &RequestHeader,
        asked: &MergedRequest,
        message: &ClientMessage,
    ) -> Result<(Value, Vec<(HeaderName, HeaderValue)>), CallFailure> {
        let wanted: Value = serde_json::from_slice(&message.bytes).unwrap_or_default();
        let wanted = wanted["params"]["protocolVersion"].as_str().unwrap_or_default();
        let revision = REVISIONS.iter().find(|known| **known == wanted).unwrap_or(&REVISIONS[0]);
        let greetings: Vec<_> = asked
            .targets()
            .iter()
            .map(|target| async move { (target, self.greet(head, &asked.at(target)).await) })
            .collect();
        let greeted: Vec<_> = futures::stream::iter(greetings).buffered(AT_ONCE).collect().await;
        let mut session = MergedSession::default();
        let mut instructions =
            "Tools, prompts and resources of several servers; each name begins with that of its server.".to_owned();
        for (target, greeted) in greeted {
            let slug = &target.server.slug;
            match greeted {
                Ok(id) => session.add(slug, id),
                Err(failure) => {
                    tracing::debug!(server = slug, why = failure.fault.message, "a server does not answer a greeting");
                    instructions.push_str(&format!(" {slug} does not answer now."));
                }
            }
        }
        let Some(sealed) = self.sessions.seal(&asked.owner(), &session.write()) else {
            let message = "the session cannot be kept: the gateway has no master key";
            return Err(CallFailure::upstream(message, 502, RefusalCode::InternalError));
        };
        let result = json!({
            "protocolVersion": revision,
            "capabilities": {
                "tools": { "listChanged": true }, "prompts": { "listChanged": true },
                "resources": { "listChanged": true }, "completions": {},
            },
            "serverInfo": { "name": "portcullis", "version": env!("CARGO_PKG_VERSION") },
            "instructions": instructions,
        });
        Ok((result, vec![(SESSION_ID.clone(), sealed)]))
    }

    /// What all servers offer of a kind. One that does not answer is left out; if none does, that is told.
    async fn merged_list(
        &self,
        head: &RequestHeader,
        asked: &MergedRequest,
        session: &MergedSession,
        kind: Kind,
    ) -> Result<Vec<Value>, CallFailure> {
        let questions: Vec<_> = asked
            .targets()
            .iter()
            .map(|target| async move {
                let known = session.at(&target.server.slug);
                (target, self.list_of(head, &asked.at(target), known, kind).await)
            })
            .collect();
        let lists: Vec<_> = futures::stream::iter(questions).buffered(AT_ONCE).collect().await;
        let (mut merged, mut failed, mut has_any) = (Vec::new(), None, lists.is_empty());
        for (target, list) in lists {
            match list {
                Err(failure) => failed = Some(failure),
                Ok(entries) => {
                    has_any = true;
                    merged.extend(entries.iter().filter_map(|entry| renamed_entry(target, kind, entry)));
                    self.report_changes(target);
                }
            }
        }
        match failed.filter(|_| !has_any) {
            Some(failure) => Err(failure),
            None => {
                merged.truncate(MAX_ENTRIES);
                Ok(merged)
            }
        }
    }

    /// Every server is told; whether it listens is its own matter.
    async fn end_merged(
        &self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        asked: &MergedRequest,
        session: &MergedSession,
    ) -> Delivered {
        visit.observer.log = None;
        let head = client.head().clone();
        let farewells: Vec<_> =
            asked.targets().iter().map(|target| self.end_one(&head, asked.at(target), session)).collect();
        let ends = futures::stream::iter(farewells).buffer_unordered(AT_ONCE).collect::<Vec<()>>();
        if with_heartbeats(client, visit, pin!(ends)).await.is_err() {
            return gone(visit);
        }
        write_whole(client, visit, [200, 200], &[], Bytes::new()).await
    }

    async fn end_one(&self, head: &RequestHeader, one: McpRequest, session: &MergedSession) {
        let Some(Some(id)) = session.at(&one.target.server.slug) else { return };
        let (Ok(endpoint), Ok(own)) = (self.endpoint(&one), self.mcp_headers(head, &one).await) else { return };
        let call = UpstreamCall::new(Method::DELETE, &HeaderMap::new(), Some(id.as_bytes()), &own, Bytes::new())
            .within(GREETING, GREETING);
        let _ = self.ask_server(&one, &endpoint, &call, false).await;
    }
}

/// The server that a message is for, and the message as that one knows it.
fn at_its_server<'t>(
    message: &ClientMessage,
    targets: &'t [McpTarget],
) -> Result<(&'t McpTarget, ClientMessage), Fault> {
    let Some(MergedPlace { name, is_address, pointer }) = merged_place(&message.asked) else {
        return Err(Fault::new(METHOD_NOT_FOUND, "it is for no server"));
    };
    let found = if is_address { split_uri(name, targets) } else { split_name(name, targets) };
    let Some((target, own)) = found else {
        return Err(match is_address {
            true => Fault::new(RESOURCE_NOT_FOUND, format!("Resource not found: {name}")),
            false => Fault::new(INVALID_PARAMS, format!("Unknown tool or prompt: {name}")),
        });
    };
    let mut sent: Value = serde_json::from_slice(&message.bytes).unwrap_or_default();
    if let Some(place) = sent.pointer_mut(pointer) {
        *place = own.into();
    }
    let asked = message.asked.with_name(own);
    let (id, method) = (message.id.clone(), message.method.clone());
    Ok((target, ClientMessage { id, method, asked, bytes: Bytes::from(sent.to_string()) }))
}

/// An entry as the merged server lists it; none for what may not be seen.
fn renamed_entry(target: &McpTarget, kind: Kind, entry: &Map<String, Value>) -> Option<Value> {
    let mut entry = Value::Object(entry.clone());
    if !may_be_seen(kind, &entry, &target.visible) {
        return None;
    }
    let slug = &target.server.slug;
    entry["name"] = merged_name(slug, entry["name"].as_str()?).into();
    let address = match kind {
        Kind::Tool | Kind::Prompt | Kind::Instructions => return Some(entry),
        Kind::Resource => "uri",
        Kind::ResourceTemplate => "uriTemplate",
    };
    entry[address] = merged_uri(slug, entry[address].as_str()?).into();
    Some(entry)
}
