//! Guardrails at run time: hooks made ready from configs and rows, run on a request and its answer, and what becomes of them:
//! `hook_results`, 246 and 446, transforms, feedback. What a check is stands in `shared::guardrails`; here is when it runs.
//!
//! Checks that others answer are asked first (`remote`), by whoever has a dialer.
//!
//! Nothing here knows sockets or the engine. `engine/guard` asks before a target is called, `engine/answer/guarded` on the way back.

mod extracted_headers;
mod family;
mod hook;
mod meters;
mod moment;
mod plan;
mod read_request;
mod release;
pub(crate) mod remote;
mod results;
mod rewrite;
mod run;
mod spoken_answer;
mod text_hook;
mod unique_keys;

pub use family::{request_type, shape};
pub use hook::{CompiledCheck, CompiledHook, HookKind};
pub use meters::GuardMeters;
pub use moment::Moment;
pub use plan::{GuardPlan, HookRef, HookSide};
pub use read_request::{may_have_tokens, must_read, read_request};
pub use release::{HeldBack, Release};
pub use remote::{CallPlaces, ModelAsker, RemoteAsker, RemoteSide, SideJob, TenantPlaces, has_remote};
pub use results::{HookResult, both_sides};
pub use rewrite::Rewriting;
pub use run::{GuardInputs, SideResult, both_sides_logged, run_side};
pub use spoken_answer::SpokenAnswer;
pub use unique_keys::parse_unique;
