//! Feedback over HTTP: sent by one or many, changed, and only ever of the workspace whose key sent it.

use crate::document::Document;
use crate::service::Service;
use harness::Client;
use http::Method;
use serde_json::{Value, json};
use shared::model::KeyKind;

async fn rows(service: &Service) -> Vec<Value> {
    let find = "SELECT to_jsonb(f) FROM feedback f ORDER BY trace_id";
    let rows = service.database.client().await.query(find, &[]).await.unwrap();
    rows.iter().map(|row| row.get(0)).collect()
}

async fn sent(client: &Client, document: &Document, body: Value) -> Vec<String> {
    let answer = client.post("/feedback", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let faults = document.faults(&Method::POST, "/feedback", &answer);
    assert!(faults.is_empty(), "{faults:?}");
    let answer = answer.json();
    assert_eq!((&answer["status"], &answer["message"]), (&json!("success"), &json!("Feedback stored")));
    assert_eq!(answer["feedback_ids"], answer["feedback_id"]);
    answer["feedback_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn feedback_is_stored_one_by_one_or_many_at_once_and_changed() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let key = service.key(KeyKind::WorkspaceService, &["completions.write"]).await;
    let client = service.client().with_key(&key.key);
    let one = sent(&client, &document, json!({ "traceID": "a", "value": 5, "metadata": "{\"_user\":\"ada\"}" })).await;
    let body = json!([{ "trace_id": "b", "value": -10, "weight": 0.25 }, { "trace_id": "c", "value": 0 }]);
    let many = sent(&client, &document, body).await;
    let stored = rows(&service).await;
    let ids: Vec<_> = stored.iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, [one.clone(), many].concat());
    assert_eq!(stored[0]["metadata"], json!({ "_user": "ada" }));
    assert_eq!((&stored[0]["weight"], &stored[1]["weighted"]), (&json!(1.0), &json!(-2.5)));
    assert_eq!(
        (&stored[0]["api_key_id"], &stored[0]["workspace_id"]),
        (&json!(key.id), &json!(service.home.workspace_id))
    );
    let path = format!("/feedback/{}", one[0]);
    let answer = client.put(&path, &json!({ "value": 7 })).await;
    assert!(document.faults(&Method::PUT, &path, &answer).is_empty(), "{}", answer.text());
    let changed = &rows(&service).await[0];
    assert_eq!((&changed["value"], &changed["trace_id"]), (&json!(7), &json!("a")));
    assert_eq!(changed["metadata"], json!({ "_user": "ada" }), "what is not sent stays");
    assert_eq!(client.put(&path, &json!({ "weight": 0.5 })).await.status, 400);
    assert_eq!(client.put("/feedback/x", &json!({ "value": 1 })).await.status, 404);
}

#[tokio::test]
async fn feedback_is_changed_by_its_own_workspace_alone_and_never_by_an_admin_key() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let home = service.workspace_client(service.home.workspace_id).await;
    let neighbour = service.workspace_client(service.workspace("elsewhere").await).await;
    let other = service.organisation().await;
    let key =
        service.key_for(&other, other.workspace_id, other.owner_id, KeyKind::WorkspaceService, &["logs.write"]).await;
    let stranger = service.client().with_key(&key.key);
    let id = sent(&home, &document, json!({ "trace_id": "a", "value": 5 })).await.remove(0);
    let path = format!("/feedback/{id}");
    for client in [&neighbour, &stranger] {
        assert_eq!(client.put(&path, &json!({ "value": 1 })).await.status, 404);
    }
    for answer in [
        service.administrator().put(&path, &json!({ "value": 1 })).await,
        service.administrator().post("/feedback", &json!({ "trace_id": "a", "value": 1 })).await,
    ] {
        assert_eq!((answer.status.as_u16(), &answer.json()["data"]["errorCode"]), (403, &json!("AB03")));
    }
    assert_eq!(rows(&service).await[0]["value"], 5);
}

#[tokio::test]
async fn wrong_feedback_is_refused_whole_and_named_by_its_place() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let good = json!({ "trace_id": "a", "value": 5 });
    for (body, field) in [
        (json!([good, { "trace_id": "b", "value": 11 }]), json!("[1].value")),
        (json!({ "trace_id": "b", "value": "good" }), json!("value")),
        (json!({ "trace_id": "x".repeat(256), "value": 1 }), json!("trace_id")),
        (json!(vec![good.clone(); 1001]), Value::Null),
        (json!([]), Value::Null),
    ] {
        let answer = client.post("/feedback", &body).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["param"]), (400, &field), "{}", answer.text());
    }
    assert!(rows(&service).await.is_empty());
    let most = client.post("/feedback", &json!(vec![good; 1000])).await.json();
    assert_eq!(most["feedback_ids"].as_array().unwrap().len(), 1000);
}

#[tokio::test]
async fn a_workspace_sends_so_much_in_a_day_and_no_more() {
    let service = Service::start_with(&["--feedback-per-day=5"]).await;
    let other = service.workspace_client(service.workspace("other").await).await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let of = |count: usize| json!(vec![json!({ "trace_id": "t", "value": 1 }); count]);
    for (client, count, status) in [
        (&client, 6, 429),
        (&client, 3, 200),
        (&client, 3, 429),
        (&client, 2, 200),
        (&client, 1, 429),
        (&other, 5, 200),
        (&other, 1, 429),
    ] {
        let answer = client.post("/feedback", &of(count)).await;
        assert_eq!(answer.status, status, "{count}: {}", answer.text());
        if status == 429 {
            assert!(answer.header("retry-after").parse::<u64>().unwrap() <= 24 * 60 * 60);
        }
    }
    assert_eq!(rows(&service).await.len(), 10, "what is refused is not stored in part");
    service.sql("UPDATE feedback_days SET day = day - 1").await;
    assert_eq!(client.post("/feedback", &of(5)).await.status, 200, "the next day");
}
