//! Logins under way: sent to an identity provider, not back yet. The state in the address finds one, once; the secret in
//! the browser's cookie proves that it is the browser that began. Nonce and PKCE verifier are derived from both, so the
//! database holds nothing with which a login could be completed.

use crate::http::ApiError;
use crate::login::LoginProvider;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use shared::identity::api_key::{self, KeyHash};
use tokio_postgres::GenericClient;
use uuid::Uuid;

/// How long a person may take at the provider.
pub const MINUTES: i32 = 10;
/// Attempts of one organisation at once; anybody may begin one.
const MOST: i64 = 10_000;

pub struct NewAttempt<'a> {
    pub organisation_id: Uuid,
    pub provider: LoginProvider,
    pub issuer: &'a str,
    /// Where to afterwards; a path of ours (`sign_in::return_to`).
    pub return_to: &'a str,
    /// The secret of the browser's cookie.
    pub browser: &'a str,
}

/// An attempt that came back.
#[derive(Debug)]
pub struct Attempt {
    pub organisation_id: Uuid,
    pub issuer: String,
    pub return_to: String,
}

/// Remembers an attempt and answers with its state.
pub async fn begin(db: &impl GenericClient, new: NewAttempt<'_>) -> Result<String, ApiError> {
    const INSERT: &str = "INSERT INTO login_attempts
            (state_hash, browser_hash, organisation_id, provider, issuer, return_to, expires_at)
        SELECT $1::bytea, $2::bytea, $3::uuid, $4::text, $5::text, $6::text, now() + make_interval(mins => $7::int4)
        WHERE (SELECT count(*) FROM (SELECT FROM login_attempts WHERE organisation_id = $3 AND expires_at > now() LIMIT $8::int8) a) < $8";
    let state = api_key::generate("");
    let hashes = [hash(&state), hash(new.browser)];
    let provider = new.provider.as_str();
    let made = db
        .execute(
            INSERT,
            &[&hashes[0], &hashes[1], &new.organisation_id, &provider, &new.issuer, &new.return_to, &MINUTES, &MOST],
        )
        .await?;
    match made {
        0 => Err(ApiError::RateLimited { message: "Too many logins are under way", retry_after: 60 }),
        _ => Ok(state),
    }
}

/// Takes the attempt of a state out, so that it is there for nobody else; none if there is none, if it is too old, of
/// another kind of provider, or was begun by another browser.
pub async fn take(
    db: &impl GenericClient,
    provider: LoginProvider,
    state: &str,
    browser: &str,
) -> Result<Option<Attempt>, ApiError> {
    const TAKE: &str = "DELETE FROM login_attempts WHERE state_hash = $1 AND provider = $2
        RETURNING browser_hash = $3 AND expires_at > now() AS is_theirs, organisation_id, issuer, return_to";
    let row = db.query_opt(TAKE, &[&hash(state), &provider.as_str(), &hash(browser)]).await?;
    let Some(row) = row else { return Ok(None) };
    if !row.try_get::<_, bool>("is_theirs")? {
        return Ok(None);
    }
    Ok(Some(Attempt {
        organisation_id: row.try_get("organisation_id")?,
        issuer: row.try_get("issuer")?,
        return_to: row.try_get("return_to")?,
    }))
}

/// A secret for one purpose, of this browser and this attempt: 43 characters of base64url.
pub fn derived(purpose: &str, browser: &str, state: &str) -> String {
    let parts = [purpose, browser, state].join("\0");
    URL_SAFE_NO_PAD.encode(Sha256::digest(parts.as_bytes()))
}

/// Notes an id that may be taken once until `expires_at`; false when it was taken before.
pub async fn take_once(
    db: &impl GenericClient,
    organisation: Uuid,
    issuer: &str,
    id: &str,
    expires_at: chrono::DateTime<chrono::Utc>,
) -> Result<bool, ApiError> {
    const TAKE: &str = "INSERT INTO login_replays (hash, expires_at) VALUES ($1, $2) ON CONFLICT (hash) DO NOTHING";
    let hash = hash(&[&organisation.to_string(), issuer, id].join("\0"));
    Ok(db.execute(TAKE, &[&hash, &expires_at]).await? == 1)
}

fn hash(text: &str) -> Vec<u8> {
    KeyHash::from_key(text.as_bytes()).0.to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_derived_belongs_to_its_purpose_browser_and_attempt() {
        let all = [
            derived("nonce", "browser", "state"),
            derived("verifier", "browser", "state"),
            derived("nonce", "other", "state"),
            derived("nonce", "browser", "other"),
        ];
        for (n, one) in all.iter().enumerate() {
            assert_eq!(one.len(), 43);
            assert!(!all[n + 1..].contains(one));
        }
        assert_eq!(derived("nonce", "browser", "state"), all[0]);
    }
}
