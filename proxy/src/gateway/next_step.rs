//! Where a request goes after its head was read, and whom it takes there.

use bytes::Bytes;
use proxy::batches::{BatchesRequest, FilesRequest, ObjectStep, ProviderObjectRequest};
use proxy::context::metrics::RequestLane;
use proxy::engine::EngineRequest;
use proxy::explain::ExplainCaller;
use proxy::mcp::McpCall;
use proxy::relay::{Departure, Passage, RelayStep};

/// Where a request goes after its head was read.
#[derive(Debug)]
pub enum NextStep {
    Greeting,
    Preflight,
    ControlPlane,
    Engine(Box<EngineRequest>),
    /// A question about a request: what would become of it, or what became of it.
    Explain(ExplainCaller),
    /// To a provider, once it is known what its body asks for.
    Relay(Box<Departure>),
    /// To a provider that was found already.
    Passage(Box<Passage>),
    /// To a provider that keeps what is asked for in a form of its own.
    ProviderObject(Box<ProviderObjectRequest>),
    /// For files that the gateway keeps itself.
    Files(Box<FilesRequest>),
    /// For batches that the gateway keeps itself.
    Batches(Box<BatchesRequest>),
    /// To one MCP server, or to all of a workspace.
    Mcp(McpCall),
    /// JSON of our own making.
    Page {
        status: u16,
        body: Bytes,
    },
}

impl NextStep {
    pub fn lane(&self) -> RequestLane {
        match self {
            Self::Greeting | Self::Preflight | Self::Page { .. } => RequestLane::Page,
            Self::ControlPlane => RequestLane::ControlPlane,
            Self::Engine(_) => RequestLane::Engine,
            Self::Explain(_) => RequestLane::Explain,
            Self::Relay(_) | Self::Passage(_) | Self::ProviderObject(_) => RequestLane::Relay,
            Self::Files(_) => RequestLane::Files,
            Self::Batches(_) => RequestLane::Batches,
            Self::Mcp(_) => RequestLane::Mcp,
        }
    }
}

impl From<RelayStep> for NextStep {
    fn from(step: RelayStep) -> Self {
        match step {
            RelayStep::Passage(passage) => Self::Passage(passage),
            RelayStep::Page { status, body } => Self::Page { status, body },
        }
    }
}

impl From<ObjectStep> for NextStep {
    fn from(step: ObjectStep) -> Self {
        match step {
            ObjectStep::Object(object) => Self::ProviderObject(object),
            ObjectStep::Passage(passage) => Self::Passage(passage),
        }
    }
}
