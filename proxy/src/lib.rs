//! The gateway's data plane. Pingora's callbacks and the process around them are the binary's (`gateway`); the rooms here are
//! listed from the top down: each may use those below it. They depend on each other in no circle, which `.ci/directions` checks.
//!
//! Capabilities, of which the head of a request chooses one. Each is a type with the services that it needs:
//! - `batches`: files and batches that the gateway keeps itself, who runs them, and those of providers in forms of their own
//! - `mcp`: servers of the Model Context Protocol: what may be seen and called, sessions, credentials
//! - `explain`: what would become of a request, and why
//! - `relay`: calls whose bytes pass as they are, realtime sessions, lists of models
//! - `engine`: calls that are understood: targets tried one after the other, hooks, translation, and the way back (`answer`)
//!
//! What they share:
//! - `cache`: responses that are cached: what makes two requests equal, for how long, and how one is given again
//! - `context`: the state of one request from its first byte to its last, the record made of it, and every metric
//! - `guardrails`: checks before a request is sent and before its response is passed on: when they run and what follows. Pure
//! - `journal`: the log of calls: on disk, to Postgres, to the log store, as traces; what a call used
//! - `limits`: which limits apply and what is admitted (`admission`); counters, reservations and leases
//! - `catalog`: what a workspace has: config, providers, models, credentials and their signatures, prompts
//! - `routing`: which target comes next: compiled plans, conditions, retries, circuit breakers. Pure
//! - `identity`: who is asking: keys, tokens, deployments, and the metadata a caller gives
//! - `snapshot`: everything of the control plane, in memory; no request waits for Postgres
//! - `request`: a request's head and body, what its path means, and why the gateway refused it (`refusal`)
//! - `net`: the sockets: every outbound connection, and the client as the other rooms see it
//! - `wire`: the formats: vendors' dialects (`codecs`), what they have in common (`conversation`), frames, JSON, tokens. Pure
//! - `runtime`: settings, background threads, timeouts, memory, numbers kept per thread

pub mod batches;
pub mod cache;
pub mod catalog;
pub mod context;
pub mod engine;
pub mod explain;
pub mod guardrails;
pub mod identity;
pub mod journal;
pub mod limits;
pub mod mcp;
pub mod net;
pub mod relay;
pub mod request;
pub mod routing;
pub mod runtime;
pub mod snapshot;
pub mod wire;

/// Readers of foreign bytes that no other crate needs, shown to the fuzz targets (`tests/fuzz`) alone.
#[doc(hidden)]
pub mod fuzzing {
    pub use crate::journal::frame::push as push_frame;
    pub use crate::journal::reader::Reader;
    pub use crate::net::dial::chunked::Chunked;
    pub use crate::net::dial::h1::parse_head;
    pub use crate::request::realtime::frames::{FramePart, Frames};
}
