//! A call whose request passed its hooks: what they said, and what its answer must pass. Shared by all tries of one target.

use super::later::{Answered, AsyncHooks, AsyncRun};
use crate::guardrails::{
    CompiledHook, GuardInputs, GuardMeters, RemoteSide, SideJob, SideResult, both_sides, both_sides_logged, has_remote,
};
use crate::journal::{HookLog, LateWork};
use crate::request::body::Fields;
use crate::request::receive::BodyMemory;
use crate::runtime::tenant_share::Tenant;
use crate::wire::conversation::WireFormat;
use bytes::Bytes;
use http::HeaderMap;
use serde_json::{Map, Value};
use shared::guardrails::{Hook, Shape};
use std::borrow::Cow;
use std::sync::Arc;
use uuid::Uuid;

/// What no hook said.
const NONE: &str = "[]";
/// What nobody looks into.
static UNREAD: Value = Value::Null;

/// A request as its hooks saw it.
pub enum SeenRequest {
    Read(Arc<Value>),
    /// They looked at its text alone, and none looks at its answer.
    Unread(Bytes),
}

pub struct GuardedCall {
    /// Those that the answer waits for.
    pub output: Vec<Arc<CompiledHook>>,
    /// What the hooks of the request said.
    pub input: SideResult,
    /// The one of them that denies it.
    pub denying: Option<Arc<CompiledHook>>,
    pub request: SeenRequest,
    /// Who asks others, where a hook has a check that they answer.
    pub remote: Option<Arc<RemoteSide>>,
    pub shape: Shape,
    pub request_type: &'static str,
    pub metadata: Map<String, Value>,
    /// Whether streams keep to their format, without events of ours.
    pub is_strict: bool,
    /// How the client is answered where a denial is an ordinary answer.
    pub format: WireFormat,
    pub request_id: Uuid,
    pub meters: Arc<GuardMeters>,
    /// Those that nobody waits for.
    pub later: Option<Arc<AsyncHooks>>,
    /// How long the request was.
    pub request_size: usize,
    /// Where what is held of its answer counts, and for whom.
    pub memory: Arc<BodyMemory>,
    pub tenant: Tenant,
}

impl GuardedCall {
    pub(super) fn inputs<'g>(&'g self, headers: &'g HeaderMap) -> GuardInputs<'g> {
        GuardInputs {
            hook: Hook::AfterRequest,
            shape: self.shape,
            request_type: self.request_type,
            request: match &self.request {
                SeenRequest::Read(request) => request,
                SeenRequest::Unread(_) => &UNREAD,
            },
            metadata: &self.metadata,
            headers,
            text: None,
        }
    }

    /// Whether a hook that nobody waits for looks at the answer.
    pub(super) fn is_looked_at_later(&self) -> bool {
        self.later.as_ref().is_some_and(|later| !later.output.is_empty())
    }

    /// Who asks others about the answer while it waits.
    pub(super) fn asker(&self) -> Option<Arc<RemoteSide>> {
        self.remote.clone().filter(|_| has_remote(&self.output))
    }

    /// The run of hooks of the answer where others must be asked.
    pub(super) fn job(
        &self,
        hooks: &[Arc<CompiledHook>],
        body: Arc<Value>,
        text: Option<String>,
        size: usize,
    ) -> SideJob {
        SideJob {
            hooks: hooks.to_vec(),
            hook: Hook::AfterRequest,
            shape: self.shape,
            request_type: self.request_type,
            request: match &self.request {
                SeenRequest::Read(request) => request.clone(),
                SeenRequest::Unread(_) => Arc::default(),
            },
            body,
            metadata: Arc::new(self.metadata.clone()),
            headers: Arc::default(),
            text: text.map(Arc::from),
            // Hooks of answers run on successes alone.
            status: Some(200),
            // Services are told of the request, too.
            size: size + self.request_size,
            meters: self.meters.clone(),
        }
    }

    pub fn model(&self) -> Cow<'_, str> {
        match &self.request {
            SeenRequest::Read(request) => request.get("model").and_then(Value::as_str).unwrap_or_default().into(),
            SeenRequest::Unread(body) => {
                let fields = Fields::parse_object(body).ok();
                fields.and_then(|fields| fields.text("model")).unwrap_or_default()
            }
        }
    }

    /// Whether an answer says what hooks said: those that nobody waits for do not count.
    pub fn tells_results(&self) -> bool {
        !self.input.hooks.is_empty() || !self.output.is_empty()
    }

    /// What hooks said, for the client.
    pub fn results(&self, output: Option<&SideResult>) -> String {
        both_sides(&self.input.to_json(), output.map(SideResult::to_json).as_deref().unwrap_or(NONE))
    }

    /// The same for the log, with what is still to be done. Nothing is written where nobody logs it.
    pub fn log(&self, output: Option<&SideResult>, answered: Answered, is_logged: bool) -> HookLog {
        let results = match is_logged {
            true => both_sides_logged(&self.input, output),
            false => String::new(),
        };
        let late = self.later.clone().and_then(|hooks| AsyncRun::new(hooks, answered));
        HookLog { results, late: late.map(|run| Box::new(run) as Box<dyn LateWork>) }
    }
}
