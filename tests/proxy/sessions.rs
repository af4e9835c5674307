//! A person's cookie at the proxy: the control plane takes it through the relay, inference never does, and no provider
//! ever sees it.

use harness::{Client, Stack, chat};
use serde_json::json;
use shared::identity::api_key::{self, KeyHash};

#[tokio::test]
async fn a_session_opens_the_control_plane_through_the_proxy_and_no_inference() {
    let stack = Stack::start().await;
    let token = api_key::generate("");
    let insert = "INSERT INTO login_links (hash, organisation_id, user_id, expires_at)
        SELECT $1::bytea, organisation_id, id, now() + interval '10 minutes'
        FROM users WHERE organisation_id = $2 AND role = 'owner'";
    let hash = KeyHash::from_key(token.as_bytes()).0.to_vec();
    assert_eq!(stack.database.client().await.execute(insert, &[&hash, &stack.home.id]).await.unwrap(), 1);
    let page = Client::new(stack.base_url.trim_end_matches("/v1")).get("/auth/link").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let signed_in = stack.anonymous().post("/auth/sessions", &json!({ "token": token })).await;
    assert_eq!(signed_in.status, 200, "{}", signed_in.text());
    let cookie = signed_in.header("set-cookie").split(';').next().unwrap().to_owned();
    let person = stack.anonymous().with("cookie", cookie);
    let session = person.get("/auth/session").await;
    assert_eq!(session.status, 200, "{}", session.text());
    let csrf = session.json()["csrf_token"].as_str().unwrap().to_owned();
    let made = person.with("x-gateway-csrf-token", csrf).post("/labels", &json!({ "name": "through-the-proxy" })).await;
    assert_eq!(made.status, 200, "{}", made.text());
    assert_eq!(person.post("/labels", &json!({ "name": "without-the-token" })).await.status, 403);
    for path in ["/chat/completions", "/embeddings", "/fine_tuning/jobs"] {
        let refused = person.with("x-gateway-provider", "openai").post(path, &chat("Hello")).await;
        assert_eq!(refused.status, 401, "{path}: {}", refused.text());
    }
}
