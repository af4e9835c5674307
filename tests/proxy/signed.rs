//! Credentials that are computed, as providers get them: signatures over what really arrives, tokens of a login service,
//! and what becomes of a request when there is none.

mod login_service;

use bench::mock::Recorded;
use chrono::NaiveDateTime;
use harness::{Answer, Client, Stack, chat};
use login_service::{LoginService, Mood, TOKEN};
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use serde_json::{Value, json};
use shared::secrets::cloud::AwsKeys;
use shared::secrets::cloud::sigv4;
use shared::secrets::cloud::sigv4::{RequestToSign, SignedBody, SigningScope};

const REGION: &str = "eu-west-1";
const ID: &str = "AKIASIGNEDTEST";
const SECRET: &str = "wJalr/secret+of+the+account";
const CLAUDE: &str = "anthropic.claude-3-haiku-20240307-v1:0";

fn keys() -> Value {
    json!({ "aws_region": REGION, "aws_access_key_id": ID, "aws_secret_access_key": SECRET })
}

/// An integration with its default provider of the same name.
async fn integrate(stack: &Stack, slug: &str, provider: &str, host: String, account: Value) {
    let mut configurations = json!({ "custom_host": host });
    configurations.as_object_mut().unwrap().extend(account.as_object().cloned().unwrap());
    let body = json!({
        "name": slug, "slug": slug, "ai_provider_id": provider, "default_provider_slug": slug,
        "workspace_id": stack.home.workspace_id.to_string(), "configurations": configurations,
    });
    let answer = stack.administrator().post("/integrations", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn integrate_bedrock(stack: &Stack) {
    let mut account = keys();
    account["aws_auth_type"] = json!("accessKey");
    integrate(stack, "bedrock", "bedrock", stack.mock.origin(), account).await;
}

fn application(stack: &Stack) -> Client {
    stack.anonymous().with_key(&stack.home.workspace_key)
}

fn with_config(stack: &Stack, config: &Value) -> Client {
    application(stack).with("x-gateway-config", config.to_string())
}

async fn ask(client: &Client, model: &str) -> Answer {
    let mut body = chat("Hello");
    body["model"] = json!(model);
    client.post("/chat/completions", &body).await
}

async fn until_answered(stack: &Stack, client: &Client, model: &str) {
    stack.until("the account is known", async || ask(client, model).await.status == 200).await;
}

fn last(stack: &Stack) -> Recorded {
    stack.mock.requests().pop().expect("the provider was asked")
}

fn code(answer: &Answer) -> (u16, String) {
    (answer.status.as_u16(), answer.json()["error"]["code"].as_str().unwrap_or_default().to_owned())
}

/// The signature is that of the request as it arrived.
fn check_signature(sent: &Recorded) {
    check_signature_for(sent, "bedrock");
}

fn check_signature_for(sent: &Recorded, service: &str) {
    let keys = AwsKeys { id: ID.to_owned().into(), secret: SECRET.to_owned().into(), session: None };
    let stamp = sent.header("x-amz-date");
    let at = NaiveDateTime::parse_from_str(stamp, "%Y%m%dT%H%M%SZ").expect("it is dated").and_utc();
    let signed = ["content-type", "x-amzn-sagemaker-target-model"].map(|name| (name, sent.header(name)));
    let headers: Vec<(&str, &str)> = signed.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    let request = RequestToSign {
        method: &sent.method,
        host: sent.header("host"),
        path: &sent.path,
        query: sent.query.as_deref().unwrap_or_default(),
        headers: &headers,
        body: SignedBody::Whole(&sent.body),
    };
    let scope = SigningScope { region: REGION, service };
    let expected = sigv4::headers(&request, &keys, scope, at);
    let (_, expected) = expected.iter().find(|(name, _)| *name == "authorization").unwrap();
    assert_eq!(sent.header("authorization"), expected, "{} {}", sent.method, sent.path);
}

#[tokio::test]
async fn a_request_to_bedrock_is_signed_as_it_arrives_whoever_brings_the_keys() {
    let stack = Stack::start().await;
    integrate_bedrock(&stack).await;
    let stored = application(&stack).with("x-gateway-provider", "@bedrock");
    until_answered(&stack, &stored, CLAUDE).await;
    let sent = last(&stack);
    assert_eq!(sent.path, "/model/anthropic.claude-3-haiku-20240307-v1%3A0/converse");
    check_signature(&sent);
    let mut target = keys();
    target["provider"] = json!("bedrock");
    target["custom_host"] = json!(stack.mock.origin());
    let by_headers = application(&stack)
        .with("x-gateway-provider", "bedrock")
        .with("x-gateway-custom-host", stack.mock.origin())
        .with("x-gateway-aws-region", REGION)
        .with("x-gateway-aws-access-key-id", ID)
        .with("x-gateway-aws-secret-access-key", SECRET);
    for client in [with_config(&stack, &target), by_headers] {
        let answer = ask(&client, CLAUDE).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        check_signature(&last(&stack));
    }
    // The mock takes signatures at Bedrock's own paths alone, and this is none; what counts is what it was sent.
    stored.get("/elsewhere?b=2&a=1").await;
    assert_eq!(last(&stack).path, "/elsewhere");
    check_signature(&last(&stack));
    stored.post("/elsewhere", &json!({ "a": 1 })).await;
    assert_eq!((&*last(&stack).method, &last(&stack).body[..]), ("POST", br#"{"a":1}"#.as_slice()));
    check_signature(&last(&stack));
    let before = stack.mock.requests().len();
    let unread = stored.post("/elsewhere", &json!({ "a": "x".repeat(100 << 10) })).await;
    assert_eq!(code(&unread), (502, "credential_unavailable".into()), "{}", unread.text());
    assert!(unread.text().contains("bedrock") && unread.text().contains("too long to be read"), "{}", unread.text());
    assert_eq!(stack.mock.requests().len(), before, "nothing is sent without a signature");
    assert!(!stack.proxy.log().contains(SECRET));
}

#[tokio::test]
async fn an_endpoint_of_sagemaker_is_invoked_with_a_signed_body_and_its_own_headers() {
    let stack = Stack::start().await;
    let mut target = keys();
    target["provider"] = json!("sagemaker");
    target["custom_host"] = json!(stack.mock.origin());
    target["amzn_sagemaker_target_model"] = json!("m.tar.gz");
    let body = json!({ "inputs": "Hello", "parameters": { "max_new_tokens": 9 } });
    with_config(&stack, &target).post("/endpoints/e/invocations", &body).await;
    let sent = last(&stack);
    assert_eq!((&*sent.method, &*sent.path), ("POST", "/endpoints/e/invocations"));
    assert_eq!(sent.header("x-amzn-sagemaker-target-model"), "m.tar.gz");
    assert_eq!(serde_json::from_slice::<Value>(&sent.body).unwrap(), body);
    check_signature_for(&sent, "sagemaker");
}

#[tokio::test]
async fn an_account_that_makes_no_credential_is_told_by_its_field() {
    let stack = Stack::start().await;
    integrate_bedrock(&stack).await;
    until_answered(&stack, &application(&stack).with("x-gateway-provider", "@bedrock"), CLAUDE).await;
    let here = json!(stack.mock.origin());
    for (target, status, says) in [
        (json!({ "provider": "bedrock", "custom_host": here, "aws_access_key_id": ID }), 400, "aws_secret_access_key"),
        (json!({ "provider": "bedrock", "custom_host": here, "aws_auth_type": "serviceRole" }), 400, "own identity"),
        (json!({ "provider": "@bedrock", "aws_region": "us-east-1" }), 400, "aws_region"),
    ] {
        let answer = ask(&with_config(&stack, &target), CLAUDE).await;
        assert_eq!(answer.status.as_u16(), status, "{target}: {}", answer.text());
        assert!(answer.text().contains(says), "{target}: {}", answer.text());
        let config = json!({ "strategy": { "mode": "fallback" }, "targets": [target, { "provider": "@bedrock" }] });
        let answer = ask(&with_config(&stack, &config), CLAUDE).await;
        assert_eq!(answer.status, 200, "{config}: {}", answer.text());
        assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]");
    }
}

#[tokio::test]
async fn a_service_account_is_logged_in_once_and_its_token_is_sent() {
    let login = LoginService::start().await;
    let stack = Stack::start().await;
    let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
    let key = String::from_utf8(key.private_key_to_pem_pkcs8().unwrap()).unwrap();
    let file = json!({
        "type": "service_account", "client_email": "robot@project.test", "private_key": key, "project_id": "project",
        "token_uri": format!("{}/token", login.url()),
    });
    let account = json!({
        "vertex_auth_type": "serviceAccount", "vertex_region": "us-central1", "vertex_service_account_json": file,
    });
    integrate(&stack, "vertex", "vertex-ai", stack.mock.origin(), account).await;
    let client = application(&stack).with("x-gateway-provider", "@vertex");
    until_answered(&stack, &client, "gemini-2.0-flash").await;
    for _ in 0..3 {
        assert_eq!(ask(&client, "gemini-2.0-flash").await.status, 200);
        assert_eq!(last(&stack).header("authorization"), format!("Bearer {TOKEN}"));
        assert!(last(&stack).path.starts_with("/v1/projects/project/locations/"), "that of its key file");
    }
    let relayed = client.post("/elsewhere", &json!({ "a": 1 })).await;
    assert_eq!(relayed.status, 200, "{}", relayed.text());
    assert_eq!(last(&stack).header("authorization"), format!("Bearer {TOKEN}"), "a token minds no body");
    let asked = login.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].0 == "/token" && asked[0].1.contains("assertion="), "{asked:?}");
    let log = stack.proxy.log();
    assert!(!log.contains(TOKEN) && !log.contains("PRIVATE KEY"));
}

fn entra(secret: &str) -> Value {
    json!({
        "azure_auth_mode": "entra", "azure_entra_tenant_id": "tenant-1", "azure_entra_client_id": "client-1",
        "azure_entra_client_secret": secret, "azure_resource_name": "acme",
        "azure_deployment_config": [
            { "azure_deployment_name": "prod", "azure_api_version": "2024-10-21", "azure_model_slug": "gpt-4o-mini" },
        ],
    })
}

#[tokio::test]
async fn a_login_that_fails_is_named_and_another_target_takes_its_place() {
    let login = LoginService::start().await;
    let stack = Stack::builder()
        .proxy("PROVIDER_AZURE_LOGIN_URL", login.url())
        .proxy("PROVIDER_LOGIN_TIMEOUT_MS", "300")
        .start()
        .await;
    let host = || format!("{}/openai", stack.mock.origin());
    integrate(&stack, "good", "azure-openai", host(), entra("s3cret-of-good")).await;
    let good = application(&stack).with("x-gateway-provider", "@good");
    until_answered(&stack, &good, "gpt-4o-mini").await;
    let sent = last(&stack);
    assert_eq!(sent.header("authorization"), format!("Bearer {TOKEN}"));
    assert_eq!((sent.path.as_str(), sent.header("api-key")), ("/openai/deployments/prod/chat/completions", ""));
    assert_eq!(login.asked()[0].0, "/tenant-1/oauth2/v2.0/token");
    for (slug, mood, status) in [
        ("away", Mood::Status(503), 503),
        ("denied", Mood::Status(401), 502),
        ("rubbish", Mood::Rubbish, 502),
        ("silent", Mood::Silent, 503),
    ] {
        login.be(mood);
        integrate(&stack, slug, "azure-openai", host(), entra(&format!("s3cret-of-{slug}"))).await;
        let client = application(&stack).with("x-gateway-provider", format!("@{slug}"));
        let refused = (status, "credential_unavailable".to_owned());
        stack.until("its login fails", async || code(&ask(&client, "gpt-4o-mini").await) == refused).await;
        let answer = ask(&client, "gpt-4o-mini").await;
        assert!(answer.text().contains("azure-openai") && !answer.text().contains("s3cret"), "{}", answer.text());
        let relayed = client.get("/elsewhere").await;
        assert_eq!(code(&relayed), refused, "the relay lane has no other rules: {}", relayed.text());
        let targets = json!([{ "provider": format!("@{slug}") }, { "provider": "@good" }]);
        let both = with_config(&stack, &json!({ "strategy": { "mode": "fallback" }, "targets": targets }));
        for answer in [ask(&both, "gpt-4o-mini").await, both.get("/elsewhere").await] {
            assert_eq!(answer.status, 200, "{slug}: {}", answer.text());
            assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]", "{slug}");
            assert_eq!(last(&stack).header("authorization"), format!("Bearer {TOKEN}"), "{slug}");
        }
    }
    let log = stack.proxy.log();
    assert!(!log.contains("s3cret") && !log.contains(TOKEN), "{log}");
}

#[tokio::test]
async fn a_token_that_its_provider_refuses_is_replaced_once_and_then_the_refusal_is_the_answer() {
    let login = LoginService::start().await;
    let stack = Stack::builder().proxy("PROVIDER_AZURE_LOGIN_URL", login.url()).start().await;
    let host = format!("{}/openai", stack.mock.origin());
    integrate(&stack, "azure", "azure-openai", host, entra("s3cret")).await;
    let client = application(&stack).with("x-gateway-provider", "@azure");
    until_answered(&stack, &client, "gpt-4o-mini").await;
    for (refusals, status, calls, logins) in [(1, 200, 2, 2), (1, 401, 1, 2), (0, 200, 1, 2)] {
        stack.mock.reset();
        stack.mock.script(json!(vec![json!({ "status": 401 }); refusals])).unwrap();
        let answer = ask(&client, "gpt-4o-mini").await;
        assert_eq!(answer.status.as_u16(), status, "{}", answer.text());
        assert_eq!((stack.mock.requests().len(), login.asked().len()), (calls, logins), "{status}");
    }
    let host = format!("{}/openai", stack.mock.origin());
    integrate(&stack, "relayed", "azure-openai", host, entra("another")).await;
    let client = application(&stack).with("x-gateway-provider", "@relayed");
    until_answered(&stack, &client, "gpt-4o-mini").await;
    assert_eq!(login.asked().len(), 3);
    stack.mock.script(json!([{ "status": 401 }])).unwrap();
    for status in [401, 200] {
        assert_eq!(client.get("/elsewhere").await.status, status);
    }
    assert_eq!(login.asked().len(), 4, "what is relayed is not sent again, but the next has a new token");
}
