//! RS256 by the OpenSSL that is linked already. The library's own back-ends would each bring a second cryptographic
//! library into the build, and one of them has an open advisory on RSA.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind, new_error};
use jsonwebtoken::signature::{self, Verifier};
use jsonwebtoken::{Algorithm, DecodingKey, DecodingKeyKind};
use openssl::bn::BigNum;
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Public};
use openssl::rsa::Rsa;

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

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>, Error> {
    match (algorithm, key.kind()) {
        (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => match public_key(n, e) {
            Ok(key) => Ok(Box::new(Rs256(key))),
            Err(_) => Err(new_error(ErrorKind::InvalidKeyFormat)),
        },
        _ => Err(new_error(ErrorKind::InvalidAlgorithm)),
    }
}

fn public_key(n: &[u8], e: &[u8]) -> Result<PKey<Public>, ErrorStack> {
    PKey::from_rsa(Rsa::from_public_components(BigNum::from_slice(n)?, BigNum::from_slice(e)?)?)
}

struct Rs256(PKey<Public>);

impl Rs256 {
    fn matches(&self, message: &[u8], signature: &[u8]) -> Result<bool, ErrorStack> {
        let mut verifier = openssl::sign::Verifier::new(MessageDigest::sha256(), &self.0)?;
        verifier.verify_oneshot(signature, message)
    }
}

impl Verifier<Vec<u8>> for Rs256 {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), signature::Error> {
        match self.matches(message, signature) {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(signature::Error::new()),
        }
    }
}

impl JwtVerifier for Rs256 {
    fn algorithm(&self) -> Algorithm {
        Algorithm::RS256
    }
}
