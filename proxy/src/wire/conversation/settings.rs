//! How a model is to answer: sampling, lengths, reasoning. A setting is `None` when the caller did not say it, and is
//! then not written.

use serde_json::{Map, Value};

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    pub max_tokens: Option<u64>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u64>,
    pub stop: Vec<String>,
    pub seed: Option<i64>,
    /// How many answers.
    pub n: Option<u64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub logit_bias: Option<Map<String, Value>>,
    pub logprobs: Option<bool>,
    pub top_logprobs: Option<u64>,
    pub parallel_tool_calls: Option<bool>,
    pub reasoning: Reasoning,
    /// The caller's own user.
    pub user: Option<String>,
    pub metadata: Option<Map<String, Value>>,
    pub service_tier: Option<String>,
    /// `text`, `audio`, `image`.
    pub modalities: Vec<String>,
    /// OpenAI's voice and format of a spoken answer.
    pub audio: Option<Map<String, Value>>,
    /// Google's list of categories and thresholds.
    pub safety_settings: Option<Vec<Value>>,
    pub is_streaming: bool,
    /// Whether a stream shall end with its usage.
    pub include_usage: Option<bool>,
}

impl Settings {
    /// Whether the caller set it, by the name it has in chat. Formats list what they cannot say in these names.
    pub fn is_set(&self, name: &str) -> bool {
        match name {
            "top_k" => self.top_k.is_some(),
            "seed" => self.seed.is_some(),
            "n" => self.n.is_some_and(|n| n > 1),
            "presence_penalty" => self.presence_penalty.is_some(),
            "frequency_penalty" => self.frequency_penalty.is_some(),
            "logit_bias" => self.logit_bias.is_some(),
            "logprobs" => self.logprobs == Some(true),
            "top_logprobs" => self.top_logprobs.is_some(),
            "parallel_tool_calls" => self.parallel_tool_calls.is_some(),
            "reasoning_effort" => self.reasoning != Reasoning::default(),
            "user" => self.user.is_some(),
            "metadata" => self.metadata.is_some(),
            "service_tier" => self.service_tier.is_some(),
            "modalities" => self.modalities.iter().any(|modality| modality != "text"),
            "audio" => self.audio.is_some(),
            "safety_settings" => self.safety_settings.is_some(),
            "stop" => !self.stop.is_empty(),
            _ => false,
        }
    }
}

/// What was said about thinking. An explicit budget wins over an effort.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Reasoning {
    pub effort: Option<Effort>,
    pub budget: Option<u64>,
    /// Anthropic's `adaptive`: the model decides.
    pub is_adaptive: bool,
    /// Thinking switched off by name.
    pub is_disabled: bool,
    /// Whether thoughts are to be shown: Gemini's `includeThoughts`.
    pub is_shown: Option<bool>,
    /// OpenAI's `summary`.
    pub summary: Option<String>,
}

/// OpenAI's words, in rising order, and Anthropic's `max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Effort {
    const NAMES: [(Self, &'static str); 7] = [
        (Self::None, "none"),
        (Self::Minimal, "minimal"),
        (Self::Low, "low"),
        (Self::Medium, "medium"),
        (Self::High, "high"),
        (Self::Xhigh, "xhigh"),
        (Self::Max, "max"),
    ];

    pub fn from_name(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(_, known)| known.eq_ignore_ascii_case(name)).map(|(effort, _)| *effort)
    }

    pub fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(effort, _)| *effort == self).map_or("none", |(_, name)| name)
    }
}
