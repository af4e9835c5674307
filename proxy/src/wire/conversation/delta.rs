//! An answer in pieces. Parts of a choice are numbered in the order in which they begin; several may be open at once,
//! because OpenAI streams parallel calls side by side.

use super::answer::{Finish, TokenLogprob};
use super::format::{Extra, NativeValue};
use super::part::{Citation, Part, Signature};
use super::provider_error::ProviderError;
use super::usage::Usage;

#[derive(Debug, Clone, PartialEq)]
pub enum Delta {
    /// What is known before any content.
    Start {
        id: Option<String>,
        model: Option<String>,
        created: Option<u64>,
        extra: Extra,
    },
    PartBegins {
        choice: u32,
        part: u32,
        start: PartStart,
    },
    /// More of a text, a thought, a refusal or a transcript.
    Text {
        choice: u32,
        part: u32,
        text: String,
    },
    /// More of the JSON text of a call's arguments.
    Arguments {
        choice: u32,
        part: u32,
        json: String,
    },
    /// More of a sound, in base64.
    Sound {
        choice: u32,
        part: u32,
        base64: String,
    },
    Signature {
        choice: u32,
        part: u32,
        signature: Signature,
    },
    Citation {
        choice: u32,
        part: u32,
        citation: Box<Citation>,
    },
    PartEnds {
        choice: u32,
        part: u32,
    },
    Logprobs {
        choice: u32,
        tokens: Vec<TokenLogprob>,
    },
    /// Of a choice, or of the prompt.
    Safety {
        choice: Option<u32>,
        ratings: NativeValue,
    },
    Finish {
        choice: u32,
        finish: Finish,
        extra: Extra,
    },
    /// Everything counted so far: a later one replaces an earlier one.
    Usage(Usage),
    /// The vendor gave up.
    Error(ProviderError),
}

impl Delta {
    /// Whether a caller has begun to see the answer: after this there is no other provider to try.
    pub fn is_content(&self) -> bool {
        match self {
            Self::Text { text, .. } => !text.is_empty(),
            Self::Arguments { .. } | Self::Sound { .. } => true,
            Self::PartBegins { start, .. } => !matches!(start, PartStart::Text | PartStart::Thinking { .. }),
            Self::Start { .. }
            | Self::Signature { .. }
            | Self::Citation { .. }
            | Self::PartEnds { .. }
            | Self::Logprobs { .. }
            | Self::Safety { .. }
            | Self::Finish { .. }
            | Self::Usage(_)
            | Self::Error(_) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum PartStart {
    Text,
    Refusal,
    Thinking {
        id: Option<String>,
    },
    ToolUse {
        id: String,
        name: String,
        signature: Option<Signature>,
    },
    Audio {
        id: Option<String>,
    },
    /// A part that comes in one piece: an image, sealed thinking, a vendor's own block.
    Whole(Box<Part>),
}
