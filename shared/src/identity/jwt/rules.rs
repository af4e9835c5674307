//! What an organisation demands of its tokens beyond a good signature. One issuer often signs for several services
//! with the same keys; who names its issuer and audience here accepts the tokens that are meant for this one alone.

use super::rejection::Rejection;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TokenRules {
    /// What `iss` must be.
    pub issuer: Option<String>,
    /// `aud` must name one of these; empty when it is not looked at.
    pub audiences: Vec<String>,
}

impl TokenRules {
    /// From an organisation's auth settings.
    pub fn from_settings(issuer: Option<&str>, audiences: Option<&Value>) -> Self {
        let audiences = audiences.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
        Self { issuer: issuer.map(str::to_owned), audiences: audiences.map(str::to_owned).collect() }
    }

    pub fn check(&self, claims: &Map<String, Value>) -> Result<(), Rejection> {
        if let Some(issuer) = &self.issuer {
            let named = claims.get("iss").and_then(Value::as_str);
            if named != Some(issuer) {
                return Err(Rejection::Issuer(named.unwrap_or_default().to_owned()));
            }
        }
        let is_wanted = |value: &Value| value.as_str().is_some_and(|one| self.audiences.iter().any(|own| own == one));
        let is_meant = match claims.get("aud") {
            _ if self.audiences.is_empty() => true,
            Some(Value::Array(several)) => several.iter().any(is_wanted),
            Some(one) => is_wanted(one),
            None => false,
        };
        if is_meant { Ok(()) } else { Err(Rejection::Audience) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn issuer_and_audience_are_checked_where_they_are_set() {
        let none = TokenRules::default();
        let both = TokenRules::from_settings(Some("https://id.test"), Some(&json!(["gateway", "portal"])));
        let issuer = TokenRules::from_settings(Some("https://id.test"), None);
        let wrong = |text: &str| Err(Rejection::Issuer(text.into()));
        for (rules, claims, expected) in [
            (&none, json!({}), Ok(())),
            (&none, json!({ "iss": "x", "aud": "y" }), Ok(())),
            (&issuer, json!({ "iss": "https://id.test", "aud": "y" }), Ok(())),
            (&issuer, json!({ "iss": "https://id.test/" }), wrong("https://id.test/")),
            (&issuer, json!({ "iss": ["https://id.test"] }), wrong("")),
            (&issuer, json!({}), wrong("")),
            (&both, json!({ "iss": "https://id.test", "aud": "portal" }), Ok(())),
            (&both, json!({ "iss": "https://id.test", "aud": ["other", "gateway"] }), Ok(())),
            (&both, json!({ "iss": "https://id.test", "aud": ["other"] }), Err(Rejection::Audience)),
            (&both, json!({ "iss": "https://id.test", "aud": "gateway portal" }), Err(Rejection::Audience)),
            (&both, json!({ "iss": "https://id.test", "aud": [] }), Err(Rejection::Audience)),
            (&both, json!({ "iss": "https://id.test" }), Err(Rejection::Audience)),
            (&both, json!({ "aud": "gateway" }), wrong("")),
        ] {
            assert_eq!(rules.check(claims.as_object().unwrap()), expected, "{claims}");
        }
    }
}
