//! Credentials that a secret manager holds: fetched before anyone asks, renewed behind the requests' back, kept while
//! the manager is away, and given to nobody who may not have them.

mod vault;

use harness::aws::{Aws, REGION};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};
use uuid::Uuid;
use vault::{Mood, TOKEN, Vault};

const FIRST: &str = "sk-first-value-of-the-secret";
const SECOND: &str = "sk-second-value-of-the-secret";

/// Values grow old in a moment.
async fn stack() -> Stack {
    Stack::builder().proxy("SECRETS_TTL_MS", "100").start().await
}

async fn create(stack: &Stack, path: &str, body: Value) {
    let answer = stack.administrator().post(path, &body).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
}

/// A reference to the secret of a Vault, which may go to the mock.
async fn refer(stack: &Stack, slug: &str, address: String, token: &str, more: Value) {
    let mut body = json!({
        "name": slug, "slug": slug, "manager_type": "hashicorp_vault", "secret_path": "secret/openai",
        "auth_config": { "vault_auth_type": "token", "vault_addr": address, "vault_token": token },
        "allowed_hosts": ["127.0.0.1"],
    });
    body.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap());
    create(stack, "/secret-references", body).await;
}

/// An integration of the first workspace without a key of its own, with its default provider of the same name.
async fn integrate(stack: &Stack, slug: &str, mappings: Value) {
    let body = json!({
        "name": slug, "slug": slug, "ai_provider_id": "openai", "default_provider_slug": slug,
        "workspace_id": stack.home.workspace_id.to_string(),
        "configurations": { "custom_host": stack.mock.url() }, "secret_mappings": mappings,
    });
    create(stack, "/integrations", body).await;
}

fn key_from(reference: &str) -> Value {
    json!([{ "target_field": "key", "secret_reference_id": reference }])
}

fn application(stack: &Stack, provider: &str) -> Client {
    stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-provider", format!("@{provider}"))
}

async fn ask(client: &Client) -> Answer {
    client.post("/chat/completions", &chat("Hello")).await
}

/// What the provider was last given.
fn given(stack: &Stack) -> String {
    stack.mock.requests().pop().map(|sent| sent.header("authorization").to_owned()).unwrap_or_default()
}

async fn until_given(stack: &Stack, client: &Client, key: &str) {
    let is_given = async || ask(client).await.status == 200 && given(stack) == format!("Bearer {key}");
    stack.until("the provider gets the credential", is_given).await;
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn a_credential_is_renewed_without_a_wait_and_outlives_its_manager() {
    let vault = Vault::start(json!({ "key": FIRST })).await;
    let stack = stack().await;
    refer(&stack, "openai", vault.url(), TOKEN, json!({})).await;
    stack.until("it is fetched before anyone asks", async || vault.asked() > 0).await;
    integrate(&stack, "prod", key_from("openai")).await;
    let client = application(&stack, "prod");
    until_given(&stack, &client, FIRST).await;
    vault.hold(json!({ "key": SECOND }));
    until_given(&stack, &client, SECOND).await;
    vault.be(Mood::Status(503));
    let failures = vault.asked();
    stack.until("a renewal fails", async || vault.asked() > failures).await;
    assert_eq!(ask(&client).await.status, 200, "the value stays in use while its manager is away");
    assert_eq!(given(&stack), format!("Bearer {SECOND}"));
    // From now on renewals are taken and never answered: whoever waited for one would not be answered either.
    vault.be(Mood::Silent);
    stack.until("a renewal hangs", async || vault.waiting() > 0).await;
    for _ in 0..20 {
        assert_eq!(ask(&client).await.status, 200);
        assert_eq!(given(&stack), format!("Bearer {SECOND}"));
    }
}

#[tokio::test]
async fn what_the_manager_denies_is_used_no_longer_and_said_without_a_secret() {
    let vault = Vault::start(json!({ "key": FIRST })).await;
    let stack = stack().await;
    refer(&stack, "openai", vault.url(), TOKEN, json!({})).await;
    integrate(&stack, "prod", key_from("openai")).await;
    let client = application(&stack, "prod");
    until_given(&stack, &client, FIRST).await;
    vault.be(Mood::Status(403));
    stack.until("the denial is known", async || ask(&client).await.status != 200).await;
    let refused = ask(&client).await;
    assert_eq!(code(&refused), (500, "secret_unavailable".into()), "{}", refused.text());
    assert!(refused.text().contains("`openai`"), "{}", refused.text());
    assert!(!refused.text().contains(FIRST) && !refused.text().contains(TOKEN));
    let relayed = client.get("/elsewhere").await;
    assert_eq!(code(&relayed), (500, "secret_unavailable".into()), "the relay lane has no other rules");
    let log = stack.proxy.log();
    assert!(!log.contains(FIRST) && !log.contains(TOKEN), "{log}");
}

#[tokio::test]
async fn a_reference_that_leads_nowhere_is_an_error_and_a_fallback_passes_it_by() {
    let vault = Vault::start(json!({ "key": FIRST, "other": SECOND })).await;
    let stack = stack().await;
    let before = vault.asked();
    refer(&stack, "forbidden", vault.untrusted_url(), TOKEN, json!({})).await;
    refer(&stack, "wrong-token", vault.url(), "hvs.wrong", json!({})).await;
    refer(&stack, "no-entry", vault.url(), TOKEN, json!({ "secret_key": "absent" })).await;
    refer(&stack, "no-path", vault.url(), TOKEN, json!({ "secret_path": "elsewhere/openai" })).await;
    refer(&stack, "entry", vault.url(), TOKEN, json!({ "secret_key": "other" })).await;
    for slug in ["forbidden", "wrong-token", "no-entry", "no-path", "entry"] {
        integrate(&stack, slug, key_from(slug)).await;
    }
    until_given(&stack, &application(&stack, "entry"), SECOND).await;
    for (slug, says) in [
        ("forbidden", "not public"),
        ("wrong-token", "refuses"),
        ("no-entry", "no entry `absent`"),
        ("no-path", "no such secret"),
    ] {
        let answer = ask(&application(&stack, slug)).await;
        assert_eq!(code(&answer), (500, "secret_unavailable".into()), "{slug} {}", answer.text());
        assert!(answer.text().contains(says), "{slug}: {}", answer.text());
        assert!(!answer.text().contains("hvs."), "{slug}");
        let targets = json!([{ "provider": format!("@{slug}") }, { "provider": "@entry" }]);
        let config = json!({ "strategy": { "mode": "fallback" }, "targets": targets }).to_string();
        let client = stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config);
        let answer = ask(&client).await;
        assert_eq!(answer.status, 200, "{slug} {}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{slug}");
    }
    assert!(vault.asked() > before);
    vault.be(Mood::Redirecting);
    refer(&stack, "redirected", vault.url(), TOKEN, json!({})).await;
    integrate(&stack, "redirected", key_from("redirected")).await;
    let client = application(&stack, "redirected");
    stack.until("a redirect is not followed", async || code(&ask(&client).await).1 == "secret_unavailable").await;
}

#[tokio::test]
async fn a_workspace_that_is_not_allowed_gets_no_secret() {
    let vault = Vault::start(json!({ "key": FIRST })).await;
    let stack = stack().await;
    let other = json!({ "name": "Other" });
    let other = stack.administrator().post("/admin/workspaces", &other).await.json();
    let home = stack.home.workspace_id.to_string();
    refer(&stack, "openai", vault.url(), TOKEN, json!({ "allowed_workspaces": [home] })).await;
    integrate(&stack, "prod", key_from("openai")).await;
    let client = application(&stack, "prod");
    until_given(&stack, &client, FIRST).await;
    let change = json!({ "allowed_workspaces": [other["id"]] });
    let answer = stack.administrator().put("/secret-references/openai", &change).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let refused = (403, "provider_not_available".to_owned());
    stack.until("the workspace is refused", async || code(&ask(&client).await) == refused).await;
    let open = json!({ "allow_all_workspaces": true });
    assert_eq!(stack.administrator().put("/secret-references/openai", &open).await.status, 200);
    until_given(&stack, &client, FIRST).await;
}

#[tokio::test]
async fn several_fields_of_an_account_come_from_secrets() {
    let headers = json!({ "x-account": "from-the-vault" }).to_string();
    let vault = Vault::start(json!({ "key": FIRST, "headers": headers })).await;
    let stack = stack().await;
    refer(&stack, "openai", vault.url(), TOKEN, json!({})).await;
    let mappings = json!([
        { "target_field": "key", "secret_reference_id": "openai", "secret_key": "key" },
        { "target_field": "custom_headers", "secret_reference_id": "openai", "secret_key": "headers", "value_format": "json" },
    ]);
    integrate(&stack, "prod", mappings).await;
    until_given(&stack, &application(&stack, "prod"), FIRST).await;
    assert_eq!(stack.mock.requests().pop().unwrap().header("x-account"), "from-the-vault");
}

#[tokio::test]
async fn a_credential_comes_from_aws_to_who_signs_and_may() {
    let aws = Aws::start().await;
    let secret = json!({ "key": FIRST }).to_string();
    let make = json!({ "Name": "prod/openai", "SecretString": secret, "ClientRequestToken": Uuid::new_v4() });
    aws.secrets("CreateSecret", make).await;
    let reader = aws.user("reader", &["secretsmanager:GetSecretValue"]).await;
    let bystander = aws.user("bystander", &["s3:GetObject"]).await;
    aws.check_everything().await;
    // Admin lets a reference ask for the gateway's own identity; the proxy has none to lend.
    let stack = Stack::builder().admin("SECRETS_OWN_IDENTITY", "ON").proxy("SECRETS_AWS_URL", &*aws.url);
    let stack = stack.proxy("SECRETS_TTL_MS", "100").start().await;
    for (slug, keys) in [("reader", reader), ("bystander", bystander)] {
        let access = json!({ "aws_auth_type": "accessKey", "aws_access_key_id": keys.0, "aws_secret_access_key": keys.1, "aws_region": REGION });
        let body = json!({ "name": slug, "slug": slug, "manager_type": "aws_sm", "secret_path": "prod/openai", "secret_key": "key", "auth_config": access, "allowed_hosts": ["127.0.0.1"] });
        create(&stack, "/secret-references", body).await;
        integrate(&stack, slug, key_from(slug)).await;
    }
    let itself = json!({ "name": "own", "slug": "own", "manager_type": "aws_sm", "secret_path": "prod/openai",
        "allowed_hosts": ["127.0.0.1"], "auth_config": { "aws_auth_type": "serviceRole", "aws_region": REGION } });
    create(&stack, "/secret-references", itself).await;
    integrate(&stack, "own", key_from("own")).await;
    until_given(&stack, &application(&stack, "reader"), FIRST).await;
    for slug in ["bystander", "own"] {
        let client = application(&stack, slug);
        let refused = async || code(&ask(&client).await) == (500, "secret_unavailable".to_owned());
        stack.until("it is refused", refused).await;
    }
    drop(aws);
    assert_eq!(ask(&application(&stack, "reader")).await.status, 200, "AWS is away");
}

#[tokio::test]
async fn a_secret_goes_to_no_host_that_its_reference_does_not_name() {
    let vault = Vault::start(json!({ "key": FIRST })).await;
    let stack = stack().await;
    refer(&stack, "openai", vault.url(), TOKEN, json!({ "allowed_hosts": [] })).await;
    let body = json!({
        "name": "thief", "ai_provider_id": "openai", "workspace_id": stack.home.workspace_id.to_string(),
        "configurations": { "custom_host": stack.mock.url() }, "secret_mappings": key_from("openai"),
    });
    let refused = stack.administrator().post("/integrations", &body).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("secret_mappings[0].secret_reference_id"), "{}", refused.text());
    let url = stack.mock.url();
    let host = url.trim_start_matches("http://").split('/').next().unwrap();
    let allow = json!({ "allowed_hosts": ["localhost", host] });
    let answer = stack.administrator().put("/secret-references/openai", &allow).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    integrate(&stack, "prod", key_from("openai")).await;
    let client = application(&stack, "prod");
    until_given(&stack, &client, FIRST).await;
    let other = json!({ "configurations": { "custom_host": "https://evil.example.com" } });
    let refused = stack.administrator().put("/integrations/prod", &other).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    let tuned = json!({ "models": [{ "slug": "tuned", "enabled": true, "is_custom": true, "configurations": other["configurations"] }] });
    let refused = stack.administrator().put("/integrations/prod/models", &tuned).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    // Whatever the rows say: the proxy is who sends it.
    let withdraw = json!({ "allowed_hosts": null });
    assert_eq!(stack.administrator().put("/secret-references/openai", &withdraw).await.status, 200);
    let told = (403, "provider_not_available".to_owned());
    stack.until("the host is refused", async || code(&ask(&client).await) == told).await;
    assert!(ask(&client).await.text().contains("may not be sent to 127.0.0.1"));
}

#[tokio::test]
async fn headers_of_an_mcp_server_come_from_a_manager_and_go_to_its_host_alone() {
    let vault = Vault::start(json!({ "headers": { "x-key": "open-sesame" }, "word": "none" })).await;
    let stack = stack().await;
    refer(&stack, "tracker", vault.url(), TOKEN, json!({})).await;
    refer(&stack, "elsewhere", vault.url(), TOKEN, json!({ "allowed_hosts": ["other.example"] })).await;
    let integration = |slug: &str, mapping: Value| {
        json!({
            "name": slug, "slug": slug, "url": format!("{}/mcp/closed", stack.mock.origin()), "auth_type": "headers",
            "transport": "http", "workspace_id": stack.home.workspace_id, "secret_mappings": [mapping],
        })
    };
    let headers = |reference: &str| {
        json!({
            "target_field": "custom_headers", "secret_reference_id": reference, "secret_key": "headers",
            "value_format": "json",
        })
    };
    for (mapping, place) in [
        (headers("elsewhere"), "secret_mappings[0].secret_reference_id"),
        (headers("nobody"), "secret_mappings[0].secret_reference_id"),
        (json!({ "target_field": "key", "secret_reference_id": "tracker" }), "secret_mappings[0].target_field"),
        (
            json!({ "target_field": "custom_headers", "secret_reference_id": "tracker" }),
            "secret_mappings[0].value_format",
        ),
    ] {
        let answer = stack.administrator().post("/mcp-integrations", &integration("refused", mapping)).await;
        assert_eq!((answer.status.as_u16(), answer.text().contains(place)), (400, true), "{place}: {}", answer.text());
    }
    create(&stack, "/mcp-integrations", integration("vaulted", headers("tracker"))).await;
    let server = json!({ "name": "s", "slug": "vaulted", "mcp_integration_id": "vaulted", "workspace_id": stack.home.workspace_id });
    create(&stack, "/mcp-servers", server).await;
    let client = crate::mcp::client(&stack, &stack.home.workspace_key);
    let greet = async || client.post("/vaulted/mcp", &crate::mcp::greeting()).await;
    stack.until("the server lets us in", async || greet().await.text().contains("serverInfo")).await;
    let sent = stack.mock.requests();
    assert_eq!(sent.last().unwrap().header("x-key"), "open-sesame");
    let shown = stack.administrator().get("/mcp-integrations/vaulted").await;
    assert_eq!(shown.json()["secret_mappings"][0]["target_field"], "configurations.custom_headers", "{}", shown.text());
    assert!(!shown.text().contains("open-sesame"));
    let synced = stack.administrator().post("/mcp-integrations/vaulted/sync", &json!({})).await.json();
    assert!(synced["message"].as_str().unwrap().contains("only the proxy asks"), "{synced}");
    let deleted = stack.administrator().delete("/secret-references/tracker").await;
    assert_eq!(deleted.status, 400, "it is in use: {}", deleted.text());
    vault.hold(json!({ "headers": "no object", "word": "none" }));
    let is_refused = async || greet().await.text().contains("holds no object");
    stack.until("what is no object is not sent", is_refused).await;
}
