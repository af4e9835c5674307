//! What becomes of a row after it was asked? Pure: the runner acts on it.
//!
//! A row fails by its own fault alone, or after its tries at a provider that is broken. What passes with time holds the batch
//! up instead: a provider's or a limit's rate until it has room again, a budget or a key until somebody mends it. That ends at
//! the latest when the batch expires.

use crate::request::refusal::RefusalCode;
use std::time::Duration;

/// After the first try, at a provider that cannot be reached or says 5xx.
const RETRIES: i16 = 3;
/// After the first of them; each further one waits twice as long.
const FIRST_RETRY: Duration = Duration::from_secs(2);
/// Where nobody says how long to wait for room.
const USUAL_WAIT: Duration = Duration::from_secs(5);
const MAX_WAIT: Duration = Duration::from_secs(600);
/// Between two looks at a budget or a key.
pub const PAUSE: Duration = Duration::from_secs(15);

/// What is known of an answer.
#[derive(Debug, Clone, Copy)]
pub struct AskedRow {
    /// 0 when there was none.
    pub status: u16,
    /// Why the gateway itself answered.
    pub code: Option<RefusalCode>,
    /// Whether its config had it tried again already: then that is how often it is tried.
    pub is_retried: bool,
    pub retry_after: Option<Duration>,
    /// Failures before this one.
    pub retries: i16,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Answered,
    Failed,
    /// The row is asked again after this; it has one try less.
    Again(Duration),
    /// The batch waits, and the row is asked again then.
    HoldUp(Duration),
}

pub fn judge(row: AskedRow) -> Verdict {
    use RefusalCode as Code;
    if (200..300).contains(&row.status) {
        return Verdict::Answered;
    }
    let wait = row.retry_after.unwrap_or(USUAL_WAIT).clamp(Duration::from_secs(1), MAX_WAIT);
    match (row.code, row.status) {
        (Some(Code::BudgetExhausted | Code::InvalidApiKey | Code::ExpiredApiKey | Code::InsufficientScope), _) => {
            Verdict::HoldUp(PAUSE)
        }
        (Some(Code::RateLimitExceeded | Code::LimitsUnavailable | Code::Overloaded | Code::NotReady), _) => {
            Verdict::HoldUp(wait)
        }
        (None, 429) => Verdict::HoldUp(wait),
        (_, 0 | 408 | 499 | 500..) if row.retries < RETRIES && !row.is_retried => {
            let times = 1_u32 << row.retries.clamp(0, 10);
            Verdict::Again((FIRST_RETRY * times).max(row.retry_after.unwrap_or_default()).min(MAX_WAIT))
        }
        _ => Verdict::Failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: AskedRow = AskedRow { status: 200, code: None, is_retried: false, retry_after: None, retries: 0 };

    #[test]
    fn rates_budgets_and_keys_hold_up_the_batch_and_broken_providers_cost_tries() {
        let refused = |status, code| AskedRow { status, code: Some(code), ..ROW };
        let after = |row: AskedRow, seconds| AskedRow { retry_after: Some(Duration::from_secs(seconds)), ..row };
        let seconds = Duration::from_secs;
        for (row, expected) in [
            (ROW, Verdict::Answered),
            (AskedRow { status: 400, ..ROW }, Verdict::Failed),
            (AskedRow { status: 401, ..ROW }, Verdict::Failed),
            (AskedRow { status: 446, code: Some(RefusalCode::HooksFailed), ..ROW }, Verdict::Failed),
            (AskedRow { status: 429, ..ROW }, Verdict::HoldUp(seconds(5))),
            (after(AskedRow { status: 429, ..ROW }, 30), Verdict::HoldUp(seconds(30))),
            (after(AskedRow { status: 429, ..ROW }, 86_400), Verdict::HoldUp(seconds(600))),
            (after(AskedRow { status: 429, ..ROW }, 0), Verdict::HoldUp(seconds(1))),
            (AskedRow { status: 429, retries: 3, is_retried: true, ..ROW }, Verdict::HoldUp(seconds(5))),
            (after(refused(429, RefusalCode::RateLimitExceeded), 7), Verdict::HoldUp(seconds(7))),
            (refused(412, RefusalCode::BudgetExhausted), Verdict::HoldUp(PAUSE)),
            (refused(401, RefusalCode::ExpiredApiKey), Verdict::HoldUp(PAUSE)),
            (refused(412, RefusalCode::PriceUnknown), Verdict::Failed),
            (refused(400, RefusalCode::InvalidJson), Verdict::Failed),
            (AskedRow { status: 500, ..ROW }, Verdict::Again(seconds(2))),
            (AskedRow { status: 503, retries: 2, ..ROW }, Verdict::Again(seconds(8))),
            (after(AskedRow { status: 503, ..ROW }, 20), Verdict::Again(seconds(20))),
            (AskedRow { status: 0, ..ROW }, Verdict::Again(seconds(2))),
            (AskedRow { status: 502, code: Some(RefusalCode::UpstreamUnreachable), ..ROW }, Verdict::Again(seconds(2))),
            (AskedRow { status: 503, retries: 3, ..ROW }, Verdict::Failed),
            (AskedRow { status: 503, is_retried: true, ..ROW }, Verdict::Failed),
        ] {
            assert_eq!(judge(row), expected, "{row:?}");
        }
    }
}
