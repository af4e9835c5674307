//! The life of a budget as people meet it: told of at its threshold and at its end, refused, let pass again when it is
//! raised, and begun anew by the calendar or by hand.

use super::{patient, policy};
use harness::sink::{Sink, Speech};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

async fn ask(client: &Client) -> Answer {
    client.post("/chat/completions", &chat("Hello")).await
}

/// Every call uses so many tokens from now on.
fn each_uses(stack: &Stack, tokens: u64) {
    let answer = json!({
        "id": "c", "object": "chat.completion", "model": "gpt-4o-mini",
        "choices": [{ "index": 0, "message": { "role": "assistant", "content": "Hello" }, "finish_reason": "stop" }],
        "usage": { "prompt_tokens": tokens - 1, "completion_tokens": 1, "total_tokens": tokens },
    });
    stack.mock.script(json!([{ "body": answer.to_string(), "times": 1000 }])).unwrap();
}

/// Recipients of the next letters, which are all about the same, in order.
async fn letters(sink: &mut Sink, count: usize, about: &str) -> Vec<String> {
    let mut to = Vec::new();
    for _ in 0..count {
        let letter = sink.letter().await;
        assert!(letter.text.contains(about), "{}", letter.text);
        to.extend(letter.to);
    }
    to.sort_unstable();
    to
}

async fn shown(stack: &Stack, path: &str) -> Value {
    stack.administrator().get(path).await.json()
}

#[tokio::test]
async fn a_budget_is_told_of_once_at_each_mark_wakes_when_raised_and_begins_anew_on_its_day() {
    let mut sink = Sink::start(Speech::Plain).await;
    let builder = Stack::builder().proxy("LIMITS_WAIT_MS", "20000").admin("SMTP_HOST", "127.0.0.1");
    let stack = builder.admin("SMTP_PORT", sink.port.to_string()).admin("SMTP_TLS", "off").start().await;
    each_uses(&stack, 500);
    let budget = |most: u64, mark: u64| json!({ "type": "tokens", "credit_limit": most, "alert_threshold": mark, "periodic_reset_days": 3 });
    let body = json!({
        "name": "watched", "workspace_id": stack.home.workspace_id, "scopes": ["completions.write", "models.list"],
        "alert_emails": ["ops@x.test"], "usage_limits": budget(1000, 500),
    });
    let made = stack.administrator().post("/api-keys/workspace/service", &body).await.json();
    let path = format!("/api-keys/{}", made["id"].as_str().unwrap());
    let key = made["key"].as_str().unwrap();
    stack.until_known(key).await;
    let client = stack.as_application(key);
    let people = ["ops@x.test", "owner@localhost"];

    assert_eq!(ask(&client).await.status, 200);
    assert_eq!(letters(&mut sink, 2, "watched").await, people, "500 of 1000, which is the mark");
    assert_eq!(ask(&client).await.status, 200);
    assert_eq!(ask(&client).await.status, 412);
    assert_eq!(letters(&mut sink, 2, "is used up").await, people);
    let state = shown(&stack, &path).await;
    assert_eq!((&state["status"], &state["usage_limits"]["current_usage"]), (&json!("exhausted"), &json!(1000)));

    let raised = stack.administrator().put(&path, &json!({ "usage_limits": budget(2000, 1900) })).await;
    assert_eq!(raised.status, 200, "{}", raised.text());
    stack.until("a raised budget is heeded", async || ask(&client).await.status == 200).await;
    let state = shown(&stack, &path).await;
    assert_eq!(
        (&state["status"], &state["usage_limits"]["is_exhausted_alerts_sent"]),
        (&json!("active"), &json!(false))
    );
    stack.until("the rest is used", async || ask(&client).await.status == 412).await;
    assert_eq!(letters(&mut sink, 2, "is used up").await, people, "told again of the new end");

    const DUE: &str = r#"UPDATE api_keys SET usage_limits = jsonb_set(usage_limits, '{next_usage_reset_at}',
        to_jsonb(to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')))
        WHERE usage_limits IS NOT NULL"#;
    assert_eq!(stack.database.client().await.execute(DUE, &[]).await.unwrap(), 1);
    stack.until("a new period is heeded", async || ask(&client).await.status == 200).await;
    let state = shown(&stack, &path).await;
    let next: chrono::DateTime<chrono::Utc> = state["next_usage_reset_at"].as_str().unwrap().parse().unwrap();
    let last: chrono::DateTime<chrono::Utc> = state["last_reset_at"].as_str().unwrap().parse().unwrap();
    assert_eq!((next - last, &state["status"]), (chrono::TimeDelta::days(3), &json!("active")));
    stack
        .until("what was used since is counted", async || {
            shown(&stack, &path).await["usage_limits"]["current_usage"] == 500
        })
        .await;
    assert!(sink.try_letter().is_none(), "nobody is told anything twice");
}

#[tokio::test]
async fn a_workspace_that_has_used_its_budget_up_wakes_when_it_is_raised() {
    let stack = patient().await;
    each_uses(&stack, 600);
    let path = format!("/admin/workspaces/{}", stack.home.workspace_id);
    let budget = async |most: u64| {
        let body = json!({ "usage_limits": { "type": "tokens", "credit_limit": most } });
        let answer = stack.administrator().put(&path, &body).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    };
    budget(1000).await;
    let client = stack.client();
    stack.until("the budget is used up", async || ask(&client).await.status == 412).await;
    let state = async |status: &str| shown(&stack, &path).await["usage_limits"][0]["status"] == status;
    stack.until("it is said to be used up", async || state("exhausted").await).await;
    assert!(ask(&client).await.text().contains("the workspace"));
    budget(100_000).await;
    assert!(state("active").await, "without anybody's doing");
    stack.until("a raised budget is heeded", async || ask(&client).await.status == 200).await;
    assert_eq!(ask(&client).await.status, 200);
}

#[tokio::test]
async fn one_group_of_a_policy_is_reset_by_hand_and_the_proxy_heeds_it_alone() {
    let stack = patient().await;
    each_uses(&stack, 600);
    let body = json!({
        "type": "tokens", "credit_limit": 1000, "group_by": [{ "key": "metadata._user" }],
        "conditions": [{ "key": "metadata._user", "value": "*" }],
    });
    let id = policy(&stack, "/policies/usage-limits", body).await;
    let as_user = |name: &str| stack.client().with("x-gateway-metadata", json!({ "_user": name }).to_string());
    for name in ["alice", "bob", "carol"] {
        stack.until("all is used up", async || ask(&as_user(name)).await.status == 412).await;
    }
    let path = format!("/policies/usage-limits/{id}/entities");
    let entity = async || shown(&stack, &format!("{path}?search=alice")).await["data"][0].clone();
    // A refusal may come while what was used is counted twice for a moment, here and in the store.
    let is_shown = async || {
        ask(&as_user("alice")).await;
        entity().await["status"] == "exhausted"
    };
    stack.until("usage is shown", is_shown).await;
    let reset = format!("{path}/{}/reset", entity().await["id"].as_str().unwrap());
    let answer = stack.administrator().put(&reset, &json!({})).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    stack.until("the group begins anew", async || ask(&as_user("alice")).await.status == 200).await;
    assert_eq!(ask(&as_user("bob")).await.status, 412, "another group does not");
    let answer =
        stack.administrator().post(&format!("{path}/reset"), &json!({ "entity_id": "metadata._user:bob" })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    stack.until("so does this one", async || ask(&as_user("bob")).await.status == 200).await;
    assert_eq!(ask(&as_user("carol")).await.status, 412);
}
