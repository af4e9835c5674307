//! What a target inherits: everything that has been said on the way down to it. The proxy compiles plans by this rule, and
//! admin explains past requests by it.

use super::{Cache, CircuitBreaker, ConfigNode, Hedge, HookSet, ParamPath, Retry};
use serde_json::{Map, Value};

/// What has been said above. Objects of parameters are merged, the rest is replaced by whoever says it last.
#[derive(Debug, Clone, Default)]
pub struct Inherited {
    pub overrides: Map<String, Value>,
    pub defaults: Map<String, Value>,
    pub drops: Vec<ParamPath>,
    pub retry: Option<Retry>,
    pub request_timeout: Option<u64>,
    pub total_timeout: Option<u64>,
    pub stream_idle: Option<u64>,
    pub heartbeat: Option<u64>,
    pub hedge: Option<Hedge>,
    pub custom_host: Option<String>,
    pub forward_headers: Option<Vec<String>>,
    pub breaker: Option<CircuitBreaker>,
    pub is_strict: Option<bool>,
    pub cache: Option<Cache>,
    pub id: Option<String>,
    pub fetch_integrated_models: Option<bool>,
    /// A node that has hooks of a side has no others of that side.
    pub input_hooks: HookSet,
    pub output_hooks: HookSet,
}

impl Inherited {
    /// The same after a node further down has spoken.
    #[must_use]
    pub fn with(&self, node: &ConfigNode) -> Self {
        let merged = |above: &Map<String, Value>, own: &Option<Map<String, Value>>| {
            let mut merged = above.clone();
            merged.extend(own.iter().flatten().map(|(key, value)| (key.clone(), value.clone())));
            merged
        };
        let mut drops = self.drops.clone();
        drops.extend(node.drop_params.iter().flatten().filter(|path| !self.drops.contains(path)).cloned());
        Self {
            overrides: merged(&self.overrides, &node.override_params),
            defaults: merged(&self.defaults, &node.default_params),
            drops,
            retry: node.retry.clone().or_else(|| self.retry.clone()),
            request_timeout: node.request_timeout.or(self.request_timeout),
            total_timeout: node.total_timeout.or(self.total_timeout),
            stream_idle: node.stream_idle_timeout.or(self.stream_idle),
            heartbeat: node.stream_heartbeat.or(self.heartbeat),
            hedge: node.hedge.or(self.hedge),
            custom_host: node.custom_host.clone().or_else(|| self.custom_host.clone()),
            forward_headers: node.forward_headers.clone().or_else(|| self.forward_headers.clone()),
            breaker: node.cb_config.clone().or_else(|| self.breaker.clone()),
            is_strict: node.strict_open_ai_compliance.or(self.is_strict),
            cache: node.cache.or(self.cache),
            // The first that has one, from the root on.
            id: self.id.clone().or_else(|| node.id.clone()),
            fetch_integrated_models: node.fetch_integrated_models.or(self.fetch_integrated_models),
            input_hooks: nearest(&node.input_hooks, &self.input_hooks),
            output_hooks: nearest(&node.output_hooks, &self.output_hooks),
        }
    }
}

fn nearest(own: &HookSet, above: &HookSet) -> HookSet {
    if own.is_empty() { above.clone() } else { own.clone() }
}
