//! Who serves requests, each with its own fields: which of them a request is for, its head says (`open`).

use proxy::batches::{BatchEndpoints, FileEndpoints, ProviderObjects};
use proxy::engine::{Engine, Intake};
use proxy::explain::Explainer;
use proxy::mcp::McpGateway;
use proxy::relay::{ModelLists, RelayLane};
use std::sync::Arc;

pub struct Capabilities {
    /// Who asks, and by which config.
    pub intake: Intake,
    pub engine: Arc<Engine>,
    pub relay: Arc<RelayLane>,
    pub provider_objects: Arc<ProviderObjects>,
    pub files: FileEndpoints,
    pub batches: Arc<BatchEndpoints>,
    pub mcp: McpGateway,
    pub explainer: Explainer,
    pub models: ModelLists,
}
