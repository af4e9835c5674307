//! Each way to authenticate, walked against a manager that answers as the real ones do (bodies as recorded from them).

use super::*;
use crate::secrets::ManagerKind;
use crate::secrets::cloud::{Request, Response, Sending};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use uuid::Uuid;

type Answer = fn(&Request) -> (u16, String);

/// Answers by a rule, and keeps what it was asked.
struct Double {
    answer: Answer,
    asked: Mutex<Vec<Request>>,
}

impl Http for Double {
    fn send(&self, request: Request) -> Sending {
        let (status, body) = (self.answer)(&request);
        self.asked.lock().unwrap().push(request);
        Box::pin(async move { Ok(Response { status, body: body.into_bytes() }) })
    }
}

impl Double {
    fn places(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(|one| format!("{one:?}")).collect()
    }

    fn header(&self, n: usize, name: &str) -> Option<String> {
        let asked = self.asked.lock().unwrap();
        asked[n].headers.iter().find(|(one, _)| *one == name).map(|(_, value)| value.clone())
    }

    fn body(&self, n: usize) -> String {
        String::from_utf8(self.asked.lock().unwrap()[n].body.clone()).unwrap()
    }
}

fn manager(answer: Answer, own: OwnIdentity) -> (Arc<Double>, Fetcher) {
    let double = Arc::new(Double { answer, asked: Mutex::default() });
    (Arc::clone(&double), Fetcher::new(double, own, Endpoints::default()))
}

fn reference(kind: &str, config: &Value, path: &str) -> Reference {
    let kind = ManagerKind::parse(kind).unwrap();
    Reference::new(Uuid::nil(), kind, config.as_object().unwrap(), path.into(), None).unwrap()
}

fn own(pairs: &[(&str, &str)]) -> OwnIdentity {
    OwnIdentity::from_variables(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
}

async fn fetched(fetcher: &Fetcher, reference: &Reference) -> Result<String, FetchError> {
    fetcher.fetch(reference).await.map(|found| found.text.expose_text().unwrap().to_owned())
}

fn vault(request: &Request) -> (u16, String) {
    let path = request.url.strip_prefix("https://vault.test").unwrap_or_default();
    let header = |name: &str| request.headers.iter().find(|(one, _)| *one == name).map(|(_, value)| value.as_str());
    match (request.method, path) {
        ("POST", "/v1/auth/approle/login" | "/v1/auth/kubernetes/login") => {
            (200, r#"{"auth":{"client_token":"hvs.login","lease_duration":3600,"renewable":true}}"#.into())
        }
        _ if header("x-vault-token") != Some("hvs.login") => {
            (403, r#"{"errors":["2 errors occurred:\n\t* permission denied\n\t* invalid token\n\n"]}"#.into())
        }
        ("GET", "/v1/secret/data/app") => (
            200,
            r#"{"data":{"data":{"api_key":"sk-1"},"metadata":{"created_time":"2026-01-05T10:30:00Z","deletion_time":"","destroyed":false,"version":3}}}"#.into(),
        ),
        ("GET", "/v1/secret/app") => {
            (404, r#"{"errors":[],"warnings":["Invalid path for a versioned K/V secrets engine."]}"#.into())
        }
        _ => (404, r#"{"errors":[]}"#.into()),
    }
}

#[tokio::test]
async fn vault_is_logged_into_once_and_anew_when_the_token_was_revoked() {
    let (double, fetcher) = manager(vault, own(&[]));
    let config = json!({ "vault_auth_type": "approle", "vault_addr": "https://vault.test/", "vault_role_id": "r",
                         "vault_secret_id": "s", "vault_namespace": "team/a" });
    let reference = reference("hashicorp_vault", &config, "secret/app");
    for _ in 0..2 {
        assert_eq!(fetched(&fetcher, &reference).await.unwrap(), r#"{"api_key":"sk-1"}"#);
    }
    let expected = [
        "POST https://vault.test/v1/auth/approle/login",
        "GET https://vault.test/v1/secret/app",
        "GET https://vault.test/v1/secret/data/app",
        "GET https://vault.test/v1/secret/app",
        "GET https://vault.test/v1/secret/data/app",
    ];
    assert_eq!(double.places(), expected, "the path of the engine's second version is found");
    assert_eq!(double.header(1, "x-vault-namespace").as_deref(), Some("team/a"));
    assert_eq!(double.body(0), r#"{"role_id":"r","secret_id":"s"}"#);
    let revoked = Login::Token("hvs.revoked".to_owned().into());
    fetcher.logins.keep(reference.login, revoked, std::time::Duration::from_secs(3600), Instant::now());
    assert_eq!(fetched(&fetcher, &reference).await.unwrap(), r#"{"api_key":"sk-1"}"#);
    assert_eq!(double.places().iter().filter(|place| place.ends_with("login")).count(), 2);
}

#[tokio::test]
async fn a_token_that_vault_does_not_take_is_a_denial_and_is_not_tried_twice() {
    let (double, fetcher) = manager(vault, own(&[]));
    let config = json!({ "vault_auth_type": "token", "vault_addr": "https://vault.test", "vault_token": "wrong" });
    let denied = fetched(&fetcher, &reference("hashicorp_vault", &config, "secret/data/app")).await.unwrap_err();
    assert_eq!(denied, FetchError::Denied("status 403".into()));
    assert_eq!(double.places().len(), 1);
}

#[tokio::test]
async fn kubernetes_shows_its_token_to_vault_unless_our_identity_is_withheld() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "a.b.c\n").unwrap();
    let identity = own(&[("KUBERNETES_TOKEN_FILE", file.path().to_str().unwrap())]);
    let config = json!({ "vault_auth_type": "kubernetes", "vault_addr": "https://vault.test", "vault_role": "gw" });
    let reference = reference("hashicorp_vault", &config, "secret/data/app");
    let (double, fetcher) = manager(vault, identity);
    assert!(fetched(&fetcher, &reference).await.is_ok());
    assert_eq!(double.body(0), r#"{"role":"gw","jwt":"a.b.c"}"#);
    let (double, fetcher) = manager(vault, OwnIdentity::none());
    assert!(matches!(fetched(&fetcher, &reference).await, Err(FetchError::NoIdentity(_))));
    assert!(double.places().is_empty(), "nothing was sent anywhere");
}

fn azure(request: &Request) -> (u16, String) {
    let token = || (200, r#"{"token_type":"Bearer","expires_in":3599,"access_token":"eyJ.az"}"#.to_owned());
    let of_machine = || {
        (200, r#"{"access_token":"eyJ.az","client_id":"c","expires_in":"86399","resource":"https://vault.azure.net","token_type":"Bearer"}"#.to_owned())
    };
    let place = request.url.split('?').next().unwrap_or_default();
    let is_bearer = request.headers.iter().any(|(name, value)| *name == "authorization" && value == "Bearer eyJ.az");
    match (request.method, place) {
        ("POST", "https://login.microsoftonline.com/tenant-1/oauth2/v2.0/token") => token(),
        ("GET", "http://169.254.169.254/metadata/identity/oauth2/token" | "http://127.0.0.1:41/msi/token")
            if request.is_own_identity =>
        {
            of_machine()
        }
        ("GET", "https://my.vault.azure.net/secrets/openai-key") if is_bearer => (
            200,
            r#"{"value":"sk-az","id":"https://my.vault.azure.net/secrets/openai-key/1","attributes":{"enabled":true,"created":1,"updated":1,"recoveryLevel":"Recoverable"},"tags":{}}"#.into(),
        ),
        _ => (401, r#"{"error":{"code":"Unauthorized","message":"AKV10000"}}"#.into()),
    }
}

#[tokio::test]
async fn azure_is_asked_with_a_token_of_the_client_of_the_machine_of_the_app_or_of_the_workload() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "federated").unwrap();
    let url = "https://my.vault.azure.net";
    let entra = json!({ "azure_auth_mode": "entra", "azure_entra_tenant_id": "tenant-1", "azure_entra_client_id": "c&1",
                        "azure_entra_client_secret": "s=1", "azure_vault_url": url });
    let managed = json!({ "azure_auth_mode": "managed", "azure_managed_client_id": "m", "azure_vault_url": url });
    let default = json!({ "azure_auth_mode": "default", "azure_vault_url": url });
    let workload = [
        ("AZURE_TENANT_ID", "tenant-1"),
        ("AZURE_CLIENT_ID", "c"),
        ("AZURE_FEDERATED_TOKEN_FILE", file.path().to_str().unwrap()),
    ];
    let app = [("IDENTITY_ENDPOINT", "http://127.0.0.1:41/msi/token"), ("IDENTITY_HEADER", "h")];
    let scope = "scope=https%3A%2F%2Fvault.azure.net%2F.default";
    for (config, identity, url_or_body) in [
        (&entra, own(&[]), format!("grant_type=client_credentials&client_id=c%261&client_secret=s%3D1&{scope}")),
        (&managed, own(&[]), "resource=https%3A%2F%2Fvault.azure.net&client_id=m".into()),
        (&default, own(&[]), "api-version=2018-02-01&resource=https%3A%2F%2Fvault.azure.net".into()),
        (&default, own(&app), "api-version=2019-08-01".into()),
        (&default, own(&workload), "client_assertion=federated".into()),
    ] {
        let (double, fetcher) = manager(azure, identity);
        let reference = reference("azure_kv", config, "openai-key");
        for _ in 0..2 {
            assert_eq!(fetched(&fetcher, &reference).await.unwrap(), "sk-az", "{config}");
        }
        assert_eq!(double.places().len(), 3, "one token for two fetches: {:?}", double.places());
        let url = double.asked.lock().unwrap()[0].url.clone();
        let asked = format!("{url} {}", double.body(0));
        assert!(asked.contains(&url_or_body), "{asked}");
    }
    let (_, fetcher) = manager(azure, OwnIdentity::none());
    let denied = fetched(&fetcher, &reference("azure_kv", &default, "openai-key")).await;
    assert!(matches!(denied, Err(FetchError::NoIdentity(_))), "{denied:?}");
}

fn aws(request: &Request) -> (u16, String) {
    const LENT: &str = r#"{"Code":"Success","AccessKeyId":"ASIALENT","SecretAccessKey":"sec","Token":"tok","Expiration":"2099-01-05T10:30:00Z"}"#;
    const ASSUMED: &str = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>sec</SecretAccessKey><SessionToken>tok</SessionToken><Expiration>2099-01-05T10:30:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
    match (request.method, request.url.as_str()) {
        ("PUT", "http://169.254.169.254/latest/api/token") => (200, "imds-session".into()),
        ("GET", "http://169.254.169.254/latest/meta-data/iam/security-credentials/") => (200, "my-role\n".into()),
        ("GET", "http://169.254.169.254/latest/meta-data/iam/security-credentials/my-role") => (200, LENT.into()),
        ("GET", "http://169.254.170.2/v2/credentials/1" | "http://127.0.0.1:42/creds") => (200, LENT.into()),
        ("POST", "https://sts.eu-west-1.amazonaws.com/") => (200, ASSUMED.into()),
        ("POST", "https://secretsmanager.eu-west-1.amazonaws.com/") => {
            (200, r#"{"ARN":"a","Name":"n","SecretString":"sk-aws","VersionStages":["AWSCURRENT"]}"#.into())
        }
        _ => (500, String::new()),
    }
}

#[tokio::test]
async fn aws_is_asked_as_whoever_this_process_is_or_as_the_role_it_takes_on() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "web-token").unwrap();
    let role = json!({ "aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::1:role/r",
                       "aws_external_id": "x&y", "aws_region": "eu-west-1" });
    let service = json!({ "aws_auth_type": "serviceRole" });
    let region = ("AWS_REGION", "eu-west-1");
    let keys = [("AWS_ACCESS_KEY_ID", "AKIAOWN"), ("AWS_SECRET_ACCESS_KEY", "s"), region];
    let web = [("AWS_ROLE_ARN", "arn:own"), ("AWS_WEB_IDENTITY_TOKEN_FILE", file.path().to_str().unwrap()), region];
    let container = [("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/credentials/1"), region];
    let pod = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:42/creds"),
        ("AWS_CONTAINER_AUTHORIZATION_TOKEN", "t"),
        region,
    ];
    for (config, identity, signer, requests) in [
        (&service, own(&keys), "AKIAOWN", 1),
        (&service, own(&web), "ASIAROLE", 2),
        (&service, own(&container), "ASIALENT", 2),
        (&service, own(&pod), "ASIALENT", 2),
        (&service, own(&[region]), "ASIALENT", 4),
        (&role, own(&keys), "ASIAROLE", 2),
    ] {
        let (double, fetcher) = manager(aws, identity);
        let reference = reference("aws_sm", config, "prod/openai");
        assert_eq!(fetched(&fetcher, &reference).await.unwrap(), "sk-aws", "{signer}: {:?}", double.places());
        let last = double.places().len() - 1;
        assert_eq!(last + 1, requests, "{:?}", double.places());
        assert!(double.header(last, "authorization").unwrap().contains(&format!("Credential={signer}/")), "{signer}");
        assert_eq!(double.header(last, "x-amz-target").as_deref(), Some("secretsmanager.GetSecretValue"));
        assert_eq!(double.body(last), r#"{"SecretId":"prod/openai"}"#);
        fetched(&fetcher, &reference).await.unwrap();
        assert_eq!(double.places().len(), requests + 1, "keys are kept: {:?}", double.places());
    }
    let (double, fetcher) = manager(aws, own(&keys));
    fetched(&fetcher, &reference("aws_sm", &role, "prod/openai")).await.unwrap();
    assert!(double.body(0).contains("ExternalId=x%26y") && double.body(0).contains("Action=AssumeRole&"));
    assert!(double.header(0, "authorization").unwrap().contains("Credential=AKIAOWN/"));
    for config in [&service, &role] {
        let (double, fetcher) = manager(aws, OwnIdentity::none());
        let refused = fetched(&fetcher, &reference("aws_sm", config, "prod/openai")).await;
        assert!(matches!(refused, Err(FetchError::NoIdentity(_))), "{refused:?}");
        assert!(double.places().is_empty());
    }
}
