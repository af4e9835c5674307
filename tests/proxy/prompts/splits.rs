//! Labels that are split between versions, and variables that a version declares.

use super::{add_version, author, content, create, greeting, messages, rows_of, run, start, until_runs};
use crate::families::application;
use serde_json::json;
use shared::prompt::split;
use std::collections::BTreeSet;
use uuid::Uuid;

#[tokio::test]
async fn users_of_a_split_label_meet_both_versions_and_each_stays_with_one() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("One")).await;
    for n in ["Two", "Three"] {
        add_version(&stack, &prompt, n).await;
    }
    let parts = json!({ "versions": [{ "version": 2, "weight": 50 }, { "version": 3, "weight": 50 }] });
    let answer = author(&stack).put(&format!("/prompts/{}/labels/staging", prompt.slug), &parts).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    until_runs(&stack, &format!("{}@staging", prompt.slug)).await;
    assert_eq!(stack.metric(r#"gateway_snapshot_rows{table="served_prompt_versions"}"#).await, Some(3.0));
    let path = format!("/prompts/{}@staging/completions", prompt.slug);
    let (mut met, mut versions) = (BTreeSet::new(), BTreeSet::new());
    for user in 0..24 {
        let user = format!("user-{user}");
        let by_metadata = application(&stack).with("x-gateway-metadata", json!({ "_user": user }).to_string());
        let answer = by_metadata.post(&path, &json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let said = content(&stack);
        let rendered = by_metadata.post(&path.replace("/completions", "/render"), &json!({})).await.json();
        assert_eq!(rendered["data"]["messages"][0]["content"], said.as_str(), "rendering says what running does");
        assert_eq!(application(&stack).post(&path, &json!({ "user": user })).await.status, 200);
        assert_eq!(content(&stack), said, "whichever way the user is named");
        versions.insert(rows_of(&stack, &answer, 1).await[0].get::<_, Uuid>("prompt_version_id"));
        met.insert(said);
    }
    let id: Uuid = prompt.id.parse().unwrap();
    for trace in (0..8).map(|n| format!("trace-{n}")) {
        let answer = application(&stack).with("x-gateway-trace-id", trace.as_str()).post(&path, &json!({})).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let expected = split::choose(&[(2, 50), (3, 50)], &split::sticky_key(id, "staging", &trace));
        assert_eq!(content(&stack), if expected == Some(2) { "Two" } else { "Three" }, "{trace}");
    }
    assert_eq!(met, ["Three", "Two"].map(str::to_owned).into());
    assert_eq!(versions.len(), 2, "the log tells them apart");
}

#[tokio::test]
async fn a_declared_variable_that_is_missing_or_mistyped_is_named() {
    let stack = start().await;
    let mut body = greeting("");
    body["string"] = messages("{{name}} is {{age}}").into();
    body["declared_variables"] =
        json!([{ "name": "name", "type": "string", "required": true }, { "name": "age", "type": "integer" }]);
    let prompt = create(&stack, &body).await;
    stack.until("it is known", async || run(&stack, &prompt.slug, &json!({})).await.status == 400).await;
    stack.mock.reset();
    for (variables, status, word) in [
        (json!({}), 400, "variables.name: is required"),
        (json!({ "name": 7 }), 400, "variables.name: must be a string"),
        (json!({ "name": "Ada", "age": "old" }), 400, "variables.age: must be a whole number"),
        (json!({ "name": "Ada", "age": 36 }), 200, ""),
    ] {
        let answer = run(&stack, &prompt.slug, &json!({ "variables": variables })).await;
        assert_eq!(answer.status, status, "{variables}: {}", answer.text());
        assert!(answer.text().contains(word), "{variables}: {}", answer.text());
    }
    assert_eq!(content(&stack), "Ada is 36");
    assert_eq!(stack.mock.requests().len(), 1);
}
