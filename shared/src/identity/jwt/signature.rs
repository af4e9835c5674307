//! Signatures by the OpenSSL that is linked already. The library's own back-ends would each bring a second cryptographic
//! library into the build, and one of them has an open advisory on RSA.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, new_error};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use openssl::bn::{BigNum, BigNumContext};
use openssl::ec::{EcGroup, EcKey, EcPoint};
use openssl::ecdsa::EcdsaSig;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Public};
use openssl::rsa::{Padding, Rsa};
use openssl::sign::{self, RsaPssSaltlen};
use std::borrow::Cow;

static OPENSSL: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(new_error(ErrorKind::UnsupportedAlgorithm)),
    verifier_factory: verifier,
    key_utils: KeyUtils::new_unimplemented(),
};

/// Must precede the first verification. Later calls do nothing.
pub fn install() {
    // Refused when it was installed before, which is all the same.
    let _ = OPENSSL.install_default();
}

/// A curve of NIST's, with the length of its numbers in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Curve {
    nid: Nid,
    pub length: usize,
}

pub(super) const P256: Curve = Curve { nid: Nid::X9_62_PRIME256V1, length: 32 };
pub(super) const P384: Curve = Curve { nid: Nid::SECP384R1, length: 48 };

/// Whether this is a point that can be somebody's key.
pub(super) fn is_on_curve(curve: Curve, point: &[u8]) -> bool {
    elliptic_key(curve, point).is_ok_and(|key| key.check_key().is_ok())
}

pub(super) fn is_edwards_key(key: &[u8]) -> bool {
    edwards_key(key).is_ok()
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    let key = match (algorithm, key.kind()) {
        (
            Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512,
            DecodingKeyKind::RsaModulusExponent { n, e },
        ) => rsa_key(n, e),
        (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
            elliptic_key(P256, point).and_then(PKey::from_ec_key)
        }
        (Algorithm::ES384, DecodingKeyKind::SecretOrDer(point)) => {
            elliptic_key(P384, point).and_then(PKey::from_ec_key)
        }
        (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(key)) => edwards_key(key),
        _ => return Err(new_error(ErrorKind::InvalidAlgorithm)),
    };
    match key {
        Ok(key) => Ok(Box::new(PublicKeyVerifier { algorithm: *algorithm, key })),
        Err(_) => Err(new_error(ErrorKind::InvalidKeyFormat)),
    }
}

fn rsa_key(n: &[u8], e: &[u8]) -> Result<PKey<Public>, ErrorStack> {
    PKey::from_rsa(Rsa::from_public_components(BigNum::from_slice(n)?, BigNum::from_slice(e)?)?)
}

/// From a point that is written out (a byte 4, x and y); one that is not on the curve is refused.
fn elliptic_key(curve: Curve, point: &[u8]) -> Result<EcKey<Public>, ErrorStack> {
    let group = EcGroup::from_curve_name(curve.nid)?;
    let mut context = BigNumContext::new()?;
    let point = EcPoint::from_bytes(&group, point, &mut context)?;
    EcKey::from_public_key(&group, &point)
}

fn edwards_key(key: &[u8]) -> Result<PKey<Public>, ErrorStack> {
    PKey::public_key_from_raw_bytes(key, Id::ED25519)
}

struct PublicKeyVerifier {
    algorithm: Algorithm,
    key: PKey<Public>,
}

impl PublicKeyVerifier {
    fn matches(&self, message: &[u8], signature: &[u8]) -> Result<bool, ErrorStack> {
        let digest = match self.algorithm {
            Algorithm::RS384 | Algorithm::PS384 | Algorithm::ES384 => MessageDigest::sha384(),
            Algorithm::RS512 | Algorithm::PS512 => MessageDigest::sha512(),
            _ => MessageDigest::sha256(),
        };
        let signature = match self.algorithm {
            Algorithm::ES256 => der(P256, signature)?,
            Algorithm::ES384 => der(P384, signature)?,
            _ => Some(Cow::Borrowed(signature)),
        };
        let Some(signature) = signature else { return Ok(false) };
        let mut verifier = match self.algorithm {
            Algorithm::EdDSA => sign::Verifier::new_without_digest(&self.key)?,
            _ => sign::Verifier::new(digest, &self.key)?,
        };
        if matches!(self.algorithm, Algorithm::PS256 | Algorithm::PS384 | Algorithm::PS512) {
            verifier.set_rsa_padding(Padding::PKCS1_PSS)?;
            verifier.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH)?;
            verifier.set_rsa_mgf1_md(digest)?;
        }
        verifier.verify_oneshot(&signature, message)
    }
}

/// Two numbers of the curve's length behind each other, as tokens have them, in the form that OpenSSL takes. None of another length.
fn der(curve: Curve, signature: &[u8]) -> Result<Option<Cow<'static, [u8]>>, ErrorStack> {
    if signature.len() != 2 * curve.length {
        return Ok(None);
    }
    let (r, s) = signature.split_at(curve.length);
    let numbers = EcdsaSig::from_private_components(BigNum::from_slice(r)?, BigNum::from_slice(s)?)?;
    Ok(Some(Cow::Owned(numbers.to_der()?)))
}

impl Verifier<Vec<u8>> for PublicKeyVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        match self.matches(message, signature) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(signature::Error::new()),
        }
    }
}

impl JwtVerifier for PublicKeyVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}
