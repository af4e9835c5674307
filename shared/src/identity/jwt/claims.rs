//! What a verified token says. Claims that widen what it may do are taken as they are meant or not at all; those that
//! limit it (budgets, rates) refuse the token when they cannot be understood, since ignoring them would lift them.

use super::limits::{RateLimit, UsageLimit, rate_limits, usage_limits};
use super::rejection::Rejection;
use crate::identity::scopes;
use crate::settings;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Clocks of different machines differ by less.
pub const LEEWAY: TimeDelta = TimeDelta::seconds(60);

static ORGANISATION: &[&str] = &["gateway_oid", "organisation_id"];
static WORKSPACE: &[&str] = &["gateway_workspace", "workspace_slug"];
static PERSON: &[&str] = &["email_id", "sub", "uid"];
static SCOPES: &[&str] = &["scope", "scopes"];
const SCOPE_PREFIX: &str = "gateway.";

/// A token that was verified. It is stored with what was begun with it (batches), so its fields are read as older versions wrote
/// them, and what cannot be read is no token.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VerifiedToken {
    /// The same for all tokens of one subject in one organisation; of a token without a subject, its own.
    pub id: Uuid,
    pub organisation_id: Uuid,
    /// As the token names it: slug or id. Empty when it names none.
    pub workspace: String,
    pub scopes: Arc<[String]>,
    pub expires_at: DateTime<Utc>,
    /// Whom the issuer says it is for; an e-mail address where it knows one.
    pub person: Option<String>,
    /// What the issuer calls this very token.
    pub jti: Option<String>,
    pub config_id: Option<String>,
    pub metadata: BTreeMap<String, String>,
    pub usage_limits: Vec<UsageLimit>,
    pub rate_limits: Vec<RateLimit>,
}

impl VerifiedToken {
    pub fn from_claims(
        claims: &Map<String, Value>,
        settings: &settings::Jwt,
        now: DateTime<Utc>,
    ) -> Result<Self, Rejection> {
        let expires_at = valid_now(claims, now)?;
        let organisation_id = organisation(claims, settings)?;
        let workspace = first(claims, WORKSPACE, &settings.jwt_workspace_claims).unwrap_or_default().to_owned();
        if workspace.is_empty() {
            return Err(Rejection::Workspace(workspace));
        }
        let person = first(claims, PERSON, &[]).map(str::to_owned);
        let jti = claims.get("jti").and_then(Value::as_str).map(str::to_owned);
        let (config_id, metadata) = defaults(claims)?;
        Ok(Self {
            id: subject_id(organisation_id, person.as_deref().or(jti.as_deref()), claims),
            organisation_id,
            scopes: held(claims, settings)?.into(),
            expires_at,
            jti,
            config_id,
            metadata,
            usage_limits: usage_limits(claims.get("usage_limits"))?,
            rate_limits: rate_limits(claims.get("rate_limits"))?,
            workspace,
            person,
        })
    }

    /// Until when the token works, with the leeway that clocks get.
    pub fn ends_at(&self) -> DateTime<Utc> {
        self.expires_at + LEEWAY
    }
}

/// The organisation that the claims name, or else the only one of the installation.
pub fn organisation(claims: &Map<String, Value>, settings: &settings::Jwt) -> Result<Uuid, Rejection> {
    match first(claims, ORGANISATION, &settings.jwt_org_claims) {
        Some(named) => named.parse().map_err(|_| Rejection::UnknownOrganisation),
        None => match settings.organisations_to_sync[..] {
            [only] => Ok(only),
            _ => Err(Rejection::UnknownOrganisation),
        },
    }
}

/// When the token expires, if it is valid at this moment.
fn valid_now(claims: &Map<String, Value>, now: DateTime<Utc>) -> Result<DateTime<Utc>, Rejection> {
    let expires_at = moment(claims, "exp")?.ok_or(Rejection::NoExpiry)?;
    if expires_at + LEEWAY <= now {
        return Err(Rejection::Expired(expires_at));
    }
    match moment(claims, "nbf")? {
        Some(start) if start > now + LEEWAY => return Err(Rejection::NotYetValid(start)),
        _ => {}
    }
    match moment(claims, "iat")? {
        Some(issued) if issued > now + LEEWAY => Err(Rejection::IssuedLater(issued)),
        _ => Ok(expires_at),
    }
}

fn moment(claims: &Map<String, Value>, name: &'static str) -> Result<Option<DateTime<Utc>>, Rejection> {
    /// The year 9999: what lies beyond cannot be written, and is a mistake.
    const LAST: f64 = 253_402_300_799.0;
    match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let seconds = value.as_f64().filter(|seconds| (0.0..=LAST).contains(seconds));
            let moment = seconds.and_then(|seconds| DateTime::from_timestamp(seconds as i64, 0));
            moment.map(Some).ok_or_else(|| Rejection::Claim { name, why: "is not a time in Unix seconds".into() })
        }
    }
}

/// The first of these claims that holds a text; one that is there and holds something else is the first all the same.
fn first<'c>(claims: &'c Map<String, Value>, names: &[&str], more: &[String]) -> Option<&'c str> {
    let names = names.iter().copied().chain(more.iter().map(|name| name.trim()));
    let found = names.filter_map(|name| claims.get(name)).find(|value| !value.is_null())?;
    Some(found.as_str().unwrap_or_default().trim())
}

/// Those of the token's scopes that tokens can hold, in the order of the table, each once.
fn held(claims: &Map<String, Value>, settings: &settings::Jwt) -> Result<Vec<String>, Rejection> {
    let sent = SCOPES.iter().filter_map(|name| claims.get(*name)).find(|value| !value.is_null());
    let named: Vec<&str> = match sent {
        None => settings.jwt_local_auth_default_scopes.iter().map(String::as_str).collect(),
        Some(Value::String(text)) => text.split_whitespace().collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        Some(_) => Vec::new(),
    };
    let named: Vec<&str> = named.into_iter().map(|scope| without_prefix(scope.trim(), settings)).collect();
    let held = scopes::all_for_jwt().into_iter().filter(|scope| named.contains(scope));
    let held: Vec<String> = held.map(str::to_owned).collect();
    if held.is_empty() { Err(Rejection::NoScope) } else { Ok(held) }
}

fn without_prefix<'s>(scope: &'s str, settings: &settings::Jwt) -> &'s str {
    let prefixes = settings.jwt_scope_prefixes.iter().map(|prefix| prefix.trim()).filter(|prefix| !prefix.is_empty());
    std::iter::once(SCOPE_PREFIX).chain(prefixes).find_map(|prefix| scope.strip_prefix(prefix)).unwrap_or(scope)
}

fn defaults(claims: &Map<String, Value>) -> Result<(Option<String>, BTreeMap<String, String>), Rejection> {
    let refused = |why: &str| Rejection::Claim { name: "defaults", why: why.into() };
    let defaults = match claims.get("defaults") {
        None | Some(Value::Null) => return Ok((None, BTreeMap::new())),
        Some(Value::Object(defaults)) => defaults,
        Some(_) => return Err(refused("is not an object")),
    };
    let metadata = match defaults.get("metadata") {
        None | Some(Value::Null) => BTreeMap::new(),
        Some(Value::Object(pairs)) => {
            let text = |(name, value): (&String, &Value)| Some((name.clone(), value.as_str()?.to_owned()));
            let pairs: Option<_> = pairs.iter().map(text).collect();
            pairs.ok_or_else(|| refused("has metadata that is not text"))?
        }
        Some(_) => return Err(refused("has metadata that is not an object")),
    };
    Ok((defaults.get("config_id").and_then(Value::as_str).map(str::to_owned), metadata))
}

/// Tokens without a subject are told apart by all they say: their limits must not be one another's.
fn subject_id(organisation: Uuid, subject: Option<&str>, claims: &Map<String, Value>) -> Uuid {
    let mut hash = Sha256::new();
    hash.update(organisation.as_bytes());
    match subject {
        Some(subject) => hash.update(subject),
        None => {
            hash.update([0]);
            hash.update(serde_json::to_vec(claims).unwrap_or_default());
        }
    }
    let digest = hash.finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
