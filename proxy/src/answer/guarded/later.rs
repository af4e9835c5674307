//! Hooks with `async`: they are run in the background once the call is over, before its log is stored, and change nothing of it.

use super::call::{Answered, GuardedCall};
use crate::guardrails::{CompiledHook, GuardInputs, HookResult, RemoteSide, SideJob, has_remote, run_side};
use crate::journal::{HookLists, LateWork};
use crate::runtime::heavy::heavy;
use chrono::Utc;
use futures::future::BoxFuture;
use http::HeaderMap;
use serde_json::Value;
use shared::guardrails::Hook;
use std::sync::Arc;
use uuid::Uuid;

/// The hooks of one call, and what they look at.
pub struct AsyncRun {
    call: Arc<GuardedCall>,
    answered: Answered,
}

impl AsyncRun {
    pub fn new(call: Arc<GuardedCall>, answered: Answered) -> Self {
        Self { call, answered }
    }

    fn judge(&self) -> HookLists {
        let call = &*self.call;
        let request = GuardInputs { hook: Hook::BeforeRequest, ..call.inputs(&call.later.headers) };
        let before = run_side(&call.later.input, request, &call.request, &call.meters).logged();
        let headers = HeaderMap::new();
        let inputs = call.inputs(&headers);
        let after = match &self.answered {
            Answered::Nothing => Vec::new(),
            Answered::Said(text) => {
                let inputs = GuardInputs { text: Some(text), ..inputs };
                run_side(&call.later.output, inputs, &Value::Null, &call.meters).logged()
            }
            Answered::Plain(body) => match serde_json::from_slice(body) {
                Ok(answer) => run_side(&call.later.output, inputs, &answer, &call.meters).logged(),
                Err(_) => skipped(&call.later.output),
            },
        };
        HookLists { before, after }
    }
}

impl AsyncRun {
    /// The same where others must be asked.
    async fn judge_remote(&self, remote: Arc<RemoteSide>) -> HookLists {
        let call = &*self.call;
        let (input, output) = (&call.later.input, &call.later.output);
        let before = SideJob {
            hook: Hook::BeforeRequest,
            headers: Arc::new(call.later.headers.clone()),
            status: None,
            ..call.job(input, call.request.clone(), None, call.later.weight)
        };
        let before = before.run(remote.clone()).await.map_or_else(|| skipped(input), |side| side.logged());
        let after = match &self.answered {
            Answered::Nothing => return HookLists { before, after: Vec::new() },
            Answered::Said(text) => Some(call.job(output, Arc::default(), Some(text.clone()), text.len())),
            Answered::Plain(body) => {
                let size = body.len();
                let body = body.clone();
                let read =
                    heavy(Some(call.workspace), move || serde_json::from_slice::<Value>(&body).ok()).await.flatten();
                read.map(|answer| call.job(output, Arc::new(answer), None, size))
            }
        };
        let side = match after {
            Some(job) => job.run(remote).await,
            None => None,
        };
        HookLists { before, after: side.map_or_else(|| skipped(output), |side| side.logged()) }
    }
}

impl LateWork for AsyncRun {
    fn owner(&self) -> Uuid {
        self.call.workspace
    }

    fn weight(&self) -> usize {
        let answered = match &self.answered {
            Answered::Nothing => 0,
            Answered::Plain(body) => body.len(),
            Answered::Said(text) => text.len(),
        };
        self.call.later.weight + answered
    }

    fn skipped(&self) -> HookLists {
        let after = match self.answered {
            Answered::Nothing => Vec::new(),
            Answered::Plain(_) | Answered::Said(_) => skipped(&self.call.later.output),
        };
        HookLists { before: skipped(&self.call.later.input), after }
    }

    fn run(self: Box<Self>) -> BoxFuture<'static, HookLists> {
        Box::pin(async move {
            let run: Arc<Self> = self.into();
            let later = &run.call.later;
            let remote = run.call.remote.clone().filter(|_| has_remote(&later.input) || has_remote(&later.output));
            if let Some(remote) = remote {
                return run.judge_remote(remote).await;
            }
            let judging = run.clone();
            match tokio::task::spawn_blocking(move || judging.judge()).await {
                Ok(lists) => lists,
                Err(_) => run.skipped(),
            }
        })
    }
}

fn skipped(hooks: &[Arc<CompiledHook>]) -> Vec<Value> {
    hooks.iter().map(|hook| HookResult::skipped(hook, Utc::now()).json).collect()
}
