//! Tokens, split so that no two counts overlap where they are priced apart. Sums are made when a format is written:
//! OpenAI's prompt includes what was cached, Anthropic's does not.

use super::format::Extra;

#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// Prompt tokens neither read from a cache nor written to one.
    pub fresh: u64,
    /// Prompt tokens read from a cache.
    pub cached: u64,
    /// Prompt tokens written to a cache, and of these the ones kept for an hour.
    pub cache_write: u64,
    pub cache_write_hour: u64,
    /// All tokens of the answer, thinking included.
    pub output: u64,
    /// Of these, thinking.
    pub reasoning: u64,
    /// Of the prompt, sound; of the answer, sound.
    pub audio_input: u64,
    pub audio_output: u64,
    pub accepted_prediction: u64,
    pub rejected_prediction: u64,
    pub extra: Extra,
}

impl Usage {
    /// Decision 74: what OpenAI calls prompt tokens.
    pub fn prompt(&self) -> u64 {
        self.fresh.saturating_add(self.cached).saturating_add(self.cache_write)
    }

    pub fn total(&self) -> u64 {
        self.prompt().saturating_add(self.output)
    }

    /// From a format whose prompt count includes the cached and written parts.
    pub fn from_sums(prompt: u64, cached: u64, cache_write: u64, output: u64) -> Self {
        let fresh = prompt.saturating_sub(cached).saturating_sub(cache_write);
        Self { fresh, cached, cache_write, output, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_parts_agree() {
        let usage = Usage::from_sums(100, 60, 30, 5);
        assert_eq!((usage.fresh, usage.prompt(), usage.total()), (10, 100, 105));
        let wrong = Usage::from_sums(1, 60, 30, u64::MAX);
        assert_eq!((wrong.fresh, wrong.total()), (0, u64::MAX));
    }
}
