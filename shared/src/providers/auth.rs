//! How a provider takes its credential, as one short text of its row: `bearer`, `none`, a header's name, a header's name
//! with the scheme before the key (`authorization: Key`), or the name of a signature.

use http::{HeaderName, HeaderValue, header};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Auth {
    None,
    Header {
        name: HeaderName,
        /// What stands before the key; empty for the bare key.
        scheme: Box<str>,
    },
    /// Every request is signed, which is code and not data.
    Signed,
}

const SIGNATURES: [&str; 2] = ["sigv4", "oci"];

impl Auth {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        if SIGNATURES.contains(&text) {
            return Ok(Self::Signed);
        }
        let (name, scheme) = match text {
            "none" => return Ok(Self::None),
            "bearer" => ("authorization", "Bearer"),
            text => text.split_once(':').unwrap_or((text, "")),
        };
        let name = HeaderName::try_from(name).map_err(|_| format!("auth: `{name}` is no header"))?;
        let scheme = scheme.trim();
        let is_scheme = scheme.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_scheme || (name == header::AUTHORIZATION && scheme.is_empty()) {
            return Err(format!("auth: `{text}` has no scheme"));
        }
        Ok(Self::Header { name, scheme: scheme.into() })
    }

    /// The header that carries `credential`, which may come bare or with the scheme of whoever sent it.
    pub fn header(&self, credential: &HeaderValue) -> Option<(HeaderName, HeaderValue)> {
        let Self::Header { name, scheme } = self else { return None };
        Some((name.clone(), in_scheme(credential, scheme)))
    }
}

/// Nothing is copied when the credential comes as the provider wants it.
pub(super) fn in_scheme(credential: &HeaderValue, scheme: &str) -> HeaderValue {
    if !scheme.is_empty() && has_scheme(credential.as_bytes(), scheme) {
        return credential.clone();
    }
    let bare = without_bearer(credential.as_bytes());
    let written = match scheme.is_empty() {
        true if bare.len() == credential.len() => return credential.clone(),
        true => HeaderValue::from_bytes(bare),
        false => HeaderValue::from_bytes(&[scheme.as_bytes(), b" ", bare].concat()),
    };
    // A piece of a valid header is one; the other way out is to send what was given.
    let mut value = written.unwrap_or_else(|_| credential.clone());
    value.set_sensitive(true);
    value
}

pub(super) fn without_bearer(credential: &[u8]) -> &[u8] {
    match has_scheme(credential, "Bearer") {
        true => credential["Bearer ".len()..].trim_ascii(),
        false => credential,
    }
}

fn has_scheme(credential: &[u8], scheme: &str) -> bool {
    let start = credential.get(..scheme.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()))
        && credential.get(scheme.len()) == Some(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_credential_is_sent_in_the_providers_own_form() {
        for (auth, sent, name, value) in [
            ("bearer", "Bearer k", "authorization", "Bearer k"),
            ("bearer", "bearer k", "authorization", "bearer k"),
            ("bearer", "k", "authorization", "Bearer k"),
            ("x-api-key", "Bearer k", "x-api-key", "k"),
            ("x-api-key", "k", "x-api-key", "k"),
            ("authorization: Key", "Bearer k", "authorization", "Key k"),
            ("authorization: Key", "key k", "authorization", "key k"),
            ("authorization: Basic", "Basic a2V5", "authorization", "Basic a2V5"),
            ("api-key: Bearer", "k", "api-key", "Bearer k"),
            ("bearer", "Bearerish", "authorization", "Bearer Bearerish"),
        ] {
            let (found, written) = Auth::parse(auth).unwrap().header(&HeaderValue::from_static(sent)).unwrap();
            assert_eq!((found.as_str(), written.to_str().unwrap()), (name, value), "{auth}: {sent}");
        }
        assert_eq!(Auth::parse("none").unwrap().header(&HeaderValue::from_static("k")), None);
        assert_eq!(Auth::parse("sigv4").unwrap(), Auth::Signed);
    }

    #[test]
    fn what_names_no_header_is_refused() {
        for text in ["", "two words", "authorization", "x-key: two words"] {
            assert!(Auth::parse(text).is_err(), "{text}");
        }
    }
}
