//! Hooks with `async`: they are run in the background once the call is over, before its log is stored, and change nothing of it.
//!
//! Until then the request waits as the bytes that it came as: a tree of it may take fifty times as much. One is made when it is
//! their turn, and counts as body while there is one.

use crate::guardrails::{
    CompiledHook, GuardInputs, GuardMeters, HookResult, Moment, RemoteSide, SideJob, has_remote, parse_unique, run_side,
};
use crate::journal::{HookLists, LateWork};
use crate::request::receive::{BodyMemory, OwnedShare};
use crate::runtime::heavy::heavy;
use crate::runtime::tenant_share::Tenant;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::HeaderMap;
use serde_json::{Map, Value};
use shared::guardrails::{Hook, Shape};
use std::sync::Arc;

/// Hooks that nobody waits for, and what they may know of their request.
pub struct AsyncHooks {
    pub input: Vec<Arc<CompiledHook>>,
    pub output: Vec<Arc<CompiledHook>>,
    /// The client's own, which checks of the request may look at.
    pub headers: HeaderMap,
    /// The request as hooks see it.
    pub body: Bytes,
    /// What it takes in memory once it is read.
    pub tree_bytes: usize,
    pub shape: Shape,
    pub request_type: &'static str,
    pub metadata: Arc<Map<String, Value>>,
    /// Who asks others, where a hook has a check that they answer.
    pub remote: Option<Arc<RemoteSide>>,
    pub meters: Arc<GuardMeters>,
    pub memory: Arc<BodyMemory>,
    pub tenant: Tenant,
}

/// What a call was answered with, for hooks that look at it later.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answered {
    /// With nothing that a hook looks at.
    Nothing,
    Plain(Bytes),
    /// All that a stream said.
    Text(String),
}

impl Answered {
    fn size(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Plain(body) => body.len(),
            Self::Text(text) => text.len(),
        }
    }
}

/// The hooks of one call, and what it was answered with.
pub(super) struct AsyncRun {
    hooks: Arc<AsyncHooks>,
    answered: Answered,
}

impl AsyncRun {
    /// None where no hook has anything to look at.
    pub fn new(hooks: Arc<AsyncHooks>, answered: Answered) -> Option<Self> {
        let has_output = answered != Answered::Nothing && !hooks.output.is_empty();
        (has_output || !hooks.input.is_empty()).then_some(Self { hooks, answered })
    }

    fn judge(&self) -> Option<HookLists> {
        let hooks = &*self.hooks;
        let request = parse_unique(&hooks.body).ok()?;
        let inputs = GuardInputs {
            hook: Hook::BeforeRequest,
            shape: hooks.shape,
            request_type: hooks.request_type,
            request: &request,
            metadata: &hooks.metadata,
            headers: &hooks.headers,
            text: None,
        };
        let before = run_side(&hooks.input, inputs, &request, &hooks.meters).logged_each();
        let headers = HeaderMap::new();
        let inputs = GuardInputs { hook: Hook::AfterRequest, headers: &headers, ..inputs };
        let after = match &self.answered {
            Answered::Nothing => Vec::new(),
            Answered::Text(text) => {
                let inputs = GuardInputs { text: Some(text), ..inputs };
                run_side(&hooks.output, inputs, &Value::Null, &hooks.meters).logged_each()
            }
            Answered::Plain(body) => match serde_json::from_slice(body) {
                Ok(answer) => run_side(&hooks.output, inputs, &answer, &hooks.meters).logged_each(),
                Err(_) => skipped(&hooks.output),
            },
        };
        Some(HookLists { before, after })
    }

    /// The same where others must be asked.
    async fn judge_remote(&self, remote: Arc<RemoteSide>) -> Option<HookLists> {
        let (input, output) = (&self.hooks.input, &self.hooks.output);
        let body = self.hooks.body.clone();
        let parsed = heavy(self.hooks.tenant, move || parse_unique(&body).ok()).await.flatten()?;
        let request = Arc::new(parsed);
        let before = self.job(Hook::BeforeRequest, &request, request.clone(), None);
        let before = before.run(remote.clone()).await.map_or_else(|| skipped(input), |side| side.logged_each());
        let after = match &self.answered {
            Answered::Nothing => return Some(HookLists { before, after: Vec::new() }),
            Answered::Text(text) => Some(self.job(Hook::AfterRequest, &request, Arc::default(), Some(text.as_str()))),
            Answered::Plain(body) => {
                let body = body.clone();
                let read = heavy(self.hooks.tenant, move || serde_json::from_slice::<Value>(&body).ok()).await;
                read.flatten().map(|answer| self.job(Hook::AfterRequest, &request, Arc::new(answer), None))
            }
        };
        let side = match after {
            Some(job) => job.run(remote).await,
            None => None,
        };
        Some(HookLists { before, after: side.map_or_else(|| skipped(output), |side| side.logged_each()) })
    }

    /// The run of one side where others must be asked. Services are told of the request with its answer, too.
    fn job(&self, hook: Hook, request: &Arc<Value>, body: Arc<Value>, text: Option<&str>) -> SideJob {
        let hooks = &*self.hooks;
        let (run, headers, status, more) = match hook {
            Hook::BeforeRequest => (&hooks.input, Arc::new(hooks.headers.clone()), None, 0),
            Hook::AfterRequest => (&hooks.output, Arc::default(), Some(200), self.answered.size()),
        };
        SideJob {
            hooks: run.clone(),
            hook,
            shape: hooks.shape,
            request_type: hooks.request_type,
            request: request.clone(),
            body,
            metadata: hooks.metadata.clone(),
            headers,
            text: text.map(Arc::from),
            status,
            size: hooks.body.len() + more,
            meters: hooks.meters.clone(),
        }
    }
}

impl LateWork for AsyncRun {
    fn tenant(&self) -> Tenant {
        self.hooks.tenant
    }

    fn weight(&self) -> usize {
        self.hooks.body.len() + self.answered.size()
    }

    fn skipped(&self) -> HookLists {
        let after = match self.answered {
            Answered::Nothing => Vec::new(),
            Answered::Plain(_) | Answered::Text(_) => skipped(&self.hooks.output),
        };
        HookLists { before: skipped(&self.hooks.input), after }
    }

    fn run(self: Box<Self>) -> BoxFuture<'static, HookLists> {
        Box::pin(async move {
            let run: Arc<Self> = self.into();
            let hooks = &run.hooks;
            let mut share = OwnedShare::none(hooks.memory.clone(), hooks.tenant);
            if share.grow(hooks.tree_bytes).is_err() {
                return run.skipped();
            }
            let remote = hooks.remote.clone().filter(|_| has_remote(&hooks.input) || has_remote(&hooks.output));
            let judged = match remote {
                Some(remote) => run.judge_remote(remote).await,
                None => {
                    let judging = run.clone();
                    let judged = tokio::task::spawn_blocking(move || {
                        // Kept to the end, also when nobody waits for it any more.
                        let _share = share;
                        judging.judge()
                    });
                    judged.await.ok().flatten()
                }
            };
            judged.unwrap_or_else(|| run.skipped())
        })
    }
}

fn skipped(hooks: &[Arc<CompiledHook>]) -> Vec<String> {
    hooks.iter().map(|hook| HookResult::skipped(hook, Moment::now()).json).collect()
}
