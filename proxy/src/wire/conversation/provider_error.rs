//! What a vendor says when it does not answer, in one shape.

/// The classes that clients tell apart, by HTTP status and by each format's own names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    InvalidRequest,
    Authentication,
    Billing,
    Permission,
    NotFound,
    Timeout,
    TooLarge,
    RateLimit,
    Overloaded,
    Unavailable,
    Internal,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ProviderError {
    /// As upstream said it, or as its kind implies inside a stream.
    pub status: u16,
    pub kind: ErrorKind,
    pub message: String,
    /// The vendor's own type, code and parameter.
    pub native_type: Option<String>,
    pub code: Option<String>,
    pub param: Option<String>,
}

impl ProviderError {
    pub fn new(status: u16, kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { status, kind, message: message.into(), native_type: None, code: None, param: None }
    }
}
