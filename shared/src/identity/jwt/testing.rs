//! An authority for tests: RSA keys made once per process, and tokens signed by them in any shape, bad ones included.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::sign;
use serde_json::{Value, json};
use std::sync::LazyLock;

pub struct Signer {
    key: PKey<Private>,
}

static SIGNER: LazyLock<Signer> = LazyLock::new(|| Signer::with_bits(2048));
static STRANGER: LazyLock<Signer> = LazyLock::new(|| Signer::with_bits(2048));
static WEAK: LazyLock<Signer> = LazyLock::new(|| Signer::with_bits(1024));

pub fn signer() -> &'static Signer {
    &SIGNER
}

pub fn stranger() -> &'static Signer {
    &STRANGER
}

pub fn weak_signer() -> &'static Signer {
    &WEAK
}

pub fn encoded(value: &Value) -> String {
    URL_SAFE_NO_PAD.encode(value.to_string())
}

impl Signer {
    fn with_bits(bits: u32) -> Self {
        Self { key: PKey::from_rsa(Rsa::generate(bits).unwrap()).unwrap() }
    }

    pub fn jwk(&self) -> Value {
        let rsa = self.key.rsa().unwrap();
        let number = |number: &openssl::bn::BigNumRef| URL_SAFE_NO_PAD.encode(number.to_vec());
        json!({ "kid": "k1", "kty": "RSA", "use": "sig", "n": number(rsa.n()), "e": number(rsa.e()) })
    }

    pub fn public_pem(&self) -> Vec<u8> {
        self.key.public_key_to_pem().unwrap()
    }

    /// A token with the usual header.
    pub fn token(&self, claims: &Value) -> String {
        self.signed(&json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }), claims)
    }

    pub fn signed(&self, header: &Value, claims: &Value) -> String {
        let message = format!("{}.{}", encoded(header), encoded(claims));
        let mut signer = sign::Signer::new(MessageDigest::sha256(), &self.key).unwrap();
        let signature = signer.sign_oneshot_to_vec(message.as_bytes()).unwrap();
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}
