//! LiteLLM's configurations, and what of them is easily mistaken.

use super::*;

#[test]
fn models_of_litellm_are_targets_of_the_default_config() {
    let import = imported(Format::Litellm, SAMPLES[0].1);
    let config = &spec(&import, "config", "litellm")["config"];
    assert_eq!(config["retry"], json!({ "attempts": 3 }));
    assert_eq!(config["request_timeout"], 30_000);
    assert_eq!(config["cache"], json!({ "mode": "simple", "max_age": 600 }));
    let asked: Vec<_> = config["strategy"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|condition| &condition["query"]["params.model"]["$eq"])
        .collect();
    assert_eq!(asked, ["gpt-4o", "claude", "local", "embeddings", "$${text}", "gpt-4"]);
    assert_eq!(config["strategy"]["default"], "as asked");
    let last = config["targets"].as_array().unwrap().last().unwrap();
    assert_eq!(last, &json!({ "name": "as asked", "retry": { "attempts": 3 } }));
    let breaker = json!({ "failure_threshold": 3, "cooldown_interval": 30_000 });
    assert_eq!(
        config["targets"][0],
        json!({
            "name": "gpt-4o",
            "strategy": { "mode": "fallback" },
            "targets": [
                { "strategy": { "mode": "loadbalance" }, "targets": [
                    { "provider": "@azure-openai", "override_params": { "model": "gpt-4o" }, "cb_config": breaker, "weight": 3.0 },
                    { "provider": "@azure-openai-2", "override_params": { "model": "gpt-4o" }, "request_timeout": 20_000, "cb_config": breaker, "weight": 0.0 },
                ] },
                { "provider": "@anthropic", "override_params": { "model": "claude-sonnet-4-5" }, "default_params": { "max_tokens": 4096, "temperature": 0.2 }, "cb_config": breaker },
            ],
        })
    );
    let azure = spec(&import, "integration", "azure-openai");
    assert_eq!(azure["key"], "${env:AZURE_EU_KEY}");
    assert_eq!(azure["configurations"]["azure_resource_name"], "acme-eu");
    assert_eq!(azure["configurations"]["azure_deployment_config"][0]["azure_deployment_name"], "gpt-4o-eu");
    assert_eq!(
        spec(&import, "provider", "azure-openai")["rate_limits"],
        json!([{ "type": "requests", "unit": "rpm", "value": 600 }])
    );
    assert_eq!(spec(&import, "integration", "bedrock")["configurations"]["aws_auth_type"], "accessKey");
    assert_eq!(
        spec(&import, "policy-usage-limits", "litellm-budget"),
        &json!({ "type": "cost", "credit_limit": 100.0, "periodic_reset_days": 30 })
    );
    let headers = &spec(&import, "mcp-integration", "docs")["configurations"]["custom_headers"];
    assert_eq!(headers["Authorization"], "Bearer ${env:DOCS_TOKEN}");
}

#[test]
fn what_has_no_place_is_told_with_its_line() {
    let import = imported(Format::Litellm, SAMPLES[0].1);
    let line = |path: &str| {
        let found =
            import.lines.iter().find(|line| line.location.path == path && matches!(line.outcome, Outcome::Unmapped(_)));
        found.unwrap_or_else(|| panic!("{path} is not told")).location.line
    };
    let text = SAMPLES[0].1;
    let of = |part: &str| 1 + text.lines().position(|line| line.contains(part)).unwrap();
    assert_eq!(line("router_settings.routing_strategy"), of("latency-based-routing"));
    assert_eq!(line("model_list[5].litellm_params.model"), of("nowhere/model"));
    assert_eq!(line("router_settings.fallbacks[0].gpt-4o[1]"), of("absent"));
    assert_eq!(line("litellm_settings.num_retries"), of("num_retries: 7"));
}

fn models(entries: Value) -> Import {
    imported(Format::Litellm, &json!({ "model_list": entries }).to_string())
}

fn model(name: &str, params: Value) -> Value {
    json!({ "model_name": name, "litellm_params": params })
}

/// The targets of the default config, without the one for other names.
fn targets(import: &Import) -> Vec<Value> {
    let targets = spec(import, "config", "litellm")["config"]["targets"].as_array().unwrap();
    targets.iter().filter(|target| target["name"] != "as asked").cloned().collect()
}

fn integrations(import: &Import) -> Vec<&Value> {
    let found = import.documents.iter().filter(|document| document["kind"] == "integration");
    found.map(|document| &document["spec"]).collect()
}

#[test]
fn each_credential_has_a_variable_and_an_account_of_its_own() {
    let azure = |resource: &str, key: &str| json!({ "model": "azure/x", "api_base": format!("https://{resource}.openai.azure.com"), "api_key": key });
    let import = models(json!([
        model("a", json!({ "model": "openai/x", "api_key": "canary-one" })),
        model("b", json!({ "model": "openai/x", "api_key": "canary-two" })),
        model("c", json!({ "model": "openai/y", "api_key": "canary-one" })),
        model("d", json!({ "model": "openai/x" })),
        model("e", json!({ "model": "hosted_vllm/x", "api_base": "https://a.test/v1", "api_key": "none" })),
        model("f", json!({ "model": "hosted_vllm/x", "api_base": "https://a.test/v1" })),
        model("g", azure("r1", "canary-three")),
        model("h", azure("r2", "canary-four")),
        model(
            "i",
            json!({ "model": "bedrock/x", "aws_region_name": "r", "aws_access_key_id": "A", "aws_secret_access_key": "B" })
        ),
        model(
            "j",
            json!({ "model": "bedrock/x", "aws_region_name": "r", "aws_access_key_id": "C", "aws_secret_access_key": "D" })
        ),
    ]));
    let keys: Vec<&Value> = integrations(&import).into_iter().map(|one| &one["key"]).collect();
    let expected = [
        json!("${env:OPENAI_KEY}"),
        json!("${env:OPENAI_KEY_2}"),
        json!("${env:OPENAI_API_KEY}"),
        json!("${env:HOSTED_VLLM_KEY}"),
        json!("${env:HOSTED_VLLM_API_KEY}"),
        json!("${env:AZURE_KEY}"),
        json!("${env:AZURE_KEY_2}"),
        Value::Null,
        Value::Null,
    ];
    assert_eq!(keys, expected.iter().collect::<Vec<_>>());
    let aws = |slug| spec(&import, "integration", slug)["configurations"]["aws_secret_access_key"].clone();
    assert_ne!(aws("bedrock"), aws("bedrock-2"));
    assert!(why(&import, "model_list[5].litellm_params")[0].contains("set HOSTED_VLLM_API_KEY"));
    assert!(!(files(&import) + &markdown(&import)).contains("canary"));
}

#[test]
fn what_is_no_name_of_a_variable_is_no_template() {
    let hostile = "os.environ/A} ${file:/etc/passwd}";
    let import = imported(
        Format::Litellm,
        &json!({
            "model_list": [
                model("a", json!({ "model": "openai/x", "api_key": hostile, "organization": hostile, "extra_headers": { "h": hostile } })),
                model("b", json!({ "model": "azure/x", "api_base": "https://r.openai.azure.com", "api_version": hostile, "client_id": hostile })),
                model("c", json!({ "model": "vertex_ai/x", "vertex_credentials": "/a} ${env:HOME", "vertex_project": hostile })),
            ],
            "mcp_servers": { "m": { "url": hostile, "auth_value": hostile } },
        })
        .to_string(),
    );
    let written = files(&import);
    assert!(!written.replace("$${file:", "").contains("${file:") && !written.contains("${env:HOME"), "{written}");
    assert!(!written.contains("${env:A}"), "{written}");
}

#[test]
fn addresses_with_credentials_are_variables_as_a_whole() {
    let import = imported(
        Format::Litellm,
        &json!({
            "model_list": [
                model("a", json!({ "model": "openai/x", "api_key": "os.environ/K", "api_base": "http://u:canary@host" })),
                model("b", json!({ "model": "anthropic/x", "base_url": "https://a.test?canary=1" })),
                model("c", json!({ "model": "anthropic/x", "api_base": "https://b.test/v1/messages" })),
                model("d", json!({ "model": "openai/x", "api_base": "os.environ/BASE" })),
            ],
            "mcp_servers": {
                "m": { "url": "https://m.test/?token=canary" }, "n": { "url": "os.environ/MCP" }, "o": { "url": "https://o.test/mcp/" },
            },
        })
        .to_string(),
    );
    let written = files(&import) + &markdown(&import);
    assert!(!written.contains("canary"), "{written}");
    let hosts: Vec<_> = integrations(&import).iter().map(|one| &one["configurations"]["custom_host"]).collect();
    assert_eq!(hosts, ["${env:OPENAI_ADDRESS}", "${env:ANTHROPIC_ADDRESS}", "https://b.test/v1", "${env:BASE}"]);
    assert!(why(&import, "mcp_servers.m.url")[0].contains("set M_URL"));
    assert_eq!(spec(&import, "mcp-integration", "imported-n")["url"], "${env:MCP}");
    assert_eq!(spec(&import, "mcp-integration", "imported-o")["url"], "https://o.test/mcp/");
}

#[test]
fn shares_are_weights_or_else_rates_and_entries_without_an_order_come_last() {
    let entry = |extra: Value| {
        let mut params = json!({ "model": "groq/x" });
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        model("a", params)
    };
    let weights = |import: &Import| -> Vec<Value> {
        let targets = targets(import);
        targets[0]["targets"].as_array().unwrap().iter().map(|target| target["weight"].clone()).collect()
    };
    for (entries, expected) in [
        (json!([entry(json!({ "weight": 0 })), entry(json!({ "weight": 2 })), entry(json!({}))]), [0.0, 2.0, 0.0]),
        (
            json!([entry(json!({ "rpm": 10 })), entry(json!({ "tpm": 7 })), entry(json!({ "rpm": 30 }))]),
            [10.0, 0.0, 30.0],
        ),
        (json!([entry(json!({ "weight": 0 })), entry(json!({})), entry(json!({}))]), [1.0, 1.0, 1.0]),
    ] {
        assert_eq!(weights(&models(entries)), expected.map(Value::from));
    }
    let import = models(json!([
        entry(json!({})),
        model("a", json!({ "model": "openai/second", "order": 2 })),
        model("a", json!({ "model": "openai/first", "order": 1 })),
    ]));
    let chain: Vec<_> = targets(&import)[0]["targets"].as_array().unwrap().clone();
    let asked: Vec<_> = chain.iter().map(|target| &target["override_params"]["model"]).collect();
    assert_eq!(asked, ["first", "second", "x"]);
}

#[test]
fn providers_with_rates_are_not_shared() {
    let entry = |rpm: u64| model("a", json!({ "model": "groq/x", "rpm": rpm }));
    let import = models(json!([
        entry(10),
        entry(10),
        model("b", json!({ "model": "groq/x" })),
        model("c", json!({ "model": "groq/y" }))
    ]));
    let providers = import.documents.iter().filter(|document| document["kind"] == "provider").count();
    assert_eq!((providers, integrations(&import).len()), (3, 1));
}

#[test]
fn deployments_of_azure_are_all_reachable_and_named() {
    let azure = |name: &str, extra: Value| {
        let mut params = json!({ "model": format!("azure/{name}"), "api_base": "https://r.openai.azure.com", "api_key": "os.environ/K" });
        params.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        json!({ "model_name": "g", "litellm_params": params, "model_info": { "base_model": "azure/gpt-4o" } })
    };
    let entra = json!({ "tenant_id": "t", "client_id": "c", "client_secret": "canary-s", "api_key": null });
    let import = models(json!([
        azure("one", json!({})),
        azure("two", json!({})),
        azure("gpt5_series/three", json!({ "api_version": "v" })),
        azure("*", json!({})),
        azure("four", entra),
    ]));
    let names = |slug: &str| -> Vec<Value> {
        let list = spec(&import, "integration", slug)["configurations"]["azure_deployment_config"].as_array().unwrap();
        list.iter().map(|deployment| deployment["azure_deployment_name"].clone()).collect()
    };
    assert_eq!((names("azure-openai"), names("azure-openai-2")), (vec![json!("one")], vec![json!("two")]));
    assert_eq!(names("azure-openai-3"), ["three"]);
    assert!(why(&import, "model_list[3].litellm_params.model")[0].contains("listed by name"));
    let entra = spec(&import, "integration", "azure-openai-4");
    assert_eq!((&entra["key"], &entra["configurations"]["azure_auth_mode"]), (&Value::Null, &json!("entra")));
    assert!(is_mapped(&import, "model_list[0].model_info.base_model"));
}

#[test]
fn accounts_of_aws_are_read_by_what_they_have() {
    let import = models(json!([
        model("a", json!({ "model": "bedrock/eu-west-1/x", "api_key": "os.environ/BEDROCK" })),
        model("b", json!({ "model": "bedrock/converse/y" })),
    ]));
    let first = spec(&import, "integration", "bedrock");
    assert_eq!(
        (&first["key"], &first["configurations"]["aws_auth_type"]),
        (&json!("${env:BEDROCK}"), &json!("apiKey"))
    );
    assert_eq!(first["configurations"]["aws_region"], "eu-west-1");
    assert_eq!(spec(&import, "integration", "bedrock-2")["configurations"]["aws_auth_type"], "serviceRole");
    assert!(why(&import, "model_list[1].litellm_params")[0].contains("AWS_REGION_NAME"));
    let asked: Vec<_> = targets(&import).iter().map(|target| target["override_params"]["model"].clone()).collect();
    assert_eq!(asked, ["x", "y"]);
}

#[test]
fn names_that_no_group_has_are_left_to_the_request() {
    let import = models(json!([model("as asked", json!({ "model": "groq/x" }))]));
    let config = &spec(&import, "config", "litellm")["config"];
    assert_eq!(config["strategy"]["default"], "as asked 2");
    assert_eq!(config["targets"][1], json!({ "name": "as asked 2", "retry": { "attempts": 0 } }));
    let any = models(json!([model("a", json!({ "model": "groq/x" })), model("*", json!({ "model": "openai/*" }))]));
    assert_eq!(spec(&any, "config", "litellm")["config"]["strategy"]["default"], "*");
}

#[test]
fn fallbacks_are_the_own_ones_or_the_default_ones_and_as_many_as_there_is_room_for() {
    let mut entries: Vec<Value> = (0..60).map(|_| model("big", json!({ "model": "groq/x" }))).collect();
    entries.extend(["a", "b", "c"].map(|name| model(name, json!({ "model": "groq/x" }))));
    let file = json!({
        "model_list": entries,
        "router_settings": { "fallbacks": [{ "a": ["b"] }], "default_fallbacks": ["c", "big"] },
    });
    let import = imported(Format::Litellm, &file.to_string());
    let found = targets(&import);
    let below = |at: usize| found[at]["targets"].as_array().map_or(0, Vec::len);
    assert_eq!(below(0), 49, "a group has at most so many, and no fallback beside them");
    assert_eq!((below(1), below(2), below(3)), (2, 2, 0));
    assert_eq!(why(&import, "model_list[59].litellm_params.model").len(), 1);
    let told = import.lines.iter().filter(|line| line.location.path == "router_settings.default_fallbacks[1]");
    assert_eq!(told.count(), 2, "one line that it is mapped, one that there was no room");
    let every = json!({ "model_list": [model("a", json!({ "model": "groq/x" })), model("b", json!({ "model": "groq/y" }))],
                        "router_settings": { "fallbacks": [{ "*": ["b"] }] } });
    let found = targets(&imported(Format::Litellm, &every.to_string()));
    assert_eq!(found[0]["targets"].as_array().map(Vec::len), Some(2));
}

#[test]
fn what_the_control_plane_refuses_is_left_out_and_told() {
    let read = |settings: Value| {
        let file = json!({ "model_list": [model("a", json!({ "model": "groq/x" }))], "litellm_settings": settings });
        imported(Format::Litellm, &file.to_string())
    };
    let config = |import: &Import| spec(import, "config", "litellm")["config"].clone();
    let many = read(json!({ "num_retries": 9, "timeout": 0, "allowed_fails": 0 }));
    assert_eq!(config(&many)["retry"], json!({ "attempts": 5 }));
    assert!(why(&many, "litellm_settings.num_retries")[0].contains("at most 5"));
    assert!(config(&many).get("request_timeout").is_none() && !why(&many, "litellm_settings.timeout").is_empty());
    let breaker = json!({ "failure_threshold": 1, "cooldown_interval": 30_000 });
    assert_eq!(config(&many)["targets"][0]["cb_config"], breaker);
    let cool = read(json!({ "cooldown_time": 60 }));
    let breaker = json!({ "failure_threshold": 4, "cooldown_interval": 60_000 });
    assert_eq!(config(&cool)["targets"][0]["cb_config"], breaker);
    for (period, budget) in [("1h", 5.0), ("30d", 0.5), ("9999999999999999999mo", 5.0)] {
        let import = read(json!({ "max_budget": budget, "budget_duration": period }));
        assert!(import.documents.iter().all(|document| document["kind"] != "policy-usage-limits"), "{period}");
        assert!(!why(&import, "litellm_settings.max_budget").is_empty(), "{period}");
    }
    let off = read(json!({ "cache": true, "cache_params": { "mode": "default_off", "ttl": 60 } }));
    assert!(config(&off).get("cache").is_none());
    let short = read(json!({ "cache": true, "cache_params": { "ttl": 0.5, "similarity_threshold": 2 } }));
    assert_eq!(config(&short)["cache"], json!({ "mode": "simple" }));
}

#[test]
fn a_large_file_is_read_in_a_moment() {
    const MANY: usize = 10_000;
    let mut entries: Vec<Value> = (0..MANY).map(|at| model(&format!("m{at}"), json!({ "model": "groq/x" }))).collect();
    entries.extend((0..MANY).map(|at| model("key", json!({ "model": "openai/x", "api_key": format!("canary-{at}") }))));
    let azure = |at| json!({ "model": format!("azure/d{at}"), "api_base": "https://r.openai.azure.com" });
    entries.extend((0..MANY).map(|at| model("azure", azure(at))));
    let headers: Map<String, Value> = (0..MANY).map(|at| (format!("h{at}"), json!("v"))).collect();
    entries.push(model("headers", json!({ "model": "openai/x", "extra_headers": headers })));
    let names: Vec<String> = (0..1000).map(|at| format!("m{at}")).collect();
    let file = json!({ "model_list": entries, "router_settings": { "default_fallbacks": names } });
    let import = imported(Format::Litellm, &file.to_string());
    assert!(targets(&import).len() < 1000 && integrations(&import).len() > MANY);
}
