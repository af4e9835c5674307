//! Rules over a whole node: what must be together, what must not, and what would do nothing.

use super::fault::{Code, Path, Reading};
use super::object::guess;
use super::tree::{ConfigNode, StrategyMode};
use super::{placement, providers};
use serde_json::Value;

pub fn check(reading: &mut Reading<'_>, path: &Path<'_>, config: &ConfigNode, depth: usize) {
    shape(reading, path, config);
    names(reading, path, config);
    weights(reading, path, config);
    passthrough(reading, path, config);
    provider(reading, path, config);
    fan_out(reading, path, config, depth);
    if config.virtual_key.is_some() || config.provider.as_deref().is_some_and(|name| name.starts_with('@')) {
        placement::check_stored(reading, path, &config.placement);
    }
    if !is_useful(config) {
        reading.fault(path, Code::Useless, useless(config));
    }
}

/// A provider by its plain name is what newcomers write; what it lacks differs from what an empty config does.
fn useless(config: &ConfigNode) -> String {
    match config.provider.as_deref() {
        Some(name) => format!(
            "does nothing: `{name}` is a provider without a credential; add api_key, or name a stored one as @slug. With a \
             key of the caller's own send x-gateway-provider instead of a config, or a config with a setting such as retry"
        ),
        None => {
            "does nothing: it needs a provider with a credential, targets, or a setting such as cache or retry".into()
        }
    }
}

fn shape(reading: &mut Reading<'_>, path: &Path<'_>, config: &ConfigNode) {
    match (&config.strategy, !config.targets.is_empty()) {
        (Some(_), false) => reading.fault(&path.key("targets"), Code::Missing, "is required with a strategy"),
        (None, true) => reading.fault(&path.key("strategy"), Code::Missing, "is required with targets"),
        _ => {}
    }
}

/// Targets are found by name: two of one name, or none, would send requests to the wrong place.
fn names(reading: &mut Reading<'_>, path: &Path<'_>, config: &ConfigNode) {
    let targets = path.key("targets");
    let named: Vec<Option<&str>> = config.targets.iter().map(|target| target.name.as_deref()).collect();
    for (index, name) in named.iter().enumerate() {
        if name.is_some() && named[..index].contains(name) {
            let target = targets.index(index);
            reading.fault(&target.key("name"), Code::DuplicateName, "is the name of another target beside it");
        }
    }
    let Some(strategy) = config.strategy.as_ref().filter(|strategy| strategy.mode == StrategyMode::Conditional) else {
        return;
    };
    let strategy_path = path.key("strategy");
    let conditions = strategy_path.key("conditions");
    for (index, condition) in strategy.conditions.iter().enumerate() {
        let then = condition.then.as_str();
        if !named.contains(&Some(then)) {
            let condition = conditions.index(index);
            reading.fault(&condition.key("then"), Code::UnknownTarget, no_target(then, &named));
        }
    }
    if let Some(default) = strategy.default.as_deref().filter(|name| !named.contains(&Some(*name))) {
        reading.fault(&strategy_path.key("default"), Code::UnknownTarget, no_target(default, &named));
    }
}

fn no_target(sent: &str, named: &[Option<&str>]) -> String {
    format!("is not the name of a target{}", guess(sent, named.iter().copied().flatten()))
}

fn weights(reading: &mut Reading<'_>, path: &Path<'_>, config: &ConfigNode) {
    let is_balanced = config.strategy.as_ref().is_some_and(|strategy| strategy.mode == StrategyMode::LoadBalance);
    if is_balanced && !config.targets.is_empty() && config.targets.iter().all(|target| target.weight == Some(0.0)) {
        reading.fault(&path.key("targets"), Code::NoWeight, "must have a target whose weight is not 0");
    }
}

fn passthrough(reading: &mut Reading<'_>, path: &Path<'_>, config: &ConfigNode) {
    let excluded = config.strategy.is_some()
        || !config.targets.is_empty()
        || config.override_params.is_some()
        || !config.input_hooks.is_empty()
        || !config.output_hooks.is_empty();
    if config.passthrough && excluded {
        let message = "must stand without strategy, targets, override_params and guardrails";
        reading.fault(&path.key("passthrough"), Code::Exclusive, message);
    }
}

fn provider(reading: &mut Reading<'_>, path: &Path<'_>, config: &ConfigNode) {
    let Some(name) = config.provider.as_deref() else { return };
    match name.strip_prefix('@') {
        Some("") => reading.fault(&path.key("provider"), Code::Empty, "must have a slug after the @"),
        Some(_) => {}
        None if !providers::is_known(name, &reading.limits.further_providers) => {
            let guess = providers::guess(name, &reading.limits.further_providers);
            let message = format!("`{name}` is not a provider; stored ones are named @slug{guess}");
            reading.fault(&path.key("provider"), Code::UnknownProvider, message);
        }
        None => {}
    }
    if name == "vertex-ai" && !has_vertex_account(config) {
        let message = "vertex-ai needs vertex_region and vertex_project_id or vertex_service_account_json";
        reading.fault(path, Code::IncompleteProvider, message);
    }
}

fn has_vertex_account(config: &ConfigNode) -> bool {
    let has = |name| config.placement.has(name);
    has("vertex_region") && (has("vertex_project_id") || has("vertex_service_account_json"))
}

/// Targets at all levels below each target of the root.
fn fan_out(reading: &mut Reading<'_>, path: &Path<'_>, config: &ConfigNode, depth: usize) {
    if depth != 1 {
        return;
    }
    let most = reading.limits.nested_targets;
    if descendants(config) > most {
        let message = format!("must not have more than {most} targets at all levels below");
        reading.fault(&path.key("targets"), Code::TooMany, message);
    }
}

fn descendants(config: &ConfigNode) -> usize {
    config.targets.iter().map(|target| 1 + descendants(target)).sum()
}

/// Whether the node leads anywhere or changes anything.
fn is_useful(config: &ConfigNode) -> bool {
    let has = |name| config.placement.has(name);
    let provider = config.provider.as_deref();
    let named_by_model = config.override_params.as_ref().and_then(|params| params.get("model"));
    config.strategy.is_some()
        || !config.targets.is_empty()
        || provider.is_some_and(|name| name.starts_with('@') || name == "ollama" || name == "triton")
        || (provider.is_some() && (has("api_key") || config.custom_host.is_some()))
        || config.virtual_key.is_some()
        || config.prompt_id.is_some()
        || config.passthrough
        || config.cache.is_some()
        || config.retry.is_some()
        || config.request_timeout.is_some()
        || config.total_timeout.is_some()
        || config.hedge.is_some()
        || config.forward_headers.is_some()
        || config.default_params.is_some()
        || config.drop_params.is_some()
        || !config.input_hooks.is_empty()
        || !config.output_hooks.is_empty()
        || (has("aws_access_key_id") && has("aws_secret_access_key"))
        || has("aws_auth_type")
        || has_vertex_account(config)
        || has("azure_auth_mode")
        || (has("azure_foundry_url") && (provider.is_some() || has("azure_ad_token")))
        // `@slug/model` names the provider in the model.
        || named_by_model.and_then(Value::as_str).is_some_and(|model| model.starts_with('@'))
}
