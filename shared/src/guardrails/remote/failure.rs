//! Why nobody answered.

use super::super::verdict::Verdict;
use super::LONGEST_ANSWER;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteFailure {
    /// Not within the check's time.
    TimedOut,
    /// Too many calls of this workspace are under way.
    Busy,
    TooLong,
    /// The rules for addresses forbid this one; in words.
    Forbidden(String),
    /// In words that repeat nothing of the call.
    Unreachable(String),
    /// The stored credentials cannot be opened.
    Sealed,
}

impl RemoteFailure {
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::TimedOut => Verdict::error("TimeoutError", "the service did not answer in time"),
            Self::Busy => Verdict::error("Busy", "too many checks of this workspace wait for services outside"),
            Self::TooLong => {
                Verdict::error("AnswerTooLong", format!("the service's answer is longer than {LONGEST_ANSWER} bytes"))
            }
            Self::Forbidden(rule) => {
                Verdict::error("ForbiddenAddress", format!("the service's address may not be called: {rule}"))
            }
            Self::Unreachable(why) => Verdict::error("ConnectionError", why.clone()),
            Self::Sealed => Verdict::error("BadCredentials", "the stored credentials of this vendor cannot be opened"),
        }
    }
}
