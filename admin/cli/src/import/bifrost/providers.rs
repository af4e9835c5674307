//! Bifrost's providers and their keys.

use super::accounts;
use crate::import::bounds;
use crate::import::result::Import;
use crate::import::slug;
use crate::import::source::{Located, Location, Source};
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

/// Those whose own addresses end with the version here. Bifrost adds it by itself.
const VERSIONED: &[&str] = &["openai", "anthropic", "mistral-ai", "groq", "cerebras", "x-ai", "replicate"];
/// Those that take calls without a key.
const OPEN: &[&str] = &["ollama"];

pub fn read(name: &str, mut provider: Source, import: &mut Import) {
    let theirs = provider.value();
    let base = theirs["custom_provider_config"]["base_provider_type"].as_str();
    let Some(id) = id_of(base.unwrap_or(name)) else {
        let why = "no provider of the gateway has this name; `custom_host` of an integration takes any address";
        return import.unmapped(provider.location, why);
    };
    let has_address = theirs["network_config"]["base_url"].is_string();
    let keys = usable_keys(id, &mut provider, import);
    // Installations of one's own have an address and no key.
    let is_keyless = keys.is_empty() && theirs["keys"].as_array().is_none_or(Vec::is_empty);
    let is_reachable = has_address && !accounts::has_own_settings(id);
    if keys.is_empty() && !(is_keyless && is_reachable) {
        return import.unmapped_rest(provider, |_| "no account can be made of this provider: it has no key".to_owned());
    }
    if let Some(mut custom) = provider.take_section("custom_provider_config") {
        if let Some(base) = custom.take_text("base_provider_type") {
            import.mapped(base.location, "provider of the integration");
        }
        import.unmapped_rest(custom, |_| "what may be asked of a provider is a matter of keys' scopes".to_owned());
    }
    let (mut shared, mut config) = (Map::new(), Map::new());
    if let Some(network) = provider.take_section("network_config") {
        read_network(name, id, network, &mut shared, &mut config, import);
    }
    let mut account = SharedSettings { name, id, shared, concurrency: None };
    if let Some(mut room) = provider.take_section("concurrency_and_buffer_size") {
        if let Some(count) = room.take_count("concurrency") {
            match bounds::is_concurrency(count.value) {
                true => {
                    account.concurrency = Some(json!({ "max_in_flight": count.value }));
                    import.mapped(count.location, "concurrency.max_in_flight of the providers");
                }
                false => import.unmapped(count.location, "no bound that a provider can have"),
            }
        }
        import.unmapped_rest(room, |_| "calls wait in the order of their priority".to_owned());
    }
    let mut targets: Vec<Target> = Vec::new();
    if is_keyless {
        targets.push(Target { provider: account.write_keyless(&provider.location, import), weight: None });
    }
    targets.extend(keys.into_iter().map(|key| account.write(key, import)));
    if targets.len() > 1 || !config.is_empty() {
        write_config(name, targets, config, import);
    } else {
        for weight in targets.into_iter().filter_map(|target| target.weight) {
            import.unmapped(weight.location, "there is no other key that could be chosen");
        }
    }
    import.unmapped_rest(provider, |_| "no field of an account or a target".to_owned());
}

fn id_of(name: &str) -> Option<&'static str> {
    let renamed = NAMES.iter().find(|(theirs, _)| *theirs == name).map(|(_, ours)| *ours);
    renamed.or_else(|| SAME.iter().copied().find(|same| *same == name))
}

/// The keys of which an account can be made; the others are told as a whole.
fn usable_keys(id: &str, provider: &mut Source, import: &mut Import) -> Vec<Source> {
    let mut usable = Vec::new();
    for key in provider.take_items("keys") {
        match accounts::missing(id, &key, import) {
            None if usable.len() == bounds::MAX_TARGETS => {
                import.unmapped(key.location, format!("a config has at most {} targets", bounds::MAX_TARGETS));
            }
            None => usable.push(key),
            Some(why) => import.unmapped(key.location, why),
        }
    }
    usable
}

fn read_network(
    name: &str,
    id: &str,
    mut network: Source,
    shared: &mut Map<String, Value>,
    config: &mut Map<String, Value>,
    import: &mut Import,
) {
    if let Some(base) = network.take_text("base_url") {
        let path = if VERSIONED.contains(&id) { "/v1" } else { "" };
        let own_name = slug::variable(&format!("{name} address"));
        shared.insert("custom_host".to_owned(), import.address(&base, path, &own_name).into());
        import.mapped(base.location, "configurations.custom_host of the integrations");
    }
    if let Some(seconds) = network.take_number("default_request_timeout_in_seconds") {
        let timeout = bounds::timeout(bounds::from_seconds(seconds), "config", import);
        config.insert("request_timeout".to_owned(), timeout);
    }
    if let Some(retries) = network.take_count("max_retries") {
        config.insert("retry".to_owned(), bounds::retry(retries, "config", import));
    }
    let mut headers = Map::new();
    for (header, value) in network.take_section("extra_headers").map(Source::into_fields).unwrap_or_default() {
        match value.value().as_str() {
            Some(text) => {
                let own_name = slug::variable(&format!("{name} {header}"));
                headers.insert(header, import.credential(&value.location, text, &own_name).into());
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

/// A provider by its slug, and the share of calls that goes there.
struct Target {
    provider: String,
    weight: Option<Located<f64>>,
}

/// What the accounts of one provider have in common.
struct SharedSettings<'a> {
    name: &'a str,
    id: &'static str,
    shared: Map<String, Value>,
    concurrency: Option<Value>,
}

impl SharedSettings<'_> {
    /// An integration and its provider.
    fn write(&self, mut key: Source, import: &mut Import) -> Target {
        let named = key.take_text("name").or_else(|| key.take_text("id"));
        let title = named.as_ref().map_or(self.name, |named| named.value.as_str());
        let slug = import.free_slug("integration", &format!("{}-{title}", self.name));
        let location = key.location.clone();
        let value = key.take_text("value").filter(|value| !value.value.is_empty());
        let credential = value.map(|value| {
            let own_name = slug::variable(&format!("{slug} key"));
            let variable = import.credential(&value.location, &value.value, &own_name);
            import.mapped(value.location, "key of the integration");
            variable
        });
        let mut configurations = self.shared.clone();
        accounts::read(self.id, &slug, credential.is_some(), &mut key, &mut configurations, import);
        let credential = credential.or_else(|| self.wanted_key(&slug, &configurations, &location, import));
        let weight = key.take_weight("weight");
        let provider = self.add(title, &slug, credential, configurations, import);
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
        Target { provider, weight }
    }

    fn write_keyless(&self, location: &Location, import: &mut Import) -> String {
        let slug = import.free_slug("integration", self.name);
        let credential = self.wanted_key(&slug, &self.shared, location, import);
        self.add(self.name, &slug, credential, self.shared.clone(), import)
    }

    /// A variable for a key that the file does not have and the gateway asks for.
    fn wanted_key(
        &self,
        slug: &str,
        configurations: &Map<String, Value>,
        location: &Location,
        import: &mut Import,
    ) -> Option<String> {
        if OPEN.contains(&self.id) || !accounts::needs_key(self.id, configurations) {
            return None;
        }
        let own_name = slug::variable(&format!("{slug} key"));
        Some(import.wanted(location, slug, &own_name, "the key, or to any text where none is asked for,"))
    }

    fn add(
        &self,
        title: &str,
        slug: &str,
        key: Option<String>,
        configurations: Map<String, Value>,
        import: &mut Import,
    ) -> String {
        let title = escaped(&slug::title(title));
        let mut spec = Map::new();
        spec.insert("name".to_owned(), title.clone().into());
        spec.insert("ai_provider_id".to_owned(), self.id.into());
        spec.extend(key.map(|key| ("key".to_owned(), key.into())));
        if !configurations.is_empty() {
            spec.insert("configurations".to_owned(), configurations.into());
        }
        import.add("integration", slug, spec);
        let provider_slug = import.free_slug("provider", slug);
        let mut provider = Map::new();
        provider.insert("name".to_owned(), title.into());
        provider.insert("integration_id".to_owned(), slug.into());
        provider.extend(self.concurrency.clone().map(|concurrency| ("concurrency".to_owned(), concurrency)));
        import.add("provider", &provider_slug, provider);
        provider_slug
    }
}

fn write_config(name: &str, targets: Vec<Target>, mut config: Map<String, Value>, import: &mut Import) {
    let mode = if targets.len() == 1 { "single" } else { "loadbalance" };
    let given: Vec<Option<f64>> = targets.iter().map(|target| target.weight.as_ref().map(|one| one.value)).collect();
    let mut written = Vec::new();
    for (target, weight) in targets.into_iter().zip(bounds::weights(&given)) {
        if let Some(given) = target.weight {
            import.mapped(given.location, "weight of the target");
        }
        written.push(json!({ "provider": format!("@{}", target.provider), "weight": weight }));
    }
    config.insert("strategy".to_owned(), json!({ "mode": mode }));
    config.insert("targets".to_owned(), written.into());
    let mut spec = Map::new();
    spec.insert("name".to_owned(), escaped(&slug::title(&format!("Keys of {name}"))).into());
    spec.insert("config".to_owned(), config.into());
    let slug = import.free_slug("config", name);
    import.add("config", &slug, spec);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_is_one_that_the_gateway_knows_with_the_version_in_its_address_or_not() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conf/providers.toml");
        let known: toml::Table = std::fs::read_to_string(path).unwrap().parse().unwrap();
        for id in NAMES.iter().map(|(_, id)| id).chain(SAME) {
            let base = known[*id].get("base_url").and_then(|base| base.as_str()).unwrap_or_default();
            assert_eq!(VERSIONED.contains(id), base.ends_with("/v1"), "{id}: {base}");
        }
    }
}
