//! Whole requests over real connections: login services that answer, are slow, down or talk rubbish; and signatures as
//! they are sent, which botocore verifies in `tests/clients` by the file that is written here.

use super::*;
use crate::net::dial::lab::{self, End, Server};
use http::Method;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::rsa::Rsa;
use openssl::sign::Verifier;
use parking_lot::Mutex;
use serde_json::{Value, json};
use shared::providers::AccountFields;
use shared::secrets::cloud::LoginError;

fn settings(url: &str, limit_ms: u64) -> settings::ProviderLogin {
    settings::ProviderLogin {
        provider_own_identity: false,
        provider_login_timeout_ms: limit_ms,
        provider_aws_sts_url: Some(url.to_owned()),
        provider_azure_login_url: Some(url.to_owned()),
    }
}

fn signing(url: &str, limit_ms: u64) -> Signing {
    Signing::new(&settings(url, limit_ms), Arc::new(lab::dialer()))
}

fn credential(provider: &str, fields: &dyn AccountFields) -> AccountCredential {
    AccountCredential::parse(provider, fields, None, None).unwrap().unwrap()
}

fn entra() -> AccountCredential {
    credential(
        "azure-openai",
        &json!({ "azure_auth_mode": "entra", "azure_entra_tenant_id": "t-1", "azure_entra_client_id": "c",
                 "azure_entra_client_secret": "s3cret" }),
    )
}

/// What a request is sent with.
async fn authorised(
    signing: &Signing,
    credential: &AccountCredential,
    url: &str,
) -> Result<Vec<(String, String)>, SigningError> {
    let mut origin = Origin::parse(url).unwrap();
    origin.set_trusted(true);
    let mut request = UpstreamRequest::new(Method::POST, origin.base_path().to_owned()).unwrap();
    request.add(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    request.add(HeaderName::from_static("x-api-key"), HeaderValue::from_static("a stranger's"));
    signing.authorise(credential, &origin, &mut request, SignedBody::Whole(b"{}")).await?;
    let text = |value: &HeaderValue| value.to_str().unwrap().to_owned();
    Ok(request.headers().map(|(name, value)| (name.to_string(), text(value))).collect())
}

fn value<'h>(headers: &'h [(String, String)], name: &str) -> Option<&'h str> {
    headers.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
}

/// Answers every request with the same text, and keeps what it was asked.
async fn service(answer: impl Into<String>) -> (Server, Arc<Mutex<Vec<lab::Request>>>) {
    let (answer, asked) = (answer.into(), Arc::new(Mutex::new(Vec::new())));
    let cached = asked.clone();
    let server = Server::start(move |stream, _| {
        let (answer, cached) = (answer.clone(), cached.clone());
        async move {
            let mut end = End::new(stream);
            while let Some(request) = end.request().await {
                cached.lock().push(request);
                end.say(&answer).await;
            }
        }
    })
    .await;
    (server, asked)
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn url(server: &Server) -> String {
    format!("http://{}", server.address)
}

const AZURE: &str = "https://r.openai.azure.com/openai/deployments/d/chat/completions";

#[tokio::test]
async fn a_token_is_fetched_once_and_sent_in_place_of_what_came() {
    let (server, asked) = service(ok(r#"{"access_token":"tok","expires_in":3600}"#)).await;
    let signing = signing(&url(&server), 5000);
    for _ in 0..3 {
        let headers = authorised(&signing, &entra(), AZURE).await.unwrap();
        assert_eq!(value(&headers, "authorization"), Some("Bearer tok"));
        assert_eq!(value(&headers, "x-api-key"), None);
    }
    let asked = asked.lock();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].head.starts_with("POST /t-1/oauth2/v2.0/token HTTP/1.1"), "{}", asked[0].head);
    let body = String::from_utf8(asked[0].body.clone()).unwrap();
    let scope = "scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default";
    assert_eq!(body, format!("grant_type=client_credentials&client_id=c&client_secret=s3cret&{scope}"));
}

#[tokio::test]
async fn a_login_service_that_is_down_slow_or_talks_rubbish_is_a_clear_error_that_repeats_nothing() {
    let silent = Server::start(|stream, _| async move { End::new(stream).gone().await }).await;
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: 400000\r\n\r\n{}", " ".repeat(400_000));
    let cut = "HTTP/1.1 200 OK\r\ncontent-length: 400\r\n\r\n{\"access_token\":\"s3cret\"";
    let endless = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_owned() + &"5\r\n     \r\n".repeat(60_000);
    let moved = "HTTP/1.1 302 Found\r\nlocation: http://evil.test/s3cret\r\ncontent-length: 0\r\n\r\n";
    let answers = [
        ("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 6\r\n\r\ns3cret".to_owned(), 503),
        ("HTTP/1.1 401 Unauthorized\r\ncontent-length: 27\r\n\r\n{\"error\":\"invalid_client\"}  ".to_owned(), 502),
        (moved.to_owned(), 502),
        (ok("<html>s3cret</html>"), 502),
        (ok(r#"{"access_token":{"s3cret":1}}"#), 502),
        (ok(r#"{"access_token":"s3cret\r\nx: y"}"#), 502),
        (long, 503),
        (endless, 503),
        (cut.to_owned(), 503),
        ("s3cret is not HTTP\r\n\r\n".to_owned(), 503),
    ];
    let mut places = vec![("http://127.0.0.1:1".to_owned(), 503, None), (url(&silent), 503, None)];
    for (answer, status) in answers {
        let (server, asked) = service(answer).await;
        places.push((url(&server), status, Some((server, asked))));
    }
    for (url, status, server) in places {
        let signing = signing(&url, 300);
        let first = authorised(&signing, &entra(), AZURE).await.unwrap_err();
        let again = authorised(&signing, &entra(), AZURE).await.unwrap_err();
        assert_eq!(first, again, "nobody asks again at once");
        let refusal = first.refusal("azure-openai");
        assert_eq!(refusal.status, status, "{first}");
        assert!(refusal.message.contains("azure-openai") && !refusal.message.contains("s3cret"), "{first}");
        if let Some((server, _)) = server {
            assert_eq!(server.accepted(), 1, "{first}");
        }
    }
}

#[tokio::test]
async fn a_service_account_signs_its_own_word() {
    let (server, asked) = service(ok(r#"{"access_token":"ya29.tok","expires_in":3599,"token_type":"Bearer"}"#)).await;
    let key = PKey::from_rsa(Rsa::generate(2048).unwrap()).unwrap();
    let token_uri = format!("{}/token", url(&server));
    let file = json!({ "type": "service_account", "client_email": "a@p.iam.gserviceaccount.com", "private_key_id": "k1",
                       "private_key": String::from_utf8(key.private_key_to_pem_pkcs8().unwrap()).unwrap(),
                       "token_uri": token_uri });
    let account = credential("vertex-ai", &json!({ "vertex_service_account_json": file }));
    let signing = signing("http://127.0.0.1:9", 5000);
    let headers = authorised(&signing, &account, "https://us-central1-aiplatform.googleapis.com/v1/x").await.unwrap();
    assert_eq!(value(&headers, "authorization"), Some("Bearer ya29.tok"));
    let body = String::from_utf8(asked.lock()[0].body.clone()).unwrap();
    let grant = "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=";
    let assertion = body.strip_prefix(grant).unwrap();
    let (message, signature) = assertion.rsplit_once('.').unwrap();
    let mut verifier = Verifier::new(MessageDigest::sha256(), &key).unwrap();
    assert!(verifier.verify_oneshot(&decoded(signature), message.as_bytes()).unwrap());
    let (head, claims) = message.split_once('.').unwrap();
    let head: Value = serde_json::from_slice(&decoded(head)).unwrap();
    assert_eq!(head, json!({ "alg": "RS256", "typ": "JWT", "kid": "k1" }));
    let claims: Value = serde_json::from_slice(&decoded(claims)).unwrap();
    assert_eq!((&claims["iss"], &claims["aud"]), (&json!("a@p.iam.gserviceaccount.com"), &json!(token_uri)));
    assert_eq!(claims["scope"], "https://www.googleapis.com/auth/cloud-platform");
    assert_eq!(claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap(), 3600);
}

/// base64url without its padding.
fn decoded(text: &str) -> Vec<u8> {
    let text = text.replace('-', "+").replace('_', "/");
    let padding = (4 - text.len() % 4) % 4;
    let mut bytes = openssl::base64::decode_block(&format!("{text}{}", "=".repeat(padding))).unwrap();
    bytes.truncate(text.len() * 3 / 4);
    bytes
}

const BEDROCK: &str = "https://bedrock-runtime.eu-west-1.amazonaws.com/model/m%3A0/converse";

#[tokio::test]
async fn a_role_is_taken_on_with_an_external_id_and_signs() {
    let assumed = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIAROLE</AccessKeyId><SecretAccessKey>sec</SecretAccessKey><SessionToken>tok</SessionToken><Expiration>2099-01-05T10:30:00Z</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>";
    let (server, asked) = service(ok(assumed)).await;
    let signing = signing(&url(&server), 5000);
    let role = json!({ "aws_auth_type": "assumedRole", "aws_role_arn": "arn:aws:iam::1:role/r", "aws_region": "eu-west-1",
                       "aws_external_id": "x&y", "aws_access_key_id": "AKIA1", "aws_secret_access_key": "s" });
    for _ in 0..2 {
        let headers = authorised(&signing, &credential("bedrock", &role), BEDROCK).await.unwrap();
        assert_eq!(value(&headers, "x-amz-security-token"), Some("tok"));
        let names = "SignedHeaders=content-type;host;x-amz-date;x-amz-security-token,";
        let authorization = value(&headers, "authorization").unwrap();
        assert!(authorization.contains("Credential=ASIAROLE/") && authorization.contains(names), "{authorization}");
        assert!(authorization.contains("/eu-west-1/bedrock/aws4_request,"), "{authorization}");
    }
    let asked = asked.lock();
    assert_eq!(asked.len(), 1, "one login for both");
    let body = String::from_utf8(asked[0].body.clone()).unwrap();
    assert!(body.contains("Action=AssumeRole&") && body.contains("ExternalId=x%26y"), "{body}");
    assert!(lab::header(&asked[0].head, "authorization").unwrap().contains("Credential=AKIA1/"));
}

#[tokio::test]
async fn our_own_identity_is_used_only_where_it_is_lent() {
    let lent = r#"{"AccessKeyId":"ASIAOWN","SecretAccessKey":"sec","Token":"tok","Expiration":"2099-01-05T10:30:00Z"}"#;
    let (container, _) = service(ok(lent)).await;
    let (app, asked) = service(ok(r#"{"access_token":"own","expires_in":"86399"}"#)).await;
    let variables = [
        ("AWS_CONTAINER_CREDENTIALS_FULL_URI", format!("{}/creds", url(&container))),
        ("IDENTITY_ENDPOINT", format!("{}/msi/token", url(&app))),
        ("IDENTITY_HEADER", "h".to_owned()),
        ("GCE_METADATA_HOST", app.address.to_string()),
    ];
    let own = OwnIdentity::from_variables(variables.map(|(name, value)| (name.to_owned(), value)));
    let transport =
        || DialerTransport(Arc::new(lab::dialer_with(|settings| settings.outbound.trusted_custom_hosts.clear())));
    let login = |own| CloudLogin::new(transport(), own, Endpoints::default());
    let lending = Signing::with_login(login(own), Duration::from_secs(5));
    let withheld = Signing::with_login(login(OwnIdentity::none()), Duration::from_secs(5));
    let service_role = credential("bedrock", &json!({ "aws_auth_type": "serviceRole", "aws_region": "eu-west-1" }));
    let managed = credential("azure-openai", &json!({ "azure_auth_mode": "managed", "azure_managed_client_id": "m" }));
    let google = credential("vertex-ai", &json!({ "vertex_auth_type": "workloadIdentity" }));
    let vertex = "https://us-central1-aiplatform.googleapis.com/v1/x";
    for (account, url, expected) in [
        (&service_role, BEDROCK, "AWS4-HMAC-SHA256 Credential=ASIAOWN/"),
        (&managed, AZURE, "Bearer own"),
        (&google, vertex, "Bearer own"),
    ] {
        let headers = authorised(&lending, account, url).await.unwrap();
        assert!(value(&headers, "authorization").unwrap().starts_with(expected), "{account:?}");
        let refused = authorised(&withheld, account, url).await.unwrap_err();
        assert!(matches!(refused, SigningError::Login(LoginError::NoIdentity(_))), "{refused}");
    }
    let asked = asked.lock();
    let path = "GET /msi/token?api-version=2019-08-01&resource=https%3A%2F%2Fcognitiveservices.azure.com&client_id=m ";
    assert!(asked[0].head.starts_with(path), "{}", asked[0].head);
    assert!(asked[1].head.starts_with("GET /computeMetadata/v1/instance/service-accounts/default/token "));
    assert_eq!(lab::header(&asked[1].head, "metadata-flavor"), Some("Google"));
}

#[tokio::test]
async fn a_body_that_nobody_has_read_is_not_signed() {
    let signing = signing("http://127.0.0.1:9", 5000);
    let keys = json!({ "aws_access_key_id": "AKIA1", "aws_secret_access_key": "s" });
    let origin = Origin::parse(BEDROCK).unwrap();
    let body = SignedBody::Unsigned;
    let head = HeadToSign { method: "POST", origin: &origin, path_and_query: "/", headers: &[], body };
    let keys = credential("bedrock", &keys);
    assert_eq!(signing.headers(&keys, &head).await.unwrap_err(), SigningError::NeedsBody);
    assert!(signing.headers(&keys.at_aws_service("s3"), &head).await.is_ok());
}

/// Requests as they would be sent, with what our signer adds to them. botocore signs the same ones in
/// `tests/clients/python/test_signatures.py`, and must come to the same signatures.
#[test]
fn the_requests_that_botocore_verifies_are_those_we_sign() {
    let keys = json!({ "id": "AKIDEXAMPLE", "secret": "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY" });
    let session = json!({ "id": "ASIAEXAMPLE", "secret": "abc/+=", "session": "FwoGZXIvYXdzE//+==" });
    let json_body = ("content-type", "application/json");
    let runtime = "https://bedrock-runtime.us-east-1.amazonaws.com";
    let arn = "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Ainference-profile%2Fus.anthropic.claude-sonnet-4-5-20250929-v1%3A0";
    let plain = "/model/anthropic.claude-3-haiku-20240307-v1%3A0";
    let body = r#"{"messages":[{"role":"user","content":[{"text":"Grüße, 世界"}]}]}"#;
    let cases = [
        ("POST", format!("{runtime}{plain}/converse"), "bedrock", vec![json_body], body, &keys),
        ("POST", format!("{runtime}{plain}/converse-stream"), "bedrock", vec![json_body], body, &session),
        ("POST", format!("{runtime}/model/{arn}/converse"), "bedrock", vec![json_body], body, &keys),
        ("POST", format!("{runtime}{plain}/invoke"), "bedrock", vec![json_body, ("accept", "*/*")], "{}", &session),
        (
            "POST",
            format!("{runtime}{plain}/invoke-with-response-stream"),
            "bedrock",
            vec![json_body, ("x-amzn-bedrock-guardrailidentifier", "g  1"), ("x-amzn-trace-id", "Root=1")],
            "{}",
            &keys,
        ),
        ("POST", format!("{runtime}{plain}/count-tokens"), "bedrock", vec![json_body], "", &keys),
        (
            "GET",
            "https://bedrock.us-east-1.amazonaws.com/inference-profiles?type=SYSTEM_DEFINED&maxResults=100".to_owned(),
            "bedrock",
            vec![],
            "",
            &session,
        ),
        (
            "GET",
            "https://bedrock.us-east-1.amazonaws.com/model-invocation-job/arn%3Aaws%3Abedrock%3Ajob%2F1".to_owned(),
            "bedrock",
            vec![],
            "",
            &keys,
        ),
        (
            "POST",
            "https://runtime.sagemaker.us-east-1.amazonaws.com/endpoints/my-endpoint/invocations".to_owned(),
            "sagemaker",
            vec![json_body, ("x-amzn-sagemaker-target-model", "m.tar.gz")],
            r#"{"inputs":"x"}"#,
            &keys,
        ),
        (
            "POST",
            "https://bedrock-mantle.us-east-1.api.aws/v1/chat/completions".to_owned(),
            "bedrock-mantle",
            vec![json_body],
            "{}",
            &keys,
        ),
        (
            "POST",
            "https://aws-external-anthropic.us-east-1.api.aws/v1/messages".to_owned(),
            "aws-external-anthropic",
            vec![json_body, ("anthropic-workspace-id", "w")],
            "{}",
            &session,
        ),
        ("PUT", "https://b.s3.us-east-1.amazonaws.com/a%20b//c.jsonl".to_owned(), "s3", vec![], "{}\n", &session),
        ("POST", "https://localhost:8443/model/m/converse".to_owned(), "bedrock", vec![json_body], "{}", &keys),
    ];
    let now = "2026-11-16T22:30:00Z";
    let lines: Vec<String> = cases
        .iter()
        .map(|(method, url, service, headers, body, keys)| {
            let text = |name: &str| keys[name].as_str().map(|text| text.to_owned().into());
            let own = AwsKeys { id: text("id").unwrap(), secret: text("secret").unwrap(), session: text("session") };
            let (base, query) = url.split_once('?').unwrap_or((url, ""));
            let origin = Origin::parse(base).unwrap();
            let path_and_query = [origin.base_path(), if query.is_empty() { "" } else { "?" }, query].concat();
            let body_bytes = SignedBody::Whole(body.as_bytes());
            let (origin, path_and_query) = (&origin, path_and_query.as_str());
            let head = HeadToSign { method, origin, path_and_query, headers, body: body_bytes };
            let added = aws_headers(&head, &own, "us-east-1", service, now.parse().unwrap()).unwrap();
            let pairs = |(name, value): &(HeaderName, HeaderValue)| json!([name.as_str(), value.to_str().unwrap()]);
            json!({
                "method": method, "url": url, "service": service, "region": "us-east-1", "keys": keys, "at": now,
                "headers": headers, "body": body, "added": added.iter().map(pairs).collect::<Vec<_>>(),
            })
            .to_string()
        })
        .collect();
    let found = format!("[\n{}\n]\n", lines.join(",\n"));
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden/sigv4/requests.json");
    if std::env::var("GOLDEN").as_deref() == Ok("write") {
        std::fs::write(&path, &found).unwrap();
    }
    let cached = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(cached == found, "{} differs; GOLDEN=write rewrites it. Found:\n{found}", path.display());
}
