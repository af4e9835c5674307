//! Why nobody answered.

use super::super::verdict::Verdict;
use super::MAX_ANSWER;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteFailure {
    /// Not within the check's time.
    TimedOut,
    /// Too many calls are under way, or too large ones.
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
            // Whoever sends the requests decides how many there are, so it never passes.
            Self::Busy => Verdict::bound("Busy", "too many checks wait for services outside"),
            Self::TooLong => {
                Verdict::error("AnswerTooLong", format!("the service's answer is longer than {MAX_ANSWER} bytes"))
            }
            Self::Forbidden(rule) => {
                Verdict::error("ForbiddenAddress", format!("the service's address may not be called: {rule}"))
            }
            Self::Unreachable(why) => Verdict::error("ConnectionError", why.clone()),
            Self::Sealed => Verdict::error("BadCredentials", "the stored credentials of this vendor cannot be opened"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_sender_of_requests_can_bring_about_never_passes() {
        assert!(!RemoteFailure::Busy.verdict().passes(false));
        assert!(RemoteFailure::TimedOut.verdict().passes(false));
    }
}
