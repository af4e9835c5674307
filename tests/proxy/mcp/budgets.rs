//! A priced tool uses up budgets: what its calls cost is taken from what this proxy may still spend, as it is charged.

use super::{call, client, request, serve, session};
use crate::limits::{limited_key, patient};
use bench::process::Signal;
use harness::Stack;
use rust_decimal::Decimal;
use serde_json::json;
use std::time::Duration;

/// Cents, of a budget of one dollar.
const PRICE: u64 = 25;

#[tokio::test]
async fn priced_tools_use_up_budgets_and_those_that_fail_do_not() {
    for strict in [false, true] {
        let stack = patient().await;
        serve(&stack, "tools", "json", json!({})).await;
        let change = json!({ "capabilities": [
            { "name": "echo", "type": "tool", "price": PRICE }, { "name": "fail", "type": "tool", "price": PRICE },
            { "name": "delete", "type": "tool", "enabled": false },
        ] });
        let changed = stack.administrator().put("/mcp-integrations/tools/capabilities", &change).await;
        assert_eq!(changed.json(), json!({ "success": true }));
        let limits = json!({
            "usage_limits": { "credit_limit": 1, "strict": strict },
            "scopes": ["completions.write", "models.list", "mcp.invoke"],
        });
        let (key, _) = limited_key(&stack, limits).await;
        let client = session(&client(&stack, &key), "/tools/mcp").await;
        let is_known = async || {
            let listed = client.post("/tools/mcp", &request(1, "tools/list", json!({}))).await;
            !listed.text().contains("\"delete\"")
        };
        stack.until("the proxy knows the prices", is_known).await;
        for _ in 0..5 {
            let failed = client.post("/tools/mcp", &call(2, "fail", "x")).await;
            assert_eq!(failed.status, 200, "strict {strict}: {}", failed.text());
            assert!(!failed.text().contains("budget"), "strict {strict}: a failed call cost something");
        }
        let mut passed = 0;
        let refused = loop {
            let answer = client.post("/tools/mcp", &call(3, "echo", "x")).await;
            if answer.json()["error"].is_object() || answer.status == 412 {
                break answer;
            }
            passed += 1;
            assert!(passed <= 20, "strict {strict}: the budget is never used up");
        };
        assert!(refused.text().contains("budget"), "strict {strict}: {}", refused.text());
        let most = 100 / PRICE;
        assert!(if strict { passed == most } else { (most..=most + 1).contains(&passed) }, "strict {strict}: {passed}");
        let database = stack.database.client().await;
        const COST: &str = "SELECT coalesce(sum(cost), 0) FROM request_logs WHERE response_status_code = 200";
        let is_stored = async || {
            let cost: Decimal = database.query_one(COST, &[]).await.unwrap().get(0);
            cost == Decimal::from(PRICE * passed)
        };
        stack.until("the logs say as much", is_stored).await;
    }
}

/// Whatever the server did: it was asked, and nobody heard that it refused.
#[tokio::test]
async fn a_call_that_is_sent_and_not_answered_has_its_price_and_one_that_is_refused_has_none() {
    let stack = Stack::builder().proxy("MCP_CALL_TIMEOUT_MS", "3000").start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let change = json!({ "capabilities": [
        { "name": "echo", "type": "tool", "price": PRICE }, { "name": "delete", "type": "tool", "enabled": false },
    ] });
    let changed = stack.administrator().put("/mcp-integrations/tools/capabilities", &change).await;
    assert_eq!(changed.json(), json!({ "success": true }));
    let client = session(&client, "/tools/mcp").await;
    let is_known = async || {
        let listed = client.post("/tools/mcp", &request(1, "tools/list", json!({}))).await;
        !listed.text().contains("\"delete\"")
    };
    stack.until("the proxy knows the price", is_known).await;
    for fault in [json!({ "latency_ms": 60_000 }), json!({ "status": 503 }), json!({ "no_answer": true })] {
        stack.mock.script(json!([fault])).unwrap();
        let answer = client.post("/tools/mcp", &call(2, "echo", "x")).await;
        assert_eq!(answer.json()["error"]["code"], -32051, "{fault}: {}", answer.text());
    }
    let database = stack.database.client().await;
    const FOUND: &str =
        "SELECT cost, usage_estimated FROM request_logs WHERE ai_model = 'tools/echo' ORDER BY created_at";
    let found = async || {
        let rows = database.query(FOUND, &[]).await.unwrap();
        rows.iter()
            .map(|row| (row.get::<_, Decimal>("cost"), row.get::<_, bool>("usage_estimated")))
            .collect::<Vec<_>>()
    };
    stack.until("all are logged", async || found().await.len() == 3).await;
    let due = (Decimal::from(PRICE), true);
    assert_eq!(found().await, [due, (Decimal::ZERO, false), due]);
}

/// The record of a call waits on disk when the process is killed, and is priced by the next one.
#[tokio::test]
async fn a_tool_has_its_price_although_the_proxy_was_killed_before_its_log_was_stored() {
    let mut stack = Stack::builder().proxy("JOURNAL_SHIP_MS", "3600000").start().await;
    let client = serve(&stack, "tools", "json", json!({})).await;
    let change = json!({ "capabilities": [
        { "name": "echo", "type": "tool", "price": PRICE }, { "name": "delete", "type": "tool", "enabled": false },
    ] });
    assert_eq!(stack.administrator().put("/mcp-integrations/tools/capabilities", &change).await.status, 200);
    let in_session = session(&client, "/tools/mcp").await;
    let is_known = async || {
        let listed = in_session.post("/tools/mcp", &request(1, "tools/list", json!({}))).await;
        !listed.text().contains("\"delete\"")
    };
    stack.until("the proxy knows the prices", is_known).await;
    for _ in 0..5 {
        assert_eq!(in_session.post("/tools/mcp", &call(2, "echo", "x")).await.status, 200);
    }
    let database = stack.database.client().await;
    const STORED: &str = "SELECT count(*), coalesce(sum(cost), 0) FROM request_logs WHERE ai_model LIKE '%echo'";
    let stored = async || {
        let row = database.query_one(STORED, &[]).await.unwrap();
        (row.get::<_, i64>(0), row.get::<_, Decimal>(1))
    };
    assert_eq!(stored().await.0, 0, "they wait on disk");
    stack.proxy.signal(Signal::KILL);
    stack.proxy.ended_within(Duration::from_secs(30)).await;
    stack.proxy = stack.start_another_proxy(&[]);
    stack.until("all logs are stored", async || stored().await.0 == 5).await;
    assert_eq!(stored().await.1, Decimal::from(5 * PRICE));
}
