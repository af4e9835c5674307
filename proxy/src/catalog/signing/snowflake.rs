//! Snowflake's key-pair tokens: the account's user signs for itself, and names the key by the hash of its public half.
//! Pure: the clock is an argument.

use openssl::base64::encode_block;
use openssl::pkey::{PKey, Private};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use shared::secrets::cloud::{LoginError, rs256};
use shared::secrets::seal::Secret;
use std::time::Duration;

/// The longest that Snowflake allows.
pub const LIFE: Duration = Duration::from_secs(3600);

pub fn token(account: &str, user: &str, key: &PKey<Private>, now_s: i64) -> Result<Secret, LoginError> {
    let public = key.public_key_to_der().map_err(|_| LoginError::Key("it has no public half"))?;
    let fingerprint = encode_block(Sha256::digest(public).as_slice());
    let subject = format!("{}.{}", account_name(account), user.to_uppercase());
    let claims = json!({
        "iss": format!("{subject}.SHA256:{fingerprint}"),
        "sub": subject,
        "iat": now_s,
        "exp": now_s.saturating_add(LIFE.as_secs() as i64),
    });
    rs256::token(key, &json!({ "alg": "RS256", "typ": "JWT" }), &claims)
}

/// In capitals and without its region, which tokens do not know.
fn account_name(account: &str) -> String {
    account.split('.').next().unwrap_or_default().to_uppercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use openssl::rsa::Rsa;
    use serde_json::Value;

    #[test]
    fn a_token_names_the_account_the_user_and_the_key() {
        let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
        let token = token("my_org-acct.eu-west-1", "jo", &key, 1_000).unwrap();
        let claims = token.expose_text().unwrap().split('.').nth(1).unwrap().replace('-', "+").replace('_', "/");
        let padded = format!("{claims}{}", "=".repeat((4 - claims.len() % 4) % 4));
        let claims: Value = serde_json::from_slice(&openssl::base64::decode_block(&padded).unwrap()).unwrap();
        let hash =
            openssl::hash::hash(openssl::hash::MessageDigest::sha256(), &key.public_key_to_der().unwrap()).unwrap();
        let issuer = format!("MY_ORG-ACCT.JO.SHA256:{}", encode_block(&hash));
        assert_eq!(claims, json!({ "iss": issuer, "sub": "MY_ORG-ACCT.JO", "iat": 1_000, "exp": 4_600 }));
    }
}
