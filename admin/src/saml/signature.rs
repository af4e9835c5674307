//! XML signatures as SAML uses them: one reference, to the element that the signature stands in, canonicalised
//! exclusively. What comes out of a verification are the very bytes that the digest was made of, and callers read those
//! and nothing else: whatever was moved, wrapped or added elsewhere in the message is not in them.
//!
//! Keys come from the settings alone. What a message says of its own key is not looked at.

use super::canonical::{EXCLUSIVE, TooLong, exclusive};
use super::xml::{Document, ElementId, parse};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use openssl::bn::BigNum;
use openssl::ecdsa::EcdsaSig;
use openssl::hash::{MessageDigest, hash};
use openssl::pkey::{Id, PKey, Public};
use openssl::sign::Verifier;

pub const DSIG: &str = "http://www.w3.org/2000/09/xmldsig#";
const ENVELOPED: &str = "http://www.w3.org/2000/09/xmldsig#enveloped-signature";
/// Inside of `SignedInfo`, which has about ten.
const MAX_SIGNED_INFO_ELEMENTS: usize = 64;
/// Names in one `PrefixList`, which has one or two.
const MAX_PREFIXES: usize = 32;
const INCOMPLETE: BadSignature = BadSignature("The signature is not complete");

/// Why a signature does not hold, in words for the log and the audit trail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSignature(pub &'static str);

/// The canonical bytes of an element by its own signature; none when it has none.
pub fn verified(
    document: &Document,
    element: ElementId,
    keys: &[PKey<Public>],
) -> Result<Option<Vec<u8>>, BadSignature> {
    let signature = match document.children(element, DSIG, "Signature").as_slice() {
        [] => return Ok(None),
        [one] => *one,
        _ => return Err(BadSignature("The element has more than one signature")),
    };
    let only = |name| document.only(signature, DSIG, name).ok_or(INCOMPLETE);
    let (signed_info, value) = (only("SignedInfo")?, only("SignatureValue")?);
    // Whoever sent it is not known yet: nothing is worked out of it that a real signature would not have.
    if !document.has_at_most(signed_info, MAX_SIGNED_INFO_ELEMENTS) {
        return Err(BadSignature("The signature has too many elements"));
    }
    let announced = SignedInfo::read(document, signed_info)?;
    let signed = exclusive(document, signed_info, None, &announced.canonical_prefixes).map_err(too_long)?;
    // Read again from the bytes that were signed, before anything it says is believed.
    let info = SignedInfo::parse(&signed)?;
    if info.canonical_prefixes != announced.canonical_prefixes {
        return Err(BadSignature("The signature is ambiguous"));
    }
    let value = decoded(document.text(value).unwrap_or_default())?;
    if !keys.iter().any(|key| info.method.is_by(key, &signed, &value)) {
        return Err(BadSignature("The signature is by none of the identity provider's keys"));
    }
    refers_to(document, element, &info.uri)?;
    let bytes = exclusive(document, element, Some(signature), &info.prefixes).map_err(too_long)?;
    let digest = hash(info.digest, &bytes).map_err(|_| BadSignature("The digest cannot be made"))?;
    match openssl::memcmp::eq(&digest, padded(&info.value, digest.len())) {
        true => Ok(Some(bytes)),
        false => Err(BadSignature("The element is not what was signed")),
    }
}

fn too_long(_: TooLong) -> BadSignature {
    BadSignature("What is signed is too long")
}

/// Both sides of a comparison must have one length; a digest of another is equal to nothing.
fn padded(value: &[u8], length: usize) -> &[u8] {
    static NOTHING: [u8; 64] = [0; 64];
    if value.len() == length { value } else { &NOTHING[..length.min(64)] }
}

/// The reference must name the element that the signature stands in, and nothing else may have that name.
fn refers_to(document: &Document, element: ElementId, uri: &str) -> Result<(), BadSignature> {
    if uri.is_empty() {
        let is_root = element == document.root();
        return if is_root { Ok(()) } else { Err(BadSignature("The signature is of another element")) };
    }
    let id = uri.strip_prefix('#').filter(|id| !id.is_empty());
    if id.is_none() || id != document.attribute(element, "ID") {
        return Err(BadSignature("The signature is of another element"));
    }
    let names = |one: ElementId| {
        let attributes = &document.element(one).attributes;
        attributes.iter().any(|one| one.local.eq_ignore_ascii_case("id") && Some(one.value.as_str()) == id)
    };
    match document.all().filter(|one| names(*one)).count() {
        1 => Ok(()),
        _ => Err(BadSignature("Several elements have the id of the signed one")),
    }
}

struct SignedInfo {
    method: SignatureMethod,
    canonical_prefixes: Vec<String>,
    uri: String,
    prefixes: Vec<String>,
    digest: MessageDigest,
    value: Vec<u8>,
}

impl SignedInfo {
    fn parse(bytes: &[u8]) -> Result<Self, BadSignature> {
        let document = parse(bytes).map_err(|_| INCOMPLETE)?;
        Self::read(&document, document.root())
    }

    /// Algorithms that are not taken, and lists that are too long, are refused here.
    fn read(document: &Document, root: ElementId) -> Result<Self, BadSignature> {
        let only = |of, name| document.only(of, DSIG, name).ok_or(INCOMPLETE);
        let algorithm = |of| document.attribute(of, "Algorithm").unwrap_or_default();
        let canonical = only(root, "CanonicalizationMethod")?;
        if algorithm(canonical) != EXCLUSIVE {
            return Err(BadSignature("Only exclusive canonicalisation is taken"));
        }
        let method = SignatureMethod::parse(algorithm(only(root, "SignatureMethod")?))?;
        let reference = only(root, "Reference")?;
        let transforms = only(reference, "Transforms")?;
        let (mut is_enveloped, mut prefixes) = (false, None);
        for transform in document.elements_in(transforms) {
            match algorithm(transform) {
                ENVELOPED if !is_enveloped && prefixes.is_none() => is_enveloped = true,
                EXCLUSIVE if prefixes.is_none() => prefixes = Some(inclusive(document, transform)?),
                _ => return Err(BadSignature("The signature transforms what it signs")),
            }
        }
        let (true, Some(prefixes)) = (is_enveloped, prefixes) else {
            return Err(BadSignature("The signature must be enveloped and canonicalised exclusively"));
        };
        let digest = match algorithm(only(reference, "DigestMethod")?) {
            "http://www.w3.org/2001/04/xmlenc#sha256" => MessageDigest::sha256(),
            "http://www.w3.org/2001/04/xmldsig-more#sha384" => MessageDigest::sha384(),
            "http://www.w3.org/2001/04/xmlenc#sha512" => MessageDigest::sha512(),
            _ => return Err(BadSignature("Digests must be SHA-256, SHA-384 or SHA-512")),
        };
        Ok(Self {
            method,
            canonical_prefixes: inclusive(document, canonical)?,
            uri: document.attribute(reference, "URI").unwrap_or("#").to_owned(),
            prefixes,
            digest,
            value: decoded(document.text(only(reference, "DigestValue")?).unwrap_or_default())?,
        })
    }
}

/// The prefixes of `InclusiveNamespaces`.
fn inclusive(document: &Document, of: ElementId) -> Result<Vec<String>, BadSignature> {
    let list = document.only(of, EXCLUSIVE, "InclusiveNamespaces");
    let list = list.and_then(|list| document.attribute(list, "PrefixList")).unwrap_or_default();
    let names: Vec<String> = list.split_ascii_whitespace().take(MAX_PREFIXES + 1).map(str::to_owned).collect();
    if names.len() > MAX_PREFIXES {
        return Err(BadSignature("The signature names too many prefixes"));
    }
    Ok(names)
}

#[derive(Clone, Copy)]
struct SignatureMethod {
    kind: Id,
    digest: fn() -> MessageDigest,
}

impl SignatureMethod {
    fn parse(algorithm: &str) -> Result<Self, BadSignature> {
        const MORE: &str = "http://www.w3.org/2001/04/xmldsig-more#";
        let (kind, digest): (Id, fn() -> MessageDigest) = match algorithm.strip_prefix(MORE) {
            Some("rsa-sha256") => (Id::RSA, MessageDigest::sha256),
            Some("rsa-sha384") => (Id::RSA, MessageDigest::sha384),
            Some("rsa-sha512") => (Id::RSA, MessageDigest::sha512),
            Some("ecdsa-sha256") => (Id::EC, MessageDigest::sha256),
            Some("ecdsa-sha384") => (Id::EC, MessageDigest::sha384),
            Some("ecdsa-sha512") => (Id::EC, MessageDigest::sha512),
            _ => return Err(BadSignature("Signatures must be RSA or ECDSA with SHA-256, SHA-384 or SHA-512")),
        };
        Ok(Self { kind, digest })
    }

    fn is_by(self, key: &PKey<Public>, bytes: &[u8], value: &[u8]) -> bool {
        if key.id() != self.kind {
            return false;
        }
        let verify = || {
            let value = if self.kind == Id::EC { der(value)? } else { value.to_vec() };
            let mut verifier = Verifier::new((self.digest)(), key).ok()?;
            verifier.update(bytes).ok()?;
            verifier.verify(&value).ok()
        };
        verify().unwrap_or(false)
    }
}

/// XML signatures write the two numbers of ECDSA one after the other.
fn der(value: &[u8]) -> Option<Vec<u8>> {
    if value.is_empty() || value.len() % 2 == 1 || value.len() > 132 {
        return None;
    }
    let (r, s) = value.split_at(value.len() / 2);
    let (r, s) = (BigNum::from_slice(r).ok()?, BigNum::from_slice(s).ok()?);
    EcdsaSig::from_private_components(r, s).ok()?.to_der().ok()
}

/// Base64 with white space in between.
pub fn decoded(text: &str) -> Result<Vec<u8>, BadSignature> {
    let plain: String = text.split_ascii_whitespace().collect();
    STANDARD.decode(plain).map_err(|_| BadSignature("The signature has values that are not base64"))
}
