//! Identities signed by the gateway (ES256), for servers that would otherwise have to trust whoever reaches them. The key of an
//! organisation is derived from its data key, so every proxy has the same and none stores it; a rotation of data keys makes a
//! new one, and both verify while both are there.

use crate::snapshot::Snapshot;
use bytes::Bytes;
use chrono::{DateTime, Utc};
use openssl::base64::encode_block;
use openssl::bn::{BigNum, BigNumContext};
use openssl::ec::{EcGroup, EcKey, EcPoint};
use openssl::ecdsa::EcdsaSig;
use openssl::error::ErrorStack;
use openssl::nid::Nid;
use openssl::pkey::Private;
use openssl::sha::sha256;
use serde_json::{Map, Value, json};
use shared::model::DataKey;
use shared::secrets::seal::{SealError, Sealer};
use uuid::Uuid;

const PURPOSE: &[u8] = b"mcp identity\0";
const COORDINATE: i32 = 32;
/// Seconds that a signed identity holds.
const HOLDS: i64 = 60;

#[derive(Debug, thiserror::Error)]
pub enum Unsigned {
    #[error("the organisation has no data key")]
    NoKey,
    #[error(transparent)]
    Sealed(#[from] SealError),
    #[error("no key or no signature can be made: {0}")]
    Crypto(#[from] ErrorStack),
}

pub struct IdentitySigner<'s> {
    pub snapshot: &'s Snapshot,
    pub sealer: &'s Sealer,
}

impl IdentitySigner<'_> {
    /// A token (JWT) that says these claims to this audience, for a minute.
    pub fn sign(
        &self,
        organisation: Uuid,
        mut claims: Map<String, Value>,
        audience: &str,
        now: DateTime<Utc>,
    ) -> Result<String, Unsigned> {
        let data_key = self.snapshot.sealing_key(organisation).ok_or(Unsigned::NoKey)?;
        claims.insert("iss".into(), "portcullis".into());
        claims.insert("aud".into(), audience.into());
        claims.insert("iat".into(), now.timestamp().into());
        claims.insert("exp".into(), (now.timestamp() + HOLDS).into());
        claims.insert("jti".into(), Uuid::new_v4().to_string().into());
        let head = json!({ "alg": "ES256", "typ": "JWT", "kid": data_key.id.to_string() });
        let text = format!(
            "{}.{}",
            base64url(head.to_string().as_bytes()),
            base64url(Value::Object(claims).to_string().as_bytes())
        );
        let key = self.key(&data_key)?;
        let signature = EcdsaSig::sign(&sha256(text.as_bytes()), &key)?;
        let pair = [signature.r().to_vec_padded(COORDINATE)?, signature.s().to_vec_padded(COORDINATE)?].concat();
        Ok(format!("{text}.{}", base64url(&pair)))
    }

    /// What verifies them, as a set of keys (RFC 7517).
    pub fn public_keys(&self, organisation: Uuid) -> Result<Bytes, Unsigned> {
        let mut keys = Vec::new();
        for data_key in self.snapshot.data_keys_of(organisation) {
            let key = self.key(&data_key)?;
            let (mut x, mut y, mut context) = (BigNum::new()?, BigNum::new()?, BigNumContext::new()?);
            key.public_key().affine_coordinates(key.group(), &mut x, &mut y, &mut context)?;
            let [x, y] = [base64url(&x.to_vec_padded(COORDINATE)?), base64url(&y.to_vec_padded(COORDINATE)?)];
            let kid = data_key.id.to_string();
            keys.push(json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": kid, "x": x, "y": y }));
        }
        Ok(Bytes::from(json!({ "keys": keys }).to_string()))
    }

    fn key(&self, data_key: &DataKey) -> Result<EcKey<Private>, Unsigned> {
        let secret = self.sealer.derive_elsewhere(data_key, PURPOSE)?;
        Ok(key_from(secret.expose())?)
    }
}

/// The key whose number these bytes are, brought between one and the order of the curve.
fn key_from(secret: &[u8]) -> Result<EcKey<Private>, ErrorStack> {
    let group = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    let mut context = BigNumContext::new()?;
    let (mut order, mut number) = (BigNum::new()?, BigNum::new_secure()?);
    group.order(&mut order, &mut context)?;
    order.sub_word(1)?;
    let secret = BigNum::from_slice(secret)?;
    number.nnmod(&secret, &order, &mut context)?;
    number.add_word(1)?;
    let mut point = EcPoint::new(&group)?;
    point.mul_generator2(&group, &number, &mut context)?;
    EcKey::from_private_components(&group, &number, &point)
}

fn base64url(bytes: &[u8]) -> String {
    encode_block(bytes).trim_end_matches('=').replace('+', "-").replace('/', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_the_same_for_the_same_secret_and_signs_what_it_verifies() {
        let [one, same, other] = [[7; 32], [7; 32], [255; 32]].map(|secret: [u8; 32]| key_from(&secret).unwrap());
        let digest = sha256(b"claims");
        let signature = EcdsaSig::sign(&digest, &one).unwrap();
        assert!(signature.verify(&digest, &same).unwrap());
        assert!(!signature.verify(&digest, &other).unwrap());
        assert!(other.check_key().is_ok());
        assert_eq!(base64url(&[251, 255]), "-_8");
    }
}
