//! What became of a call, as its answer says: looked at for the log alone.

/// What a message of a server's is to the request of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// A notification, a request of the server's, or an answer to something else.
    NotYet,
    Done,
    /// The tool itself says that it failed.
    ToolFailed,
    /// An error of the protocol.
    Refused(i64),
}

impl Outcome {
    /// As a log tells it: HTTP says 200 to all of these.
    pub fn status(self) -> u16 {
        match self {
            Self::NotYet | Self::Done => 200,
            Self::ToolFailed => 422,
            Self::Refused(-32002) => 404,
            Self::Refused(-32700..=-32600) => 400,
            Self::Refused(_) => 502,
        }
    }

    pub fn is_failure(self) -> bool {
        !matches!(self, Self::NotYet | Self::Done)
    }
}
