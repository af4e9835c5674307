//! How large a body of a request may be, how fast it must come, and the memory that all of them share.

use crate::request::receive::{BodyMemory, BodyPace, Bounds, MemoryOwner};
use crate::runtime::tenant_share::Tenant;
use shared::model::Workspace;
use std::sync::Arc;
use std::time::Duration;

pub struct BodyLimits {
    pub max_bytes: usize,
    pub timeout: Duration,
    /// How fast a large body must come.
    pub pace: BodyPace,
    pub memory: Arc<BodyMemory>,
}

impl BodyLimits {
    /// Where what is held for the workspace counts.
    pub(crate) fn owner(&self, workspace: &Workspace) -> MemoryOwner<'_> {
        MemoryOwner { memory: &self.memory, tenant: workspace.into() }
    }

    /// What bounds a body of the tenant.
    pub(crate) fn bounds(&self, max_bytes: usize, tenant: Tenant) -> Bounds<'_> {
        Bounds { max_bytes, timeout: self.timeout, pace: self.pace, memory: &self.memory, tenant }
    }
}
