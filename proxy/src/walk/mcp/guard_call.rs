//! Guardrails of calls: what the caller's config, workspace and organisation ask for looks at the arguments as if a user had
//! said them, and at the texts of the result as if a model had. What they change is what is passed on; a denial is the
//! answer. Those that nobody would wait for elsewhere are run here too, and only logged.

use super::McpRequest;
use super::answers::CallFailure;
use crate::guardrails::{
    CompiledHook, GuardInputs, ModelAsker, RemoteSide, SideJob, SideResult, both_sides, has_remote, run_side,
};
use crate::journal::HookLog;
use crate::mcp::SESSION_ID;
use crate::refusal::Refusal;
use crate::runtime::heavy::{SMALL, heavy};
use crate::visit::Visit;
use crate::walk::Engine;
use crate::walk::guards::{GuardSet, ModelCalls};
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use shared::guardrails::{Hook, Shape};
use std::mem;
use std::sync::Arc;

const KIND: &str = "chatComplete";
/// No hook of a side has spoken.
const NONE: &str = "[]";

impl Engine {
    fn guards_of(&self, asked: &McpRequest) -> Option<Arc<GuardSet>> {
        let defaults = self.router.guards.defaults(&asked.caller);
        let leaf = asked.plan.leaves().next()?;
        self.router.guards.for_leaf(leaf, &asked.caller, defaults.as_ref())
    }

    /// The message as it is to be sent, if that is otherwise.
    pub(super) async fn guard_arguments(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        body: &Bytes,
    ) -> Result<Option<Bytes>, CallFailure> {
        let Some(set) = self.guards_of(asked).filter(|set| !set.input.is_empty()) else { return Ok(None) };
        let mut message: Value = serde_json::from_slice(body).unwrap_or_default();
        let said = match &message["params"] {
            params if params.get("arguments").is_some() => params["arguments"].to_string(),
            params => params["uri"].as_str().unwrap_or_default().to_owned(),
        };
        let request = Arc::new(json!({ "messages": [{ "role": "user", "content": said }] }));
        let headers = asked.headers.0.clone();
        let judged = Judged { hook: Hook::BeforeRequest, request: request.clone(), body: request, headers };
        let mut side = self.run_guards(visit, asked, set.input.clone(), judged).await?;
        *asked.claimed.lock() = mem::take(&mut side.extracted);
        visit.checked(Some(HookLog { results: both_sides(&side.logged(), NONE), late: None }));
        let told = || both_sides(&side.told(), NONE);
        if let Some(place) = side.denied_by {
            self.metrics.guardrails.denies("input");
            let message = set.input.get(place).and_then(|hook| hook.actions.message.clone());
            return Err(CallFailure::refused(Refusal::denied_by_guardrail(message, &told())));
        }
        let Some(changed) = &side.transformed else { return Ok(None) };
        let text = changed["messages"][0]["content"].as_str().unwrap_or_default();
        match serde_json::from_str::<Map<String, Value>>(text) {
            Ok(arguments) if message["params"].get("arguments").is_some() => {
                message["params"]["arguments"] = Value::Object(arguments);
                Ok(Some(Bytes::from(message.to_string())))
            }
            // Sending what it wanted changed would be worse.
            _ => {
                let why = "a guardrail changed the arguments into something that cannot be sent".to_owned();
                Err(CallFailure::refused(Refusal::denied_by_guardrail(Some(why), &told())))
            }
        }
    }

    /// The answer as the client is to get it, if that is otherwise.
    pub(super) async fn guard_result(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        body: &Bytes,
    ) -> Result<Option<Bytes>, CallFailure> {
        let Some(set) = self.guards_of(asked).filter(|set| !set.output.is_empty()) else { return Ok(None) };
        let mut answer: Value = serde_json::from_slice(body).unwrap_or_default();
        let texts = texts(&mut answer["result"]);
        if texts.is_empty() {
            return Ok(None);
        }
        let choices: Vec<Value> = texts
            .iter()
            .enumerate()
            .map(|(index, text)| json!({ "index": index, "message": { "role": "assistant", "content": &**text } }))
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
            let told = both_sides(NONE, &side.told());
            return Err(CallFailure::refused(Refusal::denied_by_guardrail(message, &told)));
        }
        let Some(changed) = side.transformed else { return Ok(None) };
        for (index, text) in texts.into_iter().enumerate() {
            if let Some(said) = changed["choices"][index]["message"]["content"].as_str() {
                said.clone_into(text);
            }
        }
        Ok(Some(Bytes::from(answer.to_string())))
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
            true => heavy(Some(asked.caller.workspace.id.uuid()), run).await.ok_or_else(internal),
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
        let mut headers = self.forwardable_headers(&asked.headers.0);
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

/// Where a result says something: blocks of a tool's, messages of a prompt, texts of a resource, and structured content.
fn texts(result: &mut Value) -> Vec<&mut String> {
    let mut found = Vec::new();
    let Some(result) = result.as_object_mut() else { return found };
    for (name, value) in result {
        match (name.as_str(), value) {
            ("content" | "contents" | "messages", Value::Array(blocks)) => {
                blocks.iter_mut().for_each(|block| block_texts(block, &mut found));
            }
            ("structuredContent", value) => all_texts(value, &mut found),
            _ => {}
        }
    }
    found
}

fn block_texts<'v>(block: &'v mut Value, found: &mut Vec<&'v mut String>) {
    let Some(block) = block.as_object_mut() else { return };
    for (name, value) in block {
        match (name.as_str(), value) {
            ("text", Value::String(text)) => found.push(text),
            // A resource inside a block, or the block inside a message.
            ("resource" | "content", value @ Value::Object(_)) => block_texts(value, found),
            _ => {}
        }
    }
}

fn all_texts<'v>(value: &'v mut Value, found: &mut Vec<&'v mut String>) {
    match value {
        Value::String(text) => found.push(text),
        Value::Array(items) => items.iter_mut().for_each(|item| all_texts(item, found)),
        Value::Object(fields) => fields.values_mut().for_each(|field| all_texts(field, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_a_result_is_found() {
        for (mut result, expected) in [
            (json!({ "content": [{ "type": "text", "text": "a" }, { "type": "image", "data": "x" }] }), vec!["a"]),
            (json!({ "content": [{ "type": "resource", "resource": { "uri": "u", "text": "b" } }] }), vec!["b"]),
            (json!({ "messages": [{ "role": "user", "content": { "type": "text", "text": "c" } }] }), vec!["c"]),
            (json!({ "contents": [{ "uri": "u", "text": "d" }] }), vec!["d"]),
            (json!({ "content": [], "structuredContent": { "x": ["e", 7, { "y": "f" }] } }), vec!["e", "f"]),
            (json!(7), vec![]),
        ] {
            assert_eq!(texts(&mut result), expected);
        }
    }
}
