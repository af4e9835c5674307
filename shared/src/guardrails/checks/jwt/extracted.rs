//! Claims of a token as headers, for the checks that come after the one that verified it: `x-jwt-sub` in place of `sub`.
//!
//! What the token does not claim is taken away, so that nobody can send such a header in its place.

use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::parameters::Parameters;
use crate::guardrails::verdict::HeaderChange;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value};

const MAX_CLAIMS: usize = 50;
/// Longer claims are left out.
const MAX_CLAIM_BYTES: usize = 8 << 10;
const PREFIX: &str = "x-jwt-";

/// Claims and the headers that they become.
#[derive(Default)]
pub struct ExtractedClaims(Vec<(String, HeaderName)>);

impl ExtractedClaims {
    pub fn read(parameters: &Parameters<'_>) -> Result<Self, Fault> {
        let claims = parameters.texts("extractClaims");
        if claims.len() > MAX_CLAIMS {
            let why = format!("must not have more than {MAX_CLAIMS} claims");
            return Err(Fault::new(FaultKind::TooMany, "extractClaims", why));
        }
        let prefix = parameters.text_or("claimPrefix", PREFIX);
        let mut extracted = Vec::with_capacity(claims.len());
        for claim in claims {
            let name = format!("{prefix}{claim}").replace('_', "-");
            let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
                let why = "with `claimPrefix` in front of it, a claim is no name of a header";
                return Err(Fault::new(FaultKind::Unusable, "extractClaims", why));
            };
            extracted.push((claim, name));
        }
        Ok(Self(extracted))
    }

    /// What the headers are from here on.
    pub fn headers(&self, claims: &Map<String, Value>) -> Vec<HeaderChange> {
        let value = |claim: &str| {
            let text = written(claims.get(claim)?)?;
            HeaderValue::from_str(&text).ok().filter(|value| value.len() <= MAX_CLAIM_BYTES)
        };
        self.0.iter().map(|(claim, name)| (name.clone(), value(claim))).collect()
    }
}

/// Lists with commas. What has fields is no header.
fn written(claim: &Value) -> Option<String> {
    match claim {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(claim.to_string()),
        Value::Array(items) => Some(items.iter().filter_map(written).collect::<Vec<_>>().join(",")),
        Value::Null | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn headers(parameters: &Value, claims: &Value) -> Vec<(String, Option<String>)> {
        let extracted = ExtractedClaims::read(&Parameters::new(parameters)).unwrap();
        let text = |value: HeaderValue| value.to_str().unwrap().to_owned();
        let headers = extracted.headers(claims.as_object().unwrap()).into_iter();
        headers.map(|(name, value)| (name.to_string(), value.map(text))).collect()
    }

    #[test]
    fn claims_become_headers_and_what_is_not_claimed_takes_them_away() {
        let claims = json!({
            "sub": "ada", "org_id": 7, "admin": true, "groups": ["a", 2, { "b": 1 }], "address": { "city": "x" },
            "lines": "a\nb", "long": "x".repeat(MAX_CLAIM_BYTES + 1), "none": null,
        });
        let told = |name: &str, value: Option<&str>| vec![(name.to_owned(), value.map(str::to_owned))];
        for (parameters, expected) in [
            (json!({}), vec![]),
            (json!({ "extractClaims": ["sub"] }), told("x-jwt-sub", Some("ada"))),
            (json!({ "extractClaims": "org_id" }), told("x-jwt-org-id", Some("7"))),
            (json!({ "extractClaims": ["admin"], "claimPrefix": "X_User_" }), told("x-user-admin", Some("true"))),
            (json!({ "extractClaims": ["groups"] }), told("x-jwt-groups", Some("a,2"))),
            (json!({ "extractClaims": ["address"] }), told("x-jwt-address", None)),
            (json!({ "extractClaims": ["lines"] }), told("x-jwt-lines", None)),
            (json!({ "extractClaims": ["long"] }), told("x-jwt-long", None)),
            (json!({ "extractClaims": ["none"] }), told("x-jwt-none", None)),
            (json!({ "extractClaims": ["email"] }), told("x-jwt-email", None)),
        ] {
            assert_eq!(headers(&parameters, &claims), expected, "{parameters}");
        }
    }

    #[test]
    fn names_that_are_no_headers_and_too_many_of_them_are_refused() {
        let many: Vec<String> = (0..=MAX_CLAIMS).map(|n| format!("c{n}")).collect();
        for (parameters, kind) in [
            (json!({ "extractClaims": ["a b"] }), FaultKind::Unusable),
            (json!({ "extractClaims": ["https://a.test/role"] }), FaultKind::Unusable),
            (json!({ "extractClaims": ["a"], "claimPrefix": "x:" }), FaultKind::Unusable),
            (json!({ "extractClaims": [""], "claimPrefix": "" }), FaultKind::Unusable),
            (json!({ "extractClaims": many }), FaultKind::TooMany),
        ] {
            let refused = ExtractedClaims::read(&Parameters::new(&parameters)).map(drop).map_err(|fault| fault.kind);
            assert_eq!(refused, Err(kind), "{parameters}");
        }
    }
}
