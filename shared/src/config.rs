//! The config object: which providers a request may go to, in which order, with which settings. One schema for saved
//! and inline configs, so that both mean the same; admin refuses by it what the proxy would not understand.
//!
//! It is read by hand rather than derived: a reader who wrote five mistakes wants to hear of five, each by its path,
//! and inline configs are read more kindly than saved ones.

pub mod credentials;
mod fault;
mod fields;
mod forward;
mod hooks;
mod host;
mod inherited;
mod node;
mod object;
mod param_path;
mod placement;
mod providers;
mod query;
mod rules;
mod settings;
mod strategy;
mod tree;

pub use crate::settings::config_limits::ConfigLimits;
pub use fault::{Code, Fault};
pub use fields::{NESTED_FIELDS, QUERY_OPERATORS};
pub use hooks::{RESERVED as HOOK_FIELDS, shorthand_check};
pub use host::check as check_custom_host;
pub use inherited::Inherited;
pub use node::FIELDS;
pub use param_path::{ParamPath, ParamStep};
pub use placement::{PLACING, Placement, WAYS, field_names as placement_fields, field_words as placement_words};
pub use query::{Pattern, Query, QueryKey, QueryOperator, number_of};
pub use tree::{
    Cache, CacheMode, CircuitBreaker, ConfigCondition, ConfigNode, Hedge, HookSet, Jitter, Retry, Sticky, Strategy,
    StrategyMode,
};

use fault::{Path, Reading};
use serde_json::Value;

/// How kindly a config is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// Somebody will rely on it for months: whatever we would ignore is refused.
    Saved,
    /// Sent with a request, perhaps by a client that knows more fields than we do.
    Inline,
}

/// Reads a config, or says everything that is wrong with it.
pub fn parse_config(value: &Value, strictness: Strictness, limits: &ConfigLimits) -> Result<ConfigNode, Vec<Fault>> {
    parse_config_warning(value, strictness, limits).map(|(config, _)| config)
}

/// The same with what was ignored or changed in a config that came with a request: unknown fields, numbers out of range.
pub fn parse_config_warning(
    value: &Value,
    strictness: Strictness,
    limits: &ConfigLimits,
) -> Result<(ConfigNode, Vec<Fault>), Vec<Fault>> {
    let mut reading = Reading::new(strictness, limits);
    let config = node::parse(&mut reading, Path::ROOT, value, 0);
    reading.result(config)
}

#[cfg(test)]
mod tests;
