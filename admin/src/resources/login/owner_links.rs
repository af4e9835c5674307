//! Owners and identity providers. An address that an identity provider vouches for finds its person, but an owner only if
//! that owner said so before: whoever sets an identity provider up would otherwise be an owner with their next login.
//! The word is for one identity provider and one login, and lasts an hour.

use crate::http::{ApiError, Time};
use tokio_postgres::GenericClient;
use uuid::Uuid;

pub const MINUTES: i32 = 60;

/// Until when it is allowed.
pub async fn allow(db: &impl GenericClient, organisation: Uuid, owner: Uuid, issuer: &str) -> Result<Time, ApiError> {
    const ALLOW: &str = "INSERT INTO owner_links (organisation_id, user_id, issuer, expires_at)
        VALUES ($1, $2, $3, now() + make_interval(mins => $4))
        ON CONFLICT (user_id, issuer) DO UPDATE SET expires_at = excluded.expires_at
        RETURNING expires_at";
    Ok(db.query_one(ALLOW, &[&organisation, &owner, &issuer, &MINUTES]).await?.try_get("expires_at")?)
}

/// Whether it was allowed; from now on it is not.
pub async fn take(
    db: &impl GenericClient,
    organisation: Uuid,
    owner: Uuid,
    issuer: &str,
) -> Result<bool, tokio_postgres::Error> {
    const TAKE: &str = "DELETE FROM owner_links WHERE organisation_id = $1 AND user_id = $2 AND issuer = $3
        RETURNING expires_at > now() AS is_live";
    match db.query_opt(TAKE, &[&organisation, &owner, &issuer]).await? {
        Some(row) => row.try_get("is_live"),
        None => Ok(false),
    }
}
