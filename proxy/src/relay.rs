//! The relay lane: calls whose bytes pass as they are. Pingora streams them; what must be known of a body first is read ahead, and
//! what guardrails judge is held.

pub mod admit_head;
pub mod admit_passage;
pub mod asked_model;
pub mod head_edits;
pub mod held_relay;
pub mod judge_relay;
pub mod list_models;
pub mod passage;
pub mod read_ahead;
pub mod relay_signature;
pub mod relayed_answer;
pub mod relayed_body;
pub mod relayed_place;
pub mod session;
mod turn;
pub mod upgrade;

pub use list_models::ModelLists;
pub use passage::{Passage, RelayAsk, RelayStep};
pub use read_ahead::{Departed, Departure, MAX_READ_AHEAD};

use crate::context::metrics::Metrics;
use crate::engine::{Admitter, Authenticator, BodyLimits, ProviderCalls, Router, Services};
use crate::request::headers::Aliases;
use std::sync::Arc;

/// Carries calls whose bytes pass as they are, or watches them while Pingora does.
pub struct RelayLane {
    metrics: Arc<Metrics>,
    aliases: Arc<Aliases>,
    body_limits: Arc<BodyLimits>,
    authenticator: Arc<Authenticator>,
    admitter: Arc<Admitter>,
    router: Arc<Router>,
    calls: Arc<ProviderCalls>,
}

impl RelayLane {
    pub fn new(services: &Services) -> Self {
        let Services { metrics, aliases, body_limits, authenticator, admitter, router, calls, .. } = services.clone();
        Self { metrics, aliases, body_limits, authenticator, admitter, router, calls }
    }
}
