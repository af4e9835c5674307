//! What each kind of token costs, and what stands in for a rate that a price list lacks.
//!
//! Providers charge pictures that are read, reasoning and what is read from a cache like plain text unless they say otherwise, so
//! that rate holds. Sound, pictures and video that a model makes, and what is written to a cache, always cost something else: the
//! nearest rate is counted, so that no budget misses the call, and the price is not known.

use super::rates::Effective;
use super::usage::Usage;
use rust_decimal::Decimal;

/// As many tokens of a kind as were used.
pub struct TokenKind {
    pub count: u64,
    /// The key of its rate in a price list.
    pub name: &'static str,
    /// What formulas call the count; one of them is enough.
    pub in_formulas: &'static [&'static str],
    find: fn(&Effective<'_>) -> TokenRate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenRate {
    Known(Decimal),
    /// The rate of its nearest relative.
    StandIn(Decimal),
    Missing,
}

impl TokenKind {
    const fn new(
        count: u64,
        name: &'static str,
        in_formulas: &'static [&'static str],
        find: fn(&Effective<'_>) -> TokenRate,
    ) -> Self {
        Self { count, name, in_formulas, find }
    }

    pub fn rate(&self, rates: &Effective<'_>) -> TokenRate {
        (self.find)(rates)
    }
}

impl TokenRate {
    /// What is counted.
    pub const fn amount(self) -> Option<Decimal> {
        match self {
            Self::Known(rate) | Self::StandIn(rate) => Some(rate),
            Self::Missing => None,
        }
    }

    fn known(rate: Option<Decimal>) -> Self {
        rate.map_or(Self::Missing, Self::Known)
    }

    fn or_stand_in(own: Option<Decimal>, stand_in: impl FnOnce() -> Option<Decimal>) -> Self {
        own.map(Self::Known).or_else(|| stand_in().map(Self::StandIn)).unwrap_or(Self::Missing)
    }
}

/// Everything that was read.
pub fn request_kinds(usage: &Usage) -> [TokenKind; 10] {
    use TokenRate as Rate;
    let five_minutes = usage.cache_write.saturating_sub(usage.cache_write_1h).saturating_sub(usage.cache_write_12h);
    [
        TokenKind::new(usage.input, "request_token", &["input_tokens"], |rates| Rate::known(text(rates))),
        TokenKind::new(usage.cache_read, "cache_read_input_token", &["cache_read_tokens"], |rates| {
            Rate::known(cache_read(rates))
        }),
        TokenKind::new(five_minutes, "cache_write_input_token", &["cache_write_tokens"], |rates| {
            Rate::or_stand_in(own_cache_write(rates), || text(rates))
        }),
        TokenKind::new(usage.cache_write_1h, "cache_write_1h", &["cache_write_1h_tokens"], |rates| {
            Rate::or_stand_in(rates.unit("cache_write_1h"), || cache_write(rates))
        }),
        TokenKind::new(usage.cache_write_12h, "cache_write_12h", &["cache_write_12h_tokens"], |rates| {
            let shorter = || rates.unit("cache_write_1h").or_else(|| cache_write(rates));
            Rate::or_stand_in(rates.unit("cache_write_12h"), shorter)
        }),
        TokenKind::new(
            usage.audio_input,
            "request_audio_token",
            &["audio_input_tokens", "request_audio_tokens"],
            |rates| Rate::or_stand_in(audio(rates), || text(rates)),
        ),
        TokenKind::new(usage.cache_read_audio, "cache_read_audio_input_token", &["cache_read_audio_tokens"], |rates| {
            let cached = rates.first(&["cache_read_audio_input_token"]);
            Rate::or_stand_in(cached.or_else(|| audio(rates)), || text(rates))
        }),
        TokenKind::new(usage.image_input, "request_image_token", &["image_input_tokens"], |rates| {
            Rate::known(image(rates))
        }),
        TokenKind::new(usage.cache_read_image, "cache_read_image_input_token", &["cache_read_image_tokens"], |rates| {
            let cached = rates.first(&["cache_read_image_input_token", "cached_image_input_token"]);
            Rate::known(cached.or_else(|| image(rates)))
        }),
        TokenKind::new(usage.video_input, "request_video_token", &["video_input_tokens"], |rates| {
            Rate::known(rates.first(&["request_video_token"]).or_else(|| text(rates)))
        }),
    ]
}

/// Everything that was written.
pub fn response_kinds(usage: &Usage) -> [TokenKind; 5] {
    use TokenRate as Rate;
    let plain = usage.output.saturating_sub(usage.reasoning);
    [
        TokenKind::new(plain, "response_token", &["output_tokens"], |rates| Rate::known(response_text(rates))),
        TokenKind::new(usage.reasoning, "reasoning_token", &["output_tokens", "reasoning_tokens"], |rates| {
            Rate::known(thinking(rates))
        }),
        TokenKind::new(
            usage.audio_output,
            "response_audio_token",
            &["audio_output_tokens", "response_audio_tokens"],
            |rates| Rate::or_stand_in(rates.first(&["response_audio_token"]), || response_text(rates)),
        ),
        TokenKind::new(usage.image_output, "response_image_token", &["image_output_tokens"], |rates| {
            Rate::or_stand_in(rates.first(&["response_image_token"]), || response_text(rates))
        }),
        TokenKind::new(usage.video_output, "response_video_token", &["video_output_tokens"], |rates| {
            Rate::or_stand_in(rates.first(&["response_video_token"]), || response_text(rates))
        }),
    ]
}

pub fn text(rates: &Effective<'_>) -> Option<Decimal> {
    rates.first(&["request_text_token", "request_token"])
}

pub fn cache_read(rates: &Effective<'_>) -> Option<Decimal> {
    let read = rates.first(&["cache_read_text_input_token", "cached_text_input_token", "cache_read_input_token"]);
    read.or_else(|| text(rates))
}

/// Of the shortest lifetime.
pub fn own_cache_write(rates: &Effective<'_>) -> Option<Decimal> {
    rates.first(&["cache_write_input_token"])
}

/// The same, or what stands in for it.
pub fn cache_write(rates: &Effective<'_>) -> Option<Decimal> {
    own_cache_write(rates).or_else(|| text(rates))
}

/// What makes nothing but images or speech has no price for text, and counts all it makes together.
pub fn response_text(rates: &Effective<'_>) -> Option<Decimal> {
    rates.first(&["response_text_token", "response_token", "response_image_token", "response_audio_token"])
}

pub fn thinking(rates: &Effective<'_>) -> Option<Decimal> {
    let own = rates.first(&["reasoning_token"]).or_else(|| rates.unit("thinking_token"));
    own.or_else(|| response_text(rates))
}

fn audio(rates: &Effective<'_>) -> Option<Decimal> {
    rates.first(&["request_audio_token"])
}

fn image(rates: &Effective<'_>) -> Option<Decimal> {
    rates.first(&["request_image_token"]).or_else(|| text(rates))
}
