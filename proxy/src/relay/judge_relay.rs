//! Guardrails of organisation and workspace on the relay lane. Its bodies are of any form, so that a body of JSON is read strictly
//! and every text in it judged; what cannot be judged is refused, unless the organisation allows its path
//! (`relay_with_guardrails`). Answers likewise, before anything of them leaves (`relayed_answer` says what can be read of
//! them). Nothing is changed there: what a guardrail would change is refused too.

use super::relayed_answer::{self, AnswerForm, ReadAnswer, Readable, Unread, is_json};
use super::{RelayAsk, RelayLane};
use crate::context::Visit;
use crate::engine::Router;
use crate::engine::guard::forwardable_headers;
use crate::engine::guards::{GuardSet, ModelCalls};
use crate::engine::translate::memory_to_translate;
use crate::guardrails::{
    CompiledHook, ModelAsker, RemoteSide, SideJob, SideResult, both_sides, both_sides_logged, has_remote, must_read,
    read_request, request_type,
};
use crate::identity::identify::Principal;
use crate::journal::HookLog;
use crate::request::past_the_gateway::leads_past_the_gateway;
use crate::request::receive::has_body;
use crate::request::receive::{MemoryOwner, OwnedShare};
use crate::request::refusal::Refusal;
use crate::runtime::heavy::heavy;
use crate::wire::framing::compression::ContentEncoding;
use bytes::Bytes;
use http::{HeaderMap, Method, header};
use pingora_http::{RequestHeader, ResponseHeader};
use serde_json::{Map, Value};
use shared::guardrails::{Hook, Scope, Shape, TextPlaces};
use shared::providers::Family;
use std::sync::Arc;

/// A longer body is not held to be judged.
pub(super) const MAX_JUDGED_BODY: usize = 1 << 20;

/// A relayed request that guardrails look into, or into its answer.
#[derive(Debug)]
pub struct RelayJudge {
    set: Arc<GuardSet>,
    /// What cannot be read passes.
    is_allowed: bool,
    /// It says that it brings JSON, and a hook looks into it.
    reads_request: bool,
    pub reads_answer: bool,
    /// What it brings if anything follows its head, which does not say it: only its stream knows (`once_known`).
    unsaid: Option<Content>,
}

/// What a relayed request is about: its path, whose it is, and what it says of itself.
pub(crate) type RelayAbout<'a> = (&'a str, &'a Principal, &'a Map<String, Value>);

/// A request as hooks have judged it, for those of its answer.
#[derive(Debug, Default)]
pub(crate) struct JudgedRequest {
    body: Arc<Value>,
    length: usize,
    side: SideResult,
    /// What it takes in memory.
    _share: Option<OwnedShare>,
}

impl JudgedRequest {
    /// A guardrail failed that does not deny.
    pub fn is_failed(&self) -> bool {
        self.side.is_failed
    }
}

/// A whole relayed answer.
#[derive(Debug, Clone)]
pub(crate) struct RelayedAnswer {
    pub body: Bytes,
    pub form: AnswerForm,
    pub encoding: Option<ContentEncoding>,
    pub status: u16,
}

/// What hooks say of an answer.
#[derive(Debug)]
pub(crate) enum AnswerVerdict {
    /// True where a guardrail failed that does not deny.
    Passes(bool),
    /// With the answer as it reads, for what it cost.
    Refused(Refusal, Bytes),
}

/// What becomes of an answer, by its head.
#[derive(Debug)]
pub(super) enum AnswerPlan {
    Pass,
    Judge(AnswerForm, Option<ContentEncoding>),
    Withhold(Refusal),
}

/// What a relayed request brings, as far as its head says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    Nothing,
    Json,
    Unreadable(&'static str),
}

impl Router {
    /// None where nothing has to be judged. An error says why it cannot be.
    pub fn relay_judge(&self, ask: &RelayAsk, head: &RequestHeader) -> Result<Option<RelayJudge>, Refusal> {
        let Some(set) = self.guards.defaults(&ask.caller) else { return Ok(None) };
        let [reads_request, reads_answer] =
            [&set.input, &set.output].map(|hooks| hooks.iter().any(|hook| hook.reads_bodies()));
        if !reads_request && !reads_answer {
            return Ok(None);
        }
        let content = match content(head) {
            _ if leads_past_the_gateway(&head.method, &ask.path) => {
                Content::Unreadable("what is said in a session beside the gateway is not read")
            }
            Content::Nothing if is_reading(&head.method) => return Ok(None),
            // Its answer has a length and no body, which the engine's connections do not expect.
            _ if head.method == Method::HEAD => Content::Unreadable("it asks for a head with a body"),
            content => content,
        };
        let organisation = &ask.caller.workspace.organisation_id;
        let is_allowed = self.snapshot.organisation_is(organisation, |whole| whole.relays_unjudged(&ask.path));
        let reads_request = reads_request && content == Content::Json;
        let unsaid = is_unsaid(head).then_some(content);
        let judge = RelayJudge { set, is_allowed, reads_request, reads_answer, unsaid };
        match content {
            _ if unsaid.is_some() => Ok(Some(judge)),
            Content::Unreadable(why) => judge.check_unread(why).map(|()| None),
            Content::Json | Content::Nothing => Ok(Some(judge).filter(|_| reads_request || reads_answer)),
        }
    }
}

impl RelayJudge {
    /// The same once it is known whether anything follows the head. None where nothing has to be judged.
    pub fn once_known(self, brings_body: bool) -> Result<Option<Self>, Refusal> {
        match self.unsaid {
            Some(_) if !brings_body => Ok(None),
            Some(Content::Unreadable(why)) => self.check_unread(why).map(|()| None),
            _ => Ok(Some(self)),
        }
    }

    /// Whether a body that turned out to be empty is none at all.
    pub fn is_unsaid(&self) -> bool {
        self.unsaid.is_some()
    }

    /// Of a request that cannot be judged: where it passes, its answer does too.
    pub fn check_unread(&self, why: impl std::fmt::Display) -> Result<(), Refusal> {
        match !self.is_allowed && (must_read(&self.set.input) || must_read(&self.set.output)) {
            true => Err(Refusal::unreadable(why)),
            false => Ok(()),
        }
    }

    /// Of a body that was not read whole.
    pub fn check_long(&self) -> Result<(), Refusal> {
        self.check_unread(format_args!("it is longer than the {MAX_JUDGED_BODY} bytes that are read of it"))
    }

    pub(super) fn plan_answer(&self, head: &ResponseHeader) -> AnswerPlan {
        match Readable::from_head(head) {
            _ if !self.reads_answer => AnswerPlan::Pass,
            Readable::Nothing => AnswerPlan::Pass,
            // What neither denies nor changes anything is not worth the wait.
            Readable::Whole(AnswerForm::Events, _) if !must_read(&self.set.output) => AnswerPlan::Pass,
            Readable::Whole(form, encoding) => AnswerPlan::Judge(form, encoding),
            Readable::No(why) => self.check_answer(why).map_or_else(AnswerPlan::Withhold, |()| AnswerPlan::Pass),
        }
    }

    /// Of an answer that cannot be judged.
    pub fn check_answer(&self, why: impl std::fmt::Display) -> Result<(), Refusal> {
        match !self.is_allowed && must_read(&self.set.output) {
            true => Err(Refusal::unreadable(why)),
            false => Ok(()),
        }
    }
}

impl RelayLane {
    /// Judges a whole body.
    pub(crate) async fn judge_relayed(
        &self,
        judge: &RelayJudge,
        about: RelayAbout<'_>,
        head: &RequestHeader,
        body: &Bytes,
        visit: &mut Visit,
    ) -> Result<JudgedRequest, Refusal> {
        let (path, caller, _) = about;
        if body.trim_ascii().is_empty() || !judge.reads_request && !is_declared_json(head) {
            return Ok(JudgedRequest::default());
        }
        let hooks = match judge.reads_request {
            true => reading(&judge.set.input),
            false => Vec::new(),
        };
        let tenant = caller.tenant();
        let mut share = OwnedShare::none(self.body_limits.memory.clone(), tenant);
        share.grow(memory_to_translate(body))?;
        let (shape, is_strict) = (dialect(path), must_read(&hooks));
        let (bytes, replacing) = (body.clone(), hooks.clone());
        let read = heavy(tenant, move || {
            let read = read_request(&bytes, shape, is_strict);
            let is_changed =
                read.as_ref().is_ok_and(|request| shape == Shape::Other && would_change(&replacing, request));
            (read, is_changed, share)
        });
        let (read, is_changed, share) = read.await.ok_or_else(Refusal::internal)?;
        let request = match read {
            Ok(request) => Arc::new(request),
            Err(_) if judge.is_allowed || !is_strict => return Ok(JudgedRequest::default()),
            Err(refusal) => return Err(Refusal::unreadable(refusal.message)),
        };
        let mut judged = JudgedRequest {
            body: request.clone(),
            length: body.len(),
            side: SideResult::default(),
            _share: Some(share),
        };
        if hooks.is_empty() {
            return Ok(judged);
        }
        let kind = RelayKind { hook: Hook::BeforeRequest, shape, status: None };
        let job = self.relay_job(hooks.clone(), kind, about, head, (request.clone(), request, body.len()));
        let side = self.run_relay_job(job, about, head, visit).await?;
        visit.checked(Some(HookLog { results: both_sides(&side.logged(), NONE), late: None }));
        if let Some(place) = side.denied_by {
            self.metrics.guardrails.denies("input");
            let message = hooks.get(place).and_then(|hook| hook.actions.message.clone());
            return Err(Refusal::denied_by_guardrail(message, &both_sides(&side.to_json(), NONE)));
        }
        if (side.transformed.is_some() || is_changed) && !judge.is_allowed {
            return Err(Refusal::unreadable("a guardrail would change it, and what is relayed is not changed"));
        }
        judged.side = side;
        Ok(judged)
    }

    /// Judges a whole answer with a success status.
    pub(crate) async fn judge_relayed_answer(
        &self,
        judge: &RelayJudge,
        about: RelayAbout<'_>,
        head: &RequestHeader,
        request: &JudgedRequest,
        answer: RelayedAnswer,
        visit: &mut Visit,
    ) -> Result<AnswerVerdict, Refusal> {
        let (path, caller, _) = about;
        let (tenant, dialect, form, status) = (caller.tenant(), dialect(path), answer.form, answer.status);
        let memory = self.body_limits.memory.clone();
        let read = heavy(tenant, move || {
            let owner = MemoryOwner { memory: &memory, tenant };
            let mut share = owner.share();
            let plain = relayed_answer::inflate(answer.body, answer.encoding, owner, &mut share);
            let plain = plain.map_err(|why| (why, Bytes::new()))?;
            match relayed_answer::read(&plain, form, dialect, &mut share) {
                Ok(read) => Ok((read, plain, share)),
                Err(why) => Err((why, plain)),
            }
        });
        let (read, plain, share) = match read.await.ok_or_else(Refusal::internal)? {
            Ok((Some(read), plain, share)) => (read, plain, share),
            Ok((None, ..)) => return Ok(AnswerVerdict::Passes(false)),
            Err((Unread::NoRoom(why), plain)) => return Ok(AnswerVerdict::Refused(why.into(), plain)),
            Err((Unread::Unreadable(why), plain)) => {
                return Ok(match judge.check_answer(why) {
                    Ok(()) => AnswerVerdict::Passes(false),
                    Err(refusal) => AnswerVerdict::Refused(refusal, plain),
                });
            }
        };
        let hooks = reading(&judge.set.output);
        let ReadAnswer { json, shape } = read;
        let kind = RelayKind { hook: Hook::AfterRequest, shape, status: Some(status) };
        let size = request.length + plain.len();
        let job = self.relay_job(hooks.clone(), kind, about, head, (request.body.clone(), Arc::new(json), size));
        let side = self.run_relay_job(job, about, head, visit).await?;
        drop(share);
        visit.checked(Some(HookLog { results: both_sides_logged(&request.side, Some(&side)), late: None }));
        // A hook that only reports on streams denies none.
        let stops = |hook: &CompiledHook| form == AnswerForm::Json || hook.stops_streams();
        let denied = hooks.iter().zip(&side.hooks).find(|(hook, result)| result.deny && stops(hook));
        if let Some((hook, _)) = denied {
            self.metrics.guardrails.denies("output");
            let results = both_sides(&request.side.to_json(), &side.to_json());
            return Ok(AnswerVerdict::Refused(
                Refusal::denied_by_guardrail(hook.actions.message.clone(), &results),
                plain,
            ));
        }
        if side.transformed.is_some() && !judge.is_allowed {
            let why = "a guardrail would change its answer, and what is relayed is not changed";
            return Ok(AnswerVerdict::Refused(Refusal::unreadable(why), plain));
        }
        Ok(AnswerVerdict::Passes(side.is_failed))
    }

    /// `judged` is the request, what is judged, and its size.
    fn relay_job(
        &self,
        hooks: Vec<Arc<CompiledHook>>,
        kind: RelayKind,
        (path, _, metadata): RelayAbout<'_>,
        head: &RequestHeader,
        (request, body, size): (Arc<Value>, Arc<Value>, usize),
    ) -> SideJob {
        SideJob {
            hooks,
            hook: kind.hook,
            shape: kind.shape,
            request_type: request_type(Family::from_path(&head.method, path), &head.method, false),
            request,
            body,
            metadata: Arc::new(metadata.clone()),
            headers: Arc::new(head.headers.clone()),
            text: None,
            status: kind.status,
            size,
            meters: self.metrics.guardrails.clone(),
        }
    }

    async fn run_relay_job(
        &self,
        job: SideJob,
        (_, caller, metadata): RelayAbout<'_>,
        head: &RequestHeader,
        visit: &mut Visit,
    ) -> Result<SideResult, Refusal> {
        let remote = match has_remote(&job.hooks) {
            true => self.relay_remote(caller, metadata, head, visit),
            false => None,
        };
        let side = match remote {
            Some(remote) => Box::pin(job.run(remote)).await,
            None => heavy(caller.tenant(), move || job.run_alone()).await,
        };
        side.ok_or_else(Refusal::internal)
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
            headers: forwardable_headers(&self.aliases, &head.headers),
        }))
    }
}

/// What no hook said.
const NONE: &str = "[]";

/// Which side is judged, and in which form.
struct RelayKind {
    hook: Hook,
    shape: Shape,
    /// Of the answer.
    status: Option<u16>,
}

/// Those that somebody waits for, and that look into bodies.
fn reading(hooks: &[Arc<CompiledHook>]) -> Vec<Arc<CompiledHook>> {
    hooks.iter().filter(|hook| hook.reads_bodies()).cloned().collect()
}

/// Whether a check would replace something in a request of no form that is known: there is no last message in which it would.
fn would_change(hooks: &[Arc<CompiledHook>], request: &Value) -> bool {
    let places = TextPlaces::find(request, Shape::Other, Hook::BeforeRequest, Scope::All);
    let checks = hooks.iter().flat_map(|hook| hook.checks.iter());
    checks.map(|check| &check.check).any(|check| {
        places.texts(request).any(|text| check.replace(text, true).is_some_and(|replaced| replaced.is_changed))
    })
}

fn is_declared_json(head: &RequestHeader) -> bool {
    content(head) == Content::Json
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
    if !has_body(head) {
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

/// Over HTTP/2 a head need not say whether a body follows, and the method of this one brings none as a rule.
fn is_unsaid(head: &RequestHeader) -> bool {
    let says_length = |headers: &HeaderMap| {
        headers.contains_key(header::CONTENT_LENGTH) || headers.contains_key(header::TRANSFER_ENCODING)
    };
    is_reading(&head.method) && has_body(head) && !says_length(&head.headers)
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
            ("POST", vec![("content-type", "application/json; charset=\"UTF-8\""), length], Some(true)),
            ("POST", vec![("content-type", "application/json; charset=utf-7"), length], Some(false)),
            ("POST", vec![("content-type", "application/json;a=b;Charset = 'utf-16'"), length], Some(false)),
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

    #[test]
    fn what_follows_a_head_of_http2_is_known_by_its_stream_alone() {
        for (method, version, length, expected) in [
            ("GET", http::Version::HTTP_2, None, true),
            ("DELETE", http::Version::HTTP_2, None, true),
            ("GET", http::Version::HTTP_2, Some("9"), false),
            ("GET", http::Version::HTTP_2, Some("0"), false),
            ("GET", http::Version::HTTP_11, None, false),
            ("POST", http::Version::HTTP_2, None, false),
        ] {
            let mut head = RequestHeader::build(method, b"/v1/x", None).unwrap();
            head.set_version(version);
            if let Some(length) = length {
                head.append_header("content-length", length).unwrap();
            }
            assert_eq!(is_unsaid(&head), expected, "{method} {version:?} {length:?}");
        }
    }
}
