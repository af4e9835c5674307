//! Fetching from a server that speaks as AWS does, and checks signatures and policies as AWS does.

use harness::aws::{Aws, REGION};
use harness::until;
use serde_json::{Value, json};
use shared::secrets::{
    Endpoints, FetchError, Fetcher, Http, ManagerKind, OwnIdentity, Reference, Request, Response, Store,
};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

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

fn fetching(aws: &Aws, own: OwnIdentity) -> Fetcher {
    let endpoints = Endpoints { aws: Some(aws.url.clone()), ..Endpoints::default() };
    Fetcher::new(Plain(aws.http.clone()), own, endpoints)
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
    let fetcher = fetching(&aws, OwnIdentity::none());
    assert_eq!(text(&fetcher, &by_key(&reader, "prod/openai")).await.unwrap(), "{\"key\":\"sk-1 ä/+\"}");
    let missing = text(&fetcher, &by_key(&reader, "prod/nothing")).await;
    assert!(matches!(missing, Err(FetchError::Missing(_))), "{missing:?}");
    let wrong = (reader.0.clone(), "wrong-secret".to_owned());
    let unknown = ("AKIANOBODY".to_owned(), "secret".to_owned());
    for (who, keys) in [("a wrong signature", &wrong), ("unknown keys", &unknown), ("no permission", &bystander)] {
        let denied = text(&fetcher, &by_key(keys, "prod/openai")).await;
        assert!(matches!(denied, Err(FetchError::Denied(_))), "{who}: {denied:?}");
    }
    let own = OwnIdentity::from_variables([
        ("AWS_ACCESS_KEY_ID".to_owned(), assumer.0.clone()),
        ("AWS_SECRET_ACCESS_KEY".to_owned(), assumer.1.clone()),
    ]);
    let fetcher = fetching(&aws, own);
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
    let store = Arc::new(Store::with_ttl(fetching(&aws, OwnIdentity::none()), Duration::from_millis(20)));
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
