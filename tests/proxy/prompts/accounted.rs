//! What holds for runs as for any call once they are answered: the cache, budgets, and analytics, which compare versions.

use super::{add_version, author, content, create, greeting, start, until_runs};
use crate::cache::cache_status;
use crate::families::{application, integrate};
use crate::limits::{limited_key, patient};
use serde_json::{Value, json};
use std::collections::BTreeMap;

#[tokio::test]
async fn equal_runs_are_answered_from_the_cache_until_the_prompt_says_something_else() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("Hi {{name}}")).await;
    until_runs(&stack, &prompt.slug).await;
    let client = application(&stack).with("x-gateway-config", json!({ "cache": { "mode": "simple" } }).to_string());
    let path = format!("/prompts/{}/completions", prompt.slug);
    let status = async |name: &str| cache_status(&client.post(&path, &json!({ "variables": { "name": name } })).await);
    for (name, expected) in [("Ada", "MISS"), ("Ada", "HIT"), ("Bob", "MISS"), ("Ada", "HIT")] {
        assert_eq!(status(name).await, expected, "{name}");
    }
    add_version(&stack, &prompt, "Hello {{name}}").await;
    assert_eq!(status("Ada").await, "HIT", "an update is not published");
    let published =
        author(&stack).put(&format!("/prompts/{}/makeDefault", prompt.slug), &json!({ "version": 2 })).await;
    assert_eq!(published.status, 200, "{}", published.text());
    stack.until("another text is another question", async || status("Ada").await == "MISS").await;
    assert_eq!(content(&stack), "Hello Ada");
    assert_eq!(status("Ada").await, "HIT");
}

#[tokio::test]
async fn a_run_uses_up_a_budget_as_a_chat_does() {
    let stack = patient().await;
    integrate(&stack, "main", "openai").await;
    let prompt = create(&stack, &greeting("Hi")).await;
    until_runs(&stack, &prompt.slug).await;
    let (key, _) = limited_key(&stack, json!({ "usage_limits": { "type": "tokens", "credit_limit": 1 } })).await;
    let limited = stack.anonymous().with_key(&key);
    let path = format!("/prompts/{}/completions", prompt.slug);
    let first = limited.post(&path, &json!({})).await;
    assert_eq!(first.status, 200, "{}", first.text());
    let refused = limited.post(&path, &json!({})).await;
    assert_eq!(refused.status, 412, "{}", refused.text());
    assert_eq!(refused.json()["error"]["code"], "budget_exhausted");
    assert_eq!(stack.mock.requests().len(), 1);
}

#[tokio::test]
async fn analytics_compare_the_versions_of_a_split() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("One")).await;
    add_version(&stack, &prompt, "Two").await;
    let split = json!({ "versions": [{ "version": 1, "weight": 50 }, { "version": 2, "weight": 50 }] });
    let answer = author(&stack).put(&format!("/prompts/{}/labels/staging", prompt.slug), &split).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    until_runs(&stack, &format!("{}@staging", prompt.slug)).await;
    let path = format!("/prompts/{}@staging/completions", prompt.slug);
    let mut met: BTreeMap<String, i64> = BTreeMap::new();
    for user in 0..16 {
        let client = application(&stack).with("x-gateway-metadata", json!({ "_user": format!("u{user}") }).to_string());
        assert_eq!(client.post(&path, &json!({})).await.status, 200);
        *met.entry(content(&stack)).or_default() += 1;
    }
    let versions = author(&stack).get(&format!("/prompts/{}/versions", prompt.slug)).await.json();
    let id = |place: usize| versions["data"][place]["id"].as_str().unwrap().to_owned();
    let expected = BTreeMap::from([(id(1), met["One"]), (id(0), met["Two"])]);
    const GROUPS: &str = "/analytics/groups/prompt_version?columns=success_rate&page_size=100\
        &time_of_generation_min=2026-01-01T00:00:00Z&time_of_generation_max=2036-01-01T00:00:00Z";
    let counted = async || -> BTreeMap<String, i64> {
        let list = author(&stack).get(&format!("{GROUPS}&prompt_slug={}", prompt.slug)).await.json();
        let groups = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
        let group =
            |one: &Value| (one["prompt_version"].as_str().unwrap().to_owned(), one["requests"].as_i64().unwrap());
        groups.iter().map(group).collect()
    };
    // Those that waited for the prompt to be known are counted, too.
    let are_all = |counted: &BTreeMap<String, i64>| {
        expected.iter().all(|(version, calls)| counted.get(version).is_some_and(|count| count >= calls))
    };
    stack.until("all runs are counted", async || are_all(&counted().await)).await;
    assert_eq!(counted().await.len(), 2, "by version and nothing else");
}
