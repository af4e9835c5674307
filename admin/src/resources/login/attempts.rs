//! Logins under way: sent to an identity provider, not back yet. The state in the address finds one, once; the secret in
//! the browser's cookie proves that it is the browser that began. Nonce and PKCE verifier are derived from both, so the
//! database holds nothing with which a login could be completed.

use super::LoginProvider;
use crate::http::ApiError;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use shared::identity::api_key::{self, KeyHash};
use std::net::IpAddr;
use tokio_postgres::GenericClient;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

/// How long a person may take at the provider.
pub const MINUTES: i32 = 10;
/// Attempts of one organisation at once, and of one network among them; anybody may begin one. For one more the oldest
/// goes, of the same network, or of the one that has most: whoever floods a sign-in pushes out none but themselves.
const MAX_ATTEMPTS: i64 = 10_000;
const MAX_ATTEMPTS_PER_NETWORK: i64 = 100;

pub struct NewAttempt<'a> {
    pub organisation_id: Uuid,
    pub provider: LoginProvider,
    pub issuer: &'a str,
    /// Where to afterwards; a path of ours (`sign_in::return_to`).
    pub return_to: &'a str,
    /// The secret of the browser's cookie.
    pub browser: &'a str,
    /// From where.
    pub network: IpAddr,
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
            (state_hash, browser_hash, organisation_id, provider, issuer, return_to, network, expires_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, now() + make_interval(mins => $8))";
    let state = api_key::generate("");
    let hashes = [hash(&state), hash(new.browser)];
    let (provider, network) = (new.provider.as_str(), new.network.to_string());
    make_room(db, new.organisation_id, &network).await?;
    let values: [&(dyn ToSql + Sync); 8] =
        [&hashes[0], &hashes[1], &new.organisation_id, &provider, &new.issuer, &new.return_to, &network, &MINUTES];
    db.execute(INSERT, &values).await?;
    Ok(state)
}

/// Several at once may leave a few more than there should be, of which the next makes good.
async fn make_room(db: &impl GenericClient, organisation: Uuid, network: &str) -> Result<(), ApiError> {
    const OF_NETWORK: &str = "DELETE FROM login_attempts WHERE state_hash IN (
            SELECT state_hash FROM login_attempts WHERE organisation_id = $1 AND network = $2
            ORDER BY expires_at DESC, state_hash OFFSET $3)";
    const COUNT: &str = "SELECT count(*) FROM (SELECT FROM login_attempts WHERE organisation_id = $1 LIMIT $2) a";
    const OF_LARGEST: &str = "DELETE FROM login_attempts WHERE state_hash IN (
            SELECT state_hash FROM login_attempts WHERE organisation_id = $1 AND network IS NOT DISTINCT FROM (
                SELECT network FROM login_attempts WHERE organisation_id = $1
                GROUP BY network ORDER BY count(*) DESC, network LIMIT 1)
            ORDER BY expires_at, state_hash LIMIT $2)";
    db.execute(OF_NETWORK, &[&organisation, &network, &(MAX_ATTEMPTS_PER_NETWORK - 1)]).await?;
    let open: i64 = db.query_one(COUNT, &[&organisation, &(2 * MAX_ATTEMPTS)]).await?.try_get(0)?;
    if open >= MAX_ATTEMPTS {
        db.execute(OF_LARGEST, &[&organisation, &(open - MAX_ATTEMPTS + 1)]).await?;
    }
    Ok(())
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
