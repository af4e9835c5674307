//! Each claim that must be right, wrong.

use super::*;
use serde_json::json;

fn provider() -> OidcProvider {
    let settings = json!({ "oidc": { "issuer": "https://id.test", "client_id": "gw" } });
    OidcProvider::for_domain(&settings, None).unwrap()
}

fn changed(usual: &Value, changes: Value) -> Map<String, Value> {
    let mut claims = usual.as_object().unwrap().clone();
    for (name, value) in changes.as_object().unwrap() {
        match value {
            Value::Null => drop(claims.shift_remove(name)),
            value => drop(claims.insert(name.clone(), value.clone())),
        }
    }
    claims
}

#[test]
fn an_id_token_counts_for_its_issuer_client_time_and_login_alone() {
    let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let at = |seconds: i64| now.timestamp() + seconds;
    let usual =
        json!({ "iss": "https://id.test", "aud": "gw", "sub": "1", "nonce": "n", "iat": at(0), "exp": at(300) });
    for (changes, accepted) in [
        (json!({}), true),
        (json!({ "aud": ["gw"] }), true),
        (json!({ "aud": ["gw", "other"], "azp": "gw" }), true),
        (json!({ "aud": ["gw", "other"] }), false),
        (json!({ "aud": ["gw"], "azp": "other" }), false),
        (json!({ "aud": "other" }), false),
        (json!({ "aud": null }), false),
        (json!({ "iss": "https://evil.test" }), false),
        (json!({ "iss": null }), false),
        (json!({ "nonce": "another" }), false),
        (json!({ "nonce": null }), false),
        (json!({ "exp": at(-59) }), true),
        (json!({ "exp": at(-60) }), false),
        (json!({ "exp": null }), false),
        (json!({ "exp": "soon" }), false),
        (json!({ "exp": i64::MAX }), true),
        (json!({ "iat": at(60) }), true),
        (json!({ "iat": at(61) }), false),
        (json!({ "nbf": at(61) }), false),
        (json!({ "sub": null }), false),
        (json!({ "sub": "" }), false),
        (json!({ "sub": 7 }), false),
        (json!({ "sub": "a\0" }), false),
        (json!({ "sub": "x".repeat(1025) }), false),
    ] {
        let checked = id_token(changed(&usual, changes.clone()), &provider(), "n", now);
        assert_eq!(checked.is_ok(), accepted, "{changes}: {checked:?}");
    }
}

#[test]
fn only_a_logout_token_ends_sessions() {
    let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
    let at = |seconds: i64| now.timestamp() + seconds;
    let usual = json!({ "iss": "https://id.test", "aud": "gw", "sub": "1", "iat": at(0), "jti": "j",
        "events": { BACKCHANNEL_LOGOUT: {} } });
    for (changes, accepted) in [
        (json!({}), true),
        (json!({ "sub": null, "sid": "s" }), true),
        (json!({ "sub": null }), false),
        (json!({ "nonce": "n" }), false),
        (json!({ "events": {} }), false),
        (json!({ "events": null }), false),
        (json!({ "jti": null }), false),
        (json!({ "iat": at(-600) }), true),
        (json!({ "iat": at(-660) }), false),
        (json!({ "iat": null }), false),
        (json!({ "exp": at(-60) }), false),
        (json!({ "iss": "https://evil.test" }), false),
        (json!({ "aud": "other" }), false),
    ] {
        let checked = logout_token(&changed(&usual, changes.clone()), &provider(), now);
        assert_eq!(checked.is_ok(), accepted, "{changes}: {checked:?}");
    }
}

#[test]
fn an_address_is_verified_when_the_provider_says_so() {
    for (claims, own) in [
        (json!({}), None),
        (json!({ "email_verified": true }), Some(true)),
        (json!({ "email_verified": "true" }), Some(true)),
        (json!({ "email_verified": false, "xms_edov": true }), Some(false)),
        (json!({ "xms_edov": "1" }), Some(true)),
        (json!({ "email_verified": ["true"] }), Some(false)),
    ] {
        assert_eq!(is_email_verified(claims.as_object().unwrap()), own, "{claims}");
    }
}

#[test]
fn an_address_and_its_verdict_come_from_one_document() {
    for (token, more, email, verified) in [
        (json!({}), json!({ "email": "a@x.test", "email_verified": true }), "a@x.test", Some(true)),
        (json!({ "email_verified": true }), json!({ "email": "a@x.test" }), "a@x.test", None),
        (
            json!({ "email": "a@x.test" }),
            json!({ "email": "a@x.test", "email_verified": true }),
            "a@x.test",
            Some(true),
        ),
        (json!({ "email": "a@x.test" }), json!({ "email": "b@x.test", "email_verified": true }), "a@x.test", None),
        (json!({ "email": "a@x.test" }), json!({ "email_verified": true, "xms_edov": true }), "a@x.test", None),
        (
            json!({ "email": "a@x.test", "email_verified": false }),
            json!({ "email": "a@x.test", "email_verified": true }),
            "a@x.test",
            Some(false),
        ),
    ] {
        let mut claims = token.as_object().unwrap().clone();
        complete(&mut claims, more.as_object().unwrap().clone());
        assert_eq!((text(&claims, "email"), is_email_verified(&claims)), (Some(email), verified), "{token} {more}");
    }
}
