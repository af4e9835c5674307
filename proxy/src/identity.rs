//! Who is asking: API keys (`identify`), tokens, the deployment this proxy belongs to; and the trace and metadata that a
//! caller gives its request.

pub mod agents;
pub mod deployment;
pub mod headers_to_metadata;
pub mod identify;
pub mod metadata;
pub mod tokens;
