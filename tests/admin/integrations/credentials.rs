//! That credentials are sealed, changed field by field, and need a master key.

use super::{account, create, refused};
use crate::service::Service;
use serde_json::{Value, json};
use shared::model::{Credentials, Integration};
use shared::secrets::seal::{Keyring, Sealed};

/// What is stored under a slug, opened with the service's own key.
async fn opened(service: &Service, keyring: &str, slug: &str) -> Value {
    let sql = format!("SELECT {} FROM integrations WHERE slug = $1", Integration::COLUMNS);
    let client = service.database.client().await;
    let row = Integration::from_row(&client.query_one(&sql, &[&slug]).await.unwrap()).unwrap();
    let sealed: Sealed = row.sealed.clone().expect("it has secrets");
    let secret = crate::sealing::sealer(keyring).open(&client, &row.place(), &sealed).await.unwrap();
    json!(Credentials::parse(&secret).unwrap())
}

#[tokio::test]
async fn secrets_are_sealed_and_replaced_one_by_one() {
    let keyring = Keyring::generate("mine").unwrap();
    let service = Service::start_with(&[&format!("--gateway-master-key={}", keyring.trim())]).await;
    let client = service.administrator();
    let body = json!({
        "name": "Bedrock", "slug": "bedrock", "ai_provider_id": "bedrock",
        "configurations": {
            "aws_auth_type": "accessKey", "aws_region": "us-east-1", "aws_access_key_id": "AKIA-0123456789",
            "aws_secret_access_key": "wJalrXUtnFEMI", "custom_headers": { "x-a": "header-secret" }, "azure_extra_params": "pass",
        },
    });
    assert_eq!(create(&client, body).await.status, 200);
    let expected = json!({ "configurations": {
        "aws_access_key_id": "AKIA-0123456789", "aws_secret_access_key": "wJalrXUtnFEMI",
        "custom_headers": { "x-a": "header-secret" },
    } });
    assert_eq!(opened(&service, &keyring, "bedrock").await, expected);
    let shown = client.get("/integrations/bedrock").await.json()["configurations"].clone();
    assert_eq!((&shown["azure_extra_params"], &shown["aws_region"]), (&json!("pass"), &json!("us-east-1")));

    // A client that sends back what it was shown changes nothing but what it changed.
    let mut back = shown.clone();
    back["aws_secret_access_key"] = json!("another-secret");
    back["aws_access_key_id"] = shown["masked_aws_access_key_id"].clone();
    back["azure_extra_params"] = Value::Null;
    assert_eq!(client.put("/integrations/bedrock", &json!({ "configurations": back })).await.status, 200);
    let mut expected = expected;
    expected["configurations"]["aws_secret_access_key"] = json!("another-secret");
    assert_eq!(opened(&service, &keyring, "bedrock").await, expected);
    let shown = client.get("/integrations/bedrock").await.json()["configurations"].clone();
    assert!(shown.get("azure_extra_params").is_none());
    assert_eq!(shown["masked_aws_secret_access_key"], "an*****ret");

    let broken = client.put("/integrations/bedrock", &json!({ "configurations": { "aws_access_key_id": null } })).await;
    assert_eq!(refused(&broken), (400, "AB01".into(), "configurations.aws_access_key_id".into()));
    assert_eq!(opened(&service, &keyring, "bedrock").await, expected, "a refused change changes nothing");
}

#[tokio::test]
async fn the_key_of_an_account_can_be_changed_and_a_mask_is_no_key() {
    let keyring = Keyring::generate("mine").unwrap();
    let service = Service::start_with(&[&format!("--gateway-master-key={}", keyring.trim())]).await;
    let client = service.administrator();
    account(&client, "main").await;
    for (sent, stored) in [
        (json!({ "key": "sk*****abc" }), "sk-0123456789abc"),
        (json!({ "name": "renamed" }), "sk-0123456789abc"),
        (json!({ "key": "sk-the-next-one" }), "sk-the-next-one"),
    ] {
        assert_eq!(client.put("/integrations/main", &sent).await.status, 200, "{sent}");
        assert_eq!(opened(&service, &keyring, "main").await, json!({ "key": stored }), "{sent}");
    }
    let cleared = client.put("/integrations/main", &json!({ "key": null })).await;
    assert_eq!(refused(&cleared), (400, "AB01".into(), "key".into()));
}

#[tokio::test]
async fn two_changes_of_different_secrets_at_once_are_both_kept() {
    let keyring = Keyring::generate("mine").unwrap();
    let service = Service::start_with(&[&format!("--gateway-master-key={}", keyring.trim())]).await;
    let client = service.administrator();
    account(&client, "main").await;
    for round in 0..5 {
        let (key, header) = (format!("sk-round-{round}"), format!("header-{round}"));
        let (one, two) = (json!({ "key": key }), json!({ "configurations": { "custom_headers": { "x-a": header } } }));
        let (one, two) = tokio::join!(client.put("/integrations/main", &one), client.put("/integrations/main", &two));
        assert_eq!((one.status.as_u16(), two.status.as_u16()), (200, 200));
        let expected = json!({ "key": key, "configurations": { "custom_headers": { "x-a": header } } });
        assert_eq!(opened(&service, &keyring, "main").await, expected);
    }
}

#[tokio::test]
async fn without_a_master_key_secrets_are_refused_with_the_reason_and_the_rest_works() {
    let service = Service::start_without_master_key().await;
    let client = service.administrator();
    let answer = create(&client, json!({ "name": "a", "ai_provider_id": "openai", "key": "sk-0123456789" })).await;
    assert_eq!(answer.status, 503, "{}", answer.text());
    assert!(
        answer.text().contains("GATEWAY_MASTER_KEY_FILE") && !answer.text().contains("sk-01234"),
        "{}",
        answer.text()
    );
    let answer = create(&client, json!({ "name": "b", "ai_provider_id": "ollama" })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(client.get("/integrations").await.json()["total"], 1);
}
