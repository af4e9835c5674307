//! What can go wrong between us and a provider, as a closed set: metrics label by it, the engine chooses the status
//! from it. Messages are written here and never quote what was sent or received, so no secret can ride along.

use std::borrow::Cow;
use std::time::Duration;

use pingora_core::protocols::http::v2::client::PING_TIMEDOUT;
use pingora_core::{Error, ErrorType};

use super::BadHost;
use crate::runtime::memory::NoRoom;

/// Why an upstream call failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// The name did not resolve.
    Dns,
    /// The name resolved to an address the guard forbids.
    Blocked,
    Refused,
    Unreachable,
    ConnectTimeout,
    /// No TLS, or a certificate that does not prove the host.
    Tls,
    /// The connection ended before the answer did.
    Reset,
    WriteTimeout,
    FirstByteTimeout,
    IdleTimeout,
    /// What came back is not HTTP.
    Protocol,
}

impl Class {
    pub const ALL: [Self; 11] = [
        Self::Dns,
        Self::Blocked,
        Self::Refused,
        Self::Unreachable,
        Self::ConnectTimeout,
        Self::Tls,
        Self::Reset,
        Self::WriteTimeout,
        Self::FirstByteTimeout,
        Self::IdleTimeout,
        Self::Protocol,
    ];

    /// The metric label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Dns => "dns",
            Self::Blocked => "blocked",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::ConnectTimeout => "connect_timeout",
            Self::Tls => "tls",
            Self::Reset => "reset",
            Self::WriteTimeout => "write_timeout",
            Self::FirstByteTimeout => "first_byte_timeout",
            Self::IdleTimeout => "idle_timeout",
            Self::Protocol => "protocol",
        }
    }

    /// Nothing was reached at this address; another one of the same host may be reached.
    pub fn is_of_address(self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable | Self::ConnectTimeout)
    }

    /// What Pingora's error means, before any of the answer was read.
    pub fn from_error(error: &Error) -> Self {
        match error.etype() {
            ErrorType::ConnectRefused => Self::Refused,
            ErrorType::ConnectTimedout | ErrorType::TLSHandshakeTimedout => Self::ConnectTimeout,
            ErrorType::ConnectNoRoute | ErrorType::ConnectError | ErrorType::BindError | ErrorType::SocketError => {
                Self::Unreachable
            }
            ErrorType::TLSHandshakeFailure | ErrorType::InvalidCert | ErrorType::HandshakeError => Self::Tls,
            ErrorType::ReadTimedout => Self::FirstByteTimeout,
            ErrorType::WriteTimedout => Self::WriteTimeout,
            ErrorType::ReadError | ErrorType::WriteError | ErrorType::ConnectionClosed | ErrorType::H2Error => {
                Self::Reset
            }
            etype if *etype == PING_TIMEDOUT => Self::Reset,
            _ => Self::Protocol,
        }
    }
}

/// No connection came about.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct DialError {
    class: Class,
    message: Cow<'static, str>,
}

impl DialError {
    pub(super) fn new(class: Class, message: impl Into<Cow<'static, str>>) -> Self {
        Self { class, message: message.into() }
    }

    pub fn class(&self) -> Class {
        self.class
    }
}

impl From<BadHost> for DialError {
    fn from(bad: BadHost) -> Self {
        Self::new(Class::Blocked, format!("once resolved, {bad}"))
    }
}

/// The connection was there, the exchange over it failed.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct UpstreamError {
    class: Class,
    message: Cow<'static, str>,
    is_unread: bool,
    no_room: Option<NoRoom>,
}

impl UpstreamError {
    pub(super) fn new(class: Class, message: impl Into<Cow<'static, str>>) -> Self {
        Self { class, message: message.into(), is_unread: false, no_room: None }
    }

    /// The gateway cannot hold what came, which is not the provider's fault.
    pub fn no_room(why: NoRoom) -> Self {
        Self { no_room: Some(why), ..Self::new(Class::Protocol, why.to_string()) }
    }

    /// Why the gateway could not hold it, where that is the reason.
    pub fn lacks_room(&self) -> Option<NoRoom> {
        self.no_room
    }

    /// The answer is HTTP, but not what it should be.
    pub fn protocol(message: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Class::Protocol, message)
    }

    pub fn idle_timeout(waited: Duration) -> Self {
        Self::new(
            Class::IdleTimeout,
            format!("the provider sent nothing for {} ms inside its answer", waited.as_millis()),
        )
    }

    pub(super) fn unread(mut self, is_unread: bool) -> Self {
        self.is_unread = is_unread;
        self
    }

    pub fn class(&self) -> Class {
        self.class
    }

    /// The provider cannot have worked on this request: it says so, or it had closed the pooled connection before all of
    /// it came. Sending it again over a fresh connection does no work twice.
    pub fn is_unread(&self) -> bool {
        self.is_unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn every_class_has_its_own_label() {
        let labels: HashSet<_> = Class::ALL.iter().map(|class| class.label()).collect();
        assert_eq!(labels.len(), Class::ALL.len());
    }
}
