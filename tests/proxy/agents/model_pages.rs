//! The list of models in the words of who asks, page after page.

use super::offer;
use crate::families::application;
use harness::Stack;
use serde_json::Value;

fn ids(page: &Value, list: &str, name: &str) -> Vec<String> {
    page[list].as_array().unwrap().iter().map(|model| model[name].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn anthropics_and_googles_clients_page_through_all_models() {
    let stack = Stack::start().await;
    offer(&stack, "claude", "anthropic").await;
    offer(&stack, "prod", "groq").await;
    let plain = application(&stack);
    let all = ids(&plain.get("/models?sort=id").await.json(), "data", "id");
    assert!(all.len() > 40, "{all:?}");
    let anthropic = plain.with("anthropic-version", "2023-06-01");
    let (mut found, mut after) = (Vec::new(), String::new());
    loop {
        let page = anthropic.get(&format!("/models?limit=20{after}")).await.json();
        assert_eq!((&page["data"][0]["type"], page.get("object")), (&"model".into(), None), "{page}");
        found.extend(ids(&page, "data", "id"));
        if page["has_more"] == false {
            break;
        }
        after = format!("&after_id={}", page["last_id"].as_str().unwrap());
    }
    assert_eq!(found, all);
    let one = anthropic.get("/models/@claude/claude-opus-4-8").await.json();
    assert_eq!((&one["id"], &one["display_name"]), (&"@claude/claude-opus-4-8".into(), &"claude-opus-4-8".into()));
    let google = plain.with("x-goog-api-key", &stack.home.workspace_key);
    let (mut found, mut token) = (Vec::new(), String::new());
    loop {
        let page = google.get(&format!("/v1beta/models?pageSize=20{token}")).await.json();
        found.extend(ids(&page, "models", "name"));
        let Some(next) = page["nextPageToken"].as_str() else { break };
        token = format!("&pageToken={next}");
    }
    assert_eq!(found, all.iter().map(|id| format!("models/{id}")).collect::<Vec<_>>());
    let wrong = google.get("/v1beta/models?pageSize=0").await;
    assert_eq!((wrong.status.as_u16(), &wrong.json()["error"]["status"]), (400, &"INVALID_ARGUMENT".into()));
    let other = stack.organisation().await;
    let foreign = stack.anonymous().with_key(&other.workspace_key);
    stack.until_known(&other.workspace_key).await;
    assert_eq!(foreign.get("/v1beta/models").await.json()["models"].as_array().map(Vec::len), Some(0));
}
