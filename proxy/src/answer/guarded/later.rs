//! Hooks with `async`: they are run in the background once the call is over, before its log is stored, and change nothing of it.

use super::call::{Answered, GuardedCall};
use crate::guardrails::{CompiledHook, GuardInputs, HookResult, run_side};
use crate::journal::{HookLists, LateWork};
use chrono::Utc;
use futures::future::BoxFuture;
use http::HeaderMap;
use serde_json::Value;
use shared::guardrails::Hook;
use std::sync::Arc;

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

impl LateWork for AsyncRun {
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
