//! Bifrost, Kong and saved configs.

use super::*;

#[test]
fn keys_of_bifrost_are_chosen_by_weight_and_virtual_keys_keep_their_limits() {
    let import = imported(Format::Bifrost, SAMPLES[2].1);
    let config = &spec(&import, "config", "openai")["config"];
    assert_eq!(
        config["targets"],
        json!([{ "provider": "@openai-first", "weight": 0.7 }, { "provider": "@openai-second", "weight": 0.3 }])
    );
    assert_eq!(config["request_timeout"], 30_000);
    let key = spec(&import, "api-key", "checkout");
    assert_eq!(key["usage_limits"], json!({ "credit_limit": 50.0, "periodic_reset": "monthly" }));
    assert_eq!(key["rate_limits"], json!([{ "type": "requests", "unit": "rpm", "value": 100 }]));
    assert_eq!(spec(&import, "integration", "openai-first")["configurations"]["custom_headers"]["x-org"], "${env:ORG}");
}

#[test]
fn each_route_of_kong_is_a_config_and_what_holds_for_everything_is_a_policy_or_a_guardrail() {
    let import = imported(Format::Kong, SAMPLES[3].1);
    let chat = &spec(&import, "config", "chat")["config"];
    assert_eq!(
        (&chat["retry"]["attempts"], &chat["request_timeout"], &chat["strategy"]["mode"]),
        (&json!(3), &json!(60_000), &json!("loadbalance"))
    );
    assert_eq!(
        chat["targets"][0],
        json!({
            "provider": "@chat-openai", "weight": 70.0, "override_params": { "model": "gpt-4o" },
            "default_params": { "max_tokens": 512, "temperature": 0.5 },
        })
    );
    assert_eq!(spec(&import, "integration", "chat-openai")["key"], "${env:DECK_OPENAI_KEY}");
    assert_eq!(spec(&import, "integration", "chat-azure")["configurations"]["azure_resource_name"], "acme");
    assert_eq!(spec(&import, "integration", "single-gemini")["key"], "${env:GEMINI_KEY}");
    assert_eq!(spec(&import, "integration", "bare-bedrock")["configurations"]["aws_auth_type"], "accessKey");
    let policy = json!({ "type": "requests", "unit": "rpm", "value": 100, "group_by": [{ "key": "api_key" }] });
    assert_eq!(spec(&import, "policy-rate-limits", "requests a minute"), &policy);
    assert_eq!(spec(&import, "guardrail", "Prompt guard")["checks"][0]["parameters"]["not"], true);
    assert_eq!(spec(&import, "api-key", "alice")["scopes"], json!(["completions.write", "models.list"]));
}

#[test]
fn configs_of_the_same_language_stay_as_they_are() {
    let import = imported(Format::Portkey, SAMPLES[1].1);
    let config = spec(&import, "config", "pc-main-1a2b3c");
    assert_eq!(config["isDefault"], 1);
    assert_eq!(config["config"]["targets"][0], json!({ "virtual_key": "openai-eu" }));
    assert_eq!(config["config"]["targets"][1]["api_key"], "${env:PC_MAIN_1A2B3C_TARGETS_1_API_KEY}");
    assert_eq!(import.documents.len(), 1);
}

#[test]
fn saved_configs_keep_their_slugs_and_no_template_or_credential_of_them_is_alive() {
    let import = imported(Format::Portkey, SAMPLES[1].1);
    let last = &spec(&import, "config", "pc-main-1a2b3c")["config"]["targets"][2];
    assert_eq!(last["override_params"]["user"], "$${file:/etc/hostname} 😀");
    assert_eq!(last["custom_host"], "${env:PC_MAIN_1A2B3C_ADDRESS_2}");
    let saved = json!([
        { "slug": "Kept_1", "config": { "retry": { "attempts": 1 } } },
        { "slug": "not a slug", "config": { "retry": { "attempts": 1 } } },
        { "slug": "kept-1", "config": { "api_key": "canary-a", "provider": "openai" } },
        { "slug": "kept_1", "config": { "api_key": "canary-b", "provider": "openai" } },
    ]);
    let import = imported(Format::Portkey, &saved.to_string());
    assert!(why(&import, "[0].config").is_empty());
    assert!(why(&import, "[1].config")[0].contains("`not-a-slug`"));
    let key = |slug| spec(&import, "config", slug)["config"]["api_key"].clone();
    assert_eq!((key("kept-1"), key("kept_1")), (json!("${env:KEPT_1_API_KEY}"), json!("${env:KEPT_1_API_KEY_2}")));
    let bare = imported(Format::Portkey, "{\"retry\": {\"attempts\": 1}, \"provider\": \"@x\"}");
    assert!(is_mapped(&bare, "retry") && is_mapped(&bare, "provider"));
}

#[test]
fn providers_of_bifrost_become_accounts_that_can_be_made_or_nothing() {
    let file = json!({ "providers": {
        "anthropic": {
            "keys": [{ "name": "a", "value": "env.A", "weight": 0 }, { "name": "b", "value": "env.B", "weight": 1 }, { "name": "c", "value": "env.C" }],
            "network_config": { "base_url": "https://proxy.test/" },
        },
        "vllm": { "network_config": { "base_url": "https://vllm.test" } },
        "ollama": { "network_config": { "base_url": "https://ollama.test" }, "keys": [] },
        "groq": { "network_config": { "base_url": "https://groq.test", "max_retries": 1 } },
        "replicate": {
            "keys": [{ "name": "only", "value": "env.R", "weight": 1 }],
            "concurrency_and_buffer_size": { "concurrency": 9_000_000_000u64 },
        },
        "cohere": { "network_config": { "max_retries": 1 } },
        "azure": { "keys": [
            { "name": "proxied", "value": "env.Z", "azure_key_config": { "endpoint": "https://my.proxy.test/azure", "deployments": { "m": "d" } } },
            { "name": "none", "value": "env.Z", "azure_key_config": { "endpoint": "https://r.openai.azure.com" } },
            { "name": "named", "azure_key_config": { "endpoint": "env.AZURE_ENDPOINT", "deployments": { "m": "d" } } },
        ] },
        "bedrock": { "keys": [
            { "name": "role", "bedrock_key_config": { "region": "r", "access_key": "", "secret_key": "" } },
            { "name": "api", "value": "env.BEARER", "bedrock_key_config": { "region": "r" } },
            { "name": "one", "bedrock_key_config": { "region": "r", "access_key": "A", "secret_key": "canary-1" } },
            { "name": "two", "bedrock_key_config": { "region": "r", "access_key": "A", "secret_key": "canary-2" } },
            { "name": "nowhere", "value": "env.BEARER" },
        ] },
    } });
    let import = imported(Format::Bifrost, &file.to_string());
    let of = |slug: &str| spec(&import, "integration", slug);
    assert_eq!(of("anthropic-a")["configurations"]["custom_host"], "https://proxy.test/v1");
    let targets = spec(&import, "config", "anthropic")["config"]["targets"].as_array().unwrap();
    assert_eq!(targets.iter().map(|target| &target["weight"]).collect::<Vec<_>>(), [0.0, 1.0, 0.0]);
    assert_eq!(of("vllm")["key"], "${env:VLLM_KEY}");
    assert_eq!(of("vllm")["configurations"]["custom_host"], "https://vllm.test/v1");
    assert_eq!(
        (&of("ollama")["key"], &of("ollama")["configurations"]["custom_host"]),
        (&Value::Null, &json!("https://ollama.test"))
    );
    assert_eq!(of("groq")["key"], "${env:GROQ_KEY}");
    assert!(!is_mapped(&import, "providers.replicate.keys[0].weight"));
    assert!(spec(&import, "provider", "replicate-only").get("concurrency").is_none());
    assert!(!is_mapped(&import, "providers.cohere.network_config.max_retries"));
    assert!(why(&import, "providers.azure.keys[0]")[0].contains("endpoint"));
    assert!(why(&import, "providers.azure.keys[1]")[0].contains("deployments"));
    assert_eq!(of("azure-named")["configurations"]["azure_resource_name"], "${env:AZURE_ENDPOINT_RESOURCE}");
    let auth: Vec<_> = ["role", "api", "one"]
        .map(|key| of(&format!("bedrock-{key}"))["configurations"]["aws_auth_type"].clone())
        .into();
    assert_eq!(auth, ["serviceRole", "apiKey", "accessKey"]);
    let secret = |key: &str| of(&format!("bedrock-{key}"))["configurations"]["aws_secret_access_key"].clone();
    assert_ne!(secret("one"), secret("two"));
    assert!(why(&import, "providers.bedrock.keys[4]")[0].contains("region"));
}

#[test]
fn virtual_keys_have_names_of_their_own_and_limits_that_can_be_stored() {
    let key = |name: &str, budget: &str| json!({ "name": name, "budget_id": budget });
    let file = json!({ "governance": {
        "virtual_keys": [key("a}", "day"), key("a}", "hour"), key("${env:HOME}", "cent")],
        "budgets": [
            { "id": "day", "max_limit": 5, "reset_duration": "24h" },
            { "id": "hour", "max_limit": 5, "reset_duration": "1h" },
            { "id": "cent", "max_limit": 0.01 },
        ],
    } });
    let import = imported(Format::Bifrost, &file.to_string());
    let keys: Vec<_> =
        import.documents.iter().map(|one| (one["name"].as_str().unwrap(), &one["spec"]["usage_limits"])).collect();
    let day = json!({ "credit_limit": 5.0, "periodic_reset_days": 1 });
    assert_eq!(keys, [("a)", &day), ("a) 2", &Value::Null), ("${env:HOME)", &Value::Null)]);
    assert!(!why(&import, "governance.virtual_keys[1].budget_id").is_empty());
}

#[test]
fn targets_of_kong_become_accounts_that_can_be_made_or_nothing() {
    let target = |provider: &str, options: Value, extra: Value| {
        let mut target = json!({ "model": { "provider": provider, "name": "m", "options": options } });
        target.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        target
    };
    let key = |value: &str| json!({ "auth": { "header_value": value } });
    let file = json!({ "routes": [
        { "name": "chat", "plugins": [{ "name": "ai-proxy-advanced", "config": { "targets": [
            target("openai", json!({ "upstream_url": "https://llm.test/v1/chat/completions" }), key("canary-1")),
            target("openai", json!({ "upstream_url": "https://u:canary@llm.test/v1/chat/completions" }), key("canary-2")),
            target("ollama", json!({ "upstream_url": "https://ollama.test/api/chat" }), json!({ "weight": 0 })),
            target("azure", json!({}), key("canary-3")),
            target("azure", json!({ "azure_instance": "r" }), json!({ "auth": { "azure_use_managed_identity": true } })),
            target("bedrock", json!({}), json!({})),
            target("bedrock", json!({ "bedrock": { "aws_region": "r" } }), json!({})),
            target("anthropic", json!({}), json!({})),
        ] } }] },
        { "name": "none", "plugins": [{ "name": "ai-proxy-advanced", "config": { "balancer": { "retries": 2 }, "targets": [] } }] },
    ] });
    let import = imported(Format::Kong, &file.to_string());
    let of = |slug: &str| spec(&import, "integration", slug);
    assert_eq!(of("chat-openai")["configurations"]["custom_host"], "https://llm.test/v1");
    assert_eq!(of("chat-openai-2")["configurations"]["custom_host"], "${env:CHAT_OPENAI_2_ADDRESS}");
    assert_eq!(
        (&of("chat-openai")["key"], &of("chat-openai-2")["key"]),
        (&json!("${env:CHAT_OPENAI_KEY}"), &json!("${env:CHAT_OPENAI_2_KEY}"))
    );
    assert_eq!(of("chat-ollama")["configurations"]["custom_host"], "https://ollama.test");
    assert_eq!(of("chat-azure")["configurations"]["azure_auth_mode"], "managed");
    assert_eq!(of("chat-bedrock")["configurations"]["aws_auth_type"], "serviceRole");
    assert_eq!(of("chat-anthropic")["key"], "${env:CHAT_ANTHROPIC_KEY}");
    let targets = spec(&import, "config", "chat")["config"]["targets"].as_array().unwrap();
    let weights: Vec<_> = targets.iter().map(|target| target["weight"].as_f64().unwrap()).collect();
    assert_eq!(weights, [100.0, 100.0, 0.0, 100.0, 100.0, 100.0]);
    assert!(!is_mapped(&import, "routes[1].plugins[0].config.balancer.retries"));
    assert!(!(files(&import) + &markdown(&import)).contains("canary"));
}
