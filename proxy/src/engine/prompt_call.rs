//! A call that runs a stored prompt: the prompt of its path, or one that a target of its config stands for. What is rendered
//! walks on as a call of its own dialect, so that guardrails, limits, targets and logs meet nothing new.

use super::admit::ReadBody;
use super::answer::Ended;
use super::call::{HeldAnswer, refused};
use super::guard::GuardedTarget;
use super::guards::GuardSet;
use super::look_up::cache_headers;
use super::prepare::ProviderHeaders;
use super::translate::{ReusableTranslation, memory_to_translate};
use super::{Engine, EngineRequest, KnownRequest};
use crate::catalog::choose_plan::wished_retry;
use crate::catalog::prompts;
use crate::catalog::prompts::{PromptRun, PromptUse, RenderedPrompt, StickyKey};
use crate::context::Visit;
use crate::identity::identify::Principal;
use crate::net::downstream::Downstream;
use crate::request::body::Fields;
use crate::request::classify::Endpoint;
use crate::request::headers::GatewayHeaders;
use crate::request::receive::{MemoryShare, OwnedShare, check_content_type};
use crate::request::refusal::Refusal;
use crate::routing::plan::Leaf;
use bytes::Bytes;
use serde_json::{Map, Value};
use shared::providers::Family;
use std::borrow::Cow;
use std::sync::Arc;

/// Variables and what is said beside them are no longer than this.
pub(super) const MAX_SIZE: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct PromptCall {
    /// `slug@version`, as the path says.
    reference: String,
    /// What was found for it, once the body was read.
    pub run: Option<Arc<PromptRun>>,
    /// The client's own body.
    pub sent: Bytes,
}

impl Engine {
    pub fn open_prompt(
        &self,
        reference: String,
        headers: &GatewayHeaders<'_>,
        known: KnownRequest,
    ) -> Result<Box<EngineRequest>, Refusal> {
        check_content_type(headers.content_type)?;
        let KnownRequest { caller, metadata, plan } = known;
        Ok(Box::new(EngineRequest {
            // Until the prompt says otherwise.
            endpoint: Endpoint::of(Family::Chat),
            caller,
            plan,
            metadata,
            meant: ProviderHeaders::from_headers(headers),
            is_strict: headers.is_strict(),
            retry: wished_retry(headers)?,
            cache: cache_headers(headers)?,
            is_untracked: !headers.is_debug(),
            first: None,
            form: None,
            native: None,
            prompt: Some(Box::new(PromptCall { reference, run: None, sent: Bytes::new() })),
            is_own: false,
            batch: None,
        }))
    }

    /// The body that the prompt of the path becomes; the call is one of its dialect from here on.
    pub(super) async fn run_prompt(
        &self,
        visit: &mut Visit,
        request: &mut EngineRequest,
        sent: Bytes,
        share: &mut MemoryShare<'_>,
    ) -> Result<Bytes, Refusal> {
        let Some(call) = &mut request.prompt else { return Ok(sent) };
        let run = {
            let user = user(&call.reference, &request.metadata, &sent);
            let sticky = StickyKey { user: user.as_deref(), trace: trace(visit) };
            Arc::new(prompts::find(&self.snapshot, &request.caller, &call.reference, sticky).await?)
        };
        visit.routing.prompt = Some(run.clone());
        let rendered = self.render_prompt(&run, &request.caller, &sent, PromptUse::Call, share).await?;
        (call.run, call.sent) = (Some(run), sent);
        request.endpoint = Endpoint::of(rendered.family);
        Ok(rendered.body)
    }

    /// Tries a target that is a stored prompt: it stands in place of what was asked.
    #[expect(clippy::too_many_arguments, reason = "what a target is tried with")]
    pub(super) async fn try_prompted<'e>(
        &'e self,
        client: &mut impl Downstream,
        visit: &mut Visit,
        request: &EngineRequest,
        leaf: &Leaf,
        reference: &str,
        body: &Bytes,
        guarded: &mut Option<Box<GuardedTarget>>,
        defaults: Option<&Arc<GuardSet>>,
        reusable: &mut Option<Box<ReusableTranslation<'e>>>,
    ) -> Result<HeldAnswer, Ended> {
        let sent = request.prompt.as_ref().map_or(body, |call| &call.sent);
        let mut share = MemoryShare::none(&self.body_limits.memory, request.caller.tenant());
        let rendered = self.prompt_of_target(visit, request, reference, sent, &mut share).await.map_err(refused)?;
        let fields = Fields::parse_object(&rendered).map_err(refused)?;
        match self.guards_at(request, leaf, defaults) {
            None => self.try_target(client, visit, request, leaf, &rendered, &fields, None, reusable).await,
            Some(set) => {
                let (read, headers) = (ReadBody { text: &rendered, fields: &fields }, &client.head().headers);
                match self.pass_guards(headers, visit, request, leaf, read, &rendered, set, guarded).await {
                    Ok((along, None)) => {
                        Box::pin(self.try_target(client, visit, request, leaf, &rendered, &fields, along, reusable))
                            .await
                    }
                    Ok((along, Some(changed))) => {
                        Box::pin(self.try_changed(client, visit, request, leaf, changed, along, reusable)).await
                    }
                    Err(denied) => *denied,
                }
            }
        }
    }

    async fn prompt_of_target(
        &self,
        visit: &mut Visit,
        request: &EngineRequest,
        reference: &str,
        sent: &Bytes,
        share: &mut MemoryShare<'_>,
    ) -> Result<Bytes, Refusal> {
        let endpoint = request.endpoint;
        if !takes_prompts(endpoint) {
            return Err(Refusal::misplaced_prompt(reference, "/v1/chat/completions or /v1/completions"));
        }
        if sent.len() > MAX_SIZE {
            return Err(Refusal::body_too_large(MAX_SIZE));
        }
        let user = user(reference, &request.metadata, sent);
        let sticky = StickyKey { user: user.as_deref(), trace: trace(visit) };
        let run = Arc::new(prompts::find(&self.snapshot, &request.caller, reference, sticky).await?);
        visit.routing.prompt = Some(run.clone());
        let rendered = self.render_prompt(&run, &request.caller, sent, PromptUse::Target, share).await?;
        if rendered.family != endpoint.family() {
            return Err(Refusal::misplaced_prompt(reference, &format!("/v1{}", rendered.family.path())));
        }
        Ok(rendered.body)
    }

    /// What is read as a tree takes many times its text, so that is counted before it is begun.
    async fn render_prompt(
        &self,
        run: &PromptRun,
        caller: &Principal,
        sent: &Bytes,
        purpose: PromptUse,
        share: &mut MemoryShare<'_>,
    ) -> Result<RenderedPrompt, Refusal> {
        let rendered = match prompts::write(&run.version, sent, purpose) {
            Some(rendered) => rendered,
            None => {
                share.grow(memory_to_translate(sent))?;
                let room = OwnedShare::none(self.body_limits.memory.clone(), caller.tenant());
                prompts::render(&self.snapshot, run, sent, purpose, room).await?
            }
        };
        share.grow(rendered.body.len())?;
        Ok(rendered)
    }
}

/// Whether a prompt can stand in place of this endpoint's bodies.
fn takes_prompts(endpoint: Endpoint) -> bool {
    endpoint.native_route().is_none() && matches!(endpoint.family(), Family::Chat | Family::Complete)
}

/// Whose call it is, as far as it says so. The body is looked into only where a label may mean several versions.
fn user<'u>(reference: &str, metadata: &'u Map<String, Value>, sent: &'u [u8]) -> Option<Cow<'u, str>> {
    match metadata.get("_user").and_then(Value::as_str) {
        Some(user) => Some(Cow::Borrowed(user)),
        None if !reference.contains('@') => None,
        None => Fields::parse_object(sent).ok()?.text("user"),
    }
}

fn trace(visit: &mut Visit) -> &str {
    visit.request.trace_id().to_str().unwrap_or_default()
}
