//! Who is asking, told to the server behind where its integration wants to know: as claims in a header, plain or signed by the
//! gateway, or by a token of another issuer that the client sent along.

use super::asker::{Asker, NoCredential};
use super::signed_identity::IdentitySigner;
use crate::identity::identify::strip_bearer;
use http::{HeaderName, HeaderValue, header};
use serde_json::{Map, Value};
use shared::identity::jwt::looks_like_jwt;
use shared::telemetry::LogLimit;
use std::fmt::Write as _;

static CLAIMS: HeaderName = HeaderName::from_static("x-user-claims");
static SIGNED: HeaderName = HeaderName::from_static("x-user-jwt");

/// How an integration wants to know who is asking.
#[derive(Debug, PartialEq)]
pub struct IdentityForwarding {
    method: ForwardingMethod,
    /// Which claims; all where it names none.
    include: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForwardingMethod {
    ClaimsHeader,
    Bearer,
    JwtHeader,
}

impl IdentityForwarding {
    /// None for one that says no method: nothing is told then.
    pub fn parse(value: &Value) -> Option<Self> {
        let method = match value["method"].as_str()? {
            "claims_header" => ForwardingMethod::ClaimsHeader,
            "bearer" => ForwardingMethod::Bearer,
            "jwt_header" => ForwardingMethod::JwtHeader,
            _ => return None,
        };
        let include = value["include_claims"].as_array().into_iter().flatten();
        Some(Self { method, include: include.filter_map(Value::as_str).map(str::to_owned).collect() })
    }
}

pub fn identity_header(
    forwarding: &IdentityForwarding,
    asker: &Asker<'_>,
    signer: &IdentitySigner<'_>,
    audience: &str,
) -> Result<Option<(HeaderName, HeaderValue)>, NoCredential> {
    let claims = || {
        let mut claims = claims(asker);
        claims.retain(|name, _| forwarding.include.is_empty() || forwarding.include.contains(name));
        claims
    };
    match forwarding.method {
        ForwardingMethod::ClaimsHeader => {
            let written = ascii(&Value::Object(claims()).to_string());
            Ok(HeaderValue::try_from(written).ok().map(|value| (CLAIMS.clone(), value)))
        }
        ForwardingMethod::Bearer => Ok(foreign_token(asker).map(|value| (header::AUTHORIZATION, value))),
        ForwardingMethod::JwtHeader => {
            let organisation = asker.caller.workspace.organisation_id.uuid();
            let token = signer.sign(organisation, claims(), audience, asker.now).map_err(|error| {
                tracing::error!(%error, "an identity cannot be signed for an MCP server");
                NoCredential::Unsigned
            })?;
            Ok(HeaderValue::try_from(token).ok().map(|value| (SIGNED.clone(), value)))
        }
    }
}

/// The token of another issuer that the client sent besides what opens the gateway. What opens it, or is meant for it, stays
/// here: a server could do with it whatever the caller may.
fn foreign_token(asker: &Asker<'_>) -> Option<HeaderValue> {
    let sent = asker.head.get(header::AUTHORIZATION).filter(|value| looks_like_jwt(strip_bearer(value)));
    let foreign = sent.filter(|value| !asker.own.are_in(value));
    if foreign.is_none() && (sent.is_some() || asker.caller.token.is_some()) {
        static LOG_LIMIT: LogLimit = LogLimit::new();
        if let Some(skipped) = LOG_LIMIT.pass() {
            let workspace = asker.caller.workspace.id.uuid();
            tracing::warn!(%workspace, skipped, "an MCP server is asked without a token: it opens the gateway itself");
        }
    }
    foreign.and_then(|value| HeaderValue::from_bytes(&[b"Bearer ", strip_bearer(value)].concat()).ok())
}

fn claims(asker: &Asker<'_>) -> Map<String, Value> {
    let (key, workspace) = (&asker.caller.key, &asker.caller.workspace);
    let person = asker.caller.token.as_ref().and_then(|token| token.person.clone());
    let subject =
        person.clone().or_else(|| asker.user.map(|user| user.to_string())).unwrap_or_else(|| key.id.to_string());
    let mut claims = Map::new();
    let mut say = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            claims.insert(name.to_owned(), value.into());
        }
    };
    say("sub", Some(subject));
    say("email", person.filter(|person| person.contains('@')));
    say("user_id", asker.user.map(|user| user.to_string()));
    say("api_key_id", Some(key.id.to_string()));
    say("workspace_id", Some(workspace.id.to_string()));
    say("workspace_slug", Some(workspace.slug.clone()));
    say("organisation_id", Some(workspace.organisation_id.to_string()));
    claims
}

/// JSON in letters that a header may hold.
fn ascii(json: &str) -> String {
    let mut written = String::with_capacity(json.len());
    for letter in json.chars() {
        if letter.is_ascii() {
            written.push(letter);
            continue;
        }
        for unit in letter.encode_utf16(&mut [0; 2]) {
            let _ = write!(written, "\\u{unit:04x}");
        }
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_in_a_header_is_the_same_json() {
        let claims = json!({ "sub": "Zoë 🌍" });
        let written = ascii(&claims.to_string());
        assert!(written.is_ascii());
        assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), claims);
    }

    #[test]
    fn a_method_that_is_none_forwards_nothing() {
        assert_eq!(IdentityForwarding::parse(&json!({ "method": "shout" })), None);
        let parsed = IdentityForwarding::parse(&json!({ "method": "bearer", "include_claims": ["sub", 7] })).unwrap();
        assert_eq!(parsed.include, ["sub"]);
    }
}
