//! What came of a try, as the plan, the log and metrics want to know it.

use super::answer::{AnswerFailure, Ended, HeldStart};
use super::call::HeldAnswer;
use crate::context::PaidAnswer;
use crate::context::metrics::Outcome;
use crate::net::dial::Class;
use crate::net::retry_after::retry_after;
use crate::request::refusal::RefusalCode;
use crate::routing::{self, Speaker};
use bytes::Bytes;
use chrono::Utc;
use http::HeaderMap;
use std::time::{Duration, Instant};

pub(super) fn outcome(tried: &Result<HeldAnswer, Ended>, deadline: Option<Instant>) -> routing::AttemptResult {
    let left = deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
    match tried {
        Ok(answer) => {
            let head = answer.source.head();
            let status = answer.status();
            let asks = (status == 429).then(|| retry_after(&head.headers, Utc::now())).flatten();
            routing::AttemptResult { status, retry_after: asks, left, ..routing::AttemptResult::default() }
        }
        Err(Ended::Failed(failure)) => {
            let status = failure.refusal.status;
            routing::AttemptResult { status, speaker: speaker(failure), left, ..routing::AttemptResult::default() }
        }
        Err(_) => routing::AttemptResult { speaker: Speaker::Fault, left, ..routing::AttemptResult::default() },
    }
}

/// What we called the failure, if it was ours to name.
pub(super) fn code(tried: &Result<HeldAnswer, Ended>) -> Option<RefusalCode> {
    match tried {
        Err(Ended::Failed(failure)) => Some(failure.refusal.code),
        Ok(answer) => answer.denial().map(|refusal| refusal.code),
        _ => None,
    }
}

/// What the provider answered, as far as it was read.
pub(super) fn held(tried: &Result<HeldAnswer, Ended>) -> Option<(&HeaderMap, &Bytes)> {
    let answer = tried.as_ref().ok()?;
    Some((&answer.source.head().headers, answer.held.read()))
}

/// What the provider answered and is paid for, if the client does not get it.
pub(super) fn paid(tried: &Result<HeldAnswer, Ended>) -> Option<PaidAnswer> {
    match tried {
        Ok(answer) if answer.source.head().status.is_success() && !answer.is_hit => {
            Some(PaidAnswer::heard(answer.held.read().clone(), matches!(answer.held, HeldStart::Stream(_))))
        }
        Err(Ended::Failed(failure)) => failure.paid.as_deref().cloned(),
        _ => None,
    }
}

/// Whose word a failure is.
fn speaker(failure: &AnswerFailure) -> Speaker {
    match failure.outcome {
        // A guardrail's denial is an outcome like any status.
        _ if failure.refusal.code == RefusalCode::HooksFailed => Speaker::Provider,
        // A limit of ours that passed is the provider's answer; an address we do not dial is our refusal.
        Some(Outcome::Failed(Class::FirstByteTimeout)) => Speaker::Provider,
        Some(Outcome::Failed(Class::Blocked)) => Speaker::Gateway,
        Some(Outcome::Failed(_)) => Speaker::Network,
        Some(_) => Speaker::Provider,
        None if failure.refusal.is_fault() => Speaker::Fault,
        None => Speaker::Gateway,
    }
}
