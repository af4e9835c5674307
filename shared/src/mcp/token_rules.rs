//! `jwt_validation` of an integration: whoever calls its servers brings a token of another issuer, and it is verified before
//! the server is asked anything. The rules are those of the `jwt` check of guardrails, written as integrations write them:
//! `introspection` is an address or `{endpoint, contentType, cacheMaxAge}`, and a claim's values may stand by themselves.

use crate::guardrails::{Check, Fault, FaultKind, compile};
use http::HeaderName;
use serde_json::{Map, Value, json};

/// What the check calls so, too.
const SAME: [&str; 8] =
    ["jwks", "jwksUri", "algorithms", "requiredClaims", "headerKey", "clockTolerance", "maxTokenAge", "cacheMaxAge"];
const OTHERS: [&str; 2] = ["introspection", "claimValues"];
const INTROSPECTION: [(&str, &str); 3] = [
    ("endpoint", "introspectEndpoint"),
    ("contentType", "introspectContentType"),
    ("cacheMaxAge", "introspectCacheMaxAge"),
];

pub struct TokenRules {
    pub check: Box<dyn Check>,
    /// Where the token stands.
    pub header: HeaderName,
    /// The issuer is asked about each token, and so is told it.
    pub asks_issuer: bool,
}

impl TokenRules {
    /// The fault's path begins at the rules.
    pub fn parse(rules: &Value) -> Result<Self, Fault> {
        let Some(rules) = rules.as_object() else {
            return Err(Fault::new(FaultKind::WrongType, "", "must be an object"));
        };
        let known = || SAME.into_iter().chain(OTHERS);
        if let Some(name) = rules.keys().find(|name| known().all(|known| known != name.as_str())) {
            return Err(Fault::unknown(name.clone(), "a rule for tokens", name, known()));
        }
        let check = compile("jwt", &Value::Object(parameters(rules)?))?;
        let header = rules.get("headerKey").and_then(Value::as_str).unwrap_or("authorization");
        let header = HeaderName::from_bytes(header.as_bytes());
        let header = header.map_err(|_| Fault::new(FaultKind::Unusable, "headerKey", "is not the name of a header"))?;
        let has = |name: &str| rules.get(name).is_some_and(|value| !value.is_null());
        Ok(Self { check, header, asks_issuer: !has("jwks") && !has("jwksUri") })
    }

    /// The addresses that rules name, with the places where they stand.
    pub fn addresses(rules: &Value) -> impl Iterator<Item = (&'static str, &str)> {
        let asked = &rules["introspection"];
        let places =
            [("jwksUri", &rules["jwksUri"]), ("introspection", asked), ("introspection.endpoint", &asked["endpoint"])];
        places.into_iter().filter_map(|(place, address)| Some((place, address.as_str()?)))
    }
}

/// As the check takes them.
fn parameters(rules: &Map<String, Value>) -> Result<Map<String, Value>, Fault> {
    let mut parameters = Map::new();
    for (name, value) in rules.iter().filter(|(_, value)| !value.is_null()) {
        match (name.as_str(), value) {
            ("introspection", Value::String(_)) => {
                parameters.insert("introspectEndpoint".into(), value.clone());
            }
            ("introspection", Value::Object(asked)) => {
                for (name, value) in asked {
                    let Some((_, own)) = INTROSPECTION.iter().find(|(known, _)| known == name) else {
                        let known = INTROSPECTION.map(|(known, _)| known);
                        return Err(Fault::unknown(name.clone(), "a field of it", name, known).under("introspection"));
                    };
                    parameters.insert((*own).to_owned(), value.clone());
                }
            }
            ("introspection", _) => {
                return Err(Fault::new(FaultKind::WrongType, "introspection", "must be an address or an object"));
            }
            ("claimValues", Value::Object(claims)) => {
                let claims = claims.iter().map(|(claim, rule)| {
                    (claim.clone(), if rule.is_object() { rule.clone() } else { json!({ "values": rule }) })
                });
                parameters.insert("claimValues".into(), Value::Object(claims.collect()));
            }
            _ => {
                parameters.insert(name.clone(), value.clone());
            }
        }
    }
    Ok(parameters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_those_of_the_check_under_the_names_of_integrations() {
        for (rules, expected) in [
            (
                json!({ "jwksUri": "https://a.test/keys", "algorithms": ["RS256"], "requiredClaims": ["sub"] }),
                Ok(false),
            ),
            (
                json!({ "jwks": { "keys": [] }, "claimValues": { "role": ["admin", "owner"], "team": "red" } }),
                Ok(false),
            ),
            (json!({ "introspection": "https://a.test/introspect", "jwks": null }), Ok(true)),
            (json!({ "introspection": { "endpoint": "https://a.test/x", "cacheMaxAge": 60 } }), Ok(true)),
            (json!({}), Err("jwks")),
            (json!(7), Err("")),
            (json!({ "jwksUrl": "https://a.test/keys" }), Err("jwksUrl")),
            (json!({ "jwks": { "keys": [] }, "algorithms": ["none"] }), Err("algorithms[0]")),
            (json!({ "jwks": { "keys": [] }, "headerKey": "a b" }), Err("headerKey")),
            (json!({ "introspection": { "url": "https://a.test/x" } }), Err("introspection.url")),
            (json!({ "introspection": 7 }), Err("introspection")),
        ] {
            let parsed = TokenRules::parse(&rules);
            let found = parsed.as_ref().map(|rules| rules.asks_issuer).map_err(|fault| fault.path.as_str());
            assert_eq!(found, expected, "{rules}");
        }
    }

    #[test]
    fn every_address_of_rules_is_known() {
        let rules = json!({ "jwksUri": "https://a", "introspection": { "endpoint": "https://b" } });
        let found: Vec<_> = TokenRules::addresses(&rules).collect();
        assert_eq!(found, [("jwksUri", "https://a"), ("introspection.endpoint", "https://b")]);
    }
}
