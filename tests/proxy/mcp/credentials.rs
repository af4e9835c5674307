//! What goes to a server besides the message: what its integration keeps, what it wants of the client, who is asking.

use super::{call, greeting, serve, session};
use base64::Engine as _;
use harness::Stack;
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
