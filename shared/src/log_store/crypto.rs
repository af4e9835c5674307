//! The digests and signatures that the clouds ask for, by what is linked already: no second cryptographic library.

use hmac::{Hmac, KeyInit as _, Mac as _};
use object_store::client::{CryptoProvider, DigestAlgorithm, DigestContext, HmacContext, Signer, SigningAlgorithm};
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use sha2::{Digest as _, Sha256};

type Result<T> = object_store::Result<T>;

#[derive(Debug)]
pub struct OpenSsl;

impl CryptoProvider for OpenSsl {
    fn digest(&self, algorithm: DigestAlgorithm) -> Result<Box<dyn DigestContext>> {
        match algorithm {
            DigestAlgorithm::Sha256 => Ok(Box::new(Digesting { state: Sha256::new(), sum: [0; 32] })),
            _ => Err(unknown()),
        }
    }

    fn hmac(&self, algorithm: DigestAlgorithm, secret: &[u8]) -> Result<Box<dyn HmacContext>> {
        match (algorithm, Hmac::<Sha256>::new_from_slice(secret)) {
            (DigestAlgorithm::Sha256, Ok(state)) => Ok(Box::new(Keyed { state, sum: [0; 32] })),
            _ => Err(unknown()),
        }
    }

    fn sign(&self, algorithm: SigningAlgorithm, pem: &[u8]) -> Result<Box<dyn Signer>> {
        match (algorithm, PKey::private_key_from_pem(pem)) {
            (SigningAlgorithm::RS256, Ok(key)) => Ok(Box::new(Rsa(key))),
            (SigningAlgorithm::RS256, Err(_)) => Err(failed("the private key cannot be read")),
            _ => Err(unknown()),
        }
    }
}

struct Digesting {
    state: Sha256,
    sum: [u8; 32],
}

impl DigestContext for Digesting {
    fn update(&mut self, data: &[u8]) {
        self.state.update(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.sum = self.state.finalize_reset().into();
        Ok(&self.sum)
    }
}

struct Keyed {
    state: Hmac<Sha256>,
    sum: [u8; 32],
}

impl HmacContext for Keyed {
    fn update(&mut self, data: &[u8]) {
        self.state.update(data);
    }

    fn finish(&mut self) -> Result<&[u8]> {
        self.sum = self.state.clone().finalize().into_bytes().into();
        Ok(&self.sum)
    }
}

struct Rsa(PKey<Private>);

impl Signer for Rsa {
    fn sign(&self, text: &[u8]) -> Result<Vec<u8>> {
        let signer = openssl::sign::Signer::new(MessageDigest::sha256(), &self.0);
        signer.and_then(|mut signer| signer.sign_oneshot_to_vec(text)).map_err(|_| failed("it cannot be signed"))
    }
}

fn unknown() -> object_store::Error {
    failed("the algorithm is not known")
}

fn failed(why: &'static str) -> object_store::Error {
    object_store::Error::Generic { store: "crypto", source: why.into() }
}
