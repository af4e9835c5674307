//! The gateway's data plane. A request is classified, its caller identified, its body received, its target planned,
//! the target dialled and its answer passed on; each step is a file in `stages`. `dial` opens every outbound socket,
//! `snapshot` holds all control-plane data in memory, so that no request waits for Postgres. Pingora's callbacks are
//! known to the binary alone.

pub mod background;
pub mod bodies;
pub mod body;
pub mod catalog;
pub mod circuits;
pub mod deployment;
pub mod dial;
pub mod downstream;
pub mod engine;
pub mod events;
pub mod explain;
pub mod fairness;
#[doc(hidden)]
pub mod fuzzing;
pub mod headers;
pub mod hosts;
pub mod inline;
pub mod journal;
pub mod json;
pub mod limits;
pub mod metrics;
pub mod models;
pub mod multipart;
pub mod plan;
pub mod providers;
pub mod realtime;
pub mod refusal;
pub mod request_id;
pub mod routing;
pub mod secrets;
pub mod settings;
pub mod snapshot;
pub mod stages;
mod stripes;
pub mod target;
pub mod tokens;
pub mod usage;
pub mod visit;
pub mod within;
