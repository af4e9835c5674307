//! Throwaway certificate authorities, so that tests verify certificates as production does instead of switching
//! verification off.

use std::net::IpAddr;

use openssl::asn1::Asn1Time;
use openssl::bn::{BigNum, MsbOption};
use openssl::ec::{EcGroup, EcKey};
use openssl::error::ErrorStack;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::{PKey, Private};
use openssl::x509::extension::{AuthorityKeyIdentifier, BasicConstraints, KeyUsage, SubjectAlternativeName};
use openssl::x509::extension::{ExtendedKeyUsage, SubjectKeyIdentifier};
use openssl::x509::{X509, X509Builder, X509Name, X509NameBuilder};

/// A certificate chain and its key, as PEM.
#[derive(Clone)]
pub struct Identity {
    pub cert_pem: String,
    pub key_pem: String,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Identity")
    }
}

pub struct Authority {
    certificate: X509,
    key: PKey<Private>,
}

impl Authority {
    pub fn new() -> Result<Self, ErrorStack> {
        let key = new_key()?;
        let name = name("Portcullis test authority")?;
        let mut builder = certificate(&name, &name, &key, (-1, 365))?;
        builder.append_extension(BasicConstraints::new().critical().ca().build()?)?;
        builder.append_extension(KeyUsage::new().critical().key_cert_sign().crl_sign().build()?)?;
        let identifier = SubjectKeyIdentifier::new().build(&builder.x509v3_context(None, None))?;
        builder.append_extension(identifier)?;
        builder.sign(&key, MessageDigest::sha256())?;
        Ok(Self { certificate: builder.build(), key })
    }

    /// What a client has to trust.
    pub fn pem(&self) -> Result<String, ErrorStack> {
        text(self.certificate.to_pem())
    }

    /// A certificate for these host names and addresses, good for server and client alike.
    pub fn issue(&self, names: &[&str]) -> Result<Identity, ErrorStack> {
        self.sign(names, (-1, 30))
    }

    pub fn issue_expired(&self, names: &[&str]) -> Result<Identity, ErrorStack> {
        self.sign(names, (-30, -1))
    }

    /// `valid` is from and until, in days from now.
    fn sign(&self, names: &[&str], valid: (i64, i64)) -> Result<Identity, ErrorStack> {
        let key = new_key()?;
        let subject = name(names.first().copied().unwrap_or("nobody"))?;
        let mut builder = certificate(&subject, self.certificate.subject_name(), &key, valid)?;
        builder.append_extension(BasicConstraints::new().build()?)?;
        builder.append_extension(ExtendedKeyUsage::new().server_auth().client_auth().build()?)?;
        let mut alternatives = SubjectAlternativeName::new();
        for name in names {
            match name.parse::<IpAddr>() {
                Ok(_) => alternatives.ip(name),
                Err(_) => alternatives.dns(name),
            };
        }
        let context = builder.x509v3_context(Some(&self.certificate), None);
        let extensions = [alternatives.build(&context)?, AuthorityKeyIdentifier::new().keyid(true).build(&context)?];
        for extension in extensions {
            builder.append_extension(extension)?;
        }
        builder.sign(&self.key, MessageDigest::sha256())?;
        let certificate = builder.build();
        Ok(Identity { cert_pem: text(certificate.to_pem())?, key_pem: text(key.private_key_to_pem_pkcs8())? })
    }
}

fn certificate(
    subject: &X509Name,
    issuer: &openssl::x509::X509NameRef,
    key: &PKey<Private>,
    (from, until): (i64, i64),
) -> Result<X509Builder, ErrorStack> {
    const DAY: i64 = 86_400;
    let now = (super::state::now_ns() / 1_000_000_000) as i64;
    let mut serial = BigNum::new()?;
    serial.rand(127, MsbOption::MAYBE_ZERO, false)?;
    let mut builder = X509::builder()?;
    builder.set_version(2)?;
    builder.set_serial_number(&*serial.to_asn1_integer()?)?;
    builder.set_subject_name(subject)?;
    builder.set_issuer_name(issuer)?;
    builder.set_pubkey(key)?;
    builder.set_not_before(&*Asn1Time::from_unix(now + from * DAY)?)?;
    builder.set_not_after(&*Asn1Time::from_unix(now + until * DAY)?)?;
    Ok(builder)
}

fn new_key() -> Result<PKey<Private>, ErrorStack> {
    let curve = EcGroup::from_curve_name(Nid::X9_62_PRIME256V1)?;
    PKey::from_ec_key(EcKey::generate(&curve)?)
}

fn name(common: &str) -> Result<X509Name, ErrorStack> {
    let mut builder = X509NameBuilder::new()?;
    builder.append_entry_by_text("CN", common)?;
    Ok(builder.build())
}

fn text(pem: Result<Vec<u8>, ErrorStack>) -> Result<String, ErrorStack> {
    Ok(String::from_utf8_lossy(&pem?).into_owned())
}
