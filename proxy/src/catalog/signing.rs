//! Credentials that must be computed: signatures over a request (AWS, Oracle), and tokens that a login service hands out
//! (Google, Azure, AWS's roles) or that an account signs for itself (Snowflake).
//!
//! An `AccountCredential` is made from an account's fields and its key, purely. `Signing::authorise` puts it on a
//! request: signatures at once, tokens from `TokenCache`, which renews them ahead so that a request waits for a login
//! only when there never was one.
//!
//! What is not here: keys that are sent as they are (`shared::providers::Auth`), secrets that a manager holds
//! (`catalog::secrets`), and addresses (`shared::providers`).

mod account;
mod error;
mod oci;
mod own_identity_hosts;
mod snowflake;
mod token_cache;
mod token_request;

pub use account::{AccountCredential, BadAccount};
pub use error::SigningError;
pub use shared::secrets::cloud::sigv4::SignedBody;

use crate::net::cloud_http::DialerTransport;
use crate::net::dial::{Dialer, Origin, UpstreamRequest};
use chrono::{DateTime, Utc};
use http::{HeaderName, HeaderValue, header};
use oci::OciRequest;
use shared::secrets::cloud::sigv4;
use shared::secrets::cloud::sigv4::{RequestToSign, SigningScope};
use shared::secrets::cloud::{AwsKeys, CloudLogin, Endpoints, OwnIdentity};
use shared::settings;
use std::sync::Arc;
use std::time::Duration;
use token_cache::TokenCache;
use token_request::GrantedToken;

/// One for the life of the process.
pub struct Signing {
    tokens: Arc<TokenCache>,
}

/// A request as it is about to be sent.
#[derive(Clone, Copy)]
pub struct HeadToSign<'r> {
    pub method: &'r str,
    pub origin: &'r Origin,
    pub path_and_query: &'r str,
    /// Of which those are signed that a provider reads. Names in small letters.
    pub headers: &'r [(&'r str, &'r str)],
    pub body: SignedBody<'r>,
}

/// What a request must not bring with it, because a signature says it anew.
pub static REPLACED: [HeaderName; 7] = [
    header::AUTHORIZATION,
    header::DATE,
    HeaderName::from_static("api-key"),
    HeaderName::from_static("x-api-key"),
    HeaderName::from_static("x-amz-date"),
    HeaderName::from_static("x-amz-security-token"),
    HeaderName::from_static("x-amz-content-sha256"),
];

impl Signing {
    pub fn new(settings: &settings::ProviderLogin, dialer: Arc<Dialer>) -> Self {
        let own = match settings.provider_own_identity {
            true => OwnIdentity::from_environment(),
            false => OwnIdentity::none(),
        };
        let endpoints = Endpoints {
            aws: settings.provider_aws_sts_url.clone(),
            azure_login: settings.provider_azure_login_url.clone(),
            ..Endpoints::default()
        };
        let login = CloudLogin::new(DialerTransport(dialer), own, endpoints);
        Self::with_login(login, Duration::from_millis(settings.provider_login_timeout_ms.max(1)))
    }

    fn with_login(login: CloudLogin, limit: Duration) -> Self {
        Self { tokens: Arc::new(TokenCache::new(login, limit)) }
    }

    /// Renews what is in use before it ends, for ever; spawn it beside the service.
    pub async fn run(&self) {
        Arc::clone(&self.tokens).run().await;
    }

    /// Puts the credential on a request that is otherwise complete: what is changed later is not what was signed.
    pub async fn authorise(
        &self,
        credential: &AccountCredential,
        origin: &Origin,
        request: &mut UpstreamRequest,
        body: SignedBody<'_>,
    ) -> Result<(), SigningError> {
        for name in &REPLACED {
            request.remove(name);
        }
        let added = {
            let texts = request.headers().filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)));
            let headers: Vec<(&str, &str)> = texts.collect();
            let path_and_query = request.path_and_query();
            let head = HeadToSign { method: request.method.as_str(), origin, path_and_query, headers: &headers, body };
            self.headers(credential, &head).await?
        };
        for (name, value) in added {
            request.put(name, value);
        }
        Ok(())
    }

    /// The provider answered 401 to a request with this `authorization`. Whether a new credential may do better, which is only so
    /// of a token that was granted: it may have been revoked.
    pub fn retire(&self, credential: &AccountCredential, sent: Option<&HeaderValue>) -> bool {
        match (credential, sent) {
            (AccountCredential::Bearer(request), Some(sent)) => self.tokens.retire(request, sent),
            _ => false,
        }
    }

    /// The headers that carry the credential. Each of them replaces whatever the request has under its name.
    pub async fn headers(
        &self,
        credential: &AccountCredential,
        head: &HeadToSign<'_>,
    ) -> Result<Vec<(HeaderName, HeaderValue)>, SigningError> {
        own_identity_hosts::check(credential, head.origin)?;
        match credential {
            AccountCredential::Header(name, value) => Ok(vec![(name.clone(), value.clone())]),
            AccountCredential::AwsKeys { keys, region, service } => {
                aws_headers(head, keys, region, service, Utc::now())
            }
            AccountCredential::AwsLent { keys, region, service } => match &*self.tokens.token(keys).await? {
                GrantedToken::Aws(keys) => aws_headers(head, keys, region, service, Utc::now()),
                _ => Err(SigningError::Unsendable),
            },
            AccountCredential::Bearer(token) => match &*self.tokens.token(token).await? {
                GrantedToken::Bearer(value) => Ok(vec![(header::AUTHORIZATION, value.clone())]),
                _ => Err(SigningError::Unsendable),
            },
            AccountCredential::Oracle { key_id, key } => match &*self.tokens.token(key).await? {
                GrantedToken::Key(key) => oci::headers(&oci_request(head)?, key_id, key, Utc::now()),
                _ => Err(SigningError::Unsendable),
            },
        }
    }
}

fn aws_headers(
    head: &HeadToSign<'_>,
    keys: &AwsKeys,
    region: &str,
    service: &str,
    now: DateTime<Utc>,
) -> Result<Vec<(HeaderName, HeaderValue)>, SigningError> {
    if matches!(head.body, SignedBody::Unsigned) && service != "s3" {
        return Err(SigningError::NeedsBody);
    }
    let (path, query) = head.path_and_query.split_once('?').unwrap_or((head.path_and_query, ""));
    let signed: Vec<(&str, &str)> = head.headers.iter().copied().filter(|(name, _)| is_signed(name)).collect();
    let request = RequestToSign {
        method: head.method,
        host: head.origin.authority().as_str(),
        path,
        query,
        headers: &signed,
        body: head.body,
    };
    let added = sigv4::headers(&request, keys, SigningScope { region, service }, now);
    added.into_iter().map(|(name, value)| Ok((HeaderName::from_static(name), sensitive(value)?))).collect()
}

/// What AWS reads. Others may change on the way without harm.
fn is_signed(name: &str) -> bool {
    let is_amazons = name.starts_with("x-amz-") || name.starts_with("x-amzn-");
    name == "content-type" || is_amazons && name != "x-amzn-trace-id"
}

fn oci_request<'r>(head: &HeadToSign<'r>) -> Result<OciRequest<'r>, SigningError> {
    let SignedBody::Whole(body) = head.body else { return Err(SigningError::NeedsBody) };
    let content_type = head.headers.iter().find(|(name, _)| *name == "content-type").map(|(_, value)| *value);
    let host = head.origin.authority().as_str();
    Ok(OciRequest { method: head.method, host, path_and_query: head.path_and_query, content_type, body })
}

/// A header that no log shows.
fn sensitive(value: String) -> Result<HeaderValue, SigningError> {
    let mut value = HeaderValue::try_from(value).map_err(|_| SigningError::Unsendable)?;
    value.set_sensitive(true);
    Ok(value)
}

#[cfg(test)]
mod tests;
