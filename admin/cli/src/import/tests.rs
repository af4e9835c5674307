//! The rules of all imports: everything is told, no credential is copied, and what is written reads well.

use super::result::Outcome;
use super::*;
use crate::output::yaml as writing;
use crate::tree::Tree;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const SAMPLES: &[(Format, &str)] = &[
    (Format::Litellm, include_str!("samples/litellm.yaml")),
    (Format::Portkey, include_str!("samples/portkey.json")),
    (Format::Bifrost, include_str!("samples/bifrost.json")),
    (Format::Kong, include_str!("samples/kong.yaml")),
];

fn imported(format: Format, text: &str) -> Import {
    read(format, text, "market").unwrap()
}

fn files(import: &Import) -> String {
    import.documents.iter().map(|document| format!("---\n{}", writing::text(document))).collect()
}

fn spec<'a>(import: &'a Import, kind: &str, name: &str) -> &'a Value {
    let is_meant = |document: &&Value| document["kind"] == kind && document["name"] == name;
    let found = import.documents.iter().find(is_meant);
    &found.unwrap_or_else(|| panic!("{kind} {name} in {}", files(import)))["spec"]
}

/// The paths of all values that say something and hold no others.
fn leaves(path: &str, value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                leaves(&path, value, found);
            }
        }
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| leaves(&format!("{path}[{at}]"), item, found));
        }
        Value::Null => {}
        _ => found.push(path.to_owned()),
    }
}

/// What no line of the report speaks of.
fn untold(import: &Import, source: &Value) -> Vec<String> {
    let mut found = Vec::new();
    leaves("", source, &mut found);
    let is_told = |leaf: &String| {
        import.lines.iter().any(|line| {
            let rest = leaf.strip_prefix(line.location.path.as_str());
            line.location.path.is_empty() || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    found.retain(|leaf| !is_told(leaf));
    found
}

#[test]
fn every_field_of_a_sample_is_mapped_or_told() {
    for (format, text) in SAMPLES {
        let import = imported(*format, text);
        let untold = untold(&import, &yaml::one(text).unwrap());
        assert!(untold.is_empty(), "{format:?}: {untold:?}");
    }
}

#[test]
fn no_credential_of_a_sample_is_copied_or_told() {
    for (format, text) in SAMPLES {
        let import = imported(*format, text);
        let written = files(&import) + &markdown(&import);
        assert!(!written.contains("canary"), "{format:?}: {written}");
    }
}

#[test]
fn what_is_written_is_a_folder_without_faults() {
    for (format, text) in SAMPLES {
        let folder = tempfile::tempdir().unwrap();
        let import = imported(*format, text);
        std::fs::write(folder.path().join("imported.yaml"), files(&import)).unwrap();
        let tree = Tree::read(folder.path()).unwrap();
        let faults: Vec<String> = tree.faults.iter().map(|fault| fault.message.clone()).collect();
        // Variables are set by whoever applies them.
        let faults: Vec<_> = faults.iter().filter(|fault| !fault.contains("is not set")).collect();
        assert!(faults.is_empty(), "{format:?}: {faults:?}\n{}", files(&import));
        assert_eq!(tree.objects.len(), import.documents.len());
    }
}

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
    assert_eq!(config["strategy"]["default"], "gpt-4o");
    let breaker = json!({ "failure_threshold": 2, "cooldown_interval": 30_000 });
    assert_eq!(
        config["targets"][0],
        json!({
            "name": "gpt-4o",
            "strategy": { "mode": "fallback" },
            "targets": [
                { "strategy": { "mode": "loadbalance" }, "targets": [
                    { "provider": "@azure-openai", "override_params": { "model": "gpt-4o" }, "cb_config": breaker, "weight": 3.0 },
                    { "provider": "@azure-openai-2", "override_params": { "model": "gpt-4o" }, "request_timeout": 20_000, "cb_config": breaker, "weight": 1.0 },
                ] },
                { "provider": "@anthropic", "override_params": { "model": "claude-sonnet-4-5" }, "default_params": { "max_tokens": 4096, "temperature": 0.2 }, "cb_config": breaker },
                { "provider": "@openai", "override_params": { "model": "llama" }, "cb_config": breaker },
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

/// Words that the readers look for, so that generated configurations reach far.
const WORDS: &str = "model_list|model_name|litellm_params|model|api_key|api_base|router_settings|fallbacks|num_retries|mcp_servers|url|data|config|slug|name|targets|providers|keys|value|network_config|governance|virtual_keys|budgets|id|openai|azure|weight|cache|cache_params|azure_key_config|deployments|services|routes|plugins|auth|options|consumers|x";

fn configurations() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        WORDS.prop_map(|word| word),
        "(openai|azure|bedrock|vertex_ai|hosted_vllm|ollama)/[a-z*]{0,4}",
        "\\$\\{env:X\\}|os.environ/X|env.X|https://a.openai.azure.com"
    ];
    let leaf =
        prop_oneof![any::<bool>().prop_map(Value::from), (-2i64..99).prop_map(Value::from), text.prop_map(Value::from)];
    leaf.prop_recursive(6, 60, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(WORDS, inner, 0..5)
                .prop_map(|fields| Value::Object(fields.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_configuration_is_read_to_its_end(configuration in configurations()) {
        let text = writing::text(&configuration);
        for (format, _) in SAMPLES {
            let import = read(*format, &text, "market").unwrap();
            prop_assert!(yaml::documents(&files(&import)).is_ok());
        }
    }

    #[test]
    fn nothing_of_any_configuration_is_lost(configuration in configurations()) {
        let text = writing::text(&configuration);
        for (format, _) in SAMPLES {
            let import = read(*format, &text, "market").unwrap();
            let untold = untold(&import, &yaml::one(&text).unwrap_or_default());
            prop_assert!(untold.is_empty(), "{:?}: {:?}", format, untold);
        }
    }
}
