//! Whether an answer of an identity provider is to be believed, and what it says. Pure: the message, what is expected and
//! the time in, a person or a refusal out. That an answer is taken once, and by the browser that asked, is for the caller.
//!
//! The assertion must be covered by a signature, its own or the whole response's, and it is read from the bytes that the
//! signature speaks of. Every check of the profile for web browsers (SAML 2.0 profiles, 4.1.4.3) is made on those.

mod assertion;

use super::encryption::{Undecryptable, decrypted};
use super::key::ServiceKey;
use super::message::ServiceProvider;
use super::metadata::{IdentityProvider, PROTOCOL};
use super::signature::{BadSignature, DSIG, decoded, verified};
use super::xml::{Document, ElementId, Malformed, parse, parse_within};
use chrono::{DateTime, TimeDelta, Utc};
use std::collections::BTreeMap;

pub const ASSERTION: &str = "urn:oasis:names:tc:SAML:2.0:assertion";
/// Of a response as it is posted.
pub const MAX_SIZE: usize = 256 << 10;
/// How far two clocks may be apart.
pub const SKEW: TimeDelta = TimeDelta::seconds(120);

/// What an answer must be an answer to.
#[derive(Debug)]
pub struct Expected<'e> {
    pub from: &'e IdentityProvider,
    pub to: &'e ServiceProvider,
    /// The id of the request that this browser was sent with.
    pub request_id: &'e str,
    /// For assertions that are encrypted; several while one replaces the other.
    pub keys: &'e [ServiceKey],
    pub wants_encrypted: bool,
    pub now: DateTime<Utc>,
}

/// What an identity provider says of somebody.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Statement {
    /// To be taken once until `expires_at`.
    pub assertion_id: String,
    pub expires_at: DateTime<Utc>,
    pub name: String,
    pub name_format: String,
    /// What the identity provider calls the session that it has with the person.
    pub session: Option<String>,
    pub attributes: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unbelievable {
    #[error("The response is no XML that is taken: it {0}")]
    Malformed(#[from] Malformed),
    #[error("{0}")]
    Signature(#[from] BadSignature),
    #[error("{0}")]
    Encryption(#[from] Undecryptable),
    #[error("{0}")]
    Refused(&'static str),
}

use Unbelievable::Refused;

/// The XML of a posted response.
pub fn received(posted: &str) -> Result<Vec<u8>, Unbelievable> {
    if posted.len() > MAX_SIZE {
        return Err(Refused("The response is too long"));
    }
    decoded(posted).map_err(|_| Refused("The response is not base64"))
}

/// The request that a response claims to answer. Nothing of it is verified yet: it only finds what to compare with.
pub fn claimed_request(xml: &[u8]) -> Result<String, Unbelievable> {
    let document = parse(xml)?;
    let request = document.attribute(document.root(), "InResponseTo").filter(|id| (1..=256).contains(&id.len()));
    request.map(str::to_owned).ok_or(Refused("The response answers no request; begin at our own address"))
}

pub fn believed(xml: &[u8], expected: &Expected<'_>) -> Result<Statement, Unbelievable> {
    let document = parse(xml)?;
    let root = document.root();
    if !document.is(root, PROTOCOL, "Response") {
        return Err(Refused("The message is no response"));
    }
    // First what costs nothing: a stranger's message is to cost no more than reading it.
    check_response(&document, expected)?;
    let signed = verified(&document, root, &expected.from.keys)?;
    let is_signed = signed.is_some();
    let (plain, encrypted) =
        (document.children(root, ASSERTION, "Assertion"), document.children(root, ASSERTION, "EncryptedAssertion"));
    match (plain.as_slice(), encrypted.as_slice()) {
        ([_], []) if expected.wants_encrypted => Err(Refused("Assertions must be encrypted, and this one is not")),
        ([own], []) => {
            let bytes = covered(&document, *own, expected)?;
            match (bytes, signed) {
                (Some(bytes), _) => read(&bytes, expected),
                // The response's own bytes, in which the assertion is looked for anew.
                (None, Some(whole)) => inside(&whole, expected),
                (None, None) => Err(Refused("Neither the response nor its assertion is signed")),
            }
        }
        ([], [hidden]) => opened(&document, *hidden, is_signed, expected),
        _ => Err(Refused("The response must have exactly one assertion")),
    }
}

/// The bytes of an assertion by its own signature.
fn covered(
    document: &Document,
    assertion: ElementId,
    expected: &Expected<'_>,
) -> Result<Option<Vec<u8>>, Unbelievable> {
    Ok(verified(document, assertion, &expected.from.keys)?)
}

fn read(bytes: &[u8], expected: &Expected<'_>) -> Result<Statement, Unbelievable> {
    let document = parse(bytes)?;
    assertion::read(&document, document.root(), expected)
}

fn inside(whole: &[u8], expected: &Expected<'_>) -> Result<Statement, Unbelievable> {
    let document = parse(whole)?;
    match document.children(document.root(), ASSERTION, "Assertion").as_slice() {
        [one] => assertion::read(&document, *one, expected),
        _ => Err(Refused("The response must have exactly one assertion")),
    }
}

/// What is decrypted is as good as the signature around it or in it.
fn opened(
    document: &Document,
    hidden: ElementId,
    is_signed: bool,
    expected: &Expected<'_>,
) -> Result<Statement, Unbelievable> {
    if expected.keys.is_empty() {
        return Err(Refused("The assertion is encrypted, and there is no key to open it"));
    }
    let bytes = decrypted(document, hidden, expected.keys, is_signed)?;
    let clear = parse_within(&bytes, &document.scope(hidden))?;
    match covered(&clear, clear.root(), expected)? {
        Some(bytes) => read(&bytes, expected),
        None if is_signed => assertion::read(&clear, clear.root(), expected),
        None => Err(Refused("Neither the response nor its assertion is signed")),
    }
}

/// What a response says around its assertion. Who could change it could change it to what is expected, so nothing but
/// refusals comes of it.
fn check_response(document: &Document, expected: &Expected<'_>) -> Result<(), Unbelievable> {
    let root = document.root();
    let is_signed = !document.children(root, DSIG, "Signature").is_empty();
    if document.attribute(root, "Version") != Some("2.0") {
        return Err(Refused("The response is not of SAML 2.0"));
    }
    match document.attribute(root, "Destination") {
        Some(destination) if destination != expected.to.consumer_url => {
            return Err(Refused("The response was meant for another address"));
        }
        None if is_signed => return Err(Refused("A signed response must say which address it is meant for")),
        _ => {}
    }
    if document.attribute(root, "InResponseTo") != Some(expected.request_id) {
        return Err(Refused("The response answers another request"));
    }
    match document.children(root, ASSERTION, "Issuer").as_slice() {
        [] => {}
        [issuer] if document.text(*issuer) == Some(expected.from.entity_id.as_str()) => {}
        _ => return Err(Refused("The response is by another identity provider")),
    }
    let status = document.only(root, PROTOCOL, "Status");
    let code = status.and_then(|status| document.only(status, PROTOCOL, "StatusCode"));
    match code.and_then(|code| document.attribute(code, "Value")) {
        Some("urn:oasis:names:tc:SAML:2.0:status:Success") => Ok(()),
        _ => Err(Refused("The identity provider did not sign anybody in")),
    }
}
