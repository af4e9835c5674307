//! Known secrets go in through every route that takes one, well-formed and not; then everything that is left behind is
//! searched for them: answers, both services' logs, metrics, every table, and the proxy's copy on disk.

use harness::{Client, Stack, client::whole};
use http::Method;
use serde_json::{Value, json};
use std::path::Path;

/// Part of every secret that is sent here.
const CANARY: &str = "c4n4ry";

fn secret(n: usize) -> String {
    format!("{CANARY}-{n}-secret-value")
}

/// Requests with secrets: those that are accepted, and those that are refused while the secret is at hand.
fn requests(workspace: &Value) -> Vec<(Method, &'static str, Value)> {
    let s = secret;
    vec![
        (
            Method::POST,
            "/integrations",
            json!({
                "name": "a", "slug": "a", "ai_provider_id": "openai", "key": s(1),
                "configurations": { "custom_headers": { "x-a": s(2) }, "invented_token": s(3), "deep": { "password": s(4) } },
            }),
        ),
        (
            Method::PUT,
            "/integrations/a",
            json!({ "key": s(5), "configurations": { "custom_headers": { "x-b": s(6) } } }),
        ),
        (
            Method::POST,
            "/integrations",
            json!({
                "name": "b", "slug": "b", "ai_provider_id": "bedrock", "workspace_id": workspace,
                "configurations": { "aws_auth_type": "accessKey", "aws_region": "r", "aws_access_key_id": s(7),
                                    "aws_secret_access_key": s(8) },
            }),
        ),
        (
            Method::POST,
            "/integrations",
            json!({
                "name": "v", "slug": "v", "ai_provider_id": "vertex-ai",
                "configurations": { "vertex_auth_type": "serviceAccount", "vertex_region": "r",
                                    "vertex_service_account_json": { "private_key": s(9) } },
            }),
        ),
        (
            Method::PUT,
            "/integrations/a/models",
            json!({ "models": [
            { "slug": "m", "enabled": true, "is_custom": true, "configurations": { "custom_headers": { "x-c": s(10) } } }] }),
        ),
        (
            Method::POST,
            "/providers",
            json!({
            "name": "p", "slug": "p", "integration_id": "b", "workspace_id": workspace,
            "model_config": { "api_key": s(11), "nested": { "client_secret": s(12) } } }),
        ),
        (Method::PUT, "/providers/p", json!({ "workspace_id": workspace, "model_config": { "api_key": s(13) } })),
        (
            Method::POST,
            "/virtual-keys",
            json!({
            "name": "k", "provider": "bedrock", "workspace_id": workspace, "awsRegion": "r",
            "awsAccessKeyId": s(14), "awsSecretAccessKey": s(15) }),
        ),
        (
            Method::POST,
            "/virtual-keys",
            json!({ "name": "o", "provider": "openai", "workspace_id": workspace, "key": s(16) }),
        ),
        (
            Method::PUT,
            "/admin/organisation/auth-settings",
            json!({
            "oidc": { "issuer": "https://id.test", "client_id": "c", "client_secret": s(17) },
            "scim": { "token": format!("{}-0123456789abcdef0123456789", s(18)) } }),
        ),
        (
            Method::POST,
            "/secret-references",
            json!({
            "name": "r", "manager_type": "hashicorp_vault", "secret_path": "p",
            "auth_config": { "vault_auth_type": "token", "vault_addr": "https://vault.test", "vault_token": s(19) } }),
        ),
        // Refused, each for another reason.
        (Method::POST, "/integrations", json!({ "name": "x", "ai_provider_id": "nobody", "key": s(20) })),
        (Method::POST, "/integrations", json!({ "name": "x", "ai_provider_id": "openai", "key": { "nested": s(21) } })),
        (
            Method::POST,
            "/integrations",
            json!({ "name": "x", "ai_provider_id": "openai", "key": format!("{}\n", s(22)) }),
        ),
        (Method::POST, "/integrations", json!({ "name": "x", "ai_provider_id": "openai", "slug": "a", "key": s(23) })),
        (
            Method::POST,
            "/integrations",
            json!({ "name": "x", "ai_provider_id": "openai", "key": s(24), "configurations": s(25) }),
        ),
        (
            Method::POST,
            "/integrations",
            json!({ "name": "x", "ai_provider_id": "openai", "key": "k", "configurations": { "custom_headers": [s(26)] } }),
        ),
        (Method::PUT, "/integrations/nothing", json!({ "key": s(27) })),
        (
            Method::POST,
            "/virtual-keys",
            json!({ "name": "x", "provider": "nobody", "key": s(28), "workspace_id": workspace }),
        ),
        (
            Method::POST,
            "/providers",
            json!({ "name": "x", "integration_id": "nothing", "workspace_id": workspace, "model_config": { "api_key": s(29) } }),
        ),
        (
            Method::PUT,
            "/admin/organisation/auth-settings",
            json!({ "oidc": { "issuer": "http://x", "client_id": "c", "client_secret": s(30) } }),
        ),
    ]
}

fn assert_clean(place: &str, text: &str) {
    let hex: String = CANARY.bytes().map(|byte| format!("{byte:02x}")).collect();
    for form in [CANARY.to_owned(), hex] {
        if let Some(at) = text.find(&form) {
            let start = text[..at].char_indices().rev().nth(120).map_or(0, |(n, _)| n);
            panic!("{place} holds a secret: {}", text[start..].chars().take(300).collect::<String>());
        }
    }
}

#[tokio::test]
async fn no_secret_is_found_anywhere_after_it_went_in() {
    let stack = Stack::builder().admin("LOG_LEVEL", "trace").proxy("LOG_LEVEL", "debug").start().await;
    let client = stack.administrator();
    let workspace = json!(stack.home.workspace_id);
    stack.until("the proxy reaches admin", async || client.get("/integrations").await.status == 200).await;
    let mut accepted = 0;
    for (method, path, body) in requests(&workspace) {
        let answer = whole(client.request(method.clone(), path).json(&body)).await;
        assert!(answer.status.as_u16() < 500, "{method} {path}: {}", answer.text());
        accepted += usize::from(answer.status == 200);
        assert_clean(&format!("the answer to {method} {path}"), &answer.text());
    }
    assert_eq!(accepted, 11, "what should be accepted was");
    for path in [
        "/integrations",
        "/integrations/a",
        "/integrations/b",
        "/integrations/v",
        "/integrations/a/models",
        "/admin/organisation/auth-settings",
        "/audit-logs",
        "/secret-references",
    ] {
        assert_clean(path, &client.get(path).await.text());
    }
    for path in ["/providers", "/virtual-keys", "/providers/p", "/virtual-keys/p"] {
        assert_clean(path, &client.get(&format!("{path}?workspace_id={}", stack.home.workspace_id)).await.text());
    }
    for (place, url) in [("admin", stack.admin_url.trim_end_matches("/v1")), ("proxy", stack.metrics_url.as_str())] {
        assert_clean(&format!("metrics of {place}"), &Client::new(url).get("/metrics").await.text());
    }
    let tables = "SELECT table_name::text FROM information_schema.tables
                  WHERE table_schema = 'public' AND table_type = 'BASE TABLE'";
    let database = stack.database.client().await;
    for row in database.query(tables, &[]).await.unwrap() {
        let table: String = row.get(0);
        for row in database.query(&format!("SELECT t::text FROM \"{table}\" t"), &[]).await.unwrap() {
            assert_clean(&format!("table {table}"), row.get::<_, &str>(0));
        }
    }
    assert_clean("the log of admin", &stack.admin.as_ref().unwrap().log());
    assert_clean("the log of the proxy", &stack.proxy.log());
    search(stack.folder.path());
}

/// Every file of the stack: logs, the proxy's copy on disk.
fn search(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            search(&path);
        } else if path.is_file() {
            assert_clean(
                &path.display().to_string(),
                &String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()),
            );
        }
    }
}
