//! Known secrets go in through every route that takes one, well-formed and not; then everything that is left behind is
//! searched for them: answers, both services' logs, metrics, every table, and the proxy's copy on disk. Between the two,
//! applications call with them through the proxy, and fail in many ways.

mod traffic;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bench::process::Signal;
use harness::{Client, Stack, client::whole};
use http::Method;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// Part of every secret that is sent here.
const CANARY: &str = "c4n4ry";

fn secret(n: usize) -> String {
    format!("{CANARY}-{n}-secret-value")
}

/// How many of the requests are accepted; they come first.
const ACCEPTED: usize = 20;

/// Requests with secrets: those that are accepted, and those that are refused while the secret is at hand.
fn requests(workspace: &Value, mock: &str) -> Vec<(Method, &'static str, Value)> {
    let s = secret;
    vec![
        (
            Method::POST,
            "/integrations",
            json!({
                "name": "a", "slug": "a", "ai_provider_id": "openai", "key": s(1),
                "configurations": { "custom_headers": { "x-a": s(2) }, "azure_ad_token": s(3), "vertex_service_account_json": { "password": s(4) } },
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
            "model_config": { "custom_headers": { "x-a": s(11), "x-b": s(12) } } }),
        ),
        (
            Method::PUT,
            "/providers/p",
            json!({ "workspace_id": workspace, "model_config": { "custom_headers": { "x-a": s(13) } } }),
        ),
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
        (
            Method::POST,
            "/secret-references",
            json!({
            "name": "aws", "manager_type": "aws_sm", "secret_path": "p",
            "auth_config": { "aws_auth_type": "accessKey", "aws_region": "r", "aws_access_key_id": s(40), "aws_secret_access_key": s(41) } }),
        ),
        (
            Method::POST,
            "/secret-references",
            json!({
            "name": "azure", "manager_type": "azure_kv", "secret_path": "p",
            "auth_config": { "azure_auth_mode": "entra", "azure_vault_url": "https://v.vault.azure.net", "azure_entra_tenant_id": "t",
                             "azure_entra_client_id": "c", "azure_entra_client_secret": s(42) } }),
        ),
        (
            Method::POST,
            "/integrations",
            json!({
            "name": "z", "slug": "z", "ai_provider_id": "azure-openai",
            "configurations": { "azure_auth_mode": "entra", "azure_resource_name": "r", "azure_entra_tenant_id": "t",
                "azure_entra_client_id": "c", "azure_entra_client_secret": s(43),
                "azure_deployment_config": [{ "azure_deployment_name": "d", "azure_api_version": "v", "azure_model_slug": "gpt-4o" }] } }),
        ),
        (
            Method::POST,
            "/integrations",
            json!({
            "name": "m", "slug": "m", "ai_provider_id": "openai", "key": s(44), "workspace_id": workspace,
            "configurations": { "custom_host": mock, "custom_headers": { "x-secret": s(45) } } }),
        ),
        (
            Method::POST,
            "/providers",
            json!({ "name": "m", "slug": "called", "integration_id": "m", "workspace_id": workspace }),
        ),
        (
            Method::POST,
            "/configs",
            json!({ "name": "one", "config": { "provider": "openai", "api_key": s(46), "custom_host": mock } }),
        ),
        (
            Method::POST,
            "/configs",
            json!({ "name": "many", "config": json!({ "strategy": { "mode": "fallback" }, "targets": [
                { "provider": "bedrock", "aws_region": "r", "awsAccessKeyId": s(47), "aws_secret_access_key": s(48), "aws_session_token": s(49) },
                { "provider": "vertex-ai", "vertex_region": "r", "vertex_project_id": "p", "vertex_service_account_json": { "private_key": s(50) } },
                { "provider": "openai", "api_key": s(51), "oracle_private_key": s(52), "oracle_key_passphrase": s(53) },
            ] }).to_string() }),
        ),
        (
            Method::POST,
            "/plugins",
            json!({ "id": "aiguard", "credentials": { "apiKey": s(60), "account": { "id": s(61) } } }),
        ),
        (Method::PUT, "/plugins/aiguard", json!({ "credentials": { "apiKey": s(62) } })),
        // Refused, each for another reason.
        (Method::POST, "/plugins", json!({ "id": "nobody", "credentials": { "apiKey": s(63) } })),
        (Method::POST, "/plugins", json!({ "id": "aiguard", "credentials": { "apiKey": [s(64)] } })),
        (Method::PUT, "/plugins/aiguard", json!({ "credentials": { "masked_apiKey": s(65) } })),
        (
            Method::POST,
            "/configs",
            json!({ "name": "x", "config": { "provider": "openai", "api_key": s(54), "invented_token": s(55) } }),
        ),
        (Method::POST, "/configs", json!({ "name": "x", "config": format!("{{\"api_key\": \"{}\"", s(56)) })),
        (
            Method::POST,
            "/secret-references",
            json!({
            "name": "x", "manager_type": "aws_sm", "secret_path": "p",
            "auth_config": { "aws_auth_type": "accessKey", "aws_access_key_id": s(57), "aws_secret_access_key": [s(58)] } }),
        ),
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

/// The mark as it is, and as it would stand in bytes that were written in hexadecimal or base64.
fn forms() -> Vec<String> {
    // Three ways to begin within a group of base64; the letters at the edges depend on what stands beside.
    let base64 =
        |before: &str, whole: std::ops::Range<usize>| STANDARD.encode(format!("{before}{CANARY}"))[whole].to_owned();
    vec![CANARY.to_owned(), hex_of(CANARY), base64("", 0..8), base64("x", 2..9), base64("xx", 3..10)]
}

fn assert_clean(place: &str, text: &str) {
    for form in forms() {
        if let Some(at) = text.find(&form) {
            let start = text[..at].char_indices().rev().nth(120).map_or(0, |(n, _)| n);
            panic!("{place} holds a secret: {}", text[start..].chars().take(300).collect::<String>());
        }
    }
}

#[test]
fn a_secret_is_found_however_it_is_written() {
    for text in [secret(1), hex_of(&secret(2)), STANDARD.encode(secret(3)), STANDARD.encode(format!("ab{}", secret(4)))]
    {
        let found = std::panic::catch_unwind(|| assert_clean("here", &text));
        assert!(found.is_err(), "{text}");
    }
    assert_clean("here", "c4n4r");
}

fn hex_of(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn no_secret_is_found_anywhere_after_it_went_in() {
    let stack =
        Stack::builder().admin("LOG_LEVEL", "trace").proxy("LOG_LEVEL", "debug").proxy("SNAPSHOT_SAVE_MS", "50");
    let mut stack = stack.start().await;
    let client = stack.administrator();
    let workspace = json!(stack.home.workspace_id);
    stack.until("the proxy reaches admin", async || client.get("/integrations").await.status == 200).await;
    for (n, (method, path, body)) in requests(&workspace, &stack.mock.url()).into_iter().enumerate() {
        let answer = whole(client.request(method.clone(), path).json(&body)).await;
        assert!(answer.status.as_u16() < 500, "{method} {path}: {}", answer.text());
        assert_eq!(answer.status == 200, n < ACCEPTED, "{n}: {method} {path}: {}", answer.text());
        assert_clean(&format!("the answer to {method} {path}"), &answer.text());
    }
    traffic::run(&stack, &client).await;
    for path in [
        "/integrations",
        "/integrations/a",
        "/integrations/b",
        "/integrations/v",
        "/integrations/a/models",
        "/admin/organisation/auth-settings",
        "/audit-logs",
        "/secret-references",
        "/configs",
        "/plugins",
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
    traffic::until_on_disk(&stack).await;
    // The journal as it lies there, and everything in the log store once the proxy has left.
    search(stack.folder.path());
    stack.proxy.signal(Signal::TERM);
    stack.proxy.ended_within(Duration::from_secs(30)).await;
    assert!(stack.folder.path().join("logs/bodies").is_dir(), "bodies were kept");
    search(stack.folder.path());
}

/// Every file of the stack: logs, the proxy's copy on disk, the journal, bodies of calls.
fn search(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            search(&path);
        } else if path.is_file() {
            let mut bytes = std::fs::read(&path).unwrap_or_default();
            if path.extension().is_some_and(|ending| ending == "zst") {
                bytes = shared::log_store::unpack(&bytes, 1 << 30).unwrap();
            }
            assert_clean(&path.display().to_string(), &String::from_utf8_lossy(&bytes));
        }
    }
}
