//! A config as it was written, with types. Nothing is inherited here: that is the plan's business.

use super::{ParamPath, Placement, Query};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// A node: the root, or a target, which is a config again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ConfigNode {
    pub strategy: Option<Strategy>,
    pub targets: Vec<ConfigNode>,
    pub name: Option<String>,
    pub id: Option<String>,
    /// A name from the table of providers, or `@slug`.
    pub provider: Option<String>,
    pub virtual_key: Option<String>,
    pub prompt_id: Option<String>,
    pub passthrough: bool,
    pub weight: Option<f64>,
    pub override_params: Option<Map<String, Value>>,
    pub default_params: Option<Map<String, Value>>,
    pub drop_params: Option<Vec<ParamPath>>,
    pub cache: Option<Cache>,
    pub retry: Option<Retry>,
    /// Milliseconds for one attempt, until the answer's head.
    pub request_timeout: Option<u64>,
    /// Milliseconds for the whole request.
    pub total_timeout: Option<u64>,
    pub stream_idle_timeout: Option<u64>,
    pub stream_heartbeat: Option<u64>,
    pub hedge: Option<Hedge>,
    pub custom_host: Option<String>,
    /// In lower case.
    pub forward_headers: Option<Vec<String>>,
    pub strict_open_ai_compliance: Option<bool>,
    pub fetch_integrated_models: Option<bool>,
    pub input_hooks: HookSet,
    pub output_hooks: HookSet,
    pub cb_config: Option<CircuitBreaker>,
    /// Credentials and other fields that belong to one provider, `api_key` included.
    pub placement: Placement,
}

impl ConfigNode {
    /// Says whose row this was read from, so that its sealed credentials can be opened there and nowhere else.
    pub fn sealed_in(&mut self, organisation: Uuid, config: Uuid) {
        self.placement.seal_in(organisation, config);
        for target in &mut self.targets {
            target.sealed_in(organisation, config);
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Strategy {
    pub mode: StrategyMode,
    pub on_status_codes: Option<Vec<u16>>,
    pub conditions: Vec<ConfigCondition>,
    pub default: Option<String>,
    pub sticky: Option<Sticky>,
    pub cb_config: Option<CircuitBreaker>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StrategyMode {
    Single,
    LoadBalance,
    Fallback,
    Conditional,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ConfigCondition {
    pub query: Query,
    /// The name of a target beside it.
    pub then: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sticky {
    pub enabled: bool,
    /// `metadata.user_id`, `params.a.b`, or `prompt_prefix`.
    pub hash_fields: Vec<String>,
    pub ttl_seconds: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Retry {
    /// Tries after the first, at most 5.
    pub attempts: u8,
    pub on_status_codes: Option<Vec<u16>>,
    pub use_retry_after_header: bool,
    pub jitter: Jitter,
    /// Retries per hundred first tries of a target.
    pub budget_percent: f64,
}

impl Retry {
    /// As explanations show it, of a request that was and of one that would be.
    pub fn shown(&self) -> Value {
        json!({
            "attempts": self.attempts,
            "on_status_codes": self.on_status_codes,
            "use_retry_after_header": self.use_retry_after_header,
            "jitter": if self.jitter == Jitter::Full { "full" } else { "none" },
            "budget_percent": self.budget_percent,
        })
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Jitter {
    #[default]
    None,
    Full,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cache {
    pub mode: CacheMode,
    pub max_age_seconds: Option<u64>,
    /// Equal requests that come while the first one is answered wait for its answer.
    pub coalesces: bool,
    /// The least cosine of a question in other words; the operator's when absent.
    pub similarity: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheMode {
    Simple,
    Semantic,
}

#[derive(Debug, Clone, PartialEq)]
pub struct CircuitBreaker {
    pub failure_threshold: Option<u64>,
    pub failure_threshold_percentage: Option<f64>,
    pub minimum_requests: Option<u64>,
    pub cooldown_interval_ms: u64,
    /// None: every status from 500 on.
    pub failure_status_codes: Option<Vec<u16>>,
}

/// When a second attempt starts beside one that has not answered.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Hedge {
    AfterMs(u64),
    Percentile(f64),
}

/// The checks of one side, in the order they run. Their insides belong to guardrails.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct HookSet {
    pub hooks: Option<Vec<Value>>,
    pub guardrails: Option<Vec<Value>>,
    pub mutators: Option<Vec<Value>>,
}

impl HookSet {
    /// Whether the node says anything about this side.
    pub fn is_empty(&self) -> bool {
        [&self.hooks, &self.guardrails, &self.mutators].iter().all(|list| list.as_ref().is_none_or(Vec::is_empty))
    }
}
