//! Many callers and many rows: nobody is turned away, and a page costs the page.

use crate::service::Service;
use futures::stream::{self, StreamExt as _};
use harness::Client;
use serde_json::{Value, json};
use uuid::Uuid;

const ROWS: i64 = 100_000;

/// Keys in one workspace, and some elsewhere.
async fn fill(service: &Service) -> Uuid {
    let elsewhere = service.workspace("elsewhere").await;
    let insert = format!(
        "INSERT INTO api_keys (organisation_id, workspace_id, kind, name, hash, mask, scopes, created_at)
         SELECT '{}', CASE WHEN n % 10 = 0 THEN '{elsewhere}'::uuid ELSE '{}' END, 'workspace-service', 'k' || n,
                sha256(n::text::bytea), 'pk*****abc', '{{completions.write}}', now() - n * interval '1 second'
         FROM generate_series(1, {ROWS} * 10 / 9) n",
        service.home.organisation_id, service.home.workspace_id
    );
    // Flushed at once: vacuum marks as visible to all only what is.
    service.sql(&format!("SET synchronous_commit = on; {insert}")).await;
    service.sql("VACUUM ANALYZE api_keys").await;
    elsewhere
}

/// Statements that the service sent are explained as it sends them: with parameters.
async fn explained(service: &Service, sql: &str, types: &str, values: &str) -> String {
    let client = service.database.client().await;
    client.batch_execute(&format!("PREPARE page ({types}) AS {sql}")).await.unwrap();
    let rows = client.simple_query(&format!("EXPLAIN (ANALYZE, TIMING OFF) EXECUTE page ({values})")).await.unwrap();
    let lines = rows.iter().filter_map(|row| match row {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0),
        _ => None,
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn a_page_of_a_hundred_thousand_keys_is_read_from_an_index() {
    let service = Service::start().await;
    fill(&service).await;
    let admin = service.administrator();
    let list = admin.get(&format!("/api-keys?workspace_id={}&page_size=100", service.home.workspace_id)).await.json();
    assert_eq!((list["data"].as_array().unwrap().len(), &list["total"]), (100, &json!(ROWS)));
    assert_eq!(list["data"][0]["name"], "k1", "newest first");
    let last = admin.get("/api-keys?workspace_id=elsewhere&page_size=100&current_page=1").await.json();
    assert_eq!(last["data"][0]["name"], "k1010");
    let filter = shared::db::table::Filter::default()
        .equals("organisation_id", service.home.organisation_id)
        .equals("workspace_id", service.home.workspace_id)
        .one_of("kind", vec!["workspace-service"])
        .holds("status <> 'archived'");
    let sql = admin::resources::key_table().page_sql(&filter);
    let values =
        format!("'{}', '{}', '{{workspace-service}}', 100, 0", service.home.organisation_id, service.home.workspace_id);
    let plan = explained(&service, &sql, "uuid, uuid, text[], bigint, bigint", &values).await;
    assert!(!plan.contains("Seq Scan"), "neither the page nor the total reads the table: {plan}");
    let page = plan.lines().skip_while(|line| !line.contains("Limit")).nth(1).unwrap();
    assert!(page.contains("Index Scan using api_keys_"), "in the order of the list: {plan}");
    assert!(plan.contains("Index Only Scan using api_keys_counted"), "{plan}");
    assert!(page.contains("actual rows=100 ") || page.contains("actual rows=100.00 "), "no more than the page: {plan}");
}

#[tokio::test]
async fn a_thousand_calls_at_once_are_all_answered() {
    let service = Service::start().await;
    let admin = service.administrator();
    let label = admin.post("/labels", &json!({ "name": "l" })).await.json();
    let paths = ["/labels".to_owned(), format!("/labels/{}", label["id"].as_str().unwrap()), "/api-keys".to_owned()];
    let call = async |client: Client, path: String| {
        let answer = client.get(&path).await;
        (answer.status.as_u16(), answer.json())
    };
    let calls = (0..1000).map(|n| call(admin.clone(), paths[n % paths.len()].clone()));
    let answers: Vec<(u16, Value)> = stream::iter(calls).buffer_unordered(1000).collect().await;
    let refused: Vec<_> = answers.iter().filter(|(status, _)| *status != 200).collect();
    assert!(refused.is_empty(), "{} refused, as {:?}", refused.len(), refused[0]);
}
