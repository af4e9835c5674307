//! `POST /explain` of requests that were made: found by any of their ids, told with their config, and only to those who
//! may see them.

use crate::configs;
use crate::document::Document;
use crate::logs::{at, id_at, store};
use crate::service::Service;
use harness::{Answer, Client};
use http::Method;
use serde_json::{Value, json};
use shared::model::KeyKind;
use uuid::Uuid;

async fn explain(client: &Client, request_id: impl ToString) -> Answer {
    client.post("/explain", &json!({ "request_id": request_id.to_string() })).await
}

/// A request that tried two targets; both its logs.
async fn rescued(service: &Service, columns: Value) -> [Uuid; 2] {
    let (began, turned) = (at(5), at(4));
    let request = id_at(began);
    let with = |more: Value| {
        let mut all = json!({ "internal_trace_id": request, "mode": "fallback", "trace_id": "rescued" });
        all.as_object_mut().unwrap().extend(columns.as_object().unwrap().clone());
        all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        all
    };
    let failed = json!({
        "attempt": 0, "last_used_option_index": "config.targets[0]", "response_status_code": 429, "cost": "0.1",
        "retry_success_count": -1,
    });
    let answered = json!({
        "id": request, "attempt": 1, "last_used_option_index": "config.targets[1]", "cost": "0.2", "req_units": 7,
        "res_units": 5, "metadata": { "_user": "ada" }, "requested_model": "gpt-4o",
    });
    let failed = store(service, turned, with(failed)).await;
    store(service, began, with(answered)).await;
    [failed, request]
}

#[tokio::test]
async fn a_past_request_is_told_by_the_version_of_the_config_it_followed() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let client = service.administrator();
    let config = json!({
        "retry": { "attempts": 2 }, "strategy": { "mode": "fallback", "on_status_codes": [429] }, "request_timeout": 900,
        "targets": [
            { "provider": "@a" },
            { "provider": "openai", "api_key": "sk-never-shown", "override_params": { "seed": 12345 } },
            { "provider": "@c" },
        ],
    });
    let made = configs::create(&client, "Explained", config).await;
    // A later version tells nothing about this request.
    let later = json!({ "config": { "provider": "@later" } });
    assert_eq!(client.put(&configs::path(&made), &later).await.status, 200);
    let columns = json!({ "config": made["slug"], "config_id": made["id"], "config_version_id": made["version_id"] });
    let [failed, request] = rescued(&service, columns).await;
    for asked in [request.to_string(), failed.to_string(), "rescued".to_owned()] {
        let answer = explain(&client, &asked).await;
        assert_eq!(answer.status, 200, "{asked}: {}", answer.text());
        let faults = document.faults(&Method::POST, "/explain", &answer);
        assert!(faults.is_empty(), "{faults:?} in {}", answer.text());
        assert!(!answer.text().contains("sk-never-shown") && !answer.text().contains("12345"), "{}", answer.text());
        let told = answer.json();
        assert_eq!((&told["lane"], &told["metadata"]), (&json!("engine"), &json!({ "_user": "ada" })));
        assert_eq!((&told["config"]["source"], &told["config"]["version"]), (&json!("saved"), &json!(1)));
        assert_eq!(told["config"]["version_id"], made["version_id"]);
        assert_eq!(told.get("limits"), Some(&Value::Null), "which limits were asked is not kept");
        let plan = told["plan"].as_array().unwrap();
        let options: Vec<_> =
            plan.iter().map(|stop| (stop["option"].as_str().unwrap(), stop["is_reached"] == true)).collect();
        let expected = [("config.targets[0]", true), ("config.targets[1]", true), ("config.targets[2]", false)];
        assert_eq!(options, expected);
        assert_eq!(plan[0]["why"][1], "its retries were used up");
        assert!(plan[1]["why"][0].as_str().unwrap().contains("config.targets[0] ended with 429"), "{told}");
        assert_eq!((&plan[0]["outcome"]["log_id"], &plan[0]["outcome"]["status"]), (&json!(failed), &json!(429)));
        let settings = &plan[1]["settings"];
        assert_eq!((&settings["retry"]["attempts"], &settings["request_timeout"]), (&json!(2), &json!(900)));
        assert_eq!(settings["override_params"], json!(["seed"]));
        assert_eq!((&plan[2]["target"]["virtual_key"], &plan[2]["outcome"]), (&json!("c"), &json!(null)));
        let outcome = &told["outcome"];
        assert_eq!((&outcome["request_id"], &outcome["status"]), (&json!(request), &json!(200)));
        assert_eq!((&outcome["answered_by"], &outcome["targets_tried"]), (&json!("config.targets[1]"), &json!(2)));
        assert_eq!((&outcome["req_units"], &outcome["res_units"]), (&json!(7), &json!(5)));
        assert_eq!(
            outcome["cost"].as_f64().map(|cost| (cost * 10.0).round()),
            Some(3.0),
            "both targets cost: {outcome}"
        );
    }
}

#[tokio::test]
async fn without_a_saved_config_the_logs_alone_are_told() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let client = service.administrator();
    let [_, request] = rescued(&service, json!({ "config": "inline" })).await;
    let time = at(3);
    let refused = id_at(time);
    let columns = json!({
        "id": refused, "internal_trace_id": refused, "ai_org": null, "ai_model": null, "response_status_code": 400,
        "error_code": "missing_provider", "trace_id": "refused",
    });
    store(&service, time, columns).await;
    let inline = explain(&client, request).await;
    assert!(document.faults(&Method::POST, "/explain", &inline).is_empty(), "{}", inline.text());
    let told = inline.json();
    assert_eq!((&told["config"]["source"], &told["config"]["slug"]), (&json!("inline"), &json!(null)));
    assert_eq!(told["plan"].as_array().unwrap().len(), 2);
    assert_eq!(told["plan"][1]["why"], json!(["the next after config.targets[0] ended with 429"]));
    let refused = explain(&client, refused).await;
    assert!(document.faults(&Method::POST, "/explain", &refused).is_empty(), "{}", refused.text());
    let told = refused.json();
    assert_eq!((&told["config"]["source"], &told["plan"]), (&json!("none"), &json!([])));
    assert_eq!(
        (&told["outcome"]["error_code"], &told["outcome"]["answered_by"]),
        (&json!("missing_provider"), &json!(null))
    );
}

#[tokio::test]
async fn a_request_whose_end_is_not_stored_yet_has_no_outcome() {
    let service = Service::start().await;
    let began = at(5);
    let columns = json!({ "internal_trace_id": id_at(began), "response_status_code": 500, "trace_id": "running" });
    let first = store(&service, at(4), columns).await;
    let told = explain(&service.administrator(), first).await.json();
    assert_eq!((&told["outcome"], &told["plan"][0]["outcome"]["status"]), (&json!(null), &json!(500)));
}

#[tokio::test]
async fn what_is_not_there_or_is_several_requests_is_refused_and_said_so() {
    let service = Service::start().await;
    let client = service.administrator();
    for asked in [Uuid::new_v4().to_string(), id_at(at(1)).to_string(), "no-such-trace".into(), "ä'\"%".into()] {
        let answer = explain(&client, &asked).await;
        assert_eq!(answer.status, 404, "{asked}");
        assert!(answer.text().contains("logs arrive within seconds"), "{}", answer.text());
    }
    for _ in 0..2 {
        store(&service, at(2), json!({ "trace_id": "shared" })).await;
    }
    let answer = explain(&client, "shared").await;
    assert_eq!(answer.status, 400);
    assert!(answer.text().contains("several requests"), "{}", answer.text());
    for wrong in [
        json!({}),
        json!({ "path": "/v1/chat/completions" }),
        json!({ "request_id": null }),
        json!({ "request_id": 7 }),
        json!({ "request_id": "" }),
        json!({ "request_id": "x".repeat(1025) }),
        json!({ "request_id": "x", "path": "/" }),
    ] {
        assert_eq!(client.post("/explain", &wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn nobody_is_told_of_requests_that_their_view_of_the_logs_does_not_have() {
    let service = Service::start().await;
    let (other, elsewhere) = (service.organisation().await, service.workspace("elsewhere").await);
    let [_, request] = rescued(&service, json!({})).await;
    let own = service.workspace_client(service.home.workspace_id).await;
    let neighbour = service.workspace_client(elsewhere).await;
    let stranger = service.client().with_key(&other.admin_key.key);
    for asked in [request.to_string(), "rescued".to_owned()] {
        for (client, status) in [(&own, 200), (&neighbour, 404), (&stranger, 404)] {
            assert_eq!(explain(client, &asked).await.status, status, "{asked}");
        }
    }
    for scopes in [&["logs.view"][..], &["configs.read"], &["completions.write", "logs.list"]] {
        let key = service.key(KeyKind::WorkspaceService, scopes).await;
        assert_eq!(explain(&service.client().with_key(&key.key), request).await.status, 403, "{scopes:?}");
    }
    let member = service.person("member", Some("member")).await;
    let client = service.person_client(service.home.workspace_id, member).await;
    assert_eq!(explain(&client, request).await.json()["metadata"], json!({ "_user": "ada" }));
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewLogMetadata": false}'"#).await;
    assert_eq!(explain(&client, request).await.json()["metadata"], json!({}));
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewAllData": false}'"#).await;
    assert_eq!(explain(&client, request).await.status, 404, "it came through somebody else's key");
    service.sql(r#"UPDATE organisations SET security_settings = '{"membersViewLogs": false}'"#).await;
    assert_eq!(explain(&client, request).await.status, 403);
}

/// A config's version belongs to its tenant, whatever a row says.
#[tokio::test]
async fn a_config_of_another_tenant_is_not_read() {
    let service = Service::start().await;
    let other = service.organisation().await;
    let theirs = service.client().with_key(&other.admin_key.key);
    let config = json!({ "strategy": { "mode": "single" }, "targets": [{ "provider": "@theirs" }] });
    let made = configs::create(&theirs, "Theirs", config).await;
    let columns = json!({ "config": made["slug"], "config_id": made["id"], "config_version_id": made["version_id"] });
    let [_, request] = rescued(&service, columns).await;
    let told = explain(&service.administrator(), request).await;
    assert_eq!(
        (told.status.as_u16(), told.text().contains("@theirs") || told.text().contains("\"theirs\"")),
        (200, false)
    );
    assert_eq!(told.json()["config"]["version"], json!(null));
}
