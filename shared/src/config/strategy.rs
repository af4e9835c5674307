//! How a node chooses among its targets.

use super::fault::{Code, Path, Reading};
use super::object::ConfigObject;
use super::tree::{ConfigCondition, Sticky, Strategy, StrategyMode};
use super::{query, settings};
use serde_json::Value;

const MODES: &[(&str, StrategyMode)] = &[
    ("single", StrategyMode::Single),
    ("loadbalance", StrategyMode::LoadBalance),
    ("fallback", StrategyMode::Fallback),
    ("conditional", StrategyMode::Conditional),
];
const TTL_SECONDS: u64 = 3600;

pub fn parse(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Option<Strategy> {
    let mut fields = ConfigObject::parse(reading, path, value)?;
    if !fields.has("mode") {
        reading.fault(&path.key("mode"), Code::Missing, "is required");
    }
    let mode = fields.choice(reading, "mode", MODES);
    let is_conditional = mode == Some(StrategyMode::Conditional);
    for name in ["conditions", "default"] {
        if is_conditional && !fields.has(name) {
            reading.fault(&path.key(name), Code::Missing, "is required with the mode conditional");
        }
    }
    if is_conditional && fields.has("cb_config") && reading.is_saved() {
        let message = "conditions do not look at circuits: put it on the root or on the targets";
        reading.fault(&path.key("cb_config"), Code::Exclusive, message);
    }
    let on_status_codes = fields.statuses(reading, "on_status_codes");
    let conditions = fields.array(reading, "conditions");
    let default = fields.text(reading, "default");
    let sticky = fields.take("sticky").and_then(|value| sticky(reading, &path.key("sticky"), value));
    let breaker = fields.take("cb_config");
    let cb_config = breaker.and_then(|value| settings::circuit_breaker(reading, &path.key("cb_config"), value));
    fields.finish(reading);
    if is_conditional && conditions.is_some_and(<[Value]>::is_empty) {
        reading.fault(&path.key("conditions"), Code::Empty, "must have a condition");
    }
    let listed = path.key("conditions");
    let conditions = conditions.unwrap_or_default().iter().enumerate();
    let conditions = conditions.filter_map(|(index, value)| condition(reading, &listed.index(index), value)).collect();
    Some(Strategy { mode: mode?, on_status_codes, conditions, default, sticky, cb_config })
}

fn condition(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Option<ConfigCondition> {
    let mut fields = ConfigObject::verbatim(reading, path, value)?;
    for name in ["query", "then"] {
        if !fields.has(name) {
            reading.fault(&path.key(name), Code::Missing, "is required");
        }
    }
    let query = fields.take("query").map(|value| query::parse(reading, &path.key("query"), value));
    let then = fields.text(reading, "then");
    fields.finish(reading);
    Some(ConfigCondition { query: query?, then: then? })
}

fn sticky(reading: &mut Reading<'_>, path: &Path<'_>, value: &Value) -> Option<Sticky> {
    let mut fields = ConfigObject::parse(reading, path, value)?;
    if !fields.has("enabled") && reading.is_saved() {
        reading.fault(&path.key("enabled"), Code::Missing, "is required");
    }
    let enabled = fields.flag(reading, "enabled").unwrap_or(false);
    let hash_fields = fields.texts(reading, "hash_fields").unwrap_or_default();
    let ttl_seconds = fields.integer(reading, "ttl", 1..=u64::from(u32::MAX)).unwrap_or(TTL_SECONDS);
    fields.finish(reading);
    if enabled && hash_fields.is_empty() {
        reading.fault(&path.key("hash_fields"), Code::Missing, "is required when sticky is enabled");
    }
    let listed = path.key("hash_fields");
    if hash_fields.len() > reading.limits.hash_fields {
        let message = format!("must not have more than {} fields", reading.limits.hash_fields);
        reading.fault(&listed, Code::TooMany, message);
    }
    for (index, field) in hash_fields.iter().enumerate().filter(|(_, field)| !is_hash_field(field)) {
        let message = format!("`{field}` must be metadata.<key>, params.<path> or prompt_prefix");
        reading.fault(&listed.index(index), Code::BadPath, message);
    }
    Some(Sticky { enabled, hash_fields, ttl_seconds })
}

fn is_hash_field(field: &str) -> bool {
    let dotted = field.split_once('.').is_some_and(|(root, rest)| {
        ["metadata", "params"].contains(&root) && rest.split('.').all(|segment| !segment.is_empty())
    });
    dotted || field == "prompt_prefix"
}
