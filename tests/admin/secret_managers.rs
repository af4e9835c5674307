//! Fetching from a server that speaks as AWS does, and checks signatures and policies as AWS does.

use bench::ports::Reservation;
use harness::python::{self, Server};
use harness::until;
use serde_json::{Value, json};
use shared::secrets::{
    Endpoints, FetchError, Fetcher, Http, ManagerKind, OwnIdentity, Reference, Request, Response, Store,
};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

const MOTO: &str = "moto[server]==5.2.5\n";
const REGION: &str = "eu-west-1";

/// Sends as the proxy will, but without its rules about addresses.
struct Plain(reqwest::Client);

impl Http for Plain {
    fn send(&self, request: Request) -> std::pin::Pin<Box<dyn Future<Output = Result<Response, String>> + Send>> {
        let method = request.method.parse().expect("a known method");
        let sent = self.0.request(method, &request.url).body(request.body);
        let sent = request.headers.into_iter().fold(sent, |sent, (name, value)| sent.header(name, value));
        Box::pin(async move {
            let response = sent.send().await.map_err(|_| "no connection".to_owned())?;
            let status = response.status().as_u16();
            let body = response.bytes().await.map_err(|_| "it broke off".to_owned())?;
            Ok(Response { status, body: body.to_vec() })
        })
    }
}

/// AWS on this machine.
struct Aws {
    url: String,
    http: reqwest::Client,
    _server: Server,
    _port: Reservation,
}

impl Aws {
    async fn start() -> Self {
        let python = tokio::task::spawn_blocking(|| python::with(MOTO)).await.unwrap();
        let port = Reservation::any().unwrap();
        let url = format!("http://127.0.0.1:{}", port.port());
        let mut command = Command::new(python);
        command.args(["-m", "moto.server", "-H", "127.0.0.1", "-p", &port.port().to_string()]);
        let server = Server::start(&mut command);
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        until("moto answers", async || http.get(format!("{url}/moto-api/")).send().await.is_ok()).await;
        Self { url, http, _server: server, _port: port }
    }

    /// Sets something up while nothing is checked yet; the header only says for which service it is.
    async fn iam(&self, pairs: &[(&str, &str)]) -> String {
        let scope = format!(
            "AWS4-HMAC-SHA256 Credential=AKIASETUP/20260101/{REGION}/iam/aws4_request, SignedHeaders=host, Signature=x"
        );
        let form: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={}", escaped(value))).collect();
        let answer = self.http.post(&self.url).header("authorization", scope);
        let answer = answer.header("content-type", "application/x-www-form-urlencoded").body(form.join("&"));
        let answer = answer.send().await.unwrap();
        let (status, text) = (answer.status(), answer.text().await.unwrap());
        assert!(status.is_success(), "{pairs:?}: {status} {text}");
        text
    }

    async fn secrets(&self, action: &str, body: Value) {
        let scope = format!(
            "AWS4-HMAC-SHA256 Credential=AKIASETUP/20260101/{REGION}/secretsmanager/aws4_request, SignedHeaders=host, Signature=x"
        );
        let answer = self.http.post(&self.url).header("authorization", scope).body(body.to_string());
        let answer = answer.header("x-amz-target", format!("secretsmanager.{action}"));
        let answer = answer.header("content-type", "application/x-amz-json-1.1").send().await.unwrap();
        assert!(answer.status().is_success(), "{action}: {}", answer.text().await.unwrap());
    }

    /// A user with keys who may do just this; id and secret.
    async fn user(&self, name: &str, actions: &[&str]) -> (String, String) {
        self.iam(&[("Action", "CreateUser"), ("Version", "2010-05-08"), ("UserName", name)]).await;
        let policy = policy(actions);
        let put = [("Action", "PutUserPolicy"), ("UserName", name), ("PolicyName", "p"), ("PolicyDocument", &policy)];
        self.iam(&[&[("Version", "2010-05-08")], &put[..]].concat()).await;
        let made = self.iam(&[("Action", "CreateAccessKey"), ("Version", "2010-05-08"), ("UserName", name)]).await;
        let element = |name: &str| {
            let rest = made.split_once(&format!("<{name}>")).unwrap().1;
            rest.split_once(&format!("</{name}>")).unwrap().0.to_owned()
        };
        (element("AccessKeyId"), element("SecretAccessKey"))
    }

    async fn role(&self, name: &str, actions: &[&str]) -> String {
        let trust = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Principal": { "AWS": "*" }, "Action": "sts:AssumeRole" }] });
        let trust = trust.to_string();
        let create = [("Action", "CreateRole"), ("RoleName", name), ("AssumeRolePolicyDocument", &trust)];
        self.iam(&[&[("Version", "2010-05-08")], &create[..]].concat()).await;
        let policy = policy(actions);
        let put = [("Action", "PutRolePolicy"), ("RoleName", name), ("PolicyName", "p"), ("PolicyDocument", &policy)];
        self.iam(&[&[("Version", "2010-05-08")], &put[..]].concat()).await;
        format!("arn:aws:iam::123456789012:role/{name}")
    }

    /// From now on signatures and policies count.
    async fn check_everything(&self) {
        let answer = self.http.post(format!("{}/moto-api/reset-auth", self.url)).body("0").send().await.unwrap();
        assert!(answer.status().is_success());
    }

    fn fetcher(&self, own: OwnIdentity) -> Fetcher {
        let endpoints = Endpoints { aws: Some(self.url.clone()), ..Endpoints::default() };
        Fetcher::new(Plain(self.http.clone()), own, endpoints)
    }
}

fn policy(actions: &[&str]) -> String {
    let statement = json!([{ "Effect": "Allow", "Action": actions, "Resource": "*" }]);
    json!({ "Version": "2012-10-17", "Statement": statement }).to_string()
}

fn escaped(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

fn reference(config: Value, path: &str) -> Reference {
    let config = config.as_object().unwrap();
    Reference::new(Uuid::nil(), ManagerKind::Aws, config, path.into(), None).unwrap()
}

fn by_key((id, secret): &(String, String), path: &str) -> Reference {
    let config = json!({ "aws_auth_type": "accessKey", "aws_access_key_id": id, "aws_secret_access_key": secret, "aws_region": REGION });
    reference(config, path)
}

async fn text(fetcher: &Fetcher, reference: &Reference) -> Result<String, FetchError> {
    fetcher.fetch(reference).await.map(|found| found.text.expose_text().unwrap().to_owned())
}

#[tokio::test]
async fn secrets_come_from_aws_to_who_signs_and_may_and_to_nobody_else() {
    let aws = Aws::start().await;
    aws.secrets("CreateSecret", json!({ "Name": "prod/openai", "SecretString": "{\"key\":\"sk-1 ä/+\"}", "ClientRequestToken": Uuid::new_v4() })).await;
    let reader = aws.user("reader", &["secretsmanager:GetSecretValue"]).await;
    let bystander = aws.user("bystander", &["s3:GetObject"]).await;
    let assumer = aws.user("assumer", &["sts:AssumeRole"]).await;
    let role = aws.role("fetching", &["secretsmanager:GetSecretValue"]).await;
    aws.check_everything().await;
    let fetcher = aws.fetcher(OwnIdentity::none());
    assert_eq!(text(&fetcher, &by_key(&reader, "prod/openai")).await.unwrap(), "{\"key\":\"sk-1 ä/+\"}");
    let missing = text(&fetcher, &by_key(&reader, "prod/nothing")).await;
    assert!(matches!(missing, Err(FetchError::Missing(_))), "{missing:?}");
    let wrong = (reader.0.clone(), "wrong-secret".to_owned());
    let unknown = ("AKIANOBODY".to_owned(), "secret".to_owned());
    for (who, keys) in [("a wrong signature", &wrong), ("unknown keys", &unknown), ("no permission", &bystander)] {
        let denied = text(&fetcher, &by_key(keys, "prod/openai")).await;
        assert!(matches!(denied, Err(FetchError::Denied(_))), "{who}: {denied:?}");
    }
    let own = OwnIdentity::of([
        ("AWS_ACCESS_KEY_ID".to_owned(), assumer.0.clone()),
        ("AWS_SECRET_ACCESS_KEY".to_owned(), assumer.1.clone()),
    ]);
    let fetcher = aws.fetcher(own);
    let by_role = json!({ "aws_auth_type": "assumedRole", "aws_role_arn": role, "aws_region": REGION });
    assert_eq!(text(&fetcher, &reference(by_role, "prod/openai")).await.unwrap(), "{\"key\":\"sk-1 ä/+\"}");
    let itself = json!({ "aws_auth_type": "serviceRole", "aws_region": REGION });
    let denied = text(&fetcher, &reference(itself, "prod/openai")).await;
    assert!(matches!(denied, Err(FetchError::Denied(_))), "only the role may: {denied:?}");
}

#[tokio::test]
async fn a_new_value_replaces_the_old_one_a_deleted_secret_ends_and_a_manager_that_is_away_does_not() {
    let aws = Aws::start().await;
    let create = json!({ "Name": "k", "SecretString": "one", "ClientRequestToken": Uuid::new_v4() });
    aws.secrets("CreateSecret", create).await;
    let keys = ("AKIAANY".to_owned(), "any".to_owned());
    let reference = by_key(&keys, "k");
    let store = Arc::new(Store::with_ttl(aws.fetcher(OwnIdentity::none()), Duration::from_millis(20)));
    tokio::spawn(Arc::clone(&store).run());
    let value = async || store.value(&reference, None).await.map(|found| found.expose_text().unwrap().to_owned());
    assert_eq!(value().await.as_deref(), Ok("one"));
    aws.secrets(
        "PutSecretValue",
        json!({ "SecretId": "k", "SecretString": "two", "ClientRequestToken": Uuid::new_v4() }),
    )
    .await;
    until("the new value is known", async || value().await.as_deref() == Ok("two")).await;
    aws.secrets("DeleteSecret", json!({ "SecretId": "k", "ForceDeleteWithoutRecovery": true })).await;
    until("its end is known", async || matches!(value().await, Err(FetchError::Missing(_)))).await;
    let create = json!({ "Name": "l", "SecretString": "kept", "ClientRequestToken": Uuid::new_v4() });
    aws.secrets("CreateSecret", create).await;
    let other = by_key(&keys, "l");
    let value = async || store.value(&other, None).await.map(|found| found.expose_text().unwrap().to_owned());
    assert_eq!(value().await.as_deref(), Ok("kept"));
    let url = aws.url.clone();
    drop(aws);
    until("it is away", async || reqwest::get(&url).await.is_err()).await;
    // Older than its time now, and renewed in vain.
    for _ in 0..20 {
        assert_eq!(value().await.as_deref(), Ok("kept"));
        tokio::task::yield_now().await;
    }
}
