//! Who may use what of an MCP server: flags of the server and of its integration, people, and tokens that nobody but
//! their owner reaches.

use super::{register, start};
use crate::service::Service;
use harness::{Client, client::whole};
use http::Method;
use serde_json::{Value, json};
use shared::model::KeyKind;
use uuid::Uuid;

/// An MCP server in the first workspace.
pub async fn server(service: &Service, client: &Client, integration: &str, slug: &str) -> String {
    let workspace = service.home.workspace_id;
    let access = json!({ "workspaces": [{ "id": workspace, "enabled": true }] });
    let given = client.put(&format!("/mcp-integrations/{integration}/workspaces"), &access).await;
    assert_eq!(given.status, 200, "{}", given.text());
    let body = json!({ "name": slug, "slug": slug, "mcp_integration_id": integration, "workspace_id": workspace });
    let made = client.post("/mcp-servers", &body).await;
    assert_eq!(made.status, 200, "{}", made.text());
    format!("/mcp-servers/{slug}")
}

/// A member of the first workspace, and their key.
pub async fn member(service: &Service) -> (Uuid, Client) {
    let person = service.person("member", Some("member")).await;
    let client = service.person_client(service.home.workspace_id, person).await;
    (person, client)
}

#[tokio::test]
async fn a_capability_needs_the_flag_of_the_server_and_of_its_integration() {
    let (service, client, origin) = start().await;
    register(&client, &origin, "plain").await;
    let server = server(&service, &client, "plain", "srv").await;
    assert_eq!(client.post("/mcp-integrations/plain/sync", &json!({})).await.json()["success"], true);
    let flag = |enabled: bool| json!({ "capabilities": [{ "name": "echo", "type": "tool", "enabled": enabled }] });
    let path = format!("{server}/capabilities");
    for (own, integration) in [(false, true), (true, true), (true, false), (false, false)] {
        assert_eq!(client.put(&path, &flag(own)).await.json(), json!({ "success": true }));
        assert_eq!(client.put("/mcp-integrations/plain/capabilities", &flag(integration)).await.status, 200);
        let listed = client.get(&path).await.json();
        let one = &listed["data"][0];
        assert_eq!(one["enabled"], own && integration, "{own} {integration}: {listed}");
        assert_eq!(one["integration_enabled"], integration, "{own} {integration}: {listed}");
        assert_eq!(listed["counts"]["tools"], json!({ "total": 1, "enabled": i32::from(own && integration) }));
    }
    // What is not listed yet is remembered.
    let early = json!({ "capabilities": [{ "name": "later", "type": "prompt", "enabled": false }] });
    assert_eq!(client.put(&path, &early).await.status, 200);
    let listed = client.get(&format!("{path}?type=prompt")).await.json();
    assert_eq!((&listed["data"][0]["name"], &listed["data"][0]["enabled"]), (&json!("later"), &json!(false)));
    for wrong in [json!({}), json!({ "capabilities": [{ "name": "a", "type": "toool", "enabled": true }] })] {
        assert_eq!(client.put(&path, &wrong).await.status, 400, "{wrong}");
    }
}

#[tokio::test]
async fn people_are_let_in_by_default_or_by_exception() {
    let (service, client, origin) = start().await;
    register(&client, &origin, "plain").await;
    let server = server(&service, &client, "plain", "srv").await;
    let (ada, ada_client) = member(&service).await;
    let (bob, bob_client) = member(&service).await;
    let path = format!("{server}/user-access");
    let check = format!("{path}/check");
    let has = |answer: harness::Answer| answer.json()["has_access"].as_bool();
    assert_eq!(has(ada_client.get(&check).await), Some(true), "the default lets everybody in");
    let change = json!({ "default_user_access": "deny", "user_access": [{ "user_id": ada, "enabled": true }] });
    assert_eq!(client.put(&path, &change).await.json(), json!({ "success": true }));
    assert_eq!(has(ada_client.get(&check).await), Some(true));
    assert_eq!(has(bob_client.get(&check).await), Some(false));
    assert_eq!(has(client.get(&format!("{check}?user_id={bob}")).await), Some(false));
    let weak = service.key_for(&service.home, service.home.workspace_id, bob, KeyKind::WorkspaceUser, &["mcp.invoke"]);
    let weak = service.client().with_key(&weak.await.key);
    assert_eq!(has(weak.get(&check).await), Some(false), "oneself needs only mcp.invoke");
    assert_eq!(weak.get(&format!("{check}?user_id={ada}")).await.status, 403, "others need more");
    assert_eq!(client.get(&check).await.status, 400, "an admin key acts for nobody");
    let listed = client.get(&path).await.json();
    let of = |person: Uuid| {
        let people = listed["data"].as_array().unwrap();
        people.iter().find(|one| one["user_id"] == person.to_string()).cloned().unwrap_or_else(|| panic!("{listed}"))
    };
    assert_eq!((&of(ada)["enabled"], &of(ada)["has_override"]), (&json!(true), &json!(true)));
    assert_eq!((&of(bob)["enabled"], &of(bob)["has_override"]), (&json!(false), &json!(false)));
    assert_eq!(listed["default_user_access"], "deny");
    let page = client.get(&format!("{path}?page=2&page_size=1")).await.json();
    assert_eq!((page["data"].as_array().unwrap().len(), &page["has_more"]), (1, &json!(true)), "{page}");
    let stranger = service.organisation().await.owner_id;
    for wrong in [
        json!({}),
        json!({ "default_user_access": "maybe" }),
        json!({ "user_access": [{ "user_id": stranger, "enabled": true }] }),
    ] {
        assert_eq!(client.put(&path, &wrong).await.status, 400, "{wrong}");
    }
    // Whoever cannot act in the workspace has no access, whatever the default.
    assert_eq!(client.put(&path, &json!({ "default_user_access": "allow" })).await.status, 200);
    let outsider = service.person("member", None).await;
    assert_eq!(has(client.get(&format!("{check}?user_id={outsider}")).await), Some(false));
}

#[tokio::test]
async fn tokens_are_shown_masked_stored_sealed_and_reached_by_their_owner_alone() {
    const TOKEN: &str = "upstream-t0ken-of-ada";
    let (service, client, origin) = start().await;
    register(&client, &origin, "plain").await;
    let server = server(&service, &client, "plain", "srv").await;
    let (ada, ada_client) = member(&service).await;
    let (bob, bob_client) = member(&service).await;
    let (tokens, connections) = (format!("{server}/tokens"), format!("{server}/connections"));
    let nothing = json!({ "access_token": null, "refresh_token": null, "expires_at": null });
    assert_eq!(ada_client.get(&tokens).await.json(), nothing);
    for wrong in [json!({}), json!({ "access_token": "a b" }), json!({ "access_token": "a", "expires_at": "soon" })] {
        assert_eq!(ada_client.put(&tokens, &wrong).await.status, 400, "{wrong}");
    }
    let sent =
        json!({ "access_token": TOKEN, "refresh_token": "refresh-t0ken-1", "expires_at": "2099-01-15T10:30:00Z" });
    let stored = ada_client.put(&tokens, &sent).await;
    assert_eq!(stored.json(), json!({ "success": true }));
    let shown = ada_client.get(&tokens).await;
    assert_eq!(shown.json()["access_token"], "up*****ada", "{}", shown.text());
    assert_eq!(shown.json()["expires_at"], "2099-01-15T10:30:00.000Z", "{}", shown.text());
    assert_eq!(bob_client.get(&tokens).await.json(), nothing, "nobody sees another's");
    for other in [service.workspace_client(service.home.workspace_id).await, client.clone()] {
        assert_eq!(other.get(&tokens).await.status, 403, "what acts for nobody has no tokens");
    }
    // Connections: one's own, or all for whoever manages the server.
    let count = |answer: harness::Answer| answer.json()["total"].as_i64();
    assert_eq!(count(ada_client.get(&connections).await), Some(1));
    assert_eq!(count(bob_client.get(&connections).await), Some(0));
    assert_eq!(count(client.get(&connections).await), Some(1));
    let weak = service.key_for(&service.home, service.home.workspace_id, bob, KeyKind::WorkspaceUser, &["mcp.invoke"]);
    let weak = service.client().with_key(&weak.await.key);
    assert_eq!(weak.get(&format!("{connections}?user_id={ada}")).await.status, 403);
    assert_eq!(weak.delete(&format!("{connections}?user_id={ada}")).await.status, 403);
    assert_eq!(client.delete(&connections).await.status, 400, "an admin key must say whose");
    // Nothing that is left behind holds a token.
    let dump: String = everything(&service).await;
    assert!(!dump.contains("t0ken"), "a token is stored or recorded in clear");
    let body = json!({ "user_id": ada });
    assert_eq!(whole(client.request(Method::DELETE, &connections).json(&body)).await.status, 200);
    assert_eq!(ada_client.get(&tokens).await.json(), nothing);
    // Tokens end with the person, the server and the integration's address.
    let ends: [(&str, String); 3] = [
        ("users", format!("UPDATE users SET status = 'archived' WHERE id = '{bob}'")),
        ("mcp_integrations", "UPDATE mcp_integrations SET url = url || '/moved'".into()),
        ("mcp_servers", "UPDATE mcp_servers SET status = 'archived'".into()),
    ];
    assert_eq!(bob_client.put(&tokens, &sent).await.status, 200);
    for (what, sql) in ends {
        assert_eq!(ada_client.put(&tokens, &sent).await.status, 200, "{what}");
        service.sql(&sql).await;
        let left = service.database.client().await.query("SELECT user_id FROM mcp_connections", &[]).await.unwrap();
        let left: Vec<Uuid> = left.iter().map(|row| row.get(0)).collect();
        assert!(!left.contains(if what == "users" { &bob } else { &ada }), "{what}: {left:?}");
    }
}

/// Every row of the tables that could hold a token, as text.
pub async fn everything(service: &Service) -> String {
    let client = service.database.client().await;
    let mut all = String::new();
    for table in ["mcp_connections", "mcp_clients", "mcp_oauth_states", "mcp_integrations", "audit_logs"] {
        let rows = client.query(&format!("SELECT to_jsonb(t) FROM {table} t"), &[]).await.unwrap();
        all.extend(rows.iter().map(|row| row.get::<_, Value>(0).to_string()));
    }
    all
}
