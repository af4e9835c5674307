//! A key set given by hand: public keys only. A private key here would be handed to everybody who may read settings.

use crate::http::ApiError;
use serde_json::Value;

const MAX_KEYS: usize = 100;
/// Members of private and symmetric keys.
static PRIVATE: &[&str] = &["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

pub fn checked(set: Value) -> Result<Value, ApiError> {
    let Some(keys) = set["keys"].as_array() else {
        return Err(ApiError::field("jwks_json.keys", "must be an array of keys"));
    };
    if keys.len() > MAX_KEYS {
        return Err(ApiError::field("jwks_json.keys", format!("must not be more than {MAX_KEYS} keys")));
    }
    for (n, key) in keys.iter().enumerate() {
        refusal(key).map_err(|(member, reason)| ApiError::field(format!("jwks_json.keys[{n}]{member}"), reason))?;
    }
    Ok(set)
}

fn refusal(key: &Value) -> Result<(), (String, &'static str)> {
    let Some(members) = key.as_object() else { return Err((String::new(), "must be an object")) };
    if let Some(member) = PRIVATE.iter().find(|member| members.contains_key(**member)) {
        return Err((format!(".{member}"), "belongs to a private key; only public keys are accepted"));
    }
    let needed: &[&str] = match key["kty"].as_str() {
        Some("RSA") => &["n", "e"],
        Some("EC") => &["crv", "x", "y"],
        Some("OKP") => &["crv", "x"],
        _ => return Err((".kty".into(), "must be `RSA`, `EC` or `OKP`")),
    };
    match needed.iter().find(|member| key[**member].as_str().is_none_or(str::is_empty)) {
        Some(member) => Err((format!(".{member}"), "is required")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_public_keys_are_accepted() {
        for (key, refused) in [
            (json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB", "kid": "1" }), None),
            (json!({ "kty": "EC", "crv": "P-256", "x": "a", "y": "b" }), None),
            (json!({ "kty": "OKP", "crv": "Ed25519", "x": "a" }), None),
            (json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB", "d": "s3cret" }), Some("jwks_json.keys[0].d")),
            (json!({ "kty": "EC", "crv": "P-256", "x": "a", "y": "b", "d": "s3cret" }), Some("jwks_json.keys[0].d")),
            (json!({ "kty": "oct", "k": "s3cret" }), Some("jwks_json.keys[0].k")),
            (json!({ "kty": "RSA", "n": "AQAB" }), Some("jwks_json.keys[0].e")),
            (json!({ "kty": "none" }), Some("jwks_json.keys[0].kty")),
            (json!("key"), Some("jwks_json.keys[0]")),
        ] {
            let refusal = checked(json!({ "keys": [key] })).err().map(|error| error.to_string());
            let named = refusal.as_deref().map(|text| text.split(": ").next().unwrap());
            assert_eq!(named, refused, "{key}");
            assert!(!refusal.unwrap_or_default().contains("s3cret"));
        }
        assert!(checked(json!({ "keys": {} })).is_err() && checked(json!([])).is_err());
    }
}
