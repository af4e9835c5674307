//! Tokens (JWT) on the data plane: they pass like a key of their workspace, each refusal says why and reaches the
//! audit trail, and keys are fetched once however many ask.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::Utc;
use harness::issuer::{Issuer, Serving, claims};
use harness::{Answer, Client, Stack, chat};
use openssl::bn::{BigNum, BigNumContext};
use openssl::ec::{EcGroup, EcKey};
use openssl::ecdsa::EcdsaSig;
use openssl::hash::MessageDigest;
use openssl::nid::Nid;
use openssl::pkey::PKey;
use serde_json::{Value, json};
use uuid::Uuid;

const SCOPE: &str = "completions.write";

async fn started() -> (Stack, Issuer) {
    let (stack, issuer) = (Stack::start().await, Issuer::start().await);
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    (stack, issuer)
}

/// Changes whose tokens the first organisation accepts, and waits until the proxy knows.
pub async fn accept(stack: &Stack, settings: &Value) {
    // Not through the proxy, which may still be looking for a live admin.
    let administrator = Client::new(&stack.admin_url).with_key(&stack.home.admin_key);
    let answer = administrator.put("/admin/organisation/auth-settings", settings).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let changed = "SELECT changed_xid::text FROM organisations WHERE id = $1";
    let changed = stack.database.client().await.query_one(changed, &[&stack.home.id]).await.unwrap();
    let changed: f64 = changed.get::<_, &str>(0).parse().unwrap();
    let arrived = async || stack.metric("gateway_snapshot_cursor").await.is_some_and(|cursor| cursor > changed);
    stack.until("the change has arrived", arrived).await;
}

async fn ask(stack: &Stack, token: &str) -> Answer {
    stack.as_application(token).post("/chat/completions", &chat("x")).await
}

fn good(stack: &Stack) -> Value {
    claims(stack.home.id, &stack.home.workspace_id.to_string(), SCOPE)
}

fn with(mut claims: Value, changes: Value) -> Value {
    for (name, value) in changes.as_object().unwrap() {
        claims[name] = value.clone();
    }
    claims
}

/// The recorded failures of an organisation: error, mask, status and request id.
async fn recorded(stack: &Stack, organisation: Uuid) -> Vec<(String, String, i32, Option<Uuid>)> {
    const TRAIL: &str = "SELECT error, resource_id, response_status_code, request_id FROM audit_logs
                         WHERE organisation_id = $1 AND resource_type = 'jwt' AND action = 'authenticate'";
    let rows = stack.database.client().await.query(TRAIL, &[&organisation]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1), row.get(2), row.get(3))).collect()
}

#[tokio::test]
async fn a_token_passes_like_a_key_of_its_workspace_in_every_place_a_key_may_stand() {
    let (stack, issuer) = started().await;
    let slug = "SELECT slug FROM workspaces WHERE id = $1";
    let slug = stack.database.client().await.query_one(slug, &[&stack.home.workspace_id]).await.unwrap();
    for workspace in [slug.get::<_, String>(0), stack.home.workspace_id.to_string()] {
        let token = issuer.token(&claims(stack.home.id, &workspace, SCOPE));
        for path in ["/chat/completions", "/rerank"] {
            let answer = stack.as_application(&token).post(path, &chat("x")).await;
            assert!(answer.status != 401 && answer.status != 403, "{path}: {}", answer.text());
        }
        let bearer = stack.anonymous().with("authorization", format!("Bearer {token}"));
        let answer = bearer.post("/chat/completions", &chat("x")).await;
        assert_eq!(answer.json()["error"]["code"], "missing_provider", "{}", answer.text());
    }
    assert_eq!(issuer.fetches(), 1, "the keys are kept");
    assert!(stack.mock.requests().iter().all(|request| !format!("{request:?}").contains("eyJ")), "no token leaves");
    assert!(recorded(&stack, stack.home.id).await.is_empty());
}

#[tokio::test]
async fn every_bad_token_is_told_why_and_reaches_the_trail() {
    let (stack, issuer) = started().await;
    let (stranger, other, now) = (Issuer::start().await, stack.organisation().await, Utc::now().timestamp());
    let changed = |changes: Value| issuer.token(&with(good(&stack), changes));
    let headed = |header: Value| issuer.sign(&header, &good(&stack));
    let token = issuer.token(&good(&stack));
    let [head, body, _] = token.split('.').collect::<Vec<_>>()[..] else { panic!("{token}") };
    let none = URL_SAFE_NO_PAD.encode(json!({ "alg": "none", "kid": "k1" }).to_string());
    let secret = PKey::hmac(&issuer.public_pem()).unwrap();
    let mut hmac = openssl::sign::Signer::new(MessageDigest::sha256(), &secret).unwrap();
    let confused = URL_SAFE_NO_PAD.encode(hmac.sign_oneshot_to_vec(format!("{head}.{body}").as_bytes()).unwrap());
    let foreign = other.workspace_id.to_string();
    let rows = [
        (format!("{head}.{body}"), 401, "invalid_api_key", "malformed token".to_owned()),
        (format!("{none}.{body}."), 401, "invalid_api_key", "algorithm none is not one of RS256".into()),
        (format!("{head}.{body}.{confused}"), 401, "invalid_api_key", "signature does not match".into()),
        (
            headed(json!({ "alg": "HS256", "kid": "k1" })),
            401,
            "invalid_api_key",
            "algorithm HS256 is not one of RS256".into(),
        ),
        (headed(json!({ "alg": "RS256" })), 401, "invalid_api_key", "header has no kid".into()),
        (
            headed(json!({ "alg": "RS256", "kid": "k9" })),
            401,
            "invalid_api_key",
            "no key in the JWKS matches kid k9".into(),
        ),
        (stranger.token(&good(&stack)), 401, "invalid_api_key", "signature does not match".into()),
        (changed(json!({ "exp": null })), 401, "invalid_api_key", "no exp claim".into()),
        (changed(json!({ "exp": now - 90 })), 401, "expired_api_key", "expired at".into()),
        (changed(json!({ "nbf": now + 3600 })), 401, "invalid_api_key", "not valid before".into()),
        (changed(json!({ "gateway_oid": Uuid::new_v4() })), 401, "invalid_api_key", "unknown organisation".into()),
        (changed(json!({ "gateway_oid": other.id })), 403, "insufficient_scope", "organisation has no JWKS".into()),
        (changed(json!({ "gateway_workspace": null })), 403, "workspace_mismatch", "workspace (none) is not".into()),
        (
            changed(json!({ "gateway_workspace": foreign })),
            403,
            "workspace_mismatch",
            format!("workspace {foreign} is not"),
        ),
        (changed(json!({ "scope": "nonsense" })), 403, "insufficient_scope", "no usable scope".into()),
        (changed(json!({ "usage_limits": { "credit_limt": 1 } })), 401, "invalid_api_key", "claim usage_limits".into()),
    ];
    let mut expected = Vec::new();
    for (token, status, code, message) in &rows {
        let answer = ask(&stack, token).await;
        let error = &answer.json()["error"];
        let told = error["message"].as_str().unwrap();
        assert!(told.starts_with(&format!("JWT rejected: {message}")), "{message}: {told}");
        assert_eq!((answer.status.as_u16(), error["code"].as_str()), (*status, Some(*code)), "{message}");
        let request: Uuid = answer.header("x-gateway-request-id").parse().unwrap();
        // The organisation is not known before the header is right, and there are two.
        if !["malformed", "algorithm", "header", "unknown"].iter().any(|unknown| message.starts_with(unknown)) {
            let mask = format!("{}*****{}", &token[..2], &token[token.len() - 2..]);
            expected.push((message.clone(), mask, i32::from(*status), request));
        }
    }
    let narrow = ask(&stack, &changed(json!({ "scope": "logs.view" }))).await;
    assert_eq!((narrow.status.as_u16(), &narrow.json()["error"]["code"]), (403, &json!("insufficient_scope")));
    let just_expired = changed(json!({ "exp": Utc::now().timestamp() - 20 }));
    assert_eq!(ask(&stack, &just_expired).await.status, 200, "a minute of leeway");
    assert!(stack.mock.requests().len() == 1, "no refused request goes further");
    stack
        .until("all are in the trail", async || {
            let found = [recorded(&stack, stack.home.id).await, recorded(&stack, other.id).await].concat();
            expected.iter().all(|(message, mask, status, request)| {
                let has = |(error, shown, code, id): &(String, String, i32, Option<Uuid>)| {
                    let is_same = error.contains(message.as_str()) && code == status;
                    // Equal failures of a second share a row, which names the first of them.
                    is_same && (id == &Some(*request) && shown == mask || error.ends_with("times)"))
                };
                found.iter().any(has)
            })
        })
        .await;
}

#[tokio::test]
async fn a_rotation_is_followed_by_one_fetch_under_a_hundred_requests_and_an_outage_changes_nothing() {
    let (stack, issuer) = started().await;
    assert_eq!(ask(&stack, &issuer.token(&good(&stack))).await.status, 200);
    issuer.rotate("k2");
    let before = issuer.fetches();
    let tokens: Vec<_> = (0..100).map(|n| issuer.token(&with(good(&stack), json!({ "jti": n.to_string() })))).collect();
    let answers = futures::future::join_all(tokens.iter().map(|token| ask(&stack, token))).await;
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(issuer.fetches() - before, 1);
    issuer.serve(Serving::Status(503));
    assert_eq!(ask(&stack, &issuer.token(&good(&stack))).await.status, 200, "keys outlive their server");
}

#[tokio::test]
async fn a_key_server_that_misbehaves_is_named_and_harms_no_key() {
    let (stack, issuer) = started().await;
    for (serving, why) in [
        (Serving::Status(500), "it answered 500"),
        (Serving::Redirect, "it answered 302"),
        (Serving::Garbage, "it is not JSON"),
        (Serving::Huge, "the answer is too long"),
        (Serving::HangUp, "the connection failed (reset)"),
        (Serving::Silence, "no answer within 5 s"),
    ] {
        issuer.serve(serving);
        accept(&stack, &json!({ "jwks_url": format!("{}&case={}", issuer.url(), Uuid::new_v4()) })).await;
        let (token, client, body) = (issuer.token(&good(&stack)), stack.client(), chat("x"));
        let (refused, plain) = tokio::join!(ask(&stack, &token), client.post("/chat/completions", &body));
        assert_eq!(plain.status, 200, "{serving:?}");
        let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
        assert_eq!(message, format!("JWT rejected: JWKS could not be fetched: {why}"), "{serving:?}");
    }
}

#[tokio::test]
async fn changed_settings_and_an_archived_workspace_end_a_token_that_worked() {
    let (stack, issuer) = started().await;
    accept(&stack, &json!({ "jwks_url": null, "jwks_json": issuer.jwks() })).await;
    let token = issuer.token(&good(&stack));
    assert_eq!(ask(&stack, &token).await.status, 200);
    assert_eq!(issuer.fetches(), 0, "keys given by hand are not fetched");
    accept(&stack, &json!({ "jwks_json": { "keys": [] } })).await;
    stack.until("the old keys are gone", async || ask(&stack, &token).await.status == 401).await;
    accept(&stack, &json!({ "jwks_json": issuer.jwks() })).await;
    stack.until("they are back", async || ask(&stack, &token).await.status == 200).await;
    let archive = "UPDATE workspaces SET status = 'archived', is_default = false; NOTIFY gateway_changes";
    stack.database.client().await.batch_execute(archive).await.unwrap();
    stack.until("the workspace is gone", async || ask(&stack, &token).await.status == 403).await;
}

#[tokio::test]
async fn a_flood_of_bad_tokens_is_a_few_rows_that_stand_for_all_of_them() {
    let (stack, issuer) = started().await;
    let token = issuer.token(&good(&stack));
    for n in 0..200 {
        // Each differs, so that none is like the one before.
        assert_eq!(ask(&stack, &issuer.token(&with(good(&stack), json!({ "exp": n })))).await.status, 401);
    }
    let told = async || recorded(&stack, stack.home.id).await.iter().map(|row| times(&row.0)).sum::<u64>();
    stack.until("all of them are in the trail", async || told().await >= 200).await;
    let rows = recorded(&stack, stack.home.id).await;
    assert_eq!(rows.iter().map(|row| times(&row.0)).sum::<u64>(), 200, "{rows:?}");
    assert!((30..150).contains(&rows.len()), "{}", rows.len());
    assert!(rows.iter().any(|row| row.0.contains("further tokens (expired ")), "{rows:?}");
    assert_eq!(stack.metric("gateway_jwt_failures_unrecorded_total").await, Some(0.0));
    assert_eq!(ask(&stack, &token).await.status, 200);
}

/// For how many tokens a row of the trail stands.
fn times(error: &str) -> u64 {
    let number = |text: &str| text.rsplit([' ', '(']).next().and_then(|word| word.parse().ok());
    let sum = error.split_once(" further tokens").and_then(|(before, _)| number(before));
    sum.or_else(|| error.strip_suffix(" times)").and_then(number)).unwrap_or(1)
}

#[tokio::test]
async fn tokens_can_be_switched_off_and_made_for_another_system() {
    let issuer = Issuer::start().await;
    let off = Stack::builder().proxy("JWT_ENABLED", "OFF").start().await;
    let message = ask(&off, &issuer.token(&good(&off))).await.json()["error"]["message"].clone();
    assert_eq!(message, "JWT rejected: this installation accepts no tokens (JWT_ENABLED)");
    let stack = Stack::builder()
        .proxy("JWT_ORG_CLAIMS", "tenant")
        .proxy("JWT_WORKSPACE_CLAIMS", "team")
        .proxy("JWT_SCOPE_PREFIXES", "acme:")
        .start()
        .await;
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    let foreign = json!({
        "tenant": stack.home.id, "team": stack.home.workspace_id, "scope": "openid acme:completions.write",
        "exp": Utc::now().timestamp() + 60,
    });
    assert_eq!(ask(&stack, &issuer.token(&foreign)).await.status, 200);
}

#[tokio::test]
async fn a_removed_persons_token_stops_although_it_was_verified_a_moment_ago() {
    let (stack, issuer) = started().await;
    let add = "INSERT INTO users (organisation_id, email, role) VALUES ($1, 'Ada@Home.test', 'member') RETURNING id";
    let ada: Uuid = stack.database.client().await.query_one(add, &[&stack.home.id]).await.unwrap().get(0);
    let [token, other] =
        ["ada@home.test", "bob@home.test"].map(|email| issuer.token(&with(good(&stack), json!({ "email_id": email }))));
    for token in [&token, &other] {
        assert_eq!(ask(&stack, token).await.status, 200);
    }
    assert_eq!(stack.administrator().delete(&format!("/admin/users/{ada}")).await.status, 200);
    stack.until("the token is refused", async || ask(&stack, &token).await.status == 401).await;
    let refused = ask(&stack, &token).await.json();
    assert_eq!(refused["error"]["message"], "JWT rejected: user ada@home.test is not active in this organisation");
    assert_eq!(ask(&stack, &other).await.status, 200, "nobody knows them, so nobody removed them");
    stack.database.client().await.query_one(add, &[&stack.home.id]).await.unwrap();
    stack.until("they are back", async || ask(&stack, &token).await.status == 200).await;
}

#[tokio::test]
async fn issuer_and_audience_are_those_that_the_organisation_names() {
    let (stack, issuer) = started().await;
    let plain = issuer.token(&good(&stack));
    assert_eq!(ask(&stack, &plain).await.status, 200);
    accept(&stack, &json!({ "jwt_issuer": "https://id.test", "jwt_audiences": ["gateway"] })).await;
    stack.until("the rules hold", async || ask(&stack, &plain).await.status == 401).await;
    for (claims, status) in [
        (json!({ "iss": "https://id.test", "aud": ["gateway"] }), 200),
        (json!({ "iss": "https://id.test", "aud": "other" }), 401),
        (json!({ "iss": "https://other.test", "aud": "gateway" }), 401),
    ] {
        let answer = ask(&stack, &issuer.token(&with(good(&stack), claims.clone()))).await;
        assert_eq!(answer.status, status, "{claims}: {}", answer.text());
    }
}

#[tokio::test]
async fn a_key_that_left_the_set_ends_the_tokens_that_it_signed_as_soon_as_the_set_is_read_anew() {
    let (stack, issuer) = started().await;
    let old = issuer.token(&good(&stack));
    assert_eq!(ask(&stack, &old).await.status, 200);
    issuer.rotate("k2");
    assert_eq!(ask(&stack, &issuer.token(&good(&stack))).await.status, 200, "an unknown key id is looked for");
    let refused = ask(&stack, &old).await;
    assert_eq!(refused.status, 401, "it was remembered as verified: {}", refused.text());
}

#[tokio::test]
async fn tokens_of_elliptic_and_edwards_keys_pass_like_others() {
    let stack = Stack::start().await;
    let elliptic = EcKey::generate(&EcGroup::from_curve_name(Nid::X9_62_PRIME256V1).unwrap()).unwrap();
    let (mut x, mut y) = (BigNum::new().unwrap(), BigNum::new().unwrap());
    let mut context = BigNumContext::new().unwrap();
    elliptic.public_key().affine_coordinates(elliptic.group(), &mut x, &mut y, &mut context).unwrap();
    let edwards = PKey::generate_ed25519().unwrap();
    let written = |bytes: Vec<u8>| URL_SAFE_NO_PAD.encode(bytes);
    let number = |number: &BigNum| written(number.to_vec_padded(32).unwrap());
    let keys = json!([
        { "kid": "e", "kty": "EC", "crv": "P-256", "alg": "ES256", "x": number(&x), "y": number(&y) },
        { "kid": "d", "kty": "OKP", "crv": "Ed25519", "x": written(edwards.raw_public_key().unwrap()) },
    ]);
    accept(&stack, &json!({ "jwks_json": { "keys": keys } })).await;
    let message =
        |header: Value| format!("{}.{}", written(header.to_string().into()), written(good(&stack).to_string().into()));
    let by_ellipse = message(json!({ "alg": "ES256", "kid": "e" }));
    let signature = EcdsaSig::sign(&openssl::sha::sha256(by_ellipse.as_bytes()), &elliptic).unwrap();
    let padded = |number: &openssl::bn::BigNumRef| number.to_vec_padded(32).unwrap();
    let numbers = [padded(signature.r()), padded(signature.s())].concat();
    let by_edwards = message(json!({ "alg": "EdDSA", "kid": "d" }));
    let mut signer = openssl::sign::Signer::new_without_digest(&edwards).unwrap();
    let signed = signer.sign_oneshot_to_vec(by_edwards.as_bytes()).unwrap();
    for (token, status) in [
        (format!("{by_ellipse}.{}", written(numbers)), 200),
        (format!("{by_edwards}.{}", written(signed.clone())), 200),
        (format!("{by_ellipse}.{}", written(signature.to_der().unwrap())), 401),
        (format!("{by_ellipse}.{}", written(signed)), 401),
    ] {
        let answer = ask(&stack, &token).await;
        assert_eq!(answer.status, status, "{}", answer.text());
    }
}
