//! Tokens (JWT) on the control plane: who is believed, what each refusal says, and that the trail knows of it.

use crate::service::Service;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use harness::issuer::{Issuer, Serving, claims};
use harness::{Answer, until};
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use serde_json::{Value, json};
use std::sync::Arc;
use uuid::Uuid;

const TRUSTING: &str = "--trusted-custom-hosts=127.0.0.1";

/// A service whose first organisation accepts the issuer's tokens, fetched by URL.
async fn started(more: &[&str]) -> (Arc<Service>, Issuer) {
    let settings = [&[TRUSTING], more].concat();
    let (service, issuer) = (Service::start_with(&settings).await, Issuer::start().await);
    let change = json!({ "jwks_url": issuer.url() });
    let answer = service.administrator().put("/admin/organisation/auth-settings", &change).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    (Arc::new(service), issuer)
}

async fn ask(service: &Service, token: &str) -> Answer {
    service.client().with_key(token).get("/labels").await
}

fn good(service: &Service, scope: &str) -> Value {
    claims(service.home.organisation_id, &service.home.workspace_id.to_string(), scope)
}

fn refusal(answer: &Answer) -> (u16, String, String) {
    let body = answer.json();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    (answer.status.as_u16(), text(&body["data"]["errorCode"]), text(&body["message"]))
}

fn with(mut claims: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

#[tokio::test]
async fn a_token_acts_in_its_workspace_by_slug_or_id_and_is_never_an_administrator() {
    let (service, issuer) = started(&[]).await;
    let slug = "SELECT slug FROM workspaces WHERE id = $1";
    let slug = service.database.client().await.query_one(slug, &[&service.home.workspace_id]).await.unwrap();
    let scope = "prompts.list prompts.create organisation_users.list workspaces.create";
    for workspace in [slug.get::<_, String>(0), service.home.workspace_id.to_string()] {
        let token = issuer.token(&claims(service.home.organisation_id, &workspace, scope));
        let client = service.client().with_key(&token);
        assert_eq!(client.get("/labels").await.status, 200, "{workspace}");
        let own = client.get("/api-keys/self").await.json();
        assert_eq!((&own["type"], &own["name"]), (&json!("jwt"), &json!("somebody")), "{own}");
        assert_eq!(own["workspace_id"], json!(service.home.workspace_id));
        assert_eq!(own["scopes"], json!(["prompts.create", "prompts.list"]), "{own}");
        assert_eq!(client.get("/admin/users").await.status, 403);
        let bearer = service.client().with("authorization", format!("Bearer {token}"));
        assert_eq!(bearer.get("/labels").await.status, 200);
    }
    assert_eq!(issuer.fetches(), 1, "the keys are kept");
    let made = service.client().with_key(&issuer.token(&good(&service, scope)));
    assert_eq!(made.post("/labels", &json!({ "name": "by-token" })).await.status, 200);
    let trail = service.trail(service.home.organisation_id).await;
    let created = trail.iter().find(|row| row["resource_type"] == "labels").unwrap();
    assert_eq!((&created["user_type"], &created["api_key_id"]), (&json!("user"), &Value::Null), "{created}");
}

#[tokio::test]
async fn every_bad_token_is_told_why_and_recorded_with_its_mask() {
    let (service, issuer) = started(&[]).await;
    let (stranger, now) = (Issuer::start().await, Utc::now().timestamp());
    service.workspace("old").await;
    service.sql("UPDATE workspaces SET status = 'archived' WHERE slug = 'old'").await;
    let elsewhere = service.organisation().await;
    let scope = "prompts.list";
    let changed = |changes: Value| issuer.token(&with(good(&service, scope), changes));
    let headed = |header: Value| issuer.sign(&header, &good(&service, scope));
    let token = issuer.token(&good(&service, scope));
    let [head, body, _] = token.split('.').collect::<Vec<_>>()[..] else { panic!("{token}") };
    let secret = PKey::hmac(&issuer.public_pem()).unwrap();
    let mut hmac = openssl::sign::Signer::new(MessageDigest::sha256(), &secret).unwrap();
    let hs256 = URL_SAFE_NO_PAD.encode(json!({ "alg": "HS256", "kid": "k1" }).to_string());
    let confused = |head: &str, hmac: &mut openssl::sign::Signer<'_>| {
        let message = format!("{head}.{body}");
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(hmac.sign_oneshot_to_vec(message.as_bytes()).unwrap()))
    };
    let none = URL_SAFE_NO_PAD.encode(json!({ "alg": "none", "kid": "k1" }).to_string());
    let foreign = elsewhere.workspace_id.to_string();
    let rows = [
        (format!("{head}.{body}"), 401, "malformed token".to_owned()),
        (format!("{head}.*.x"), 401, "malformed token".into()),
        (format!("{none}.{body}."), 401, "algorithm none is not one of RS256".into()),
        (confused(&hs256, &mut hmac), 401, "algorithm HS256 is not one of RS256".into()),
        (confused(head, &mut hmac), 401, "signature does not match".into()),
        (headed(json!({ "alg": "RS256" })), 401, "header has no kid".into()),
        (headed(json!({ "alg": "RS256", "kid": "k9" })), 401, "no key in the JWKS matches kid k9".into()),
        (stranger.token(&good(&service, scope)), 401, "signature does not match".into()),
        (changed(json!({ "exp": null })), 401, "no exp claim".into()),
        (changed(json!({ "exp": now - 90 })), 401, "expired at".into()),
        (changed(json!({ "nbf": now + 3600 })), 401, "not valid before".into()),
        (changed(json!({ "gateway_oid": Uuid::new_v4() })), 401, "unknown organisation".into()),
        (changed(json!({ "gateway_oid": null })), 401, "unknown organisation".into()),
        (changed(json!({ "gateway_oid": elsewhere.organisation_id })), 403, "organisation has no JWKS".into()),
        (changed(json!({ "gateway_workspace": null })), 403, "workspace (none) is not available".into()),
        (changed(json!({ "gateway_workspace": "nowhere" })), 403, "workspace nowhere is not available".into()),
        (changed(json!({ "gateway_workspace": "old" })), 403, "workspace old is not available".into()),
        (changed(json!({ "gateway_workspace": foreign })), 403, format!("workspace {foreign} is not available")),
        (changed(json!({ "scope": "nonsense" })), 403, "no usable scope".into()),
    ];
    for (token, status, message) in &rows {
        let (got, code, told) = refusal(&ask(&service, token).await);
        assert!(got == *status && told.starts_with(&format!("JWT rejected: {message}")), "{message}: {got} {told}");
        assert_eq!(code, if *status == 401 { "AB05" } else { "AB03" }, "{message}");
        let unknown = message == "unknown organisation" || message.starts_with("malformed");
        let organisation =
            if message.contains("no JWKS") { elsewhere.organisation_id } else { service.home.organisation_id };
        let trail = service.trail(organisation).await;
        let recorded = trail.iter().rev().find(|row| row["error"] == json!(format!("{code} {told}")));
        assert_eq!(
            recorded.is_none(),
            unknown || message.starts_with("algorithm") || message.contains("no kid"),
            "{message}"
        );
        if let Some(row) = recorded {
            let mask = format!("{}*****{}", &token[..2], &token[token.len() - 2..]);
            let kind = (&row["resource_type"], &row["action"], &row["resource_id"], &row["response_status_code"]);
            assert_eq!(kind, (&json!("jwt"), &json!("authenticate"), &json!(mask), &json!(status)), "{row}");
            assert!(!row.to_string().contains(token.as_str()), "the token itself is nowhere in the trail");
        }
    }
    let held = ask(&service, &issuer.token(&good(&service, "logs.view"))).await;
    assert_eq!((held.status.as_u16(), held.json()["data"]["errorCode"].as_str()), (403, Some("AB03")));
    let just_expired = changed(json!({ "exp": Utc::now().timestamp() - 20 }));
    assert_eq!(ask(&service, &just_expired).await.status, 200, "a minute of leeway");
}

#[tokio::test]
async fn a_token_that_names_nobody_is_recorded_where_there_is_one_organisation() {
    let (service, issuer) = started(&[]).await;
    let unknown = issuer.token(&with(good(&service, "prompts.list"), json!({ "gateway_oid": Uuid::new_v4() })));
    assert_eq!(ask(&service, &unknown).await.status, 401);
    let trail = service.trail(service.home.organisation_id).await;
    let error = "AB05 JWT rejected: unknown organisation (its id is the claim gateway_oid)";
    assert_eq!(trail.last().unwrap()["error"], error);
}

#[tokio::test]
async fn keys_rotate_without_a_restart_and_survive_an_outage_and_every_failure_is_named() {
    let (service, issuer) = started(&[]).await;
    let scope = "prompts.list";
    for (serving, why) in [
        (Serving::Status(503), "it answered 503"),
        (Serving::Redirect, "it answered 302"),
        (Serving::Garbage, "it is not JSON"),
        (Serving::Huge, "the answer is too long"),
        (Serving::HangUp, "the answer is not HTTP, or broke off"),
    ] {
        issuer.serve(serving);
        // Another address makes a new set, which has not failed yet.
        let change = json!({ "jwks_url": format!("{}&case={}", issuer.url(), Uuid::new_v4()) });
        assert_eq!(service.administrator().put("/admin/organisation/auth-settings", &change).await.status, 200);
        let refused = refusal(&ask(&service, &issuer.token(&good(&service, scope))).await);
        assert_eq!(refused.2, format!("JWT rejected: JWKS could not be fetched: {why}"), "{serving:?}");
        assert_eq!(refused.0, 401);
    }
    issuer.serve(Serving::Keys);
    let change = json!({ "jwks_url": issuer.url() });
    assert_eq!(service.administrator().put("/admin/organisation/auth-settings", &change).await.status, 200);
    assert_eq!(ask(&service, &issuer.token(&good(&service, scope))).await.status, 200);
    issuer.rotate("k2");
    let rotated = issuer.token(&good(&service, scope));
    let before = issuer.fetches();
    let all = (0..100).map(|_| {
        let (service, token) = (service.clone(), rotated.clone());
        async move { ask(&service, &token).await.status }
    });
    assert!(futures::future::join_all(all).await.iter().all(|status| *status == 200));
    assert_eq!(issuer.fetches() - before, 1, "a hundred callers, one fetch");
    issuer.serve(Serving::Status(500));
    assert_eq!(ask(&service, &rotated).await.status, 200, "keys outlive their server");
}

#[tokio::test]
async fn a_server_that_says_nothing_is_given_five_seconds_and_no_database_connection() {
    let (service, issuer) = started(&[]).await;
    issuer.serve(Serving::Silence);
    let waiting: Vec<_> = (0..8)
        .map(|_| {
            let (service, token) = (service.clone(), issuer.token(&good(&service, "prompts.list")));
            tokio::spawn(async move { ask(&service, &token).await })
        })
        .collect();
    until("the key server was asked", async || issuer.fetches() > 0).await;
    assert_eq!(service.administrator().get("/labels").await.status, 200, "more wait than there are connections");
    assert!(waiting.iter().all(|one| !one.is_finished()));
    for one in waiting {
        let refused = refusal(&one.await.unwrap());
        assert_eq!(refused.2, "JWT rejected: JWKS could not be fetched: no answer within 5 s");
    }
    assert_eq!(issuer.fetches(), 1);
}

#[tokio::test]
async fn keys_given_by_hand_work_and_the_address_guard_and_the_switch_hold() {
    let service = Service::start().await;
    let issuer = Issuer::start().await;
    let settings = "/admin/organisation/auth-settings";
    let refused = service.administrator().put(settings, &json!({ "jwks_url": issuer.url() })).await;
    assert_eq!(refused.status, 400, "plain HTTP needs a trusted host");
    service.administrator().put(settings, &json!({ "jwks_json": issuer.jwks() })).await;
    let token = issuer.token(&good(&service, "prompts.list"));
    assert_eq!(ask(&service, &token).await.status, 200);
    service.administrator().put(settings, &json!({ "jwks_json": { "keys": [] } })).await;
    assert_eq!(ask(&service, &token).await.status, 401, "a changed set counts at once");
    let private = json!({ "jwks_json": null, "jwks_url": "https://10.0.0.1/keys" });
    service.administrator().put(settings, &private).await;
    let message = refusal(&ask(&service, &token).await).2;
    assert!(message.contains("could not be fetched: it points at an address that is not public"), "{message}");
    assert_eq!(issuer.fetches(), 0);
    let off = Service::start_with(&["--jwt-enabled=OFF"]).await;
    let message = refusal(&ask(&off, &token).await).2;
    assert_eq!(message, "JWT rejected: this installation accepts no tokens (JWT_ENABLED)");
}

#[tokio::test]
async fn a_person_known_by_address_has_the_role_they_have_and_others_only_their_scopes() {
    let (service, issuer) = started(&[]).await;
    let member = service.person("member", Some("member")).await;
    let outsider = service.person("member", None).await;
    let email = "SELECT email FROM users WHERE id = $1";
    let mut statuses = Vec::new();
    for user in [Some(member), Some(outsider), Some(service.home.owner_id), None] {
        let address = match user {
            Some(id) => service
                .database
                .client()
                .await
                .query_one(email, &[&id])
                .await
                .unwrap()
                .get::<_, String>(0)
                .to_uppercase(),
            None => "nobody@elsewhere.test".into(),
        };
        let scope = "prompts.list policies.create workspace_users.create";
        let token = issuer.token(&with(good(&service, scope), json!({ "email_id": address })));
        let own = service.client().with_key(&token).get("/api-keys/self").await.json();
        assert_eq!(own["user_id"], json!(user), "{own}");
        statuses.push(own["scopes"].as_array().unwrap().iter().any(|scope| scope == "workspace_users.create"));
    }
    assert_eq!(statuses, [false, false, true, true], "member, outsider, owner, unknown");
}

#[tokio::test]
async fn a_flood_of_bad_tokens_is_a_few_rows_that_stand_for_all_of_them() {
    let (service, issuer) = started(&[]).await;
    let expired = issuer.token(&with(good(&service, "prompts.list"), json!({ "exp": 1 })));
    for _ in 0..60 {
        assert_eq!(ask(&service, &expired).await.status, 401);
    }
    let told = async || {
        let trail = service.trail(service.home.organisation_id).await;
        let rows = trail.into_iter().filter(|row| row["resource_type"] == "jwt");
        rows.map(|row| row["error"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    until("all of them are in the trail", async || told().await.iter().map(|error| times(error)).sum::<u64>() >= 60)
        .await;
    let rows = told().await;
    assert_eq!(rows.iter().map(|error| times(error)).sum::<u64>(), 60, "{rows:?}");
    assert!((30..60).contains(&rows.len()), "{rows:?}");
}

/// For how many tokens a row of the trail stands.
fn times(error: &str) -> u64 {
    let number = |text: &str| text.rsplit([' ', '(']).next().and_then(|word| word.parse().ok());
    let sum = error.split_once(" further tokens").and_then(|(before, _)| number(before));
    sum.or_else(|| error.strip_suffix(" times)").and_then(number)).unwrap_or(1)
}

#[tokio::test]
async fn a_removed_persons_token_is_refused_and_works_again_when_they_come_back() {
    let (service, issuer) = started(&[]).await;
    let member = service.person("member", Some("member")).await;
    let email = service.database.client().await.query_one("SELECT email FROM users WHERE id = $1", &[&member]).await;
    let email: String = email.unwrap().get(0);
    let scope = "prompts.list policies.create workspace_users.create";
    let token = issuer.token(&with(good(&service, scope), json!({ "email_id": email.to_uppercase() })));
    assert_eq!(ask(&service, &token).await.status, 200);
    assert_eq!(service.administrator().delete(&format!("/admin/users/{member}")).await.status, 200);
    let refused = refusal(&ask(&service, &token).await);
    let told = format!("JWT rejected: user {} is not active in this organisation", email.to_uppercase());
    assert_eq!(refused, (401, "AB05".into(), told.clone()));
    let trail = service.trail(service.home.organisation_id).await;
    assert_eq!(trail.last().unwrap()["error"], json!(format!("AB05 {told}")));
    service
        .sql(&format!(
            "INSERT INTO users (organisation_id, email, role)
                          VALUES ('{}', '{email}', 'admin')",
            service.home.organisation_id
        ))
        .await;
    assert_eq!(ask(&service, &token).await.status, 200, "somebody of this address is active");
}

#[tokio::test]
async fn issuer_and_audience_of_a_token_are_those_that_the_organisation_names() {
    let (service, issuer) = started(&[]).await;
    let rules = json!({ "jwt_issuer": "https://id.test", "jwt_audiences": ["gateway"] });
    let settings = "/admin/organisation/auth-settings";
    let shown = service.administrator().put(settings, &rules).await.json();
    assert_eq!((&shown["jwt_issuer"], &shown["jwt_audiences"]), (&rules["jwt_issuer"], &rules["jwt_audiences"]));
    let token = |changes: Value| issuer.token(&with(good(&service, "prompts.list"), changes));
    for (claims, message) in [
        (json!({ "iss": "https://id.test", "aud": ["other", "gateway"] }), None),
        (json!({ "iss": "https://id.test", "aud": "gateway" }), None),
        (json!({ "iss": "https://id.test" }), Some("claim aud names nobody whose tokens this organisation accepts")),
        (json!({ "iss": "https://id.test", "aud": "other" }), Some("claim aud names nobody whose tokens")),
        (json!({ "iss": "https://evil.test", "aud": "gateway" }), Some("issuer https://evil.test is not the one")),
        (json!({ "aud": "gateway" }), Some("issuer (none) is not the one")),
    ] {
        let answer = ask(&service, &token(claims.clone())).await;
        assert_eq!(answer.status, if message.is_none() { 200 } else { 401 }, "{claims}");
        if let Some(message) = message {
            let told = refusal(&answer).2;
            assert!(told.starts_with(&format!("JWT rejected: {message}")), "{claims}: {told}");
        }
    }
    service.administrator().put(settings, &json!({ "jwt_issuer": null, "jwt_audiences": null })).await;
    assert_eq!(ask(&service, &token(json!({}))).await.status, 200);
}
