//! Tokens good and bad: every rule by its message.

use super::*;
use crate::identity::jwt::testing::{encoded, signer, signer_by, stranger};
use chrono::SubsecRound as _;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use serde_json::json;

const ORGANISATION: &str = "6b1f5e0e-9a3f-4a55-8f0e-7a1f2f1f0a11";

#[derive(clap::Parser)]
struct Program {
    #[command(flatten)]
    jwt: settings::Jwt,
}

fn settings(arguments: &[&str]) -> settings::Jwt {
    let arguments = std::iter::once("test").chain(arguments.iter().copied());
    <Program as clap::Parser>::parse_from(arguments).jwt
}

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

fn claims() -> Value {
    json!({
        "gateway_oid": ORGANISATION, "gateway_workspace": "ws-main", "scope": "completions.write",
        "exp": now().timestamp() + 300, "sub": "somebody",
    })
}

/// The usual claims with these put over them; null removes.
fn with(changes: Value) -> Value {
    let mut claims = claims();
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

fn read(token: &str, settings: &settings::Jwt) -> Result<VerifiedToken, Rejection> {
    let keys = WebKeySet::from_json(&json!({ "keys": [signer().jwk()] })).unwrap();
    let token = Unverified::parse(token.as_bytes())?;
    token.organisation_id(settings)?;
    token.verify(&keys, &TokenRules::default(), settings, now())
}

fn refusal(token: &str) -> String {
    read(token, &settings(&[])).unwrap_err().to_string().replace("JWT rejected: ", "")
}

#[test]
fn a_good_token_says_who_where_and_what() {
    let token = read(&signer().token(&claims()), &settings(&[])).unwrap();
    assert_eq!(token.organisation_id.to_string(), ORGANISATION);
    assert_eq!((token.workspace.as_str(), &token.scopes[..]), ("ws-main", &["completions.write".to_owned()][..]));
    assert_eq!((token.person.as_deref(), token.expires_at), (Some("somebody"), now() + chrono::TimeDelta::minutes(5)));
    let again = read(&signer().token(&with(json!({ "jti": "2", "iat": 1 }))), &settings(&[])).unwrap();
    let other = read(&signer().token(&with(json!({ "sub": "else" }))), &settings(&[])).unwrap();
    assert!(again.id == token.id && other.id != token.id, "the id is the subject's");
    let nobody =
        |iat: u64| read(&signer().token(&with(json!({ "sub": null, "iat": iat }))), &settings(&[])).unwrap().id;
    assert!(nobody(1) == nobody(1) && nobody(1) != nobody(2), "without a subject it is the token's own");
}

#[test]
fn what_is_no_token_is_malformed() {
    let good = signer().token(&claims());
    let [head, body, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("{good}") };
    let long = format!("{head}.{}.{signature}", "A".repeat(20_000));
    for text in [
        format!("{head}.{body}"),
        format!("{good}.x"),
        format!("{head}.*.{signature}"),
        format!("{head}.{body}.*"),
        format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode("[1]")),
        format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode("{")),
        long,
    ] {
        assert_eq!(refusal(&text), "malformed token", "{text}");
        assert!(looks_like_jwt(text.as_bytes()), "{text}");
    }
    for text in ["pk_abc", "a.b.c", "", ".", "..", "pk_1.2.3"] {
        assert!(!looks_like_jwt(text.as_bytes()), "{text}");
    }
}

#[test]
fn the_header_must_say_a_known_algorithm_and_name_a_key() {
    let listed = "is not one of RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384, EdDSA";
    let (none, hmac) = (format!("algorithm none {listed}"), format!("algorithm HS256 {listed}"));
    let absent = format!("algorithm (none) {listed}");
    for (header, message) in [
        (json!({ "alg": "none", "kid": "k1" }), &none[..]),
        (json!({ "alg": "HS256", "kid": "k1" }), &hmac),
        (json!({ "alg": "ES256", "kid": "k1" }), "the key with kid k1 is for another algorithm"),
        (json!({ "alg": "EdDSA", "kid": "k1" }), "the key with kid k1 is for another algorithm"),
        (json!({ "alg": 1, "kid": "k1" }), &absent),
        (json!({ "kid": "k1" }), &absent),
        (json!({ "alg": "RS256" }), "header has no kid"),
        (json!({ "alg": "RS256", "kid": "" }), "header has no kid"),
        (json!({ "alg": "RS256", "kid": "k2" }), "no key in the JWKS matches kid k2"),
        (json!({ "alg": "RS256", "kid": "k1", "typ": "JWE" }), "type JWE is not JWT"),
        (
            json!({ "alg": "RS256", "kid": "k1", "crit": ["b64"], "b64": false }),
            "header asks for extensions (crit) that are not known here",
        ),
    ] {
        assert_eq!(refusal(&signer().signed(&header, &claims())), message, "{header}");
    }
    let bare = signer().signed(&json!({ "alg": "RS256", "kid": "k1" }), &claims());
    assert!(read(&bare, &settings(&[])).is_ok(), "typ may be absent");
}

#[test]
fn a_signature_by_anybody_else_or_over_anything_else_does_not_match() {
    let good = signer().token(&claims());
    let [head, body, signature] = good.split('.').collect::<Vec<_>>()[..] else { panic!("{good}") };
    let forged = encoded(&with(json!({ "scope": "logs.view" })));
    // The public key as an HMAC secret, under a header that claims RS256: the classic confusion.
    let secret = PKey::hmac(&signer().public_pem()).unwrap();
    let mut hmac = openssl::sign::Signer::new(MessageDigest::sha256(), &secret).unwrap();
    let confused = URL_SAFE_NO_PAD.encode(hmac.sign_oneshot_to_vec(format!("{head}.{body}").as_bytes()).unwrap());
    for token in [
        stranger().token(&claims()),
        format!("{head}.{forged}.{signature}"),
        format!("{head}.{body}."),
        format!("{head}.{body}.{}", &signature[..336]),
        format!("{head}.{body}.{confused}"),
    ] {
        assert_eq!(refusal(&token), "signature does not match", "{token}");
    }
}

#[test]
fn a_token_may_be_signed_by_every_algorithm_that_is_named() {
    for algorithm in algorithm::NAMES {
        let (signer, header) = (signer_by(algorithm), json!({ "alg": algorithm, "kid": "k1" }));
        let keys = WebKeySet::from_json(&json!({ "keys": [signer.jwk()] })).unwrap();
        let verify = |text: &str| {
            let read = Unverified::parse(text.as_bytes()).and_then(|token| token.claims_signed_by(&keys));
            read.map_err(|rejection| rejection.to_string().replace("JWT rejected: ", ""))
        };
        let good = signer.signed(&header, &claims());
        assert_eq!(verify(&good).map(Value::Object), Ok(claims()), "{algorithm}");
        let (message, signature) = good.rsplit_once('.').unwrap();
        let mut bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let (cut, long) = (URL_SAFE_NO_PAD.encode(&bytes[1..]), URL_SAFE_NO_PAD.encode([&bytes[..], &[0]].concat()));
        bytes[7] ^= 1;
        let other = good.rsplit_once('.').unwrap().0.replace(&encoded(&claims()), &encoded(&json!({ "exp": 1 })));
        for bad in [
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(&bytes)),
            format!("{message}.{cut}"),
            format!("{message}.{long}"),
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(vec![0; bytes.len()])),
            format!("{message}."),
            format!("{other}.{signature}"),
        ] {
            assert_eq!(verify(&bad), Err("signature does not match".to_owned()), "{algorithm}: {bad}");
        }
    }
}

#[test]
fn times_are_judged_with_a_minute_of_leeway() {
    let at = now().timestamp();
    for (changes, refused) in [
        (json!({ "exp": at - 59 }), None),
        (json!({ "exp": at as f64 + 0.5 }), None),
        (json!({ "exp": at - 60 }), Some("expired at 2027-01-15T07:59:00Z")),
        (json!({ "exp": null }), Some("no exp claim")),
        (json!({ "exp": "soon" }), Some("claim exp is not a time in Unix seconds")),
        (json!({ "exp": 1e300 }), Some("claim exp is not a time in Unix seconds")),
        (json!({ "nbf": at + 60 }), None),
        (json!({ "nbf": at + 61 }), Some("not valid before 2027-01-15T08:01:01Z")),
        (json!({ "iat": at + 60 }), None),
        (json!({ "iat": at + 61 }), Some("issued in the future, at 2027-01-15T08:01:01Z")),
    ] {
        let outcome = read(&signer().token(&with(changes.clone())), &settings(&[]));
        let message = outcome.err().map(|error| error.to_string().replace("JWT rejected: ", ""));
        assert_eq!(message.as_deref(), refused, "{changes}");
    }
    let token = read(&signer().token(&claims()), &settings(&[])).unwrap();
    assert_eq!(token.ends_at().round_subsecs(0), now() + chrono::TimeDelta::seconds(360));
}

#[test]
fn the_organisation_is_the_first_that_is_named_or_the_only_one_there_is() {
    let other = "11111111-9a3f-4a55-8f0e-7a1f2f1f0a11";
    let single = settings(&["--organisations-to-sync", other]);
    let several = settings(&["--organisations-to-sync", &format!("{other},{ORGANISATION}")]);
    let alias = settings(&["--jwt-org-claims", "tenant"]);
    for (changes, settings, found) in [
        (json!({}), &single, Some(ORGANISATION)),
        (json!({ "organisation_id": other }), &single, Some(ORGANISATION)),
        (json!({ "gateway_oid": null, "organisation_id": other }), &several, Some(other)),
        (json!({ "gateway_oid": null }), &single, Some(other)),
        (json!({ "gateway_oid": null }), &several, None),
        (json!({ "gateway_oid": null, "tenant": other }), &alias, Some(other)),
        (json!({ "gateway_oid": "x", "tenant": other }), &alias, None),
        (json!({ "gateway_oid": 7 }), &single, None),
    ] {
        let outcome = read(&signer().token(&with(changes.clone())), settings);
        match found {
            Some(id) => assert_eq!(outcome.unwrap().organisation_id.to_string(), id, "{changes}"),
            None => assert_eq!(outcome.unwrap_err(), Rejection::UnknownOrganisation, "{changes}"),
        }
    }
}

#[test]
fn a_workspace_and_a_usable_scope_are_needed() {
    let prefixed = settings(&["--jwt-scope-prefixes", "acme:,"]);
    let defaulted = settings(&["--jwt-local-auth-default-scopes", "logs.view,completions.write"]);
    let plain = settings(&[]);
    for (changes, settings, held) in [
        (json!({ "scope": ["completions.write", "logs.view"] }), &plain, Ok(&["completions.write", "logs.view"][..])),
        (json!({ "scope": "gateway.logs.view nonsense" }), &plain, Ok(&["logs.view"])),
        (json!({ "scope": null, "scopes": ["logs.view", "logs.view"] }), &plain, Ok(&["logs.view"])),
        (json!({ "scope": "acme:logs.read" }), &prefixed, Ok(&["logs.read"])),
        (json!({ "scope": null }), &defaulted, Ok(&["completions.write", "logs.view"])),
        (json!({ "scope": "nonsense" }), &defaulted, Err("no usable scope")),
        (json!({ "scope": null }), &plain, Err("no usable scope")),
        (json!({ "scope": 7 }), &plain, Err("no usable scope")),
        (json!({ "scope": "organisation_users.list workspaces.create" }), &plain, Err("no usable scope")),
        (json!({ "gateway_workspace": null }), &plain, Err("workspace (none) is not available")),
        (
            json!({ "defaults": { "metadata": { "a": 1 } } }),
            &plain,
            Err("claim defaults has metadata that is not text"),
        ),
        (json!({ "usage_limits": { "x": 1 } }), &plain, Err("claim usage_limits is not valid")),
    ] {
        let outcome = read(&signer().token(&with(changes.clone())), settings);
        match (outcome, held) {
            (Ok(token), Ok(held)) => assert_eq!(&token.scopes[..], held, "{changes}"),
            (Err(refused), Err(part)) => assert!(refused.to_string().contains(part), "{changes}: {refused}"),
            (outcome, _) => panic!("{changes}: {outcome:?}"),
        }
    }
    let alias = settings(&["--jwt-workspace-claims", "team"]);
    let token = signer().token(&with(json!({ "gateway_workspace": null, "team": "blue" })));
    assert_eq!(read(&token, &alias).unwrap().workspace, "blue");
}
