//! Prices of text in whole numbers, as an entry of a price list keeps them once they are asked for.

use super::usage::Usage;

/// Decimals of a cent in which prices are kept here: as many as costs are stored with.
pub const SCALE: u32 = 10;

/// Prices of a token; none where there is no rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlatRates {
    pub input: Option<u64>,
    pub cache_read: Option<u64>,
    pub cache_write: Option<u64>,
    pub output: Option<u64>,
    pub reasoning: Option<u64>,
    /// Prompts up to this length have this price.
    pub max_prompt: u64,
}

impl FlatRates {
    /// In parts of `SCALE`. None when something else was used, or more than can be counted here.
    pub fn price(&self, usage: &Usage) -> Option<u128> {
        let others = [
            usage.cache_write_1h,
            usage.cache_write_12h,
            usage.audio_input,
            usage.cache_read_audio,
            usage.image_input,
            usage.cache_read_image,
            usage.audio_output,
            usage.image_output,
            usage.video_input,
            usage.video_output,
        ];
        if others.into_iter().any(|count| count > 0) || usage.images.is_some() || !usage.units.is_empty() {
            return None;
        }
        if self.max_prompt < u64::MAX && usage.prompt_tokens() > self.max_prompt {
            return None;
        }
        let kinds = [
            (usage.input, self.input),
            (usage.cache_read, self.cache_read),
            (usage.cache_write, self.cache_write),
            (usage.output.saturating_sub(usage.reasoning), self.output),
            (usage.reasoning, self.reasoning),
        ];
        kinds
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .try_fold(0, |sum: u128, (count, price)| sum.checked_add(u128::from(count) * u128::from(price?)))
    }
}
