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
async fn the_time_of_a_saved_filter_holds_where_the_request_names_none() {
    let service = Service::start().await;
    let client = service.administrator();
    for day in ["2026-01-10", "2026-01-15", "2026-01-20"] {
        store(&service, format!("{day}T12:00:00Z").parse().unwrap(), json!({})).await;
    }
    let ten_days = json!({
        "time_of_generation_min": "2026-01-14T00:00:00Z", "time_of_generation_max": "2026-01-24T00:00:00Z",
    });
    let save = async |filters: serde_json::Value| {
        let made = client.post(PATH, &json!({ "name": "Days", "filters": filters })).await.json();
        made["id"].as_str().unwrap().to_owned()
    };
    let (timed, timeless) = (save(ten_days).await, save(json!({ "status_code": "200" })).await);
    for (path, count) in
        [("/analytics/graphs/requests", "/summary/total"), ("/analytics/groups/model", "/data/0/requests")]
    {
        for (query, expected) in [
            (format!("saved_filter_id={timed}"), 2),
            (format!("saved_filter_id={timed}&time_of_generation_min=2026-01-16T00:00:00Z"), 1),
            (format!("saved_filter_id={timed}&{ALL}"), 3),
        ] {
            let found = get(&client, path, &query).await;
            assert_eq!(found.pointer(count), Some(&json!(expected)), "{path}?{query}: {found}");
        }
    }
    let refused = client.get(&format!("/analytics/graphs/requests?saved_filter_id={timeless}")).await;
    assert_eq!(refused.status, 400, "{}", refused.text());
    assert!(refused.text().contains("time_of_generation_min"), "{}", refused.text());
}

#[tokio::test]
async fn what_becomes_of_a_saved_filter_is_in_the_audit_trail() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let id = client.post(PATH, &json!({ "name": "A", "filters": {} })).await.json()["id"].as_str().unwrap().to_owned();
    let path = format!("{PATH}/{id}");
    assert_eq!(client.put(&path, &json!({ "name": "B" })).await.status, 200);
    assert_eq!(client.delete(&path).await.status, 200);
    assert_eq!(client.delete(&path).await.status, 404);
    let trail = service.trail(service.home.organisation_id).await;
    let seen: Vec<_> = trail
        .iter()
        .filter(|row| row["resource_type"] == "saved_filters")
        .map(|row| (&row["action"], &row["before"]["name"], &row["after"]["name"], &row["response_status_code"]))
        .collect();
    let (none, a, b) = (json!(null), json!("A"), json!("B"));
    let expected = [
        (&json!("create"), &none, &a, &json!(200)),
        (&json!("update"), &a, &b, &json!(200)),
        (&json!("delete"), &b, &none, &json!(200)),
        (&json!("delete"), &none, &none, &json!(404)),
    ];
    assert_eq!(seen, expected);
    for row in trail.iter().filter(|row| row["resource_type"] == "saved_filters") {
        assert_eq!(
            (&row["resource_id"], &row["workspace_id"]),
            (&json!(id), &json!(service.home.workspace_id)),
            "{row}"
        );
    }
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
