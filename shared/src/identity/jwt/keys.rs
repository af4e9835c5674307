//! An organisation's public keys, by their ids. A set may hold keys for other purposes, so one that cannot be used is
//! remembered with the reason instead of spoiling the others.

use super::algorithm;
use super::rejection::Rejection;
use super::signature::{self, Curve, P256, P384};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};

const MIN_BITS: usize = 2048;
/// Verifying grows with the cube of the size, and tenants choose it.
const MAX_BITS: usize = 8192;
const MAX_KEYS: usize = 100;

#[derive(Default)]
pub struct WebKeySet {
    by_id: HashMap<String, Result<TokenKey, &'static str>>,
    /// Tells sets apart that say different things.
    digest: [u8; 32],
    is_withdrawn: AtomicBool,
}

/// The algorithms belong to the key: whatever a token says of itself, it is verified by one of these.
struct TokenKey {
    key: DecodingKey,
    algorithms: Vec<Algorithm>,
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
    crv: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

impl WebKeySet {
    pub fn parse(text: &[u8]) -> Result<Self, &'static str> {
        let set: Value = serde_json::from_slice(text).map_err(|_| "it is not JSON")?;
        Self::from_json(&set)
    }

    pub fn from_json(set: &Value) -> Result<Self, &'static str> {
        let keys = set["keys"].as_array().ok_or("it has no list of keys")?;
        let mut found = HashMap::new();
        for jwk in keys.iter().take(MAX_KEYS).filter_map(|key| Jwk::deserialize(key).ok()) {
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

    /// The key of this id, if it verifies signatures of this algorithm.
    pub(super) fn find(&self, kid: &str, algorithm: Algorithm) -> Result<&DecodingKey, Rejection> {
        let unusable = |why| Rejection::UnusableKey { kid: kid.to_owned(), why };
        match self.by_id.get(kid) {
            Some(Ok(found)) if found.algorithms.contains(&algorithm) => Ok(&found.key),
            Some(Ok(_)) => Err(unusable(OTHER_ALGORITHM)),
            Some(Err(why)) => Err(unusable(why)),
            None => Err(Rejection::UnknownKeyId(kid.to_owned())),
        }
    }
}

const OTHER_ALGORITHM: &str = "is for another algorithm";

fn usable(jwk: &Jwk) -> Result<TokenKey, &'static str> {
    let possible = possible_algorithms(jwk)?;
    let algorithms = match jwk.alg.as_deref() {
        None => possible.to_vec(),
        Some(name) => match algorithm::parse(name).filter(|named| possible.contains(named)) {
            Some(named) => vec![named],
            None => return Err(OTHER_ALGORITHM),
        },
    };
    let verifies = |operations: &Vec<String>| operations.iter().any(|one| one == "verify");
    if jwk.r#use.as_deref().is_some_and(|purpose| purpose != "sig") || !jwk.key_ops.as_ref().is_none_or(verifies) {
        return Err("is not for signatures");
    }
    let key = match jwk.kty.as_str() {
        "EC" => elliptic(jwk, if possible == [Algorithm::ES256] { P256 } else { P384 }),
        "OKP" => edwards(jwk),
        _ => rsa(jwk),
    };
    key.map(|key| TokenKey { key, algorithms })
}

/// What a key of this type can verify.
fn possible_algorithms(jwk: &Jwk) -> Result<&'static [Algorithm], &'static str> {
    match (jwk.kty.as_str(), jwk.crv.as_deref()) {
        ("RSA", _) => Ok(algorithm::RSA),
        ("EC", Some("P-256")) => Ok(&[Algorithm::ES256]),
        ("EC", Some("P-384")) => Ok(&[Algorithm::ES384]),
        ("OKP", Some("Ed25519")) => Ok(&[Algorithm::EdDSA]),
        ("EC" | "OKP", _) => Err("is on a curve that is not known here"),
        _ => Err("is not an RSA key, nor one of a curve"),
    }
}

fn elliptic(jwk: &Jwk, curve: Curve) -> Result<DecodingKey, &'static str> {
    let part = |text: &Option<String>| text.as_deref().and_then(bytes).filter(|bytes| bytes.len() == curve.length);
    let (Some(x), Some(y)) = (part(&jwk.x), part(&jwk.y)) else { return Err("is damaged") };
    let point = [&[4], x.as_slice(), y.as_slice()].concat();
    match signature::is_on_curve(curve, &point) {
        true => Ok(DecodingKey::from_ec_der(&point)),
        false => Err("is damaged"),
    }
}

fn edwards(jwk: &Jwk) -> Result<DecodingKey, &'static str> {
    let key = jwk.x.as_deref().and_then(bytes).filter(|key| signature::is_edwards_key(key));
    key.map(|key| DecodingKey::from_ed_der(&key)).ok_or("is damaged")
}

fn rsa(jwk: &Jwk) -> Result<DecodingKey, &'static str> {
    let (Some(n), Some(e)) = (jwk.n.as_deref().and_then(number), jwk.e.as_deref().and_then(number)) else {
        return Err("is damaged");
    };
    match bits(&n) {
        ..MIN_BITS => Err("is shorter than 2048 bits"),
        size if size > MAX_BITS || !(2..=64).contains(&bits(&e)) => Err("is of an unusual size"),
        _ => Ok(DecodingKey::from_rsa_raw_components(&n, &e)),
    }
}

fn bytes(text: &str) -> Option<Vec<u8>> {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()
}

fn number(text: &str) -> Option<Vec<u8>> {
    let bytes = bytes(text)?;
    let start = bytes.iter().position(|byte| *byte != 0)?;
    Some(bytes[start..].to_vec())
}

fn bits(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::jwt::testing::{Signer, edwards_signer, elliptic_signer, signer, weak_signer};
    use serde_json::json;

    fn changed(signer: &Signer, member: &str, value: Value) -> Value {
        let mut jwk = signer.jwk();
        jwk[member] = value;
        jwk
    }

    #[test]
    fn keys_that_verify_nothing_here_are_named() {
        let (signer, elliptic, edwards) = (signer(), elliptic_signer(), edwards_signer());
        for (jwk, refused) in [
            (signer.jwk(), None),
            (changed(signer, "alg", json!("RS256")), None),
            (changed(signer, "key_ops", json!(["verify"])), None),
            (changed(signer, "alg", json!("ES256")), Some("another algorithm")),
            (elliptic.jwk(), None),
            (edwards.jwk(), None),
            (changed(elliptic, "alg", json!("ES256")), None),
            (changed(elliptic, "alg", json!("ES384")), Some("another algorithm")),
            (changed(elliptic, "alg", json!("RS256")), Some("another algorithm")),
            (changed(elliptic, "crv", json!("P-384")), Some("damaged")),
            (changed(elliptic, "crv", json!("P-521")), Some("curve that is not known")),
            (changed(elliptic, "x", elliptic.jwk()["y"].clone()), Some("damaged")),
            (changed(elliptic, "y", json!("AQAB")), Some("damaged")),
            (changed(edwards, "x", json!("AQAB")), Some("damaged")),
            (changed(edwards, "crv", json!("X25519")), Some("curve that is not known")),
            (changed(edwards, "use", json!("enc")), Some("not for signatures")),
            (changed(signer, "alg", json!("HS256")), Some("another algorithm")),
            (changed(signer, "use", json!("enc")), Some("not for signatures")),
            (changed(signer, "key_ops", json!(["encrypt"])), Some("not for signatures")),
            (changed(signer, "n", json!("*")), Some("damaged")),
            (changed(signer, "e", json!("")), Some("damaged")),
            (weak_signer().jwk(), Some("shorter than 2048 bits")),
            (json!({ "kid": "k1", "kty": "oct", "k": "AQAB" }), Some("not an RSA key")),
        ] {
            let keys = WebKeySet::from_json(&json!({ "keys": [jwk] })).unwrap();
            let algorithm = match jwk["kty"].as_str() {
                Some("EC") => Algorithm::ES256,
                Some("OKP") => Algorithm::EdDSA,
                _ => Algorithm::RS256,
            };
            let refusal = keys.find("k1", algorithm).err().map(|error| error.to_string());
            match refused {
                None => assert_eq!(refusal, None, "{jwk}"),
                Some(why) => assert!(refusal.as_deref().is_some_and(|text| text.contains(why)), "{jwk}: {refusal:?}"),
            }
        }
    }

    #[test]
    fn a_key_verifies_the_algorithm_that_it_names_or_all_of_its_type() {
        let of = |jwk: Value| WebKeySet::from_json(&json!({ "keys": [jwk] })).unwrap();
        let any = of(signer().jwk());
        assert!(algorithm::RSA.iter().all(|one| any.find("k1", *one).is_ok()));
        assert!(any.find("k1", Algorithm::ES256).is_err() && any.find("k1", Algorithm::HS256).is_err());
        let one = of(changed(signer(), "alg", json!("PS384")));
        let held: Vec<_> = algorithm::RSA.iter().filter(|named| one.find("k1", **named).is_ok()).collect();
        assert_eq!(held, [&Algorithm::PS384]);
    }

    #[test]
    fn a_key_that_cannot_be_used_does_not_hide_another_of_its_id_nor_spoil_the_set() {
        let rsa = Algorithm::RS256;
        let elliptic = json!({ "kid": "k1", "kty": "EC" });
        for keys in [json!([elliptic, signer().jwk(), 7, {}]), json!([signer().jwk(), elliptic])] {
            assert!(WebKeySet::from_json(&json!({ "keys": keys })).unwrap().find("k1", rsa).is_ok(), "{keys}");
        }
        let none = WebKeySet::from_json(&json!({ "keys": [] })).unwrap();
        assert_eq!(none.find("k1", rsa).err(), Some(Rejection::UnknownKeyId("k1".into())));
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for text in ["", "<html>", "[]", "{}", "{\"keys\": {}}"] {
            assert!(WebKeySet::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
