//! What a model answers, whole.

use super::format::{Extra, NativeValue, WireFormat};
use super::part::Part;
use super::usage::Usage;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    pub id: Option<String>,
    pub model: Option<String>,
    /// Seconds since 1970, where the vendor says it.
    pub created: Option<u64>,
    pub choices: Vec<Choice>,
    pub usage: Option<Usage>,
    /// What the vendor says about the safety of the prompt.
    pub safety: Option<NativeValue>,
    pub extra: Extra,
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    pub index: u32,
    pub parts: Vec<Part>,
    pub finish: Option<Finish>,
    pub logprobs: Vec<TokenLogprob>,
    /// Ratings of this answer.
    pub safety: Option<NativeValue>,
    pub extra: Extra,
}

impl Choice {
    pub fn has_tool_use(&self) -> bool {
        self.parts.iter().any(|part| matches!(part, Part::ToolUse(_)))
    }
}

/// Why an answer ended: our word, and the vendor's own for callers who want it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    pub reason: FinishReason,
    pub native: Option<(WireFormat, String)>,
    /// Which stop sequence it was.
    pub stop_sequence: Option<String>,
}

impl Finish {
    pub fn new(reason: FinishReason) -> Self {
        Self { reason, native: None, stop_sequence: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FinishReason {
    Stop,
    StopSequence,
    /// A long turn was interrupted by the vendor and may be continued.
    Pause,
    Length,
    ContextWindow,
    ToolUse,
    ContentFilter,
    /// The model refused, in words.
    Refusal,
    /// It repeated what it must not repeat.
    Recitation,
    MalformedToolUse,
    Error,
}

impl FinishReason {
    /// The nearest of the four that every format has (contract 7.10).
    pub fn coarse(self) -> Self {
        match self {
            Self::Stop | Self::StopSequence | Self::Pause | Self::Recitation | Self::MalformedToolUse | Self::Error => {
                Self::Stop
            }
            Self::Length | Self::ContextWindow => Self::Length,
            Self::ToolUse => Self::ToolUse,
            Self::ContentFilter | Self::Refusal => Self::ContentFilter,
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct TokenLogprob {
    pub token: String,
    pub logprob: f64,
    pub bytes: Option<Vec<u8>>,
    /// The likeliest tokens in this place.
    pub top: Vec<TokenLogprob>,
}
