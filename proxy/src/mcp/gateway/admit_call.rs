//! Limits of calls: a `tools/call`, `prompts/get` or `resources/read` is a request to whoever counts requests. It has no
//! tokens, and the price that somebody set on the tool, if any; a budget that is used up refuses it all the same.

use super::McpGateway;
use super::McpRequest;
use super::answers::CallFailure;
use crate::context::Visit;
use crate::limits::admission::{Amounts, Attempted, LimitedRequest, McpCall, limits_of_attempt};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use shared::mcp::SERVICE;
use shared::model::policy::PolicyTarget;

impl McpGateway {
    pub(super) async fn admit_call(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        name: &str,
    ) -> Result<(), CallFailure> {
        let (caller, metadata) = (&asked.caller, &asked.metadata);
        let server = &asked.target.server.slug;
        let model = log_name(server, name);
        let price = self.snapshot.mcp_price(caller.workspace.organisation_id, &model).and_then(nano_cents).unwrap_or(0);
        if let Some(log) = &mut visit.observer.log {
            log.price_at(price);
        }
        let amounts = || {
            let price = Some(price.max(1));
            Amounts { tokens: Some(1), most_tokens: Some(1), most_answer: 0, nano_cents: price, most_nano_cents: price }
        };
        let of_request = self.admitter.wanted_by_target(visit, caller, metadata, None, PolicyTarget::McpTools);
        if !of_request.is_empty() {
            self.admitter.reserve(visit, &of_request, amounts(), false).await.map_err(CallFailure::refused)?;
        }
        let request = LimitedRequest {
            caller,
            metadata,
            config: visit.routing.config.as_deref(),
            family: None,
            target: PolicyTarget::McpTools,
            attempted: None,
            is_trusted_only: false,
        };
        let mcp = Some(McpCall { server, tool: name });
        let attempted = Attempted { provider: None, service: SERVICE, model: Some(&model), mcp };
        let of_attempt = limits_of_attempt(&request, &attempted, &self.snapshot, self.admitter.switches);
        if !of_attempt.is_empty() {
            self.admitter.reserve(visit, &of_attempt, amounts(), true).await.map_err(CallFailure::refused)?;
        }
        visit.leaves().map_err(CallFailure::refused)
    }
}

fn nano_cents(cents: Decimal) -> Option<u64> {
    cents.checked_mul(Decimal::from(1_000_000_000_u64))?.ceil().to_u64()
}

/// What stands for the model in the log of a call.
pub(super) fn log_name(server: &str, name: &str) -> String {
    format!("{server}/{name}")
}
