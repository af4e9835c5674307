//! Bifrost's providers and their keys.

use super::{ENVIRONMENT, text_or_variable};
use crate::import::result::Import;
use crate::import::slug;
use crate::import::source::Source;
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};

/// Bifrost's words for providers, where they differ from ours.
const NAMES: &[(&str, &str)] = &[
    ("azure", "azure-openai"),
    ("vertex", "vertex-ai"),
    ("gemini", "google"),
    ("mistral", "mistral-ai"),
    ("perplexity", "perplexity-ai"),
    ("sgl", "openai"),
    ("vllm", "openai"),
    ("parasail", "openai"),
    ("xai", "x-ai"),
];
const SAME: &[&str] = &[
    "openai",
    "anthropic",
    "bedrock",
    "cohere",
    "groq",
    "ollama",
    "cerebras",
    "openrouter",
    "huggingface",
    "replicate",
];

pub fn read(name: &str, mut provider: Source, import: &mut Import) {
    let mut custom = provider.take_section("custom_provider_config");
    let base = custom.as_mut().and_then(|custom| custom.take_text("base_provider_type"));
    let meant = base.as_ref().map_or(name, |base| base.value.as_str());
    let Some(id) = id_of(meant) else {
        return import.unmapped(
            provider.location,
            "no provider of the gateway has this name; `custom_host` of an integration takes any address",
        );
    };
    if let Some(base) = base {
        import.mapped(base.location, "provider of the integration");
    }
    if let Some(custom) = custom {
        import.unmapped_rest(custom, |_| "what may be asked of a provider is a matter of keys' scopes".to_owned());
    }
    let mut shared = Map::new();
    let mut target = Map::new();
    if let Some(network) = provider.take_section("network_config") {
        read_network(name, network, &mut shared, &mut target, import);
    }
    let mut concurrency = None;
    if let Some(mut room) = provider.take_section("concurrency_and_buffer_size") {
        if let Some(count) = room.take_positive_count("concurrency") {
            concurrency = Some(json!({ "max_in_flight": count.value }));
            import.mapped(count.location, "concurrency.max_in_flight of the providers");
        }
        import.unmapped_rest(room, |_| "calls wait in the order of their priority".to_owned());
    }
    let mut targets = Vec::new();
    for key in provider.take_items("keys") {
        targets.push(read_key(name, id, key, &shared, concurrency.as_ref(), import));
    }
    if targets.len() > 1 || !target.is_empty() {
        write_config(name, targets, target, import);
    }
    import.unmapped_rest(provider, |_| "no field of an account or a target".to_owned());
}

fn id_of(name: &str) -> Option<&'static str> {
    let renamed = NAMES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    renamed.or_else(|| SAME.iter().copied().find(|same| *same == name))
}

fn read_network(
    name: &str,
    mut network: Source,
    shared: &mut Map<String, Value>,
    target: &mut Map<String, Value>,
    import: &mut Import,
) {
    if let Some(base) = network.take_text("base_url") {
        shared.insert("custom_host".to_owned(), text_or_variable(&base.value).into());
        import.mapped(base.location, "configurations.custom_host of the integrations");
    }
    if let Some(seconds) = network.take_number("default_request_timeout_in_seconds") {
        const MAX_SECONDS: f64 = 86_400.0;
        target.insert("request_timeout".to_owned(), ((seconds.value.min(MAX_SECONDS) * 1000.0) as u64).into());
        import.mapped(seconds.location, "request_timeout of the config");
    }
    if let Some(retries) = network.take_count("max_retries") {
        const MAX_ATTEMPTS: u64 = 5;
        target.insert("retry".to_owned(), json!({ "attempts": retries.value.min(MAX_ATTEMPTS) }));
        import.mapped(retries.location, "retry.attempts of the config");
    }
    let mut headers = Map::new();
    for (header, value) in network.take_section("extra_headers").map(Source::into_fields).unwrap_or_default() {
        match value.value().as_str() {
            Some(text) => {
                let own_name = slug::variable(&format!("{name} {header}"));
                headers.insert(header, import.credential(&value.location, text, ENVIRONMENT, &own_name).into());
                import.mapped(value.location, "configurations.custom_headers of the integrations");
            }
            None => import.unmapped(value.location, "no text"),
        }
    }
    if !headers.is_empty() {
        shared.insert("custom_headers".to_owned(), headers.into());
    }
    import.unmapped_rest(network, |_| "retries wait by themselves, longer each time".to_owned());
}

/// An integration and its provider. Returns the target that leads there.
fn read_key(
    name: &str,
    id: &str,
    mut key: Source,
    shared: &Map<String, Value>,
    concurrency: Option<&Value>,
    import: &mut Import,
) -> Value {
    let named = key.take_text("name").or_else(|| key.take_text("id"));
    let title = named.as_ref().map_or(name, |named| named.value.as_str());
    let slug = import.free_slug("integration", &format!("{name}-{title}"));
    let mut configurations = shared.clone();
    let mut spec = Map::new();
    spec.insert("name".to_owned(), escaped(title).into());
    spec.insert("ai_provider_id".to_owned(), id.into());
    if let Some(value) = key.take_text("value") {
        let own_name = slug::variable(&format!("{slug} key"));
        let variable = import.credential(&value.location, &value.value, ENVIRONMENT, &own_name);
        spec.insert("key".to_owned(), variable.into());
        import.mapped(value.location, "key of the integration");
    }
    match id {
        "azure-openai" => azure(&mut key, &mut configurations, import),
        "vertex-ai" => {
            configurations.insert("vertex_auth_type".to_owned(), "workloadIdentity".into());
            configure(&mut key, "vertex_key_config", VERTEX, &mut configurations, import);
        }
        "bedrock" => {
            configurations.insert("aws_auth_type".to_owned(), "accessKey".into());
            configure(&mut key, "bedrock_key_config", BEDROCK, &mut configurations, import);
        }
        _ => {}
    }
    if !configurations.is_empty() {
        spec.insert("configurations".to_owned(), configurations.into());
    }
    import.add("integration", &slug, spec);
    let provider_slug = import.free_slug("provider", &slug);
    let mut provider = Map::new();
    provider.insert("name".to_owned(), escaped(title).into());
    provider.insert("integration_id".to_owned(), format!("${{integration:{slug}}}").into());
    if let Some(concurrency) = concurrency {
        provider.insert("concurrency".to_owned(), concurrency.clone());
    }
    import.add("provider", &provider_slug, provider);
    let mut target = json!({ "provider": format!("@{provider_slug}") });
    if let Some(weight) = key.take_number("weight") {
        target["weight"] = weight.value.into();
        import.mapped(weight.location, "weight of the target");
    }
    if let Some(named) = named {
        import.mapped(named.location, format!("integration/{}/{slug}", import.workspace));
    }
    import.unmapped_rest(key, |field| {
        match field {
            "models" => "which models an account serves is set at the integration's models",
            _ => "no field of an account",
        }
        .to_owned()
    });
    target
}

/// Their field, ours, and whether it is a credential.
const VERTEX: &[(&str, &str, bool)] = &[("project_id", "vertex_project_id", false), ("region", "vertex_region", false)];
const BEDROCK: &[(&str, &str, bool)] = &[
    ("region", "aws_region", false),
    ("access_key", "aws_access_key_id", true),
    ("secret_key", "aws_secret_access_key", true),
];

fn configure(
    key: &mut Source,
    section: &str,
    fields: &[(&str, &str, bool)],
    configurations: &mut Map<String, Value>,
    import: &mut Import,
) {
    let Some(mut config) = key.take_section(section) else { return };
    for (theirs, ours, is_secret) in fields {
        if let Some(text) = config.take_text(theirs) {
            let value = if *is_secret {
                import.credential(&text.location, &text.value, ENVIRONMENT, &slug::variable(ours))
            } else {
                text_or_variable(&text.value)
            };
            configurations.insert((*ours).to_owned(), value.into());
            import.mapped(text.location, format!("configurations.{ours} of the integration"));
        }
    }
    import.unmapped_rest(config, |field| {
        match field {
            "auth_credentials" => {
                "set vertex_auth_type serviceAccount and vertex_service_account_json of the integration"
            }
            "deployments" => "ask for the model by its whole name",
            _ => "no field of an account",
        }
        .to_owned()
    });
}

fn azure(key: &mut Source, configurations: &mut Map<String, Value>, import: &mut Import) {
    let Some(mut config) = key.take_section("azure_key_config") else { return };
    configurations.insert("azure_auth_mode".to_owned(), "default".into());
    if let Some(endpoint) = config.take_text("endpoint") {
        let host = endpoint.value.strip_prefix("https://").and_then(|rest| rest.split('.').next());
        let resource = host.map_or_else(|| "${env:AZURE_RESOURCE_NAME}".to_owned(), escaped);
        configurations.insert("azure_resource_name".to_owned(), resource.into());
        match host {
            Some(_) => import.mapped(endpoint.location, "configurations.azure_resource_name of the integration"),
            None => import.unmapped(endpoint.location, "set AZURE_RESOURCE_NAME to the first word of the address"),
        }
    }
    let version = config.take_text("api_version");
    let api_version = version.as_ref().map_or("2024-10-21".to_owned(), |version| text_or_variable(&version.value));
    if let Some(version) = version {
        import.mapped(version.location, "azure_api_version of the deployments");
    }
    let mut deployments = Vec::new();
    for (model, deployment) in config.take_section("deployments").map(Source::into_fields).unwrap_or_default() {
        match deployment.value().as_str() {
            Some(name) => {
                deployments.push(json!({
                    "azure_deployment_name": escaped(name),
                    "azure_api_version": api_version,
                    "azure_model_slug": escaped(&model),
                    "is_default": deployments.is_empty(),
                }));
                import.mapped(deployment.location, "azure_deployment_config of the integration");
            }
            None => import.unmapped(deployment.location, "no name of a deployment"),
        }
    }
    configurations.insert("azure_deployment_config".to_owned(), deployments.into());
    import.unmapped_rest(config, |_| "no field of an account".to_owned());
}

fn write_config(name: &str, targets: Vec<Value>, mut config: Map<String, Value>, import: &mut Import) {
    if targets.is_empty() {
        return;
    }
    let mode = if targets.len() == 1 { "single" } else { "loadbalance" };
    config.insert("strategy".to_owned(), json!({ "mode": mode }));
    config.insert("targets".to_owned(), targets.into());
    let mut spec = Map::new();
    spec.insert("name".to_owned(), format!("Keys of {}", escaped(name)).into());
    spec.insert("config".to_owned(), config.into());
    let slug = import.free_slug("config", name);
    import.add("config", &slug, spec);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_is_one_that_the_gateway_knows() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/providers.toml");
        let known: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        for id in NAMES.iter().map(|(_, id)| id).chain(SAME) {
            assert!(known.contains_key(*id), "{id}");
        }
    }
}
