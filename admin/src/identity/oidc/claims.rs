//! What of a provider's token is believed, once its signature is: an ID token made by this issuer, for this client, now,
//! and for this very login (nonce); a logout token of this issuer that can be nothing else. Pure.

use super::OidcError;
use super::provider::OidcProvider;
use chrono::{DateTime, TimeDelta, Utc};
use serde_json::{Map, Value};

/// Clocks differ.
const SKEW: TimeDelta = TimeDelta::seconds(60);
/// A logout is told when it happens.
const OLDEST_LOGOUT: TimeDelta = TimeDelta::minutes(10);
const MAX_ID: usize = 1024;
const BACKCHANNEL_LOGOUT: &str = "http://schemas.openid.net/event/backchannel-logout";

/// An ID token that may be believed.
#[derive(Debug)]
pub struct IdClaims {
    pub subject: String,
    /// What the provider calls its session.
    pub session: Option<String>,
    pub all: Map<String, Value>,
}

/// A logout token that may be believed.
#[derive(Debug)]
pub struct LogoutClaims {
    pub subject: Option<String>,
    pub session: Option<String>,
    pub id: String,
    /// After this it would be refused as too old.
    pub until: DateTime<Utc>,
}

pub fn id_token(
    claims: Map<String, Value>,
    provider: &OidcProvider,
    nonce: &str,
    now: DateTime<Utc>,
) -> Result<IdClaims, OidcError> {
    common(&claims, provider, now)?;
    if text(&claims, "nonce") != Some(nonce) {
        return Err(refused("nonce is not that of this login"));
    }
    let expires = time(&claims, "exp").ok_or_else(|| refused("no exp claim"))?;
    if now >= expires + SKEW {
        return Err(refused("it has expired"));
    }
    let subject = named(&claims, "sub")?.ok_or_else(|| refused("no sub claim"))?;
    Ok(IdClaims { subject, session: named(&claims, "sid")?, all: claims })
}

pub fn logout_token(
    claims: &Map<String, Value>,
    provider: &OidcProvider,
    now: DateTime<Utc>,
) -> Result<LogoutClaims, OidcError> {
    common(claims, provider, now)?;
    if claims.contains_key("nonce") {
        // Or an ID token could be sent as one.
        return Err(refused("a logout token has no nonce"));
    }
    if !claims.get("events").and_then(|events| events.get(BACKCHANNEL_LOGOUT)).is_some_and(Value::is_object) {
        return Err(refused("it is not about a logout"));
    }
    let issued = time(claims, "iat").ok_or_else(|| refused("no iat claim"))?;
    let until = issued + OLDEST_LOGOUT + SKEW;
    let is_over = time(claims, "exp").is_some_and(|expires| now >= expires + SKEW);
    if now >= until || is_over {
        return Err(refused("it has expired"));
    }
    let (subject, session) = (named(claims, "sub")?, named(claims, "sid")?);
    if subject.is_none() && session.is_none() {
        return Err(refused("it names neither sub nor sid"));
    }
    let id = named(claims, "jti")?.ok_or_else(|| refused("no jti claim"))?;
    Ok(LogoutClaims { subject, session, id, until })
}

/// Issuer, audience, and not from the future.
fn common(claims: &Map<String, Value>, provider: &OidcProvider, now: DateTime<Utc>) -> Result<(), OidcError> {
    if text(claims, "iss") != Some(provider.issuer.as_str()) {
        return Err(refused("it is of another issuer"));
    }
    let client = provider.client_id.as_str();
    let (is_for_client, is_for_others) = match claims.get("aud") {
        Some(Value::String(one)) => (one == client, false),
        Some(Value::Array(all)) => (all.iter().any(|one| one == client), all.len() > 1),
        _ => (false, false),
    };
    let party = claims.get("azp");
    if !is_for_client || party.is_some_and(|party| party != client) || (is_for_others && party.is_none()) {
        return Err(refused("it is for another client"));
    }
    let is_future = |name| time(claims, name).is_some_and(|at| at > now + SKEW);
    if is_future("iat") || is_future("nbf") {
        return Err(refused("it is from the future"));
    }
    Ok(())
}

/// Whether the provider says that the address is the person's. Some write it as a text, one says it of the domain.
pub fn is_email_verified(claims: &Map<String, Value>) -> Option<bool> {
    let verdict = |name: &str| match claims.get(name)? {
        Value::Bool(value) => Some(*value),
        Value::String(value) => Some(value.eq_ignore_ascii_case("true") || value == "1"),
        Value::Number(value) => Some(value.as_i64() == Some(1)),
        _ => Some(false),
    };
    VERDICTS.into_iter().find_map(verdict)
}

/// What is said whether an address is the person's.
const VERDICTS: [&str; 2] = ["email_verified", "xms_edov"];

/// Adds what the provider says beyond the ID token, which counts where both say something. An address and whether it is
/// the person's belong together: what one says of its address is not said of the other's.
pub fn complete(claims: &mut Map<String, Value>, mut more: Map<String, Value>) {
    let (own, other) = (claims.get("email"), more.get("email"));
    let (is_from_there, is_another) = (own.is_none() && other.is_some(), own.is_some() && other != own);
    for name in VERDICTS {
        if is_from_there {
            claims.shift_remove(name);
        }
        if is_another {
            more.shift_remove(name);
        }
    }
    for (name, value) in more {
        claims.entry(name).or_insert(value);
    }
}

pub fn text<'c>(claims: &'c Map<String, Value>, name: &str) -> Option<&'c str> {
    claims.get(name).and_then(Value::as_str)
}

/// A name that can be stored; one that cannot is no reason to take somebody for nobody.
fn named(claims: &Map<String, Value>, name: &str) -> Result<Option<String>, OidcError> {
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(id)) if (1..=MAX_ID).contains(&id.len()) && !id.contains('\0') => Ok(Some(id.clone())),
        Some(_) => Err(refused("sub, sid or jti is no text that can be used")),
    }
}

fn time(claims: &Map<String, Value>, name: &str) -> Option<DateTime<Utc>> {
    let value = claims.get(name)?;
    let seconds = value.as_i64().or_else(|| value.as_f64().map(|seconds| seconds as i64))?;
    // A date so far off that nothing can be added to it is none.
    DateTime::from_timestamp(seconds.clamp(0, 253_402_300_799), 0)
}

fn refused(why: &str) -> OidcError {
    OidcError::Token(why.to_owned())
}

#[cfg(test)]
mod tests;
