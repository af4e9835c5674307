//! Alerts about budgets at the operator's webhook, beside mail.

use super::{admin_with, run};
use crate::service::Service;
use admin::jobs::outbox;
use openssl::hash::MessageDigest;
use openssl::pkey::PKey;
use openssl::sign::Signer;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

/// Answers each call with the next status, and hands over what it was sent.
async fn receiver(statuses: &'static [u16]) -> (String, mpsc::UnboundedReceiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (seen, calls) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        for status in statuses {
            let (mut client, _) = listener.accept().await.unwrap();
            let mut text = String::new();
            let (head, body) = loop {
                let mut piece = [0; 4096];
                let read = client.read(&mut piece).await.unwrap();
                text += &String::from_utf8_lossy(&piece[..read]);
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                let head = head.to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
                if body.len() >= length.parse::<usize>().unwrap() {
                    break (head, body.to_owned());
                }
            };
            let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
            client.write_all(answer.as_bytes()).await.unwrap();
            let _ = seen.send((head, body));
        }
    });
    (url, calls)
}

async fn exhausted(service: &Service) {
    let body =
        json!({ "name": "ci", "workspace_id": service.home.workspace_id, "usage_limits": { "credit_limit": 5 } });
    assert_eq!(service.administrator().post("/api-keys/workspace/service", &body).await.status, 200);
    service.spend("api_keys", "500").await;
}

#[tokio::test]
async fn an_alert_is_posted_signed_and_tried_again_until_it_is_taken() {
    let service = Service::start().await;
    let (url, mut calls) = receiver(&[500, 200]).await;
    let url = format!("--alert-webhook-url={url}");
    let app = admin_with(&service.database, &[&url, "--alert-webhook-secret=s3cret"]).await;
    exhausted(&service).await;
    assert_eq!(run(&app, "watch_budgets").await, 1);
    service.sql("DELETE FROM letters WHERE recipient <> 'webhook'").await;
    for _ in ["refused", "taken"] {
        service.sql("UPDATE letters SET next_attempt_at = now()").await;
        assert_eq!(outbox::send(&app).await.unwrap(), 1);
        let (head, body) = calls.recv().await.unwrap();
        let facts: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((&facts["event"], &facts["unit"]), (&json!("limit_reached"), &json!("dollar")), "{facts}");
        assert_eq!(facts["credit_limit"].as_f64(), Some(5.0), "{facts}");
        assert_eq!(facts["organisation_id"], json!(service.home.organisation_id), "{facts}");
        let signed = head.lines().find_map(|line| line.strip_prefix("x-gateway-signature: ")).unwrap();
        let (time, signature) = signed.strip_prefix("t=").unwrap().split_once(",v1=").unwrap();
        let key = PKey::hmac(b"s3cret").unwrap();
        let mut signer = Signer::new(MessageDigest::sha256(), &key).unwrap();
        let expected = signer.sign_oneshot_to_vec(format!("{time}.{body}").as_bytes()).unwrap();
        let expected: String = expected.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(signature, expected);
        assert!(!body.contains("s3cret"), "{body}");
    }
    service.sql("UPDATE letters SET next_attempt_at = now()").await;
    assert_eq!(outbox::send(&app).await.unwrap(), 0, "it was taken");
}

#[tokio::test]
async fn slack_gets_a_message_and_nobody_gets_anything_without_an_address() {
    let service = Service::start().await;
    let (url, mut calls) = receiver(&[200]).await;
    let url = format!("--alert-webhook-url={url}");
    let app = admin_with(&service.database, &[&url, "--alert-webhook-format=slack"]).await;
    exhausted(&service).await;
    assert_eq!(run(&app, "watch_budgets").await, 1);
    assert!(outbox::send(&app).await.unwrap() >= 1);
    let (head, body) = calls.recv().await.unwrap();
    let message: Value = serde_json::from_str(&body).unwrap();
    assert!(message["text"].as_str().unwrap().starts_with("*The budget of API key ci is used up*\n"), "{message}");
    assert!(message.as_object().unwrap().len() == 1 && !head.contains("x-gateway-signature"), "{head}");
    let plain = super::admin_on(&service.database).await;
    let letters = "SELECT count(*) FROM letters WHERE recipient = 'webhook'";
    exhausted(&service).await;
    assert_eq!(run(&plain, "watch_budgets").await, 1);
    let waiting: i64 = service.database.client().await.query_one(letters, &[]).await.unwrap().get(0);
    assert_eq!(waiting, 0);
}
