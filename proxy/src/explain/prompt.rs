//! Stored prompts in an explanation: the body that would be made of one, and which version it would be.

use super::Explainer;
use super::translation::TrialBudget;
use super::{ExplainedLane, Hypothesis, refused};
use crate::catalog::prompts;
use crate::catalog::prompts::{PromptRun, PromptUse, StickyKey};
use crate::identity::identify::Principal;
use crate::request::body::Fields;
use crate::request::classify::Endpoint;
use crate::request::headers::GatewayHeaders;
use crate::request::receive::OwnedShare;
use crate::request::refusal::Refusal;
use crate::routing::plan::Leaf;
use bytes::Bytes;
use serde_json::{Value, json};

impl Explainer {
    /// Puts the body of the prompt in place of what was asked, and tells which prompt it is.
    pub(super) async fn render_hypothesis(
        &self,
        hypothesis: &mut Hypothesis,
        caller: &Principal,
    ) -> Result<Option<PromptRun>, Refusal> {
        let Some(reference) = hypothesis.prompt.clone() else { return Ok(None) };
        let sent = Bytes::from(std::mem::take(&mut hypothesis.body));
        let run = self.explained_run(&reference, &sent, caller).await?;
        let room = OwnedShare::none(self.body_limits.memory.clone(), caller.tenant());
        let rendered = prompts::render(&self.snapshot, &run, &sent, PromptUse::Call, room).await?;
        hypothesis.route = ExplainedLane::Engine(Endpoint::of(rendered.family));
        hypothesis.body = rendered.body.to_vec();
        Ok(Some(run))
    }

    /// Whom a target would ask that is a stored prompt.
    pub(super) async fn would_be_prompted(
        &self,
        leaf: &Leaf,
        reference: &str,
        caller: &Principal,
        hypothesis: &Hypothesis,
        budget: &mut TrialBudget,
    ) -> Value {
        let sent = Bytes::from(hypothesis.body.clone());
        let run = match self.explained_run(reference, &sent, caller).await {
            Ok(run) => run,
            Err(refusal) => return refused(&refusal),
        };
        let room = OwnedShare::none(self.body_limits.memory.clone(), caller.tenant());
        let rendered = match prompts::render(&self.snapshot, &run, &sent, PromptUse::Target, room).await {
            Ok(rendered) => rendered,
            Err(refusal) => return refused(&refusal),
        };
        let mut would_be = || {
            let headers = GatewayHeaders::from_headers(&hypothesis.headers, &self.aliases)?;
            let headers = headers.or_provider(Some(&run.version.provider));
            let fields = Fields::parse_object(&rendered.body)?;
            Ok(self.would_be(leaf, &headers, caller, &fields, hypothesis, budget))
        };
        let mut target = would_be().unwrap_or_else(|refusal: Refusal| refused(&refusal));
        target["prompt"] = describe_run(&run);
        target
    }

    /// Without a trace of its own, a question is always answered with the same version.
    async fn explained_run(&self, reference: &str, sent: &[u8], caller: &Principal) -> Result<PromptRun, Refusal> {
        let user = Fields::parse_object(sent).ok().and_then(|fields| fields.text("user"));
        let sticky = StickyKey { user: user.as_deref(), trace: "" };
        prompts::find(&self.snapshot, caller, reference, sticky).await
    }
}

pub(super) fn describe_run(run: &PromptRun) -> Value {
    json!({
        "id": run.prompt.id,
        "slug": run.prompt.slug,
        "version": run.version.row.number,
        "version_id": run.version.row.id,
    })
}
