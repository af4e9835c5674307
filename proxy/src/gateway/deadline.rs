//! The time that a config gives a whole request, on the relay lane. Pingora's limits are for one read or one write each;
//! here each is made as long as what is left. A websocket has no end that could be late.

use pingora_core::{Error, ErrorType, Result};
use proxy::context::Visit;
use proxy::request::refusal::Refusal;
use std::time::{Duration, Instant};

/// Of a limit for one step, as much as is left of the whole.
pub fn within(limit: Duration, visit: &Visit, is_upgrade: bool) -> Duration {
    match visit.routing.deadline.filter(|_| !is_upgrade) {
        None => limit,
        Some(deadline) => limit.min(deadline.saturating_duration_since(Instant::now())),
    }
}

/// What the client is told when a limit for one step has passed.
pub fn refusal(visit: &Visit, of_step: Refusal) -> Refusal {
    let is_over = visit.routing.deadline.is_some_and(|deadline| deadline <= Instant::now());
    if is_over { Refusal::out_of_time() } else { of_step }
}

/// Some of the answer is about to be written, which may take as long as is left; an error when nothing is, and none when
/// nobody set an end.
pub fn for_write(visit: &mut Visit, longest: Duration) -> Result<Option<Duration>> {
    let Some(deadline) = visit.routing.deadline.filter(|_| visit.answer.websocket.is_none()) else { return Ok(None) };
    let left = deadline.saturating_duration_since(Instant::now());
    if left.is_zero() {
        visit.answer.error_code = Some(Refusal::out_of_time().code);
        return Err(Error::explain(ErrorType::ReadTimedout, "the time for the whole request is over").into_up());
    }
    Ok(Some(left.min(longest)))
}
