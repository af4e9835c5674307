//! Usage as every provider reports it → one form, in which no token is in two places. Which wire format it is shows in
//! its keys, so nothing has to be configured.

mod anthropic;
mod cloud;
mod counts;
mod openai;
mod pieces;
mod reported;
mod skim;
mod words;

pub use counts::{Counts, SEARCH_CONTEXTS, TOOL_UNITS};
pub use reported::ReportedUsage;

use rust_decimal::Decimal;
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::BTreeMap;
use words::Words;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Prompt tokens of text that were neither read from nor written to a cache.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Those of `cache_write` that are kept for an hour, and for twelve.
    pub cache_write_1h: u64,
    pub cache_write_12h: u64,
    pub audio_input: u64,
    pub cache_read_audio: u64,
    pub image_input: u64,
    pub cache_read_image: u64,
    pub video_input: u64,
    /// Completion tokens of text, with those of reasoning.
    pub output: u64,
    /// Those of `output` that are reasoning.
    pub reasoning: u64,
    pub audio_output: u64,
    pub image_output: u64,
    pub video_output: u64,
    /// Images that are priced by piece.
    pub images: Option<Images>,
    /// Searches, seconds and the like, by the name the price list has for them.
    pub units: BTreeMap<String, Decimal>,
}

/// How units begin that are the seconds of a video of some resolution.
const RESOLUTIONS: &str = "video_seconds_";

/// Every unit that usage may hold beside tokens and images, by the name that price lists have for it; those of resolutions are
/// one.
pub fn unit_names() -> impl Iterator<Item = &'static str> {
    let others = ["citation_token", "image_pixels", "input_image", "video_seconds"];
    TOOL_UNITS.into_iter().chain(SEARCH_CONTEXTS).chain(pieces::UNITS.map(|(_, unit)| unit)).chain(others)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    pub quality: String,
    pub size: String,
    pub count: u64,
}

impl Usage {
    /// Reads the `usage` (or `usageMetadata`) object of an answer; None when it is none that we know.
    pub fn parse(usage: &Value) -> Option<Self> {
        Self::from_counts(&Counts::deserialize(usage).ok()?, || Words::deserialize(usage).ok())
    }

    /// `words` are the same as a whole, for those that are not counted on the way.
    fn from_counts<'w>(counts: &Counts, words: impl FnOnce() -> Option<Words<'w>>) -> Option<Self> {
        let seen = counts.seen;
        Some(match () {
            () if seen.gemini => cloud::gemini(&words()?),
            () if seen.bedrock => cloud::bedrock(&words()?),
            () if seen.cohere => cloud::cohere(&words()?),
            () if seen.input && !seen.prompt && seen.anthropic => anthropic::usage_of(counts),
            () if seen.openai => openai::usage_of(counts),
            () if seen.pieces => pieces::usage_of(&words()?),
            () => return None,
        })
    }

    /// Everything the model read, cached or not: what context tiers are measured by.
    pub fn prompt_tokens(&self) -> u64 {
        let kinds = [
            self.input,
            self.cache_read,
            self.cache_write,
            self.audio_input,
            self.cache_read_audio,
            self.image_input,
            self.cache_read_image,
            self.video_input,
        ];
        kinds.into_iter().fold(0, u64::saturating_add)
    }

    pub fn completion_tokens(&self) -> u64 {
        [self.audio_output, self.image_output, self.video_output].into_iter().fold(self.output, u64::saturating_add)
    }

    /// Whether nothing was used that anybody could charge for.
    pub fn is_nothing(&self) -> bool {
        let tokens = self.prompt_tokens()
            | self.completion_tokens()
            | self.reasoning
            | self.cache_write_1h
            | self.cache_write_12h;
        tokens == 0 && self.images.is_none() && self.units.is_empty()
    }

    /// Fees of tools that the provider runs.
    fn count_tools(self, counts: &Counts) -> Self {
        TOOL_UNITS.iter().zip(counts.tools).fold(self, |usage, (unit, count)| usage.count(unit, count))
    }

    fn count(mut self, name: &str, count: u64) -> Self {
        if count > 0 {
            self.put_unit(name.to_owned(), count.into());
        }
        self
    }

    /// Every unit of a report comes by here, so that none is forgotten where units are listed.
    fn put_unit(&mut self, name: String, amount: Decimal) {
        debug_assert!(unit_names().any(|unit| name == unit || name.starts_with(RESOLUTIONS)), "{name} is not listed");
        self.units.insert(name, amount);
    }
}

/// A count at a path of keys; 0 when it is missing or no whole number.
fn at(usage: &Words<'_>, path: &[&str]) -> u64 {
    let found = path.iter().try_fold(usage, |value, key| value.get(key));
    found.and_then(Words::count).unwrap_or(0)
}

#[cfg(test)]
mod tests;
