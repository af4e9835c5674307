//! The audit trail beyond what every resource proves: refusals at the gate, secrets, addresses, and that nobody can
//! edit it.

mod chain;
mod command;
mod listing;
mod people;

use crate::service::Service;
use crate::teaching::{ALIAS, foreign};
use harness::client::whole;
use harness::{Client, until};
use http::Method;
use serde_json::json;
use shared::model::KeyKind;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

#[tokio::test]
async fn refusals_are_recorded_with_who_was_refused_and_why() {
    let service = Service::start().await;
    let weak = service.key(KeyKind::WorkspaceService, &["prompts.read"]).await;
    let user = service.key(KeyKind::WorkspaceUser, &["prompts.create"]).await;
    let archived = service.key(KeyKind::WorkspaceService, &["prompts.create"]).await;
    service.sql(&format!("UPDATE api_keys SET status = 'archived' WHERE id = '{}'", archived.id)).await;
    let client = service.client();
    for (key, status) in [(&weak.key, 403), (&archived.key, 401), (&"pk_unknown".to_owned(), 401)] {
        assert_eq!(client.with_key(key).post("/labels", &json!({ "name": "x" })).await.status, status);
    }
    assert_eq!(client.with_key(&user.key).post("/labels", &json!({ "name": 7 })).await.status, 400);
    assert_eq!(client.with_key(&weak.key).get("/labels").await.status, 403, "reading is not recorded");
    let trail = service.trail(service.home.organisation_id).await;
    let seen: Vec<_> = trail
        .iter()
        .map(|row| (row["error"].as_str().unwrap()[..4].to_owned(), row["user_type"].as_str().unwrap()))
        .collect();
    let expected = [("AB03".to_owned(), "api_key"), ("AB05".to_owned(), "api_key"), ("AB01".to_owned(), "user")];
    assert_eq!(seen, expected);
    assert_eq!(trail[0]["api_key_id"], weak.id.to_string());
    assert_eq!(trail[0]["workspace_id"], service.home.workspace_id.to_string());
    assert_eq!(trail[2]["user_id"], service.home.owner_id.to_string());
}

#[tokio::test]
async fn a_record_has_the_request_without_its_secrets_and_the_clients_address() {
    // Under another prefix, what nobody reads is ignored.
    let service = Service::start_with(&[ALIAS]).await;
    let client = foreign(&service).with("x-forwarded-for", "203.0.113.7").with("cf-ipcountry", "de");
    let client =
        client.with("x-request-id", "0190b0c1-8a52-7c0e-8f0e-7a1f2f1f0a11").with("authorization", "Bearer s3cret");
    let body = json!({ "name": "l", "api_key": "s3cret", "nested": { "password": "s3cret" } });
    let answer = whole(client.request(Method::POST, "/labels?token=s3cret&x=1").json(&body)).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let trail = service.trail(service.home.organisation_id).await;
    let [row] = trail.as_slice() else { panic!("{trail:?}") };
    assert!(!row.to_string().contains("s3cret"), "{row}");
    assert_eq!(row["client_ip"], "203.0.113.7");
    assert_eq!(row["country"], "DE");
    assert_eq!(row["request_id"], "0190b0c1-8a52-7c0e-8f0e-7a1f2f1f0a11");
    assert_eq!((&row["method"], &row["uri"]), (&json!("POST"), &json!("/v1/labels")));
    assert_eq!(row["request_body"]["name"], "l");
    assert_eq!(row["query_params"]["x"], "1");
    assert_eq!(row["after"]["name"], "l");
}

#[tokio::test]
async fn the_trail_can_be_added_to_and_chained_once_but_never_edited() {
    let service = Service::start().await;
    assert_eq!(service.administrator().post("/labels", &json!({ "name": "l" })).await.status, 200);
    let client = service.database.client().await;
    for statement in [
        "UPDATE audit_logs SET action = 'read'",
        "UPDATE audit_logs SET action = 'read', sequence = 1, hash = '\\x00'",
        "DELETE FROM audit_logs",
        "TRUNCATE audit_logs",
    ] {
        let error = client.batch_execute(statement).await.unwrap_err();
        assert!(error.as_db_error().unwrap().message().contains("append-only"), "{statement}: {error}");
    }
    let chain = "UPDATE audit_logs SET sequence = 1, previous_hash = '\\x00', hash = '\\x01'";
    client.batch_execute(chain).await.unwrap();
    assert!(client.batch_execute(chain).await.is_err(), "a link is made once");
}

#[tokio::test]
async fn what_is_undone_leaves_a_record_of_the_attempt_alone() {
    let service = Service::start().await;
    let client = service.administrator();
    assert_eq!(client.post("/labels", &json!({ "name": "l" })).await.status, 200);
    assert_eq!(client.post("/labels", &json!({ "name": "l" })).await.status, 409);
    let trail = service.trail(service.home.organisation_id).await;
    let seen: Vec<_> = trail.iter().map(|row| row["response_status_code"].as_i64().unwrap()).collect();
    assert_eq!(seen, [200, 409]);
    assert!(trail[1]["after"].is_null());
}

#[tokio::test]
async fn a_path_that_is_no_text_is_refused_in_shape_and_recorded_as_the_failure_it_is() {
    let service = Service::start().await;
    let answer = service.administrator().put("/labels/%FF", &json!({ "name": "l" })).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["data"]["errorCode"]), (400, &json!("AB01")));
    let trail = service.trail(service.home.organisation_id).await;
    assert_eq!(trail.len(), 1);
    assert_eq!((&trail[0]["response_status_code"], &trail[0]["resource_id"]), (&json!(400), &json!("%FF")));
    assert!(trail[0]["error"].as_str().unwrap().starts_with("AB01"));
}

#[tokio::test]
async fn a_client_that_leaves_before_its_answer_is_recorded_all_the_same() {
    let service = Service::start().await;
    let weak = service.key(KeyKind::WorkspaceService, &["prompts.read"]).await;
    let mut locker = service.database.client().await;
    let root = Client::new(&service.origin);
    // The scrape counts itself.
    let in_flight = async |n: usize| {
        let line = format!("gateway_admin_in_flight_requests {n}");
        until(&line, async || root.get("/metrics").await.text().contains(&line)).await;
    };
    let lock = locker.transaction().await.unwrap();
    lock.batch_execute("LOCK TABLE api_keys IN ACCESS EXCLUSIVE MODE").await.unwrap();
    let mut client = TcpStream::connect(service.origin.trim_start_matches("http://")).await.unwrap();
    let request =
        format!("POST /v1/labels HTTP/1.1\r\nhost: x\r\nx-gateway-api-key: {}\r\ncontent-length: 0\r\n\r\n", weak.key);
    client.write_all(request.as_bytes()).await.unwrap();
    in_flight(2).await;
    drop(client);
    in_flight(1).await;
    lock.rollback().await.unwrap();
    until("the attempt is recorded", async || !service.trail(service.home.organisation_id).await.is_empty()).await;
    assert_eq!(service.trail(service.home.organisation_id).await[0]["response_status_code"], 403);
}
