//! Secrets at rest. A value is sealed with AES-256-GCM by its organisation's data key; the data key lies in Postgres,
//! wrapped by a master key that does not. So a copy of the database opens nothing, and a change of master key rewrites
//! one small row per organisation.
//!
//! The place where a value is stored (organisation, table, row, field) is authenticated with it: a sealed value that
//! was moved to another row does not open.

mod cipher;
pub mod data_key;
mod derived;
mod envelope;
mod inventory;
mod keyring;
mod master;
mod sealer;
mod secret;

pub use cipher::SealingKey;
pub use derived::data_key_id;
pub use envelope::{Sealed, SealedPlace};
pub use inventory::{DOCUMENTS, SEALED, SealedColumn, SealedDocument};
pub use keyring::Keyring;
pub use master::MasterKeys;
pub use sealer::Sealer;
pub use secret::Secret;

use uuid::Uuid;

#[derive(Debug, thiserror::Error)]
pub enum SealError {
    #[error("there is no master key to seal with: set GATEWAY_MASTER_KEY_FILE or GATEWAY_MASTER_KEY")]
    NoMasterKey,
    #[error("the keyring does not hold the master key `{0}`")]
    UnknownMasterKey(String),
    #[error("the data key {0} does not exist")]
    UnknownDataKey(Uuid),
    #[error("these sealed bytes are of no form that this version knows")]
    Malformed,
    /// The key is wrong, or the bytes or their place were changed; nobody can tell which.
    #[error("a sealed value does not open: its key, its bytes or its place are not those it was sealed with")]
    Refused,
    #[error("the organisation's data key changes faster than it can be read")]
    Unsettled,
    #[error("no randomness or no cipher: {0}")]
    Crypto(#[from] openssl::error::ErrorStack),
    #[error("the data keys cannot be read: {}", crate::db::explain(.0))]
    Database(#[from] tokio_postgres::Error),
}
