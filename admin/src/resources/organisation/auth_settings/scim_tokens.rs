//! The tokens of an organisation's identity provider, as hashes. A new one does not end the one before at once: that
//! works for a week more, or until it is replaced in turn, so that an identity provider can be told without a gap.

use crate::crud::Action;
use crate::http::ApiError;
use shared::identity::api_key::KeyHash;

/// Without a hash, every token ends now.
pub async fn replace(action: &Action<'_>, hash: Option<KeyHash>) -> Result<(), ApiError> {
    const FORGET: &str = "DELETE FROM scim_tokens WHERE organisation_id = $1
        AND ($2::bytea IS NULL OR (expires_at IS NOT NULL AND hash <> $2))";
    const RETIRE: &str = "UPDATE scim_tokens SET expires_at = now() + interval '7 days'
        WHERE organisation_id = $1 AND expires_at IS NULL AND hash <> $2";
    // The token that was sent may be one that was retired: it is the present one again.
    const KEEP: &str = "INSERT INTO scim_tokens (organisation_id, hash) VALUES ($1, $2)
        ON CONFLICT (hash) DO UPDATE SET expires_at = NULL WHERE scim_tokens.organisation_id = $1";
    let organisation = action.organisation_id();
    let hash = hash.map(|hash| hash.0.to_vec());
    let Some(present) = &hash else {
        action.tx.execute(FORGET, &[&organisation, &hash]).await?;
        return Ok(());
    };
    const IS_PRESENT: &str = "SELECT FROM scim_tokens WHERE organisation_id = $1 AND hash = $2 AND expires_at IS NULL";
    if action.tx.query_opt(IS_PRESENT, &[&organisation, present]).await?.is_some() {
        return Ok(());
    }
    action.tx.execute(FORGET, &[&organisation, &hash]).await?;
    action.tx.execute(RETIRE, &[&organisation, present]).await?;
    match action.tx.execute(KEEP, &[&organisation, present]).await? {
        0 => Err(ApiError::Conflict("This token is in use already".into())),
        _ => Ok(()),
    }
}
