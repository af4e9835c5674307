//! Agents say by themselves who they are and to which session a call belongs: that is metadata of the call, under all else that
//! says the same.

use crate::families::{application, integrate};
use crate::journal::calls::{anthropic, rows};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

const CLAUDE: [(&str, &str); 2] =
    [("user-agent", "claude-cli/2.1.326 (external, cli)"), ("x-claude-code-session-id", "s-1")];

fn with(client: &Client, headers: &[(&str, &str)]) -> Client {
    headers.iter().fold(client.clone(), |client, (name, value)| client.with(name, *value))
}

fn message(user: &str) -> Value {
    json!({ "model": "claude-opus-4-8", "max_tokens": 9, "metadata": { "user_id": user },
        "messages": [{ "role": "user", "content": "Hello" }] })
}

fn answered(answer: &Answer) {
    assert_eq!(answer.status, 200, "{}", answer.text());
}

async fn logged(stack: &Stack, count: usize) -> Vec<Value> {
    rows(stack, count).await.iter().map(|row| row.get::<_, Option<Value>>("metadata").unwrap_or_default()).collect()
}

#[tokio::test]
async fn what_each_agent_sends_is_in_the_log_of_its_call() {
    let stack = Stack::start().await;
    let long = "s".repeat(300);
    let cases: [(Vec<(&str, &str)>, Value); 6] = [
        (CLAUDE.to_vec(), json!({ "_agent": "claude-code", "_session": "s-1" })),
        (
            vec![("user-agent", "codex_exec/0.169.0 (Linux)"), ("originator", "codex_exec"), ("session_id", "c-1")],
            json!({ "_agent": "codex", "_session": "c-1" }),
        ),
        (vec![("user-agent", "GeminiCLI/0.61.0/m (linux; x64)")], json!({ "_agent": "gemini-cli" })),
        (
            vec![("x-openwebui-user-email", "ada@x.test"), ("x-openwebui-user-id", "7"), ("x-openwebui-chat-id", "c")],
            json!({ "_agent": "open-webui", "_session": "c", "_user": "ada@x.test" }),
        ),
        (vec![("x-claude-code-session-id", &long)], json!({ "_agent": "claude-code", "_session": "s".repeat(128) })),
        (vec![("session_id", "of-an-application")], json!({})),
    ];
    for (headers, _) in &cases {
        answered(&with(&stack.client(), headers).post("/chat/completions", &chat("Hello")).await);
    }
    let found = logged(&stack, cases.len()).await;
    for (found, (headers, said)) in found.iter().zip(&cases) {
        assert_eq!(found, said, "{headers:?}");
    }
    let log = stack.administrator().get("/logs?metadata=%7B%22_session%22%3A%22s-1%22%7D").await;
    answered(&log);
    assert_eq!(log.json()["data"].as_array().map(Vec::len), Some(1), "{}", log.text());
}

#[tokio::test]
async fn the_user_of_a_message_is_a_person_or_claude_codes_session() {
    let stack = Stack::start().await;
    let client = anthropic(&stack);
    let written = json!({ "device_id": "d", "account_uuid": "", "session_id": "s-2" }).to_string();
    let cases = [
        (written.as_str(), json!({ "_agent": "claude-code", "_session": "s-2" })),
        ("user_d_account_a-1_session_s-3", json!({ "_agent": "claude-code", "_session": "s-3", "_user": "a-1" })),
        ("ada", json!({ "_user": "ada" })),
    ];
    for (user, _) in &cases {
        answered(&client.post("/messages", &message(user)).await);
        let sent: Value = serde_json::from_slice(&stack.mock.requests().last().unwrap().body).unwrap();
        assert_eq!(sent["metadata"]["user_id"], *user, "the provider is told what its client said");
    }
    // An application's own map, which has nothing to do with Anthropic's.
    let mut other = chat("Hello");
    other["metadata"] = json!({ "user_id": "ada" });
    answered(&stack.client().post("/chat/completions", &other).await);
    let found = logged(&stack, cases.len() + 1).await;
    for (found, (user, said)) in found.iter().zip(&cases) {
        assert_eq!(found, said, "{user}");
    }
    assert_eq!(found[cases.len()], json!({}));
}

#[tokio::test]
async fn what_a_caller_an_operator_or_a_key_says_wins() {
    let stack = Stack::builder().proxy("HEADERS_TO_METADATA", "x-forwarded-user:_user").start().await;
    let agent = with(&anthropic(&stack), &CLAUDE);
    let message = message("user_d_account_a-1_session_s-9");
    answered(&agent.post("/messages", &message).await);
    answered(&agent.with("x-forwarded-user", "ada").post("/messages", &message).await);
    let own = agent.with("x-gateway-metadata", r#"{"_user":"bob","_session":"mine","_agent":"own","t":1}"#);
    answered(&own.post("/messages", &message).await);
    let found = logged(&stack, 3).await;
    assert_eq!(
        found[0],
        json!({ "_agent": "claude-code", "_session": "s-1", "_user": "a-1" }),
        "headers before bodies"
    );
    assert_eq!(found[1], json!({ "_agent": "claude-code", "_session": "s-1", "_user": "ada" }));
    assert_eq!(found[2], json!({ "_agent": "own", "_session": "mine", "_user": "bob", "t": "1" }));
}

#[tokio::test]
async fn an_operator_can_switch_it_off() {
    let stack = Stack::builder().proxy("AGENT_METADATA", "off").start().await;
    answered(&with(&anthropic(&stack), &CLAUDE).post("/messages", &message("ada")).await);
    let mut body = chat("Hello");
    body["user"] = json!("ada");
    answered(&with(&stack.client(), &CLAUDE).post("/chat/completions", &body).await);
    assert_eq!(logged(&stack, 2).await, [json!({}), json!({ "_user": "ada" })], "the field `user` always was");
}

#[tokio::test]
async fn a_question_about_a_call_shows_it_and_a_limit_can_ask_for_it() {
    let stack = crate::limits::patient().await;
    integrate(&stack, "claude", "anthropic").await;
    let question = json!({ "path": "/v1/messages", "headers": { "user-agent": CLAUDE[0].1 },
        "body": message("user_d_account_a-1_session_s-4") });
    let explained = application(&stack).post("/explain", &question).await;
    answered(&explained);
    let said = json!({ "_agent": "claude-code", "_session": "s-4", "_user": "a-1" });
    assert_eq!(explained.json()["metadata"], said, "{}", explained.text());
    let body = json!({
        "name": "one-a-session", "type": "requests", "unit": "rpd", "value": 1,
        "conditions": [{ "key": "metadata._agent", "value": "claude-code" }],
        "group_by": [{ "key": "metadata._session" }],
    });
    crate::limits::policy(&stack, "/policies/rate-limits", body).await;
    let ask = async |session: &str| {
        let client = with(&stack.client(), &[("x-claude-code-session-id", session)]);
        client.post("/chat/completions", &chat("Hello")).await.status.as_u16()
    };
    stack.until("the policy is known", async || ask("s-5").await == 429).await;
    assert_eq!(ask("s-6").await, 200, "another session is another group");
}

#[tokio::test]
async fn a_kept_answer_is_one_for_all_sessions_and_for_no_other_metadata() {
    let stack = Stack::start().await;
    let cached =
        |session: &str| with(&stack.client(), &[("x-gateway-cache", "simple"), ("x-claude-code-session-id", session)]);
    let status = async |client: Client| {
        let answer = client.post("/chat/completions", &chat("Hello")).await;
        answered(&answer);
        answer.header("x-gateway-cache-status").to_owned()
    };
    assert_eq!(status(cached("s-1")).await, "MISS");
    stack.until("it is kept", async || status(cached("s-2")).await == "HIT").await;
    let own = cached("s-2").with("x-gateway-metadata", r#"{"_session":"mine"}"#);
    assert_eq!(status(own).await, "MISS", "what a caller says of itself keeps its answers apart");
}
