//! `jwt`: the caller has a token that one of these keys signed, still valid, with the claims that are asked for. The keys are
//! given with the check (`jwks`), or stand behind an address (`jwksUri`): then whoever has a dialer fetches and keeps them. Why
//! a token is refused is told in general words, and nothing of it is repeated.

use super::listed::Expected;
use crate::guardrails::check::Check;
use crate::guardrails::fault::{Fault, FaultKind};
use crate::guardrails::parameters::Parameters;
use crate::guardrails::remote::{Answers, Question, RemoteAnswer, RemoteCheck, RemoteContext};
use crate::guardrails::subject::Subject;
use crate::guardrails::verdict::Verdict;
use crate::identity::jwt::{Unverified, WebKeySet};
use http::HeaderName;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// A fetch of keys has its own, shorter limit.
const TIMEOUT: Duration = Duration::from_secs(10);

enum Keys {
    Given(WebKeySet),
    Behind(String),
}

struct Jwt {
    keys: Keys,
    header: HeaderName,
    tolerance: i64,
    longest_age: Option<i64>,
    required: Vec<String>,
    values: Vec<(String, Expected)>,
}

pub fn compile(parameters: &Parameters<'_>) -> Result<Box<dyn Check>, Fault> {
    let unusable = |path: &str, why: String| Fault::new(FaultKind::Unusable, path, why);
    let given = match parameters.get("jwks") {
        Some(Value::String(text)) => Some(WebKeySet::parse(text.as_bytes())),
        Some(set) => Some(WebKeySet::from_json(set)),
        None => None,
    };
    let given = given.transpose().map_err(|why| unusable("jwks", format!("is not a key set: {why}")))?;
    let keys = match (given, parameters.get("jwksUri")) {
        (Some(set), _) => Keys::Given(set),
        (None, Some(_)) => Keys::Behind(super::webhook::address(parameters, "jwksUri")?),
        (None, None) => {
            let why = "is required, the key set itself, or `jwksUri`, its address";
            return Err(Fault::new(FaultKind::Missing, "jwks", why));
        }
    };
    let name = parameters.text_or("headerKey", "Authorization");
    let header = HeaderName::from_bytes(name.as_bytes());
    let header = header.map_err(|_| unusable("headerKey", "is not the name of a header".into()))?;
    let age = parameters.text_or("maxTokenAge", "1d");
    let longest_age = seconds(&age).ok_or_else(|| unusable("maxTokenAge", "must be as 30s, 15m, 12h or 1d".into()))?;
    let mut values = Vec::new();
    for (claim, rule) in parameters.get("claimValues").and_then(Value::as_object).into_iter().flatten() {
        let path = format!("claimValues.{claim}");
        let Some(wanted) = rule.get("values") else {
            return Err(Fault::new(FaultKind::Missing, format!("{path}.values"), "is required"));
        };
        let match_type = rule.get("matchType").and_then(Value::as_str).unwrap_or("exact");
        values.push((claim.clone(), Expected::new(wanted, match_type, &path)?));
    }
    Ok(Box::new(Jwt {
        keys,
        header,
        tolerance: parameters.count("clockTolerance", 5) as i64,
        longest_age: Some(longest_age),
        required: parameters.texts("requiredClaims"),
        values,
    }))
}

impl Check for Jwt {
    fn run(&self, subject: &Subject<'_>) -> Verdict {
        match &self.keys {
            Keys::Given(keys) => self.verify(subject, keys),
            Keys::Behind(_) => super::elsewhere::not_asked(),
        }
    }

    fn remote(&self) -> Option<&dyn RemoteCheck> {
        matches!(self.keys, Keys::Behind(_)).then_some(self)
    }
}

impl RemoteCheck for Jwt {
    fn timeout(&self) -> Duration {
        TIMEOUT
    }

    /// A token that cannot be one makes nobody fetch keys.
    fn ask(&self, subject: &Subject<'_>, _: &RemoteContext<'_>) -> Result<Question, Box<Verdict>> {
        let Keys::Behind(url) = &self.keys else { return Err(self.run(subject).into()) };
        let kid = self.token(subject)?.kid().to_owned();
        Ok(Question::KeySet { url: url.clone(), kid })
    }

    fn read(&self, subject: &Subject<'_>, answers: &Answers) -> Verdict {
        match answers {
            Answers::KeySet(keys) => self.verify(subject, keys),
            Answers::Calls(_) => RemoteAnswer::senseless("it is no key set"),
        }
    }
}

impl Jwt {
    fn token<'t>(&self, subject: &Subject<'t>) -> Result<Unverified<'t>, Box<Verdict>> {
        let Some(sent) = subject.headers.get(&self.header) else {
            return Err(Self::refuse("the request has no token in this header").into());
        };
        let sent = sent.as_bytes();
        let token = match sent.get(..7) {
            Some(scheme) if scheme.eq_ignore_ascii_case(b"bearer ") => &sent[7..],
            _ => sent,
        };
        Unverified::parse(token)
            .map_err(|rejection| Self::refuse(&format!("the token was refused ({})", rejection.kind())).into())
    }

    fn verify(&self, subject: &Subject<'_>, keys: &WebKeySet) -> Verdict {
        let token = match self.token(subject) {
            Ok(token) => token,
            Err(refused) => return *refused,
        };
        let claims = match token.claims_signed_by(keys) {
            Ok(claims) => claims,
            Err(rejection) => return Self::refuse(&format!("the token was refused ({})", rejection.kind())),
        };
        match self.judge(&claims, subject.now) {
            Ok(()) => Verdict::new(true, "The token is valid.", json!({ "claims": claims.keys().collect::<Vec<_>>() })),
            Err(why) => Self::refuse(&why),
        }
    }

    fn refuse(why: &str) -> Verdict {
        Verdict::new(false, format!("Not admitted: {why}."), Value::Null)
    }

    fn judge(&self, claims: &Map<String, Value>, now: i64) -> Result<(), String> {
        let time = |name: &str| claims.get(name).and_then(Value::as_f64).map(|time| time as i64);
        if time("exp").is_some_and(|ends| ends.saturating_add(self.tolerance) < now) {
            return Err("the token has expired".into());
        }
        if time("nbf").is_some_and(|begins| begins.saturating_sub(self.tolerance) > now) {
            return Err("the token is not valid yet".into());
        }
        match (self.longest_age, time("iat")) {
            (Some(_), None) => return Err("the token does not say when it was issued".into()),
            (Some(age), Some(issued)) if issued.saturating_add(age).saturating_add(self.tolerance) < now => {
                return Err("the token is too old".into());
            }
            (_, Some(issued)) if issued.saturating_sub(self.tolerance) > now => {
                return Err("the token was issued later than now".into());
            }
            _ => {}
        }
        if let Some(missing) = self.required.iter().find(|name| !claims.contains_key(name.as_str())) {
            return Err(format!("the token lacks the claim {missing}"));
        }
        for (name, expected) in &self.values {
            let fits = claims.get(name).map_or(Ok(false), |value| expected.fits(value));
            if !fits.map_err(|costly| costly.to_string())? {
                return Err(format!("the claim {name} is not as required"));
            }
        }
        Ok(())
    }
}

/// `30s`, `15m`, `12h`, `1d`, or seconds.
fn seconds(text: &str) -> Option<i64> {
    let (number, unit) = match text.find(|letter: char| !letter.is_ascii_digit()) {
        Some(at) => text.split_at(at),
        None => (text, "s"),
    };
    let unit = match unit.trim() {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        "w" => 604_800,
        _ => return None,
    };
    number.parse::<i64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use crate::guardrails::remote::{Answers, Question, RemoteContext};
    use crate::guardrails::subject::testing::{said, subject};
    use crate::guardrails::{Subject, compile};
    use crate::identity::jwt::WebKeySet;
    use crate::identity::jwt::testing::{signer, stranger};
    use http::HeaderMap;
    use serde_json::json;
    use std::sync::Arc;

    #[test]
    fn a_token_is_admitted_by_its_signature_its_times_and_its_claims() {
        const NOW: i64 = 1_700_000_000;
        let good = json!({ "iat": NOW - 60, "exp": NOW + 60, "role": "admin", "groups": ["a", "b"] });
        let with = |name: &str, value: serde_json::Value| {
            let mut claims = good.clone();
            claims[name] = value;
            claims
        };
        let plain = json!({});
        for (parameters, token, expected) in [
            (&plain, signer().token(&good), "pass"),
            (&plain, stranger().token(&good), "fail"),
            (&plain, "rubbish".into(), "fail"),
            (&plain, String::new(), "fail"),
            (&plain, signer().signed(&json!({ "alg": "none", "kid": "k1" }), &good), "fail"),
            (&plain, signer().token(&with("exp", json!(NOW - 6))), "fail"),
            (&plain, signer().token(&with("exp", json!(NOW - 4))), "pass"),
            (&plain, signer().token(&with("nbf", json!(NOW + 60))), "fail"),
            (&plain, signer().token(&with("iat", json!(NOW - 86_400 - 6))), "fail"),
            (&plain, signer().token(&with("iat", json!(NOW + 60))), "fail"),
            (&plain, signer().token(&with("iat", json!(null))), "fail"),
            (&json!({ "maxTokenAge": "30s" }), signer().token(&good), "fail"),
            (&json!({ "requiredClaims": ["role"] }), signer().token(&good), "pass"),
            (&json!({ "requiredClaims": ["sub"] }), signer().token(&good), "fail"),
            (&json!({ "claimValues": { "role": { "values": ["admin"] } } }), signer().token(&good), "pass"),
            (&json!({ "claimValues": { "role": { "values": "user" } } }), signer().token(&good), "fail"),
            (
                &json!({ "claimValues": { "groups": { "values": ["b", "c"], "matchType": "contains" } } }),
                signer().token(&good),
                "pass",
            ),
            (
                &json!({ "claimValues": { "groups": { "values": ["b", "c"], "matchType": "containsAll" } } }),
                signer().token(&good),
                "fail",
            ),
        ] {
            let mut parameters = parameters.clone();
            parameters["jwks"] = json!({ "keys": [signer().jwk()] });
            let mut headers = HeaderMap::new();
            if !token.is_empty() {
                headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
            }
            let request = json!({});
            let verdict =
                compile("jwt", &parameters).unwrap().run(&Subject { headers: &headers, ..subject(&request, None) });
            assert_eq!(said(&verdict), expected, "{parameters} {verdict:?}");
            assert!(!verdict.to_json().to_string().contains("eyJ"), "nothing of a token is repeated");
        }
    }

    #[test]
    fn keys_that_are_not_there_and_ages_that_are_none_are_refused() {
        let jwks = json!({ "keys": [] });
        for parameters in [
            json!({}),
            json!({ "jwksUri": "a.b/keys" }),
            json!({ "jwksUri": "https:///keys" }),
            json!({ "jwks": "{" }),
            json!({ "jwks": {} }),
            json!({ "jwks": jwks, "maxTokenAge": "soon" }),
            json!({ "jwks": jwks, "headerKey": "a b" }),
            json!({ "jwks": jwks, "algorithms": ["HS256"] }),
            json!({ "jwks": jwks, "claimValues": { "a": {} } }),
        ] {
            assert!(compile("jwt", &parameters).is_err(), "{parameters}");
        }
    }

    #[test]
    fn keys_behind_an_address_are_asked_for_by_id_and_only_for_what_can_be_a_token() {
        const NOW: i64 = 1_700_000_000;
        let good = json!({ "iat": NOW - 60, "exp": NOW + 60 });
        let check = compile("jwt", &json!({ "jwksUri": "https://issuer.test/keys" })).unwrap();
        let remote = check.remote().unwrap();
        let keys = Arc::new(WebKeySet::from_json(&json!({ "keys": [signer().jwk()] })).unwrap());
        for (token, asks, expected) in [
            (Some(signer().token(&good)), true, "pass"),
            (Some(stranger().token(&good)), true, "fail"),
            (Some(signer().token(&json!({ "iat": NOW - 60, "exp": NOW - 60 }))), true, "fail"),
            (Some(signer().signed(&json!({ "alg": "RS256", "kid": "other" }), &good)), true, "fail"),
            (Some(signer().signed(&json!({ "alg": "RS256" }), &good)), false, "fail"),
            (Some(signer().signed(&json!({ "alg": "none", "kid": "k1" }), &good)), false, "fail"),
            (Some(signer().signed(&json!({ "alg": "HS256", "kid": "k1" }), &good)), false, "fail"),
            (Some("rubbish".into()), false, "fail"),
            (Some("a.b.c".into()), false, "fail"),
            (Some("x".repeat(20_000)), false, "fail"),
            (Some(String::new()), false, "fail"),
            (None, false, "fail"),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(token) = &token {
                headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
            }
            let request = json!({});
            let subject = Subject { headers: &headers, ..subject(&request, None) };
            let verdict = match remote.ask(&subject, &RemoteContext::default()) {
                Ok(Question::KeySet { url, kid }) => {
                    assert!(asks && url == "https://issuer.test/keys" && !kid.is_empty(), "{token:?}");
                    remote.read(&subject, &Answers::KeySet(keys.clone()))
                }
                Ok(_) => panic!("it makes no calls of its own"),
                Err(verdict) => {
                    assert!(!asks, "{token:?}");
                    *verdict
                }
            };
            assert_eq!(said(&verdict), expected, "{token:?}");
        }
        let both = json!({ "jwksUri": "https://issuer.test/keys", "jwks": { "keys": [signer().jwk()] } });
        assert!(compile("jwt", &both).unwrap().remote().is_none(), "keys that are given need no call");
    }
}
