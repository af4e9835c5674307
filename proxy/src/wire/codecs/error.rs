//! Why a body could not be read or written, always with the name of the field.

use crate::wire::conversation::{NativeValue, ProviderError, WireFormat};

/// Of the type of a tool, which a caller chooses.
const MAX_KIND: usize = 64;

#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CodecError {
    #[error("the body is not valid JSON: {0}")]
    Malformed(String),
    #[error("`{field}` {problem}")]
    Field { field: String, problem: String },
    /// The field is understood, but the provider's format cannot say it and it is not one that may be dropped.
    #[error("`{field}` cannot be sent to a provider of the {format:?} format{hint}")]
    Unsupported { field: String, format: WireFormat, hint: &'static str },
    #[error("`{field}` has more than {most} entries")]
    TooMany { field: String, most: usize },
    /// The body says that the vendor failed.
    #[error("the provider failed: {}", .0.message)]
    Failed(Box<ProviderError>),
    #[error("the stream ended before its end")]
    CutStream,
}

impl CodecError {
    pub fn unsupported(field: impl Into<String>, format: WireFormat) -> Self {
        Self::Unsupported { field: field.into(), format, hint: "" }
    }

    pub fn unsupported_tool(index: usize, tool: &NativeValue, format: WireFormat) -> Self {
        let kind: String = tool.kind().chars().take(MAX_KIND).collect();
        Self::unsupported(format!("tools[{index}] ({kind})"), format)
    }

    pub fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }
}
