//! The calls of the code flow: a provider's metadata, its keys, the exchange of a code for tokens, and what it says of a
//! person beyond the ID token. All through the guarded way out, each with a time limit and a bound on what is read.

use super::discovery::{self, Metadata};
use super::{OidcError, OidcProvider};
use crate::outbound::{Outbound, PostError};
use axum::http::{HeaderMap, HeaderValue, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt as _;
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};
use shared::identity::jwt::{KeyRing, KeySource, Unverified, key_ring};
use shared::secrets::seal::Secret;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::form_urlencoded;
use uuid::Uuid;

const WITHIN: Duration = Duration::from_secs(10);
/// Endpoints move rarely; a provider that moved one is asked again after this.
const CACHE_LIFETIME: Duration = Duration::from_secs(15 * 60);
const MAX_CACHED: usize = 1000;
/// An issuer that gave nothing that can be used is not asked again so soon: strangers begin logins, and each would be a call.
const FAILURE_LIFETIME: Duration = Duration::from_secs(30);
const MAX_ANSWER: usize = 256 << 10;

pub struct OidcClient {
    outbound: Arc<Outbound>,
    ring: KeyRing,
    known: Mutex<HashMap<String, (Instant, Arc<Metadata>)>>,
    failed: Mutex<HashMap<String, (Instant, OidcError)>>,
    /// Who asks an issuer now; others of the same one wait for the outcome.
    asking: Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>,
    /// Scopes that the operator adds to every login.
    pub custom_scopes: Vec<String>,
}

/// What a code was exchanged for.
#[derive(Deserialize)]
pub struct Tokens {
    pub id_token: String,
    pub access_token: Option<String>,
}

/// A code that came back, and what proves that it is for us.
pub struct Code<'a> {
    pub code: &'a str,
    /// The verifier of PKCE.
    pub verifier: &'a str,
    pub redirect_uri: &'a str,
    pub secret: Option<&'a Secret>,
}

impl OidcClient {
    pub fn new(outbound: Arc<Outbound>, custom_scopes: &[String]) -> Self {
        let keys = outbound.clone();
        let fetch = move |url: String| {
            let outbound = keys.clone();
            async move { outbound.get(&url, key_ring::MAX_SET).await }.boxed()
        };
        let custom_scopes = custom_scopes.iter().map(|scope| scope.trim().to_owned()).collect();
        Self {
            outbound,
            ring: KeyRing::new(Box::new(fetch)),
            known: Mutex::default(),
            failed: Mutex::default(),
            asking: Mutex::default(),
            custom_scopes,
        }
    }

    /// What the issuer says of itself, asked for now and then.
    pub async fn metadata(&self, issuer: &str) -> Result<Arc<Metadata>, OidcError> {
        if let Some(outcome) = self.recent(issuer) {
            return outcome;
        }
        let turn = self.turn(issuer);
        let asking = turn.lock().await;
        if let Some(outcome) = self.recent(issuer) {
            return outcome;
        }
        let found = self.discover(issuer).await;
        match &found {
            Ok(metadata) => keep(&mut self.known.lock(), issuer, metadata.clone()),
            Err(why) => keep(&mut self.failed.lock(), issuer, why.clone()),
        }
        self.asking.lock().remove(issuer);
        drop(asking);
        found
    }

    fn turn(&self, issuer: &str) -> Arc<tokio::sync::Mutex<()>> {
        let mut asking = self.asking.lock();
        if asking.len() >= MAX_CACHED {
            // Some began and were given up.
            asking.clear();
        }
        Arc::clone(asking.entry(issuer.to_owned()).or_default())
    }

    /// What came of asking lately; none where it is time to ask again.
    fn recent(&self, issuer: &str) -> Option<Result<Arc<Metadata>, OidcError>> {
        let known = self.known.lock().get(issuer).filter(|(at, _)| at.elapsed() < CACHE_LIFETIME).cloned();
        if let Some((_, metadata)) = known {
            return Some(Ok(metadata));
        }
        let failed = self.failed.lock().get(issuer).filter(|(at, _)| at.elapsed() < FAILURE_LIFETIME).cloned();
        failed.map(|(_, why)| Err(why))
    }

    async fn discover(&self, issuer: &str) -> Result<Arc<Metadata>, OidcError> {
        let url = discovery::address(issuer);
        let asked = tokio::time::timeout(WITHIN, self.outbound.get(&url, discovery::MAX_DOCUMENT)).await;
        let body = asked.unwrap_or_else(|_| Err(no_answer())).map_err(OidcError::Unreachable)?;
        Ok(Arc::new(Metadata::parse(&body, issuer, self.outbound.guard())?))
    }

    /// The claims of a token that the issuer's keys signed; nothing else of it was looked at.
    pub async fn signed_claims(
        &self,
        metadata: &Metadata,
        token: &str,
        types: &[&str],
    ) -> Result<Map<String, Value>, OidcError> {
        let refused = |rejection: shared::identity::jwt::Rejection| OidcError::Token(rejection.to_string());
        let unverified = Unverified::parse_typed(token.as_bytes(), types).map_err(refused)?;
        let source = KeySource::Url(metadata.jwks_uri.clone());
        let ring = ring_of(&metadata.issuer);
        let current = self.ring.keys(ring, &source, unverified.kid(), Instant::now()).await.map_err(refused)?;
        unverified.claims_signed_by(&current.keys).map_err(refused)
    }

    pub async fn redeem(
        &self,
        metadata: &Metadata,
        provider: &OidcProvider,
        code: Code<'_>,
    ) -> Result<Tokens, OidcError> {
        let (headers, body) = redemption(provider, &code)?;
        let asked = self.outbound.post(&metadata.token_endpoint, &headers, body, MAX_ANSWER);
        let (status, body) = answered(asked).await?;
        if status != 200 {
            return Err(OidcError::Refused(error_code(&body)));
        }
        serde_json::from_slice(&body).map_err(|_| OidcError::Answer("it holds no ID token"))
    }

    /// What the provider says of the person beyond the ID token; it must speak of the same one.
    pub async fn user_info(
        &self,
        url: &str,
        access_token: &str,
        subject: &str,
    ) -> Result<Map<String, Value>, OidcError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let bearer = HeaderValue::try_from(format!("Bearer {access_token}"));
        headers.insert(header::AUTHORIZATION, bearer.map_err(|_| OidcError::Answer("its access token is no token"))?);
        let (status, body) = answered(self.outbound.get_with(url, &headers, MAX_ANSWER)).await?;
        if status != 200 {
            return Err(OidcError::Refused(error_code(&body)));
        }
        let claims: Map<String, Value> =
            serde_json::from_slice(&body).map_err(|_| OidcError::Answer("what it says of the person is not JSON"))?;
        match claims.get("sub").and_then(Value::as_str) == Some(subject) {
            true => Ok(claims),
            false => Err(OidcError::Answer("it speaks of another person than the ID token")),
        }
    }
}

/// The form that a code is exchanged by.
fn redemption(provider: &OidcProvider, code: &Code<'_>) -> Result<(HeaderMap, Vec<u8>), OidcError> {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
    let mut form = form_urlencoded::Serializer::new(String::new());
    form.append_pair("grant_type", "authorization_code")
        .append_pair("code", code.code)
        .append_pair("redirect_uri", code.redirect_uri)
        .append_pair("code_verifier", code.verifier);
    let secret = code.secret.and_then(Secret::expose_text);
    match (provider.token_endpoint_auth_method.as_str(), secret) {
        ("none", _) => {
            form.append_pair("client_id", &provider.client_id);
        }
        ("client_secret_post", Some(secret)) => {
            form.append_pair("client_id", &provider.client_id).append_pair("client_secret", secret);
        }
        (_, Some(secret)) => {
            headers.insert(header::AUTHORIZATION, basic(&provider.client_id, secret)?);
        }
        (_, None) => return Err(OidcError::NoSecret),
    }
    Ok((headers, form.finish().into_bytes()))
}

async fn answered(asked: impl Future<Output = Result<(u16, Vec<u8>), PostError>>) -> Result<(u16, Vec<u8>), OidcError> {
    match tokio::time::timeout(WITHIN, asked).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(PostError::Forbidden(why) | PostError::Broken(why))) => Err(OidcError::Unreachable(why)),
        Ok(Err(PostError::TooLong)) => Err(OidcError::Answer("it is too long")),
        Err(_) => Err(too_slow()),
    }
}

fn too_slow() -> OidcError {
    OidcError::Unreachable(no_answer())
}

fn no_answer() -> String {
    format!("no answer within {} s", WITHIN.as_secs())
}

fn keep<T>(cache: &mut HashMap<String, (Instant, T)>, issuer: &str, what: T) {
    if cache.len() >= MAX_CACHED {
        cache.clear();
    }
    cache.insert(issuer.to_owned(), (Instant::now(), what));
}

/// Name and secret are encoded before they are put together (RFC 6749, 2.3.1).
fn basic(client_id: &str, secret: &str) -> Result<HeaderValue, OidcError> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let pair = STANDARD.encode(format!("{}:{}", encoded(client_id), encoded(secret)));
    let mut value = HeaderValue::try_from(format!("Basic {pair}")).map_err(|_| OidcError::NoSecret)?;
    value.set_sensitive(true);
    Ok(value)
}

/// The code of an error and not its description, which may repeat what was sent.
fn error_code(body: &[u8]) -> String {
    let error: Value = serde_json::from_slice(body).unwrap_or_default();
    plain_code(error["error"].as_str().unwrap_or_default())
}

/// An error code as the protocol spells them; anything else is not repeated.
pub fn plain_code(code: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte == b'_';
    match (1..=64).contains(&code.len()) && code.bytes().all(is_plain) {
        true => code.to_owned(),
        false => "without saying why".to_owned(),
    }
}

/// The ring keeps keys by an id; an issuer has the same keys for everybody.
fn ring_of(issuer: &str) -> Uuid {
    let digest: [u8; 32] = Sha256::digest(issuer.as_bytes()).into();
    let mut id = [0; 16];
    id.copy_from_slice(&digest[..16]);
    Uuid::from_bytes(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_secret_are_encoded_before_they_are_joined() {
        let value = basic("a:b", "s+/ é").unwrap();
        let pair = STANDARD.decode(&value.as_bytes()["Basic ".len()..]).unwrap();
        assert_eq!(String::from_utf8(pair).unwrap(), "a%3Ab:s%2B%2F+%C3%A9");
        assert!(value.is_sensitive());
    }

    #[test]
    fn only_a_plain_error_code_is_repeated() {
        for (body, code) in [
            (r#"{"error": "invalid_grant", "error_description": "code s3cret"}"#, "invalid_grant"),
            (r#"{"error": "<script>"}"#, "without saying why"),
            ("nothing", "without saying why"),
        ] {
            assert_eq!(error_code(body.as_bytes()), code, "{body}");
        }
    }
}
