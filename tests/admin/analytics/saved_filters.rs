//! Filters that were kept: used, overridden, and seen by their own tenant only.

use super::{ALL, get};
use crate::logs::store;
use crate::service::Service;
use chrono::{DateTime, Utc};
use serde_json::json;

const PATH: &str = "/analytics/saved-filters";

#[tokio::test]
async fn a_saved_filter_narrows_unless_the_request_says_otherwise() {
    let service = Service::start().await;
    let client = service.administrator();
    let noon: DateTime<Utc> = "2026-01-15T12:00:00Z".parse().unwrap();
    for status in [200, 429, 500] {
        store(&service, noon, json!({ "response_status_code": status })).await;
    }
    let body = json!({ "name": "Failed", "filters": { "status_code": [429, 500] } });
    let made = client.post(PATH, &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    let id = made.json()["id"].as_str().unwrap().to_owned();
    let total = async |query: &str| {
        let query = format!("{ALL}&saved_filter_id={id}{query}");
        get(&client, "/analytics/graphs/requests", &query).await["summary"]["total"].clone()
    };
    assert_eq!(total("").await, 2);
    assert_eq!(total("&status_code=200").await, 1, "what the request says wins");
    let slug = json!({ "filters": { "workspace_slug": service.home.workspace_id.to_string(), "status_code": "500" } });
    let path = format!("{PATH}/{id}");
    assert_eq!(client.put(&path, &slug).await.json(), json!({}));
    assert_eq!(total("").await, 1);
    let elsewhere = service.workspace("elsewhere").await;
    for _ in 0..2 {
        store(&service, noon, json!({ "workspace_id": elsewhere })).await;
    }
    assert_eq!(client.put(&path, &json!({ "filters": { "workspace_slug": "elsewhere" } })).await.json(), json!({}));
    assert_eq!(total("").await, 2, "by its slug");
    service.sql("UPDATE workspaces SET status = 'archived' WHERE slug = 'elsewhere'").await;
    assert_eq!(total("").await, 2, "an administrator sees archived ones");
    assert_eq!(client.put(&path, &slug).await.json(), json!({}));
    let list = get(&client, PATH, "").await;
    assert_eq!((&list["data"][0]["name"], &list["data"][0]["filters"]), (&json!("Failed"), &slug["filters"]));
    for (body, field) in [
        (json!({ "name": "x", "filters": { "colour": 1 } }), "filters.colour"),
        (json!({ "name": "x", "filters": { "status_code": "x" } }), "filters.status_code"),
        (json!({ "name": "", "filters": {} }), "name"),
        (json!({ "name": "x" }), "filters"),
    ] {
        let answer = client.post(PATH, &body).await;
        assert_eq!(answer.status, 400, "{body}");
        assert!(answer.text().contains(field), "{body}: {}", answer.text());
    }
    assert_eq!(client.delete(&path).await.status, 200);
    let gone = client.get(&format!("/analytics/graphs/requests?{ALL}&saved_filter_id={id}")).await;
    assert_eq!(gone.status, 404, "{}", gone.text());
}

#[tokio::test]
async fn tenants_and_workspaces_never_see_each_others_filters() {
    let service = Service::start().await;
    let (other, elsewhere) = (service.organisation().await, service.workspace("elsewhere").await);
    let own = service.workspace_client(service.home.workspace_id).await;
    let made = own.post(PATH, &json!({ "name": "Own", "filters": {} })).await.json();
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    let stranger = service.client().with_key(&other.admin_key.key);
    let neighbour = service.workspace_client(elsewhere).await;
    for client in [&stranger, &neighbour] {
        assert_eq!(get(client, PATH, "").await["total"], 0);
        assert_eq!(client.put(&path, &json!({ "name": "Mine" })).await.status, 404);
        assert_eq!(client.delete(&path).await.status, 404);
        let query = format!("/analytics/graphs/cost?{ALL}&saved_filter_id={}", made["id"].as_str().unwrap());
        assert_eq!(client.get(&query).await.status, 404);
    }
    assert_eq!(get(&service.administrator(), PATH, "").await["data"][0]["name"], "Own");
}
