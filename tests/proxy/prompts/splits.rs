//! Labels that point to several versions, and variables that a version declares, when prompts are run.

use super::{add_version, author, content, create, greeting, run, start, until_runs};
use crate::families::application;
use serde_json::json;

#[tokio::test]
async fn a_split_serves_each_user_one_version_and_rendering_says_which() {
    let stack = start().await;
    let prompt = create(&stack, &greeting("One")).await;
    add_version(&stack, &prompt, "Two").await;
    add_version(&stack, &prompt, "Three").await;
    let label = format!("/prompts/{}/labels/staging", prompt.slug);
    let split = json!({ "versions": [{ "version": 2, "weight": 50 }, { "version": 3, "weight": 50 }] });
    assert_eq!(author(&stack).put(&label, &split).await.status, 200);
    let path = format!("/prompts/{}@staging", prompt.slug);
    until_runs(&stack, &format!("{}@staging", prompt.slug)).await;
    let mut met = [0; 2];
    for user in (0..30).map(|n| format!("user-{n}")) {
        let metadata = json!({ "_user": user }).to_string();
        let by_metadata = application(&stack).with("x-gateway-metadata", metadata);
        let rendered = by_metadata.post(&format!("{path}/render"), &json!({})).await.json();
        let expected = rendered["data"]["messages"][0]["content"].as_str().unwrap().to_owned();
        for (client, body) in [(&by_metadata, json!({})), (&application(&stack), json!({ "user": user }))] {
            let answer = client.post(&format!("{path}/completions"), &body).await;
            assert_eq!(answer.status, 200, "{user}: {}", answer.text());
            assert_eq!(content(&stack), expected, "{user}: {body}");
        }
        met[usize::from(expected == "Three")] += 1;
    }
    assert!(met[0] > 2 && met[1] > 2, "{met:?}");
    let all = json!({ "versions": [{ "version": 3 }] });
    assert_eq!(author(&stack).put(&label, &all).await.status, 200);
    let moved = async || {
        let mut seen = Vec::new();
        for n in 0..10 {
            let client = application(&stack).with("x-gateway-trace-id", format!("trace-{n}"));
            assert_eq!(client.post(&format!("{path}/completions"), &json!({})).await.status, 200);
            seen.push(content(&stack));
        }
        seen.iter().all(|said| said == "Three")
    };
    stack.until("all calls meet the third version", moved).await;
}

#[tokio::test]
async fn a_declared_variable_that_is_missing_or_mistyped_is_400_and_no_model_is_asked() {
    let stack = start().await;
    let mut body = greeting("{{name}} {{count}}");
    body["declared_variables"] =
        json!([{ "name": "name", "type": "string", "required": true }, { "name": "count", "type": "integer" }]);
    let prompt = create(&stack, &body).await;
    stack.until("it is known", async || run(&stack, &prompt.slug, &json!({})).await.status != 404).await;
    for (variables, field) in [
        (json!({}), "variables.name"),
        (json!({ "name": 7 }), "variables.name"),
        (json!({ "name": "Ada", "count": "2" }), "variables.count"),
    ] {
        let answer = run(&stack, &prompt.slug, &json!({ "variables": variables })).await;
        assert_eq!(answer.status, 400, "{variables}: {}", answer.text());
        assert!(answer.text().contains(field), "{variables}: {}", answer.text());
    }
    assert!(stack.mock.requests().is_empty(), "{:?}", stack.mock.requests());
    let answer = run(&stack, &prompt.slug, &json!({ "variables": { "name": "Ada", "count": 2 } })).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(content(&stack), "Ada 2");
}
