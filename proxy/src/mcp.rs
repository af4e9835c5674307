//! The Model Context Protocol between a client of ours and a server behind us: what a message asks for, whether it may be
//! shown or called, to whom a session belongs, what goes along as a credential. Bytes are passed on as they came; only what
//! must be judged is read. The order of a request is in `gateway`.
//!
//! Nothing of a session stays in this process but the connections that carry it: the server's own id travels in ours, sealed
//! for whoever opened it.

mod asker;
pub(crate) mod bridge_memory;
pub(crate) mod bridges;
mod changed_lists;
mod circuits;
mod client_message;
mod credentials;
mod exchange;
pub mod gateway;
mod identity_claims;
mod json_rpc;
mod judged_texts;
mod list_cache;
mod lists;
mod members;
mod merged_names;
mod merged_session;
mod mirrored_headers;
mod opening_streams;
mod outcome;
mod own_credentials;
mod resource_metadata;
mod server_message;
mod session;
mod signed_identity;
mod strict;
mod visible;

pub use gateway::{DrainNotice, McpCall, McpGateway};

pub use asker::{Asker, NoCredential};
pub use bridges::{Bridge, Bridges, HeldMessage, HeldSession};
pub use changed_lists::ChangedLists;
pub use circuits::{CircuitKey, McpCircuits};
pub use client_message::{Asked, ClientMessage, Incoming, parse};
pub use credentials::{CredentialSource, UpstreamHeaders};
pub use exchange::{McpEndpoint, UpstreamCall};
pub use json_rpc::{
    Fault, INVALID_PARAMS, INVALID_REQUEST, RESOURCE_NOT_FOUND, SESSION_NOT_FOUND, UPSTREAM_FAILED, fault_body,
};
pub use judged_texts::{AnswerTexts, SentTexts};
pub use list_cache::{ListCache, ListEntries};
pub use lists::{MAX_LIST, filtered, filtered_greeting, instructions_of, may_be_seen, without_instructions};
pub use merged_names::{MergedPlace, merged_name, merged_place, merged_uri, split_name, split_uri};
pub use merged_session::MergedSession;
pub use mirrored_headers::{Mirrored, mirrored};
pub use opening_streams::OpeningStreams;
pub use outcome::Outcome;
pub use own_credentials::OwnCredentials;
pub use resource_metadata::ResourceMetadata;
pub use server_message::{BadMessage, MessageKind, ServerMessage, check_message, read_messages};
pub use session::{SessionOwner, Sessions};
pub use visible::{McpTarget, Visible, person};

use http::HeaderName;

pub static SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub static PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
pub static LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// The scope that opens MCP servers.
pub const INVOKE: &str = "mcp.invoke";
/// The longest message of a client, batches included.
pub const MAX_MESSAGE: usize = 4 << 20;
/// The longest answer that is no stream.
pub const MAX_ANSWER: usize = 16 << 20;
