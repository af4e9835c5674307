//! A request: what its path asks for, its headers, its body as JSON or a form, realtime sessions, and why the gateway refuses one
//! (`refusal`). What becomes of it is decided elsewhere.

pub mod batch_creation;
pub mod body;
pub mod classify;
pub mod headers;
pub mod limit_headers;
pub(crate) mod mcp_paths;
pub mod multipart;
pub mod native_route;
pub mod off_thread;
mod packed_body;
pub(crate) mod past_the_gateway;
pub(crate) mod path_spelling;
pub mod realtime;
pub mod realtime_head;
pub mod receive;
pub mod refusal;
pub mod request_id;
pub mod text_bounds;
