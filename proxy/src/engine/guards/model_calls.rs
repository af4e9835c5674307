//! Questions of checks to models of the workspace's own, made as requests of the caller whose request is judged. Each has a task
//! of its own, so that it is settled and logged also when nobody waits for it any longer; its client is then gone, and it ends.

use crate::engine::Engine;
use crate::engine::own_request::OwnRequest;
use crate::guardrails::ModelAsker;
use crate::identity::identify::Principal;
use crate::net::in_memory::{InMemoryAnswer, InMemoryClient};
use bytes::Bytes;
use futures::FutureExt as _;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use shared::guardrails::remote::{MAX_ANSWER, ModelQuestion, ModelTarget, RemoteAnswer, RemoteFailure};
use std::sync::Weak;
use std::time::Instant;

const PATH: &str = "/v1/chat/completions";
const PURPOSE: &str = "guardrail";

/// Asks for one request.
pub struct ModelCalls {
    pub engine: Weak<Engine>,
    pub caller: Principal,
    pub metadata: Map<String, Value>,
    pub trace_id: String,
    /// Nothing of what is said may be kept.
    pub is_untracked: bool,
}

impl ModelAsker for ModelCalls {
    fn ask(
        &self,
        question: ModelQuestion,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>> {
        let impossible = || RemoteFailure::Unreachable("no model can be asked".into());
        let made = InMemoryClient::post(PATH, Bytes::from(question.body), MAX_ANSWER, Some(deadline));
        let (Some(engine), Some((mut client, waiter))) = (self.engine.upgrade(), made) else {
            return async move { Err(impossible()) }.boxed();
        };
        let config = match question.target {
            ModelTarget::Config(name) => Some(name),
            ModelTarget::Provider(slug) => {
                if !client.put("x-gateway-provider", &slug) {
                    return async move { Err(impossible()) }.boxed();
                }
                None
            }
        };
        // One that cannot be said is made anew.
        client.put("x-gateway-trace-id", &self.trace_id);
        if self.is_untracked {
            client.put("x-gateway-debug", "false");
        }
        let (caller, metadata) = (self.caller.clone(), self.metadata.clone());
        let own = OwnRequest { caller, purpose: PURPOSE, config, metadata };
        async move {
            let running = tokio::spawn(async move {
                engine.run_own(&mut client, own).await;
                client.into_answer()
            });
            let answer = running.await;
            drop(waiter);
            match answer {
                Ok(InMemoryAnswer::Whole { status, body }) => Ok(RemoteAnswer::new(status, body)),
                Ok(InMemoryAnswer::TooLong) => Err(RemoteFailure::TooLong),
                Ok(InMemoryAnswer::None) if deadline <= Instant::now() => Err(RemoteFailure::TimedOut),
                Ok(InMemoryAnswer::None) => Err(RemoteFailure::Unreachable("the model's answer broke off".into())),
                Err(_) => Err(RemoteFailure::Unreachable("asking the model failed".into())),
            }
        }
        .boxed()
    }
}
