//! `ETag` and `If-Match`: nobody overwrites a change that they have not seen.

use crate::samples::{numbered, samples};
use crate::service::Service;
use harness::{Answer, Client, client::whole};
use http::Method;
use serde_json::{Value, json};

async fn send(client: &Client, method: Method, path: &str, tag: &str, body: &Value) -> Answer {
    whole(client.request(method, path).header("if-match", tag).json(body)).await
}

#[tokio::test]
async fn every_resource_is_changed_and_deleted_only_as_it_was_seen() {
    let service = Service::start().await;
    let client = service.administrator();
    for (n, sample) in samples().iter().enumerate() {
        sample.prepare(&service).await;
        let mut body = numbered(&sample.body, n);
        if sample.is_in_workspace {
            body["workspace_id"] = json!(service.home.workspace_id);
        }
        let change = numbered(&sample.change, n);
        let refused = send(&client, Method::POST, sample.create_path(), "\"x\"", &body).await;
        assert_eq!(refused.status, 400, "{}: {}", sample.path, refused.text());
        let made = client.post(sample.create_path(), &body).await;
        let path = format!("{}/{}", sample.path, made.json()["id"].as_str().unwrap());
        let read = client.get(&path).await;
        let seen = read.header("etag").to_owned();
        assert!(seen.starts_with('"'), "{path} has no tag: {}", read.text());
        let changed = send(&client, Method::PUT, &path, &seen, &change).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.text());
        let now = changed.header("etag").to_owned();
        assert_ne!(now, seen, "{path}");
        assert_eq!(client.get(&path).await.header("etag"), now, "{path}");
        for method in [Method::PUT, Method::DELETE] {
            let body = if method == Method::PUT { &change } else { &numbered(&sample.delete, n) };
            let stale = send(&client, method.clone(), &path, &seen, body).await;
            assert_eq!(stale.status, 412, "{method} {path}: {}", stale.text());
            let told = &stale.json()["data"]["changed"];
            assert_eq!(told["by_id"], service.home.admin_key.id.to_string(), "{method} {path}: {told}");
            let fields: Vec<&str> = told["fields"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
            let sent = change.as_object().unwrap().keys().next().unwrap();
            assert!(!fields.is_empty(), "{method} {path}: {sent} is not told in {told}");
        }
        let tried = send(&client, Method::PUT, &format!("{path}?dry_run=true"), &now, &change).await;
        assert_eq!((tried.status.as_u16(), tried.header("etag")), (200, ""), "{path}: {}", tried.text());
        let gone =
            send(&client, Method::DELETE, &path, &format!("\"other\", {now}"), &numbered(&sample.delete, n)).await;
        assert_eq!(gone.status, 200, "{path}: {}", gone.text());
    }
}

#[tokio::test]
async fn settings_of_the_organisation_are_changed_only_as_they_were_seen() {
    let service = Service::start().await;
    let client = service.administrator();
    for (path, change) in [
        ("/admin/organisation", json!({ "name": "Home 2" })),
        ("/admin/organisation/defaults", json!({ "input_guardrails": [] })),
        ("/admin/organisation/security-settings", json!({ "membersViewLogs": true })),
        ("/admin/organisation/auth-settings", json!({ "jwks_url": "https://id.test/keys" })),
    ] {
        let seen = client.get(path).await.header("etag").to_owned();
        assert!(!seen.is_empty(), "{path}");
        assert_eq!(send(&client, Method::PUT, path, &seen, &change).await.status, 200, "{path}");
        assert_eq!(send(&client, Method::PUT, path, &seen, &change).await.status, 412, "{path}");
        assert_eq!(send(&client, Method::PUT, path, "*", &change).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_version_is_brought_back_only_over_the_config_that_was_seen() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({ "name": "c", "config": { "provider": "@a" }, "workspace_id": service.home.workspace_id });
    let made = client.post("/configs", &body).await.json();
    let path = format!("/configs/{}", made["slug"].as_str().unwrap());
    let seen = client.get(&path).await.header("etag").to_owned();
    assert_eq!(client.put(&path, &json!({ "config": { "provider": "@b" } })).await.status, 200);
    let back = json!({ "version_id": made["version_id"] });
    let rollback = format!("{path}/rollback");
    assert_eq!(send(&client, Method::POST, &rollback, &seen, &back).await.status, 412);
    let now = client.get(&path).await.header("etag").to_owned();
    assert_eq!(send(&client, Method::POST, &rollback, &now, &back).await.status, 200);
}

#[tokio::test]
async fn a_condition_that_cannot_be_kept_or_read_is_refused() {
    let service = Service::start().await;
    let client = service.administrator();
    let label = json!({ "name": "l", "workspace_id": service.home.workspace_id });
    let made = client.post("/labels", &label).await.json();
    let path = format!("/labels/{}", made["id"].as_str().unwrap());
    for tag in ["unquoted", "\"half"] {
        let answer = send(&client, Method::PUT, &path, tag, &json!({ "description": "d" })).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["param"]), (400, &json!("If-Match")), "{tag}");
    }
    let answer =
        send(&client, Method::DELETE, "/cache", "*", &json!({ "all": true, "workspace_id": label["workspace_id"] }))
            .await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["param"]),
        (400, &json!("If-Match")),
        "{}",
        answer.text()
    );
}

/// The trail is asked about the time of the change alone: what somebody changed long before or after is no answer, and no
/// reason to read all of it.
#[tokio::test]
async fn who_changed_something_is_looked_for_near_the_time_of_the_change() {
    let service = Service::start().await;
    let client = service.administrator();
    let body = json!({ "name": "p", "workspace_id": service.home.workspace_id, "type": "requests", "unit": "rpm", "value": 10 });
    let made = client.post("/policies/rate-limits", &body).await.json();
    let path = format!("/policies/rate-limits/{}", made["id"].as_str().unwrap());
    let id: uuid::Uuid = made["id"].as_str().unwrap().parse().unwrap();
    let seen = client.get(&path).await.header("etag").to_owned();
    assert_eq!(client.put(&path, &json!({ "value": 20 })).await.status, 200);
    let database = service.database.client().await;
    for (away, is_known) in [(0.0, true), (50.0, true), (70.0, false), (-70.0, false)] {
        const MOVE: &str =
            "UPDATE rate_limits_policies SET last_updated_at = (SELECT max(created_at) FROM audit_logs WHERE resource_id = $1)
            + $2 * interval '1 second' WHERE id = $3";
        assert_eq!(database.execute(MOVE, &[&id.to_string(), &away, &id]).await.unwrap(), 1);
        let stale = send(&client, Method::PUT, &path, &seen, &json!({ "value": 30 })).await;
        assert_eq!(stale.status, 412, "{away}: {}", stale.text());
        assert_eq!(stale.json()["data"]["changed"]["by_id"].is_string(), is_known, "{away}: {}", stale.text());
    }
}
