//! OpenID Connect, as much of it as a relying party needs: the providers of an organisation (`provider`), what a provider
//! says of itself (`discovery`), the code flow's calls (`client`), and what of an ID token or a logout token is believed
//! (`claims`). Signatures and key rotation are those of the tokens that callers send (`shared::identity::jwt`).

pub mod claims;
pub mod client;
pub mod discovery;
pub mod provider;

pub use client::OidcClient;
pub use provider::OidcProvider;

use crate::http::ApiError;

/// Why a login or a logout by a provider came to nothing, in words for the person and the audit trail. They repeat
/// nothing that the provider sent but its own error code, shortened.
#[derive(Debug, Clone, thiserror::Error)]
pub enum OidcError {
    #[error("The identity provider cannot be reached: {0}")]
    Unreachable(String),
    #[error("The identity provider's metadata cannot be used: {0}")]
    Metadata(&'static str),
    #[error("No client secret is stored for the identity provider (oidc.client_secret of the auth settings)")]
    NoSecret,
    #[error("The identity provider refused: {0}")]
    Refused(String),
    #[error("The identity provider's answer cannot be used: {0}")]
    Answer(&'static str),
    #[error("The identity provider's token is not accepted: {0}")]
    Token(String),
}

impl From<OidcError> for ApiError {
    fn from(error: OidcError) -> Self {
        Self::SignInRefused(error.to_string())
    }
}
