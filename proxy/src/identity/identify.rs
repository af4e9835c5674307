//! Headers → principal: whose key is it, and may it be used here? Decided from the snapshot alone. A token (JWT) may
//! need keys that must be fetched first, so it is only recognised here; `tokens` does the rest.

use crate::request::headers::GatewayHeaders;
use crate::request::realtime_head;
use crate::request::refusal::Refusal;
use crate::request::text_bounds::{self, cut};
use crate::runtime::tenant_share::Tenant;
use crate::snapshot::Snapshot;
use chrono::{DateTime, Utc};
use http::HeaderValue;
use shared::identity::api_key::KeyHash;
use shared::identity::jwt::{VerifiedToken, looks_like_jwt};
use shared::model::{ApiKey, DeadKey, Status, Workspace};
use shared::nearest::nearest;
use std::sync::Arc;

#[derive(Debug, Clone)]
pub struct Principal {
    pub key: Arc<ApiKey>,
    pub workspace: Arc<Workspace>,
    /// What the token says, if it was one: limits and defaults of its own. `key` is then what the token stands for.
    pub token: Option<Arc<VerifiedToken>>,
}

impl Principal {
    /// By whom what is bounded for all is shared out.
    pub fn tenant(&self) -> Tenant {
        (&*self.workspace).into()
    }
}

/// Whom the headers name.
#[derive(Debug)]
pub enum Identified<'h> {
    Key(Principal),
    /// A token, and its hash, by which it may be known already.
    Token {
        text: &'h [u8],
        hash: KeyHash,
    },
}

/// Inference needs this scope; only workspace keys can have it.
pub const INFERENCE: &str = "completions.write";
/// Whoever may ask a model may also see which there are.
pub const LISTING: &[&str] = &["models.list", INFERENCE];

pub fn identify<'h>(
    headers: &GatewayHeaders<'h>,
    snapshot: &Snapshot,
    scopes: &[&str],
    now: DateTime<Utc>,
) -> Result<Identified<'h>, Refusal> {
    let sent = service_key(headers).ok_or_else(|| missing_key(headers))?;
    if !snapshot.is_loaded() {
        return Err(Refusal::not_ready());
    }
    let hash = KeyHash::from_key(sent);
    // Keys are looked up first: a request with a key pays nothing for tokens.
    let Some(key) = snapshot.api_key(&hash) else {
        return if looks_like_jwt(sent) {
            Ok(Identified::Token { text: sent, hash })
        } else {
            Err(unknown_key(headers))
        };
    };
    check_usable(&key, &hash, now)?;
    let Some(workspace) = key.workspace_id else {
        return Err(Refusal::insufficient_scope(scopes.first().unwrap_or(&INFERENCE)));
    };
    let workspace = snapshot.workspace(&workspace).ok_or_else(Refusal::invalid_api_key)?;
    if workspace.status != Status::Active {
        return Err(Refusal::invalid_api_key());
    }
    if !has_one(&key.scopes, scopes) {
        return Err(Refusal::insufficient_scope(scopes.first().unwrap_or(&INFERENCE)));
    }
    Ok(Identified::Key(Principal { key, workspace, token: None }))
}

/// No key of ours; one that was sent may have been read as the provider's, or stand under a name that is nearly ours.
fn missing_key(headers: &GatewayHeaders<'_>) -> Refusal {
    let named = headers.provider.and_then(|name| name.to_str().ok()).or_else(|| headers.named_by_mode());
    let slip = headers.unknown.iter().find(|sent| nearest(sent, ["api-key"]).is_some());
    match (headers.authorization, named, slip) {
        (_, _, Some(sent)) => Refusal::misspelt_api_key(sent),
        (Some(_), Some(provider), None) => Refusal::key_read_as_providers(cut(provider, text_bounds::NAME)),
        _ => Refusal::missing_api_key(),
    }
}

/// A key that is none of ours. Where a provider's could stand too, newcomers mean that one.
fn unknown_key(headers: &GatewayHeaders<'_>) -> Refusal {
    match (headers.api_key, headers.authorization, headers.x_api_key) {
        (Some(_), ..) => Refusal::invalid_api_key(),
        (None, Some(_), _) => Refusal::invalid_key_in("Authorization"),
        (None, None, Some(_)) => Refusal::invalid_key_in("x-api-key"),
        (None, None, None) => Refusal::invalid_api_key(),
    }
}

/// The admin key that the headers name, if they name one that can be used.
pub fn administrator(headers: &GatewayHeaders<'_>, snapshot: &Snapshot, now: DateTime<Utc>) -> Option<Arc<ApiKey>> {
    let hash = KeyHash::from_key(service_key(headers)?);
    let key = snapshot.api_key(&hash).filter(|key| key.workspace_id.is_none())?;
    check_usable(&key, &hash, now).ok().map(|()| key)
}

fn check_usable(key: &ApiKey, hash: &KeyHash, now: DateTime<Utc>) -> Result<(), Refusal> {
    key.check(hash, now).map_err(|dead| match dead {
        DeadKey::Rotated | DeadKey::Archived => Refusal::invalid_api_key(),
        DeadKey::Expired => Refusal::expired_api_key(),
    })
}

/// Whether one of these scopes is held.
pub fn has_one(held: &[String], scopes: &[&str]) -> bool {
    held.iter().any(|scope| scopes.contains(&scope.as_str()))
}

/// Where the service key is: its own header; else `Authorization`, unless that authenticates a plainly named
/// provider; else `x-api-key`, as Anthropic's SDKs send it, or `x-goog-api-key`, as Google's do; else a subprotocol, as
/// browsers must. Never the query: addresses are kept in too many places.
pub fn service_key<'a>(headers: &GatewayHeaders<'a>) -> Option<&'a [u8]> {
    if let Some(key) = headers.api_key {
        return Some(strip_bearer(key));
    }
    match headers.authorization {
        Some(key) if !headers.names_plain_provider() => Some(strip_bearer(key)),
        Some(_) => None,
        None => {
            let vendors = headers.x_api_key.or(headers.x_goog_api_key);
            vendors.map(HeaderValue::as_bytes).or_else(|| headers.websocket_key.and_then(realtime_head::key))
        }
    }
}

pub fn strip_bearer(value: &HeaderValue) -> &[u8] {
    let bytes = value.as_bytes().trim_ascii();
    match bytes.get(..7) {
        Some(scheme) if scheme.eq_ignore_ascii_case(b"bearer ") => bytes[7..].trim_ascii(),
        _ => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::headers::Aliases;
    use http::{HeaderMap, HeaderName};

    #[test]
    fn the_service_key_is_found_where_each_client_puts_it() {
        for (pairs, found) in [
            (vec![("x-gateway-api-key", "k"), ("authorization", "Bearer p")], Some("k")),
            (vec![("authorization", "Bearer k")], Some("k")),
            (vec![("authorization", "bearer k"), ("x-gateway-provider", "@prod")], Some("k")),
            (vec![("authorization", "Bearer p"), ("x-gateway-provider", "openai")], None),
            (vec![("authorization", "Bearer p"), ("x-api-key", "k"), ("x-gateway-provider", "openai")], None),
            (vec![("x-api-key", "k"), ("x-gateway-provider", "openai")], Some("k")),
            (vec![("x-api-key", "k")], Some("k")),
            (vec![("x-goog-api-key", "k")], Some("k")),
            (vec![("x-goog-api-key", "k"), ("authorization", "Bearer p"), ("x-gateway-provider", "openai")], None),
            (vec![("x-goog-api-key", "p"), ("x-gateway-api-key", "k")], Some("k")),
            (vec![("sec-websocket-protocol", "realtime, openai-insecure-api-key.k")], Some("k")),
            (vec![("sec-websocket-protocol", "openai-insecure-api-key.k"), ("authorization", "Bearer a")], Some("a")),
            (vec![("sec-websocket-protocol", "realtime")], None),
            (vec![], None),
        ] {
            let mut head = HeaderMap::new();
            for (name, value) in &pairs {
                head.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
            }
            let headers = GatewayHeaders::from_headers(&head, &Aliases::default()).unwrap();
            assert_eq!(service_key(&headers), found.map(str::as_bytes), "{pairs:?}");
        }
    }
}
