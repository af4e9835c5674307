//! Calls: what may be called, what is logged, limited and guarded.

use super::{call, client, listen, messages, names, request, serve, session};
use crate::journal::calls::{rows, status, text};
use harness::{Stack, chat};
use rust_decimal::Decimal;
use serde_json::{Value, json};

async fn switch_off(stack: &Stack, path: &str, kind: &str, name: &str) {
    let body = json!({ "capabilities": [{ "name": name, "type": kind, "enabled": false }] });
    let answer = stack.administrator().put(path, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test]
async fn what_is_switched_off_is_in_no_list_and_cannot_be_called() {
    let stack = Stack::start().await;
    let off = "/mcp-integrations/tools/capabilities";
    let client = serve(&stack, "tools", "events", json!({})).await;
    let synced = stack.administrator().post("/mcp-integrations/tools/sync", &json!({})).await;
    assert_eq!(synced.json()["success"], true, "{}", synced.text());
    for (kind, name) in [("tool", "delete"), ("prompt", "scold"), ("resource", "secret")] {
        switch_off(&stack, off, kind, name).await;
    }
    let client = session(&client, "/tools/mcp").await;
    let list = async |method: &str, field: &str| {
        let answer = client.post("/tools/mcp", &request(1, method, json!({}))).await;
        let said = messages(&answer);
        names(&said.last().unwrap()["result"][field]).iter().map(|&name| name.to_owned()).collect::<Vec<_>>()
    };
    stack.until("the proxy knows it", async || list("resources/list", "resources").await == ["readme"]).await;
    assert_eq!(list("tools/list", "tools").await, ["echo", "fail"]);
    assert_eq!(list("prompts/list", "prompts").await, ["greet"]);
    let resumed = messages(&listen(&client, "/tools/mcp", "p-1").await);
    assert_eq!(names(&resumed[1]["result"]["tools"]), ["echo", "fail"], "also when a stream is resumed");
    stack.mock.reset();
    for (method, params, code) in [
        ("tools/call", json!({ "name": "delete" }), -32602),
        ("prompts/get", json!({ "name": "scold" }), -32602),
        ("resources/read", json!({ "uri": "mock://secret" }), -32002),
        ("resources/subscribe", json!({ "uri": "mock://secret" }), -32002),
        ("completion/complete", json!({ "ref": { "type": "ref/prompt", "name": "scold" } }), -32602),
    ] {
        let answer = client.post("/tools/mcp", &request(9, method, params)).await;
        let said = answer.json();
        assert_eq!(
            (answer.status.as_u16(), &said["error"]["code"], &said["id"]),
            (200, &json!(code), &json!(9)),
            "{said}"
        );
    }
    assert!(stack.mock.requests().is_empty(), "the server was not asked");
}

#[tokio::test]
async fn a_call_costs_what_its_tool_is_priced_at_if_it_is_answered() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let path = "/mcp-integrations/tools/capabilities";
    let change = json!({ "capabilities": [
        { "name": "echo", "type": "tool", "price": 2.5 }, { "name": "fail", "type": "tool", "price": 7 },
        { "name": "delete", "type": "tool", "enabled": false },
    ] });
    let admin = stack.administrator();
    assert_eq!(admin.put(path, &change).await.json(), json!({ "success": true }));
    let listed = admin.get(&format!("{path}?type=tool")).await.json();
    let price = |name: &str| {
        listed["data"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()["price"].clone()
    };
    assert_eq!((price("echo"), price("delete")), (json!(2.5), Value::Null), "{listed}");
    for refused in [json!({ "price": -1 }), json!({ "price": 1e9 }), json!({ "type": "resource", "price": 1 })] {
        let mut one = json!({ "name": "echo", "type": "tool" });
        one.as_object_mut().unwrap().extend(refused.as_object().unwrap().clone());
        let answer = admin.put(path, &json!({ "capabilities": [one] })).await;
        assert_eq!((answer.status.as_u16(), answer.text().contains("price")), (400, true), "{}", answer.text());
    }
    let client = session(&client, "/tools/mcp").await;
    // What came with the prices is known, so they are.
    let is_known = async || {
        let listed = client.post("/tools/mcp", &request(1, "tools/list", json!({}))).await.json();
        names(&listed["result"]["tools"]) == ["echo", "fail"]
    };
    stack.until("the proxy knows it", is_known).await;
    for tool in ["echo", "fail"] {
        client.post("/tools/mcp", &call(2, tool, "x")).await;
    }
    let found = rows(&stack, 2).await;
    let costs: Vec<(i32, Decimal)> = found.iter().map(|row| (status(row), row.get("cost"))).collect();
    assert_eq!(costs, [(200, Decimal::new(25, 1)), (422, Decimal::ZERO)]);
}

#[tokio::test]
async fn a_server_may_switch_off_what_its_integration_offers() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    switch_off(&stack, "/mcp-servers/tools/capabilities", "tool", "echo").await;
    let client = session(&client, "/tools/mcp").await;
    stack
        .until("the proxy knows it", async || {
            client.post("/tools/mcp", &call(1, "echo", "x")).await.json()["error"]["code"] == -32602
        })
        .await;
    assert_eq!(client.post("/tools/mcp", &call(1, "delete", "x")).await.json()["error"], Value::Null);
}

#[tokio::test]
async fn each_call_leaves_a_row_and_nothing_else_does() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "events", json!({})).await;
    let client = session(&client, "/tools/mcp").await.with("x-gateway-metadata", r#"{"team":"red"}"#);
    client.post("/tools/mcp", &request(1, "tools/list", json!({}))).await;
    client.post("/tools/mcp", &call(2, "echo", "hello")).await;
    client.post("/tools/mcp", &call(3, "fail", "")).await;
    client.post("/tools/mcp", &call(4, "unknown", "")).await;
    client.post("/tools/mcp", &request(5, "resources/read", json!({ "uri": "mock://readme" }))).await;
    let found = rows(&stack, 4).await;
    let told: Vec<_> = found.iter().map(|row| (text(row, "ai_model").unwrap(), status(row))).collect();
    assert_eq!(told, [("tools/echo", 200), ("tools/fail", 422), ("tools/unknown", 400), ("tools/mock://readme", 200)]);
    for row in &found {
        assert_eq!(text(row, "ai_org"), Some("mcp"));
        assert_eq!(row.get::<_, Option<Decimal>>("cost"), Some(Decimal::ZERO));
        assert_eq!(row.get::<_, Value>("metadata")["team"], "red");
    }
}

#[tokio::test]
async fn a_policy_for_tools_counts_no_models_and_one_for_models_no_tools() {
    let stack = Stack::start().await;
    let client = session(&serve(&stack, "tools", "json", json!({})).await, "/tools/mcp").await;
    let policy = async |target: &str| {
        let body = json!({
            "workspace_id": stack.home.workspace_id, "type": "requests", "unit": "rpd", "value": 1, "target": target,
        });
        stack.home.create("/policies/rate-limits", body).await;
    };
    let is_called = async || client.post("/tools/mcp", &call(1, "echo", "x")).await.json()["error"].is_null();
    let asked = async || stack.client().post("/chat/completions", &chat("Hello")).await.status.as_u16();
    policy("llm").await;
    stack.until("the policy for models holds", async || asked().await == 429).await;
    for _ in 0..3 {
        assert!(is_called().await, "tools are not counted by it");
    }
    policy("mcp_tools").await;
    stack.until("the policy for tools holds", async || !is_called().await).await;
}

#[tokio::test]
async fn calls_count_towards_limits_and_policies_may_name_servers_and_tools() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let client = session(&client, "/tools/mcp").await;
    let policy = json!({
        "name": "few deletions", "workspace_id": stack.home.workspace_id, "type": "requests", "unit": "rph", "value": 1,
        "conditions": [{ "key": "mcp_server", "value": "tools" }, { "key": "mcp_tool", "value": "delete" }],
        "group_by": [{ "key": "api_key" }],
    });
    stack.home.create("/policies/rate-limits", policy).await;
    let refused = async || client.post("/tools/mcp", &call(1, "delete", "x")).await;
    stack.until("the policy holds", async || refused().await.json()["error"].is_object()).await;
    let answer = refused().await;
    let said = answer.json();
    assert_eq!(answer.status, 200, "clients wait for the id of their request");
    assert_eq!((&said["id"], &said["error"]["code"]), (&json!(1), &json!(-32050)), "{said}");
    assert_eq!(said["error"]["data"]["type"], "rate_limit_exceeded", "{said}");
    assert_eq!(client.post("/tools/mcp", &call(2, "echo", "x")).await.json()["error"], Value::Null);
    let database = stack.database.client().await;
    stack
        .until("the refusal is logged", async || {
            let sql =
                "SELECT count(*) FROM request_logs WHERE response_status_code = 429 AND ai_model = 'tools/delete'";
            database.query_one(sql, &[]).await.unwrap().get::<_, i64>(0) > 0
        })
        .await;
}

#[tokio::test]
async fn guardrails_judge_arguments_and_results() {
    let stack = Stack::start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let denies = |word: &str| json!({ "default.contains": { "words": [word], "operator": "none" }, "deny": true });
    let config = json!({
        "provider": "openai", "input_guardrails": [denies("classified")], "output_guardrails": [denies("it failed")],
    });
    let client = session(&client, "/tools/mcp").await.with("x-gateway-config", config.to_string());
    assert_eq!(client.post("/tools/mcp", &call(1, "echo", "plain")).await.json()["error"], Value::Null);
    stack.mock.reset();
    for (message, reaches) in [(call(2, "echo", "classified"), 0), (call(3, "fail", "plain"), 1)] {
        let said = client.post("/tools/mcp", &message).await.json();
        assert_eq!(said["error"]["data"]["type"], "hooks_failed", "{said}");
        assert_eq!(said["id"], message["id"]);
        assert_eq!(stack.mock.requests().len(), reaches);
    }
}

#[tokio::test]
async fn a_person_without_access_sees_no_server() {
    let stack = Stack::start().await;
    serve(&stack, "tools", "json", json!({})).await;
    let key = stack.key(&["mcp.invoke"]).await;
    let database = stack.database.client().await;
    let user: uuid::Uuid = database
        .query_one("SELECT id FROM users WHERE organisation_id = $1 LIMIT 1", &[&stack.home.id])
        .await
        .unwrap()
        .get(0);
    const OWN: &str = "UPDATE api_keys SET user_id = $2, kind = 'workspace-user'
                       WHERE id = (SELECT id FROM api_keys WHERE workspace_id = $1 ORDER BY created_at DESC LIMIT 1)";
    database.execute(OWN, &[&stack.home.workspace_id, &user]).await.unwrap();
    let client = client(&stack, &key);
    session(&client, "/tools/mcp").await;
    database.execute("UPDATE mcp_servers SET default_user_access = 'deny'", &[]).await.unwrap();
    stack.until("it is closed", async || client.delete("/tools/mcp").await.status == 404).await;
    const LET_IN: &str = "INSERT INTO mcp_user_access (organisation_id, server_id, user_id, enabled)
                          SELECT organisation_id, id, $1, true FROM mcp_servers";
    database.execute(LET_IN, &[&user]).await.unwrap();
    stack.until("it is open to them", async || client.delete("/tools/mcp").await.status != 404).await;
}
