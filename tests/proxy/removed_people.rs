//! Somebody whom the identity provider removes is out everywhere: keys at every proxy, and the session.

use harness::{Client, Stack, chat, client::whole};
use http::Method;
use serde_json::json;
use shared::identity::api_key::KeyHash;
use uuid::Uuid;

const TOKEN: &str = "scim-0123456789abcdef0123456789abcdef";
const SESSION: &str = "session-of-the-person-0123456789";

/// A session as a login would begin it.
async fn sign_in(stack: &Stack, user: Uuid) -> Client {
    const START: &str = "INSERT INTO sessions (organisation_id, user_id, hash, provider, csrf_token)
        VALUES ($1, $2, $3, 'saml', 'c')";
    let hash = KeyHash::from_key(SESSION.as_bytes()).0.to_vec();
    stack.database.client().await.execute(START, &[&stack.home.id, &user, &hash]).await.unwrap();
    stack.anonymous().with("cookie", format!("gateway_session={SESSION}"))
}

#[tokio::test]
async fn a_person_deactivated_by_scim_loses_keys_and_session_on_every_replica() {
    let stack = Stack::start().await;
    let replica = stack.replica().await;
    let admin = stack.administrator();
    let settings = json!({ "scim": { "enabled": true, "token": TOKEN } });
    assert_eq!(admin.put("/admin/organisation/auth-settings", &settings).await.status, 200);
    // The identity provider knows the proxy's address alone.
    let idp = stack.anonymous().with("authorization", format!("Bearer {TOKEN}"));
    let made = idp.post("/scim/Users", &json!({ "userName": "ada@acme.test" })).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let user = made.json()["id"].as_str().unwrap().to_owned();
    let members = format!("/admin/workspaces/{}/users", stack.home.workspace_id);
    let joined = admin.post(&members, &json!({ "users": [{ "id": user, "role": "member" }] })).await;
    assert_eq!(joined.status, 200, "{}", joined.text());
    let key = json!({
        "name": "own", "user_id": user, "workspace_id": stack.home.workspace_id, "scopes": ["completions.write"],
    });
    let key = admin.post("/api-keys/workspace/user", &key).await;
    assert_eq!(key.status, 200, "{}", key.text());
    let here = stack.as_application(key.json()["key"].as_str().unwrap());
    let there = here.at(&replica.base_url);
    let browser = sign_in(&stack, user.parse().unwrap()).await;
    let answers = async |client: &Client| client.post("/chat/completions", &chat("Hello")).await.status.as_u16();
    stack.until("both know the key", async || answers(&here).await == 200 && answers(&there).await == 200).await;
    assert_eq!(browser.get("/auth/session").await.status, 200);

    let off = json!({ "Operations": [{ "op": "Replace", "path": "active", "value": "False" }] });
    let off = whole(idp.request(Method::PATCH, &format!("/scim/Users/{user}")).json(&off)).await;
    assert_eq!(off.status, 200, "{}", off.text());
    assert_eq!(browser.get("/auth/session").await.status, 401, "at once: every call looks its session up");
    stack.until("both refuse the key", async || answers(&here).await == 401 && answers(&there).await == 401).await;
}

#[tokio::test]
async fn what_is_below_scim_and_not_there_is_said_in_its_words_through_the_proxy() {
    let stack = Stack::start().await;
    let idp = stack.anonymous().with("authorization", format!("Bearer {TOKEN}"));
    for (method, path, status) in [
        (Method::GET, "/scim/0b0cb1f4-8a52-4c0e-8f0e-7a1f2f1f0a11", "404"),
        (Method::POST, "/scim/.search", "501"),
        (Method::POST, "/scim/Users/.search", "405"),
    ] {
        let answer = whole(idp.request(method, path).json(&json!({}))).await;
        let body = answer.json();
        assert_eq!((answer.status.as_str(), &body["status"]), (status, &json!(status)), "{path}: {body}");
        assert_eq!(body["schemas"][0], "urn:ietf:params:scim:api:messages:2.0:Error");
    }
}
