//! An organisation's public keys, by their ids. A set may hold keys for other purposes, so one that cannot be used is
//! remembered with the reason instead of spoiling the others.

use super::rejection::Rejection;
use jsonwebtoken::DecodingKey;
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

const LEAST_BITS: usize = 2048;
/// Verifying grows with the cube of the size, and tenants choose it.
const MOST_BITS: usize = 8192;
const MOST_KEYS: usize = 100;

#[derive(Default)]
pub struct WebKeySet {
    by_id: HashMap<String, Result<DecodingKey, &'static str>>,
    /// Tells sets apart that say different things.
    digest: [u8; 32],
    is_withdrawn: AtomicBool,
}

/// The members that decide whether a key verifies our tokens.
#[derive(Deserialize)]
struct Jwk {
    kid: String,
    kty: String,
    alg: Option<String>,
    r#use: Option<String>,
    key_ops: Option<Vec<String>>,
    n: Option<String>,
    e: Option<String>,
}

impl WebKeySet {
    pub fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let set: Value = serde_json::from_slice(text).map_err(|_| "it is not JSON")?;
        Self::from_json(&set)
    }

    pub fn from_json(set: &Value) -> Result<Self, &'static str> {
        let keys = set["keys"].as_array().ok_or("it has no list of keys")?;
        let mut found = HashMap::new();
        for jwk in keys.iter().take(MOST_KEYS).filter_map(|key| Jwk::deserialize(key).ok()) {
            let key = usable(&jwk);
            // Two keys under one id are a mistake of the set; the first that can be used is it.
            if key.is_ok() && found.get(&jwk.kid).is_some_and(Result::is_err) || !found.contains_key(&jwk.kid) {
                found.insert(jwk.kid, key);
            }
        }
        let digest = Sha256::digest(set.to_string()).into();
        Ok(Self { by_id: found, digest, is_withdrawn: AtomicBool::new(false) })
    }

    /// Whether both were made from the same set.
    pub fn is_same(&self, other: &Self) -> bool {
        self.digest == other.digest
    }

    /// Says that another set has taken its place: what was verified with it has to be verified anew.
    pub fn withdraw(&self) {
        self.is_withdrawn.store(true, Ordering::Relaxed);
    }

    pub fn is_withdrawn(&self) -> bool {
        self.is_withdrawn.load(Ordering::Relaxed)
    }

    pub fn contains(&self, kid: &str) -> bool {
        self.by_id.contains_key(kid)
    }

    pub fn find(&self, kid: &str) -> Result<&DecodingKey, Rejection> {
        match self.by_id.get(kid) {
            Some(Ok(key)) => Ok(key),
            Some(Err(why)) => Err(Rejection::UnusableKey { kid: kid.to_owned(), why }),
            None => Err(Rejection::UnknownKeyId(kid.to_owned())),
        }
    }
}

/// The algorithm belongs to the key: one that is for anything but RS256 signatures verifies nothing here.
fn usable(jwk: &Jwk) -> Result<DecodingKey, &'static str> {
    if jwk.kty != "RSA" {
        return Err("is not an RSA key");
    }
    if jwk.alg.as_deref().is_some_and(|alg| alg != "RS256") {
        return Err("is for another algorithm");
    }
    let verifies = |operations: &Vec<String>| operations.iter().any(|one| one == "verify");
    if jwk.r#use.as_deref().is_some_and(|purpose| purpose != "sig") || !jwk.key_ops.as_ref().is_none_or(verifies) {
        return Err("is not for signatures");
    }
    let (Some(n), Some(e)) = (jwk.n.as_deref().and_then(number), jwk.e.as_deref().and_then(number)) else {
        return Err("is damaged");
    };
    match bits(&n) {
        ..LEAST_BITS => Err("is shorter than 2048 bits"),
        size if size > MOST_BITS || !(2..=64).contains(&bits(&e)) => Err("is of an unusual size"),
        _ => Ok(DecodingKey::from_rsa_raw_components(&n, &e)),
    }
}

fn number(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
    let start = bytes.iter().position(|byte| *byte != 0)?;
    Some(bytes[start..].to_vec())
}

fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::jwt::testing::{Signer, signer, weak_signer};
    use serde_json::json;

    fn changed(signer: &Signer, member: &str, value: Value) -> Value {
        let mut jwk = signer.jwk();
        jwk[member] = value;
        jwk
    }

    #[test]
    fn only_rsa_keys_for_rs256_of_at_least_2048_bits_are_used_and_others_are_named() {
        let signer = signer();
        for (jwk, refused) in [
            (signer.jwk(), None),
            (changed(signer, "alg", json!("RS256")), None),
            (changed(signer, "key_ops", json!(["verify"])), None),
            (changed(signer, "alg", json!("RS512")), Some("another algorithm")),
            (changed(signer, "alg", json!("HS256")), Some("another algorithm")),
            (changed(signer, "use", json!("enc")), Some("not for signatures")),
            (changed(signer, "key_ops", json!(["encrypt"])), Some("not for signatures")),
            (changed(signer, "n", json!("*")), Some("damaged")),
            (changed(signer, "e", json!("")), Some("damaged")),
            (weak_signer().jwk(), Some("shorter than 2048 bits")),
            (json!({ "kid": "k1", "kty": "EC", "crv": "P-256", "x": "a", "y": "b" }), Some("not an RSA key")),
            (json!({ "kid": "k1", "kty": "oct", "k": "AQAB" }), Some("not an RSA key")),
        ] {
            let keys = WebKeySet::from_json(&json!({ "keys": [jwk] })).unwrap();
            let refusal = keys.find("k1").err().map(|error| error.to_string());
            match refused {
                None => assert_eq!(refusal, None, "{jwk}"),
                Some(why) => assert!(refusal.as_deref().is_some_and(|text| text.contains(why)), "{jwk}: {refusal:?}"),
            }
        }
    }

    #[test]
    fn a_key_that_cannot_be_used_does_not_hide_another_of_its_id_nor_spoil_the_set() {
        let elliptic = json!({ "kid": "k1", "kty": "EC" });
        for keys in [json!([elliptic, signer().jwk(), 7, {}]), json!([signer().jwk(), elliptic])] {
            assert!(WebKeySet::from_json(&json!({ "keys": keys })).unwrap().find("k1").is_ok(), "{keys}");
        }
        let none = WebKeySet::from_json(&json!({ "keys": [] })).unwrap();
        assert_eq!(none.find("k1").err(), Some(Rejection::UnknownKeyId("k1".into())));
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["", "<html>", "[]", "{}", "{\"keys\": {}}"] {
            assert!(WebKeySet::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
