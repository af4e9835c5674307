//! Sign-in by OIDC, and the mail domains whose people may sign in.

pub use crate::resources::login::domain_proofs::is_domain;

use crate::http::{ApiError, Field, text};
use serde::Deserialize;
use serde_json::{Value, json};
use shared::outbound::Guard;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    issuer: String,
    client_id: String,
    /// Taken out and sealed before the rest is looked at.
    #[serde(default)]
    pub client_secret: Field<String>,
    token_endpoint_auth_method: Option<String>,
    scopes: Option<Vec<String>>,
    #[serde(default)]
    trust_email: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    domain: String,
    #[serde(default)]
    verified: bool,
    #[serde(default)]
    allow_subdomains: bool,
}

static METHODS: &[&str] = &["client_secret_basic", "client_secret_post", "none"];

impl Oidc {
    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    pub fn checked(self, guard: &Guard) -> Result<Value, ApiError> {
        let method = self.token_endpoint_auth_method.as_deref().unwrap_or("client_secret_basic");
        if !METHODS.contains(&method) {
            let message = format!("must be of {}", METHODS.join(", "));
            return Err(ApiError::field("oidc.token_endpoint_auth_method", message));
        }
        let is_scope = |scope: &String| (1..=255).contains(&scope.len()) && scope.bytes().all(|b| b.is_ascii_graphic());
        let scopes = self.scopes.unwrap_or_default();
        if scopes.len() > 100 || !scopes.iter().all(is_scope) {
            return Err(ApiError::field("oidc.scopes", "must be at most 100 names without spaces"));
        }
        Ok(json!({
            "issuer": issuer(self.issuer, guard)?,
            "client_id": text::name("oidc.client_id", self.client_id)?,
            "token_endpoint_auth_method": method,
            "scopes": scopes,
            "trust_email": self.trust_email.unwrap_or(false),
        }))
    }
}

/// https, or plain HTTP on a host that the operator trusts. It is kept with every session and person it vouches for.
fn issuer(issuer: String, guard: &Guard) -> Result<String, ApiError> {
    const MAX_ISSUER: usize = 1024;
    if issuer.len() > MAX_ISSUER || issuer.contains(['?', '#']) {
        return Err(ApiError::field("oidc.issuer", "must be a URL of at most 1024 bytes without query"));
    }
    if guard.custom_url(&issuer).is_ok() {
        return Ok(issuer);
    }
    https("oidc.issuer", issuer)
}

pub fn domains(domains: Vec<Domain>) -> Result<Value, ApiError> {
    let mut seen: Vec<String> = Vec::new();
    let mut checked = Vec::new();
    for (n, one) in domains.into_iter().enumerate() {
        let field = format!("allowed_domains[{n}].domain");
        let domain = one.domain.to_ascii_lowercase();
        if !is_domain(&domain) {
            return Err(ApiError::field(field, "must be a domain name"));
        }
        if seen.contains(&domain) || n >= 1000 {
            return Err(ApiError::field(field, "is listed twice, or the list is longer than 1000"));
        }
        seen.push(domain.clone());
        checked.push(json!({ "domain": domain, "verified": one.verified, "allow_subdomains": one.allow_subdomains }));
    }
    Ok(checked.into())
}

/// An address that secrets may be sent to or keys taken from.
pub fn https(field: &str, text: String) -> Result<String, ApiError> {
    let parsed = url::Url::parse(&text).ok().filter(|_| text.len() <= 2048);
    let is_plain = |url: &url::Url| {
        url.scheme() == "https" && url.host().is_some() && url.username().is_empty() && url.password().is_none()
    };
    if parsed.as_ref().is_some_and(is_plain) {
        return Ok(text);
    }
    Err(ApiError::field(field, "must be an https URL without user and password"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_that_could_not_work_is_refused() {
        let oidc = |more: Value| {
            let mut body = json!({ "issuer": "https://id.test", "client_id": "c" });
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            crate::http::json::parse::<Oidc>(body).and_then(|one| one.checked(&Guard::default())).is_ok()
        };
        for (more, accepted) in [
            (json!({}), true),
            (json!({ "scopes": ["groups"], "token_endpoint_auth_method": "none" }), true),
            (json!({ "issuer": "http://id.test" }), false),
            (json!({ "issuer": "https://id.test?tenant=1" }), false),
            (json!({ "issuer": format!("https://id.test/{}", "x".repeat(1024)) }), false),
            (json!({ "trust_email": true }), true),
            (json!({ "client_id": "" }), false),
            (json!({ "client_secret": "s3cret" }), true),
            (json!({ "token_endpoint_auth_method": "private_key_jwt" }), false),
            (json!({ "scopes": ["a b"] }), false),
        ] {
            assert_eq!(oidc(more.clone()), accepted, "{more}");
        }
    }

    #[test]
    fn domains_are_names_and_listed_once() {
        let list = |names: &[&str]| {
            let domain = |name: &&str| Domain { domain: (*name).into(), verified: false, allow_subdomains: false };
            domains(names.iter().map(domain).collect())
        };
        assert_eq!(list(&["Acme.test"]).unwrap()[0]["domain"], "acme.test");
        for names in [&["acme"][..], &["a b.test"], &["-a.test"], &["a..test"], &[""], &["a.test", "A.test"]] {
            assert!(list(names).is_err(), "{names:?}");
        }
    }
}
