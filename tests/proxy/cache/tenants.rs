//! Nobody gets an answer of somebody else's: the same body under every combination of keys, workspaces, namespaces and
//! metadata meets itself and nothing else.

use super::{ask, cache_status};
use crate::routing::target;
use harness::{Client, Stack, chat};
use serde_json::json;
use std::collections::BTreeMap;

#[tokio::test]
async fn the_same_request_of_two_tenants_never_meets() {
    let stack = Stack::start().await;
    let other = stack.organisation().await;
    let second = json!({ "name": "second", "workspace_id": stack.home.workspace_id, "scopes": ["completions.write"] });
    let second = stack.administrator().post("/api-keys/workspace/service", &second).await;
    assert_eq!(second.status, 200, "{}", second.text());
    let second = second.json()["key"].as_str().unwrap().to_owned();
    stack.until_known(&second).await;
    stack.until_known(&other.workspace_key).await;
    let config = target(&stack, json!({ "cache": { "mode": "simple" } })).to_string();
    let keys = [("home", &stack.home.workspace_key), ("home", &second), ("other", &other.workspace_key)];
    let partitions = [
        ("none", None),
        ("namespace a", Some(("x-gateway-cache-namespace", "a"))),
        ("namespace b", Some(("x-gateway-cache-namespace", "b"))),
        ("metadata", Some(("x-gateway-metadata", r#"{"team":"a"}"#))),
    ];
    // By workspace and partition: the id of the answer that belongs there.
    let mut seen: BTreeMap<(&str, &str), String> = BTreeMap::new();
    for round in 0..2 {
        for (workspace, key) in keys {
            for (name, header) in partitions {
                let client: Client = stack.anonymous().with_key(key).with("x-gateway-config", config.clone());
                let client = header.map_or(client.clone(), |(header, value)| client.with(header, value));
                let answer = ask(&client, &chat("The same for all")).await;
                let id = answer.json()["id"].as_str().unwrap().to_owned();
                let place = (workspace, name);
                match seen.get(&place) {
                    None => {
                        assert_eq!(cache_status(&answer), "MISS", "{place:?}");
                        assert!(!seen.values().any(|known| *known == id), "{place:?} got another's");
                        seen.insert(place, id);
                    }
                    Some(known) => {
                        assert_eq!(cache_status(&answer), "HIT", "{place:?} in round {round}");
                        assert_eq!(known, &id, "{place:?}");
                    }
                }
            }
        }
    }
    assert_eq!(seen.len(), 8);
}

#[tokio::test]
async fn credentials_are_no_part_of_what_is_kept() {
    let stack = Stack::start().await;
    let with = |key: &str| {
        let mut config = target(&stack, json!({ "cache": { "mode": "simple" } }));
        config["api_key"] = json!(key);
        stack.anonymous().with_key(&stack.home.workspace_key).with("x-gateway-config", config.to_string())
    };
    assert_eq!(cache_status(&ask(&with("sk-one"), &chat("Keys")).await), "MISS");
    assert_eq!(cache_status(&ask(&with("sk-two"), &chat("Keys")).await), "HIT");
    // A namespace divides what is stored; it does not let an answer to other headers pass for this one's.
    for namespace in ["", "shared"] {
        let client = with("sk-one").with("x-gateway-forward-headers", "x-variant");
        let client = if namespace.is_empty() { client } else { client.with("x-gateway-cache-namespace", namespace) };
        for (variant, expected) in [("1", "MISS"), ("2", "MISS"), ("1", "HIT"), ("2", "HIT")] {
            let answer = ask(&client.with("x-variant", variant), &chat("Keys")).await;
            assert_eq!(cache_status(&answer), expected, "namespace {namespace:?}, variant {variant}");
        }
    }
}
