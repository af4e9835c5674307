//! One model in the middle of every translation: what a caller asks, what a model answers, and the same answer in
//! pieces, in no vendor's words. A body is read into it only where two formats differ or something must be rewritten;
//! bodies that stay in one format pass as bytes and never come here.
//!
//! What a format has and the model has not is kept beside it, tagged with the format, and goes back to that format only.

pub mod answer;
pub mod assembler;
pub mod carried_tools;
pub mod delta;
pub mod format;
pub mod part;
pub mod pieces;
pub mod provider_error;
pub mod request;
pub mod settings;
pub mod usage;

pub use answer::{Answer, Choice, Finish, FinishReason, TokenLogprob};
pub use assembler::{AnswerTooLarge, Assembler, MAX_ANSWER};
pub use carried_tools::{CarriedAs, CarriedTool, CarriedTools};
pub use delta::{Delta, PartStart};
pub use format::{Extra, NativeValue, WireFormat};
pub use part::{
    CacheControl, Citation, Media, MediaSource, Part, Signature, Signer, TextPart, Thinking, ToolResult, ToolUse,
};
pub use pieces::Pieces;
pub use provider_error::{ErrorKind, ProviderError};
pub use request::{FunctionTool, JsonSchemaFormat, Request, ResponseFormat, Role, SystemText, Tool, ToolChoice, Turn};
pub use settings::{Effort, Reasoning, Settings};
pub use usage::Usage;
