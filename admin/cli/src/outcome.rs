//! How a command ends. The numbers are an interface: pipelines decide by them.

use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    Fine = 0,
    Failed = 1,
    /// `plan`, `diff` and `drift` found differences.
    Changes = 2,
    /// `validate` and `doctor` found faults.
    Wanting = 3,
    SignIn = 4,
    Refused = 5,
    /// What was to be changed has been changed by somebody else meanwhile.
    Conflict = 6,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        (exit as u8).into()
    }
}

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Failed(String),
    #[error("{0}")]
    Wanting(String),
    #[error("{0}")]
    SignIn(String),
    #[error("{0}")]
    Refused(String),
    #[error("{0}")]
    Conflict(String),
    /// `--as-curl` printed the call in place of making it, so nothing after it can be done.
    #[error("the call is shown and not made")]
    CallIsShown,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Self::Failed(message.into())
    }

    pub fn exit(&self) -> Exit {
        match self {
            Self::Failed(_) => Exit::Failed,
            Self::Wanting(_) => Exit::Wanting,
            Self::SignIn(_) => Exit::SignIn,
            Self::Refused(_) => Exit::Refused,
            Self::Conflict(_) => Exit::Conflict,
            Self::CallIsShown => Exit::Fine,
        }
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// Names the file that could not be read or written.
pub fn at_path<T>(path: &std::path::Path, result: std::io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| Failure::new(format!("{}: {error}", path.display())))
}
