//! The plugins `ai-proxy` (one target) and `ai-proxy-advanced` (several, with a balancer).

use super::credentials::variable;
use crate::import::result::Import;
use crate::import::slug;
use crate::import::source::Source;
use crate::tree::template::escaped;
use serde_json::{Map, Value, json};

/// Kong's words for providers, and ours.
const PROVIDERS: &[(&str, &str)] = &[
    ("openai", "openai"),
    ("azure", "azure-openai"),
    ("anthropic", "anthropic"),
    ("cohere", "cohere"),
    ("mistral", "mistral-ai"),
    ("bedrock", "bedrock"),
    ("gemini", "google"),
    ("huggingface", "huggingface"),
    ("cerebras", "cerebras"),
    ("dashscope", "dashscope"),
    ("xai", "x-ai"),
    ("deepseek", "deepseek"),
    ("ollama", "ollama"),
    ("vllm", "openai"),
];
/// Options of a model that requests may set themselves.
const DEFAULT_PARAMS: &[&str] = &["max_tokens", "temperature", "top_p", "top_k"];

pub fn read(mut plugin: Source, holder: &str, import: &mut Import) {
    let is_advanced = plugin.text("name") == Some("ai-proxy-advanced");
    if let Some(name) = plugin.take_text("name") {
        import.mapped(name.location, "a config");
    }
    let Some(mut config) = plugin.take_section("config") else {
        return import.unmapped(plugin.location, "a plugin without a config");
    };
    import.unmapped_rest(plugin, |_| "no field of a config".to_owned());
    let mut fields = Map::new();
    let mut mode = "loadbalance";
    let targets = if is_advanced {
        if let Some(balancer) = config.take_section("balancer") {
            mode = read_balancer(balancer, &mut fields, import);
        }
        config.take_items("targets")
    } else {
        // Of one target the fields stand in the config itself.
        vec![std::mem::replace(&mut config, Source::nothing())]
    };
    let found: Vec<Value> = targets.into_iter().filter_map(|target| read_target(target, holder, import)).collect();
    import.unmapped_rest(config, |_| "no field of a config".to_owned());
    if found.is_empty() {
        return;
    }
    let mode = if found.len() == 1 { "single" } else { mode };
    fields.insert("strategy".to_owned(), json!({ "mode": mode }));
    fields.insert("targets".to_owned(), found.into());
    let mut spec = Map::new();
    spec.insert("name".to_owned(), escaped(holder).into());
    spec.insert("config".to_owned(), fields.into());
    let slug = import.free_slug("config", holder);
    import.add("config", &slug, spec);
}

/// Sets what holds for all targets. Returns how one is chosen.
fn read_balancer(mut balancer: Source, fields: &mut Map<String, Value>, import: &mut Import) -> &'static str {
    let mut mode = "loadbalance";
    if let Some(algorithm) = balancer.take_text("algorithm") {
        match algorithm.value.as_str() {
            "round-robin" => import.mapped(algorithm.location, "strategy.mode loadbalance"),
            "priority" => {
                mode = "fallback";
                import.mapped(algorithm.location, "strategy.mode fallback, in the order of the file");
            }
            _ => import.unmapped(algorithm.location, "targets are chosen by weight"),
        }
    }
    if let Some(retries) = balancer.take_count("retries") {
        const MAX_ATTEMPTS: u64 = 5;
        fields.insert("retry".to_owned(), json!({ "attempts": retries.value.min(MAX_ATTEMPTS) }));
        import.mapped(retries.location, "retry.attempts of the config");
    }
    if let Some(timeout) = balancer.take_positive_count("read_timeout") {
        const MAX_MS: u64 = 86_400_000;
        fields.insert("request_timeout".to_owned(), timeout.value.min(MAX_MS).into());
        import.mapped(timeout.location, "request_timeout of the config");
    }
    import.unmapped_rest(balancer, |_| "circuits and fallbacks are fields of the config (docs/configs.md)".to_owned());
    mode
}

fn read_target(mut target: Source, holder: &str, import: &mut Import) -> Option<Value> {
    let location = target.location.clone();
    let mut model = target.take_section("model");
    let provider = model.as_mut().and_then(|model| model.take_text("provider"));
    let id = provider.as_ref().and_then(|provider| {
        let known = PROVIDERS.iter().find(|(theirs, _)| *theirs == provider.value);
        known.map(|(_, ours)| *ours)
    });
    let (Some(provider), Some(id), Some(mut model)) = (provider, id, model) else {
        import.unmapped(location, "no provider of the gateway: `custom_host` of an integration takes any address");
        return None;
    };
    import.mapped(provider.location, "provider of the integration");
    let mut integration = Map::new();
    let mut configurations = Map::new();
    let slug = import.free_slug("integration", &format!("{holder} {}", provider.value));
    integration.insert("name".to_owned(), slug.clone().into());
    integration.insert("ai_provider_id".to_owned(), id.into());
    if let Some(auth) = target.take_section("auth") {
        read_auth(auth, id, &slug, &mut integration, &mut configurations, import);
    }
    let mut reached = Map::new();
    let name = model.take_text("name");
    if let Some(options) = model.take_section("options") {
        let name = name.as_ref().map(|name| name.value.as_str());
        read_options(options, id, name, &mut configurations, &mut reached, import);
    }
    if let Some(name) = name {
        reached.insert("override_params".to_owned(), json!({ "model": escaped(&name.value) }));
        import.mapped(name.location, "the model of the target");
    }
    import.unmapped_rest(model, |_| "the request says which model, or the config does".to_owned());
    if !configurations.is_empty() {
        integration.insert("configurations".to_owned(), configurations.into());
    }
    import.add("integration", &slug, integration);
    let provider_slug = import.free_slug("provider", &slug);
    let reference = format!("${{integration:{slug}}}");
    let spec = json!({ "name": provider_slug, "integration_id": reference });
    import.add("provider", &provider_slug, spec.as_object().cloned().unwrap_or_default());
    reached.insert("provider".to_owned(), format!("@{provider_slug}").into());
    if let Some(weight) = target.take_number("weight") {
        reached.insert("weight".to_owned(), weight.value.into());
        import.mapped(weight.location, "weight of the target");
    }
    import.unmapped_rest(target, |field| {
        match field {
            "route_type" => "each endpoint of the gateway is its own address",
            "logging" => "calls are logged with their bodies where the organisation says so",
            _ => "no field of a target",
        }
        .to_owned()
    });
    Some(reached.into())
}

fn read_auth(
    mut auth: Source,
    id: &str,
    slug: &str,
    integration: &mut Map<String, Value>,
    configurations: &mut Map<String, Value>,
    import: &mut Import,
) {
    for value in ["header_value", "param_value"] {
        if let Some(key) = auth.take_text(value) {
            let text = key.value.strip_prefix("Bearer ").unwrap_or(&key.value);
            let own_name = slug::variable(&format!("{slug} key"));
            integration.insert("key".to_owned(), variable(import, &key.location, text, &own_name).into());
            import.mapped(key.location, "key of the integration");
        }
    }
    if id == "bedrock" {
        let mut has_keys = true;
        for (theirs, ours) in
            [("aws_access_key_id", "aws_access_key_id"), ("aws_secret_access_key", "aws_secret_access_key")]
        {
            match auth.take_text(theirs) {
                Some(key) => {
                    let value = variable(import, &key.location, &key.value, &slug::variable(&format!("{slug} {ours}")));
                    configurations.insert(ours.to_owned(), value.into());
                    import.mapped(key.location, format!("configurations.{ours} of the integration"));
                }
                None => has_keys = false,
            }
        }
        configurations.insert("aws_auth_type".to_owned(), if has_keys { "accessKey" } else { "serviceRole" }.into());
    }
    import.unmapped_rest(auth, |field| {
        match field {
            "header_name" | "param_name" | "param_location" => "the gateway knows how each provider takes its key",
            _ => "set it at the integration's configurations (docs/providers.md)",
        }
        .to_owned()
    });
}

fn read_options(
    mut options: Source,
    id: &str,
    model: Option<&str>,
    configurations: &mut Map<String, Value>,
    target: &mut Map<String, Value>,
    import: &mut Import,
) {
    let mut defaults = Map::new();
    for name in DEFAULT_PARAMS {
        if let Some(number) = options.take_number(name) {
            let is_whole = number.value.fract() == 0.0;
            let value = if is_whole { Value::from(number.value as u64) } else { Value::from(number.value) };
            defaults.insert((*name).to_owned(), value);
            import.mapped(number.location, "default_params of the target");
        }
    }
    if !defaults.is_empty() {
        target.insert("default_params".to_owned(), defaults.into());
    }
    if let Some(address) = options.take_text("upstream_url") {
        configurations.insert("custom_host".to_owned(), escaped(&address.value).into());
        import.mapped(address.location, "configurations.custom_host of the integration");
    }
    if id == "azure-openai" {
        read_azure(&mut options, model, configurations, import);
    }
    if let Some(mut bedrock) = options.take_section("bedrock") {
        if let Some(region) = bedrock.take_text("aws_region") {
            configurations.insert("aws_region".to_owned(), escaped(&region.value).into());
            import.mapped(region.location, "configurations.aws_region of the integration");
        }
        import.unmapped_rest(bedrock, |_| "set it at the integration's configurations".to_owned());
    }
    import.unmapped_rest(options, |field| {
        match field {
            "input_cost" | "output_cost" => "set the price at the integration's model (pricing_config)",
            _ => "no field of an account or a target",
        }
        .to_owned()
    });
}

fn read_azure(options: &mut Source, model: Option<&str>, configurations: &mut Map<String, Value>, import: &mut Import) {
    configurations.insert("azure_auth_mode".to_owned(), "default".into());
    if let Some(instance) = options.take_text("azure_instance") {
        configurations.insert("azure_resource_name".to_owned(), escaped(&instance.value).into());
        import.mapped(instance.location, "configurations.azure_resource_name of the integration");
    }
    let version = options.take_text("azure_api_version");
    let deployment = options.take_text("azure_deployment_id");
    let api_version = version.as_ref().map_or("2024-10-21", |version| version.value.as_str());
    let named = deployment.as_ref().map(|deployment| deployment.value.as_str()).or(model);
    if let Some(named) = named {
        let deployment = json!({
            "azure_deployment_name": escaped(named),
            "azure_api_version": escaped(api_version),
            "azure_model_slug": escaped(model.unwrap_or(named)),
            "is_default": true,
        });
        configurations.insert("azure_deployment_config".to_owned(), json!([deployment]));
    }
    for text in [version, deployment].into_iter().flatten() {
        import.mapped(text.location, "azure_deployment_config of the integration");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_is_one_that_the_gateway_knows() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/providers.toml");
        let known: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        for (_, id) in PROVIDERS {
            assert!(known.contains_key(*id), "{id}");
        }
    }
}
