//! Who asks a server, and why it cannot be asked for them.

use super::own_credentials::OwnCredentials;
use crate::identity::identify::Principal;
use crate::request::headers::Aliases;
use chrono::{DateTime, Utc};
use http::HeaderMap;
use shared::model::id::UserId;

/// Who asks, and with which head.
pub struct Asker<'a> {
    pub caller: &'a Principal,
    pub user: Option<UserId>,
    pub head: &'a HeaderMap,
    /// What no server may get.
    pub own: OwnCredentials<'a>,
    /// Prefixes of the gateway's own headers, besides the usual one.
    pub aliases: &'a Aliases,
    pub now: DateTime<Utc>,
}

/// Why a server cannot be asked, in a sentence for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoCredential {
    /// The cause is in our own log.
    #[error("the credentials of this MCP server cannot be opened")]
    Unopened,
    #[error("you are not connected to this MCP server: connect first, or store a token for it")]
    NotConnected,
    #[error("this MCP server's token has expired and could not be renewed")]
    Expired,
    #[error("this MCP server knows people alone, and the key is no person's")]
    NoPerson,
    #[error("the gateway has no token for this MCP server yet")]
    NoToken,
    /// The cause is in our own log.
    #[error("this MCP server wants to know who asks, signed, and that cannot be signed")]
    Unsigned,
}
