//! Which inline configs are remembered, and for whom.

use super::*;
use serde_json::json;
use shared::config::parse_config;

#[test]
fn a_config_is_compiled_once_for_each_workspace_and_a_bad_one_says_where() {
    let configs = InlineConfigs::new(ConfigLimits::default());
    let (one, other) = (Tenant::test(1, 1), Tenant::test(2, 2));
    let text = r#"{"retry":{"attempts":3}}"#;
    let first = configs.plan(one, text).unwrap();
    assert!(Arc::ptr_eq(&first, &configs.plan(one, text).unwrap()));
    assert!(!Arc::ptr_eq(&first, &configs.plan(other, text).unwrap()));
    let late = Arc::new(compile(
        &parse_config(&json!({ "retry": { "attempts": 1 } }), Strictness::Inline, &ConfigLimits::default()).unwrap(),
    ));
    assert!(Arc::ptr_eq(&first, &configs.keep(one, text, late)), "who compiles at the same time shares the first plan");
    for (bad, says) in [("{", "JSON"), (r#"{"strategy":{"mode":"x"},"targets":[{}]}"#, "mode")] {
        let refusal = configs.plan(one, bad).unwrap_err();
        assert_eq!((refusal.status, refusal.code.as_str()), (400, "invalid_config"), "{bad}");
        let body =
            String::from_utf8(refusal.body(crate::request::refusal::Dialect::OpenAi, "id", None).to_vec()).unwrap();
        assert!(body.contains(says) || body.contains("EOF"), "{body}");
    }
    for (many, test) in [(501, json!(1)), (51, json!({ "$regex": "^a" }))] {
        let conditions: Vec<_> = (0..many).map(|_| json!({ "query": { "params.a": test }, "then": "x" })).collect();
        let strategy =
            |conditions: &[Value]| json!({ "mode": "conditional", "conditions": conditions, "default": "x" });
        let config = |conditions| {
            json!({ "strategy": strategy(conditions), "targets": [{ "name": "x", "provider": "@a" }] }).to_string()
        };
        if let Err(refusal) = configs.plan(one, &config(&conditions[1..])) {
            panic!("{test}: {}", refusal.message);
        }
        let refusal = configs.plan(one, &config(&conditions)).unwrap_err();
        assert!(refusal.message.contains("must not have more than"), "{}", refusal.message);
    }
}

#[test]
fn all_together_fill_no_memory_and_each_loses_little() {
    let configs = InlineConfigs::new(ConfigLimits::default());
    let text = |number: usize| format!(r#"{{"request_timeout":{}}}"#, number + 1);
    for workspace in 0..40 {
        for number in 0..30 {
            configs.plan(Tenant::test(workspace, workspace), &text(number)).unwrap();
        }
    }
    let known = configs.known.load();
    assert_eq!(known.values().map(HashMap::len).sum::<usize>(), MAX_CONFIGS);
    assert!(known.values().all(|plans| plans.len() >= 20), "{:?}", known.values().map(HashMap::len));
}

#[test]
fn who_sends_ever_new_configs_fills_no_memory_and_pushes_out_nobody_elses() {
    let configs = InlineConfigs::new(ConfigLimits::default());
    let (modest, greedy) = (Tenant::test(1, 1), Tenant::test(2, 2));
    let text = |number: usize| format!(r#"{{"request_timeout":{}}}"#, number + 1);
    let kept: Vec<_> = (0..MAX_PER_WORKSPACE).map(|number| configs.plan(modest, &text(number)).unwrap()).collect();
    for number in 0..MAX_CONFIGS * 2 {
        configs.plan(greedy, &text(number)).unwrap();
    }
    assert!(configs.known.load()[&greedy].len() <= MAX_PER_WORKSPACE);
    for (number, plan) in kept.iter().enumerate() {
        assert!(Arc::ptr_eq(plan, &configs.plan(modest, &text(number)).unwrap()), "{number}");
    }
}
