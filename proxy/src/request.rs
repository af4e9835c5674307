//! A request and its formats: what its path asks for, its headers, its body as JSON or a form, server-sent events. What
//! becomes of it is decided elsewhere.

pub mod body;
pub mod classify;
pub mod headers;
pub mod json;
pub(crate) mod mcp_paths;
pub mod multipart;
pub mod native_route;
mod packed_body;
pub(crate) mod past_the_gateway;
pub(crate) mod path_spelling;
pub mod realtime_head;
pub mod receive;
pub mod request_id;
pub mod sse;
pub mod text_bounds;
