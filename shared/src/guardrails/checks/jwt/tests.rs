//! Tokens by keys that are known, fetched or asked about: verdicts, claims as headers, and ages of what is kept.

use crate::guardrails::remote::{Answers, Question, RemoteAnswer, RemoteContext};
use crate::guardrails::subject::testing::{said, subject};
use crate::guardrails::{Subject, compile};
use crate::identity::jwt::WebKeySet;
use crate::identity::jwt::testing::{signer, signer_by, stranger};
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
fn an_issuer_is_asked_about_a_token_in_the_form_it_takes_and_its_word_counts() {
    const NOW: i64 = 1_700_000_000;
    let at = json!({ "introspectEndpoint": "https://issuer.test/introspect", "requiredClaims": ["sub"],
        "headerPayloadMatch": ["x-team"] });
    let check = compile("jwt", &at).unwrap();
    let remote = check.remote().unwrap();
    let headers = |token: &str, team: &str| {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        headers.insert("x-team", team.parse().unwrap());
        headers
    };
    let request = json!({});
    let good = json!({ "active": true, "sub": "u", "x-team": "red", "exp": NOW + 60 });
    let with = |name: &str, value: serde_json::Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    for (team, status, says, expected) in [
        ("red", 200, good.clone(), "pass"),
        ("blue", 200, good.clone(), "fail"),
        ("red", 200, with("active", json!(false)), "fail"),
        ("red", 200, with("active", json!("yes")), "error"),
        ("red", 200, with("exp", json!(NOW - 60)), "fail"),
        ("7", 200, with("x-team", json!(7)), "pass"),
        ("red", 200, with("x-team", json!(null)), "fail"),
        ("red", 200, json!({ "active": true, "x-team": "red" }), "fail"),
        ("red", 200, json!([]), "error"),
        ("red", 500, good.clone(), "error"),
    ] {
        let headers = headers("opaque+token", team);
        let subject = Subject { headers: &headers, ..subject(&request, None) };
        let Ok(Question::Calls(calls)) = remote.ask(&subject, &RemoteContext::default()) else { panic!("a call") };
        assert_eq!((calls.len(), &calls[0].body[..]), (1, &b"token=opaque%2Btoken"[..]));
        let answers = Answers::Calls(vec![RemoteAnswer::new(status, says.to_string())]);
        let verdict = remote.read(&subject, &answers);
        assert_eq!(said(&verdict), expected, "{team} {status} {says}");
        assert!(!verdict.to_json().to_string().contains("opaque"), "nothing of a token is repeated");
    }
    let nobody = HeaderMap::new();
    let subject = Subject { headers: &nobody, ..subject(&request, None) };
    assert!(remote.ask(&subject, &RemoteContext::default()).is_err_and(|verdict| said(&verdict) == "fail"));
}

#[test]
fn keys_and_answers_are_kept_for_as_long_as_the_check_says_and_never_longer_than_a_day() {
    let mut headers = HeaderMap::new();
    let token = signer().token(&json!({ "iat": 1, "exp": 2 }));
    headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
    let request = json!({});
    let subject = Subject { headers: &headers, ..subject(&request, None) };
    let issuer = json!({ "introspectEndpoint": "https://issuer.test/introspect" });
    let keys = json!({ "jwksUri": "https://issuer.test/keys" });
    for (address, more, expected) in [
        (&keys, json!({}), Some(86_400)),
        (&keys, json!({ "cacheMaxAge": 60 }), Some(60)),
        (&keys, json!({ "cacheMaxAge": 864_000 }), Some(86_400)),
        (&issuer, json!({}), None),
        (&issuer, json!({ "introspectCacheMaxAge": 0 }), None),
        (&issuer, json!({ "introspectCacheMaxAge": 300 }), Some(300)),
        (&issuer, json!({ "introspectCacheMaxAge": 864_000 }), Some(86_400)),
    ] {
        let mut parameters = address.clone();
        parameters.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let check = compile("jwt", &parameters).unwrap();
        let cached_for = match check.remote().unwrap().ask(&subject, &RemoteContext::default()) {
            Ok(Question::KeySet { cached_for, .. } | Question::CachedCall { cached_for, .. }) => {
                Some(cached_for.as_secs())
            }
            Ok(Question::Calls(calls)) if calls.len() == 1 => None,
            _ => panic!("{parameters}"),
        };
        assert_eq!(cached_for, expected, "{parameters}");
    }
}

#[test]
fn what_a_valid_token_claims_becomes_headers_and_of_another_nothing_does() {
    const NOW: i64 = 1_700_000_000;
    let good = json!({ "iat": NOW - 60, "exp": NOW + 60, "sub": "ada" });
    let parameters = json!({ "jwks": { "keys": [signer().jwk()] }, "extractClaims": ["sub", "team"] });
    let check = compile("jwt", &parameters).unwrap();
    for (token, expected) in [
        (signer().token(&good), vec![("x-jwt-sub", Some("ada")), ("x-jwt-team", None)]),
        (stranger().token(&good), vec![]),
    ] {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        let request = json!({});
        let verdict = check.run(&Subject { headers: &headers, ..subject(&request, None) });
        let told: Vec<_> = verdict
            .headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_ref().and_then(|value| value.to_str().ok())))
            .collect();
        assert_eq!(told, expected);
        assert!(!verdict.to_json().to_string().contains("ada"), "claims are not told");
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
fn only_the_algorithms_that_are_listed_hold() {
    const NOW: i64 = 1_700_000_000;
    let claims = json!({ "iat": NOW - 60, "exp": NOW + 60 });
    for (listed, signed, passes) in [
        (json!(null), "RS256", true),
        (json!([]), "RS256", true),
        (json!(null), "ES256", false),
        (json!(["ES256"]), "ES256", true),
        (json!(["ES256"]), "RS256", false),
        (json!(["RS256", "PS512", "EdDSA"]), "PS512", true),
        (json!(["RS256", "PS512", "EdDSA"]), "EdDSA", true),
        (json!(["RS256", "PS512", "EdDSA"]), "RS512", false),
    ] {
        let mut parameters = json!({ "jwks": { "keys": [signer_by(signed).jwk()] } });
        if !listed.is_null() {
            parameters["algorithms"] = listed.clone();
        }
        let token = signer_by(signed).signed(&json!({ "alg": signed, "kid": "k1" }), &claims);
        let mut headers = HeaderMap::new();
        headers.insert("authorization", format!("Bearer {token}").parse().unwrap());
        let request = json!({});
        let subject = Subject { headers: &headers, ..subject(&request, None) };
        let verdict = compile("jwt", &parameters).unwrap().run(&subject);
        assert_eq!(said(&verdict) == "pass", passes, "{listed} {signed}: {verdict:?}");
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
            Ok(Question::KeySet { url, kid, cached_for }) => {
                assert_eq!(cached_for.as_secs(), 86_400);
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
