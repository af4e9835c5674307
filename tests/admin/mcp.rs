//! MCP integrations against a scripted server: answers as JSON and as events, endless pages, huge lists, rubbish, and
//! what other tenants may not see.

mod access;
mod issuer;
mod job;
mod login;
mod oauth;
mod pins;

use crate::service::Service;
use axum::Json;
use axum::Router;
use axum::extract::Path;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use harness::Client;
use serde_json::{Value, json};

/// The path says how the server behaves.
async fn scripted(Path(way): Path<String>, headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    let (id, method) = (&asked["id"], asked["method"].as_str().unwrap());
    if way == "closed" && headers.get("x-key").is_none_or(|key| key != "open-sesame") {
        return (StatusCode::UNAUTHORIZED, "who is x-key?").into_response();
    }
    if way == "rubbish" {
        return "<html>".into_response();
    }
    if id.is_null() {
        return StatusCode::ACCEPTED.into_response();
    }
    let tool = json!({ "name": "echo", "description": "Echoes", "inputSchema": { "type": "object" } });
    let result = match (method, way.as_str()) {
        ("initialize", _) => json!({
            "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "scripted", "version": "1" },
        }),
        ("tools/list", "endless") => {
            let page = asked["params"]["cursor"].as_str().map_or(0, |text| text.parse::<u32>().unwrap());
            json!({ "tools": [], "nextCursor": (page + 1).to_string() })
        }
        ("tools/list", "huge") => json!({ "tools": [{ "name": "a", "description": "x".repeat(50 << 20) }] }),
        _ => json!({ "tools": [tool] }),
    };
    let message = json!({ "jsonrpc": "2.0", "id": id, "result": result });
    if way == "events" {
        let text = format!(": hello\n\nevent: message\ndata: {message}\n\n");
        return ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response();
    }
    Json(message).into_response()
}

async fn start() -> (Service, Client, String) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().route("/{way}", post(scripted));
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    let service = Service::start_with(&["--trusted-custom-hosts=127.0.0.1"]).await;
    let client = service.administrator();
    (service, client, origin)
}

async fn register(client: &Client, origin: &str, way: &str) {
    let body = json!({
        "name": way, "slug": way, "url": format!("{origin}/{way}"), "auth_type": "headers", "transport": "http",
        "configurations": { "custom_headers": { "x-key": "open-sesame" } },
    });
    let answer = client.post("/mcp-integrations", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test]
async fn what_a_server_offers_is_stored_whether_it_answers_json_or_events() {
    let (_service, client, origin) = start().await;
    for way in ["plain", "events", "closed"] {
        register(&client, &origin, way).await;
        let path = format!("/mcp-integrations/{way}");
        let off = json!({ "capabilities": [{ "name": "echo", "type": "tool", "enabled": false }] });
        assert_eq!(client.put(&format!("{path}/capabilities"), &off).await.json(), json!({ "success": true }));
        let tested = client.post(&format!("{path}/test"), &json!({})).await.json();
        assert_eq!((&tested["success"], &tested["server_name"]), (&json!(true), &json!("scripted")), "{tested}");
        let synced = client.post(&format!("{path}/sync"), &json!({})).await.json();
        assert_eq!((&synced["success"], &synced["details"]["tools"]), (&json!(true), &json!(1)), "{synced}");
        let listed = client.get(&format!("{path}/capabilities")).await.json();
        assert_eq!(listed["data"][0]["description"], "Echoes", "{listed}");
        assert_eq!(listed["data"][0]["enabled"], false, "what was switched off before stays so: {listed}");
        let read = client.get(&path).await;
        assert_eq!(read.json()["metadata"]["sync_status"], "synced", "{}", read.text());
        assert!(!read.text().contains("open-sesame"), "{}", read.text());
    }
}

#[tokio::test]
async fn what_a_client_learnt_is_stored_as_it_was_sent_and_approves_nothing() {
    let (_service, client, origin) = start().await;
    register(&client, &origin, "plain").await;
    let push = async |body: Value| client.post("/mcp-integrations/plain/sync", &body).await;
    let one =
        json!({ "name": "echo", "type": "tool", "description": "As I saw it", "input_schema": { "type": "object" } });
    let pushed = push(json!({
        "server_info": { "name": "seen", "version": "7" },
        "capabilities": [one, { "name": "notes", "type": "resource", "uri": "a://notes" }, one],
    }));
    let answer = pushed.await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!((&answer.json()["details"]["tools"], &answer.json()["details"]["resources"]), (&json!(1), &json!(1)));
    let listed = async || client.get("/mcp-integrations/plain/capabilities").await.json();
    let shown = listed().await;
    assert_eq!((&shown["total"], &shown["data"][1]["description"]), (&json!(2), &json!("As I saw it")), "{shown}");
    assert_eq!(shown["data"][1]["input_schema"], json!({ "type": "object" }));
    let read = client.get("/mcp-integrations/plain").await.json();
    assert_eq!(
        (&read["metadata"]["server_name"], &read["metadata"]["sync_status"]),
        (&json!("seen"), &json!("synced"))
    );
    // The server itself tells it otherwise, which is the first that it tells.
    assert_eq!(push(json!({})).await.json()["details"]["tools"], 1);
    let told = listed().await;
    assert_eq!((&told["total"], &told["data"][0]["pin_state"]), (&json!(1), &json!("approved")), "{told}");
    assert_eq!(told["data"][0]["description"], "Echoes");
    for (body, part) in [
        (json!({ "capabilities": [{ "name": "x" }] }), "capabilities[0].type"),
        (json!({ "capabilities": [{ "type": "tool" }] }), "capabilities[0].name"),
        (json!({ "capabilities": [{ "name": "x", "type": "sorcery" }] }), "capabilities[0].type"),
        (json!({ "capabilities": 7 }), "capabilities"),
    ] {
        let refused = push(body).await;
        assert_eq!(refused.status, 400, "{}", refused.text());
        assert!(refused.text().contains(part), "{part}: {}", refused.text());
    }
}

#[tokio::test]
async fn a_server_that_does_not_keep_to_bounds_is_told_in_a_sentence() {
    let (_service, client, origin) = start().await;
    for (way, part) in
        [("endless", "more than 50 pages"), ("huge", "more than 4194304 bytes"), ("rubbish", "initialize")]
    {
        register(&client, &origin, way).await;
        let synced = client.post(&format!("/mcp-integrations/{way}/sync"), &json!({})).await;
        assert_eq!((synced.status.as_u16(), &synced.json()["success"]), (200, &json!(false)), "{}", synced.text());
        assert!(synced.json()["message"].as_str().unwrap().contains(part), "{}", synced.text());
    }
}

#[tokio::test]
async fn addresses_inside_and_processes_are_refused_and_secrets_do_not_follow_a_new_host() {
    let (_service, client, origin) = start().await;
    for (url, transport, field) in [
        ("https://10.0.0.1/mcp", "http", "url"),
        ("http://169.254.169.254/mcp", "http", "url"),
        ("https://mcp.example.com/mcp", "stdio", "transport"),
    ] {
        let body = json!({ "name": "x", "url": url, "auth_type": "none", "transport": transport });
        let answer = client.post("/mcp-integrations", &body).await;
        assert_eq!(answer.status, 400, "{}", answer.text());
        assert_eq!(answer.json()["error"]["param"], field, "{}", answer.text());
    }
    register(&client, &origin, "plain").await;
    let moved = client.put("/mcp-integrations/plain", &json!({ "url": "https://mcp.example.com/mcp" })).await;
    assert_eq!(moved.json()["error"]["param"], "configurations.custom_headers", "{}", moved.text());
}

#[tokio::test]
async fn another_tenant_and_a_workspace_without_access_see_nothing() {
    let (service, client, origin) = start().await;
    register(&client, &origin, "plain").await;
    let other = service.organisation().await;
    let stranger = service.client().with_key(&other.admin_key.key);
    let workspace = service.workspace_client(service.home.workspace_id).await;
    for path in ["", "/metadata", "/capabilities"] {
        for client in [&stranger, &workspace] {
            assert_eq!(client.get(&format!("/mcp-integrations/plain{path}")).await.status, 404, "{path}");
        }
    }
    let server = json!({ "name": "S", "slug": "srv", "mcp_integration_id": "plain" });
    assert_eq!(workspace.post("/mcp-servers", &server).await.status, 403);
    let access = json!({ "workspaces": [{ "id": service.home.workspace_id, "enabled": true }] });
    assert_eq!(client.put("/mcp-integrations/plain/workspaces", &access).await.status, 200);
    assert_eq!(workspace.post("/mcp-servers", &server).await.status, 200);
    assert_eq!(stranger.get("/mcp-servers/srv").await.status, 404);
}

#[tokio::test]
async fn external_authentication_is_refused_when_it_is_saved() {
    let (service, client, origin) = start().await;
    register(&client, &origin, "plain").await;
    let body = |auth: &str, settings: Value| json!({ "name": "x", "url": format!("{origin}/plain"), "auth_type": auth, "transport": "http", "configurations": settings });
    let settings = json!({ "external_auth_config": { "url": "https://auth.example.com" } });
    for (answer, field) in [
        (client.post("/mcp-integrations", &body("external", json!({}))).await, "auth_type"),
        (
            client.post("/mcp-integrations", &body("none", settings.clone())).await,
            "configurations.external_auth_config",
        ),
        (client.put("/mcp-integrations/plain", &json!({ "auth_type": "external" })).await, "auth_type"),
        (
            client.put("/mcp-integrations/plain", &json!({ "configurations": settings })).await,
            "configurations.external_auth_config",
        ),
    ] {
        assert_eq!(
            (answer.status.as_u16(), &answer.json()["error"]["param"]),
            (400, &json!(field)),
            "{}",
            answer.text()
        );
        assert!(answer.text().contains("external authentication does not exist here"), "{}", answer.text());
    }
    // A row from before is shown and changed as it is.
    service.sql("UPDATE mcp_integrations SET auth_type = 'external' WHERE slug = 'plain'").await;
    assert_eq!(client.get("/mcp-integrations/plain").await.json()["auth_type"], "external");
    assert_eq!(client.put("/mcp-integrations/plain", &json!({ "description": "d" })).await.status, 200);
}
