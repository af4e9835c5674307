//! Which providers there are, what their accounts need, and whether an account works.

use super::fault;
use crate::service::Service;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Mutex;

/// A provider that answers every call with one status, and keeps what it was sent.
async fn provider(status: u16) -> (String, Arc<Mutex<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(String::new()));
    let kept = seen.clone();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut head = vec![0; 16 << 10];
            let read = client.read(&mut head).await.unwrap_or(0);
            *kept.lock().await = String::from_utf8_lossy(&head[..read]).into_owned();
            let answer =
                format!("HTTP/1.1 {status} X\r\ncontent-length: 15\r\nconnection: close\r\n\r\n{{\"echo\":\"sk-1\"}}");
            let _ = client.write_all(answer.as_bytes()).await;
        }
    });
    (url, seen)
}

#[tokio::test]
async fn every_type_of_provider_says_what_its_accounts_need() {
    let service = Service::start().await;
    let types = service.administrator().get("/providers/types").await.json();
    let of = |slug: &str| -> Value {
        let all = types["data"].as_array().unwrap();
        all.iter().find(|one| one["slug"] == slug).cloned().unwrap_or_else(|| panic!("{slug} in {types}"))
    };
    let field = |kind: &Value, name: &str| -> Value {
        let all = kind["fields"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).cloned().unwrap_or_else(|| panic!("{name} in {kind}"))
    };
    let openai = of("openai");
    assert_eq!(field(&openai, "key")["required"], true);
    assert!(openai["families"].as_array().unwrap().contains(&json!("chat")), "{openai}");
    assert_eq!(openai["test"], "GET /models");
    let bedrock = of("bedrock");
    assert_eq!(field(&bedrock, "configurations.aws_region")["required"], true);
    assert!(field(&bedrock, "configurations.aws_auth_type")["allowed"].as_array().unwrap().contains(&json!("apiKey")));
    let when = &field(&bedrock, "configurations.aws_role_arn")["required_when"];
    assert_eq!(*when, json!({ "field": "configurations.aws_auth_type", "value": "assumedRole" }));
    let found = service.administrator().get("/providers/types?search=OPENAI").await.json();
    assert!(found["total"].as_i64().unwrap() < types["total"].as_i64().unwrap() && found["total"] != 0, "{found}");
}

#[tokio::test]
async fn an_account_is_tried_by_one_call_that_says_what_is_wrong() {
    let service = Service::start_with(&["--trusted-custom-hosts=127.0.0.1"]).await;
    let client = service.administrator();
    for (status, success, part) in [
        (200, json!(true), "accepts"),
        (401, json!(false), "`key`"),
        (404, json!(null), "`custom_host`"),
        (500, json!(false), "failed (500)"),
    ] {
        let (host, seen) = provider(status).await;
        let settings = json!({ "custom_host": host, "custom_headers": { "x-team": "search" } });
        let body = json!({ "key": "sk-1", "configurations": settings });
        let tried = client.post("/providers/types/openai/test", &body).await;
        let told = tried.json();
        assert_eq!(
            (tried.status.as_u16(), &told["success"], &told["status"]),
            (200, &success, &json!(status)),
            "{told}"
        );
        assert!(told["message"].as_str().unwrap().contains(part), "{told}");
        assert!(!tried.text().contains("sk-1"), "a provider's own words are not repeated: {told}");
        let seen = seen.lock().await.to_ascii_lowercase();
        assert!(seen.starts_with("get /v1/models http/1.1"), "{seen}");
        assert!(seen.contains("authorization: bearer sk-1") && seen.contains("x-team: search"), "{seen}");
        let slug = format!("account-{status}");
        let saved =
            json!({ "name": "a", "slug": slug, "ai_provider_id": "openai", "key": "sk-1", "configurations": settings });
        assert_eq!(client.post("/integrations", &saved).await.status, 200);
        assert_eq!(client.post(&format!("/integrations/{slug}/test"), &json!({})).await.json()["success"], success);
    }
    let body = json!({ "key": "k", "configurations": { "custom_host": "http://127.0.0.1:1/v1" } });
    let told = client.post("/providers/types/openai/test", &body).await.json();
    assert!(told["success"] == false && told["message"].as_str().unwrap().contains("cannot be reached"), "{told}");
}

#[tokio::test]
async fn what_cannot_be_tried_says_why_and_nothing_inside_is_called() {
    let service = Service::start().await;
    let client = service.administrator();
    let aws = json!({ "configurations": { "aws_auth_type": "serviceRole", "aws_region": "us-east-1" } });
    let told = client.post("/providers/types/bedrock/test", &aws).await.json();
    assert_eq!((&told["is_tested"], &told["success"]), (&json!(false), &json!(null)), "{told}");
    let inside = json!({ "key": "k", "configurations": { "custom_host": "http://169.254.169.254/latest" } });
    fault(&client.post("/providers/types/openai/test", &inside).await, "configurations.custom_host");
    fault(&client.post("/providers/types/openai/test", &json!({})).await, "key");
    assert_eq!(client.post("/providers/types/nobody/test", &json!({})).await.status, 404);
    assert_eq!(client.post("/integrations/nobody/test", &json!({})).await.status, 404);
}
