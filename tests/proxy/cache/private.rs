//! Workspaces that keep no bodies: whose word it takes to keep answers there.

use super::{ask, cache_status};
use crate::routing::target;
use harness::{Stack, chat};
use serde_json::json;

#[tokio::test]
async fn where_no_bodies_are_kept_only_a_config_keeps_answers_and_no_header_does() {
    for path in ["/admin/workspaces/{}", "/admin/organisation"] {
        let stack = Stack::start().await;
        let path = path.replace("{}", &stack.home.workspace_id.to_string());
        let changed = stack.administrator().put(&path, &json!({ "settings": { "debug_log": 0 } })).await;
        assert_eq!(changed.status, 200, "{path}: {}", changed.text());
        // A key that was made later is known later.
        let key = stack.key(&["completions.write"]).await;
        stack.until_known(&key).await;
        let client = stack.anonymous().with_key(&key);
        let plain = client.with("x-gateway-config", target(&stack, json!({})).to_string());
        let by_header = plain.with("x-gateway-cache", "simple");
        for _ in 0..2 {
            assert_eq!(cache_status(&ask(&by_header, &chat("Private")).await), "DISABLED", "{path}");
        }
        let config = target(&stack, json!({ "cache": { "mode": "simple" } })).to_string();
        let by_config = client.with("x-gateway-config", config);
        assert_eq!(cache_status(&ask(&by_config, &chat("Private")).await), "MISS", "{path}");
        assert_eq!(cache_status(&ask(&by_config, &chat("Private")).await), "HIT", "{path}");
        let both = by_config.with("x-gateway-cache", r#"{"mode":"simple","max_age":90}"#);
        assert_eq!(cache_status(&ask(&both, &chat("Private")).await), "HIT", "{path}");
    }
}
