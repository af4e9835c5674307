//! Calls that applications report: priced, counted and found like those through the gateway, with their bodies and
//! without their secrets.

use super::ids;
use crate::document::Document;
use crate::providers::granted;
use crate::service::Service;
use harness::Client;
use http::Method;
use serde_json::{Value, json};
use shared::bootstrap;
use shared::identity::scopes;
use shared::model::KeyKind;

fn call(trace: &str) -> Value {
    json!({
        "request": {
            "url": "https://api.openai.com/v1/chat/completions?api_key=c4n4ry-1&a=1",
            "provider": "openai",
            "headers": { "Authorization": "Bearer c4n4ry-2", "x-api-key": "c4n4ry-3", "content-type": "application/json" },
            "body": { "model": "gpt-4o", "messages": [{ "role": "user", "content": "Hello" }] },
        },
        "response": {
            "status": 200,
            "headers": { "set-cookie": "c4n4ry-4", "content-type": "application/json" },
            "body": { "model": "gpt-4o", "choices": [], "usage": { "prompt_tokens": 1000, "completion_tokens": 500 } },
            "time": 420,
        },
        "metadata": { "traceId": trace, "spanId": "s", "user": "ada", "plan": "pro" },
    })
}

async fn reported(client: &Client, body: &Value) -> Vec<String> {
    let answer = client.post("/logs", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["log_ids"].as_array().unwrap().iter().map(|id| id.as_str().unwrap().to_owned()).collect()
}

async fn number(service: &Service, sql: &str) -> i64 {
    service.database.client().await.query_one(sql, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn a_reported_call_is_priced_counted_and_found_with_its_bodies() {
    let service = Service::start().await;
    let document = Document::of(&service).await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let answer = client.post("/logs", &json!([call("a"), call("b")])).await;
    assert!(document.faults(&Method::POST, "/logs", &answer).is_empty(), "{}", answer.text());
    let sent: Vec<Value> = answer.json()["log_ids"].as_array().unwrap().clone();
    assert_eq!(ids(&client, "trace_id=a").await, [sent[0].as_str().unwrap()], "in the order they came");
    let path = format!("/logs/{}", sent[1].as_str().unwrap());
    let read = client.get(&path).await;
    assert!(
        document.faults(&Method::GET, &path, &read).is_empty(),
        "{:?}",
        document.faults(&Method::GET, &path, &read)
    );
    let log = read.json();
    let metrics = &log["metrics"];
    for (name, expected) in [
        // By hand: 1000 × 0.00025 + 500 × 0.001 cents.
        ("cost", json!(0.75)),
        ("req_units", json!(1000)),
        ("res_units", json!(500)),
        ("ai_org", json!("openai")),
        ("ai_model", json!("gpt-4o")),
        ("source", json!("custom")),
        ("trace_id", json!("b")),
        ("span_id", json!("s")),
        ("response_time", json!(420)),
        ("request_url", json!("https://api.openai.com/v1/chat/completions?a=1")),
        ("metadata", json!({ "_user": "ada", "plan": "pro" })),
    ] {
        assert_eq!(metrics[name], expected, "{name}: {metrics}");
    }
    assert_eq!(log["request"]["body"]["messages"][0]["content"], "Hello");
    assert_eq!(log["request"]["headers"]["content-type"], "application/json");
    assert_eq!(log["response"]["body"]["usage"]["prompt_tokens"], 1000);
    let counted = "SELECT value::bigint FROM usage_counters
                   WHERE scope = 'workspace' AND unit = 'tokens' AND period = 'total'";
    assert_eq!(number(&service, counted).await, 3000);
}

#[tokio::test]
async fn reported_calls_are_listed_in_the_order_in_which_they_came() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.extend(reported(&client, &json!(vec![call("ordered"); 20])).await);
    }
    let mut listed = ids(&client, "trace_id=ordered&page_size=100").await;
    listed.reverse();
    assert_eq!(listed, sent);
}

#[tokio::test]
async fn no_secret_of_a_reported_call_is_stored_or_shown() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let id = reported(&client, &call("a")).await.remove(0);
    let read = client.get(&format!("/logs/{id}")).await.text();
    assert!(read.contains("\"Authorization\":\"*****\"") && !read.contains("c4n4ry"), "{read}");
    let rows = "SELECT count(*) FROM request_logs r WHERE r::text LIKE '%c4n4ry%'";
    assert_eq!(number(&service, rows).await, 0);
    let trail = "SELECT count(*) FROM audit_logs a WHERE a::text LIKE '%c4n4ry%'";
    assert_eq!(number(&service, trail).await, 0);
}

#[tokio::test]
async fn bodies_are_not_kept_where_somebody_says_so_and_long_ones_in_part() {
    let service = Service::start_with(&["--log-body-bytes=64"]).await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let bodies = async |client: &Client| {
        let id = reported(client, &call("a")).await.remove(0);
        client.get(&format!("/logs/{id}")).await.json()["request"]["body"].clone()
    };
    let short = bodies(&client).await;
    assert!(short.as_str().unwrap().ends_with(" bytes kept]"), "{short}");
    assert_eq!(bodies(&client.with("x-gateway-debug", "false")).await, Value::Null);
    service.sql("UPDATE workspaces SET settings = jsonb_build_object('debug_log', 0)").await;
    assert_eq!(bodies(&client).await, Value::Null);
    let off = Service::start_with(&["--log-bodies=OFF"]).await;
    assert_eq!(bodies(&off.workspace_client(off.home.workspace_id).await).await, Value::Null);
}

#[tokio::test]
async fn the_body_of_a_log_is_as_hidden_as_its_row() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let id = reported(&client, &call("a")).await.remove(0);
    let neighbour = service.workspace_client(service.workspace("elsewhere").await).await;
    let stranger = service.client().with_key(&service.organisation().await.admin_key.key);
    for other in [&neighbour, &stranger] {
        assert_eq!(other.get(&format!("/logs/{id}")).await.status, 404);
    }
    let store = "SELECT count(*) FROM request_logs
                 WHERE body_key LIKE 'bodies/' || organisation_id || '/' || workspace_id || '/%'";
    assert_eq!(number(&service, store).await, 1, "its place begins with its tenant");
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused_whole() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    let mut wrong = call("a");
    wrong["response"]["status"] = json!(7);
    let answer = client.post("/logs", &json!([call("a"), wrong])).await;
    assert_eq!(answer.json()["error"]["param"], "[1].response.status", "{}", answer.text());
    assert_eq!(number(&service, "SELECT count(*) FROM request_logs").await, 0);
    let half = service.key(KeyKind::WorkspaceService, &["logs.write"]).await;
    assert_eq!(service.client().with_key(&half.key).post("/logs", &call("a")).await.status, 403, "both scopes");
    let mut absurd = call("a");
    absurd["response"]["body"]["usage"]["prompt_tokens"] = json!(u64::MAX);
    let id = reported(&client, &absurd).await.remove(0);
    let log = client.get(&format!("/logs/{id}")).await.json();
    assert_eq!((&log["metrics"]["cost"], &log["metrics"]["req_units"]), (&Value::Null, &json!(1_i64 << 40)));
    let plain = json!({ "request": { "url": "/x", "body": null }, "response": { "body": "text" } });
    let id = reported(&client, &plain).await.remove(0);
    let log = client.get(&format!("/logs/{id}")).await.json();
    assert_eq!((&log["metrics"]["cost"], &log["metrics"]["ai_org"]), (&Value::Null, &Value::Null));
    assert_eq!(log["metrics"]["trace_id"].as_str().unwrap().len(), 36, "a trace is made up");
}

#[tokio::test]
async fn texts_of_any_length_are_refused_or_stored_and_never_fail() {
    let service = Service::start().await;
    let client = service.workspace_client(service.home.workspace_id).await;
    // Nothing that could be compressed, of characters of four bytes, as long as each may be.
    let long = |length: usize| -> String {
        (0..length).filter_map(|_| char::from_u32(rand::random_range(0x1_0000..0xf_ffff))).collect()
    };
    let mut wide = call(&long(255));
    wide["request"]["provider"] = json!(long(255));
    wide["request"]["body"]["model"] = json!(long(63));
    wide["response"]["body"]["model"] = json!(long(63));
    reported(&client, &wide).await;
    let mut unnamed = call("long model");
    unnamed["request"]["body"]["model"] = json!(long(4000));
    unnamed["response"]["body"]["model"] = json!(long(4000));
    unnamed["response"]["body"]["usage"]["words"] = json!(long(4000));
    let id = reported(&client, &unnamed).await.remove(0);
    let log = client.get(&format!("/logs/{id}")).await.json();
    assert_eq!((&log["metrics"]["ai_model"], &log["metrics"]["req_units"]), (&Value::Null, &json!(1000)));
    let kept = "SELECT count(*) FROM request_logs WHERE octet_length(usage::text) > 8192";
    assert_eq!(number(&service, kept).await, 0, "figures are kept, and not whatever stands beside them");
    let mut refused = call("a");
    refused["request"]["provider"] = json!(long(256));
    assert_eq!(client.post("/logs", &refused).await.status, 400);
}

#[tokio::test]
async fn a_call_of_a_provider_of_the_workspace_costs_what_its_integration_says() {
    let service = Service::start().await;
    let client = granted(&service).await;
    let provider = json!({ "name": "mine", "slug": "mine", "integration_id": "main" });
    assert_eq!(client.post("/providers", &provider).await.status, 200);
    let admin = service.administrator();
    let half = json!({ "pricing_adjustments": { "multiplier": { "default": 0.5 } } });
    assert_eq!(admin.put("/integrations/main", &half).await.status, 200);
    let own = json!({ "type": "static", "pay_as_you_go": { "request_token": { "price": 0.002 }, "response_token": { "price": 0.004 } } });
    let models = json!({ "models": [{ "slug": "house-model", "enabled": true, "is_custom": true, "base_model_slug": "gpt-4o", "pricing_config": own }] });
    let answer = admin.put("/integrations/main/models", &models).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let of = |provider: Value, model: &str| {
        let mut log = call("own");
        log["request"]["provider"] = provider;
        log["request"]["body"]["model"] = json!(model);
        log["response"]["body"]["model"] = json!(model.rsplit('/').next().unwrap());
        log
    };
    for (provider, model, cents, service, slug) in [
        (json!("openai"), "gpt-4o", 0.75, "openai", Value::Null),
        // Half of it.
        (json!("@mine"), "gpt-4o", 0.375, "openai", json!("mine")),
        (Value::Null, "@mine/gpt-4o", 0.375, "openai", json!("mine")),
        // (1000 × 0.002 + 500 × 0.004) × 0.5 cents.
        (json!("@mine"), "house-model", 2.0, "openai", json!("mine")),
        (Value::Null, "@mine/house-model", 2.0, "openai", json!("mine")),
    ] {
        let id = reported(&client, &of(provider.clone(), model)).await.remove(0);
        let metrics = client.get(&format!("/logs/{id}")).await.json()["metrics"].clone();
        let found = (metrics["cost"].as_f64(), &metrics["ai_org"], &metrics["virtual_key"]);
        assert_eq!(found, (Some(cents), &json!(service), &slug), "{provider} {model}");
    }
    let neighbour = service.workspace_client(service.workspace("elsewhere").await).await;
    let stranger = service.organisation().await;
    let (database, scopes) = (service.database.client().await, scopes::all_for(KeyKind::WorkspaceService));
    let stranger =
        bootstrap::create_workspace_key(&database, stranger.workspace_id, "k", &scopes, "pk_").await.unwrap();
    let stranger = service.client().with_key(&stranger.key);
    for client in [&neighbour, &stranger] {
        let answer = client.post("/logs", &of(json!("@mine"), "gpt-4o")).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["error"]["param"]), (400, &json!("request.provider")));
    }
    let answer = client.post("/logs", &json!([call("a"), of(json!("@nobody"), "gpt-4o")])).await;
    assert_eq!(answer.status, 400, "{}", answer.text());
    assert_eq!(number(&service, "SELECT count(*) FROM request_logs").await, 5, "refused whole");
}
