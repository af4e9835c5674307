//! A person of an organisation as the data plane needs them: whether tokens that name them still count. Addresses are
//! kept as digests, because nothing here has to read one.

use super::id::{OrganisationId, UserId};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use tokio_postgres::Row;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Person {
    pub id: UserId,
    pub organisation_id: OrganisationId,
    pub email: EmailDigest,
    pub is_active: bool,
}

/// Stands for an e-mail address, in whatever case it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EmailDigest([u8; 16]);

impl EmailDigest {
    pub fn new(email: &str) -> Self {
        let digest = Sha256::digest(email.trim().to_lowercase());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        Self(bytes)
    }
}

impl Person {
    pub const COLUMNS: &str = "id, organisation_id, email, status = 'active' AS is_active";

    pub fn from_row(row: &Row) -> Result<Self, tokio_postgres::Error> {
        Ok(Self {
            id: row.try_get("id")?,
            organisation_id: row.try_get("organisation_id")?,
            email: EmailDigest::new(row.try_get("email")?),
            is_active: row.try_get("is_active")?,
        })
    }
}
