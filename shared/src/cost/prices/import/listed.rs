//! Models as public lists have them: whatever the format, a model of some provider with its rates in dollars.

use crate::cost::PriceMode;
use rust_decimal::Decimal;

/// A model of a list, by the names that the list uses.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedModel {
    pub provider: String,
    pub name: String,
    /// `chat`, `audio_transcription`, `video_generation` and so on; empty where the list does not say.
    pub kind: String,
    pub rates: Vec<ListedRate>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ListedRate {
    /// As LiteLLM calls it: `input_cost_per_token`. The other formats are translated into these names.
    pub name: String,
    pub mode: PriceMode,
    /// Holds for prompts of more tokens than this.
    pub above_tokens: u64,
    /// For one token, second, image and so on.
    pub dollars: Decimal,
}

/// What is not taken from a list, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The list's name of the provider, or ours once it is known.
    pub provider: String,
    pub model: String,
    pub reason: String,
}

#[derive(Debug, Default)]
pub struct ListedModels {
    pub listed: Vec<ListedModel>,
    pub refused: Vec<Refusal>,
}

impl ListedModels {
    pub fn refuse(&mut self, provider: &str, model: &str, reason: impl Into<String>) {
        self.refused.push(Refusal { provider: provider.to_owned(), model: model.to_owned(), reason: reason.into() });
    }
}
