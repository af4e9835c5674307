//! What a provider says of itself: where to send people, codes and logouts, and where its keys are. It must say that it
//! is who was asked, or one provider could speak for another.

use super::OidcError;
use serde::Deserialize;
use shared::outbound::Guard;

#[derive(Debug, Clone, Deserialize)]
pub struct Metadata {
    pub issuer: String,
    pub authorization_endpoint: String,
    pub token_endpoint: String,
    pub jwks_uri: String,
    pub userinfo_endpoint: Option<String>,
    pub end_session_endpoint: Option<String>,
    /// It says who it is whenever it sends somebody back (RFC 9207), so an answer that does not is none of it.
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

pub const MAX_DOCUMENT: usize = 256 << 10;
const MAX_URL: usize = 2048;

/// Where the metadata of an issuer are.
pub fn address(issuer: &str) -> String {
    format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'))
}

impl Metadata {
    pub fn parse(body: &[u8], issuer: &str, guard: &Guard) -> Result<Self, OidcError> {
        let metadata: Self =
            serde_json::from_slice(body).map_err(|_| OidcError::Metadata("it is not JSON, or lacks an endpoint"))?;
        if metadata.issuer != issuer {
            return Err(OidcError::Metadata("it is of another issuer than the settings name"));
        }
        let optional = [&metadata.userinfo_endpoint, &metadata.end_session_endpoint];
        let needed = [&metadata.authorization_endpoint, &metadata.token_endpoint, &metadata.jwks_uri];
        let are_addresses = needed.into_iter().chain(optional.into_iter().flatten()).all(|url| is_address(url, guard));
        match are_addresses {
            true => Ok(metadata),
            false => Err(OidcError::Metadata("an endpoint is no https URL")),
        }
    }
}

/// https, or plain HTTP on a host that the operator trusts. People are sent there, codes and secrets too.
fn is_address(url: &str, guard: &Guard) -> bool {
    let parsed = url::Url::parse(url).ok().filter(|_| url.len() <= MAX_URL);
    let is_plain = |url: &url::Url| {
        url.host().is_some() && url.username().is_empty() && url.password().is_none() && url.fragment().is_none()
    };
    parsed.is_some_and(|one| is_plain(&one) && (one.scheme() == "https" || guard.custom_url(url).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn metadata_of_another_issuer_or_with_odd_endpoints_are_refused() {
        let usual = json!({
            "issuer": "https://id.test",
            "authorization_endpoint": "https://id.test/auth",
            "token_endpoint": "https://id.test/token",
            "jwks_uri": "https://id.test/keys",
        });
        let accepted = |member: &str, value: &str| {
            let mut metadata = usual.clone();
            metadata[member] = value.into();
            Metadata::parse(metadata.to_string().as_bytes(), "https://id.test", &Guard::default()).is_ok()
        };
        for (member, value, expected) in [
            ("x", "y", true),
            ("issuer", "https://id.test/", false),
            ("issuer", "https://evil.test", false),
            ("authorization_endpoint", "javascript:alert(1)", false),
            ("authorization_endpoint", "http://id.test/auth", false),
            ("token_endpoint", "https://user:pw@id.test/token", false),
            ("jwks_uri", "file:///etc/passwd", false),
            ("end_session_endpoint", "//evil.test", false),
        ] {
            assert_eq!(accepted(member, value), expected, "{member}: {value}");
        }
        assert_eq!(address("https://id.test/t/"), "https://id.test/t/.well-known/openid-configuration");
    }
}
