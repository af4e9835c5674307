//! Guardrails that run without being asked for: those of an organisation and of a workspace, whoever calls and whatever the config
//! says, except where a workspace is left out or an operator switched guardrails off.

use crate::routing::{client, target};
use crate::tokens::accept;
use harness::issuer::{Issuer, claims};
use harness::{Answer, Client, Stack, chat};
use serde_json::{Value, json};

/// A saved guardrail that denies a word; of the organisation, or of the home workspace.
async fn saved(stack: &Stack, word: &str, is_of_workspace: bool) -> Value {
    let checks = json!([{ "id": "default.contains", "parameters": { "words": [word], "operator": "none" } }]);
    let mut body =
        json!({ "name": format!("No {word}"), "checks": checks, "actions": { "deny": true, "async": false } });
    match is_of_workspace {
        true => body["workspace_id"] = json!(stack.home.workspace_id),
        false => body["organisation_id"] = json!(stack.home.id),
    }
    stack.home.create("/guardrails", body).await
}

async fn put(stack: &Stack, path: &str, body: Value) {
    let answer = stack.administrator().put(path, &body).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text());
}

async fn say(client: &Client, text: &str) -> Answer {
    client.post("/chat/completions", &chat(text)).await
}

async fn until_status(stack: &Stack, client: &Client, text: &str, status: u16) {
    stack.until(&format!("`{text}` is {status}"), async || say(client, text).await.status == status).await;
}

#[tokio::test]
async fn they_bind_keys_and_tokens_alike_and_an_excluded_workspace_has_only_its_own() {
    let (stack, issuer) = (Stack::start().await, Issuer::start().await);
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    let token = issuer.token(&claims(stack.home.id, &stack.home.workspace_id.to_string(), "completions.write"));
    let (whole, own) = (saved(&stack, "everywhere", false).await, saved(&stack, "inside", true).await);
    put(&stack, "/admin/organisation/defaults", json!({ "input_guardrails": [whole["slug"]] })).await;
    let workspace = format!("/admin/workspaces/{}", stack.home.workspace_id);
    put(&stack, &workspace, json!({ "defaults": { "input_guardrails": [own["slug"]] } })).await;
    let callers = [stack.client(), stack.as_application(&token)];
    for caller in &callers {
        until_status(&stack, caller, "a word from everywhere", 446).await;
        until_status(&stack, caller, "a word from inside", 446).await;
        let denied = say(caller, "a word from inside").await.json();
        let hooks = denied["hook_results"]["before_request_hooks"].as_array().unwrap();
        let ids: Vec<&Value> = hooks.iter().map(|hook| &hook["id"]).collect();
        assert_eq!(ids, [&whole["slug"], &own["slug"]], "the organisation's first: {denied}");
        assert_eq!(say(caller, "a word from nobody").await.status, 200);
    }
    // A config brings its own and takes none away.
    let stubborn = client(&stack, &target(&stack, json!({ "input_guardrails": [], "before_request_hooks": [] })));
    assert_eq!(say(&stubborn, "a word from everywhere").await.status, 446);
    // Another organisation has none of them.
    let other = stack.organisation().await;
    assert_eq!(say(&stack.as_application(&other.workspace_key), "from everywhere and from inside").await.status, 200);
    let excluded = json!({ "workspaces": [{ "workspace_id": stack.home.workspace_id, "excluded": true }] });
    put(&stack, "/workspace-exclusions/input-guardrails", excluded).await;
    for caller in &callers {
        until_status(&stack, caller, "a word from everywhere", 200).await;
        assert_eq!(say(caller, "a word from inside").await.status, 446, "its own it keeps");
    }
}

#[tokio::test]
async fn those_of_an_answer_run_too_and_what_they_deny_is_withheld_from_everybody() {
    let (stack, issuer) = (Stack::start().await, Issuer::start().await);
    accept(&stack, &json!({ "jwks_url": issuer.url() })).await;
    let token = issuer.token(&claims(stack.home.id, &stack.home.workspace_id.to_string(), "completions.write"));
    let own = saved(&stack, "leak", true).await;
    let workspace = format!("/admin/workspaces/{}", stack.home.workspace_id);
    put(&stack, &workspace, json!({ "defaults": { "output_guardrails": [own["slug"]] } })).await;
    for caller in [stack.client(), stack.as_application(&token)] {
        stack
            .until("the default holds", async || {
                stack.mock.script(json!([{ "reply": "here is a leak" }])).unwrap();
                say(&caller, "Hello").await.status == 446
            })
            .await;
        stack.mock.reset();
        assert_eq!(say(&caller, "Hello").await.status, 200);
    }
}

#[tokio::test]
async fn none_runs_where_the_operator_switched_guardrails_off() {
    let stack = Stack::builder().proxy("GUARDRAILS_ENABLED", "OFF").start().await;
    let whole = saved(&stack, "everywhere", false).await;
    put(&stack, "/admin/organisation/defaults", json!({ "input_guardrails": [whole["slug"]] })).await;
    let word = json!({ "default.contains": { "words": ["everywhere"], "operator": "none" }, "deny": true });
    let client = client(&stack, &target(&stack, json!({ "input_guardrails": [word, whole["slug"]] })));
    // What comes after them in the feed has arrived, so they have.
    stack.organisation().await;
    for caller in [stack.client(), client] {
        let answer = say(&caller, "a word from everywhere").await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert!(!answer.text().contains("hook_results"), "{}", answer.text());
    }
}
