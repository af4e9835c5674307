//! What the control plane switches off is off at the proxy too, and the page of invitations is reached through it.

use harness::{Client, Stack, chat};
use serde_json::json;

#[tokio::test]
async fn a_suspended_key_is_refused_until_it_is_resumed() {
    let stack = Stack::start().await;
    let admin = stack.administrator();
    let body = json!({ "name": "k", "scopes": ["completions.write"], "workspace_id": stack.home.workspace_id });
    let made = admin.post("/api-keys/workspace/service", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let made = made.json();
    let path = format!("/api-keys/{}", made["id"].as_str().unwrap());
    let client = stack.as_application(made["key"].as_str().unwrap());
    let is = async |status: u16| client.post("/chat/completions", &chat("Hello")).await.status == status;
    stack.until("the key is known", async || is(200).await).await;
    assert_eq!(admin.put(&path, &json!({ "status": "suspended" })).await.status, 200);
    stack.until("the key is off", async || is(401).await).await;
    assert_eq!(admin.put(&path, &json!({ "status": "active" })).await.status, 200);
    stack.until("the key is on again", async || is(200).await).await;
}

#[tokio::test]
async fn the_link_of_an_invitation_leads_through_the_proxy_to_its_page() {
    let stack = Stack::start().await;
    let page = Client::new(stack.base_url.trim_end_matches("/v1")).get("/invites/accept").await;
    assert_eq!(
        (page.status.as_u16(), page.header("content-type")),
        (200, "text/html; charset=utf-8"),
        "{}",
        page.text()
    );
}
