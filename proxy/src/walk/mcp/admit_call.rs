//! Limits of calls: a `tools/call`, `prompts/get` or `resources/read` is a request to whoever counts requests. It has no
//! tokens and no price; a budget that is used up refuses it all the same.

use super::McpRequest;
use super::answers::CallFailure;
use crate::admission::{Amounts, Attempted, LimitedRequest, McpCall, limits_of_attempt};
use crate::visit::Visit;
use crate::walk::Engine;

/// Whose the calls are in logs, and what policies about providers call it.
pub(super) const SERVICE: &str = "mcp";

impl Engine {
    pub(super) async fn admit_call(
        &self,
        visit: &mut Visit,
        asked: &McpRequest,
        name: &str,
    ) -> Result<(), CallFailure> {
        let (caller, metadata) = (&asked.caller, &asked.metadata);
        let amounts = Amounts { tokens: Some(1), most_tokens: Some(1), nano_cents: Some(1), most_nano_cents: Some(1) };
        let of_request = self.admitter.wanted(visit, caller, metadata, None);
        if !of_request.is_empty() {
            self.admitter.reserve(visit, &of_request, amounts, false).await.map_err(CallFailure::refused)?;
        }
        let server = &asked.target.server.slug;
        let model = log_name(server, name);
        let request = LimitedRequest {
            caller,
            metadata,
            config: visit.routing.config.as_deref(),
            family: None,
            attempted: None,
            is_trusted_only: false,
        };
        let mcp = Some(McpCall { server, tool: name });
        let attempted = Attempted { provider: None, service: SERVICE, model: Some(&model), mcp };
        let of_attempt = limits_of_attempt(&request, &attempted, &self.snapshot, self.admitter.switches);
        if !of_attempt.is_empty() {
            self.admitter.reserve(visit, &of_attempt, amounts, true).await.map_err(CallFailure::refused)?;
        }
        visit.leaves().map_err(CallFailure::refused)
    }
}

/// What stands for the model in the log of a call.
pub(super) fn log_name(server: &str, name: &str) -> String {
    format!("{server}/{name}")
}
