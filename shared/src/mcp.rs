//! The Model Context Protocol, as far as its messages must be read: asking a server who it is and what it offers. Pure:
//! no socket and no clock, so that admin's client and the proxy can use the same words.

mod capability;
mod events;
mod message;
mod token_rules;

pub use capability::{Capability, INSTRUCTIONS, Kind, ListPage, Unreadable};
pub use events::{EventReader, TooLong};
pub use message::{Answer, ServerInfo, answer_to, initialize, initialized, list};
pub use token_rules::TokenRules;

/// What logs and policies call servers, where models have their provider.
pub const SERVICE: &str = "mcp";
/// The revision that is offered first; a server may choose an older one.
pub const REVISION: &str = "2025-06-18";
