//! What a target would not be told of a request, and for what the gateway would refuse to ask it: the request is written for
//! it as it would be, and thrown away. Bounded for all targets of a question together, since each of them is as much work as a
//! request.

use super::Explainer;
use crate::catalog::target::Target;
use crate::engine::betas;
use crate::engine::prepare::ProviderHeaders;
use crate::engine::repair::repaired;
use crate::engine::translate::{TranslationInputs, memory_to_translate};
use crate::request::body::Fields;
use crate::request::classify::Endpoint;
use crate::request::headers::GatewayHeaders;
use crate::request::receive::MemoryShare;
use crate::request::refusal::Refusal;
use crate::routing::plan::Leaf;
use crate::runtime::tenant_share::Tenant;
use bytes::Bytes;
use shared::providers::Family;

/// Bytes of bodies that are written for one question.
const MAX_BODY_BYTES: usize = 4 << 20;
/// What a small body costs at least.
const MIN_BODY_COST: usize = 4 << 10;

/// How much may still be tried out.
pub(super) struct TrialBudget(usize);

impl Default for TrialBudget {
    fn default() -> Self {
        Self(MAX_BODY_BYTES)
    }
}

impl TrialBudget {
    fn take(&mut self, bytes: usize) -> Option<()> {
        self.0 = self.0.checked_sub(bytes.max(MIN_BODY_COST))?;
        Some(())
    }
}

/// A request for a target that it would be sent to.
pub(super) struct TrialRequest<'r> {
    pub endpoint: Endpoint,
    pub leaf: &'r Leaf,
    pub target: &'r Target,
    pub headers: &'r GatewayHeaders<'r>,
    pub body: &'r [u8],
    pub fields: &'r Fields<'r>,
    /// As the target would be asked for it.
    pub model: Option<&'r str>,
    /// The same where its name is another than the caller's.
    pub renamed: Option<&'r str>,
    pub tenant: Tenant,
}

impl Explainer {
    /// The parameters that would be dropped. None where that was not tried out.
    pub(super) fn try_out(
        &self,
        asked: &TrialRequest<'_>,
        budget: &mut TrialBudget,
    ) -> Option<Result<Vec<String>, Refusal>> {
        budget.take(asked.body.len())?;
        let mut share = MemoryShare::none(&self.body_limits.memory, asked.tenant);
        share.grow(memory_to_translate(asked.body)).ok()?;
        let TrialRequest { endpoint, target, .. } = *asked;
        let renamed = target.deployment().or(asked.renamed);
        let edited = asked.leaf.edits.apply(&Bytes::copy_from_slice(asked.body), asked.fields, renamed);
        let row = &target.provider.row;
        let meant = ProviderHeaders::from_headers(asked.headers);
        let betas = meant.betas_outside_header(target);
        if endpoint.native_route().is_none() && row.native_path(endpoint.family()).is_some() {
            let is_repaired = endpoint.family() == Family::Chat && !row.repairs.is_empty();
            let mut dropped = if is_repaired { repaired(&edited, &row.repairs).1 } else { Vec::new() };
            dropped.extend(betas::left_out(&betas));
            return Some(Ok(dropped));
        }
        let inputs = TranslationInputs {
            endpoint,
            target,
            body: &edited,
            model: asked.model,
            user: asked.fields.text("user"),
            is_strict: asked.headers.is_strict() && asked.leaf.is_strict,
            capabilities: self.admitter.capabilities(target, asked.model),
            anthropic_version: meant.anthropic_version(target),
            betas: &betas,
            request_id: "explained",
            deadline: None,
        };
        Some(inputs.dry_run().map(Option::unwrap_or_default))
    }
}
