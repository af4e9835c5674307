//! One organisation's identity provider, sessions and links never reach into another: each of them is tried there.

use super::provider::Provider;
use super::{Browser, by_link, link, person, prove, started};
use crate::service::Service;
use http::Method;
use serde_json::json;
use shared::bootstrap::FirstKeys;

/// A second organisation with a provider of its own that says whatever it likes.
async fn rival(service: &Service) -> (FirstKeys, Provider) {
    let (other, provider) = (service.organisation().await, Provider::start().await);
    let client = service.client().with_key(&other.admin_key.key);
    let answer = client.put(super::AUTH_SETTINGS, &json!({ "oidc": provider.settings() })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    prove(service, other.organisation_id, "other.test").await;
    (other, provider)
}

async fn login_at(service: &Service, organisation: &FirstKeys) -> (Browser, String) {
    let mut browser = Browser::new(service);
    let path = format!("/auth/login?organisation={}", organisation.organisation_id);
    let location = browser.get(&path).await.header("location").to_owned();
    (browser, location)
}

#[tokio::test]
async fn walk_a_provider_logs_nobody_into_another_organisation() {
    let (service, honest) = started(&[]).await;
    let (other, evil) = rival(&service).await;
    // People of the first organisation, vouched for by the other's provider: by address, and by issuer and subject too.
    for claims in [person("eve", "owner@home.test"), person("ada", "ada@home.test")] {
        let (mut browser, location) = login_at(&service, &other).await;
        let answer = browser.follow(&evil.authorize(&location, claims.clone())).await;
        assert_eq!(answer.status, 403, "{claims}: {}", answer.text());
    }
    // Its own people it logs in, and only there.
    let (mut browser, location) = login_at(&service, &other).await;
    let answer = browser.follow(&evil.authorize(&location, person("mallory", "mallory@other.test"))).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let session = browser.get("/auth/session").await.json();
    assert_eq!(session["organisation"]["id"], json!(other.organisation_id));
    assert_eq!(session["workspaces"], json!([]));
    // The same account at the same issuer is somebody else in another organisation that uses it.
    let (mut browser, location) = login_at(&service, &service.home).await;
    let answer = browser.follow(&honest.authorize(&location, person("mallory", "ada@home.test"))).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    assert_eq!(browser.get("/auth/session").await.json()["organisation"]["id"], json!(service.home.organisation_id));
    // An answer to one organisation's login at another's address.
    let (mut browser, location) = login_at(&service, &other).await;
    let callback = evil.authorize(&location, person("mallory", "mallory@other.test"));
    let moved = callback.replace(&other.organisation_id.to_string(), &service.home.organisation_id.to_string());
    assert_eq!(browser.follow(&moved).await.status, 403);
}

/// What the first organisation has of people, accounts and sessions.
async fn household(service: &Service) -> (i64, i64, i64) {
    const COUNT: &str = "SELECT (SELECT count(*) FROM users WHERE organisation_id = $1),
        (SELECT count(*) FROM user_identities WHERE organisation_id = $1),
        (SELECT count(*) FROM sessions WHERE organisation_id = $1)";
    let row = service.database.client().await.query_one(COUNT, &[&service.home.organisation_id]).await.unwrap();
    (row.get(0), row.get(1), row.get(2))
}

/// Every way to set up a provider of OIDC, with one of its own and with the very issuer that the first organisation
/// trusts too, which anybody may name.
#[tokio::test]
async fn walk_every_kind_of_provider_stays_in_its_organisation() {
    let (service, honest) = started(&[]).await;
    let (mut ada, location) = login_at(&service, &service.home).await;
    assert_eq!(ada.follow(&honest.authorize(&location, person("ada", "ada@home.test"))).await.status, 303);
    let before = household(&service).await;
    let (other, evil) = rival(&service).await;
    let rival = service.client().with_key(&other.admin_key.key);
    let listed = |provider: &Provider| {
        let mut settings = provider.settings();
        settings["domains"] = json!(["home.test", "other.test"]);
        settings
    };
    for (kind, settings, provider) in [
        ("own, for all", json!({ "oidc": evil.settings(), "oidc_providers": [] }), &evil),
        ("shared, for all", json!({ "oidc": honest.settings(), "oidc_providers": [] }), &honest),
        ("own, by domain", json!({ "oidc": null, "oidc_providers": [listed(&evil)] }), &evil),
        ("shared, by domain", json!({ "oidc": null, "oidc_providers": [listed(&honest)] }), &honest),
    ] {
        let set = rival.put(super::AUTH_SETTINGS, &settings).await;
        assert_eq!(set.status, 200, "{kind}: {}", set.text());
        // Nobody is known there by an account of before.
        const FORGET: &str = "DELETE FROM user_identities WHERE organisation_id = $1";
        service.database.client().await.execute(FORGET, &[&other.organisation_id]).await.unwrap();
        // An account of the first organisation with its own address, with one of the owner's, and with one of theirs.
        for (subject, email, is_moved, status) in [
            ("ada", "ada@home.test", false, 403),
            ("eve", "owner@home.test", false, 403),
            ("ada", "mallory@other.test", false, 303),
            ("ada", "mallory@other.test", true, 403),
        ] {
            let mut browser = Browser::new(&service);
            let path = format!("/auth/login?organisation={}&email=mallory@other.test", other.organisation_id);
            let location = browser.get(&path).await.header("location").to_owned();
            assert!(location.starts_with(&provider.issuer), "{kind}: {location}");
            let mut callback = provider.authorize(&location, person(subject, email));
            if is_moved {
                let [theirs, ours] = [other.organisation_id, service.home.organisation_id].map(|id| id.to_string());
                callback = callback.replace(&theirs, &ours);
            }
            let answer = browser.follow(&callback).await;
            assert_eq!(answer.status, status, "{kind}, {email}, {is_moved}: {}", answer.text());
            if status == 303 {
                let session = browser.get("/auth/session").await.json();
                assert_eq!(session["organisation"]["id"], json!(other.organisation_id), "{kind}");
                assert_eq!(session["user"]["email"], "mallory@other.test", "{kind}");
            }
        }
        // Whom they name for a domain that is not theirs, nobody is sent to.
        let location =
            Browser::new(&service).get("/auth/login?email=ada@home.test").await.header("location").to_owned();
        assert!(location.starts_with(&honest.issuer), "{kind}: {location}");
        assert!(location.contains(&service.home.organisation_id.to_string()), "{kind}: {location}");
        assert_eq!(household(&service).await, before, "{kind}");
    }
    assert_eq!(ada.get("/auth/session").await.json()["user"]["email"], "ada@home.test");
}

#[tokio::test]
async fn walk_a_session_sees_and_ends_nothing_of_another_organisation() {
    let (service, _) = started(&[]).await;
    let (other, _) = rival(&service).await;
    let mut home = by_link(&service, service.home.owner_id).await;
    let token = link(&service, other.organisation_id, other.owner_id).await;
    let mut theirs = Browser::new(&service);
    assert_eq!(theirs.post("/auth/sessions", &json!({ "token": token })).await.status, 200);
    theirs.learn_csrf().await;
    let id = home.get("/auth/sessions").await.json()["data"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(theirs.delete(&format!("/auth/sessions/{id}")).await.status, 404);
    assert_eq!(theirs.get("/auth/sessions").await.json()["total"], 1);
    let place = service.home.workspace_id.to_string();
    assert_eq!(theirs.with("x-gateway-workspace", &place).get("/labels").await.status, 403);
    let made = home.post("/labels", &json!({ "name": "mine" })).await.json();
    let label = format!("/labels/{}", made["id"].as_str().unwrap());
    assert_eq!(theirs.get(&label).await.status, 404);
    assert_eq!(theirs.get("/labels?search=mine").await.json()["total"], 0);
    assert_eq!(home.get("/auth/session").await.status, 200);
}

#[tokio::test]
async fn walk_a_logout_token_ends_nothing_of_another_organisation() {
    let (service, honest) = started(&[]).await;
    let (other, evil) = rival(&service).await;
    let (mut ada, location) = login_at(&service, &service.home).await;
    ada.follow(&honest.authorize(&location, person("ada", "ada@home.test"))).await;
    let claims = |issuer: &str| {
        json!({ "iss": issuer, "aud": "gateway", "iat": chrono::Utc::now().timestamp(), "jti": uuid::Uuid::new_v4(),
                "sub": "ada", "events": { "http://schemas.openid.net/event/backchannel-logout": {} } })
    };
    for (organisation, token) in [
        (&other, evil.sign("logout+jwt", &claims(&evil.issuer))),
        (&other, honest.sign("logout+jwt", &claims(&honest.issuer))),
        (&service.home, evil.sign("logout+jwt", &claims(&evil.issuer))),
        (&service.home, evil.sign("logout+jwt", &claims(&honest.issuer))),
    ] {
        let path = format!("/auth/backchannel-logout/{}", organisation.organisation_id);
        let form = format!("logout_token={token}");
        harness::client::whole(service.client().request(Method::POST, &path).body(form)).await;
        assert_eq!(ada.get("/auth/session").await.status, 200);
    }
}
