//! A question to a model that the workspace itself has in its gateway. Whoever asks it does so as an ordinary chat: with the
//! workspace's limits, budgets, log and prices.

use serde_json::Value;
use std::fmt;

/// Whom to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelTarget {
    /// A saved config of the workspace, by id or slug.
    Config(String),
    /// A provider of the workspace, as `@slug`.
    Provider(String),
}

#[derive(Clone)]
pub struct ModelQuestion {
    pub target: ModelTarget,
    /// A chat, as OpenAI writes it.
    pub body: Vec<u8>,
}

impl ModelQuestion {
    pub fn new(target: ModelTarget, body: &Value) -> Self {
        Self { target, body: body.to_string().into_bytes() }
    }
}

/// What people write is not printed.
impl fmt::Debug for ModelQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes for {:?}", self.body.len(), self.target)
    }
}
