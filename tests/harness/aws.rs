//! AWS on loopback: a server that speaks as AWS does, and checks signatures and policies as AWS does.

use crate::python::{self, Server};
use crate::until;
use bench::ports::Reservation;
use serde_json::{Value, json};
use std::process::Command;

const MOTO: &str = "moto[server]==5.2.5\n";
pub const REGION: &str = "eu-west-1";

/// AWS on this machine.
pub struct Aws {
    pub url: String,
    pub http: reqwest::Client,
    _server: Server,
    _port: Reservation,
}

impl Aws {
    pub async fn start() -> Self {
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

    pub async fn secrets(&self, action: &str, body: Value) {
        let scope = format!(
            "AWS4-HMAC-SHA256 Credential=AKIASETUP/20260101/{REGION}/secretsmanager/aws4_request, SignedHeaders=host, Signature=x"
        );
        let answer = self.http.post(&self.url).header("authorization", scope).body(body.to_string());
        let answer = answer.header("x-amz-target", format!("secretsmanager.{action}"));
        let answer = answer.header("content-type", "application/x-amz-json-1.1").send().await.unwrap();
        assert!(answer.status().is_success(), "{action}: {}", answer.text().await.unwrap());
    }

    /// A user with keys who may do just this; id and secret.
    pub async fn user(&self, name: &str, actions: &[&str]) -> (String, String) {
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

    pub async fn role(&self, name: &str, actions: &[&str]) -> String {
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
    pub async fn check_everything(&self) {
        let answer = self.http.post(format!("{}/moto-api/reset-auth", self.url)).body("0").send().await.unwrap();
        assert!(answer.status().is_success());
    }
}

fn policy(actions: &[&str]) -> String {
    let statement = json!([{ "Effect": "Allow", "Action": actions, "Resource": "*" }]);
    json!({ "Version": "2012-10-17", "Statement": statement }).to_string()
}

fn escaped(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}
