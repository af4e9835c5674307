//! A log store in a bucket whose key is stored nowhere: the proxy shows a token of the machine that it runs on and gets credentials
//! for an hour, from the token service of each cloud. Services and buckets are on loopback, at the settings that the vendors'
//! own clients have for them; token services speak HTTPS with a certificate of an authority of this test, which is verified.

use axum::Router;
use axum::body::Bytes;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::serve::Listener;
use bench::mock::{Authority, Identity};
use chrono::{SecondsFormat, TimeDelta, Utc};
use harness::{Stack, chat};
use openssl::pkey::PKey;
use openssl::ssl::{Ssl, SslAcceptor, SslMethod};
use openssl::x509::X509;
use serde_json::json;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use tempfile::{NamedTempFile, TempDir};
use tokio::net::{TcpListener, TcpStream};
use tokio_openssl::SslStream;

const FAILURES: &str = "gateway_log_bodies_failures_total";
const STORED: &str = "gateway_log_bodies_stored_total";
/// What the machine shows, and what it is given for it.
const SHOWN: &str = "token-of-this-machine";
const GIVEN: &str = "given-for-an-hour";

/// The token service and the bucket of a cloud.
struct Cloud {
    plain: String,
    encrypted: String,
    authority: NamedTempFile,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    /// Whether the metadata service, which is asked for no token, knows the machine.
    is_known: bool,
    exchanges: usize,
    refused: usize,
    stored: Vec<String>,
}

struct Encrypted {
    listener: TcpListener,
    acceptor: SslAcceptor,
}

impl Listener for Encrypted {
    type Io = SslStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((client, address)) = self.listener.accept().await else { continue };
            let mut stream = SslStream::new(Ssl::new(self.acceptor.context()).unwrap(), client).unwrap();
            // Who does not trust us hangs up.
            if Pin::new(&mut stream).accept().await.is_ok() {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

impl Cloud {
    async fn start() -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let authority = Authority::new().unwrap();
        let pem = NamedTempFile::new().unwrap();
        std::fs::write(pem.path(), authority.pem().unwrap()).unwrap();
        let router = || {
            let seen = seen.clone();
            Router::new().fallback(move |method: Method, uri: Uri, headers: HeaderMap, body: Bytes| {
                let answer = answer(&mut seen.lock().unwrap(), &method, &uri, &headers, &body);
                async move { answer }
            })
        };
        let plain = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = [plain.local_addr().unwrap(), listener.local_addr().unwrap()];
        tokio::spawn(axum::serve(plain, router()).into_future());
        let encrypted = Encrypted { listener, acceptor: acceptor(&authority.issue(&["127.0.0.1"]).unwrap()) };
        tokio::spawn(axum::serve(encrypted, router()).into_future());
        Self { plain: format!("http://{}", at[0]), encrypted: format!("https://{}", at[1]), authority: pem, seen }
    }

    /// Objects that were stored, and machines that were refused.
    fn so_far(&self) -> (usize, usize) {
        let seen = self.seen.lock().unwrap();
        (seen.stored.len(), seen.refused)
    }

    /// A call whose body is stored only once the machine shows the right token.
    async fn check(&self, environment: &[(&str, &str)], become_known: impl FnOnce()) {
        let mut stack = Stack::builder();
        let authority = self.authority.path().to_str().unwrap();
        for (name, value) in environment.iter().chain(&[("SSL_CERT_FILE", authority)]) {
            stack = stack.proxy(name, *value);
        }
        let stack = stack.start().await;
        assert_eq!(stack.client().post("/chat/completions", &chat("Hello")).await.status, 200);
        stack.until("it was tried", async || stack.metric(FAILURES).await.is_some_and(|count| count > 0.0)).await;
        let (stored, refused) = self.so_far();
        assert!(stored == 0 && refused > 0, "{stored} {refused}");
        become_known();
        stack.until("it is stored", async || stack.metric(STORED).await == Some(1.0)).await;
        let seen = self.seen.lock().unwrap();
        assert!(seen.exchanges >= 1 && seen.stored.len() == 1, "{} {:?}", seen.exchanges, seen.stored);
        assert!(seen.stored[0].starts_with("/logs/gateway"), "{:?}", seen.stored);
        let log = stack.proxy.log();
        assert!(!log.contains(SHOWN) && !log.contains(GIVEN), "no token is logged");
    }
}

fn acceptor(identity: &Identity) -> SslAcceptor {
    let mut builder = SslAcceptor::mozilla_intermediate_v5(SslMethod::tls_server()).unwrap();
    builder.set_certificate(&X509::from_pem(identity.cert_pem.as_bytes()).unwrap()).unwrap();
    builder.set_private_key(&PKey::private_key_from_pem(identity.key_pem.as_bytes()).unwrap()).unwrap();
    builder.build()
}

fn answer(seen: &mut Seen, method: &Method, uri: &Uri, headers: &HeaderMap, body: &[u8]) -> Response {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let fields = |text: &[u8]| url::form_urlencoded::parse(text).into_owned().collect::<Vec<(String, String)>>();
    let (query, form) = (fields(uri.query().unwrap_or_default().as_bytes()), fields(body));
    let has = |fields: &[(String, String)], name: &str, value: &str| {
        fields.iter().any(|(one, sent)| one == name && sent.trim() == value)
    };
    let given = json!({ "access_token": GIVEN, "token_type": "Bearer", "expires_in": 3600 });
    let exchanged = |is_known: bool, answer: Response, seen: &mut Seen| {
        seen.exchanges += usize::from(is_known);
        seen.refused += usize::from(!is_known);
        if is_known { answer } else { StatusCode::FORBIDDEN.into_response() }
    };
    if has(&query, "Action", "AssumeRoleWithWebIdentity") {
        let is_known = has(&query, "WebIdentityToken", SHOWN) && has(&query, "RoleArn", ROLE);
        return exchanged(is_known, credentials().into_response(), seen);
    }
    if uri.path().ends_with("/oauth2/v2.0/token") {
        let is_known = has(&form, "client_assertion", SHOWN) && has(&form, "client_id", "gateway");
        return exchanged(is_known, axum::Json(given).into_response(), seen);
    }
    if uri.path().starts_with("/computeMetadata/") {
        let is_known = seen.is_known && header("metadata-flavor") == "Google";
        return exchanged(is_known, axum::Json(given).into_response(), seen);
    }
    let is_ours = header("authorization") == format!("Bearer {GIVEN}") || header("x-amz-security-token") == GIVEN;
    if *method != Method::PUT || !is_ours {
        return StatusCode::FORBIDDEN.into_response();
    }
    seen.stored.push(uri.path().to_owned());
    (StatusCode::CREATED, [("etag", "\"1\""), ("last-modified", "Thu, 15 Jan 2026 12:00:00 GMT")]).into_response()
}

const ROLE: &str = "arn:aws:iam::123456789012:role/gateway";

/// As the security token service writes them.
fn credentials() -> String {
    let until = (Utc::now() + TimeDelta::hours(1)).to_rfc3339_opts(SecondsFormat::Secs, true);
    format!(
        "<AssumeRoleWithWebIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\
         <AssumeRoleWithWebIdentityResult><Credentials><SessionToken>{GIVEN}</SessionToken>\
         <SecretAccessKey>secret</SecretAccessKey><Expiration>{until}</Expiration><AccessKeyId>ASIAGIVEN</AccessKeyId>\
         </Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
    )
}

/// A file that the platform keeps current; at first it holds what nobody knows.
fn token_file() -> (TempDir, std::path::PathBuf) {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "stale").unwrap();
    (folder, path)
}

#[tokio::test]
async fn a_bucket_of_aws_is_written_by_web_identity() {
    let (cloud, (_folder, token)) = (Cloud::start().await, token_file());
    let environment = [
        ("LOG_STORE_URL", "s3://logs/gateway"),
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ENDPOINT_URL_S3", cloud.plain.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ENDPOINT_URL_STS", cloud.encrypted.as_str()),
        ("AWS_ROLE_ARN", ROLE),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", token.to_str().unwrap()),
    ];
    cloud.check(&environment, || std::fs::write(&token, SHOWN).unwrap()).await;
}

#[tokio::test]
async fn a_container_of_azure_is_written_by_workload_identity() {
    let (cloud, (_folder, token)) = (Cloud::start().await, token_file());
    let environment = [
        ("LOG_STORE_URL", "az://logs/gateway"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "account"),
        ("AZURE_STORAGE_ENDPOINT", cloud.plain.as_str()),
        ("AZURE_ALLOW_HTTP", "true"),
        ("AZURE_AUTHORITY_HOST", cloud.encrypted.as_str()),
        ("AZURE_TENANT_ID", "tenant"),
        ("AZURE_CLIENT_ID", "gateway"),
        ("AZURE_FEDERATED_TOKEN_FILE", token.to_str().unwrap()),
    ];
    cloud.check(&environment, || std::fs::write(&token, SHOWN).unwrap()).await;
}

/// Google's clusters give a workload its token by the metadata service of the node, in the clear and on the node alone.
#[tokio::test]
async fn a_bucket_of_google_is_written_by_workload_identity() {
    let cloud = Cloud::start().await;
    let host = cloud.plain.trim_start_matches("http://").to_owned();
    let environment = [
        ("LOG_STORE_URL", "gs://logs/gateway"),
        ("GOOGLE_BASE_URL", cloud.plain.as_str()),
        ("GCE_METADATA_HOST", host.as_str()),
        ("GCE_METADATA_IP", host.as_str()),
        ("HOME", "/nonexistent"),
    ];
    cloud.check(&environment, || cloud.seen.lock().unwrap().is_known = true).await;
}
