//! What goes to a server besides the message: what its integration keeps, what it wants of the client, who is asking.

use super::{call, greeting, serve, session};
use base64::Engine as _;
use harness::issuer::claims;
use harness::{Issuer, Stack};
use serde_json::{Value, json};

#[tokio::test]
async fn headers_that_are_kept_open_a_closed_server_and_are_shown_nowhere() {
    let stack = Stack::start().await;
    let kept = json!({ "auth_type": "headers", "configurations": { "custom_headers": { "x-key": "open-sesame" } } });
    let client = serve(&stack, "vault", "closed", kept).await;
    let client = session(&client, "/vault/mcp").await;
    assert_eq!(client.post("/vault/mcp", &call(1, "echo", "x")).await.json()["error"], Value::Null);
    let asked = stack.mock.requests();
    assert!(asked.iter().all(|one| one.header("x-key") == "open-sesame"));
    let refused = serve(&stack, "shut", "closed", json!({})).await;
    let answer = refused.post("/shut/mcp", &greeting()).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["error"]["code"]), (200, &json!(-32051)), "{}", answer.text());
    assert_eq!(answer.header("www-authenticate"), "", "it is not the client's key that is refused");
}

#[tokio::test]
async fn headers_of_the_client_pass_where_they_are_named_and_never_its_key() {
    let stack = Stack::start().await;
    let named = json!({ "configurations": {
        "passthrough_headers": ["x-tenant", "authorization"],
        "user_identity_forwarding": { "method": "claims_header", "include_claims": ["sub", "workspace_id"] },
    } });
    let client = serve(&stack, "tools", "stateless", named).await;
    client
        .with("x-tenant", "red")
        .with("x-other", "no")
        .with("authorization", "Bearer theirs")
        .post("/tools/mcp", &call(1, "echo", "x"))
        .await;
    let asked = stack.mock.requests();
    let one = asked.last().unwrap();
    assert_eq!(
        (one.header("x-tenant"), one.header("authorization"), one.header("x-other")),
        ("red", "Bearer theirs", "")
    );
    let claims: Value = serde_json::from_str(one.header("x-user-claims")).unwrap();
    assert_eq!(claims["workspace_id"], stack.home.workspace_id.to_string());
    assert_eq!(claims.as_object().unwrap().len(), 2, "{claims}");
    let key = &stack.home.workspace_key;
    let accept = "application/json, text/event-stream";
    let bearer = stack.anonymous().at(stack.base_url.trim_end_matches("/v1")).with("accept", accept);
    let bearer = bearer.with("authorization", format!("Bearer {key}")).with("x-tenant", format!("my key is {key}"));
    assert_eq!(bearer.post("/tools/mcp", &call(2, "echo", "x")).await.status, 200);
    let asked = stack.mock.requests();
    let one = asked.last().unwrap();
    assert_eq!((one.header("x-tenant"), one.header("authorization")), ("", ""));
}

#[tokio::test]
async fn a_server_that_knows_people_wants_them_connected() {
    let stack = Stack::start().await;
    let client = serve(&stack, "theirs", "closed", json!({ "auth_type": "oauth_auto" })).await;
    let said = client.post("/theirs/mcp", &greeting()).await.json();
    assert_eq!(said["error"]["code"], -32051, "{said}");
    assert!(said["error"]["message"].as_str().unwrap().contains("no person"), "{said}");
}

#[tokio::test]
async fn a_signed_identity_is_verified_with_the_keys_of_the_organisation() {
    let stack = Stack::start().await;
    let signed = json!({ "configurations": { "user_identity_forwarding": { "method": "jwt_header" } } });
    let client = serve(&stack, "tools", "stateless", signed).await;
    assert_eq!(client.post("/tools/mcp", &call(1, "echo", "x")).await.json()["error"], Value::Null);
    let token = stack.mock.requests().last().unwrap().header("x-user-jwt").to_owned();
    let parts: Vec<Vec<u8>> =
        token.split('.').map(|part| base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(part).unwrap()).collect();
    let [head, claims] = [0, 1].map(|place: usize| serde_json::from_slice::<Value>(&parts[place]).unwrap());
    assert_eq!(claims["workspace_id"], stack.home.workspace_id.to_string());
    assert_eq!(claims["aud"], format!("{}/mcp/stateless", stack.mock.origin()));
    let root = stack.anonymous().at(stack.base_url.trim_end_matches("/v1"));
    let keys = root.get(&format!("/.well-known/mcp-keys/{}", stack.home.id)).await.json();
    let key = keys["keys"].as_array().unwrap().iter().find(|key| key["kid"] == head["kid"]).unwrap();
    let number = |name: &str| {
        let bytes = base64::prelude::BASE64_URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
        openssl::bn::BigNum::from_slice(&bytes).unwrap()
    };
    let group = openssl::ec::EcGroup::from_curve_name(openssl::nid::Nid::X9_62_PRIME256V1).unwrap();
    let public = openssl::ec::EcKey::from_public_key_affine_coordinates(&group, &number("x"), &number("y")).unwrap();
    let half = |range| openssl::bn::BigNum::from_slice(&parts[2][range]).unwrap();
    let signature = openssl::ecdsa::EcdsaSig::from_private_components(half(0..32), half(32..64)).unwrap();
    let text = token.rsplit_once('.').unwrap().0;
    assert!(signature.verify(&openssl::sha::sha256(text.as_bytes()), &public).unwrap());
    let nobody = root.get(&format!("/.well-known/mcp-keys/{}", uuid::Uuid::new_v4())).await.json();
    assert_eq!(nobody["keys"], json!([]));
}

/// Every way in which an integration can ask for what the client sent, with every kind of credential of ours.
#[tokio::test]
async fn what_opens_the_gateway_goes_to_no_server_whichever_rule_asks_for_it() {
    let stack = Stack::builder().proxy("HEADER_PREFIX_ALIASES", "x-alias-").start().await;
    let (issuer, stranger) = (Issuer::start().await, Issuer::start().await);
    crate::tokens::accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    let own = claims(stack.home.id, &stack.home.workspace_id.to_string(), "mcp.invoke");
    let (token, second) = (issuer.token(&own), issuer.token(&json!({ "gateway_oid": stack.home.id, "gateway_workspace": stack.home.workspace_id, "scope": "mcp.invoke", "sub": "other", "exp": chrono::Utc::now().timestamp() + 200 })));
    let unsigned = stranger.token(&own);
    let foreign = stranger.token(&json!({ "iss": "https://elsewhere.test", "sub": "ada", "aud": "them" }));
    let key = stack.home.workspace_key.clone();
    let other_key = stack.key(&["mcp.invoke"]).await;
    let wanted = json!(["authorization", "x-token", "x-alias-api-key", "cookie"]);
    let rules = [
        json!({ "user_identity_forwarding": { "method": "bearer" } }),
        json!({ "passthrough_headers": wanted }),
        json!({ "forward_headers": { "mode": "allow", "headers": wanted } }),
        json!({ "passthrough_headers": wanted, "user_identity_forwarding": { "method": "bearer" } }),
    ];
    for (number, rule) in rules.into_iter().enumerate() {
        let slug = format!("tools{number}");
        serve(&stack, &slug, "stateless", json!({ "configurations": rule })).await;
        let root = stack.anonymous().at(stack.base_url.trim_end_matches("/v1"));
        let root = root.with("accept", "application/json, text/event-stream");
        let bearer = |text: &str| format!("Bearer {text}");
        let clients = [
            (root.with("authorization", bearer(&token)), None),
            (root.with("x-gateway-api-key", &*token), None),
            (root.with("x-gateway-api-key", &*key).with("authorization", bearer(&second)), None),
            (root.with("x-gateway-api-key", &*key).with("authorization", bearer(&unsigned)), None),
            (root.with("x-gateway-api-key", &*key).with("authorization", bearer(&other_key)), None),
            (root.with("x-alias-api-key", &*key).with("x-token", format!("a={token}; b={other_key}")), None),
            (root.with("x-gateway-api-key", &*key).with("cookie", "__Host-gateway_session=abc"), None),
            (root.with("x-gateway-api-key", &*key).with("authorization", bearer(&foreign)), Some(&foreign)),
        ];
        for (place, (client, passes)) in clients.into_iter().enumerate() {
            stack.mock.reset();
            let said = client.post(&format!("/{slug}/mcp"), &call(1, "echo", "x")).await;
            assert_eq!(said.json()["result"]["content"][0]["text"], "x", "{number} {place}: {}", said.text());
            let asked = stack.mock.requests();
            let all = format!("{:?}", asked[0].headers);
            for secret in [&token, &second, &unsigned, &key, &other_key] {
                assert!(!all.contains(secret.as_str()), "{number} {place}: {all}");
            }
            assert!(!all.contains("gateway_session") && !all.contains("x-alias"), "{number} {place}: {all}");
            assert_eq!(passes.is_some(), all.contains(&foreign), "{number} {place}: {all}");
        }
    }
}

#[tokio::test]
async fn a_save_says_that_bearer_never_sends_what_opens_the_gateway() {
    let stack = Stack::start().await;
    let admin = stack.administrator();
    for (method, has_warning) in [("bearer", true), ("jwt_header", false)] {
        let body = json!({
            "name": method, "slug": method.replace('_', "-"), "url": "http://127.0.0.1:9/mcp", "auth_type": "none",
            "transport": "http", "configurations": { "user_identity_forwarding": { "method": method } },
        });
        let made = admin.post("/mcp-integrations", &body).await;
        assert_eq!(made.status, 200, "{}", made.text());
        let changed =
            admin.put(&format!("/mcp-integrations/{}", body["slug"].as_str().unwrap()), &json!({ "name": "n" })).await;
        for answer in [made, changed] {
            let warnings = answer.json()["warnings"].clone();
            assert_eq!(warnings.to_string().contains("never sent"), has_warning, "{warnings}");
            assert_eq!(answer.header("x-gateway-warnings").contains("never sent"), has_warning);
        }
    }
}
