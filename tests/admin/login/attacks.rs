//! Attacks on logins by an identity provider, each under its name. None of them may end with a session.

use super::provider::{Provider, Site, altered, asked};
use super::{Browser, begun, person, set_up, signed_in, started};
use crate::service::Service;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use harness::Answer;
use openssl::hash::MessageDigest;
use openssl::pkey::{PKey, Private};
use openssl::rsa::Rsa;
use openssl::sign::Signer;
use serde_json::{Value, json};

fn assert_refused(answer: &Answer, why: &str) {
    assert_eq!(answer.status, 403, "{why}: {}", answer.text());
    let cookies = answer.headers.get_all("set-cookie").iter().map(|line| line.to_str().unwrap().to_owned());
    assert!(!cookies.into_iter().any(|line| line.contains("gateway_session=")), "{why}: {:?}", answer.headers);
}

async fn sessions(service: &Service) -> i64 {
    service.database.client().await.query_one("SELECT count(*) FROM sessions", &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn state_replay_an_answer_is_taken_once() {
    let (service, provider) = started(&[]).await;
    let mut browser = Browser::new(&service);
    let location = begun(&service, &mut browser).await;
    let secret = browser.cookies["gateway_login"].clone();
    let callback = provider.authorize(&location, person("ada", "ada@home.test"));
    assert_eq!(browser.follow(&callback).await.status, 303);
    browser.cookies.insert("gateway_login".into(), secret);
    assert_refused(&browser.follow(&callback).await, "the same state again");
    // With a fresh code it is no better.
    let again = provider.authorize(&location, person("ada", "ada@home.test"));
    assert_refused(&browser.follow(&again).await, "a new code with the old state");
    assert_eq!(sessions(&service).await, 1);
    let rows = super::trail(&service).await;
    assert_eq!(
        rows.iter().filter(|row| row["response_status_code"] == 403).count(),
        2,
        "each is in the trail: {rows:?}"
    );
}

#[tokio::test]
async fn login_csrf_an_answer_belongs_to_the_browser_that_asked() {
    let (service, provider) = started(&[]).await;
    let mut attacker = Browser::new(&service);
    let location = begun(&service, &mut attacker).await;
    let callback = provider.authorize(&location, person("eve", "eve@home.test"));
    let mut victim = Browser::new(&service);
    assert_refused(&victim.follow(&callback).await, "a browser that has no login under way");
    let mut victim = Browser::new(&service);
    begun(&service, &mut victim).await;
    let location = begun(&service, &mut attacker).await;
    let callback = provider.authorize(&location, person("eve", "eve@home.test"));
    assert_refused(&victim.follow(&callback).await, "a browser that has another");
    assert_eq!(provider.redeemed(), 0, "no code was even tried");
}

#[tokio::test]
async fn nonce_replay_an_id_token_of_another_login_is_refused() {
    let (service, provider) = started(&[]).await;
    let mut browser = Browser::new(&service);
    let first = asked(&begun(&service, &mut browser).await)["nonce"].clone();
    provider.site.habits.lock().unwrap().claims = Some(json!({ "nonce": first }));
    let refused = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
    assert_refused(&refused, "another login's nonce");
    provider.site.habits.lock().unwrap().claims = Some(json!({ "nonce": null }));
    let refused = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
    assert_refused(&refused, "no nonce");
}

#[tokio::test]
async fn code_injection_a_stolen_code_is_worth_nothing_in_another_login() {
    let (service, provider) = started(&[]).await;
    let mut victim = Browser::new(&service);
    let stolen = asked(&provider.authorize(&begun(&service, &mut victim).await, person("ada", "ada@home.test")));
    let mut attacker = Browser::new(&service);
    let own = provider.authorize(&begun(&service, &mut attacker).await, person("eve", "eve@home.test"));
    let injected = altered(&own, "code", Some(&stolen["code"]));
    assert_refused(&attacker.follow(&injected).await, "the verifier is another");
    assert_eq!(provider.redeemed(), 1);
    assert_eq!(sessions(&service).await, 0);
}

#[tokio::test]
async fn tokens_for_others_or_out_of_their_time_are_refused() {
    let (service, provider) = started(&[]).await;
    let now = chrono::Utc::now().timestamp();
    for claims in [
        json!({ "aud": "another-client" }),
        json!({ "iss": "https://evil.test" }),
        json!({ "exp": now - 120 }),
        json!({ "iat": now + 600 }),
        json!({ "aud": ["gateway", "other"] }),
        json!({ "aud": ["gateway", "other"], "azp": "other" }),
        json!({ "aud": "gateway", "azp": "other" }),
        json!({ "aud": [] }),
        json!({ "aud": null }),
        json!({ "iss": null }),
        json!({ "exp": null }),
        json!({ "sub": "" }),
    ] {
        provider.site.habits.lock().unwrap().claims = Some(claims.clone());
        let answer = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
        assert_refused(&answer, &claims.to_string());
    }
    provider.site.habits.lock().unwrap().claims = None;
    let answer = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
    assert_eq!(answer.status, 303, "clean: {}", answer.text());
}

/// A token whose signature is made by `sign`, of what is signed.
fn forged(header: &Value, claims: &Value, sign: impl FnOnce(&[u8]) -> Vec<u8>) -> String {
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", encoded(header), encoded(claims));
    format!("{message}.{}", URL_SAFE_NO_PAD.encode(sign(message.as_bytes())))
}

fn unsigned(_: &Site, claims: &Value) -> String {
    forged(&json!({ "alg": "none", "typ": "JWT" }), claims, |_| Vec::new())
}

fn without_its_signature(_: &Site, claims: &Value) -> String {
    forged(&json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }), claims, |_| Vec::new())
}

fn signed_with(key: &PKey<Private>) -> impl FnOnce(&[u8]) -> Vec<u8> {
    move |message: &[u8]| Signer::new(MessageDigest::sha256(), key).unwrap().sign_oneshot_to_vec(message).unwrap()
}

/// The public key is no secret, and must not do as one.
fn by_the_public_key(site: &Site, claims: &Value) -> String {
    let key = PKey::hmac(&site.keys.public_pem()).unwrap();
    forged(&json!({ "alg": "HS256", "typ": "JWT", "kid": "k1" }), claims, signed_with(&key))
}

fn by_another_key_of_the_same_name(_: &Site, claims: &Value) -> String {
    let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
    forged(&json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }), claims, signed_with(&key))
}

#[tokio::test]
async fn unsigned_and_forged_id_tokens_are_refused() {
    let (service, provider) = started(&[]).await;
    let all: [fn(&Site, &Value) -> String; 4] =
        [unsigned, without_its_signature, by_the_public_key, by_another_key_of_the_same_name];
    for (n, forge) in all.into_iter().enumerate() {
        provider.site.habits.lock().unwrap().forge = Some(forge);
        let answer = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
        assert_refused(&answer, &format!("forgery {n}"));
    }
    assert_eq!(sessions(&service).await, 0);
}

fn of_a_key_that_nobody_has(site: &Site, claims: &Value) -> String {
    let header = json!({ "alg": "RS256", "typ": "JWT", "kid": format!("k-{}", uuid::Uuid::new_v4()) });
    site.keys.sign(&header, claims)
}

/// Each forged token names another key, and each would be a reason to ask the provider for its keys again.
#[tokio::test]
async fn a_flood_of_unknown_key_ids_makes_the_provider_be_asked_no_more_often() {
    let (service, provider) = started(&[]).await;
    let answer = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
    assert_eq!(answer.status, 303, "{}", answer.text());
    let before = provider.site.keys.fetches();
    provider.site.habits.lock().unwrap().forge = Some(of_a_key_that_nobody_has);
    for n in 0..20 {
        let answer = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
        assert_refused(&answer, &format!("key {n}"));
    }
    let fetched = provider.site.keys.fetches() - before;
    assert!(fetched <= 1, "{fetched} times within 30 seconds");
    provider.site.habits.lock().unwrap().forge = None;
    let answer = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
    assert_eq!(answer.status, 303, "whoever is signed in honestly still is: {}", answer.text());
}

#[tokio::test]
async fn mix_up_between_providers_an_answer_of_one_is_not_taken_for_anothers() {
    let (service, honest) = started(&[]).await;
    let evil = Provider::start().await;
    let mut listed = evil.settings();
    listed["domains"] = json!(["evil.test"]);
    set_up(&service, json!({ "oidc_providers": [listed] })).await;
    // The victim's login at the evil provider is sent on to the honest one, whose code then comes back.
    let mut victim = Browser::new(&service);
    let path = format!("/auth/login?organisation={}&email=ada@evil.test", service.home.organisation_id);
    let location = victim.get(&path).await.header("location").to_owned();
    assert!(location.starts_with(&evil.issuer));
    let mixed = honest.authorize(&location, person("ada", "ada@home.test"));
    assert_refused(&victim.follow(&mixed).await, "it names another issuer");
    assert_eq!((honest.redeemed(), evil.redeemed()), (0, 0), "the code went to nobody");
    // A provider that promises to name itself is not believed without it.
    let silent = Provider::start().await;
    silent.site.habits.lock().unwrap().promises_iss = true;
    set_up(&service, json!({ "oidc": silent.settings() })).await;
    let mut browser = Browser::new(&service);
    let callback = silent.authorize(&begun(&service, &mut browser).await, person("ada", "ada@home.test"));
    assert_refused(&browser.follow(&altered(&callback, "iss", None)).await, "it names nobody");
    assert_eq!(silent.redeemed(), 0);
}

#[tokio::test]
async fn mix_up_between_organisations_a_code_of_one_never_reaches_the_provider_of_another() {
    let (service, honest) = started(&[]).await;
    let (other, evil) = (service.organisation().await, Provider::start().await);
    let settings = json!({ "oidc": evil.settings() });
    let stranger = service.client().with_key(&other.admin_key.key);
    assert_eq!(stranger.put(super::AUTH_SETTINGS, &settings).await.status, 200);
    let mut victim = Browser::new(&service);
    let path = format!("/auth/login?organisation={}", other.organisation_id);
    let location = victim.get(&path).await.header("location").to_owned();
    // The evil provider sends the victim to the honest one, which knows only the address of the honest organisation.
    let honest_address = format!("/v1/auth/callback/{}", service.home.organisation_id);
    let redirect = asked(&location)["redirect_uri"]
        .replace(&format!("/v1/auth/callback/{}", other.organisation_id), &honest_address);
    let forged = altered(&location, "redirect_uri", Some(&redirect));
    let callback = altered(&honest.authorize(&forged, person("ada", "ada@home.test")), "iss", None);
    assert_refused(&victim.follow(&callback).await, "begun for another organisation");
    assert_eq!((honest.redeemed(), evil.redeemed()), (0, 0));
}

#[tokio::test]
async fn metadata_of_another_issuer_are_not_used() {
    let (service, provider) = started(&[]).await;
    provider.site.habits.lock().unwrap().says_it_is = Some("https://id.example.com".into());
    let answer =
        Browser::new(&service).get(&format!("/auth/login?organisation={}", service.home.organisation_id)).await;
    assert_refused(&answer, "it says that it is somebody else");
}

#[tokio::test]
async fn open_redirect_a_login_ends_on_this_host() {
    let (service, _provider) = started(&[]).await;
    let organisation = service.home.organisation_id;
    for target in [
        "https://evil.test",
        "//evil.test",
        "/\\evil.test",
        "\\/evil.test",
        "/%09/evil.test",
        "javascript:alert(1)",
        "evil.test",
        "/\r\nset-cookie:x=y",
    ] {
        let encoded: String = url::form_urlencoded::byte_serialize(target.as_bytes()).collect();
        let path = format!("/auth/login?organisation={organisation}&return_to={encoded}");
        let answer = Browser::new(&service).get(&path).await;
        // `%09` was sent as three characters, which are a path like any other.
        let expected = if target.contains("%09") { 303 } else { 400 };
        assert_eq!(answer.status, expected, "{target:?}: {}", answer.text());
    }
}

#[tokio::test]
async fn account_linking_by_unverified_email_takes_nobody_over() {
    let (service, provider) = started(&[]).await;
    let owner = |verified: Value| {
        let mut claims = person("eve", "owner@home.test");
        claims["email_verified"] = verified;
        claims
    };
    for said in [json!(false), json!("false"), json!(0), json!(null), json!(["true"])] {
        let answer = signed_in(&service, &provider, &mut Browser::new(&service), owner(said.clone())).await;
        assert_refused(&answer, &said.to_string());
    }
    let mut silent = person("eve", "owner@home.test");
    silent.as_object_mut().unwrap().shift_remove("email_verified");
    let answer = signed_in(&service, &provider, &mut Browser::new(&service), silent.clone()).await;
    assert_refused(&answer, "nothing was said of it");
    // Unless the organisation trusts what its provider says of addresses; what it denies stays denied.
    let mut trusting = provider.settings();
    trusting["trust_email"] = json!(true);
    set_up(&service, json!({ "oidc": trusting })).await;
    assert_refused(&signed_in(&service, &provider, &mut Browser::new(&service), owner(json!(false))).await, "denied");
    super::allow_owner(&service, &provider).await;
    assert_eq!(signed_in(&service, &provider, &mut Browser::new(&service), silent).await.status, 303);
}

#[tokio::test]
async fn a_reused_address_does_not_open_the_account_of_its_former_owner() {
    let (service, provider) = started(&[]).await;
    let ada = signed_in(&service, &provider, &mut Browser::new(&service), person("ada", "ada@home.test")).await;
    assert_eq!(ada.status, 303);
    let answer = signed_in(&service, &provider, &mut Browser::new(&service), person("new", "ada@home.test")).await;
    assert_refused(&answer, "the address belongs to another account");
}
