//! Config → plan: what each target inherits from those above it.

use super::{Branch, Hedging, Leaf, Node, Plan, ProviderSource};
use crate::guardrails::GuardPlan;
use crate::request::body::edit::Edits;
use crate::routing::breaker::Breaker;
use crate::routing::retry_budget::Budget;
use http::HeaderValue;
use shared::config::{ConfigNode, Hedge, Inherited, StrategyMode};
use std::time::Duration;

/// Retries per hundred tries where a config says nothing.
const DEFAULT_BUDGET: f64 = 20.0;

pub fn compile(config: &ConfigNode) -> Plan {
    let mut plan = Plan { nodes: Vec::new(), has_breakers: false, warnings: None };
    add(&mut plan, config, "config".to_owned(), &Inherited::default());
    let has_breakers = plan.leaves().any(|leaf| leaf.breaker.is_some());
    Plan { has_breakers, ..plan }
}

/// Adds a node and all below it; returns its index.
fn add(plan: &mut Plan, node: &ConfigNode, path: String, above: &Inherited) -> usize {
    let mut own = above.with(node);
    let index = plan.nodes.len();
    let option = HeaderValue::from_str(&path).unwrap_or(HeaderValue::from_static("config"));
    let weight = node.weight.unwrap_or(1.0);
    if node.targets.is_empty() {
        let branch = Branch::Leaf(Box::new(leaf(node, own)));
        plan.nodes.push(Node { path: path.into(), option, weight, branch });
        return index;
    }
    // A strategy speaks for its targets, more closely than the node that has it.
    if let Some(rules) = node.strategy.as_ref().and_then(|strategy| strategy.cb_config.clone()) {
        own.breaker = Some(rules);
    }
    // Its place is taken before those below are added, so that the root comes first.
    plan.nodes.push(Node { path: path.as_str().into(), option, weight, branch: Branch::Single(Vec::new()) });
    let below = node.targets.iter().enumerate();
    let targets: Vec<usize> =
        below.map(|(number, target)| add(plan, target, format!("{path}.targets[{number}]"), &own)).collect();
    plan.nodes[index].branch = branch(node, targets);
    index
}

fn branch(node: &ConfigNode, targets: Vec<usize>) -> Branch {
    let Some(strategy) = &node.strategy else { return Branch::Single(targets) };
    let named = |name: &str| {
        let position = node.targets.iter().position(|target| target.name.as_deref() == Some(name));
        position.map(|position| targets[position])
    };
    match strategy.mode {
        StrategyMode::Single => Branch::Single(targets),
        StrategyMode::Fallback => Branch::Fallback { statuses: strategy.on_status_codes.clone(), targets },
        StrategyMode::LoadBalance => {
            Branch::Balance { sticky: strategy.sticky.clone().filter(|sticky| sticky.enabled), targets }
        }
        StrategyMode::Conditional => {
            let conditions = strategy.conditions.iter();
            let conditions = conditions.filter_map(|one| Some((one.query.clone(), named(&one.then)?))).collect();
            Branch::Conditional { conditions, default: strategy.default.as_deref().and_then(named) }
        }
    }
}

fn leaf(node: &ConfigNode, own: Inherited) -> Leaf {
    let millis = |value: Option<u64>| value.map(Duration::from_millis);
    Leaf {
        source: source(node),
        edits: Edits::new(Some(&own.overrides), Some(&own.defaults), own.drops),
        budget: Budget::new(own.retry.as_ref().map_or(DEFAULT_BUDGET, |retry| retry.budget_percent)),
        retry: own.retry,
        breaker: own.breaker.map(Breaker::new),
        request_timeout: millis(own.request_timeout),
        total_timeout: millis(own.total_timeout),
        stream_idle: millis(own.stream_idle),
        heartbeat: millis(own.heartbeat),
        hedge: own.hedge.map(hedging),
        custom_host: own.custom_host,
        forward_headers: own.forward_headers,
        placement: node.placement.clone(),
        is_strict: own.is_strict.unwrap_or(true),
        cache: own.cache,
        id: own.id,
        fetch_integrated_models: own.fetch_integrated_models.unwrap_or(false),
        guards: GuardPlan::new(&own.input_hooks, &own.output_hooks),
        prompt_id: node.prompt_id.as_deref().map(Box::from),
    }
}

fn hedging(hedge: Hedge) -> Hedging {
    match hedge {
        Hedge::AfterMs(millis) => Hedging::After(Duration::from_millis(millis)),
        Hedge::Percentile(percent) => Hedging::Percentile(percent, Box::default()),
    }
}

fn source(node: &ConfigNode) -> ProviderSource {
    if node.passthrough {
        return ProviderSource::Request;
    }
    match (&node.provider, &node.virtual_key) {
        (Some(name), _) => match name.strip_prefix('@') {
            Some(slug) => ProviderSource::Stored(slug.to_owned()),
            None => ProviderSource::Named(name.clone()),
        },
        (None, Some(slug)) => ProviderSource::Stored(slug.trim_start_matches('@').to_owned()),
        (None, None) => ProviderSource::Request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use shared::config::{Strictness, parse_config};
    use shared::settings::config_limits::ConfigLimits;

    fn plan(config: Value) -> Plan {
        compile(
            &parse_config(&config, Strictness::Inline, &ConfigLimits::default())
                .unwrap_or_else(|faults| panic!("{faults:?}")),
        )
    }

    #[test]
    fn a_leaf_has_what_it_says_itself_and_else_what_is_said_above() {
        let plan = plan(json!({
            "strategy": { "mode": "fallback", "cb_config": { "failure_threshold": 1, "cooldown_interval": 30000 } },
            "override_params": { "a": 1, "b": 1 }, "drop_params": ["x"],
            "request_timeout": 100, "retry": { "attempts": 2 }, "custom_host": "https://above.example.com",
            "targets": [
                { "provider": "@one", "override_params": { "b": 2, "c": 2 }, "drop_params": ["y"], "retry": { "attempts": 0 } },
                { "strategy": { "mode": "single" }, "request_timeout": 200,
                  "targets": [{ "virtual_key": "two", "custom_host": "https://own.example.com" }] },
                { "provider": "openai", "forward_headers": ["x-a"] },
                { "passthrough": true },
            ],
        }));
        let leaves: Vec<&Leaf> = plan.leaves().collect();
        let sources: Vec<&ProviderSource> = leaves.iter().map(|leaf| &leaf.source).collect();
        let expected = [
            ProviderSource::Stored("one".into()),
            ProviderSource::Stored("two".into()),
            ProviderSource::Named("openai".into()),
            ProviderSource::Request,
        ];
        assert_eq!(sources, expected.iter().collect::<Vec<_>>());
        let body = bytes::Bytes::from_static(b"{\"x\":0,\"y\":0}");
        let fields = crate::request::body::Fields::parse_object(&body).unwrap();
        assert_eq!(leaves[0].edits.apply(&body, &fields, None), r#"{"a":1,"b":2,"c":2}"#);
        assert_eq!(leaves[1].edits.apply(&body, &fields, None), r#"{"y":0,"a":1,"b":1}"#);
        let attempts: Vec<u8> = leaves.iter().map(|leaf| leaf.retry.as_ref().unwrap().attempts).collect();
        assert_eq!(attempts, [0, 2, 2, 2]);
        let timeouts: Vec<u128> = leaves.iter().map(|leaf| leaf.request_timeout.unwrap().as_millis()).collect();
        assert_eq!(timeouts, [100, 200, 100, 100]);
        assert_eq!(leaves[1].custom_host.as_deref(), Some("https://own.example.com"));
        assert_eq!(leaves[0].custom_host.as_deref(), Some("https://above.example.com"));
        assert!(leaves.iter().all(|leaf| leaf.breaker.is_some()));
        let paths: Vec<&str> = plan.nodes.iter().map(|node| &*node.path).collect();
        assert_eq!(paths[..3], ["config", "config.targets[0]", "config.targets[1]"]);
        assert_eq!(paths[3], "config.targets[1].targets[0]");
    }

    #[test]
    fn what_other_stages_ask_of_a_leaf_comes_from_the_nearest_that_says_it_and_its_id_from_the_farthest() {
        let plan = plan(json!({
            "id": "root", "strategy": { "mode": "fallback" }, "strict_open_ai_compliance": false,
            "cache": { "mode": "simple", "max_age": 60 }, "fetch_integrated_models": true,
            "targets": [
                { "provider": "@a", "id": "own" },
                { "provider": "@b", "strict_open_ai_compliance": true, "cache": { "mode": "semantic" }, "fetch_integrated_models": false },
            ],
        }));
        let leaves: Vec<&Leaf> = plan.leaves().collect();
        let facts = |leaf: &Leaf| (leaf.is_strict, leaf.fetch_integrated_models, leaf.id.clone());
        assert_eq!(facts(leaves[0]), (false, true, Some("root".into())));
        assert_eq!(facts(leaves[1]), (true, false, Some("root".into())));
        assert!(leaves[0].cache.is_some() && leaves[0].cache != leaves[1].cache);
        assert_eq!(facts(Plan::of_nothing().leaf(0)), (true, false, None));
    }

    #[test]
    fn no_config_is_one_leaf_that_takes_everything_from_the_request() {
        let plan = Plan::of_nothing();
        assert_eq!(plan.leaf(0).source, ProviderSource::Request);
        assert!(plan.leaf(0).edits.is_empty() && plan.leaf(0).retry.is_none());
        assert_eq!(&*plan.node(0).path, "config");
    }

    #[test]
    fn a_prompt_belongs_to_the_target_that_names_it() {
        let plan = plan(json!({
            "strategy": { "mode": "fallback" }, "targets": [{ "prompt_id": "pp-1@2" }, { "provider": "@b" }],
        }));
        let prompts: Vec<Option<&str>> = plan.leaves().map(|leaf| leaf.prompt_id.as_deref()).collect();
        assert_eq!(prompts, [Some("pp-1@2"), None]);
    }

    #[test]
    fn hooks_of_a_side_replace_those_above_and_most_targets_have_none() {
        let plan = plan(json!({
            "strategy": { "mode": "fallback" }, "input_guardrails": [{ "notNull": {} }], "output_guardrails": ["pg-out"],
            "targets": [{ "provider": "@a" }, { "provider": "@b", "input_guardrails": ["pg-in"] }],
        }));
        let names = |leaf: &Leaf| leaf.guards.as_ref().unwrap().names().collect::<Vec<_>>().join(" ");
        assert_eq!(plan.leaves().map(names).collect::<Vec<_>>(), ["pg-out", "pg-in pg-out"]);
        assert!(Plan::of_nothing().leaf(0).guards.is_none());
    }
}
