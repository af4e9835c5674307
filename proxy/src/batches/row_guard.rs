//! Guardrails on rows that a provider's own batch runs: a row is judged before it is uploaded, and its answer when it is read.
//! Hooks that only report, without anybody waiting for them, are left out.

use super::provider_jobs::JobTarget;
use crate::context::metrics::Metrics;
use crate::engine::guards::ModelCalls;
use crate::engine::{Router, Services};
use crate::guardrails::{
    CompiledHook, GuardMeters, ModelAsker, RemoteSide, SideJob, SideResult, has_remote, must_read, parse_unique,
    read_request, request_type, shape,
};
use crate::request::refusal::DENIED;
use crate::runtime::heavy::{SMALL, heavy};
use crate::runtime::tenant_share::Tenant;
use bytes::Bytes;
use http::{HeaderMap, Method};
use serde_json::{Map, Value};
use shared::guardrails::{Hook, Shape};
use shared::providers::Family;
use std::sync::Arc;

pub(crate) struct RowGuard {
    input: Vec<Arc<CompiledHook>>,
    output: Vec<Arc<CompiledHook>>,
    remote: Option<Arc<RemoteSide>>,
    shape: Shape,
    request_type: &'static str,
    metadata: Arc<Map<String, Value>>,
    headers: Arc<HeaderMap>,
    meters: Arc<GuardMeters>,
    tenant: Tenant,
}

/// What hooks made of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Judged {
    Same,
    Changed(Bytes),
    Denied(String),
}

/// Judges rows of batches that a provider runs.
pub struct RowGuards {
    metrics: Arc<Metrics>,
    router: Arc<Router>,
}

impl RowGuards {
    pub fn new(services: &Services) -> Self {
        let Services { metrics, router, .. } = services.clone();
        Self { metrics, router }
    }

    /// None where no guardrail speaks.
    pub(crate) fn row_guard(&self, job: &JobTarget, family: Family, trace_id: &str) -> Option<RowGuard> {
        let defaults = self.router.guards.defaults(&job.caller);
        let set = self.router.guards.for_leaf(job.leaf()?, &job.caller, defaults.as_ref())?;
        let is_waited_for = |hook: &&Arc<CompiledHook>| !hook.actions.is_async;
        let shape = shape(family, None);
        let input: Vec<_> = set.input.iter().filter(is_waited_for).cloned().collect();
        let output: Vec<_> = match shape {
            // Nothing is said in a text that a check could look at.
            Shape::Unread | Shape::Embeddings => Vec::new(),
            _ => set.output.iter().filter(is_waited_for).cloned().collect(),
        };
        let remote = (has_remote(&input) || has_remote(&output)).then(|| self.row_remote(job, trace_id)).flatten();
        Some(RowGuard {
            input,
            output,
            remote,
            shape,
            request_type: request_type(Some((family, "")), &Method::POST, false),
            metadata: Arc::new(job.metadata.clone()),
            headers: Arc::new(HeaderMap::new()),
            meters: self.metrics.guardrails.clone(),
            tenant: job.caller.tenant(),
        })
    }

    fn row_remote(&self, job: &JobTarget, trace_id: &str) -> Option<Arc<RemoteSide>> {
        let models = self.router.guards.engine().map(|engine| ModelCalls {
            engine,
            caller: job.caller.clone(),
            metadata: job.metadata.clone(),
            trace_id: trace_id.to_owned(),
            is_untracked: false,
        });
        Some(Arc::new(RemoteSide {
            asker: self.router.guards.asker.clone()?,
            organisation: job.caller.workspace.organisation_id,
            workspace: job.caller.workspace.id,
            provider: job.target.provider.name.clone(),
            trace_id: trace_id.to_owned(),
            models: models.map(|models| Arc::new(models) as Arc<dyn ModelAsker>),
            headers: HeaderMap::new(),
        }))
    }
}

impl RowGuard {
    pub fn judges_answers(&self) -> bool {
        !self.output.is_empty()
    }

    /// The body of a row.
    pub async fn judge_request(&self, body: &Bytes) -> Judged {
        if self.input.is_empty() {
            return Judged::Same;
        }
        self.judge(&self.input, Hook::BeforeRequest, body).await
    }

    /// The body of its answer.
    pub async fn judge_answer(&self, body: &Bytes) -> Judged {
        if self.output.is_empty() {
            return Judged::Same;
        }
        self.judge(&self.output, Hook::AfterRequest, body).await
    }

    async fn judge(&self, hooks: &[Arc<CompiledHook>], hook: Hook, body: &Bytes) -> Judged {
        let read = match hook {
            Hook::BeforeRequest => {
                let (bytes, shape, is_strict) = (body.clone(), self.shape, must_read(hooks));
                let reading = move || read_request(&bytes, shape, is_strict).ok();
                match token_places_may_be(self.shape) {
                    true => heavy(self.tenant, reading).await.flatten(),
                    false => reading(),
                }
            }
            Hook::AfterRequest => parse_unique(body).ok(),
        };
        let Some(parsed) = read else { return Judged::Denied("the body cannot be judged".into()) };
        let body_json = Arc::new(parsed);
        let request = match hook {
            Hook::BeforeRequest => body_json.clone(),
            _ => Arc::new(Value::Null),
        };
        let job = SideJob {
            hooks: hooks.to_vec(),
            hook,
            shape: self.shape,
            request_type: self.request_type,
            request,
            body: body_json,
            metadata: self.metadata.clone(),
            headers: self.headers.clone(),
            text: None,
            status: (hook != Hook::BeforeRequest).then_some(200),
            size: body.len(),
            meters: self.meters.clone(),
        };
        let side = match self.remote.clone().filter(|_| has_remote(hooks)) {
            Some(remote) => Box::pin(job.run(remote)).await,
            None if body.len() > SMALL => heavy(self.tenant, move || job.run_alone()).await,
            None => Some(job.run_alone()),
        };
        // A check that broke off has judged nothing, and nothing passes unjudged.
        let Some(side) = side else { return Judged::Denied("a guardrail could not judge it".into()) };
        self.outcome(hooks, side, hook)
    }

    fn outcome(&self, hooks: &[Arc<CompiledHook>], side: SideResult, hook: Hook) -> Judged {
        if let Some(place) = side.denied_by {
            self.meters.denies(if hook == Hook::BeforeRequest { "input" } else { "output" });
            let message = hooks.get(place).and_then(|hook| hook.actions.message.clone());
            return Judged::Denied(message.unwrap_or_else(|| DENIED.to_owned()));
        }
        match side.transformed {
            Some(changed) => Judged::Changed(Bytes::from(changed.to_string())),
            None => Judged::Same,
        }
    }
}

/// Families whose rows may be written as tokens.
fn token_places_may_be(shape: Shape) -> bool {
    matches!(shape, Shape::Completions | Shape::Embeddings)
}
