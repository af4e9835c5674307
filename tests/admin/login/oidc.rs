//! Signing in at an OIDC provider, as it should go: what the provider is asked, keys that rotate, further providers by
//! mail domain, claims from beyond the ID token, and logouts from both sides.

use super::provider::{CLIENT, Provider, asked};
use super::{Browser, begun, person, prove, set_up, signed_in, started};
use chrono::Utc;
use harness::client::whole;
use http::Method;
use serde_json::json;

#[tokio::test]
async fn a_login_asks_with_pkce_state_and_nonce_and_comes_back_with_a_session() {
    let (service, provider) = started(&["--oidc-custom-scopes=groups, roles"]).await;
    let mut browser = Browser::new(&service);
    let path = "/auth/login?email=ada@home.test&return_to=/console?tab%3Dkeys";
    let location = browser.get(path).await.header("location").to_owned();
    assert!(location.starts_with(&format!("{}/authorize?", provider.issuer)), "{location}");
    let parameters = asked(&location);
    let expected = [
        ("response_type", "code"),
        ("client_id", CLIENT),
        ("scope", "openid profile email offline_access groups roles"),
        ("code_challenge_method", "S256"),
        ("login_hint", "ada@home.test"),
    ];
    for (name, value) in expected {
        assert_eq!(parameters[name], value, "{location}");
    }
    let organisation = service.home.organisation_id;
    assert!(parameters["redirect_uri"].ends_with(&format!("/v1/auth/callback/{organisation}")), "{location}");
    let back = browser.follow(&provider.authorize(&location, person("ada", "ada@home.test"))).await;
    assert_eq!((back.status.as_u16(), back.header("location")), (303, "/console?tab=keys"), "{}", back.text());
    let session = browser.get("/auth/session").await.json();
    assert_eq!((&session["provider"], &session["user"]["email"]), (&json!("oidc"), &json!("ada@home.test")));
    assert_eq!((&session["user"]["first_name"], &session["user"]["role"]), (&json!("Ada"), &json!("member")));
    let rows = super::trail(&service).await;
    assert_eq!(rows.last().unwrap()["after"]["is_provisioned"], true, "{rows:?}");
    // The second time they are known, by another address too.
    let mut elsewhere = Browser::new(&service);
    let again = signed_in(&service, &provider, &mut elsewhere, person("ada", "countess@home.test")).await;
    assert_eq!(again.status, 303, "{}", again.text());
    assert_eq!(elsewhere.get("/auth/session").await.json()["user"]["email"], "ada@home.test");
    assert_eq!(super::trail(&service).await.last().unwrap()["after"]["is_provisioned"], false);
}

#[tokio::test]
async fn keys_of_the_provider_may_rotate() {
    let (service, provider) = started(&[]).await;
    let ada = || person("ada", "ada@home.test");
    assert_eq!(signed_in(&service, &provider, &mut Browser::new(&service), ada()).await.status, 303);
    provider.site.keys.rotate("k2");
    assert_eq!(signed_in(&service, &provider, &mut Browser::new(&service), ada()).await.status, 303);
}

#[tokio::test]
async fn people_of_a_domain_sign_in_at_its_own_provider() {
    let (service, general) = started(&[]).await;
    let theirs = Provider::start().await;
    let mut listed = theirs.settings();
    listed["domains"] = json!(["eu.home.test"]);
    set_up(&service, json!({ "oidc_providers": [listed] })).await;
    prove(&service, service.home.organisation_id, "eu.home.test").await;
    for (email, provider) in [("ada@home.test", &general), ("bob@eu.home.test", &theirs)] {
        let mut browser = Browser::new(&service);
        let location = browser.get(&format!("/auth/login?email={email}")).await.header("location").to_owned();
        assert!(location.starts_with(&provider.issuer), "{email}: {location}");
        let back = browser.follow(&provider.authorize(&location, person(email, email))).await;
        assert_eq!(back.status, 303, "{email}: {}", back.text());
        assert_eq!(browser.get("/auth/session").await.json()["user"]["email"], email);
    }
    let shown = service.administrator().get(super::AUTH_SETTINGS).await;
    assert!(!shown.text().contains(super::provider::SECRET), "{}", shown.text());
    assert!(shown.json()["oidc_providers"][0]["masked_client_secret"].is_string(), "{}", shown.text());
    // A list that repeats what is shown keeps the secret; a list without the provider forgets it.
    set_up(
        &service,
        json!({ "oidc_providers": [{ "issuer": theirs.issuer, "client_id": CLIENT, "domains": ["eu.home.test"] }] }),
    )
    .await;
    let mut browser = Browser::new(&service);
    let location = browser.get("/auth/login?email=bob@eu.home.test").await.header("location").to_owned();
    let back = browser.follow(&theirs.authorize(&location, person("bob@eu.home.test", "bob@eu.home.test"))).await;
    assert_eq!(back.status, 303, "{}", back.text());
}

#[tokio::test]
async fn what_the_id_token_does_not_say_is_asked_for() {
    let (service, provider) = started(&[]).await;
    provider.site.habits.lock().unwrap().user_info = Some(person("ada", "ada@home.test"));
    let mut browser = Browser::new(&service);
    let back = signed_in(&service, &provider, &mut browser, json!({ "sub": "ada" })).await;
    assert_eq!(back.status, 303, "{}", back.text());
    assert_eq!(browser.get("/auth/session").await.json()["user"]["email"], "ada@home.test");
    // It must speak of the same person.
    provider.site.habits.lock().unwrap().user_info = Some(person("somebody else", "owner@home.test"));
    let back = signed_in(&service, &provider, &mut Browser::new(&service), json!({ "sub": "eve" })).await;
    assert_eq!(back.status, 403, "{}", back.text());
}

#[tokio::test]
async fn a_provider_that_is_away_or_wrong_is_told_and_recorded() {
    let (service, provider) = started(&[]).await;
    let mut browser = Browser::new(&service);
    let location = begun(&service, &mut browser).await;
    let granted = provider.authorize(&location, json!({}));
    let denied = super::provider::altered(&granted, "error", Some("access_denied"));
    let refused = browser.follow(&denied).await;
    assert_eq!(refused.status, 403);
    assert!(refused.text().contains("access_denied"), "{}", refused.text());
    let row = super::trail(&service).await.pop().unwrap();
    assert_eq!(row["response_status_code"], 403);
    assert!(row["error"].as_str().unwrap().contains("access_denied"), "{row}");
    let parameters = asked(&granted);
    for name in ["code", "state"] {
        assert!(!row.to_string().contains(&parameters[name]), "{name} is in {row}");
    }
    set_up(&service, json!({ "oidc": { "issuer": "http://127.0.0.1:1", "client_id": CLIENT } })).await;
    let away = browser.get(&format!("/auth/login?organisation={}", service.home.organisation_id)).await;
    assert_eq!(away.status, 403, "{}", away.text());
    assert!(away.text().contains("cannot be reached"), "{}", away.text());
    let row = super::trail(&service).await.pop().unwrap();
    assert!(row["error"].as_str().unwrap().contains("cannot be reached"), "{row}");
    for path in ["/auth/login?email=ada@nowhere.test", "/auth/login?organisation=0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11"]
    {
        assert_eq!(browser.get(path).await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_logout_says_where_the_provider_ends_its_own_session() {
    let (service, provider) = started(&["--public-url=http://gw.test"]).await;
    let mut browser = Browser::new(&service);
    signed_in(&service, &provider, &mut browser, person("ada", "ada@home.test")).await;
    browser.learn_csrf().await;
    let answer = browser.post("/auth/logout", &json!({})).await.json();
    let url = answer["logout_url"].as_str().unwrap();
    assert!(url.starts_with(&format!("{}/logout?", provider.issuer)), "{url}");
    let parameters = asked(url);
    assert_eq!(parameters["client_id"], CLIENT);
    assert_eq!(parameters["post_logout_redirect_uri"], "http://gw.test/");
    assert_eq!(parameters["id_token_hint"].split('.').count(), 3);
    assert_eq!(browser.get("/auth/session").await.status, 401);
}

#[tokio::test]
async fn a_logout_at_the_provider_ends_the_sessions_it_vouched_for() {
    let (service, provider) = started(&[]).await;
    let (mut ada, mut bob) = (Browser::new(&service), Browser::new(&service));
    signed_in(&service, &provider, &mut ada, person("ada", "ada@home.test")).await;
    signed_in(&service, &provider, &mut bob, person("bob", "bob@home.test")).await;
    let told = |changes: serde_json::Value| {
        let mut claims = json!({
            "iss": provider.issuer, "aud": CLIENT, "iat": Utc::now().timestamp(), "jti": uuid::Uuid::new_v4(),
            "sub": "ada", "events": { "http://schemas.openid.net/event/backchannel-logout": {} },
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        provider.sign("logout+jwt", &claims)
    };
    let path = format!("/auth/backchannel-logout/{}", service.home.organisation_id);
    let post = async |token: &str| {
        let form = url::form_urlencoded::Serializer::new(String::new()).append_pair("logout_token", token).finish();
        let request = service.client().request(Method::POST, &path).body(form);
        whole(request.header("content-type", "application/x-www-form-urlencoded")).await
    };
    let stranger = Provider::start().await;
    for token in [
        told(json!({ "aud": "other" })),
        told(json!({ "iss": stranger.issuer })),
        told(json!({ "nonce": "n" })),
        told(json!({ "events": {} })),
        stranger.sign("logout+jwt", &json!({ "iss": provider.issuer, "aud": CLIENT })),
        "nonsense".to_owned(),
    ] {
        assert_eq!(post(&token).await.status, 400);
        let row = super::trail(&service).await.pop().unwrap();
        assert_eq!((&row["action"], &row["response_status_code"]), (&json!("delete"), &json!(400)), "{row}");
        assert!(row["error"].as_str().unwrap().contains("logout_token"), "{row}");
        assert!(!row.to_string().contains(&token), "{row}");
    }
    assert_eq!(ada.get("/auth/session").await.status, 200);
    let token = told(json!({}));
    let answer = post(&token).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(ada.get("/auth/session").await.status, 401);
    assert_eq!(bob.get("/auth/session").await.status, 200);
    assert_eq!(super::trail(&service).await.last().unwrap()["after"]["ended_sessions"], 1);
    assert_eq!(post(&token).await.status, 400, "replayed");
}

#[tokio::test]
async fn a_flood_of_logout_tokens_leaves_few_rows_in_the_trail_and_the_rest_is_counted() {
    let (service, _provider) = started(&[]).await;
    let path = format!("/auth/backchannel-logout/{}", service.home.organisation_id);
    let sent = 100;
    let send = async |address: &str| {
        let client = service.client().with("x-forwarded-for", address);
        let request = client.request(Method::POST, &path).body("logout_token=nonsense");
        whole(request.header("content-type", "application/x-www-form-urlencoded")).await
    };
    for n in 0..sent {
        let answer = send(&format!("198.51.100.{n}")).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
    }
    let rows = super::trail(&service).await.len() as u64;
    assert!((1..sent).contains(&rows), "{rows}");
    let metrics = harness::Client::new(&service.origin).get("/metrics").await.text();
    let line = metrics.lines().find(|line| line.starts_with("gateway_admin_jwt_failures_unrecorded_total "));
    let counted: u64 = line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap();
    assert_eq!(rows + counted, sent);
    // More than one minute takes, should one end meanwhile.
    let mut is_refused = false;
    for n in 0..200 {
        is_refused |= send(&format!("2001:db8::{n:x}")).await.status == 429;
    }
    assert!(is_refused, "of one network");
}
