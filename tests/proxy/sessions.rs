//! A person's cookie at the proxy: the control plane takes it through the relay, inference never does, and no provider
//! ever sees it.

use harness::{Client, Stack, chat};
use serde_json::json;
use shared::identity::api_key::{self, KeyHash};

/// The owner, signed in by a link: with their cookie, and with what calls repeat that change something.
async fn signed_in(stack: &Stack) -> (Client, Client) {
    let token = api_key::generate("");
    let insert = "INSERT INTO login_links (hash, organisation_id, user_id, expires_at)
        SELECT $1::bytea, organisation_id, id, now() + interval '10 minutes'
        FROM users WHERE organisation_id = $2 AND role = 'owner'";
    let hash = KeyHash::from_key(token.as_bytes()).0.to_vec();
    assert_eq!(stack.database.client().await.execute(insert, &[&hash, &stack.home.id]).await.unwrap(), 1);
    let signed_in = stack.anonymous().post("/auth/sessions", &json!({ "token": token })).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text());
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap().to_owned();
    let person = stack.anonymous().with("cookie", cookie);
    let session = person.get("/auth/session").await;
    assert_eq!(session.status, 200, "{}", session.text());
    let csrf = session.json()["csrf_token"].as_str().unwrap().to_owned();
    let acting = person.with("x-gateway-csrf-token", csrf);
    (person, acting)
}

#[tokio::test]
async fn a_session_opens_the_control_plane_through_the_proxy_and_no_inference() {
    let stack = Stack::start().await;
    let page = Client::new(stack.base_url.trim_end_matches("/v1")).get("/auth/link").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let (person, acting) = signed_in(&stack).await;
    let made = acting.post("/labels", &json!({ "name": "through-the-proxy" })).await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(person.post("/labels", &json!({ "name": "without-the-token" })).await.status, 403);
    for path in ["/chat/completions", "/embeddings", "/fine_tuning/jobs"] {
        let refused = person.with("x-gateway-provider", "openai").post(path, &chat("Hello")).await;
        assert_eq!(refused.status, 401, "{path}: {}", refused.text());
    }
}

#[tokio::test]
async fn a_key_of_a_session_calls_models_until_the_session_ends() {
    let stack = Stack::start().await;
    let (_, acting) = signed_in(&stack).await;
    let made = acting.post("/auth/session/key", &json!({})).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let key = stack.anonymous().with("x-gateway-api-key", made.json()["key"].as_str().unwrap());
    stack.until("the proxy knows the key", async || key.get("/models").await.status == 200).await;
    for refused in [key.get("/configs").await, key.post("/auth/session/key", &json!({})).await] {
        assert!(matches!(refused.status.as_u16(), 401 | 403), "{}", refused.text());
    }
    let again = acting.post("/auth/session/key", &json!({})).await;
    let second = stack.anonymous().with("x-gateway-api-key", again.json()["key"].as_str().unwrap());
    stack.until("the proxy knows the second", async || second.get("/models").await.status == 200).await;
    let expire = format!(
        "UPDATE api_keys SET expires_at = now() - interval '1 second' WHERE id = '{}'",
        again.json()["id"].as_str().unwrap()
    );
    stack.database.client().await.batch_execute(&expire).await.unwrap();
    stack.until("a quarter of an hour is over", async || second.get("/models").await.status == 401).await;
    assert_eq!(key.get("/models").await.status, 200);
    assert_eq!(acting.post("/auth/logout", &json!({})).await.status, 200);
    stack.until("the key ended with the session", async || key.get("/models").await.status == 401).await;
}
