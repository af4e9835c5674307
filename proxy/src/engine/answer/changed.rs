//! A plain answer that steps have changed. It is whole, and its length is its own: the provider's would cut it or leave
//! the client waiting. Usage is read from what the provider sent, and what is logged is what the client gets.

use super::{AnswerFailure, AnswerSource, ChangedBody, Ended, Steps, client_head, tell_cost};
use crate::context::metrics::Outcome;
use crate::context::{PaidAnswer, Visit};
use crate::net::downstream::Downstream;

/// Notes what was said of it. The error says why the client does not get it.
pub fn checked(mut body: ChangedBody, steps: &mut Steps, visit: &mut Visit) -> Result<ChangedBody, Ended> {
    visit.checked(steps.hook_log(visit.is_logged()));
    let Some(refusal) = body.denial.take() else { return Ok(body) };
    visit.pays(&PaidAnswer::heard(body.read, false));
    Err(Ended::Failed(AnswerFailure::new(*refusal, Some(Outcome::Answered))))
}

pub async fn deliver(
    client: &mut impl Downstream,
    source: &mut AnswerSource,
    body: ChangedBody,
    steps: &mut Steps,
    visit: &mut Visit,
) -> Result<Ended, Ended> {
    visit.answer.pulse.every = None;
    let ChangedBody { read, passed, .. } = body;
    tell_cost(&read, Some(&passed), source.head().status.as_u16(), visit).await;
    let framed = steps.framed_body(passed.clone());
    client.write_head(client_head(source.take_head(), Some(framed.len()), steps, visit)).await?;
    if visit.observer.keeper.is_some() {
        visit.keeps(steps.cached_body());
    }
    visit.changed(&read, &passed);
    client.write_body(framed, true).await?;
    Ok(Ended::Complete)
}
