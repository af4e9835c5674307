//! Further OIDC providers, each for people of certain mail domains. An issuer and a domain stand in one place only, so
//! that it is clear who is asked. A list replaces the one before; secrets stay with their issuers.

use super::client_secret::{self, ClientSecretChange};
use super::sign_in::{self, Oidc};
use crate::http::{ApiError, Field};
use serde::Deserialize;
use serde_json::Value;
use shared::outbound::Guard;

const MAX_PROVIDERS: usize = 20;
const MAX_DOMAINS: usize = 100;

#[derive(Deserialize)]
pub struct DomainProvider {
    domains: Vec<String>,
    #[serde(flatten)]
    oidc: Oidc,
}

/// What becomes of the secret of each provider, by its issuer.
pub type SecretChanges = Vec<(String, ClientSecretChange)>;

pub struct CheckedProviders {
    pub providers: Vec<Value>,
    pub secrets: SecretChanges,
}

/// `stored` is the present list.
pub fn checked(sent: Vec<DomainProvider>, stored: &Value, guard: &Guard) -> Result<CheckedProviders, ApiError> {
    if sent.len() > MAX_PROVIDERS {
        return Err(ApiError::field("oidc_providers", "must be at most 20"));
    }
    let mut all = CheckedProviders { providers: Vec::new(), secrets: Vec::new() };
    let mut seen: Vec<String> = Vec::new();
    for (n, one) in sent.into_iter().enumerate() {
        let at = format!("oidc_providers[{n}]");
        let domains = domains(one.domains, &mut seen).map_err(|error| error.under(&at))?;
        let issuer = one.oidc.issuer().to_owned();
        if all.secrets.iter().any(|(known, _)| *known == issuer) {
            return Err(ApiError::field(format!("{at}.issuer"), "is listed twice"));
        }
        let before = stored.as_array().into_iter().flatten().find(|before| before["issuer"] == issuer.as_str());
        let mut sent = Field::Value(one.oidc);
        let before = before.unwrap_or(&Value::Null);
        let secret = client_secret::taken(&mut sent, before)?;
        let Field::Value(oidc) = sent else { continue };
        let mut provider = oidc.checked(guard).map_err(|error| error.under(&at))?;
        provider["domains"] = domains.into();
        client_secret::show(Some(&mut provider), client_secret::masked(&secret, before));
        all.providers.push(provider);
        all.secrets.push((issuer, secret));
    }
    Ok(all)
}

/// What was sent, as the settings and the secrets take it.
pub fn split(sent: Field<CheckedProviders>) -> (Field<Vec<Value>>, Option<SecretChanges>) {
    match sent {
        Field::Absent => (Field::Absent, None),
        Field::Null => (Field::Null, Some(Vec::new())),
        Field::Value(checked) => (Field::Value(checked.providers), Some(checked.secrets)),
    }
}

/// The provider for everybody is not one of those for some.
pub fn refuse_shared_issuer(settings: &Value) -> Result<(), ApiError> {
    let general = &settings["oidc"]["issuer"];
    let mut listed = settings["oidc_providers"].as_array().into_iter().flatten();
    match !general.is_null() && listed.any(|one| one["issuer"] == *general) {
        true => Err(ApiError::field("oidc_providers", "must not list the issuer of `oidc`, which is for everybody")),
        false => Ok(()),
    }
}

fn domains(sent: Vec<String>, seen: &mut Vec<String>) -> Result<Vec<String>, ApiError> {
    if sent.is_empty() || sent.len() > MAX_DOMAINS {
        return Err(ApiError::field("domains", "must be 1 to 100 domain names"));
    }
    for (n, domain) in sent.iter().enumerate() {
        let domain = domain.to_ascii_lowercase();
        if !sign_in::is_domain(&domain) {
            return Err(ApiError::field(format!("domains[{n}]"), "must be a domain name"));
        }
        if seen.contains(&domain) {
            return Err(ApiError::field(format!("domains[{n}]"), "is listed twice"));
        }
        seen.push(domain);
    }
    Ok(sent.iter().map(|domain| domain.to_ascii_lowercase()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_issuer_and_a_domain_stand_in_one_place() {
        let one = |issuer: &str, domains: &[&str]| json!({ "issuer": issuer, "client_id": "c", "domains": domains });
        for (sent, refused) in [
            (json!([one("https://a.test", &["A.test"]), one("https://b.test", &["b.test"])]), None),
            (
                json!([one("https://a.test", &["a.test"]), one("https://a.test", &["b.test"])]),
                Some("oidc_providers[1].issuer"),
            ),
            (
                json!([one("https://a.test", &["a.test"]), one("https://b.test", &["A.test"])]),
                Some("oidc_providers[1].domains[0]"),
            ),
            (json!([one("https://a.test", &[])]), Some("oidc_providers[0].domains")),
            (json!([one("https://a.test", &["no domain"])]), Some("oidc_providers[0].domains[0]")),
            (json!([one("http://a.test", &["a.test"])]), Some("oidc_providers[0].oidc.issuer")),
        ] {
            let sent: Vec<DomainProvider> = serde_json::from_value(sent).unwrap();
            let checked = checked(sent, &Value::Null, &Guard::default());
            let named = checked.err().map(|error| error.to_string().split(": ").next().unwrap().to_owned());
            assert_eq!(named.as_deref(), refused);
        }
    }
}
