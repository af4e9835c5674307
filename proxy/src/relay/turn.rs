//! A relayed call's turn at a provider that limits its concurrency.

use super::{Passage, RelayLane};
use crate::context::Visit;
use crate::engine::fair_turn::Turn;
use crate::request::refusal::Refusal;

impl Passage {
    /// Whether others may come to wait for its place at the provider.
    pub(crate) fn takes_turns(&self) -> bool {
        let (_, caller, _) = self.asked();
        !self.is_listing && Turn::for_target(&self.target, &caller.workspace, false).is_some()
    }
}

impl RelayLane {
    /// Waits for the turn of a call. A connection that is tried again keeps its turn.
    pub(super) async fn take_turn(&self, passage: &mut Passage, visit: &mut Visit) -> Result<(), Refusal> {
        if passage.permit.is_some() {
            return Ok(());
        }
        let (_, caller, _) = passage.asked();
        let Some(turn) = Turn::for_target(&passage.target, &caller.workspace, false) else { return Ok(()) };
        let permit = Box::pin(self.calls.take_turn(turn, visit.routing.deadline)).await;
        passage.permit = Some(permit?);
        Ok(())
    }
}
