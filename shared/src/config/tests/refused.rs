//! The table of bad configs: each names its rule, the code and the path it is answered with.

use super::saved;
use serde_json::{Value, json};

/// Rule, config, code without its `AB01_`, path.
type Bad = (&'static str, Value, &'static str, &'static str);

#[test]
fn every_bad_config_is_refused_with_its_code_and_path() {
    let table: Vec<Bad> = [form(), strategies(), settings(), targets(), addresses(), hooks()].concat();
    assert!(table.len() >= 60, "{}", table.len());
    for (rule, config, code, path) in table {
        let faults = saved(config.clone()).expect_err(rule);
        let found: Vec<(String, &str)> = faults
            .iter()
            .map(|fault| (json!(fault.code).as_str().unwrap().replace("AB01_", ""), &*fault.path))
            .collect();
        assert!(found.contains(&(code.into(), path)), "{rule}: {config} gave {faults:?}");
        assert_eq!(found.len(), 1, "{rule}: one mistake, one fault: {faults:?}");
    }
}

fn leaf() -> Value {
    json!({"provider":"@a"})
}

/// A good config with one more field.
fn with(field: &str, value: Value) -> Value {
    let mut config = leaf();
    config[field] = value;
    config
}

fn group(strategy: Value, targets: Value) -> Value {
    json!({"strategy":strategy,"targets":targets})
}

fn form() -> Vec<Bad> {
    vec![
        ("a config is an object", json!([]), "WRONG_TYPE", ""),
        ("an unknown field is refused", with("weigth", json!(1)), "UNKNOWN_KEY", "weigth"),
        (
            "internal fields are not accepted",
            with("default_input_guardrails", json!([])),
            "UNKNOWN_KEY",
            "default_input_guardrails",
        ),
        (
            "a field has one spelling at a time",
            json!({"provider":"@a","virtualKey":"x","virtual_key":"y"}),
            "DUPLICATE_KEY",
            "virtual_key",
        ),
        ("the old version is named", json!({"mode":"single","options":[{}]}), "OLD_VERSION", "options"),
        ("an empty config does nothing", json!({}), "USELESS", ""),
        ("a provider without a credential does nothing", json!({"provider":"openai"}), "USELESS", ""),
        ("half a key pair does nothing", json!({"provider":"bedrock","aws_access_key_id":"a"}), "USELESS", ""),
        ("a name alone does nothing", json!({"name":"x"}), "USELESS", ""),
        ("a provider is text", json!({"provider":1,"virtual_key":"v"}), "WRONG_TYPE", "provider"),
        ("a provider is not empty", json!({"provider":"","virtual_key":"v"}), "EMPTY", "provider"),
        ("a slug follows the @", json!({"provider":"@"}), "EMPTY", "provider"),
        ("a plain provider is known", json!({"provider":"opnai","api_key":"k"}), "UNKNOWN_PROVIDER", "provider"),
        (
            "vertex needs its region",
            json!({"provider":"vertex-ai","api_key":"k","vertex_project_id":"p"}),
            "INCOMPLETE_PROVIDER",
            "",
        ),
        (
            "a deployment type is one of two",
            with("azure_deployment_type", json!("big")),
            "NOT_ONE_OF",
            "azure_deployment_type",
        ),
        ("an azure mode is known", with("azure_auth_mode", json!("magic")), "NOT_ONE_OF", "azure_auth_mode"),
        ("an aws type is known", with("aws_auth_type", json!("key")), "NOT_ONE_OF", "aws_auth_type"),
        (
            "a service account is an object",
            with("vertex_service_account_json", json!("nonsense")),
            "WRONG_TYPE",
            "vertex_service_account_json",
        ),
        (
            "a deployment has an id",
            with("deployments", json!([{"alias":"x"}])),
            "MISSING",
            "deployments[0].deployment_id",
        ),
        ("the form says what a file is for", with("file_purpose", json!("batch")), "USELESS", "file_purpose"),
        ("files are measured here", with("file_upload_size", json!("7")), "USELESS", "file_upload_size"),
        (
            "a batch says its endpoint",
            with("provider_batch_endpoint", json!("/v1/embeddings")),
            "USELESS",
            "provider_batch_endpoint",
        ),
        (
            "a stored account has its own place",
            json!({"provider":"@x","aws_region":"eu-west-1"}),
            "EXCLUSIVE",
            "aws_region",
        ),
        ("and its own credential", json!({"virtual_key":"x","api_key":"k"}), "EXCLUSIVE", "api_key"),
        ("a credential is text", with("api_key", json!(5)), "WRONG_TYPE", "api_key"),
        ("overrides are an object", with("override_params", json!([])), "WRONG_TYPE", "override_params"),
        ("defaults are an object", with("default_params", json!("x")), "WRONG_TYPE", "default_params"),
        ("dropped params are a list", with("drop_params", json!("seed")), "WRONG_TYPE", "drop_params"),
        ("a dropped param is a path", with("drop_params", json!(["ok", "a[x]"])), "BAD_PATH", "drop_params[1]"),
        (
            "a flag is true or false",
            with("strict_open_ai_compliance", json!("no")),
            "WRONG_TYPE",
            "strict_open_ai_compliance",
        ),
        (
            "passthrough excludes overrides",
            json!({"passthrough":true,"override_params":{}}),
            "EXCLUSIVE",
            "passthrough",
        ),
        (
            "passthrough excludes targets",
            json!({"passthrough":true,"strategy":{"mode":"single"},"targets":[leaf()]}),
            "EXCLUSIVE",
            "passthrough",
        ),
    ]
}

fn strategies() -> Vec<Bad> {
    let named = json!([{"name":"a","provider":"@a"}]);
    let conditional =
        |conditions: Value| group(json!({"mode":"conditional","conditions":conditions,"default":"a"}), named.clone());
    let query = |query: Value| conditional(json!([{"query":query,"then":"a"}]));
    let sticky = |sticky: Value| group(json!({"mode":"loadbalance","sticky":sticky}), json!([leaf()]));
    vec![
        ("a strategy is an object", group(json!("fallback"), json!([leaf()])), "WRONG_TYPE", "strategy"),
        ("a mode is required", group(json!({}), json!([leaf()])), "MISSING", "strategy.mode"),
        ("a mode is one of four", group(json!({"mode":"random"}), json!([leaf()])), "NOT_ONE_OF", "strategy.mode"),
        (
            "a strategy knows its fields",
            group(json!({"mode":"single","weight":1}), json!([leaf()])),
            "UNKNOWN_KEY",
            "strategy.weight",
        ),
        (
            "a status code is one",
            group(json!({"mode":"fallback","on_status_codes":[42]}), json!([leaf()])),
            "OUT_OF_RANGE",
            "strategy.on_status_codes[0]",
        ),
        (
            "conditions are required",
            group(json!({"mode":"conditional","default":"a"}), named.clone()),
            "MISSING",
            "strategy.conditions",
        ),
        ("conditions are not empty", conditional(json!([])), "EMPTY", "strategy.conditions"),
        (
            "a default is required",
            group(json!({"mode":"conditional","conditions":[{"query":{"metadata.a":1},"then":"a"}]}), named.clone()),
            "MISSING",
            "strategy.default",
        ),
        (
            "a default is a target",
            group(
                json!({"mode":"conditional","conditions":[{"query":{"metadata.a":1},"then":"a"}],"default":"z"}),
                named.clone(),
            ),
            "UNKNOWN_TARGET",
            "strategy.default",
        ),
        (
            "a condition leads to a target",
            conditional(json!([{"query":{"metadata.a":1},"then":"z"}])),
            "UNKNOWN_TARGET",
            "strategy.conditions[0].then",
        ),
        ("a condition has a query", conditional(json!([{"then":"a"}])), "MISSING", "strategy.conditions[0].query"),
        (
            "a condition leads somewhere",
            conditional(json!([{"query":{"metadata.a":1}}])),
            "MISSING",
            "strategy.conditions[0].then",
        ),
        ("a query is an object", query(json!("metadata.a")), "WRONG_TYPE", "strategy.conditions[0].query"),
        ("a query tests something", query(json!({})), "BAD_QUERY", "strategy.conditions[0].query"),
        ("a query looks at a request", query(json!({"body.x":1})), "BAD_QUERY", "strategy.conditions[0].query.body.x"),
        (
            "a query looks no deeper",
            query(json!({"params.a.b":1})),
            "BAD_QUERY",
            "strategy.conditions[0].query.params.a.b",
        ),
        (
            "an operator is known",
            query(json!({"metadata.a":{"$like":"x"}})),
            "BAD_QUERY",
            "strategy.conditions[0].query.metadata.a.$like",
        ),
        ("a joining operator is known", query(json!({"$not":[]})), "BAD_QUERY", "strategy.conditions[0].query.$not"),
        (
            "a test has an operator",
            query(json!({"metadata.a":{}})),
            "BAD_QUERY",
            "strategy.conditions[0].query.metadata.a",
        ),
        (
            "a list operator has a list",
            query(json!({"metadata.a":{"$in":"x"}})),
            "WRONG_TYPE",
            "strategy.conditions[0].query.metadata.a.$in",
        ),
        (
            "a bound is a number",
            query(json!({"params.n":{"$gt":"many"}})),
            "WRONG_TYPE",
            "strategy.conditions[0].query.params.n.$gt",
        ),
        (
            "a pattern compiles",
            query(json!({"metadata.a":{"$regex":"("}})),
            "BAD_QUERY",
            "strategy.conditions[0].query.metadata.a.$regex",
        ),
        (
            "a pattern is of reasonable size",
            query(json!({"metadata.a":{"$regex":"\\w{9999}"}})),
            "BAD_QUERY",
            "strategy.conditions[0].query.metadata.a.$regex",
        ),
        ("joined queries are a list", query(json!({"$or":{}})), "WRONG_TYPE", "strategy.conditions[0].query.$or"),
        (
            "conditions ignore circuits",
            group(
                json!({"mode":"conditional","conditions":[{"query":{"metadata.a":1},"then":"a"}],"default":"a","cb_config":{"failure_threshold":1,"cooldown_interval":30000}}),
                named.clone(),
            ),
            "EXCLUSIVE",
            "strategy.cb_config",
        ),
        (
            "sticky says whether it is on",
            sticky(json!({"hash_fields":["metadata.u"]})),
            "MISSING",
            "strategy.sticky.enabled",
        ),
        ("sticky needs something to hash", sticky(json!({"enabled":true})), "MISSING", "strategy.sticky.hash_fields"),
        (
            "sticky hashes what requests have",
            sticky(json!({"enabled":true,"hash_fields":["user"]})),
            "BAD_PATH",
            "strategy.sticky.hash_fields[0]",
        ),
        (
            "sticky hashes so many fields and no more",
            sticky(json!({"enabled":true,"hash_fields":vec!["metadata.u"; 21]})),
            "TOO_MANY",
            "strategy.sticky.hash_fields",
        ),
        (
            "sticky lasts at least a second",
            sticky(json!({"enabled":true,"hash_fields":["prompt_prefix"],"ttl":0})),
            "OUT_OF_RANGE",
            "strategy.sticky.ttl",
        ),
    ]
}

fn settings() -> Vec<Bad> {
    vec![
        ("a cache has a mode", with("cache", json!({"max_age":5})), "MISSING", "cache.mode"),
        ("a cache mode is one of two", with("cache", json!({"mode":"fuzzy"})), "NOT_ONE_OF", "cache.mode"),
        ("a short cache mode is one of two", with("cache", json!("fuzzy")), "NOT_ONE_OF", "cache"),
        (
            "an age is a whole number",
            with("cache", json!({"mode":"simple","max_age":1.5})),
            "WRONG_TYPE",
            "cache.max_age",
        ),
        (
            "an age is at least a second",
            with("cache", json!({"mode":"simple","max_age":0})),
            "OUT_OF_RANGE",
            "cache.max_age",
        ),
        ("a cache knows its fields", with("cache", json!({"mode":"simple","ttl":1})), "UNKNOWN_KEY", "cache.ttl"),
        ("retries are counted", with("retry", json!({})), "MISSING", "retry.attempts"),
        ("there are at most five retries", with("retry", json!({"attempts":6})), "OUT_OF_RANGE", "retry.attempts"),
        ("retries are not negative", with("retry", json!({"attempts":-1})), "OUT_OF_RANGE", "retry.attempts"),
        ("a count of retries is a number", with("retry", json!({"attempts":"2"})), "WRONG_TYPE", "retry.attempts"),
        (
            "a retry status is a number",
            with("retry", json!({"attempts":1,"on_status_codes":["429"]})),
            "OUT_OF_RANGE",
            "retry.on_status_codes[0]",
        ),
        ("jitter is none or full", with("retry", json!({"attempts":1,"jitter":"some"})), "NOT_ONE_OF", "retry.jitter"),
        (
            "a retry budget is a share",
            with("retry", json!({"attempts":1,"budget_percent":101})),
            "OUT_OF_RANGE",
            "retry.budget_percent",
        ),
        (
            "a breaker has a threshold",
            with("cb_config", json!({"cooldown_interval":30000})),
            "MISSING",
            "cb_config.failure_threshold",
        ),
        (
            "a threshold is at least one",
            with("cb_config", json!({"failure_threshold":0,"cooldown_interval":30000})),
            "OUT_OF_RANGE",
            "cb_config.failure_threshold",
        ),
        (
            "a breaker cools down",
            with("cb_config", json!({"failure_threshold":1})),
            "MISSING",
            "cb_config.cooldown_interval",
        ),
        (
            "cooling takes half a minute",
            with("cb_config", json!({"failure_threshold":1,"cooldown_interval":29999})),
            "OUT_OF_RANGE",
            "cb_config.cooldown_interval",
        ),
        (
            "a failure rate is a share",
            with("cb_config", json!({"failure_threshold_percentage":120,"cooldown_interval":30000})),
            "OUT_OF_RANGE",
            "cb_config.failure_threshold_percentage",
        ),
        (
            "a breaker's keys are verbatim",
            with("cb_config", json!({"failure_threshold":1,"cooldown_interval":30000,"minimumRequests":1})),
            "UNKNOWN_KEY",
            "cb_config.minimumRequests",
        ),
        ("a timeout is positive", with("request_timeout", json!(0)), "OUT_OF_RANGE", "request_timeout"),
        ("a timeout is a number", with("request_timeout", json!("8s")), "WRONG_TYPE", "request_timeout"),
        (
            "a total timeout ends within a day",
            with("total_timeout", json!(86_400_001)),
            "OUT_OF_RANGE",
            "total_timeout",
        ),
        ("a heartbeat is not a flood", with("stream_heartbeat", json!(5)), "OUT_OF_RANGE", "stream_heartbeat"),
        ("a hedge says when", with("hedge", json!({})), "MISSING", "hedge"),
        ("a hedge says when once", with("hedge", json!({"after_ms":5,"percentile":90})), "EXCLUSIVE", "hedge"),
        ("a percentile is a high one", with("hedge", json!({"percentile":100})), "OUT_OF_RANGE", "hedge.percentile"),
    ]
}

fn targets() -> Vec<Bad> {
    let balanced = |targets: Value| group(json!({"mode":"loadbalance"}), targets);
    let fallback = |count: usize| group(json!({"mode":"fallback"}), vec![leaf(); count].into());
    let wide = group(
        json!({"mode":"single"}),
        json!([fallback(26), group(json!({"mode":"single"}), json!([fallback(25), fallback(24)]))]),
    );
    vec![
        ("a strategy has targets", json!({"strategy":{"mode":"single"}}), "MISSING", "targets"),
        ("targets have a strategy", json!({"targets":[leaf()]}), "MISSING", "strategy"),
        ("targets are a list", group(json!({"mode":"single"}), json!({})), "WRONG_TYPE", "targets"),
        ("targets are not empty", group(json!({"mode":"single"}), json!([])), "EMPTY", "targets"),
        ("a target is an object", group(json!({"mode":"single"}), json!(["@a"])), "WRONG_TYPE", "targets[0]"),
        ("a target does something", group(json!({"mode":"single"}), json!([{"weight":1}])), "USELESS", "targets[0]"),
        (
            "a nested mistake has its whole path",
            group(json!({"mode":"single"}), json!([balanced(json!([with("retry", json!({"attempts":7}))]))])),
            "OUT_OF_RANGE",
            "targets[0].targets[0].retry.attempts",
        ),
        ("weights are not negative", balanced(json!([with("weight", json!(-1))])), "OUT_OF_RANGE", "targets[0].weight"),
        ("weights are numbers", balanced(json!([with("weight", json!("1"))])), "WRONG_TYPE", "targets[0].weight"),
        (
            "somebody has weight",
            balanced(json!([with("weight", json!(0)), with("weight", json!(0.0))])),
            "NO_WEIGHT",
            "targets",
        ),
        (
            "names are unique among siblings",
            balanced(json!([with("name", json!("x")), with("name", json!("x"))])),
            "DUPLICATE_NAME",
            "targets[1].name",
        ),
        ("names are not empty", balanced(json!([with("name", json!(" "))])), "EMPTY", "targets[0].name"),
        ("a root has at most 100 targets", fallback(101), "TOO_MANY", "targets"),
        (
            "a target has at most 50 below",
            group(json!({"mode":"single"}), json!([fallback(51)])),
            "TOO_MANY",
            "targets[0].targets",
        ),
        ("a target has at most 50 at all levels", wide, "TOO_MANY", "targets[1].targets"),
    ]
}

fn addresses() -> Vec<Bad> {
    let host = |url: &str| with("custom_host", json!(url));
    let forward = |name: &str| with("forward_headers", json!(["ok", name]));
    vec![
        ("a host has a scheme", host("llm.example.com"), "BAD_HOST", "custom_host"),
        ("a host has no credentials", host("https://a:b@example.com"), "BAD_HOST", "custom_host"),
        ("a host is no metadata service", host("http://169.254.169.254"), "BAD_HOST", "custom_host"),
        ("a host is no cluster service", host("http://x.cluster.local"), "BAD_HOST", "custom_host"),
        ("a host has a good port", host("https://example.com:99999"), "BAD_HOST", "custom_host"),
        ("a host is not empty", host(""), "EMPTY", "custom_host"),
        ("forwarded headers are a list", with("forward_headers", json!("a,b")), "WRONG_TYPE", "forward_headers"),
        (
            "the list of headers is not forwarded",
            forward("X-Gateway-Forward-Headers"),
            "BAD_HEADER",
            "forward_headers[1]",
        ),
        ("the service's key is not forwarded", forward("x-gateway-api-key"), "BAD_HEADER", "forward_headers[1]"),
        ("metadata headers are not forwarded", forward("Metadata-Flavor"), "BAD_HEADER", "forward_headers[1]"),
        ("framing is not forwarded", forward("transfer-encoding"), "BAD_HEADER", "forward_headers[1]"),
        ("sessions are not forwarded", forward("cookie"), "BAD_HEADER", "forward_headers[1]"),
        ("what a body is encoded in is not forwarded", forward("Accept_Encoding"), "BAD_HEADER", "forward_headers[1]"),
        ("a header has a name", forward("a b"), "BAD_HEADER", "forward_headers[1]"),
    ]
}

fn hooks() -> Vec<Bad> {
    vec![
        ("guardrails are a list", with("input_guardrails", json!("pg-1")), "WRONG_TYPE", "input_guardrails"),
        (
            "a guardrail is named or written",
            with("output_guardrails", json!([5])),
            "WRONG_TYPE",
            "output_guardrails[0]",
        ),
        (
            "a guardrail checks something",
            with("input_guardrails", json!([{"deny":true}])),
            "EMPTY",
            "input_guardrails[0]",
        ),
        (
            "a check has parameters",
            with("input_guardrails", json!([{"default.contains":true}])),
            "WRONG_TYPE",
            "input_guardrails[0].default.contains",
        ),
        (
            "a hook has an id",
            with("before_request_hooks", json!([{"checks":[]}])),
            "MISSING",
            "before_request_hooks[0].id",
        ),
        (
            "a hook is of a known type",
            with("after_request_hooks", json!([{"id":"h","type":"spell"}])),
            "NOT_ONE_OF",
            "after_request_hooks[0].type",
        ),
        (
            "a hook knows its fields",
            with("before_request_hooks", json!([{"id":"h","onFail":{}}])),
            "UNKNOWN_KEY",
            "before_request_hooks[0].onFail",
        ),
        (
            "a raw check has parameters",
            with("before_request_hooks", json!([{"id":"h","checks":[{"id":"x"}]}])),
            "MISSING",
            "before_request_hooks[0].checks[0].parameters",
        ),
        (
            "a denial is true or false",
            with("input_mutators", json!([{"id":"m","deny":"yes"}])),
            "WRONG_TYPE",
            "input_mutators[0].deny",
        ),
    ]
}
