//! The configs of docs/configs.md, as a reader would paste them: each can be saved, and sends requests where its table says.

use crate::routing::client as with_config;
use harness::{Stack, chat};
use serde_json::{Value, json};
use shared::config::{ConfigLimits, Strictness, parse_config};
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../docs/configs.md");

struct Recipe {
    title: &'static str,
    config: Value,
    /// What a request says → where the table sends it.
    rows: Vec<(Value, &'static str)>,
}

/// Every section that has a config.
fn recipes() -> Vec<Recipe> {
    let sections = PAGE.split("\n## ").skip(1).filter_map(|section| {
        let (title, rest) = section.split_once('\n')?;
        let (config, rest) = rest.split_once("```json\n")?.1.split_once("```")?;
        let config = serde_json::from_str(config).unwrap_or_else(|error| panic!("{title}: {error}"));
        let rows = rest.lines().filter_map(|line| line.strip_prefix("| `{")?.strip_suffix(" |")?.split_once("` | "));
        let rows = rows.map(|(says, goes)| {
            let says = format!("{{{says}");
            (serde_json::from_str(&says).unwrap_or_else(|error| panic!("{title}: {says}: {error}")), goes)
        });
        Some(Recipe { title, config, rows: rows.collect() })
    });
    sections.collect()
}

/// What a request with these metadata and fields would be told.
async fn reached(stack: &Stack, config: &Value, says: &Value) -> Vec<String> {
    let mut body = chat("Hello");
    body.as_object_mut().unwrap().extend(says["body"].as_object().cloned().unwrap_or_default());
    let metadata = says.get("metadata").cloned().unwrap_or_else(|| json!({}));
    let question = json!({
        "path": "/v1/chat/completions", "body": body,
        "headers": { "x-gateway-config": config, "x-gateway-metadata": metadata },
    });
    let answer = stack.anonymous().with_key(&stack.home.workspace_key).post("/explain", &question).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let plan = answer.json()["plan"].as_array().cloned().unwrap();
    plan.iter()
        .filter(|stop| stop["is_reached"] == true)
        .map(|stop| stop["option"].as_str().unwrap().to_owned())
        .collect()
}

fn options(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[tokio::test]
async fn every_recipe_of_the_page_can_be_saved_and_goes_where_its_table_says() {
    let stack = Stack::start().await;
    let recipes = recipes();
    assert!(recipes.len() >= 8, "{}", recipes.len());
    for Recipe { title, config, rows } in recipes {
        let body = json!({ "name": title, "config": config, "workspace_id": stack.home.workspace_id });
        let saved = stack.administrator().post("/configs", &body).await;
        assert_eq!(saved.status, 200, "{title}: {}", saved.text());
        assert!(!rows.is_empty(), "{title} says of no request where it goes");
        for (says, goes) in rows {
            let found = reached(&stack, &config, &says).await;
            let at = format!("{title}: {says}");
            match goes {
                "always the same" => {
                    assert_eq!(found.len(), 1, "{at}: {found:?}");
                    assert_eq!(reached(&stack, &config, &says).await, found, "{at}");
                }
                _ if goes.contains(" or ") => {
                    let expected: BTreeSet<String> = options(goes).into_iter().collect();
                    assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected, "{at}");
                }
                _ => assert_eq!(found, options(goes), "{at}"),
            }
        }
    }
    assert!(stack.mock.requests().is_empty(), "nobody was asked");
}

/// The first recipe, run: the mock fails where the first target sends it, and the second answers.
#[tokio::test]
async fn the_first_recipe_falls_back_when_its_first_provider_fails() {
    let stack = Stack::start().await;
    let mut config = recipes().swap_remove(0).config;
    let model = json!("fault/status=503");
    for (at, target) in config["targets"].as_array_mut().unwrap().iter_mut().enumerate() {
        let params = if at == 0 { json!({ "model": model }) } else { json!({ "model": "gpt-4o" }) };
        *target = crate::routing::target(&stack, json!({ "override_params": params }));
    }
    config["retry"] = json!({ "attempts": 0 });
    let answer = with_config(&stack, &config).post("/chat/completions", &chat("Hello")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.header("x-gateway-last-used-option-index"), "config.targets[1]");
}

/// The configs of the guide for those who come from elsewhere.
#[test]
fn the_configs_of_the_migration_guide_can_be_saved() {
    let page = include_str!("../../docs/migrating.md");
    let configs = page.split("```json\n").skip(1).filter_map(|rest| rest.split_once("```"));
    let configs: Vec<Value> = configs.map(|(config, _)| serde_json::from_str(config).unwrap()).collect();
    assert_eq!(configs.len(), 2);
    for config in configs {
        let read = parse_config(&config, Strictness::Saved, &ConfigLimits::default());
        assert_eq!(read.err(), None, "{config}");
    }
}
