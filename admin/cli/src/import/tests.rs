//! The rules of all imports: everything is told, no credential is copied, and what is written reads well.

mod litellm;
mod others;

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

/// Why a place has no place here; every line of it.
fn why(import: &Import, path: &str) -> Vec<String> {
    let lines = import.lines.iter().filter(|line| line.location.path == path);
    let unmapped = lines.filter_map(|line| match &line.outcome {
        Outcome::Unmapped(why) => Some(why.clone()),
        Outcome::Mapped(_) => None,
    });
    unmapped.collect()
}

fn is_mapped(import: &Import, path: &str) -> bool {
    import.lines.iter().any(|line| line.location.path == path && matches!(line.outcome, Outcome::Mapped(_)))
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
            let path = line.location.path.as_str();
            // A line for the whole file would speak of everything.
            let rest = leaf.strip_prefix(path).filter(|_| !path.is_empty() || leaf.is_empty());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
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

/// Words that the readers look for, so that generated configurations reach far.
const WORDS: &str = "model_list|model_name|litellm_params|model|api_key|api_base|router_settings|fallbacks|num_retries|mcp_servers|url|data|config|slug|name|targets|providers|keys|value|network_config|governance|virtual_keys|budgets|id|openai|azure|weight|cache|cache_params|azure_key_config|deployments|services|routes|plugins|auth|options|consumers|weight|order|rpm|model_group_alias|default_fallbacks|max_budget|budget_duration|azure_instance|endpoint|bedrock_key_config|region|base_url|upstream_url|balancer|before_request_hooks|checks|parameters|headers|username|keyauth_credentials|key|x";

fn configurations() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        WORDS.prop_map(|word| word),
        "(openai|azure|bedrock|vertex_ai|hosted_vllm|ollama)/[a-z*]{0,4}",
        "openai|azure|bedrock|ollama|ai-proxy|ai-proxy-advanced|1mo|24h|a}b|`<|",
        "\\$\\{env:X\\}|os.environ/A} \\$\\{file:/x\\}|http://u:p@h|os.environ/X|env.X|https://a.openai.azure.com"
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
    fn what_is_written_of_any_configuration_is_a_folder_without_faults(configuration in configurations()) {
        let text = writing::text(&configuration);
        for (format, _) in SAMPLES {
            let folder = tempfile::tempdir().unwrap();
            let import = read(*format, &text, "market").unwrap();
            std::fs::write(folder.path().join("imported.yaml"), files(&import)).unwrap();
            let faults = Tree::read(folder.path()).unwrap().faults;
            let faults: Vec<_> = faults.iter().filter(|fault| !fault.message.contains("is not set")).collect();
            prop_assert!(faults.is_empty(), "{:?}: {:?}\n{}", format, faults, files(&import));
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
