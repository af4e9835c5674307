//! Checks that somebody else answers, while a request waits: those of a side are asked side by side, each within its own time,
//! before the hooks are run with what they said. Only in hooks whose checks run in order is one asked after the other, about
//! what those before it made.
//!
//! Who calls is behind `RemoteAsker`; this room knows no socket.

mod answers;
pub(crate) mod places;
pub(crate) mod room;
mod side;

pub use answers::RemoteAnswers;
pub(super) use answers::{Place, ask, too_costly};
pub use places::{CallPlaces, TenantPlaces};
pub use side::{RemoteSide, SideJob};

use super::hook::CompiledHook;
use futures::future::BoxFuture;
use serde_json::{Map, Value};
use shared::guardrails::remote::{ModelQuestion, Question, RemoteAnswer, RemoteFailure};
use shared::model::id::{OrganisationId, WorkspaceId};
use std::sync::Arc;
use std::time::Instant;

/// Makes calls under the rules for addresses, and opens the credentials for them.
pub trait RemoteAsker: Send + Sync {
    /// Of a vendor, opened; none where none are stored.
    fn credentials(
        &self,
        organisation: OrganisationId,
        plugin: &str,
    ) -> Result<Option<Map<String, Value>>, RemoteFailure>;

    /// All of it answered, or why not. It waits for nothing beyond the deadline.
    fn ask(
        &self,
        organisation: OrganisationId,
        workspace: WorkspaceId,
        question: Question,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<shared::guardrails::remote::Answers, RemoteFailure>>;
}

/// Asks models of the workspace's own, for the request that is judged.
pub trait ModelAsker: Send + Sync {
    fn ask(
        &self,
        question: ModelQuestion,
        deadline: Instant,
    ) -> BoxFuture<'static, Result<RemoteAnswer, RemoteFailure>>;
}

/// Whether somebody else must be asked.
pub fn has_remote(hooks: &[Arc<CompiledHook>]) -> bool {
    hooks.iter().flat_map(|hook| hook.checks.iter()).any(|check| check.check.remote().is_some())
}

#[cfg(test)]
mod tests;
