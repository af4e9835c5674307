//! A config made ready for requests: a tree whose leaves carry everything that applies to them, so that nothing is
//! inherited, looked up or written out while a request waits. Breakers and retry budgets live in it.

mod compile;
#[cfg(test)]
mod field_tests;

pub use compile::compile;

use crate::guardrails::GuardPlan;
use crate::request::body::edit::Edits;
use crate::routing::breaker::Breaker;
use crate::routing::latency::Latencies;
use crate::routing::retry_budget::Budget;
use crate::routing::warnings::ConfigWarnings;
use http::HeaderValue;
use shared::config::{Cache, Placement, Query, Retry, Sticky};
pub use shared::config::{PLACING, WAYS};
use std::sync::Arc;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Plan {
    /// The root first.
    nodes: Vec<Node>,
    has_breakers: bool,
    /// What was ignored or changed when it was read.
    warnings: Option<ConfigWarnings>,
}

#[derive(Debug)]
pub struct Node {
    /// `config.targets[1].targets[0]`.
    pub path: Box<str>,
    /// The same as the answer's header.
    pub option: HeaderValue,
    pub weight: f64,
    pub branch: Branch,
}

/// Targets are indexes into the plan.
#[derive(Debug)]
pub enum Branch {
    Leaf(Box<Leaf>),
    /// The first whose circuit is closed.
    Single(Vec<usize>),
    Fallback {
        statuses: Option<Vec<u16>>,
        targets: Vec<usize>,
    },
    Balance {
        targets: Vec<usize>,
        sticky: Option<Sticky>,
    },
    Conditional {
        conditions: Vec<(Query, usize)>,
        default: Option<usize>,
    },
}

/// One target with all settings that apply to it.
#[derive(Debug)]
pub struct Leaf {
    pub source: ProviderSource,
    pub edits: Edits,
    pub retry: Option<Retry>,
    pub budget: Budget,
    pub breaker: Option<Breaker>,
    /// For one attempt, until the head of the answer.
    pub request_timeout: Option<Duration>,
    /// For the whole request.
    pub total_timeout: Option<Duration>,
    pub stream_idle: Option<Duration>,
    pub heartbeat: Option<Duration>,
    pub hedge: Option<Hedging>,
    pub custom_host: Option<String>,
    pub forward_headers: Option<Vec<String>>,
    pub placement: Placement,
    /// Whether answers keep to OpenAI's own fields. Only translated answers have others to leave out.
    pub is_strict: bool,
    pub cache: Option<Cache>,
    /// The config's own id for itself, or for the part this is in.
    pub id: Option<String>,
    /// Whether a list of models is the catalog's although a provider is named.
    pub fetch_integrated_models: bool,
    /// Which guardrails and mutators look at its requests and answers; most have none.
    pub guards: Option<Box<GuardPlan>>,
    /// The stored prompt that is run in place of what the request asks for, as `slug@version`.
    pub prompt_id: Option<Box<str>>,
}

/// Fields of a config or an account that are sent as headers.
pub static SENT: &[(&str, &str)] = &[
    ("openai_organization", "openai-organization"),
    ("openai_project", "openai-project"),
    ("openai_beta", "openai-beta"),
    ("anthropic_beta", "anthropic-beta"),
    ("anthropic_version", "anthropic-version"),
    ("anthropic_aws_workspace_id", "anthropic-workspace-id"),
    ("azure_endpoint_name", "azureml-model-deployment"),
    ("azure_extra_params", "extra-parameters"),
    ("stability_client_id", "stability-client-id"),
    ("stability_client_user_id", "stability-client-user-id"),
    ("stability_client_version", "stability-client-version"),
    ("amzn_sagemaker_custom_attributes", "x-amzn-sagemaker-custom-attributes"),
    ("amzn_sagemaker_target_model", "x-amzn-sagemaker-target-model"),
    ("amzn_sagemaker_target_variant", "x-amzn-sagemaker-target-variant"),
    ("amzn_sagemaker_target_container_hostname", "x-amzn-sagemaker-target-container-hostname"),
    ("amzn_sagemaker_inference_id", "x-amzn-sagemaker-inference-id"),
    ("amzn_sagemaker_enable_explanations", "x-amzn-sagemaker-enable-explanations"),
    ("amzn_sagemaker_inference_component", "x-amzn-sagemaker-inference-component"),
    ("amzn_sagemaker_session_id", "x-amzn-sagemaker-session-id"),
    ("amzn_sagemaker_model_name", "x-amzn-sagemaker-model-name"),
];

/// Fields that say how files and batches are kept in a bucket.
pub static FILES: &[&str] = &[
    "amz_server_side_encryption",
    "amz_server_side_encryption_aws_kms_key_id",
    "aws_bedrock_model",
    "aws_s3_object_key",
    "provider_file_name",
    "provider_model",
];

/// When an attempt that has not answered gets a second one beside it.
#[derive(Debug)]
pub enum Hedging {
    After(Duration),
    /// When it is slower than this share of the answers so far.
    Percentile(f64, Box<Latencies>),
}

impl Hedging {
    /// The wait before the second attempt; None while too little is known.
    pub fn delay(&self) -> Option<Duration> {
        match self {
            Self::After(delay) => Some(*delay),
            Self::Percentile(percent, latencies) => latencies.percentile(*percent),
        }
    }

    pub fn learn(&self, took: Duration) {
        if let Self::Percentile(_, latencies) = self {
            latencies.record(took);
        }
    }
}

/// Where a target's provider comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProviderSource {
    /// What the request itself says.
    Request,
    /// A name from the table of providers.
    Named(String),
    /// The slug of a provider of the workspace.
    Stored(String),
}

impl Plan {
    pub fn node(&self, index: usize) -> &Node {
        &self.nodes[index]
    }

    /// The leaf at an index that is one: of a course, which stands only on leaves, or the one leaf of no config at all.
    pub fn leaf(&self, index: usize) -> &Leaf {
        let Branch::Leaf(leaf) = &self.nodes[index].branch else {
            panic!("{} is no leaf, and courses stand only on leaves", self.nodes[index].path)
        };
        leaf
    }

    /// Each leaf with its place in the config.
    pub fn leaves_by_path(&self) -> impl Iterator<Item = (&str, &Leaf)> {
        self.nodes.iter().filter_map(|node| match &node.branch {
            Branch::Leaf(leaf) => Some((&*node.path, &**leaf)),
            _ => None,
        })
    }

    pub fn leaves(&self) -> impl Iterator<Item = &Leaf> {
        self.nodes.iter().filter_map(|node| match &node.branch {
            Branch::Leaf(leaf) => Some(&**leaf),
            _ => None,
        })
    }

    #[must_use]
    pub fn with_warnings(mut self, warnings: Option<ConfigWarnings>) -> Self {
        self.warnings = warnings;
        self
    }

    pub fn warnings(&self) -> Option<&ConfigWarnings> {
        self.warnings.as_ref()
    }

    /// Whether any target has a circuit that can open.
    pub fn has_breakers(&self) -> bool {
        self.has_breakers
    }

    /// Whether nothing below may be used now.
    pub fn is_open(&self, index: usize, now: Instant) -> bool {
        match &self.nodes[index].branch {
            Branch::Leaf(leaf) => leaf.breaker.as_ref().is_some_and(|breaker| breaker.is_open(now)),
            Branch::Single(targets) | Branch::Fallback { targets, .. } => {
                targets.iter().all(|target| self.is_open(*target, now))
            }
            Branch::Balance { targets, .. } => {
                targets.iter().all(|target| self.nodes[*target].weight <= 0.0 || self.is_open(*target, now))
            }
            Branch::Conditional { conditions, default } => {
                let mut targets = conditions.iter().map(|(_, target)| *target).chain(*default);
                targets.all(|target| self.is_open(target, now))
            }
        }
    }

    /// Whether a request follows it because it has no config.
    pub fn is_nothing(self: &Arc<Self>) -> bool {
        Arc::ptr_eq(self, &NOTHING)
    }

    /// Of a request without a config.
    pub fn of_nothing() -> &'static Arc<Plan> {
        &NOTHING
    }
}

static NOTHING: LazyLock<Arc<Plan>> = LazyLock::new(|| Arc::new(compile(&shared::config::ConfigNode::default())));
