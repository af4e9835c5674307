//! Why a token was not accepted, in words its sender can act on. What a message repeats of the token is shortened and
//! plain, because it ends in answers, logs and the audit trail.

use super::algorithm::NAMES;
use chrono::{DateTime, SecondsFormat, Utc};
use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Rejection {
    SwitchedOff,
    Malformed,
    Algorithm(String),
    Type(String),
    Critical,
    NoKeyId,
    UnknownOrganisation,
    NoKeySet,
    KeySetUnreachable(String),
    UnknownKeyId(String),
    UnusableKey {
        kid: String,
        why: &'static str,
    },
    Signature,
    /// Who issued it, where the organisation names another.
    Issuer(String),
    Audience,
    NoExpiry,
    Expired(DateTime<Utc>),
    NotYetValid(DateTime<Utc>),
    IssuedLater(DateTime<Utc>),
    Claim {
        name: &'static str,
        why: String,
    },
    Workspace(String),
    /// Somebody who was removed from the organisation.
    Person(String),
    NoScope,
    /// The token is good and does not reach this far.
    MissingScope(String),
}

impl Rejection {
    /// The sender is known well enough to be told "not you" instead of "who are you".
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::NoKeySet | Self::Workspace(_) | Self::NoScope | Self::MissingScope(_))
    }

    /// One word for all of its sort, without anything that the token says.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::SwitchedOff => "switched_off",
            Self::Malformed => "malformed",
            Self::Algorithm(_) => "algorithm",
            Self::Type(_) => "type",
            Self::Critical => "critical",
            Self::NoKeyId => "no_key_id",
            Self::UnknownOrganisation => "unknown_organisation",
            Self::NoKeySet => "no_key_set",
            Self::KeySetUnreachable(_) => "key_set_unreachable",
            Self::UnknownKeyId(_) => "unknown_key_id",
            Self::UnusableKey { .. } => "unusable_key",
            Self::Signature => "signature",
            Self::Issuer(_) => "issuer",
            Self::Audience => "audience",
            Self::NoExpiry => "no_expiry",
            Self::Expired(_) => "expired",
            Self::NotYetValid(_) => "not_yet_valid",
            Self::IssuedLater(_) => "issued_later",
            Self::Claim { .. } => "claim",
            Self::Workspace(_) => "workspace",
            Self::Person(_) => "person",
            Self::NoScope => "no_scope",
            Self::MissingScope(_) => "missing_scope",
        }
    }

    pub fn status(&self) -> u16 {
        if self.is_forbidden() { 403 } else { 401 }
    }

    pub fn code(&self) -> &'static str {
        if self.is_forbidden() { "AB03" } else { "AB05" }
    }
}

impl std::error::Error for Rejection {}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JWT rejected: ")?;
        match self {
            Self::SwitchedOff => f.write_str("this installation accepts no tokens (JWT_ENABLED)"),
            Self::Malformed => f.write_str("malformed token"),
            Self::Algorithm(alg) => write!(f, "algorithm {} is not one of {}", plain(alg), NAMES.join(", ")),
            Self::Type(typ) => write!(f, "type {} is not JWT", plain(typ)),
            Self::Critical => f.write_str("header asks for extensions (crit) that are not known here"),
            Self::NoKeyId => f.write_str("header has no kid"),
            Self::UnknownOrganisation => f.write_str("unknown organisation (its id is the claim gateway_oid)"),
            Self::NoKeySet => f.write_str("organisation has no JWKS (jwks_url or jwks_json of its auth settings)"),
            Self::KeySetUnreachable(why) => write!(f, "JWKS could not be fetched: {}", plain(why)),
            Self::UnknownKeyId(kid) => write!(f, "no key in the JWKS matches kid {}", plain(kid)),
            Self::UnusableKey { kid, why } => write!(f, "the key with kid {} {why}", plain(kid)),
            Self::Signature => f.write_str("signature does not match"),
            Self::Issuer(issuer) => write!(f, "issuer {} is not the one this organisation names", plain(issuer)),
            Self::Audience => f.write_str("claim aud names nobody whose tokens this organisation accepts"),
            Self::NoExpiry => f.write_str("no exp claim"),
            Self::Expired(at) => write!(f, "expired at {}", time(at)),
            Self::NotYetValid(at) => write!(f, "not valid before {}", time(at)),
            Self::IssuedLater(at) => write!(f, "issued in the future, at {}", time(at)),
            Self::Claim { name, why } => write!(f, "claim {name} {}", plain(why)),
            Self::Workspace(workspace) => {
                write!(
                    f,
                    "workspace {} is not available (its slug or id is the claim gateway_workspace)",
                    plain(workspace)
                )
            }
            Self::Person(person) => write!(f, "user {} is not active in this organisation", plain(person)),
            Self::NoScope => f.write_str("no usable scope (the claim scope holds them, as completions.write)"),
            Self::MissingScope(scope) => write!(f, "it does not hold the scope {scope}"),
        }
    }
}

fn time(at: &DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn plain(text: &str) -> String {
    const MAX_QUOTED: usize = 120;
    let shown: String = text.chars().filter(|c| !c.is_control()).take(MAX_QUOTED).collect();
    if shown.is_empty() { "(none)".into() } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_message_repeats_is_short_and_without_control_characters() {
        let message = Rejection::UnknownKeyId(format!("a\r\n\0b{}", "x".repeat(9999))).to_string();
        assert!(message.starts_with("JWT rejected: no key in the JWKS matches kid abx"), "{message}");
        assert!(message.len() < 200);
        let workspace = Rejection::Workspace(String::new()).to_string();
        assert!(workspace.starts_with("JWT rejected: workspace (none) is not available (its slug"), "{workspace}");
    }
}
