//! Guard in, and what goes along for the way back: the hooks of a request run before its target is asked, once for each target,
//! on the client's own body. What they transform is what is sent. A denial is an answer like any other: a fallback or a retry
//! may go on after it.

use super::admit::ReadBody;
use super::call::{HeldAnswer, refused};
use super::guards::GuardSet;
use super::translate::{LARGEST, memory_to_translate};
use super::{Engine, EngineRequest};
use crate::answer::{AnswerSource, Ended, GuardedCall, HeldStart, HeldStream, Steps, StoredAnswer, WireDialect};
use crate::answer::{soft_denial, with_results};
use crate::conversation::WireFormat;
use crate::guardrails::{
    CompiledHook, GuardInputs, GuardMeters, RemoteSide, SideJob, SideResult, has_remote, repeated_key, request_type,
    run_side, shape,
};
use crate::net::downstream::Downstream;
use crate::refusal::Refusal;
use crate::request::body::Fields;
use crate::request::receive::MemoryShare;
use crate::request::sse::Splitter;
use crate::routing::plan::{Leaf, ProviderSource};
use crate::visit::Visit;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use pingora_http::ResponseHeader;
use serde_json::{Map, Value};
use shared::guardrails::remote::may_forward;
use shared::guardrails::{Hook, Shape};
use shared::providers::Family;
use std::sync::Arc;
use std::time::Duration;

/// Larger bodies are judged off the threads that carry requests.
const SMALL: usize = 32 << 10;

/// What the hooks of a request said at one target, for when it is tried again.
pub(super) struct GuardedTarget<'m> {
    /// Which part of the config it is.
    option: HeaderValue,
    call: Arc<GuardedCall>,
    /// What is sent in place of the client's own.
    body: Option<Bytes>,
    /// The request stays in memory as a tree, for the hooks of its answer.
    _share: MemoryShare<'m>,
}

impl Engine {
    /// Tries a target that has guardrails.
    #[expect(clippy::too_many_arguments, reason = "what a target is tried with, and what is known of it already")]
    pub(super) async fn try_guarded<'e>(
        &'e self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        errand: &EngineRequest,
        leaf: &Leaf,
        read: ReadBody<'_>,
        body: &Bytes,
        set: GuardSet,
        known: &mut Option<Box<GuardedTarget<'e>>>,
    ) -> Result<HeldAnswer, Ended> {
        if errand.frames().is_some() {
            return Err(refused(Refusal::unguarded_route()));
        }
        if known.as_ref().is_none_or(|known| known.option != visit.routing.option) {
            // That of another target is given back first.
            *known = None;
            let is_strict = errand.is_strict && leaf.is_strict;
            let guarded =
                self.guard_in(client.head().headers.clone(), visit, errand, read.fields, body, set, leaf, is_strict);
            *known = Some(Box::new(guarded.await.map_err(refused)?));
        }
        let Some(GuardedTarget { call, body: changed, .. }) = known.as_deref() else {
            return Err(refused(Refusal::internal()));
        };
        visit.checked(Some(call.logged(None)));
        if let Some(denied) = denied(call, read.fields.is_true("stream")) {
            return denied;
        }
        // Answers of other routes are nobody's to look into, and may be large.
        let along = Some(call).filter(|call| call.shape != Shape::Other);
        match changed {
            None => self.try_target(client, visit, errand, leaf, body, read.fields, along).await,
            Some(changed) => {
                let fields = Fields::parse_object(changed).map_err(refused)?;
                self.try_target(client, visit, errand, leaf, changed, &fields, along).await
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "what hooks may know of a request")]
    async fn guard_in(
        &self,
        headers: HeaderMap,
        visit: &mut Visit,
        errand: &EngineRequest,
        fields: &Fields<'_>,
        body: &Bytes,
        set: GuardSet,
        leaf: &Leaf,
        is_strict: bool,
    ) -> Result<GuardedTarget<'_>, Refusal> {
        if body.len() > LARGEST {
            return Err(Refusal::body_too_large(LARGEST));
        }
        let mut share = MemoryShare::none(&self.body_limits.memory, errand.caller.workspace.id.uuid());
        share.grow(memory_to_translate(body))?;
        let family = errand.endpoint.family();
        let kind = request_type(Some(family), &Method::POST, fields.is_true("stream"));
        let hooks = set.input;
        let remote = self.remote_side(&hooks, &set.output, errand, leaf, visit, &headers);
        let job = InputJob {
            hooks: hooks.clone(),
            shape: shape(family),
            kind,
            body: body.clone(),
            metadata: errand.metadata.clone(),
            headers,
            meters: self.metrics.guardrails.clone(),
        };
        let judged = match (remote.clone().filter(|_| has_remote(&hooks)), body.len() > SMALL) {
            // Boxed, as all that is rare: its state would be part of every request's.
            (Some(remote), _) => Box::pin(job.run_remote(remote)).await,
            (None, false) => job.run(),
            (None, true) => tokio::task::spawn_blocking(|| job.run()).await.map_err(|_| Refusal::internal())?,
        };
        let (mut input, request) = judged?;
        let remote = remote.filter(|_| has_remote(&set.output));
        let denying = input.denied_by.and_then(|place| hooks.get(place).cloned());
        // Not kept as a tree too.
        let changed = input.transformed.take().map(|json| Bytes::from(json.to_string()));
        let shape = shape(family);
        let call = GuardedCall {
            // Nothing is said in a text that a check could look at.
            output: if matches!(shape, Shape::Other | Shape::Embeddings) { Vec::new() } else { set.output },
            input,
            request,
            remote,
            shape,
            request_type: kind,
            metadata: errand.metadata.clone(),
            is_strict,
            format: client_format(family),
            request_id: visit.id().to_owned(),
            meters: self.metrics.guardrails.clone(),
            denying,
        };
        let option = visit.routing.option.clone();
        Ok(GuardedTarget { option, call: Arc::new(call), body: changed, _share: share })
    }
}

impl Engine {
    /// Who asks others for a request; none where nobody must be asked, which is all that most pay.
    fn remote_side(
        &self,
        input: &[Arc<CompiledHook>],
        output: &[Arc<CompiledHook>],
        errand: &EngineRequest,
        leaf: &Leaf,
        visit: &mut Visit,
        headers: &HeaderMap,
    ) -> Option<Arc<RemoteSide>> {
        if !has_remote(input) && !has_remote(output) {
            return None;
        }
        let provider = match &leaf.source {
            ProviderSource::Named(name) | ProviderSource::Stored(name) => name.clone(),
            ProviderSource::Request => String::new(),
        };
        // Not one that nobody may get: they would be kept as long as the answer takes.
        let is_ours = |name: &HeaderName| {
            let suffix = self.aliases.suffix(name.as_str());
            suffix.is_some_and(|(suffix, _)| !matches!(suffix, "trace-id" | "span-id"))
        };
        let headers = headers.iter().filter(|(name, _)| may_forward(name) && !is_ours(name));
        Some(Arc::new(RemoteSide {
            asker: self.router.guards.asker.clone()?,
            organisation: errand.caller.workspace.organisation_id,
            workspace: errand.caller.workspace.id,
            provider,
            trace_id: visit.request.trace_id().to_str().unwrap_or_default().to_owned(),
            headers: headers.map(|(name, value)| (name.clone(), value.clone())).collect(),
        }))
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
        let request = self.parse()?;
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
    async fn run_remote(self, remote: Arc<RemoteSide>) -> Result<(SideResult, Arc<Value>), Refusal> {
        let size = self.body.len();
        let (job, request) = match size > SMALL {
            false => {
                let request = self.parse()?;
                (self, request)
            }
            true => {
                let parsing = tokio::task::spawn_blocking(move || self.parse().map(|request| (self, request)));
                parsing.await.map_err(|_| Refusal::internal())??
            }
        };
        let request = Arc::new(request);
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
        Ok((side, request))
    }

    fn parse(&self) -> Result<Value, Refusal> {
        if let Some(repeated) = repeated_key(&self.body) {
            return Err(Refusal::invalid_json(repeated));
        }
        serde_json::from_slice(&self.body).map_err(Refusal::invalid_json)
    }
}

/// What the client gets in place of an answer, if a hook of the request denies it.
fn denied(call: &GuardedCall, is_stream: bool) -> Option<Result<HeldAnswer, Ended>> {
    let hook = call.denying.as_ref()?;
    call.meters.denies("input");
    let message = hook.actions.message.clone();
    let results = call.results(None);
    if !hook.actions.softens {
        return Some(Err(refused(Refusal::denied_by_guardrail(message, results))));
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
        false => {
            let body = with_results(soft_denial::body(call, message.as_deref()), &results);
            head.insert_header(header::CONTENT_LENGTH, HeaderValue::from(body.len())).ok()?;
            HeldStart::Plain(body)
        }
    };
    let source = AnswerSource::from(StoredAnswer::new(head, []));
    Some(Ok(HeldAnswer { source, held, steps: Steps::default(), waited: Duration::ZERO, permit: None }))
}

fn client_format(family: Family) -> WireFormat {
    match family {
        Family::Complete => WireFormat::Completions,
        Family::Messages => WireFormat::Messages,
        Family::Responses => WireFormat::Responses,
        _ => WireFormat::Chat,
    }
}

#[cfg(test)]
mod tests;
