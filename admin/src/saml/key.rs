//! Our own key pair as a service provider: it signs requests and opens encrypted assertions. Its certificate is signed by
//! itself and lasts ten years, because identity providers pin it from our metadata.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::x509::{X509, X509NameBuilder};
use sha2::{Digest as _, Sha256};

const BITS: u32 = 3072;
const DAYS: u32 = 3650;

pub struct ServiceKey {
    pub private: PKey<Private>,
    certificate: X509,
}

/// Never printed.
impl std::fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ServiceKey")
    }
}

impl ServiceKey {
    /// Takes part of a second: not for a thread that others wait for.
    pub fn generate(name: &str) -> Result<Self, ErrorStack> {
        Self::signed_by_itself(name, PKey::from_rsa(Rsa::generate(BITS)?)?)
    }

    pub fn signed_by_itself(name: &str, private: PKey<Private>) -> Result<Self, ErrorStack> {
        let mut subject = X509NameBuilder::new()?;
        subject.append_entry_by_text("CN", name)?;
        let subject = subject.build();
        let mut serial = BigNum::new()?;
        serial.rand(127, MsbOption::MAYBE_ZERO, false)?;
        let (serial, begin, end) =
            (serial.to_asn1_integer()?, Asn1Time::days_from_now(0)?, Asn1Time::days_from_now(DAYS)?);
        let mut builder = X509::builder()?;
        builder.set_version(2)?;
        builder.set_serial_number(&serial)?;
        builder.set_subject_name(&subject)?;
        builder.set_issuer_name(&subject)?;
        builder.set_not_before(&begin)?;
        builder.set_not_after(&end)?;
        builder.set_pubkey(&private)?;
        builder.sign(&private, MessageDigest::sha256())?;
        Ok(Self { private, certificate: builder.build() })
    }

    /// Of what `to_der` gave.
    pub fn from_der(private: &[u8], certificate: &[u8]) -> Result<Self, ErrorStack> {
        Ok(Self { private: PKey::private_key_from_der(private)?, certificate: X509::from_der(certificate)? })
    }

    /// The private key and the certificate.
    pub fn to_der(&self) -> Result<(zeroize::Zeroizing<Vec<u8>>, Vec<u8>), ErrorStack> {
        Ok((zeroize::Zeroizing::new(self.private.private_key_to_der()?), self.certificate.to_der()?))
    }

    pub fn certificate_base64(&self) -> String {
        self.certificate.to_der().map(|der| STANDARD.encode(der)).unwrap_or_default()
    }
}

/// A certificate in DER, as people paste it.
pub fn certificate_pem(der: &[u8]) -> Result<String, ErrorStack> {
    let pem = X509::from_der(der)?.to_pem()?;
    Ok(String::from_utf8_lossy(&pem).into_owned())
}

/// SHA-256 of a certificate in DER, as identity providers show it.
pub fn fingerprint(der: &[u8]) -> String {
    Sha256::digest(der).iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}
