//! Secrets that live in an outside manager (AWS Secrets Manager, Azure Key Vault, HashiCorp Vault) and are only
//! referred to here. What to ask and how to read the answer are pure functions, one file per manager; logins to
//! clouds and who dials are the room `cloud`'s.
//!
//! The proxy keeps one `Store` for the life of the process and asks it with a `Reference`; see `store.rs` for when
//! that waits and when it does not.

pub mod allowed_hosts;
mod aws;
mod azure;
pub mod cloud;
mod fetch;
mod login;
mod reference;
pub mod seal;
mod store;
mod value;
mod vault;

pub use azure::is_vault_url;
pub use fetch::Fetcher;
pub use reference::{BadAccess, Field, ManagerAccess, ManagerKind, Reference, fields};
pub use store::Store;
pub use value::pick;

pub use cloud::{Endpoints, Http, OwnIdentity, Request, Response};

use cloud::{LoginError, plain, text};

/// Why a secret could not be had. Never says more of an answer than its status and the manager's own error code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The manager said that it does not exist, or that we may not have it: a kept value must no longer be used.
    #[error("the secret manager refuses the secret: {0}")]
    Denied(String),
    #[error("the secret manager has no such secret: {0}")]
    Missing(String),
    /// The manager is away or busy: a kept value stays in use.
    #[error("the secret manager cannot be reached: {0}")]
    Away(String),
    /// It answered, and not as it should.
    #[error("the secret manager's answer makes no sense: {0}")]
    Malformed(&'static str),
    #[error("the secret has no entry `{0}`")]
    NoEntry(String),
    /// This process has no identity of its own to show.
    #[error("the gateway has no identity of its own for this: {0}")]
    NoIdentity(&'static str),
}

impl From<LoginError> for FetchError {
    fn from(error: LoginError) -> Self {
        match error {
            LoginError::Denied(what) => Self::Denied(what),
            LoginError::Away(what) => Self::Away(what),
            LoginError::Malformed(what) => Self::Malformed(what),
            LoginError::NoIdentity(what) => Self::NoIdentity(what),
            LoginError::Key(what) => Self::Denied(what.to_owned()),
        }
    }
}

impl FetchError {
    /// Whether what was fetched before is still to be trusted.
    pub fn keeps_stale(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Malformed(_) | Self::NoIdentity(_))
    }
}

/// What an HTTP status means for any of the managers, when its body has nothing better to say.
fn refused(status: u16, message: &str) -> FetchError {
    let what = if message.is_empty() { format!("status {status}") } else { format!("status {status}, {message}") };
    match status {
        404 => FetchError::Missing(what),
        429 | 500.. => FetchError::Away(what),
        _ => FetchError::Denied(what),
    }
}
