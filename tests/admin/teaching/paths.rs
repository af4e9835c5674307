//! Paths that lead nowhere, and the page where an invitation leads.

use crate::service::Service;
use harness::{Client, client::whole};
use http::Method;

#[tokio::test]
async fn a_wrong_path_leads_to_the_operation_that_was_meant() {
    let service = Service::start().await;
    let root = Client::new(&service.origin).with_key(&service.home.admin_key.key);
    for (method, path, status, meant) in [
        (Method::GET, "/v1/workspace", 404, "GET /v1/workspaces"),
        (Method::GET, "/v1/v1/configs", 404, "GET /v1/configs"),
        (Method::GET, "/configs", 404, "GET /v1/configs"),
        (Method::PUT, "/v1/config/main", 404, "PUT /v1/configs/{slug}"),
        (Method::POST, "/v1/api-keys", 405, "POST /v1/api-keys/organisation/service"),
        // Both said only that there is no such operation.
        (Method::POST, "/v1/chat/completions", 404, "models are asked at the proxy's address"),
        (Method::GET, "/", 404, "GET /docs"),
    ] {
        let answer = whole(root.request(method.clone(), path)).await;
        assert_eq!(
            (answer.status.as_u16(), answer.json()["data"]["errorCode"].as_str()),
            (status, Some("AB02")),
            "{path}"
        );
        let message = answer.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(meant), "{method} {path}: {message}");
    }
    let lost = root.get("/v1/nothing-like-it").await.json()["message"].clone();
    assert_eq!(lost, "There is no such operation");
}

#[tokio::test]
async fn the_link_of_an_invitation_opens_a_page_that_accepts_it() {
    let service = Service::start().await;
    let page = Client::new(&service.origin).get("/invites/accept").await;
    assert_eq!((page.status.as_u16(), page.header("content-type")), (200, "text/html; charset=utf-8"));
    let policy = page.header("content-security-policy");
    assert!(
        policy.starts_with("default-src 'none'; script-src 'sha256-") && policy.contains("connect-src 'self'"),
        "{policy}"
    );
    assert!(page.text().contains("First name") && page.text().contains("Accept"), "{}", page.text());
    assert!(page.text().contains("/v1/admin/users/invites/accept"));
    assert_eq!((page.header("cache-control"), page.header("referrer-policy")), ("no-store", "no-referrer"));
}
