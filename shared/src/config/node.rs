//! Reading one node and, below it, its targets.

use super::fault::{Code, Path, Reading};
use super::object::{self, ConfigObject};
use super::tree::{ConfigNode, StrategyMode};
use super::{ParamPath, forward, hooks, host, placement, rules, settings, strategy};
use serde_json::Value;

/// The longest time anything may take: a day.
const MAX_MS: u64 = 86_400_000;
const INPUT: [&str; 3] = ["before_request_hooks", "input_guardrails", "input_mutators"];
const OUTPUT: [&str; 3] = ["after_request_hooks", "output_guardrails", "output_mutators"];

/// The fields of a node beside those that belong to one provider.
pub static FIELDS: &[&str] = &[
    "after_request_hooks",
    "before_request_hooks",
    "cache",
    "cb_config",
    "custom_host",
    "default_params",
    "drop_params",
    "fetch_integrated_models",
    "forward_headers",
    "hedge",
    "id",
    "input_guardrails",
    "input_mutators",
    "name",
    "on_status_codes",
    "output_guardrails",
    "output_mutators",
    "override_params",
    "passthrough",
    "prompt_id",
    "provider",
    "request_timeout",
    "retry",
    "strategy",
    "stream_heartbeat",
    "stream_idle_timeout",
    "strict_open_ai_compliance",
    "strict_openai_compliance",
    "targets",
    "total_timeout",
    "virtual_key",
    "weight",
];

pub fn parse(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value, depth: usize) -> ConfigNode {
    if depth > reading.limits.depth {
        let message = format!("targets must not nest deeper than {} levels", reading.limits.depth);
        reading.fault(path, Code::TooDeep, message);
        return ConfigNode::default();
    }
    let Some(mut node) = ConfigObject::parse(reading, path, value) else { return ConfigNode::default() };
    if node.has("options") {
        let message = "is of an old version of configs: use strategy and targets";
        reading.fault(&path.key("options"), Code::OldVersion, message);
        return ConfigNode::default();
    }
    let faults = reading.faults();
    let sent_targets = node.take("targets");
    let mut config = own(reading, &mut node);
    config.placement = placement::parse(reading, &mut node);
    let reads_well = reading.faults() == faults;
    match targets(reading, path, sent_targets, &config, depth) {
        Some(targets) => config.targets = targets,
        None => return config,
    }
    // Rules over what was not understood would only repeat that.
    if reads_well {
        rules::check(reading, path, &config, depth);
    }
    config
}

/// Everything but the targets and what belongs to one provider.
fn own(reading: &mut Reading<'_>, node: &mut ConfigObject<'_, '_>) -> ConfigNode {
    let path = node.path;
    let legacy_codes = node.statuses(reading, "on_status_codes");
    let mut strategy = node.take("strategy").and_then(|value| strategy::parse(reading, &path.key("strategy"), value));
    if let Some(strategy) = &mut strategy {
        strategy.on_status_codes = strategy.on_status_codes.take().or(legacy_codes);
    }
    ConfigNode {
        strategy,
        name: node.text(reading, "name"),
        id: node.text(reading, "id"),
        provider: node.text(reading, "provider"),
        virtual_key: node.text(reading, "virtual_key"),
        prompt_id: node.text(reading, "prompt_id"),
        passthrough: node.flag(reading, "passthrough").unwrap_or(false),
        weight: node.number(reading, "weight", 0.0..=1e9),
        override_params: node.opaque(reading, "override_params"),
        default_params: node.opaque(reading, "default_params"),
        drop_params: drop_params(reading, node),
        cache: node.take("cache").and_then(|value| settings::cache(reading, &path.key("cache"), value)),
        retry: node.take("retry").and_then(|value| settings::retry(reading, &path.key("retry"), value)),
        request_timeout: node.integer(reading, "request_timeout", 1..=MAX_MS),
        total_timeout: node.integer(reading, "total_timeout", 1..=MAX_MS),
        stream_idle_timeout: node.integer(reading, "stream_idle_timeout", 1..=MAX_MS),
        stream_heartbeat: node.integer(reading, "stream_heartbeat", 100..=MAX_MS),
        hedge: node.take("hedge").and_then(|value| settings::hedge(reading, &path.key("hedge"), value)),
        custom_host: custom_host(reading, node),
        forward_headers: forward::parse(reading, node),
        strict_open_ai_compliance: compliance(reading, node),
        fetch_integrated_models: node.flag(reading, "fetch_integrated_models"),
        input_hooks: hooks::parse(reading, node, INPUT),
        output_hooks: hooks::parse(reading, node, OUTPUT),
        cb_config: node
            .take("cb_config")
            .and_then(|value| settings::circuit_breaker(reading, &path.key("cb_config"), value)),
        ..ConfigNode::default()
    }
}

/// Two spellings are about, as of the header.
fn compliance(reading: &mut Reading<'_>, node: &mut ConfigObject<'_, '_>) -> Option<bool> {
    let ours = node.flag(reading, "strict_open_ai_compliance");
    ours.or(node.flag(reading, "strict_openai_compliance"))
}

fn custom_host(reading: &mut Reading<'_>, node: &mut ConfigObject<'_, '_>) -> Option<String> {
    let url = node.text(reading, "custom_host")?;
    if let Err(rule) = host::check(&url) {
        reading.fault(&node.path.key("custom_host"), Code::BadHost, format!("is not usable: {rule}"));
    }
    Some(url)
}

fn drop_params(reading: &mut Reading<'_>, node: &mut ConfigObject<'_, '_>) -> Option<Vec<ParamPath>> {
    let texts = node.texts(reading, "drop_params")?;
    let path = node.path.key("drop_params");
    let paths = texts.iter().enumerate().filter_map(|(index, text)| {
        let parsed = ParamPath::parse(text);
        if parsed.is_none() {
            let message = "must be a path as a, a.b, a[0].b or a[*].b";
            reading.fault(&path.index(index), Code::BadPath, message);
        }
        parsed
    });
    Some(paths.collect())
}

/// None when there is no telling what they are. Too many are not even read: the bound is on our work.
fn targets(
    reading: &mut Reading<'_>,
    path: &Path<'_>,
    value: Option<&Value>,
    config: &ConfigNode,
    depth: usize,
) -> Option<Vec<ConfigNode>> {
    let path = path.key("targets");
    let Some(value) = value else { return Some(Vec::new()) };
    let items = object::array(reading, &path, value)?;
    let is_conditional = config.strategy.as_ref().is_some_and(|strategy| strategy.mode == StrategyMode::Conditional);
    let most = match (depth, is_conditional) {
        (0, true) => reading.limits.conditional_root_targets,
        (0, false) => reading.limits.root_targets,
        _ => reading.limits.nested_targets,
    };
    if items.len() > most {
        reading.fault(&path, Code::TooMany, format!("must not have more than {most} targets"));
        return None;
    }
    if items.is_empty() {
        reading.fault(&path, Code::Empty, "must have a target");
        return None;
    }
    let read = items.iter().enumerate().map(|(index, item)| parse(reading, &path.index(index), item, depth + 1));
    Some(read.collect())
}
