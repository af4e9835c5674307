//! When the fault is ours: the answer has its shape and says nothing of the cause, and the log says it.

use crate::service::Service;
use bench::ports::Reservation;
use harness::{Client, Database, Process, until};
use serde_json::{Value, json};

/// As a migration that went wrong would leave it.
const BREAK: &str = "ALTER TABLE labels RENAME COLUMN color_code TO hidden_detail";

fn assert_says_nothing(body: &Value, id: &str) {
    assert_eq!((&body["success"], &body["data"]["errorCode"]), (&json!(false), &json!("AB04")), "{body}");
    assert_eq!((&body["error"]["type"], &body["error"]["code"]), (&json!("server_error"), &json!("AB04")));
    assert_eq!(body["request_id"], id);
    let text = body.to_string();
    for detail in ["color_code", "labels", "column", "SELECT", "postgres"] {
        assert!(!text.contains(detail), "{text}");
    }
}

#[tokio::test]
async fn a_failure_of_ours_is_a_500_in_shape_without_its_cause() {
    let service = Service::start().await;
    service.sql(BREAK).await;
    let admin = service.administrator();
    for answer in [admin.get("/labels").await, admin.post("/labels", &json!({ "name": "l" })).await] {
        assert_eq!(answer.status, 500, "{}", answer.text());
        assert_says_nothing(&answer.json(), answer.header("x-gateway-request-id"));
    }
    let trail = service.trail(service.home.organisation_id).await;
    assert_eq!((trail.len(), &trail[0]["response_status_code"]), (1, &json!(500)), "the attempt is recorded");
    assert!(!trail[0]["error"].to_string().contains("color_code"), "{}", trail[0]);
}

#[tokio::test]
async fn the_log_names_the_cause_of_a_500_under_its_request_id() {
    let (database, folder) = (Database::fresh().await, tempfile::tempdir().unwrap());
    let port = Reservation::any().unwrap();
    let key = shared::identity::api_key::generate("pk_");
    let environment = [
        ("DATABASE_URL", database.url()),
        ("ADMIN_PORT", port.port().to_string()),
        ("BOOTSTRAP_ADMIN_KEY", key.clone()),
    ];
    let environment: Vec<_> = environment.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    let process = Process::start("gateway-admin", &[], &environment, folder.path());
    let root = Client::new(&format!("http://127.0.0.1:{}", port.port()));
    let is_ready =
        async || root.request(http::Method::GET, "/readyz").send().await.is_ok_and(|answer| answer.status() == 200);
    until("admin is ready", is_ready).await;
    database.client().await.batch_execute(BREAK).await.unwrap();
    let answer = root.with_key(&key).get("/v1/labels").await;
    assert_eq!(answer.status, 500);
    let id = answer.header("x-gateway-request-id").to_owned();
    let says_why = |line: &Value| line.to_string().contains(&id) && line.to_string().contains("color_code");
    let lines = || process.log().lines().filter_map(|line| serde_json::from_str(line).ok()).collect::<Vec<Value>>();
    until("the cause is logged", async || lines().iter().any(says_why)).await;
}
