//! From the text of a token to what it says, believed only after its signature. Who may sign is named inside the token
//! (organisation and key id), so it is read in two steps: `Unverified` for finding the keys, `verify` for the rest.

use super::algorithm;
use super::claims::{self, VerifiedToken};
use super::keys::WebKeySet;
use super::rejection::Rejection;
use super::rules::TokenRules;
use super::signature;
use crate::settings;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use jsonwebtoken::errors::ErrorKind;
use jsonwebtoken::{Algorithm, Validation};
use serde_json::{Map, Value};
use uuid::Uuid;

/// Tokens beyond this are no credentials.
const MAX_TOKEN_BYTES: usize = 16 << 10;

/// A dotted text that begins like a JSON object in base64url, or whose first of three parts is one. API keys have no
/// dots, and what only resembles a token is refused with words about tokens.
pub fn looks_like_jwt(value: &[u8]) -> bool {
    let Some((head, _)) = value.iter().position(|byte| *byte == b'.').map(|dot| value.split_at(dot)) else {
        return false;
    };
    let is_three = value.iter().filter(|byte| **byte == b'.').count() == 2;
    head.starts_with(b"eyJ") || is_three && object(head).is_some()
}

/// A token that was read, and nothing of it believed.
pub struct Unverified<'t> {
    text: &'t str,
    kid: String,
    algorithm: Algorithm,
    claims: Map<String, Value>,
}

impl<'t> Unverified<'t> {
    pub fn parse(text: &'t [u8]) -> Result<Self, Rejection> {
        Self::parse_typed(text, &["JWT"])
    }

    /// A token whose header calls it one of these types, or says nothing of its type.
    pub fn parse_typed(text: &'t [u8], types: &[&str]) -> Result<Self, Rejection> {
        let text =
            std::str::from_utf8(text).ok().filter(|text| text.len() <= MAX_TOKEN_BYTES).ok_or(Rejection::Malformed)?;
        let mut parts = text.split('.');
        let (Some(head), Some(body), Some(signature), None) = (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(Rejection::Malformed);
        };
        let header = object(head.as_bytes()).ok_or(Rejection::Malformed)?;
        let claims = object(body.as_bytes()).ok_or(Rejection::Malformed)?;
        URL_SAFE_NO_PAD.decode(signature).map_err(|_| Rejection::Malformed)?;
        let (kid, algorithm) = checked(&header, types)?;
        Ok(Self { text, kid, algorithm, claims })
    }

    /// Whether it says that it is signed by one of these algorithms.
    pub fn is_signed_by(&self, names: &[impl AsRef<str>]) -> bool {
        names.iter().any(|name| algorithm::parse(name.as_ref()) == Some(self.algorithm))
    }

    pub fn kid(&self) -> &str {
        &self.kid
    }

    /// The organisation the token claims to be for: whose keys are to be asked.
    pub fn organisation_id(&self, settings: &settings::Jwt) -> Result<Uuid, Rejection> {
        claims::organisation(&self.claims, settings)
    }

    /// Whether it says of itself what these rules want.
    pub fn agrees_with(&self, rules: &TokenRules) -> bool {
        rules.check(&self.claims).is_ok()
    }

    /// What the token says, if one of these keys signed it and it is valid now.
    pub fn verify(
        &self,
        keys: &WebKeySet,
        rules: &TokenRules,
        settings: &settings::Jwt,
        now: DateTime<Utc>,
    ) -> Result<VerifiedToken, Rejection> {
        let claims = self.claims_signed_by(keys)?;
        rules.check(&claims)?;
        VerifiedToken::from_claims(&claims, settings, now)
    }

    /// The claims, if one of these keys signed them. Whether they hold now is the caller's to judge.
    pub fn claims_signed_by(&self, keys: &WebKeySet) -> Result<Map<String, Value>, Rejection> {
        let key = keys.find(&self.kid, self.algorithm)?;
        signature::install();
        // The time is judged by the claims, with the caller's clock; issuer and audience by the organisation's rules.
        let mut validation = Validation::new(self.algorithm);
        validation.required_spec_claims.clear();
        validation.validate_exp = false;
        validation.validate_aud = false;
        match jsonwebtoken::decode::<Map<String, Value>>(self.text, key, &validation) {
            Ok(token) => Ok(token.claims),
            Err(error) if matches!(error.kind(), ErrorKind::InvalidSignature) => Err(Rejection::Signature),
            Err(_) => Err(Rejection::Malformed),
        }
    }
}

/// The key id and the algorithm, once everything else in the header is as it must be.
fn checked(header: &Map<String, Value>, types: &[&str]) -> Result<(String, Algorithm), Rejection> {
    let text = |name: &str| header.get(name).and_then(Value::as_str);
    let Some(algorithm) = text("alg").and_then(algorithm::parse) else {
        return Err(Rejection::Algorithm(text("alg").unwrap_or_default().to_owned()));
    };
    match header.get("typ") {
        None => {}
        Some(typ) if typ.as_str().is_some_and(|typ| types.iter().any(|one| typ.eq_ignore_ascii_case(one))) => {}
        Some(typ) => return Err(Rejection::Type(typ.as_str().unwrap_or_default().to_owned())),
    }
    if header.contains_key("crit") {
        return Err(Rejection::Critical);
    }
    let kid = text("kid").filter(|kid| !kid.is_empty()).ok_or(Rejection::NoKeyId)?;
    Ok((kid.to_owned(), algorithm))
}

fn object(part: &[u8]) -> Option<Map<String, Value>> {
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests;
