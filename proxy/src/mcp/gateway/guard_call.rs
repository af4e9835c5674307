//! Guardrails of messages: what the caller's config, workspace and organisation ask for looks at what the client sends as if
//! a user had said it, and at what the server says as if a model had, whatever kind of message it is and whichever way it
//! comes (`mcp::judged_texts` says where texts are). What they change is what is passed on; a denial takes its place. Those
//! that nobody would wait for elsewhere are run here too, and only logged.

use super::McpGateway;
use super::McpRequest;
use super::answers::CallFailure;
use crate::context::Visit;
use crate::engine::guard::forwardable_headers;
use crate::engine::guards::{GuardSet, ModelCalls};
use crate::guardrails::{
    CompiledHook, GuardInputs, ModelAsker, RemoteSide, SideJob, SideResult, both_sides, has_remote, parse_unique,
    run_side,
};
use crate::journal::HookLog;
use crate::mcp::{AnswerTexts, ClientMessage, Fault, INVALID_REQUEST, SESSION_ID, SentTexts};
use crate::request::refusal::Refusal;
use crate::runtime::heavy::{SMALL, heavy};
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Value, json};
use shared::guardrails::{Hook, Shape};
use std::mem;
use std::sync::Arc;

const KIND: &str = "chatComplete";
/// No hook of a side has spoken.
const NONE: &str = "[]";

impl McpGateway {
    pub(super) fn guards_of(&self, asked: &McpRequest) -> Option<Arc<GuardSet>> {
        let defaults = self.router.guards.defaults(&asked.caller);
        let leaf = asked.plan.leaves().next()?;
        self.router.guards.for_leaf(leaf, &asked.caller, defaults.as_ref())
    }

    /// Whatever a client sends: the message as it is to be sent, if that is otherwise.
    pub(super) async fn guard_sent(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        message: &ClientMessage,
    ) -> Result<Option<Bytes>, CallFailure> {
        let Some(set) = self.guards_of(asked).filter(|set| !set.input.is_empty()) else { return Ok(None) };
        let read = parse_unique(&message.bytes).map_err(|_| {
            CallFailure::malformed(Fault::new(INVALID_REQUEST, "the message cannot be read, so it cannot be judged"))
        })?;
        let found = SentTexts::find(read, &message.asked);
        let content = match found.texts().len() {
            0 => return Ok(None),
            1 => found.texts().map(Value::from).next().unwrap_or_default(),
            _ => found.texts().map(|text| json!({ "type": "text", "text": text })).collect(),
        };
        let request = Arc::new(json!({ "messages": [{ "role": "user", "content": content }] }));
        let headers = asked.headers.0.clone();
        let judged = Judged { hook: Hook::BeforeRequest, request: request.clone(), body: request, headers };
        let mut side = self.run_guards(visit, asked, set.input.clone(), judged).await?;
        *asked.claimed.lock() = mem::take(&mut side.extracted);
        visit.checked(Some(HookLog { results: both_sides(&side.logged(), NONE), late: None }));
        let results = || both_sides(&side.to_json(), NONE);
        if let Some(place) = side.denied_by {
            self.metrics.guardrails.denies("input");
            let message = set.input.get(place).and_then(|hook| hook.actions.message.clone());
            return Err(CallFailure::refused(Refusal::denied_by_guardrail(message, &results())));
        }
        let Some(changed) = &side.transformed else { return Ok(None) };
        let content = &changed["messages"][0]["content"];
        let texts: Vec<String> = match content {
            Value::String(text) => vec![text.clone()],
            parts => parts.as_array().into_iter().flatten().map(|part| text_of(&part["text"])).collect(),
        };
        let written = if texts.len() == found.texts().len() { found.with(&texts) } else { None };
        written.map(Some).ok_or_else(|| {
            // Sending what it wanted changed would be worse.
            let why = "a guardrail changed the arguments into something that cannot be sent".to_owned();
            CallFailure::refused(Refusal::denied_by_guardrail(Some(why), &results()))
        })
    }

    /// Whatever a server says: the message as the client is to get it, if that is otherwise.
    pub(super) async fn guard_server_message(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        message: &[u8],
    ) -> Result<Option<Bytes>, CallFailure> {
        let Some(set) = self.guards_of(asked).filter(|set| !set.output.is_empty()) else { return Ok(None) };
        let read = parse_unique(message).map_err(|_| CallFailure::unusable("it cannot be read"))?;
        let found = AnswerTexts::find(read);
        if found.texts.is_empty() {
            return Ok(None);
        }
        let texts = found.texts.iter().enumerate();
        let choices: Vec<Value> = texts
            .map(|(index, text)| json!({ "index": index, "message": { "role": "assistant", "content": text } }))
            .collect();
        let judged = Judged {
            hook: Hook::AfterRequest,
            request: Arc::new(json!({ "messages": [] })),
            body: Arc::new(json!({ "choices": choices })),
            headers: Arc::default(),
        };
        let side = self.run_guards(visit, asked, set.output.clone(), judged).await?;
        let before = visit.observer.log.as_ref().and_then(|log| log.hook_results());
        let before: Value = before.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let before = before.get("before_request_hooks").map_or_else(|| NONE.to_owned(), Value::to_string);
        visit.checked(Some(HookLog { results: both_sides(&before, &side.logged()), late: None }));
        if let Some(place) = side.denied_by {
            self.metrics.guardrails.denies("output");
            let message = set.output.get(place).and_then(|hook| hook.actions.message.clone());
            let results = both_sides(NONE, &side.to_json());
            return Err(CallFailure::refused(Refusal::denied_by_guardrail(message, &results)));
        }
        let Some(changed) = side.transformed else { return Ok(None) };
        let texts =
            found.texts.iter().enumerate().map(|(index, text)| {
                changed["choices"][index]["message"]["content"].as_str().unwrap_or(text).to_owned()
            });
        let texts = texts.collect();
        Ok(Some(found.with(texts)))
    }

    async fn run_guards(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        hooks: Vec<Arc<CompiledHook>>,
        judged: Judged,
    ) -> Result<SideResult, CallFailure> {
        let internal = || CallFailure::refused(Refusal::internal());
        let size = judged.body.to_string().len();
        let job = SideJob {
            hooks,
            hook: judged.hook,
            shape: Shape::Chat,
            request_type: KIND,
            request: judged.request,
            body: judged.body,
            metadata: Arc::new(asked.metadata.clone()),
            headers: judged.headers,
            text: None,
            status: (judged.hook == Hook::AfterRequest).then_some(200),
            size,
            meters: self.metrics.guardrails.clone(),
        };
        if has_remote(&job.hooks)
            && let Some(remote) = self.remote_guards(visit, asked, job.hook)
        {
            return Box::pin(job.run(remote)).await.ok_or_else(internal);
        }
        let run = move || {
            let inputs = GuardInputs {
                hook: job.hook,
                shape: job.shape,
                request_type: job.request_type,
                request: &job.request,
                metadata: &job.metadata,
                headers: &job.headers,
                text: None,
            };
            run_side(&job.hooks, inputs, &job.body, &job.meters)
        };
        match size > SMALL {
            false => Ok(run()),
            true => heavy(asked.caller.tenant(), run).await.ok_or_else(internal),
        }
    }

    /// Who asks others. Of the answer they hear what tokens of the request claim, too.
    fn remote_guards(&self, visit: &mut Visit, asked: &McpRequest, hook: Hook) -> Option<Arc<RemoteSide>> {
        let trace_id = visit.request.trace_id().to_str().unwrap_or_default().to_owned();
        let models = self.router.guards.engine().map(|engine| ModelCalls {
            engine,
            caller: asked.caller.clone(),
            metadata: asked.metadata.clone(),
            trace_id: trace_id.clone(),
            is_untracked: false,
        });
        let mut headers = forwardable_headers(&self.aliases, &asked.headers.0);
        headers.remove(&SESSION_ID);
        let remote = RemoteSide {
            asker: self.router.guards.asker.clone()?,
            organisation: asked.caller.workspace.organisation_id,
            workspace: asked.caller.workspace.id,
            provider: String::new(),
            trace_id,
            models: models.map(|models| Arc::new(models) as Arc<dyn ModelAsker>),
            headers,
        };
        Some(Arc::new(if hook == Hook::AfterRequest { remote.with_extracted(&asked.claimed.lock()) } else { remote }))
    }
}

struct Judged {
    hook: Hook,
    request: Arc<Value>,
    body: Arc<Value>,
    /// Of the client, as checks see them.
    headers: Arc<HeaderMap>,
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
