//! Why a request could not be given its credential, and what its client is told. Nothing of a credential is in it.

use crate::request::refusal::Refusal;
use shared::secrets::cloud::LoginError;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SigningError {
    #[error(transparent)]
    Login(#[from] LoginError),
    #[error("the login service did not answer within {0} ms")]
    Slow(u128),
    #[error("the gateway's own identity is not shown to this host")]
    OtherHost,
    /// A body that is relayed unread cannot be signed, and only a short one is read.
    #[error("a request to it is signed together with its body, which is too long to be read before it is relayed")]
    NeedsBody,
    #[error("a part of the credential cannot be sent in a header")]
    Unsendable,
}

/// When a service that is away is asked again, for clients.
const AGAIN_S: u32 = 5;

impl SigningError {
    /// Away for now, so that another attempt later may succeed.
    pub fn is_passing(&self) -> bool {
        matches!(self, Self::Slow(_) | Self::Login(LoginError::Away(_)))
    }

    pub fn refusal(&self, provider: &str) -> Refusal {
        Refusal::credential_unavailable(provider, self, self.is_passing().then_some(AGAIN_S))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::refusal::RefusalCode;

    #[test]
    fn a_client_is_told_the_provider_and_whether_to_come_again() {
        for (error, status) in [
            (SigningError::Slow(5000), 503),
            (LoginError::Away("status 503".into()).into(), 503),
            (LoginError::Denied("status 401, invalid_client".into()).into(), 502),
            (LoginError::Malformed("no token").into(), 502),
            (LoginError::NoIdentity("its operator does not lend it").into(), 502),
            (SigningError::OtherHost, 502),
        ] {
            let refusal = error.refusal("vertex-ai");
            assert_eq!((refusal.status, refusal.code), (status, RefusalCode::CredentialUnavailable), "{error}");
            assert!(refusal.message.contains("vertex-ai") && refusal.message.contains(&error.to_string()));
            assert_eq!(refusal.retry_after_s.is_some(), status == 503, "{error}");
        }
    }
}
