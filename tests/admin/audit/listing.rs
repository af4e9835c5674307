//! Reading the trail: its shape, its filters, whose it is, and that a page is found by an index.

use crate::service::Service;
use crate::teaching::{ALIAS, foreign};
use harness::Client;
use serde_json::{Value, json};
use shared::db::table::{Filter, OnDelete, SelectList, Table, Tenancy};
use uuid::Uuid;

async fn read(client: &Client, query: &str) -> Value {
    let answer = client.get(&format!("/audit-logs?{query}")).await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    answer.json()
}

/// The bodies' names of the records, newest first.
fn names(list: &Value) -> Vec<String> {
    let name = |record: &Value| {
        let body: Value = serde_json::from_str(record["request_body"].as_str().unwrap()).unwrap();
        body["name"].as_str().unwrap().to_owned()
    };
    list["records"].as_array().unwrap().iter().map(name).collect()
}

#[tokio::test]
async fn a_record_has_the_published_shape() {
    // Under another prefix, what nobody reads is ignored.
    let service = Service::start_with(&[ALIAS]).await;
    let client = foreign(&service);
    assert_eq!(client.post("/labels?x=1", &json!({ "name": "l", "token": "s3cret" })).await.status, 200);
    let list = read(&client, "").await;
    assert_eq!((&list["object"], &list["total"]), (&json!("analytics-graph"), &json!(1)));
    let record = &list["records"][0];
    assert!(!list.to_string().contains("s3cret"));
    assert_eq!((&record["method"], &record["uri"]), (&json!("POST"), &json!("/v1/labels")));
    assert_eq!((&record["resource_type"], &record["action"]), (&json!("labels"), &json!("create")));
    assert_eq!((&record["response_status_code"], &record["client_ip"]), (&json!(200), &json!("127.0.0.1")));
    assert_eq!((&record["user_type"], &record["user_id"]), (&json!("api_key"), &json!(service.home.admin_key.id)));
    assert_eq!(record["organisation_id"], json!(service.home.organisation_id));
    assert!(record["workspace_id"].is_null() && record["country"].is_null() && record["error"].is_null());
    assert_eq!(record["query_params"], json!("{\"x\": \"1\"}"), "JSON in a text");
    let headers: Value = serde_json::from_str(record["request_headers"].as_str().unwrap()).unwrap();
    assert_eq!(headers["x-acme-api-key"], "*****");
    let time = record["timestamp"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.len() == 24, "{time}");
    assert_eq!(record["resource_id"], record["after"]["id"]);
}

#[tokio::test]
async fn each_filter_finds_what_it_names_and_nothing_else() {
    let service = Service::start().await;
    let administrator = service.administrator();
    let elsewhere = service.workspace("elsewhere").await;
    let person = service.person("member", Some("manager")).await;
    let clients = [
        administrator.with("x-forwarded-for", "203.0.113.7").with("cf-ipcountry", "de"),
        service.workspace_client(elsewhere).await,
        service.person_client(service.home.workspace_id, person).await.with("x-forwarded-for", "2001:db8::1"),
    ];
    for (client, name) in clients.iter().zip(["one", "two", "three"]) {
        let answer = client.post("/labels", &json!({ "name": name })).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    let refused = administrator.with("x-request-id", "0190b0c1-8a52-7c0e-8f0e-7a1f2f1f0a11");
    assert_eq!(
        refused.put("/labels/00000000-0000-0000-0000-000000000000", &json!({ "name": "four" })).await.status,
        404
    );
    assert_eq!(names(&read(&administrator, "").await), ["four", "three", "two", "one"]);
    let times: Vec<String> = read(&administrator, "").await["records"]
        .as_array()
        .unwrap()
        .iter()
        .map(|record| record["timestamp"].as_str().unwrap().to_owned())
        .collect();
    for (query, expected) in [
        ("method=PUT".to_owned(), &["four"][..]),
        ("method=delete".to_owned(), &[]),
        ("uri=LABELS/0000".to_owned(), &["four"]),
        ("uri=%25".to_owned(), &[]),
        ("request_id=0190b0c1-8a52-7c0e-8f0e-7a1f2f1f0a11".to_owned(), &["four"]),
        (format!("user_id={person}"), &["three"]),
        ("user_type=user".to_owned(), &["three"]),
        ("user_type=api_key".to_owned(), &["four", "two", "one"]),
        (format!("workspace_id={elsewhere}"), &["two"]),
        ("workspace_id=elsewhere".to_owned(), &["two"]),
        ("workspace_id=nowhere".to_owned(), &[]),
        ("response_status_code=404".to_owned(), &["four"]),
        ("resource_type=labels&action=create".to_owned(), &["three", "two", "one"]),
        ("client_ip=203.0.113.7".to_owned(), &["one"]),
        ("client_ip=2001:0DB8:0::1".to_owned(), &["three"]),
        ("country=de".to_owned(), &["one"]),
        ("start_time=2020-01-01&end_time=2020-01-02".to_owned(), &[]),
        (format!("organisation_id={}", service.home.organisation_id), &["four", "three", "two", "one"]),
        (format!("end_time={}&method=POST", times[1]), &["three", "two", "one"]),
        ("page_size=2&current_page=1".to_owned(), &["two", "one"]),
    ] {
        let list = read(&administrator, &query).await;
        assert_eq!(names(&list), expected, "{query}");
        if !query.contains("page") {
            assert_eq!(list["total"], expected.len(), "{query}");
        }
    }
    for (query, field) in [
        ("user_type=x", "user_type"),
        ("resource_type=label", "resource_type"),
        ("action=created", "action"),
        ("method=fetch", "method"),
        ("country=Germany", "country"),
        ("start_time=x", "start_time"),
        ("client_ip=x", "client_ip"),
        ("page_size=-1", "page_size"),
    ] {
        let answer = administrator.get(&format!("/audit-logs?{query}")).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["param"]), (400, &json!(field)));
    }
    let nearest = administrator.get("/audit-logs?resource_type=label").await.text();
    assert!(nearest.contains("`labels`"), "{nearest}");
}

#[tokio::test]
async fn nobody_reads_the_trail_of_another_organisation() {
    let service = Service::start().await;
    let other = service.organisation().await;
    assert_eq!(service.administrator().post("/labels", &json!({ "name": "l" })).await.status, 200);
    let stranger = service.client().with_key(&other.admin_key.key);
    assert_eq!(read(&stranger, "").await["total"], 0);
    let answer = stranger.get(&format!("/audit-logs?organisation_id={}", service.home.organisation_id)).await;
    assert_eq!((answer.status.as_u16(), &answer.json()["data"]["errorCode"]), (404, &json!("AB08")));
}

#[tokio::test]
async fn switching_the_feature_off_stops_the_reading_and_not_the_writing() {
    let service = Service::start_with(&["--audit-logs-enabled=OFF"]).await;
    let client = service.administrator();
    assert_eq!(client.post("/labels", &json!({ "name": "l" })).await.status, 200);
    let answer = client.get("/audit-logs").await;
    assert_eq!((answer.status.as_u16(), &answer.json()["data"]["errorCode"]), (402, &json!("AB09")));
    assert_eq!(service.trail(service.home.organisation_id).await.len(), 1);
}

#[tokio::test]
async fn a_page_of_a_long_trail_is_found_by_an_index() {
    let service = Service::start().await;
    let organisation = service.home.organisation_id;
    service
        .sql(&format!(
            "INSERT INTO audit_logs (organisation_id, workspace_id, user_id, user_type, method, uri, request_id,
                                     resource_type, action, response_status_code, created_at)
             SELECT '{organisation}', md5((n % 50)::text)::uuid, md5((n % 50)::text)::uuid, 'user', 'POST', '/v1/labels',
                    md5(n::text)::uuid, 'labels-' || n % 50, 'create', 200, now() - n * interval '1 second'
             FROM generate_series(1, 20000) n;
             ANALYZE audit_logs"
        ))
        .await;
    let table = Table {
        name: "audit_logs",
        columns: SelectList::Sql("uri"),
        slug: None,
        tenancy: Tenancy::Organisation,
        on_delete: OnDelete::Archive,
    };
    let client = service.database.client().await;
    let someone = "c4ca4238-a0b9-2382-0dcc-509a6f75849b".parse::<Uuid>().unwrap();
    let base = || Filter::default().equals("organisation_id", organisation);
    for (filter, index) in [
        (base().and("created_at >= ?", chrono::Utc::now() - chrono::TimeDelta::hours(1)), "audit_logs_listed"),
        (base().equals("user_id", someone), "audit_logs_user"),
        (base().equals("workspace_id", someone), "audit_logs_workspace"),
        (base().equals("resource_type", "labels-1"), "audit_logs_resource"),
        (base().equals("request_id", someone), "audit_logs_request"),
    ] {
        let mut values = filter.values();
        values.extend([&50_i64 as &(dyn tokio_postgres::types::ToSql + Sync), &0_i64]);
        let rows = client.query(&format!("EXPLAIN {}", table.page_sql(&filter)), &values).await.unwrap();
        let plan: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = plan.join("\n");
        assert!(plan.contains(index) && !plan.contains("Seq Scan"), "{index}:\n{plan}");
    }
}
