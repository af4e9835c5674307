//! What is accepted, and how it reads. What is refused has its own table.

mod refused;

use super::*;
use serde_json::json;

fn saved(value: Value) -> Result<ConfigNode, Vec<Fault>> {
    parse_config(&value, Strictness::Saved, &ConfigLimits::default())
}

fn inline(value: Value) -> Result<ConfigNode, Vec<Fault>> {
    parse_config(&value, Strictness::Inline, &ConfigLimits::default())
}

fn contract_examples() -> Vec<Value> {
    vec![
        json!({"strategy":{"mode":"fallback","on_status_codes":[429,503]},
            "retry":{"attempts":2},"request_timeout":8000,
            "targets":[{"provider":"@oa"},{"strategy":{"mode":"loadbalance"},"targets":[
                {"provider":"@a1","weight":0.7},{"provider":"@a2","weight":0.3}]}]}),
        json!({"strategy":{"mode":"conditional","conditions":[{"query":{"$and":[
                {"metadata.tier":{"$eq":"pro"}},{"params.temperature":{"$gte":0.5}}]},"then":"big"}],"default":"small"},
            "targets":[{"name":"big","provider":"@x","override_params":{"model":"m-large"}},
                {"name":"small","provider":"@y"}]}),
    ]
}

#[test]
fn the_examples_of_the_contract_are_accepted_saved_and_inline() {
    for example in contract_examples() {
        saved(example.clone()).unwrap();
        inline(example).unwrap();
    }
}

#[test]
fn each_useful_combination_alone_is_accepted() {
    for config in [
        json!({"provider":"openai","api_key":"k"}),
        json!({"provider":"openai","custom_host":"https://llm.example.com/v1"}),
        json!({"provider":"@team-openai"}),
        json!({"provider":"ollama"}),
        json!({"virtual_key":"vk-1"}),
        json!({"cache":{"mode":"semantic","max_age":60}}),
        json!({"cache":"simple"}),
        json!({"retry":{"attempts":0}}),
        json!({"prompt_id":"pp-1"}),
        json!({"request_timeout":1}),
        json!({"forward_headers":["X-Tenant"]}),
        json!({"input_guardrails":["pg-1",{"default.contains":{"operator":"none","words":["x"]},"deny":true}]}),
        json!({"before_request_hooks":[{"id":"h","type":"guardrail","checks":[{"id":"default.regexMatch","parameters":{"rule":"a"}}]}]}),
        json!({"output_mutators":[{"id":"pg-2"}]}),
        json!({"passthrough":true}),
        json!({"default_params":{"temperature":0}}),
        json!({"drop_params":["tools[*].strict"]}),
        json!({"provider":"bedrock","aws_access_key_id":"a","aws_secret_access_key":"b","aws_region":"eu-west-1"}),
        json!({"provider":"vertex-ai","vertex_region":"eu","vertex_service_account_json":{"type":"service_account"}}),
        json!({"provider":"azure-openai","azure_auth_mode":"managed","azure_entra_scope":"s","resource_name":"r",
            "deployments":[{"deployment_id":"d","alias":"gpt","is_default":true}]}),
        json!({"strategy":{"mode":"single"},"targets":[{"override_params":{"model":"@slug/m"}}]}),
    ] {
        assert_eq!(saved(config.clone()).err(), None, "{config}");
    }
}

#[test]
fn a_check_that_does_not_exist_or_cannot_run_is_refused_where_it_stands() {
    for (config, path, part) in [
        (
            json!({"input_guardrails":[{"default.contain":{"words":["x"]}}]}),
            "input_guardrails[0].default.contain.id",
            "did you mean",
        ),
        (json!({"input_guardrails":[{"regexMatch":{"rule":"("}}]}), "input_guardrails[0].regexMatch.rule", "pattern"),
        (json!({"input_guardrails":[{"contains":{}}]}), "input_guardrails[0].contains.words", "required"),
        (
            json!({"after_request_hooks":[{"id":"h","checks":[{"id":"nobody.knows","parameters":{}}]}]}),
            "after_request_hooks[0].checks[0].id",
            "is not the id of a check",
        ),
    ] {
        for faults in [saved(config.clone()).unwrap_err(), inline(config.clone()).unwrap_err()] {
            assert!(faults.iter().any(|fault| fault.path == path && fault.message.contains(part)), "{faults:?}");
        }
    }
    let more = json!({"input_guardrails":[{"contains":{"words":["x"],"color":"red"}}]});
    assert!(inline(more.clone()).is_ok() && saved(more).is_err(), "a parameter that nobody reads is tolerated inline");
}

#[test]
fn camel_case_reads_like_snake_case_and_opaque_objects_keep_their_keys() {
    let snake = json!({"strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hash_fields":["metadata.user_id"],"ttl":60}},
        "retry":{"attempts":1,"on_status_codes":[429],"use_retry_after_header":true},
        "before_request_hooks":[{"id":"h"}],"override_params":{"maxTokens":1},"strict_open_ai_compliance":false,
        "targets":[{"virtual_key":"v","request_timeout":5}]});
    let camel = json!({"strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hashFields":["metadata.user_id"],"ttl":60}},
        "retry":{"attempts":1,"onStatusCodes":[429],"useRetryAfterHeaders":true},
        "beforeRequestHooks":[{"id":"h"}],"overrideParams":{"maxTokens":1},"strictOpenAiCompliance":false,
        "targets":[{"virtualKey":"v","requestTimeout":5}]});
    let read = saved(camel).unwrap();
    assert_eq!(read, saved(snake).unwrap());
    assert!(read.override_params.unwrap().contains_key("maxTokens"));
}

#[test]
fn our_additions_are_read() {
    let config = saved(json!({"provider":"@a","retry":{"attempts":5,"jitter":"full","budget_percent":12.5},
        "total_timeout":60000,"stream_idle_timeout":1000,"stream_heartbeat":5000,"hedge":{"percentile":95}}))
    .unwrap();
    let retry = config.retry.unwrap();
    assert_eq!((retry.attempts, retry.jitter, retry.budget_percent), (5, Jitter::Full, 12.5));
    assert_eq!((config.total_timeout, config.stream_idle_timeout), (Some(60000), Some(1000)));
    assert_eq!((config.stream_heartbeat, config.hedge), (Some(5000), Some(Hedge::Percentile(95.0))));
    let hedge = saved(json!({"provider":"@a","hedge":{"after_ms":300}})).unwrap().hedge;
    assert_eq!(hedge, Some(Hedge::AfterMs(300)));
    let plain = saved(json!({"retry":{"attempts":1}})).unwrap().retry.unwrap();
    assert_eq!((plain.jitter, plain.budget_percent), (Jitter::None, 20.0));
}

#[test]
fn inline_configs_are_read_kindly() {
    let config = inline(json!({"provider":"@a","unheard_of":1,"retry":{"attempts":9,"mood":"good"}})).unwrap();
    assert_eq!(config.retry.unwrap().attempts, 5);
    let query = |query: Value| {
        json!({"strategy":{"mode":"conditional","conditions":[{"query":query,"then":"a"}],"default":"a"},
        "targets":[{"name":"a","provider":"@a"}]})
    };
    for lenient in
        [json!({"metadata.a":{"$regex":"("}}), json!({"metadata.a":{"$in":"x"}}), json!({"a.b.c":1}), json!({})]
    {
        assert!(inline(query(lenient.clone())).is_ok(), "{lenient}");
        assert!(saved(query(lenient.clone())).is_err(), "{lenient}");
    }
}

#[test]
fn what_is_ignored_or_changed_in_an_inline_config_is_told_and_refused_when_saved() {
    let config = json!({ "provider": "@a", "retrys": 1, "request_timeout": 0, "cb_config":
        { "failure_threshold": 3, "cooldown_interval": 5, "colour": "red" }, "retry": { "attempts": 9, "on_status_code": [500] } });
    let (read, warnings) = parse_config_warning(&config, Strictness::Inline, &ConfigLimits::default()).unwrap();
    let mut told: Vec<_> = warnings.iter().map(|one| (one.code, one.path.as_str(), one.message.as_str())).collect();
    told.sort_by_key(|(_, path, _)| *path);
    assert_eq!(
        told,
        [
            (Code::UnknownKey, "cb_config.colour", "is not a field of a config"),
            (Code::OutOfRange, "cb_config.cooldown_interval", "must be at least 30000: 5 was taken as 30000"),
            (Code::OutOfRange, "request_timeout", "must be from 1 to 86400000: 0 was taken as 1"),
            (Code::OutOfRange, "retry.attempts", "must be from 0 to 5: 9 was taken as 5"),
            (Code::UnknownKey, "retry.on_status_code", "is not a field of a config: did you mean on_status_codes?"),
            (Code::UnknownKey, "retrys", "is not a field of a config: did you mean retry?"),
        ]
    );
    assert_eq!((read.retry.unwrap().attempts, read.request_timeout), (5, Some(1)));
    let faults = saved(config).unwrap_err();
    assert_eq!(faults.len(), 6, "{faults:?}");
}

#[test]
fn a_refused_inline_config_names_its_misspelt_keys_before_what_they_leave_missing() {
    let targets = json!([{ "provider": "@a" }]);
    for (config, first, second) in [
        (
            json!({ "stratgy": { "mode": "fallback" }, "targets": targets }),
            "path: stratgy, message: is not a field of a config: did you mean strategy?",
            "path: strategy, message: is required with targets",
        ),
        (
            json!({ "provider": "@a", "retry": { "attempt": 3 } }),
            "path: retry,attempt, message: is not a field of a config: did you mean attempts?",
            "path: retry,attempts, message: is required",
        ),
        (
            json!({ "foo": 1, "strategy": { "mode": "fallbck" }, "targets": targets }),
            "path: strategy,mode, message: must be one of single, loadbalance, fallback, conditional: did you mean fallback?",
            "path: foo, message: is not a field of a config",
        ),
    ] {
        let faults: Vec<String> = inline(config.clone()).unwrap_err().iter().map(Fault::to_string).collect();
        assert_eq!(faults, [first, second], "{config}");
    }
    let (_, warnings) = read_inline(&json!({ "provider": "@a", "model": "gpt-4o", "timeout": 5 }));
    let told: Vec<&str> = warnings.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(
        told,
        [
            "is not a field of a config: did you mean override_params?",
            "is not a field of a config: did you mean request_timeout?"
        ]
    );
}

#[test]
fn a_provider_by_its_plain_name_alone_is_told_what_it_lacks() {
    let told = inline(json!({ "provider": "openai" })).unwrap_err()[0].to_string();
    assert!(told.starts_with("does nothing: `openai`") && told.contains("api_key") && told.contains("@slug"), "{told}");
    let told = saved(json!({ "provider": "opnai", "api_key": "k" })).unwrap_err()[0].to_string();
    assert!(told.ends_with("did you mean openai?"), "{told}");
}

#[test]
fn a_condition_that_never_holds_is_told_with_an_inline_config() {
    let config = |query: Value, then: &str| {
        json!({"strategy":{"mode":"conditional","conditions":[{"query":query,"then":then}],"default":"large"},
        "targets":[{"name":"large","provider":"@a"}]})
    };
    for (query, path, says) in [
        (json!({"metdata.tier":"pro"}), "metdata.tier", "must be metadata.<key>, params.<key> or url.pathname"),
        (json!({"metadata.a":{"$in":"x"}}), "metadata.a.$in", "must be an array"),
        (json!({"params.n":{"$gt":"many"}}), "params.n.$gt", "must be a number"),
    ] {
        let (_, warnings) = read_inline(&config(query.clone(), "large"));
        let told: Vec<(&str, &str)> = warnings.iter().map(|one| (one.path.as_str(), one.message.as_str())).collect();
        assert_eq!(told, [(format!("strategy.conditions[0].query.{path}").as_str(), says)], "{query}");
    }
    for (query, then, says) in [
        (json!({"metadata.a":{"$eqq":"x"}}), "large", "is not an operator: did you mean $eq?"),
        (json!({"metadata.a":1}), "larg", "is not the name of a target: did you mean large?"),
    ] {
        let faults = inline(config(query.clone(), then)).unwrap_err();
        assert_eq!((faults.len(), faults[0].message.as_str()), (1, says), "{query}");
    }
}

fn read_inline(config: &Value) -> (ConfigNode, Vec<Fault>) {
    parse_config_warning(config, Strictness::Inline, &ConfigLimits::default()).unwrap()
}

#[test]
fn a_null_is_as_good_as_nothing() {
    assert_eq!(saved(json!({"provider":"@a","retry":null})).unwrap(), saved(json!({"provider":"@a"})).unwrap());
}

#[test]
fn the_legacy_place_of_status_codes_counts_where_the_strategy_says_nothing() {
    let codes = |config: Value| saved(config).unwrap().strategy.unwrap().on_status_codes;
    let targets = json!([{"provider":"@a"}]);
    assert_eq!(
        codes(json!({"strategy":{"mode":"fallback"},"on_status_codes":[500],"targets":targets})),
        Some(vec![500])
    );
    assert_eq!(
        codes(json!({"strategy":{"mode":"fallback","on_status_codes":[]},"on_status_codes":[500],"targets":targets})),
        Some(vec![])
    );
}

#[test]
fn targets_nest_to_the_tenth_level_and_no_deeper() {
    let nested = |levels: usize| {
        let leaf = json!({"provider":"@a"});
        (0..levels).fold(leaf, |inner, _| json!({"strategy":{"mode":"single"},"targets":[inner]}))
    };
    assert!(saved(nested(10)).is_ok());
    let faults = saved(nested(11)).unwrap_err();
    assert_eq!((faults[0].code, faults[0].path.as_str()), (Code::TooDeep, ["targets[0]"; 11].join(".").as_str()));
    // As deep as JSON gets before its own parser refuses.
    assert!(inline(nested(60)).is_err());
}

#[test]
fn a_config_that_is_wrong_everywhere_is_answered_with_a_bounded_list() {
    let fields: serde_json::Map<_, _> = (0..1000).map(|number| (format!("x{number}"), json!(1))).collect();
    assert_eq!(saved(Value::Object(fields)).unwrap_err().len(), 100);
}

#[test]
fn a_fault_is_listed_in_the_published_form_for_inline_configs() {
    let faults = inline(json!({"strategy":{"mode":"x"},"targets":[{"provider":"@a"}]})).unwrap_err();
    let texts: Vec<String> = faults.iter().map(Fault::to_string).collect();
    assert_eq!(texts[0], "path: strategy,mode, message: must be one of single, loadbalance, fallback, conditional");
    let nested = Fault { code: Code::Missing, path: "targets[1].retry.attempts".into(), message: "is required".into() };
    assert_eq!(nested.to_string(), "path: targets,1,retry,attempts, message: is required");
}

#[test]
fn a_credential_is_never_printed() {
    let config = saved(json!({"provider":"openai","api_key":"sk-canary","aws_secret_access_key":"sk-canary"})).unwrap();
    assert!(!format!("{config:?}").contains("canary"));
    assert_eq!(config.placement.text("api_key"), Some("sk-canary"));
}

/// So that who walks over `FIELDS` walks over all there are.
#[test]
fn the_list_of_fields_names_each_that_is_read_and_no_other() {
    inline(json!({ "provider": "openai", "api_key": "k" })).unwrap();
    assert_eq!(object::asked_for::names(""), FIELDS);
}

#[test]
fn the_lists_of_nested_keys_name_each_that_is_read_and_no_other() {
    let short = json!({ "default.contains": { "operator": "none", "words": ["x"] } });
    inline(json!({
        "strategy": { "mode": "conditional", "default": "a", "conditions": [{ "query": { "metadata.a": 1 }, "then": "a" }],
            "sticky": { "enabled": true, "hash_fields": ["metadata.a"] } },
        "targets": [{ "name": "a", "provider": "@a" }],
        "cache": { "mode": "simple" }, "retry": { "attempts": 1 }, "hedge": { "after_ms": 5 },
        "cb_config": { "failure_threshold": 1, "cooldown_interval": 30000 },
        "before_request_hooks": [{ "id": "h", "checks": [{ "id": "default.contains", "parameters": { "words": ["x"] } }] }],
        "input_guardrails": [short], "deployments": [{ "deployment_id": "d" }],
    }))
    .unwrap();
    for (path, names) in NESTED_FIELDS {
        assert_eq!(object::asked_for::names(path), *names, "{path}");
    }
}

#[test]
fn the_list_of_operators_names_each_that_a_query_knows_and_no_other() {
    let source = include_str!("query.rs");
    let arms =
        source.lines().filter_map(|line| line.trim().strip_prefix('"')?.split_once("\" =>").map(|(name, _)| name));
    let mut read: Vec<&str> = arms.filter(|name| name.starts_with('$')).collect();
    read.sort_unstable();
    assert_eq!(read, QUERY_OPERATORS);
}
