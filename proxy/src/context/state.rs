//! Where a request stands: which target it has come to, and what its client has had of an answer.

use super::AnswerCost;
use crate::catalog::prompts::PromptRun;
use crate::catalog::providers::ProviderNumber;
use crate::journal::CacheStatus;
use crate::request::realtime::Websocket;
use crate::request::refusal::{Refusal, RefusalCode};
use crate::routing::warnings::joined;
use crate::snapshot::SavedConfig;
use http::HeaderValue;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The way through the plan.
pub struct RoutingState {
    /// The saved config that the request follows.
    pub config: Option<Arc<SavedConfig>>,
    /// The stored prompt that is run.
    pub prompt: Option<Arc<PromptRun>>,
    /// Known once a target is chosen.
    pub provider: Option<HeaderValue>,
    /// The same as metrics know it.
    pub provider_number: ProviderNumber,
    /// Calls that left for providers, second ones beside a slow first included.
    pub attempts: u8,
    /// What was ignored or changed in what the caller sent, for the answer's header.
    pub warnings: Option<HeaderValue>,
    /// What the target's format could not say of the request, for the same header.
    pub dropped: Option<String>,
    /// Which part of its config that target is.
    pub option: HeaderValue,
    /// Retries it took; -1 when they were given up.
    pub retries: i8,
    /// Time spent waiting for the upstream before its head came.
    pub upstream: Duration,
    /// When the whole request must be over.
    pub deadline: Option<Instant>,
    /// What the cache did for the present target.
    pub cache: CacheUse,
    /// A guardrail failed at the present target and let pass: what is relayed from it says so in a header.
    pub is_marked: bool,
    /// The same of its body, wherever it goes.
    pub is_body_marked: bool,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct CacheUse {
    pub status: CacheStatus,
    /// `simple` or `semantic`, where one is in effect.
    pub mode: Option<&'static str>,
    /// How long it was looked for an answer.
    pub took: Duration,
}

impl Default for RoutingState {
    fn default() -> Self {
        Self {
            config: None,
            prompt: None,
            is_marked: false,
            is_body_marked: false,
            provider: None,
            provider_number: ProviderNumber::NONE,
            attempts: 0,
            warnings: None,
            dropped: None,
            option: HeaderValue::from_static("config"),
            retries: 0,
            upstream: Duration::ZERO,
            deadline: None,
            cache: CacheUse::default(),
        }
    }
}

impl RoutingState {
    /// The provider that the prompt names, for a target that nobody names one for.
    pub fn prompt_provider(&self) -> Option<&HeaderValue> {
        self.prompt.as_ref().map(|run| &run.version.provider)
    }

    /// One more thing that was ignored, or taken otherwise.
    pub fn warn(&mut self, text: &str) {
        self.warnings = joined(self.warnings.take(), text);
    }

    /// Another target takes the place of one that was refused. One that can never be asked is told: whoever misspelt it
    /// would take it for a provider that fails.
    pub fn passes_over(&mut self, refusal: &Refusal) {
        if refusal.is_of_target() {
            let option = self.option.to_str().unwrap_or_default();
            let warning = format!("{}: {}", option.strip_prefix("config.").unwrap_or(option), refusal.message);
            self.warn(&warning);
        }
    }
}

#[derive(Default)]
pub struct AnswerState {
    /// 0 as long as there is no answer.
    pub status: u16,
    /// Why the gateway answered itself, or ended the answer.
    pub error_code: Option<RefusalCode>,
    /// Since the start, when the head of the answer was there.
    pub head_after: Option<Duration>,
    /// What it costs, where it tells.
    pub cost: Option<AnswerCost>,
    pub pulse: Heartbeats,
    /// The websocket that the connection has become.
    pub websocket: Option<Box<Websocket>>,
}

/// Comments in a stream, so that nobody takes a silent connection for a dead one. `answer` sends them.
#[derive(Debug, Default)]
pub struct Heartbeats {
    /// The longest silence; None for a request that wants no heartbeats.
    pub every: Option<Duration>,
    /// A head of our own has gone out.
    pub has_begun: bool,
}
