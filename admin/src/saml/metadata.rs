//! What an identity provider's metadata says: its name, where people sign in, and the keys it signs with, several while
//! it changes from one to the next. Certificates only carry keys here: whoever gave us the metadata vouches for them.

use super::signature::{DSIG, decoded};
use super::xml::{Document, ElementId, parse};
use openssl::pkey::{Id, PKey, Public};
use openssl::x509::X509;

pub const METADATA: &str = "urn:oasis:names:tc:SAML:2.0:metadata";
pub const PROTOCOL: &str = "urn:oasis:names:tc:SAML:2.0:protocol";
pub const REDIRECT: &str = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect";
pub const POST: &str = "urn:oasis:names:tc:SAML:2.0:bindings:HTTP-POST";

pub const MAX_SIZE: usize = 256 << 10;
/// Certificates of one identity provider.
pub const MAX_KEYS: usize = 10;
const MAX_NAME: usize = 1024;

/// An organisation's identity provider.
#[derive(Debug, Clone)]
pub struct IdentityProvider {
    pub entity_id: String,
    pub redirect_url: Option<String>,
    pub post_url: Option<String>,
    pub keys: Vec<PKey<Public>>,
    pub wants_signed_requests: bool,
}

/// What is wrong with metadata or a certificate, as the end of a sentence that begins with its name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadMetadata(pub String);

fn bad(words: &str) -> BadMetadata {
    BadMetadata(words.to_owned())
}

impl IdentityProvider {
    pub fn parse(xml: &[u8]) -> Result<Self, BadMetadata> {
        if xml.len() > MAX_SIZE {
            return Err(BadMetadata(format!("must be at most {MAX_SIZE} bytes")));
        }
        let document = parse(xml).map_err(|why| BadMetadata(format!("must be plain XML: it {why}")))?;
        let (entity, descriptor) = descriptor(&document)?;
        let entity_id = document.attribute(entity, "entityID").unwrap_or_default().to_owned();
        let keys = signing_keys(&document, descriptor)?;
        let service = |binding: &str| {
            let mut services = document.children(descriptor, METADATA, "SingleSignOnService").into_iter();
            let service = services.find(|one| document.attribute(*one, "Binding") == Some(binding));
            service.and_then(|one| document.attribute(one, "Location")).map(str::to_owned)
        };
        Self {
            entity_id,
            redirect_url: service(REDIRECT),
            post_url: service(POST),
            keys,
            wants_signed_requests: document.attribute(descriptor, "WantAuthnRequestsSigned") == Some("true"),
        }
        .checked()
    }

    /// With everything that a login needs, and no more than is sensible.
    pub fn checked(self) -> Result<Self, BadMetadata> {
        if !(1..=MAX_NAME).contains(&self.entity_id.len()) {
            return Err(BadMetadata(format!("must name its entity in 1 to {MAX_NAME} bytes")));
        }
        if self.redirect_url.is_none() && self.post_url.is_none() {
            return Err(bad("must have an address to sign in at, by redirect or by POST"));
        }
        if !(1..=MAX_KEYS).contains(&self.keys.len()) {
            return Err(BadMetadata(format!("must have 1 to {MAX_KEYS} certificates for signatures")));
        }
        Ok(self)
    }

    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        [&self.redirect_url, &self.post_url].into_iter().flatten().map(String::as_str)
    }
}

/// The one entity that people can sign in at.
fn descriptor(document: &Document) -> Result<(ElementId, ElementId), BadMetadata> {
    let root = document.root();
    let entities = match document.is(root, METADATA, "EntitiesDescriptor") {
        true => document.children(root, METADATA, "EntityDescriptor"),
        false if document.is(root, METADATA, "EntityDescriptor") => vec![root],
        false => return Err(bad("must be an EntityDescriptor")),
    };
    let speaks = |one: &ElementId| {
        let protocols = document.attribute(*one, "protocolSupportEnumeration").unwrap_or_default();
        protocols.split_ascii_whitespace().any(|one| one == PROTOCOL)
    };
    let found = entities.into_iter().flat_map(|entity| {
        let descriptors = document.children(entity, METADATA, "IDPSSODescriptor");
        descriptors.into_iter().filter(speaks).map(move |one| (entity, one))
    });
    match found.collect::<Vec<_>>().as_slice() {
        [one] => Ok(*one),
        [] => Err(bad("must be of an identity provider of SAML 2.0 (IDPSSODescriptor)")),
        _ => Err(bad("must be of one identity provider, not of several")),
    }
}

fn signing_keys(document: &Document, descriptor: ElementId) -> Result<Vec<PKey<Public>>, BadMetadata> {
    let mut keys = Vec::new();
    for one in document.children(descriptor, METADATA, "KeyDescriptor") {
        if document.attribute(one, "use").is_some_and(|used| used != "signing") {
            continue;
        }
        for info in document.children(one, DSIG, "KeyInfo") {
            for data in document.children(info, DSIG, "X509Data") {
                for certificate in document.children(data, DSIG, "X509Certificate") {
                    keys.push(key_of(document.text(certificate).unwrap_or_default())?);
                }
            }
        }
        if keys.len() > MAX_KEYS {
            break;
        }
    }
    Ok(keys)
}

/// The key of a certificate, in PEM or as base64 alone.
pub fn key_of(certificate: &str) -> Result<PKey<Public>, BadMetadata> {
    let parsed = match certificate.trim_start().starts_with("-----BEGIN") {
        true => X509::from_pem(certificate.as_bytes()).ok(),
        false => decoded(certificate).ok().and_then(|der| X509::from_der(&der).ok()),
    };
    let key = parsed.and_then(|certificate| certificate.public_key().ok());
    let key = key.ok_or_else(|| bad("has a certificate that cannot be read"))?;
    let is_strong = match key.id() {
        Id::RSA => key.bits() >= 2048,
        Id::EC => key.bits() >= 256,
        _ => false,
    };
    if is_strong {
        Ok(key)
    } else {
        Err(bad("has a key that is not RSA of at least 2048 bits or ECDSA of at least 256"))
    }
}

#[cfg(test)]
mod tests;
