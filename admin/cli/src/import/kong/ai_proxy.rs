//! The plugins `ai-proxy` (one target) and `ai-proxy-advanced` (several, with a balancer).

use super::accounts;
use crate::import::bounds;
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

/// The share of a target that has none of its own.
const USUAL_WEIGHT: f64 = 100.0;

pub fn read(mut plugin: Source, holder: &str, import: &mut Import) {
    let is_advanced = plugin.text("name") == Some("ai-proxy-advanced");
    let name = plugin.take_text("name");
    let Some(mut config) = plugin.take_section("config") else {
        return import.unmapped(plugin.location, "a plugin without a config");
    };
    import.unmapped_rest(plugin, |_| "no field of a config".to_owned());
    let mut targets = match is_advanced {
        true => config.take_items("targets"),
        // Of one target the fields stand in the config itself.
        false => vec![std::mem::replace(&mut config, Source::nothing())],
    };
    for target in targets.drain(targets.len().min(bounds::MAX_TARGETS)..) {
        import.unmapped(target.location, format!("a config has at most {} targets", bounds::MAX_TARGETS));
    }
    let read = targets.into_iter().filter_map(|target| read_target(target, holder, import));
    let (mut found, shares): (Vec<Value>, Vec<Option<f64>>) = read.unzip();
    if found.is_empty() {
        if let Some(name) = name {
            import.unmapped(name.location, "no target of it can be written");
        }
        return import.unmapped_rest(config, |_| "there is no target that it is about".to_owned());
    }
    let mut fields = Map::new();
    let mut mode = "loadbalance";
    if let Some(balancer) = config.take_section("balancer") {
        mode = read_balancer(balancer, &mut fields, import);
    }
    import.unmapped_rest(config, |_| "no field of a config".to_owned());
    if let Some(name) = name {
        import.mapped(name.location, "a config");
    }
    if is_advanced {
        for (target, weight) in found.iter_mut().zip(bounds::weights(&shares)) {
            target["weight"] = weight.into();
        }
    }
    let mode = if found.len() == 1 { "single" } else { mode };
    fields.insert("strategy".to_owned(), json!({ "mode": mode }));
    fields.insert("targets".to_owned(), found.into());
    let mut spec = Map::new();
    spec.insert("name".to_owned(), escaped(&slug::title(holder)).into());
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
        fields.insert("retry".to_owned(), bounds::retry(retries, "config", import));
    }
    if let Some(timeout) = balancer.take_number("read_timeout") {
        fields.insert("request_timeout".to_owned(), bounds::timeout(timeout, "config", import));
    }
    import.unmapped_rest(balancer, |_| "circuits and fallbacks are fields of the config (docs/configs.md)".to_owned());
    mode
}

/// A target and its share. Nothing where no account can be made of it, which is told as a whole.
fn read_target(mut target: Source, holder: &str, import: &mut Import) -> Option<(Value, Option<f64>)> {
    let theirs = target.value();
    let provider = theirs["model"]["provider"].as_str();
    let known = PROVIDERS.iter().find(|(name, _)| Some(*name) == provider);
    let missing = match known {
        Some((_, id)) => accounts::missing(id, &theirs),
        None => Some("no provider of the gateway: `custom_host` of an integration takes any address"),
    };
    let (Some((word, id)), None) = (known, missing) else {
        // Of a plugin with one target that is the config of the plugin, whose other fields are told with it.
        import.unmapped(target.location, missing.unwrap_or_default());
        return None;
    };
    let slug = import.free_slug("integration", &format!("{holder} {word}"));
    let mut target_fields = Map::new();
    let mut model = target.take_section("model")?;
    if let Some(provider) = model.take_text("provider") {
        import.mapped(provider.location, "provider of the integration");
    }
    let name = model.take_text("name");
    let options = model.take_section("options");
    import.unmapped_rest(model, |_| "the request says which model, or the config does".to_owned());
    let mut account = accounts::Account::new(id, &slug, target.location.clone(), import);
    account.read_auth(target.take_section("auth"));
    if let Some(mut options) = options {
        let defaults = account.default_params(&mut options);
        if !defaults.is_empty() {
            target_fields.insert("default_params".to_owned(), defaults.into());
        }
        account.read_options(options, name.as_ref().map(|name| name.value.as_str()));
    }
    account.write();
    if let Some(name) = name {
        target_fields.insert("override_params".to_owned(), json!({ "model": escaped(&name.value) }));
        import.mapped(name.location, "the model of the target");
    }
    let provider_slug = import.free_slug("provider", &slug);
    let spec = json!({ "name": provider_slug, "integration_id": slug });
    import.add("provider", &provider_slug, spec.as_object().cloned().unwrap_or_default());
    target_fields.insert("provider".to_owned(), format!("@{provider_slug}").into());
    let weight = target.take_weight("weight").map(|weight| {
        import.mapped(weight.location, "weight of the target");
        weight.value
    });
    import.unmapped_rest(target, |field| {
        match field {
            "route_type" => "each endpoint of the gateway is its own address",
            "logging" => "calls are logged with their bodies where the organisation says so",
            _ => "no field of a target",
        }
        .to_owned()
    });
    Some((target_fields.into(), Some(weight.unwrap_or(USUAL_WEIGHT))))
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
