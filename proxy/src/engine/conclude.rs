//! How an exchange ends: it is counted, and a client that has had nothing of an answer is told why.

use super::answer;
use super::answer::Ended;
use crate::context::Visit;
use crate::context::metrics::{Metrics, Outcome};
use crate::net::downstream::Downstream;
use crate::request::refusal::Refusal;

/// How an exchange left the client's connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Delivered {
    /// Answered in full, by the provider or by us.
    Answered,
    /// Half an answer went out; the connection must be closed so that nobody takes it for whole.
    Torn,
    ClientGone,
}

/// Counts how an exchange ended, and answers one of which the client has had nothing.
pub(crate) async fn conclude(
    metrics: &Metrics,
    client: &mut impl Downstream,
    visit: &mut Visit,
    ended: Ended,
) -> Delivered {
    let provider = visit.routing.provider_number;
    let is_hit = visit.routing.cache.status.is_hit();
    match ended {
        Ended::Complete if is_hit => Delivered::Answered,
        Ended::Complete => {
            metrics.attempt(provider, visit.answer.status, Outcome::Answered);
            Delivered::Answered
        }
        Ended::BrokenOff(class) => {
            class.into_iter().for_each(|class| metrics.attempt(provider, 0, Outcome::Failed(class)));
            Delivered::Answered
        }
        Ended::Torn(class) => {
            class.into_iter().for_each(|class| metrics.attempt(provider, 0, Outcome::Failed(class)));
            Delivered::Torn
        }
        Ended::ClientGone => {
            if !is_hit {
                metrics.attempt(provider, 0, Outcome::ClientLeft);
            }
            visit.answer.status = 499;
            Delivered::ClientGone
        }
        Ended::Failed(failure) => {
            if let Some(outcome) = failure.outcome {
                metrics.attempt(provider, 0, outcome);
            }
            refuse(metrics, client, visit, &failure.refusal).await
        }
    }
}

/// Answers for the gateway itself, and counts why.
pub async fn refuse(
    metrics: &Metrics,
    client: &mut impl Downstream,
    visit: &mut Visit,
    refusal: &Refusal,
) -> Delivered {
    metrics.refused(refusal.code);
    tracing::debug!(request_id = visit.id(), code = refusal.code.as_str(), status = refusal.status, "refused");
    match answer::refuse(client, visit, refusal).await {
        Ok(()) => Delivered::Answered,
        Err(_) => Delivered::ClientGone,
    }
}
