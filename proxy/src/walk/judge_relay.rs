//! Guardrails of organisation and workspace on the relay lane. Its bodies are of any form, so that a body of JSON is read strictly
//! and every text in it judged; what cannot be judged is refused, unless the organisation allows its path
//! (`relay_with_guardrails`). Nothing is changed there: what a guardrail would change is refused too. Answers are passed on as they
//! come and judged by nobody, so that where guardrails must see them the call is refused before it is made.

use super::guards::{GuardSet, ModelCalls};
use super::read_ahead::has_body;
use super::translate::memory_to_translate;
use super::{Engine, RelayAsk, Router};
use crate::guardrails::{
    CompiledHook, ModelAsker, RemoteSide, SideJob, both_sides, has_remote, must_read, read_request, request_type,
};
use crate::identity::identify::Principal;
use crate::journal::HookLog;
use crate::refusal::Refusal;
use crate::request::receive::OwnedShare;
use crate::runtime::heavy::heavy;
use crate::visit::Visit;
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use pingora_http::RequestHeader;
use serde_json::{Map, Value};
use shared::guardrails::{Hook, Shape};
use shared::providers::Family;
use std::sync::Arc;

/// A longer body cannot be sent on once it was read to its end.
pub(super) const MAX_BODY_LENGTH: usize = super::read_ahead::MOST;

/// A relayed request whose body guardrails look into.
#[derive(Debug)]
pub(super) struct RelayJudge {
    set: Arc<GuardSet>,
    /// What cannot be read passes.
    is_allowed: bool,
}

/// What a relayed request brings, as far as its head says it.
#[derive(Debug, PartialEq, Eq)]
enum Content {
    Nothing,
    Json,
    Unreadable(&'static str),
}

impl Router {
    /// None where nothing has to be judged. An error says why it cannot be.
    pub(super) fn relay_judge(&self, ask: &RelayAsk, head: &RequestHeader) -> Result<Option<RelayJudge>, Refusal> {
        let Some(set) = self.guards.defaults(&ask.caller) else { return Ok(None) };
        if !set.input.iter().chain(&set.output).any(|hook| hook.reads_bodies()) {
            return Ok(None);
        }
        let content = content(head);
        if content == Content::Nothing && is_reading(&head.method) {
            return Ok(None);
        }
        let organisation = &ask.caller.workspace.organisation_id;
        let is_allowed = self.snapshot.organisation_is(organisation, |whole| whole.relays_unjudged(&ask.path));
        if must_read(&set.output) && !is_allowed {
            return Err(Refusal::unreadable("its answer would be passed on as it comes"));
        }
        match content {
            Content::Unreadable(why) if must_read(&set.input) && !is_allowed => Err(Refusal::unreadable(why)),
            Content::Json if set.input.iter().any(|hook| hook.reads_bodies()) => {
                Ok(Some(RelayJudge { set, is_allowed }))
            }
            _ => Ok(None),
        }
    }
}

impl RelayJudge {
    /// Of a body that was not read whole.
    pub fn check_unread(&self) -> Result<(), Refusal> {
        match must_read(&self.set.input) && !self.is_allowed {
            true => {
                Err(Refusal::unreadable(format!("it is longer than the {MAX_BODY_LENGTH} bytes that are read of it")))
            }
            false => Ok(()),
        }
    }
}

impl Engine {
    /// Judges a whole body of JSON. True where a guardrail failed that does not deny.
    pub(super) async fn judge_relayed(
        &self,
        judge: &RelayJudge,
        (path, caller, metadata): (&str, &Principal, &Map<String, Value>),
        head: &RequestHeader,
        body: &Bytes,
        visit: &mut Visit,
    ) -> Result<bool, Refusal> {
        if body.trim_ascii().is_empty() {
            return Ok(false);
        }
        let hooks: Vec<Arc<CompiledHook>> =
            judge.set.input.iter().filter(|hook| hook.reads_bodies()).cloned().collect();
        let tenant = caller.tenant();
        let mut share = OwnedShare::none(self.body_limits.memory.clone(), tenant);
        share.grow(memory_to_translate(body))?;
        let (shape, is_strict) = (dialect(path), must_read(&hooks));
        let bytes = body.clone();
        let reading = heavy(tenant, move || (read_request(&bytes, shape, is_strict), share)).await;
        let (read, share) = reading.ok_or_else(Refusal::internal)?;
        let request = match read {
            Ok(request) => Arc::new(request),
            Err(_) if judge.is_allowed || !is_strict => return Ok(false),
            Err(refusal) => return Err(Refusal::unreadable(refusal.message)),
        };
        let job = SideJob {
            hooks: hooks.clone(),
            hook: Hook::BeforeRequest,
            shape,
            request_type: request_type(Family::from_path(&head.method, path), &head.method, false),
            request: request.clone(),
            body: request,
            metadata: Arc::new(metadata.clone()),
            headers: Arc::new(head.headers.clone()),
            text: None,
            status: None,
            size: body.len(),
            meters: self.metrics.guardrails.clone(),
        };
        let side = match has_remote(&hooks) {
            true => match self.relay_remote(caller, metadata, head, visit) {
                Some(remote) => Box::pin(job.run(remote)).await,
                None => heavy(tenant, move || job.run_alone()).await,
            },
            false => heavy(tenant, move || job.run_alone()).await,
        };
        drop(share);
        let side = side.ok_or_else(Refusal::internal)?;
        visit.checked(Some(HookLog { results: both_sides(&side.logged(), "[]"), late: None }));
        if let Some(place) = side.denied_by {
            self.metrics.guardrails.denies("input");
            let message = hooks.get(place).and_then(|hook| hook.actions.message.clone());
            return Err(Refusal::denied_by_guardrail(message, &both_sides(&side.told(), "[]")));
        }
        match side.transformed.is_some() && !judge.is_allowed {
            true => Err(Refusal::unreadable("a guardrail would change it, and what is relayed is not changed")),
            false => Ok(side.is_failed),
        }
    }

    fn relay_remote(
        &self,
        caller: &Principal,
        metadata: &Map<String, Value>,
        head: &RequestHeader,
        visit: &mut Visit,
    ) -> Option<Arc<RemoteSide>> {
        let trace_id = visit.request.trace_id().to_str().unwrap_or_default().to_owned();
        let models = self.router.guards.engine().map(|engine| ModelCalls {
            engine,
            caller: caller.clone(),
            metadata: metadata.clone(),
            trace_id: trace_id.clone(),
            is_untracked: false,
        });
        Some(Arc::new(RemoteSide {
            asker: self.router.guards.asker.clone()?,
            organisation: caller.workspace.organisation_id,
            workspace: caller.workspace.id,
            provider: String::new(),
            trace_id,
            models: models.map(|models| Arc::new(models) as Arc<dyn ModelAsker>),
            headers: self.forwardable_headers(&head.headers),
        }))
    }
}

/// What only asks for what is there.
fn is_reading(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS | Method::DELETE)
}

fn content(head: &RequestHeader) -> Content {
    let headers = &head.headers;
    if headers.contains_key(header::UPGRADE) || headers.contains_key(header::SEC_WEBSOCKET_KEY) {
        return Content::Unreadable("what is said in a session is passed on as it comes");
    }
    // A client of HTTP/2 need not say that it sends nothing.
    if !has_body(head) || is_reading(&head.method) && !says_length(headers) {
        return Content::Nothing;
    }
    let is_plain = |value: &http::HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"identity");
    if !headers.get_all(header::CONTENT_ENCODING).iter().all(is_plain) {
        return Content::Unreadable("it is compressed");
    }
    let mut kinds = headers.get_all(header::CONTENT_TYPE).iter();
    match (kinds.next(), kinds.next()) {
        (None, _) => Content::Json,
        (Some(kind), None) if is_json(kind.as_bytes()) => Content::Json,
        _ => Content::Unreadable("it is no JSON"),
    }
}

fn says_length(headers: &HeaderMap) -> bool {
    headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING)
}

fn is_json(kind: &[u8]) -> bool {
    let kind = kind.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii().to_ascii_lowercase();
    kind == b"application/json" || kind.ends_with(b"+json") || kind == b"text/json"
}

/// The form of a body by how the path of its provider ends, for checks of the last message. Whoever looks for something
/// forbidden sees every text, whatever the form.
fn dialect(path: &str) -> Shape {
    let path = path.trim_end_matches('/');
    let ends = [
        ("/chat/completions", Shape::Chat),
        ("/completions", Shape::Completions),
        ("/messages", Shape::Messages),
        ("/responses", Shape::Responses),
        ("/embeddings", Shape::Embeddings),
        (":generateContent", Shape::Gemini),
        (":streamGenerateContent", Shape::Gemini),
        ("/converse", Shape::Converse),
        ("/converse-stream", Shape::Converse),
    ];
    ends.into_iter().find(|(end, _)| path.ends_with(end)).map_or(Shape::Other, |(_, shape)| shape)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_json_by_its_head_can_be_judged() {
        let json = ("content-type", "application/json");
        let length = ("content-length", "9");
        for (method, headers, expected) in [
            ("POST", vec![json, length], Some(true)),
            ("POST", vec![("content-type", "application/json; charset=utf-8"), length], Some(true)),
            ("POST", vec![("content-type", "application/vnd.x+json"), length], Some(true)),
            ("POST", vec![length], Some(true)),
            ("POST", vec![("content-length", "0")], None),
            ("GET", vec![], None),
            ("DELETE", vec![], None),
            ("GET", vec![json, length], Some(true)),
            ("POST", vec![("content-type", "multipart/form-data; boundary=json"), length], Some(false)),
            ("POST", vec![("content-type", "text/plain"), length], Some(false)),
            ("PUT", vec![("content-type", "application/octet-stream"), ("transfer-encoding", "chunked")], Some(false)),
            ("POST", vec![json, ("content-type", "text/plain"), length], Some(false)),
            ("POST", vec![json, length, ("content-encoding", "gzip")], Some(false)),
            ("GET", vec![("upgrade", "websocket")], Some(false)),
        ] {
            let mut head = RequestHeader::build(method, b"/v1/x", None).unwrap();
            for (name, value) in &headers {
                head.append_header(*name, *value).unwrap();
            }
            let found = match content(&head) {
                Content::Nothing => None,
                Content::Json => Some(true),
                Content::Unreadable(_) => Some(false),
            };
            assert_eq!(found, expected, "{method} {headers:?}");
        }
    }
}
