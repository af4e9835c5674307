//! The identity providers of an organisation: one for everybody (`oidc` of its auth settings) and others for people of
//! certain mail domains (`oidc_providers`). An issuer is one provider of an organisation.

use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Clone, Deserialize, PartialEq, Eq)]
pub struct OidcProvider {
    pub issuer: String,
    pub client_id: String,
    #[serde(default = "basic")]
    pub token_endpoint_auth_method: String,
    #[serde(default)]
    pub scopes: Vec<String>,
    /// Whether addresses count as verified although the provider does not say so of them.
    #[serde(default)]
    pub trust_email: bool,
    /// Whose people it is for; none for the one that is for everybody.
    #[serde(default)]
    pub domains: Vec<String>,
}

fn basic() -> String {
    "client_secret_basic".into()
}

/// Scopes of every login. Offline access is asked for because the interface promises it; no refresh token is kept.
static USUAL_SCOPES: &[&str] = &["openid", "profile", "email", "offline_access"];

impl OidcProvider {
    /// The provider for people of this domain, or for everybody.
    pub fn for_domain(auth_settings: &Value, domain: Option<&str>) -> Option<Self> {
        let named = domain.and_then(|domain| {
            let is_theirs = |one: &Self| one.domains.iter().any(|own| own == domain);
            Self::others(auth_settings).into_iter().find(is_theirs)
        });
        named.or_else(|| Self::general(auth_settings))
    }

    pub fn by_issuer(auth_settings: &Value, issuer: &str) -> Option<Self> {
        let mut all = Self::general(auth_settings).into_iter().chain(Self::others(auth_settings));
        all.find(|one| one.issuer == issuer)
    }

    fn general(auth_settings: &Value) -> Option<Self> {
        Self::deserialize(&auth_settings["oidc"]).ok()
    }

    fn others(auth_settings: &Value) -> Vec<Self> {
        Deserialize::deserialize(&auth_settings["oidc_providers"]).unwrap_or_default()
    }

    /// What to ask for: the usual, the operator's (`OIDC_CUSTOM_SCOPES`) and the provider's own, each once.
    pub fn asked_scopes(&self, custom: &[String]) -> String {
        let mut asked: Vec<&str> = Vec::new();
        let own = custom.iter().chain(&self.scopes).map(String::as_str);
        for scope in USUAL_SCOPES.iter().copied().chain(own) {
            if !scope.is_empty() && !asked.contains(&scope) {
                asked.push(scope);
            }
        }
        asked.join(" ")
    }

    /// What the sealed secrets of the organisation call this one's.
    pub fn secret_name(auth_settings: &Value, issuer: &str) -> String {
        match auth_settings["oidc"]["issuer"].as_str() == Some(issuer) {
            true => GENERAL_SECRET.into(),
            false => listed_secret(issuer),
        }
    }
}

/// The name of the secret of the provider that is for everybody.
pub const GENERAL_SECRET: &str = "oidc.client_secret";
/// What the names of the others' secrets begin with.
pub const LISTED_SECRETS: &str = "oidc_providers.";

pub fn listed_secret(issuer: &str) -> String {
    format!("{LISTED_SECRETS}{issuer}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn people_of_a_named_domain_have_their_own_provider() {
        let settings = json!({
            "oidc": { "issuer": "https://all.test", "client_id": "c" },
            "oidc_providers": [{ "issuer": "https://eu.test", "client_id": "d", "domains": ["eu.acme.test"] }],
        });
        let issuer = |domain| OidcProvider::for_domain(&settings, domain).map(|one| one.issuer);
        assert_eq!(issuer(Some("eu.acme.test")).as_deref(), Some("https://eu.test"));
        assert_eq!(issuer(Some("acme.test")).as_deref(), Some("https://all.test"));
        assert_eq!(issuer(None).as_deref(), Some("https://all.test"));
        assert!(OidcProvider::by_issuer(&settings, "https://eu.test").is_some());
        assert_eq!(OidcProvider::by_issuer(&settings, "https://eu.test/"), None);
        assert_eq!(OidcProvider::for_domain(&json!({}), None), None);
    }

    #[test]
    fn scopes_are_asked_for_once() {
        let provider = OidcProvider::for_domain(
            &json!({ "oidc": { "issuer": "https://all.test", "client_id": "c", "scopes": ["groups", "email"] } }),
            None,
        );
        let asked = provider.unwrap().asked_scopes(&["roles".into(), "groups".into(), String::new()]);
        assert_eq!(asked, "openid profile email offline_access roles groups");
    }
}
