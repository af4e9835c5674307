//! Guard in, and what goes along for the way back: the hooks of a request run before its target is asked, once for each target,
//! on the client's own body. What they transform is what is sent. A denial is an answer like any other: a fallback or a retry
//! may go on after it.

use super::admit::ReadBody;
use super::answer::{
    AnswerSource, Answered, AsyncHooks, Ended, GuardedCall, HeldStart, HeldStream, SeenRequest, Steps, StoredAnswer,
    StreamFrames, WireDialect, soft_denial, with_denial,
};
use super::call::{HeldAnswer, refused};
use super::guards::{GuardSet, ModelCalls};
use super::translate::{MAX_SIZE, ReusableTranslation, memory_to_translate};
use super::{Engine, EngineRequest};
use crate::context::Visit;
use crate::guardrails::{
    CompiledHook, GuardInputs, GuardMeters, ModelAsker, RemoteSide, SideJob, SideResult, has_remote, may_have_tokens,
    must_read, read_request, request_type, run_side, shape,
};
use crate::net::downstream::Downstream;
use crate::request::body::Fields;
use crate::request::classify::Endpoint;
use crate::request::headers::Aliases;
use crate::request::receive::OwnedShare;
use crate::request::refusal::Refusal;
use crate::routing::plan::{Leaf, ProviderSource};
use crate::runtime::heavy::{SMALL, heavy};
use crate::wire::conversation::WireFormat;
use crate::wire::sse::Splitter;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use pingora_http::ResponseHeader;
use serde_json::{Map, Value};
use shared::guardrails::remote::may_forward;
use shared::guardrails::{Hook, Shape};
use shared::providers::Family;
use std::sync::Arc;
use std::time::Duration;

/// What the hooks of a request said at one target, for when it is tried again.
pub(super) struct GuardedTarget {
    /// Which part of the config it is.
    option: HeaderValue,
    /// What they looked at: a stored prompt may be another at the next try.
    judged: Bytes,
    call: Arc<GuardedCall>,
    /// What is sent in place of the client's own.
    body: Option<Bytes>,
    /// Where the request stays in memory as a tree, for the hooks of its answer.
    _share: Option<OwnedShare>,
}

/// A request that goes on: what goes along for its answer, and the body as hooks changed it.
pub(super) type Passed<'k> = (Option<&'k Arc<GuardedCall>>, Option<&'k Bytes>);

impl Engine {
    /// The guardrails of a request at a target; none for what the gateway asks for itself.
    pub(super) fn guards_at(
        &self,
        engine_request: &EngineRequest,
        leaf: &Leaf,
        defaults: Option<&Arc<GuardSet>>,
    ) -> Option<Arc<GuardSet>> {
        if engine_request.is_own { None } else { self.router.guards.for_leaf(leaf, &engine_request.caller, defaults) }
    }

    /// Runs the guardrails of a target on a request, unless that was done before.
    #[expect(clippy::too_many_arguments, reason = "what hooks may know of a request, and what they said before")]
    pub(super) async fn pass_guards<'k>(
        &self,
        headers: &HeaderMap,
        visit: &mut Visit,
        engine_request: &EngineRequest,
        leaf: &Leaf,
        read: ReadBody<'_>,
        body: &Bytes,
        set: Arc<GuardSet>,
        known: &'k mut Option<Box<GuardedTarget>>,
    ) -> Result<Passed<'k>, Box<Result<HeldAnswer, Ended>>> {
        if known.as_ref().is_none_or(|known| !known.is_about(&visit.routing.option, body)) {
            // That of another target, or of another body, is given back first.
            *known = None;
            let is_strict = engine_request.is_strict && leaf.is_strict;
            let guarded = match self.guard_text(headers, visit, engine_request, read.fields, body, &set, is_strict) {
                Some(guarded) => guarded,
                None => {
                    let remote = self.remote_side(&set, engine_request, leaf, visit, headers);
                    let headers = headers.clone();
                    // Boxed, as all that is rare: its state would be part of every request's.
                    let guarded =
                        self.guard_in(headers, visit, engine_request, read.fields, body, set, remote, is_strict);
                    Box::pin(guarded).await.map_err(|refusal| Box::new(Err(refused(refusal))))?
                }
            };
            *known = Some(Box::new(guarded));
        }
        let Some(GuardedTarget { call, body: changed, .. }) = known.as_deref() else {
            return Err(Box::new(Err(refused(Refusal::internal()))));
        };
        visit.checked(Some(call.log(None, Answered::Nothing, visit.is_logged())));
        let denied = call.denying.as_deref().and_then(|hook| {
            let is_stream = read.fields.is_true("stream");
            denied(call, hook, is_stream, engine_request.frames())
        });
        match denied {
            Some(denied) => Err(Box::new(denied)),
            // Answers of other routes may be large: they are held only for who looks into them.
            None => {
                Ok((Some(call).filter(|call| call.shape != Shape::Other || !call.output.is_empty()), changed.as_ref()))
            }
        }
    }

    /// Tries a target with a body that guardrails changed.
    #[expect(
        clippy::too_many_arguments,
        reason = "a target, a request, what hooks said of it and what was written for it"
    )]
    pub(super) async fn try_changed<'e>(
        &'e self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        engine_request: &EngineRequest,
        leaf: &Leaf,
        changed: &Bytes,
        guarded: Option<&Arc<GuardedCall>>,
        reusable: &mut Option<Box<ReusableTranslation<'e>>>,
    ) -> Result<HeldAnswer, Ended> {
        let fields = Fields::parse_object(changed).map_err(refused)?;
        self.try_target(client, visit, engine_request, leaf, changed, &fields, guarded, reusable).await
    }

    /// Hooks that look at nothing but the text of the last message, and none at the answer: no tree is made of the request, and
    /// nothing of it is copied. None where that is not all.
    #[expect(clippy::too_many_arguments, reason = "what hooks may know of a request")]
    fn guard_text(
        &self,
        headers: &HeaderMap,
        visit: &Visit,
        engine_request: &EngineRequest,
        fields: &Fields<'_>,
        body: &Bytes,
        set: &GuardSet,
        is_strict: bool,
    ) -> Option<GuardedTarget> {
        let looks_further = |hook: &Arc<CompiledHook>| hook.actions.is_async || hook.reads_body;
        if body.len() > SMALL || !set.output.is_empty() || set.input.iter().any(looks_further) {
            return None;
        }
        // A name that may be a known one in other letters is looked at in the tree.
        let mut is_spelled_plainly = true;
        fields.each(|name, _| {
            is_spelled_plainly &= name.bytes().all(|byte| byte.is_ascii() && !byte.is_ascii_uppercase());
        });
        if !is_spelled_plainly {
            return None;
        }
        let endpoint = engine_request.endpoint;
        let shape = shape(endpoint.family(), endpoint.native_route());
        let text = match shape {
            Shape::Chat | Shape::Messages if set.input.iter().any(|hook| hook.searches()) => {
                fields.only_plain_text()?
            }
            Shape::Chat | Shape::Messages => fields.last_plain_text()?,
            _ => return None,
        };
        let meters = &self.metrics.guardrails;
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape,
            request_type: request_type(Some((endpoint.family(), "")), &Method::POST, fields.is_true("stream")),
            request: &Value::Null,
            metadata: &engine_request.metadata,
            headers,
            text: Some(&text),
        };
        let input = run_side(&set.input, inputs, &Value::Null, meters);
        let call = GuardedCall {
            output: Vec::new(),
            denying: input.denied_by.and_then(|place| set.input.get(place).cloned()),
            input,
            request: SeenRequest::Unread(body.clone()),
            remote: None,
            shape,
            request_type: inputs.request_type,
            // For hooks of the answer, as what is not read of the request.
            metadata: Map::new(),
            is_strict,
            format: client_format(endpoint),
            request_id: visit.request.uuid(),
            meters: meters.clone(),
            later: None,
            request_size: body.len(),
            memory: self.body_limits.memory.clone(),
            tenant: engine_request.caller.tenant(),
        };
        let option = visit.routing.option.clone();
        Some(GuardedTarget { option, judged: body.clone(), call: Arc::new(call), body: None, _share: None })
    }

    #[expect(clippy::too_many_arguments, reason = "what hooks may know of a request")]
    async fn guard_in(
        &self,
        headers: HeaderMap,
        visit: &Visit,
        engine_request: &EngineRequest,
        fields: &Fields<'_>,
        body: &Bytes,
        set: Arc<GuardSet>,
        remote: Option<Arc<RemoteSide>>,
        is_strict: bool,
    ) -> Result<GuardedTarget, Refusal> {
        if body.len() > MAX_SIZE {
            return Err(Refusal::body_too_large(MAX_SIZE));
        }
        let (memory, tenant) = (self.body_limits.memory.clone(), engine_request.caller.tenant());
        let mut share = OwnedShare::none(memory.clone(), tenant);
        let weight = memory_to_translate(body);
        share.grow(weight)?;
        let endpoint = engine_request.endpoint;
        let shape = shape(endpoint.family(), endpoint.native_route());
        let kind = request_type(Some((endpoint.family(), "")), &Method::POST, fields.is_true("stream"));
        let (later_input, hooks): (Vec<_>, Vec<_>) = set.input.iter().cloned().partition(|hook| hook.actions.is_async);
        let (later_output, output): (Vec<_>, Vec<_>) = match shape {
            // Nothing is said in a text that a check could look at.
            Shape::Unread | Shape::Embeddings => Default::default(),
            _ if endpoint.family() == Family::Speech => {
                self.check_speech(engine_request)?;
                Default::default()
            }
            _ => set.output.iter().cloned().partition(|hook| hook.actions.is_async),
        };
        let later_headers = if later_input.is_empty() { HeaderMap::new() } else { headers.clone() };
        let job = InputJob {
            hooks: hooks.clone(),
            shape,
            kind,
            body: body.clone(),
            metadata: engine_request.metadata.clone(),
            headers,
            meters: self.metrics.guardrails.clone(),
        };
        let has_tokens = ["prompt", "input"].into_iter().filter_map(|name| fields.get(name)).any(may_have_tokens);
        let is_heavy = body.len() > SMALL || has_tokens;
        let (judged, mut share) = match (remote.clone().filter(|_| has_remote(&hooks)), is_heavy) {
            // Boxed, as all that is rare: its state would be part of every request's.
            (Some(remote), _) => Box::pin(job.run_remote(remote, share)).await?,
            (None, false) => (job.run(), share),
            // What it takes stays counted until it is done, also when the client has left.
            (None, true) => heavy(tenant, move || (job.run(), share)).await.ok_or_else(Refusal::internal)?,
        };
        let (mut input, request) = judged?;
        let denying = input.denied_by.and_then(|place| hooks.get(place).cloned());
        let remote = match input.extracted.is_empty() {
            true => remote,
            false => remote.map(|remote| Arc::new(remote.with_extracted(&input.extracted))),
        };
        let has_later = !later_input.is_empty() || !later_output.is_empty();
        let later = has_later.then(|| AsyncHooks {
            input: later_input,
            output: later_output,
            headers: later_headers,
            body: body.clone(),
            tree_bytes: weight,
            shape,
            request_type: kind,
            metadata: Arc::new(engine_request.metadata.clone()),
            remote: remote.clone(),
            meters: self.metrics.guardrails.clone(),
            memory: memory.clone(),
            tenant,
        });
        // Not kept as a tree too.
        let changed = match input.transformed.take() {
            None => None,
            Some(json) if body.len() <= SMALL && remote.is_none() => Some(Bytes::from(json.to_string())),
            // Whoever is asked may have made it long.
            Some(json) => {
                let written = heavy(tenant, move || Bytes::from(json.to_string())).await;
                Some(written.ok_or_else(Refusal::internal)?)
            }
        };
        share.grow(changed.as_ref().map_or(0, |changed| changed.len().saturating_sub(body.len())))?;
        let call = GuardedCall {
            output,
            input,
            request: SeenRequest::Read(request),
            remote,
            shape,
            request_type: kind,
            metadata: engine_request.metadata.clone(),
            is_strict,
            format: client_format(endpoint),
            request_id: visit.request.uuid(),
            meters: self.metrics.guardrails.clone(),
            denying,
            later: later.map(Arc::new),
            request_size: body.len(),
            memory,
            tenant,
        };
        let option = visit.routing.option.clone();
        Ok(GuardedTarget { option, judged: body.clone(), call: Arc::new(call), body: changed, _share: Some(share) })
    }
}

impl GuardedTarget {
    /// Whether it says what hooks would say of this body at this target.
    fn is_about(&self, option: &HeaderValue, body: &Bytes) -> bool {
        let is_same = self.judged.as_ptr() == body.as_ptr() && self.judged.len() == body.len();
        self.option == *option && (is_same || self.judged == *body)
    }
}

/// The work of the hooks of a request, by itself, so that it can be done elsewhere.
struct InputJob {
    hooks: Vec<Arc<CompiledHook>>,
    shape: Shape,
    kind: &'static str,
    body: Bytes,
    metadata: Map<String, Value>,
    headers: HeaderMap,
    meters: Arc<GuardMeters>,
}

impl InputJob {
    fn run(self) -> Result<(SideResult, Arc<Value>), Refusal> {
        let request = read_request(&self.body, self.shape, must_read(&self.hooks))?;
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape: self.shape,
            request_type: self.kind,
            request: &request,
            metadata: &self.metadata,
            headers: &self.headers,
            text: None,
        };
        let side = run_side(&self.hooks, inputs, &request, &self.meters);
        Ok((side, Arc::new(request)))
    }

    /// The same where others must be asked: no thread waits for them.
    async fn run_remote(
        self,
        remote: Arc<RemoteSide>,
        share: OwnedShare,
    ) -> Result<(Result<(SideResult, Arc<Value>), Refusal>, OwnedShare), Refusal> {
        let size = self.body.len();
        let is_heavy = size > SMALL || matches!(self.shape, Shape::Completions | Shape::Embeddings);
        let parse = move || (read_request(&self.body, self.shape, must_read(&self.hooks)), self, share);
        let (parsed, job, share) = match is_heavy {
            false => parse(),
            true => heavy(remote.tenant(), parse).await.ok_or_else(Refusal::internal)?,
        };
        let request = match parsed {
            Ok(request) => Arc::new(request),
            Err(refusal) => return Ok((Err(refusal), share)),
        };
        let side = SideJob {
            hooks: job.hooks,
            hook: Hook::BeforeRequest,
            shape: job.shape,
            request_type: job.kind,
            request: request.clone(),
            body: request.clone(),
            metadata: Arc::new(job.metadata),
            headers: Arc::new(job.headers),
            text: None,
            status: None,
            size,
            meters: job.meters,
        };
        let side = side.run(remote).await.ok_or_else(Refusal::internal)?;
        Ok((Ok((side, request)), share))
    }
}

impl Engine {
    /// What is spoken is judged as it was written; who must judge the answer too cannot.
    fn check_speech(&self, engine_request: &EngineRequest) -> Result<(), Refusal> {
        let defaults = self.router.guards.defaults(&engine_request.caller);
        let organisation = &engine_request.caller.workspace.organisation_id;
        let is_allowed = || self.snapshot.organisation_is(organisation, |whole| whole.relays_unjudged("/audio/speech"));
        match defaults.is_some_and(|defaults| must_read(&defaults.output)) && !is_allowed() {
            true => Err(Refusal::unreadable("its answer is a sound")),
            false => Ok(()),
        }
    }

    /// Who asks others for a request; none where nobody must be asked, which is all that most pay.
    fn remote_side(
        &self,
        set: &GuardSet,
        engine_request: &EngineRequest,
        leaf: &Leaf,
        visit: &mut Visit,
        headers: &HeaderMap,
    ) -> Option<Arc<RemoteSide>> {
        if !has_remote(&set.input) && !has_remote(&set.output) {
            return None;
        }
        let provider = match &leaf.source {
            ProviderSource::Named(name) | ProviderSource::Stored(name) => name.clone(),
            ProviderSource::Request => String::new(),
        };
        let trace_id = visit.request.trace_id().to_str().unwrap_or_default().to_owned();
        let models = self.router.guards.engine().map(|engine| ModelCalls {
            engine,
            caller: engine_request.caller.clone(),
            metadata: engine_request.metadata.clone(),
            trace_id: trace_id.clone(),
            is_untracked: engine_request.is_untracked,
        });
        Some(Arc::new(RemoteSide {
            asker: self.router.guards.asker.clone()?,
            organisation: engine_request.caller.workspace.organisation_id,
            workspace: engine_request.caller.workspace.id,
            provider,
            trace_id,
            models: models.map(|models| Arc::new(models) as Arc<dyn ModelAsker>),
            headers: forwardable_headers(&self.aliases, headers),
        }))
    }
}

/// Those that services may be told, if a check lists them. The others would be kept for as long as the answer takes.
pub(crate) fn forwardable_headers(aliases: &Aliases, headers: &HeaderMap) -> HeaderMap {
    let is_ours = |name: &HeaderName| {
        let suffix = aliases.suffix(name.as_str());
        suffix.is_some_and(|(suffix, _)| !matches!(suffix, "trace-id" | "span-id"))
    };
    let passed = headers.iter().filter(|(name, _)| may_forward(name) && !is_ours(name));
    passed.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// What the client gets in place of an answer, since this hook of the request denies it.
fn denied(
    call: &GuardedCall,
    hook: &CompiledHook,
    is_stream: bool,
    frames: Option<StreamFrames>,
) -> Option<Result<HeldAnswer, Ended>> {
    call.meters.denies("input");
    let message = hook.actions.message.clone();
    if !hook.actions.softens {
        return Some(Err(refused(Refusal::denied_by_guardrail(message, &call.results(None)))));
    }
    let kind = if is_stream { "text/event-stream" } else { "application/json" };
    let mut head = ResponseHeader::build_no_case(200, Some(4)).ok()?;
    head.insert_header(header::CONTENT_TYPE, HeaderValue::from_static(kind)).ok()?;
    let held = match is_stream {
        true => HeldStart::Stream(HeldStream {
            first: soft_denial::events(call, message.as_deref()),
            splitter: Splitter::default(),
            ending: WireDialect::of_format(call.format).ending(),
        }),
        false => HeldStart::Plain(with_denial(soft_denial::body(call, message.as_deref()), call, None)),
    };
    let mut steps = Steps::default();
    if let Some(frames) = frames {
        steps.frame_as(frames);
    }
    steps.begin(&head, is_stream);
    let source = AnswerSource::from(StoredAnswer::new(head, []));
    let waited = Duration::ZERO;
    Some(Ok(HeldAnswer { source, held, steps, waited, permit: None, keeper: None, is_hit: false }))
}

fn client_format(endpoint: Endpoint) -> WireFormat {
    match (endpoint.native_route(), endpoint.family()) {
        (Some(route), _) if route.is_google() => WireFormat::Gemini,
        (Some(_), _) => WireFormat::Converse,
        (None, Family::Complete) => WireFormat::Completions,
        (None, Family::Messages) => WireFormat::Messages,
        (None, Family::Responses) => WireFormat::Responses,
        (None, _) => WireFormat::Chat,
    }
}

#[cfg(test)]
mod changed_prompt_tests;
#[cfg(test)]
mod tests;
