//! An authority for tests: keys made once per process, and tokens signed by them in any shape, bad ones included.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openssl::bn::{BigNum, BigNumContext};
use openssl::ec::{EcGroup, EcKey};
use openssl::ecdsa::EcdsaSig;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{Id, PKey, Private};
use openssl::rsa::{Padding, Rsa};
use openssl::sign::{self, RsaPssSaltlen};
use serde_json::{Value, json};
use std::sync::LazyLock;

pub struct Signer {
    key: PKey<Private>,
}

static SIGNER: LazyLock<Signer> = LazyLock::new(|| Signer::with_bits(2048));
static STRANGER: LazyLock<Signer> = LazyLock::new(|| Signer::with_bits(2048));
static WEAK: LazyLock<Signer> = LazyLock::new(|| Signer::with_bits(1024));
static P256: LazyLock<Signer> = LazyLock::new(|| Signer::on_curve(Nid::X9_62_PRIME256V1));
static P384: LazyLock<Signer> = LazyLock::new(|| Signer::on_curve(Nid::SECP384R1));
static EDWARDS: LazyLock<Signer> = LazyLock::new(|| Signer { key: PKey::generate_ed25519().unwrap() });

pub fn signer() -> &'static Signer {
    &SIGNER
}

pub fn stranger() -> &'static Signer {
    &STRANGER
}

pub fn weak_signer() -> &'static Signer {
    &WEAK
}

/// With a key of the curve P-256.
pub fn elliptic_signer() -> &'static Signer {
    &P256
}

pub fn edwards_signer() -> &'static Signer {
    &EDWARDS
}

/// Somebody who can sign by this algorithm.
pub fn signer_by(algorithm: &str) -> &'static Signer {
    match algorithm {
        "ES256" => &P256,
        "ES384" => &P384,
        "EdDSA" => &EDWARDS,
        _ => &SIGNER,
    }
}

pub fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

impl Signer {
    fn with_bits(bits: u32) -> Self {
        Self { key: PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap() }
    }

    fn on_curve(curve: Nid) -> Self {
        let group = EcGroup::from_curve_name(curve).unwrap();
        Self { key: PKey::from_ec_key(EcKey::generate(&group).unwrap()).unwrap() }
    }

    pub fn jwk(&self) -> Value {
        let bytes = |bytes: Vec<u8>| URL_SAFE_NO_PAD.encode(bytes);
        match self.key.id() {
            Id::ED25519 => {
                let x = bytes(self.key.raw_public_key().unwrap());
                json!({ "kid": "k1", "kty": "OKP", "crv": "Ed25519", "use": "sig", "x": x })
            }
            Id::EC => {
                let (key, length) = (self.key.ec_key().unwrap(), self.curve_length());
                let (mut x, mut y) = (BigNum::new().unwrap(), BigNum::new().unwrap());
                let mut context = BigNumContext::new().unwrap();
                key.public_key().affine_coordinates(key.group(), &mut x, &mut y, &mut context).unwrap();
                let padded = |number: &BigNum| bytes(number.to_vec_padded(length).unwrap());
                let curve = if length == 32 { "P-256" } else { "P-384" };
                json!({ "kid": "k1", "kty": "EC", "crv": curve, "use": "sig", "x": padded(&x), "y": padded(&y) })
            }
            _ => {
                let rsa = self.key.rsa().unwrap();
                let (n, e) = (bytes(rsa.n().to_vec()), bytes(rsa.e().to_vec()));
                json!({ "kid": "k1", "kty": "RSA", "use": "sig", "n": n, "e": e })
            }
        }
    }

    fn curve_length(&self) -> i32 {
        if self.key.bits() == 256 { 32 } else { 48 }
    }

    pub fn public_pem(&self) -> Vec<u8> {
        self.key.public_key_to_pem().unwrap()
    }

    /// A token with the usual header.
    pub fn token(&self, claims: &Value) -> String {
        self.signed(&json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }), claims)
    }

    /// Signed as the header says, as far as this key can.
    pub fn signed(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let algorithm = header["alg"].as_str().unwrap_or_default();
        let digest = match algorithm.get(2..) {
            Some("384") => MessageDigest::sha384(),
            Some("512") => MessageDigest::sha512(),
            _ => MessageDigest::sha256(),
        };
        let mut signer = match self.key.id() {
            Id::ED25519 => sign::Signer::new_without_digest(&self.key).unwrap(),
            _ => sign::Signer::new(digest, &self.key).unwrap(),
        };
        if algorithm.starts_with("PS") {
            signer.set_rsa_padding(Padding::PKCS1_PSS).unwrap();
            signer.set_rsa_pss_saltlen(RsaPssSaltlen::DIGEST_LENGTH).unwrap();
            signer.set_rsa_mgf1_md(digest).unwrap();
        }
        let mut signature = signer.sign_oneshot_to_vec(message.as_bytes()).unwrap();
        if self.key.id() == Id::EC {
            let (numbers, length) = (EcdsaSig::from_der(&signature).unwrap(), self.curve_length());
            let padded = |number: &openssl::bn::BigNumRef| number.to_vec_padded(length).unwrap();
            signature = [padded(numbers.r()), padded(numbers.s())].concat();
        }
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
