//! Limits of a relayed call, asked again for each target that it turns to.

use super::admit_head::HeadPrice;
use super::upgrade;
use super::{Passage, RelayLane};
use crate::context::Visit;
use crate::request::refusal::Refusal;
use pingora_http::RequestHeader;
use shared::providers::Family;

impl RelayLane {
    /// Before a target is asked. Its refusal is that target's answer. A question which models there are is no call.
    pub async fn admit_passage(
        &self,
        passage: &mut Passage,
        head: &RequestHeader,
        visit: &mut Visit,
    ) -> Result<(), Refusal> {
        if passage.is_listing {
            visit.routing.attempts = visit.routing.attempts.saturating_add(1);
            return Ok(());
        }
        let (path, caller, metadata) = passage.asked();
        let family = Family::from_path(&head.method, path).map(|(family, _)| family);
        let model = passage.model.as_deref();
        let wanted = self.admitter.wanted_of(visit, caller, metadata, family, &passage.target, model);
        let is_admitted = visit.observer.is_attempt_admitted();
        upgrade::check_counted(head, path, &wanted)?;
        let price = HeadPrice::of_call(head, path);
        let wanted = price.asks(&wanted);
        if !wanted.is_empty() {
            self.admitter.reserve(visit, &wanted, price.amounts(), true).await?;
        }
        let turn = match self.take_turn(passage, visit).await {
            Ok(()) => visit.leaves(),
            refused => refused,
        };
        turn.inspect_err(|_| {
            if !is_admitted {
                visit.observer.give_attempt_back()
            }
        })
    }
}
