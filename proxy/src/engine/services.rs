//! What the process lends to those who serve requests: each service by itself and shared, so that a capability takes what
//! it needs and no more.

use super::{Admitter, Authenticator, BodyLimits, Planner, ProviderCalls, Recorder, Router};
use crate::context::metrics::Metrics;
use crate::request::headers::Aliases;
use crate::snapshot::Snapshot;
use std::sync::Arc;

#[derive(Clone)]
pub struct Services {
    pub snapshot: Arc<Snapshot>,
    pub metrics: Arc<Metrics>,
    pub aliases: Arc<Aliases>,
    pub body_limits: Arc<BodyLimits>,
    pub authenticator: Arc<Authenticator>,
    pub recorder: Arc<Recorder>,
    pub planner: Arc<Planner>,
    pub admitter: Arc<Admitter>,
    pub router: Arc<Router>,
    pub calls: Arc<ProviderCalls>,
}
