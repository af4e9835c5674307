//! What the engine lane knows of a request before it reads the body.

use super::answer::StreamFrames;
use super::native_call::NativeCall;
use super::prepare::ProviderHeaders;
use super::prompt_call::PromptCall;
use crate::cache::CacheHeaders;
use crate::catalog::target::Target;
use crate::identity::identify::Principal;
use crate::request::classify::Endpoint;
use crate::request::multipart::Form;
use crate::routing::plan::Plan;
use serde_json::{Map, Value};
use shared::config::Retry;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What the engine lane knows of a request before it reads the body.
#[derive(Debug)]
pub struct EngineRequest {
    pub(super) endpoint: Endpoint,
    pub(super) caller: Principal,
    pub(super) plan: Arc<Plan>,
    pub(super) metadata: Map<String, Value>,
    pub(super) meant: ProviderHeaders,
    /// Whether translated answers keep to OpenAI's own fields, as far as the request says.
    pub(super) is_strict: bool,
    /// How often the request wishes to be tried again, where its config says nothing of it.
    pub(super) retry: Option<Retry>,
    /// What its headers say of the cache. In a box, as all that is rare.
    pub(super) cache: Option<Box<CacheHeaders>>,
    /// The caller wants nothing of what is said to be kept.
    pub(super) is_untracked: bool,
    /// Found already on the way to this lane.
    pub(super) first: Option<Target>,
    /// Of a body that is one, once it was read.
    pub(super) form: Option<Form>,
    /// At a vendor's own route, what its path says. In a box, as all that is rare.
    pub(super) native: Option<Box<NativeCall>>,
    /// Of a call that runs a stored prompt.
    pub(super) prompt: Option<Box<PromptCall>>,
    /// The gateway makes it for itself: it passes no guardrail and asks no cache.
    pub(super) is_own: bool,
    /// It is a row of a batch: at providers whose calls wait for their turn it lets others go first.
    pub(crate) batch: Option<BatchSwitch>,
}

/// Turned once the batch of a row is cancelled: nothing is asked for the row from then on.
pub type BatchSwitch = Arc<AtomicBool>;

impl EngineRequest {
    /// Whether nobody wants its answer any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.batch.as_ref().is_some_and(|cancelled| cancelled.load(Relaxed))
    }

    /// How the client takes a stream, where that is said by its route.
    pub(super) fn frames(&self) -> Option<StreamFrames> {
        self.native.as_ref().map(|native| native.frames)
    }
}
