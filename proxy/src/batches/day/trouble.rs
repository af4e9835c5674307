//! What stands against a step at a provider: something that passes, and then it is done again, or something that does not. A
//! refusal lies in between: somebody may mend it (an account, a config), and what was begun at the provider is worth the wait.

use crate::batches::files::FilesAway;
use crate::batches::provider_objects::ObjectAnswer;
use crate::request::refusal::{Refusal, RefusalCode};
use crate::runtime::small_pool::PostgresAway;
use serde_json::Value;
use shared::batches::BatchError;

/// Of what a provider says.
const MAX_MESSAGE: usize = 1000;

#[derive(Debug)]
pub enum Trouble {
    /// Postgres or the log store is away.
    NotNow,
    /// Shown while the batch waits.
    Passing(BatchError),
    /// The provider or the gateway does not do it, as things are.
    Refused(BatchError),
    Lasting(Vec<BatchError>),
}

impl Trouble {
    pub fn lasting(code: &str, message: &str) -> Self {
        Self::Lasting(vec![BatchError::new(code, message)])
    }

    /// What a provider answered in place of what was asked for.
    pub fn from_reply(status: u16, body: &[u8]) -> Self {
        let reply: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |pointer: &str| reply.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let message = text("/error/message").or_else(|| text("/message")).unwrap_or("it gave no reason");
        let message: String = message.chars().take(MAX_MESSAGE).collect();
        let error = BatchError::new("provider_error", format!("the provider answered {status}: {message}"));
        if passes(status) { Self::Passing(error) } else { Self::Refused(error) }
    }
}

/// Of a status.
fn passes(status: u16) -> bool {
    matches!(status, 408 | 409 | 425 | 429 | 499..)
}

/// An object that a provider was asked for.
pub fn object(answer: &ObjectAnswer) -> Result<Value, Trouble> {
    if !(200..300).contains(&answer.status) {
        return Err(Trouble::from_reply(answer.status, &answer.body));
    }
    serde_json::from_slice(&answer.body)
        .map_err(|_| Trouble::Passing(BatchError::new("provider_error", "the provider's answer is no JSON")))
}

impl From<Refusal> for Trouble {
    fn from(refusal: Refusal) -> Self {
        // They are waited for before anything is begun, too.
        let is_mended = matches!(refusal.code, RefusalCode::BudgetExhausted | RefusalCode::RateLimitExceeded);
        let error = BatchError::new(refusal.code.as_str(), refusal.message.into_owned());
        if is_mended || passes(refusal.status) { Self::Passing(error) } else { Self::Refused(error) }
    }
}

impl From<FilesAway> for Trouble {
    fn from(_: FilesAway) -> Self {
        Self::NotNow
    }
}

impl From<PostgresAway> for Trouble {
    fn from(_: PostgresAway) -> Self {
        Self::NotNow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passes_is_told_from_what_is_refused() {
        for (status, is_passing) in [(429, true), (500, true), (503, true), (408, true), (400, false), (401, false)] {
            let reply = Trouble::from_reply(status, br#"{"error":{"message":"no"}}"#);
            assert_eq!(matches!(reply, Trouble::Passing(_)), is_passing, "{status}: {reply:?}");
        }
        let Trouble::Refused(error) = Trouble::from_reply(400, b"<html>") else { panic!("it is refused") };
        assert!(error.message.contains("it gave no reason"), "{error:?}");
        assert!(matches!(Trouble::from(Refusal::upstream_unreachable("p", "dns")), Trouble::Passing(_)));
        assert!(matches!(Trouble::from(Refusal::missing_provider()), Trouble::Refused(_)));
    }
}
