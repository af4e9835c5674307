//! Usage in the words of OpenAI and Anthropic, in which most calls are reported, counted while its JSON is read: nothing
//! is built that is not kept. That it is in another's words shows in its keys.

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

#[derive(Debug, Default)]
pub struct Counts {
    pub seen: Seen,
    pub prompt: u64,
    pub input: u64,
    pub completion: u64,
    pub output: u64,
    pub total: u64,
    pub reasoning: u64,
    /// `prompt_cache_hit_tokens`, `cached_tokens`
    pub cached: [u64; 2],
    pub cache_read: u64,
    pub cache_creation: u64,
    pub search_queries: u64,
    pub citations: u64,
    /// Of images that were embedded, and of the text beside them.
    pub pixels: u64,
    pub text: u64,
    /// The unit that a request is paid by, besides its tokens.
    pub search_context: Option<&'static str>,
    /// Of `cache_creation`: kept for twelve hours, for one, and for five minutes.
    pub twelve_hours: u64,
    pub hour: u64,
    pub five_minutes: u64,
    /// Calls of the provider's own tools, in the order of `TOOL_UNITS`.
    pub tools: [u64; TOOL_UNITS.len()],
    /// Parts of the prompt and of the completion.
    pub inward: Parts,
    pub outward: Parts,
}

/// Tools that providers run and take a fee for, by the names that price lists have for them.
pub const TOOL_UNITS: [&str; 8] = [
    "web_search",
    "x_search",
    "code_execution",
    "file_search",
    "attachment_search",
    "maps",
    "grounded_prompt",
    "image_generation",
];

/// What a request is paid by, by how much its search brings in.
pub const SEARCH_CONTEXTS: [&str; 3] = ["request_low_context", "request_medium_context", "request_high_context"];

/// An object that splits a count. It goes by several names; of two the first that counts anything holds.
#[derive(Debug, Default)]
pub struct Parts {
    pub cached: u64,
    pub cache_write: u64,
    pub audio: u64,
    pub image: u64,
    pub video: u64,
    pub reasoning: u64,
    /// Audio and images among what was cached.
    pub of_cached: [u64; 2],
}

/// What the keys give away.
#[derive(Debug, Clone, Copy, Default)]
pub struct Seen {
    pub gemini: bool,
    pub bedrock: bool,
    pub cohere: bool,
    pub anthropic: bool,
    pub openai: bool,
    pub prompt: bool,
    pub input: bool,
    /// What is no tokens.
    pub pieces: bool,
}

impl Counts {
    /// Notes that a key stands there.
    pub(super) fn see(&mut self, object: UsageObject, key: UsageKey) {
        if object != UsageObject::Whole {
            return;
        }
        let seen = &mut self.seen;
        match key {
            UsageKey::Prompt => (seen.openai, seen.prompt) = (true, true),
            UsageKey::Input => (seen.openai, seen.input) = (true, true),
            UsageKey::Completion | UsageKey::Output | UsageKey::Total => seen.openai = true,
            UsageKey::CacheRead | UsageKey::CacheCreation | UsageKey::Lifetimes | UsageKey::Tools => {
                seen.anthropic = true
            }
            UsageKey::Gemini => seen.gemini = true,
            UsageKey::Bedrock => seen.bedrock = true,
            UsageKey::Cohere => seen.cohere = true,
            UsageKey::Pieces => seen.pieces = true,
            _ => {}
        }
    }

    /// Keeps what stands there, if it is wanted. Of several the first above 0 holds.
    pub(super) fn take(&mut self, object: UsageObject, key: UsageKey, count: u64) {
        let parts = match object {
            UsageObject::Whole => return self.take_own(key, count),
            UsageObject::Inward => &mut self.inward,
            UsageObject::Outward => &mut self.outward,
            UsageObject::Lifetimes | UsageObject::Tools | UsageObject::OfCached => {
                let place = match (object, key) {
                    (UsageObject::Lifetimes, UsageKey::Hour) => &mut self.hour,
                    (UsageObject::Lifetimes, UsageKey::FiveMinutes) => &mut self.five_minutes,
                    (UsageObject::Lifetimes, UsageKey::TwelveHours) => &mut self.twelve_hours,
                    (UsageObject::Tools, UsageKey::Tool(unit)) => &mut self.tools[usize::from(unit)],
                    (UsageObject::OfCached, UsageKey::Audio) => &mut self.inward.of_cached[0],
                    (UsageObject::OfCached, UsageKey::Image) => &mut self.inward.of_cached[1],
                    _ => return,
                };
                return keep(place, count);
            }
            UsageObject::Other => return,
        };
        let place = match key {
            UsageKey::Cached => &mut parts.cached,
            UsageKey::CacheWrite => &mut parts.cache_write,
            UsageKey::Audio => &mut parts.audio,
            UsageKey::Image => &mut parts.image,
            UsageKey::Video => &mut parts.video,
            UsageKey::Reasoning => &mut parts.reasoning,
            _ => return,
        };
        keep(place, count);
    }

    fn take_own(&mut self, key: UsageKey, count: u64) {
        let place = match key {
            UsageKey::Prompt => &mut self.prompt,
            UsageKey::Input => &mut self.input,
            UsageKey::Completion => &mut self.completion,
            UsageKey::Output => &mut self.output,
            UsageKey::Total => &mut self.total,
            UsageKey::Reasoning => &mut self.reasoning,
            UsageKey::CacheHit => &mut self.cached[0],
            UsageKey::Cached => &mut self.cached[1],
            UsageKey::CacheRead => &mut self.cache_read,
            UsageKey::CacheCreation => &mut self.cache_creation,
            UsageKey::SearchQueries => &mut self.search_queries,
            UsageKey::Citations => &mut self.citations,
            UsageKey::Pixels => &mut self.pixels,
            UsageKey::Text => &mut self.text,
            _ => return,
        };
        keep(place, count);
    }
}

fn keep(place: &mut u64, count: u64) {
    if *place == 0 {
        *place = count;
    }
}

/// An object of the usage.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageObject {
    Whole,
    Inward,
    Outward,
    Lifetimes,
    Tools,
    OfCached,
    Other,
}

impl UsageObject {
    /// The one that stands at a key of this one.
    pub(super) fn at(self, key: UsageKey) -> Self {
        match (self, key) {
            (Self::Whole, UsageKey::Inward) => Self::Inward,
            (Self::Whole, UsageKey::Outward) => Self::Outward,
            (Self::Whole, UsageKey::Lifetimes) => Self::Lifetimes,
            (Self::Whole, UsageKey::Tools | UsageKey::OtherTools) => Self::Tools,
            (Self::Inward, UsageKey::OfCached) => Self::OfCached,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UsageKey {
    Prompt,
    Input,
    Completion,
    Output,
    Total,
    Reasoning,
    CacheHit,
    Cached,
    CacheRead,
    CacheCreation,
    CacheWrite,
    SearchQueries,
    Citations,
    Pixels,
    Text,
    SearchContext,
    Inward,
    Outward,
    Lifetimes,
    Tools,
    OtherTools,
    Audio,
    Image,
    Video,
    Hour,
    TwelveHours,
    FiveMinutes,
    /// The place of a unit in `TOOL_UNITS`.
    Tool(u8),
    OfCached,
    Gemini,
    Bedrock,
    Cohere,
    Pieces,
    Other,
}

impl UsageKey {
    pub(super) fn from_name(name: &str) -> Self {
        match name {
            // Ollama's, as the two of completions.
            "prompt_tokens" | "promptTokens" | "prompt_eval_count" => Self::Prompt,
            "input_tokens" => Self::Input,
            "completion_tokens" | "completionTokens" | "eval_count" => Self::Completion,
            "output_tokens" | "generated_tokens" => Self::Output,
            "total_tokens" => Self::Total,
            "reasoning_tokens" | "reasoningTokens" => Self::Reasoning,
            "prompt_cache_hit_tokens" => Self::CacheHit,
            "cached_tokens" | "cachedTokens" => Self::Cached,
            "cache_read_input_tokens" => Self::CacheRead,
            "cache_creation_input_tokens" => Self::CacheCreation,
            "cache_write_tokens" => Self::CacheWrite,
            "num_search_queries" => Self::SearchQueries,
            "citation_tokens" => Self::Citations,
            "search_context_size" => Self::SearchContext,
            "prompt_tokens_details" | "input_tokens_details" | "input_token_details" | "promptTokensDetails" => {
                Self::Inward
            }
            "completion_tokens_details"
            | "output_tokens_details"
            | "output_token_details"
            | "completionTokensDetails" => Self::Outward,
            "cache_creation" => Self::Lifetimes,
            "server_tool_use" => Self::Tools,
            // xAI's, and what the gateway counted itself.
            "server_side_tool_usage_details" | "gateway_units" => Self::OtherTools,
            "audio_tokens" => Self::Audio,
            "image_tokens" => Self::Image,
            "video_tokens" => Self::Video,
            "ephemeral_1h_input_tokens" => Self::Hour,
            "ephemeral_12h_input_tokens" => Self::TwelveHours,
            "ephemeral_5m_input_tokens" => Self::FiveMinutes,
            "web_search_requests" | "web_search_calls" | "web_search" => Self::Tool(0),
            "x_search_calls" | "x_search" => Self::Tool(1),
            "code_interpreter_calls" | "code_execution_calls" | "code_execution" => Self::Tool(2),
            "file_search_calls" | "collections_search_calls" | "file_search" => Self::Tool(3),
            "document_search_calls" | "attachment_search_calls" | "attachment_search" => Self::Tool(4),
            "maps" => Self::Tool(5),
            "grounded_prompt" => Self::Tool(6),
            "image_generation" => Self::Tool(7),
            "image_pixels" => Self::Pixels,
            "text_tokens" => Self::Text,
            "cached_tokens_details" => Self::OfCached,
            "promptTokenCount" | "candidatesTokenCount" | "totalTokenCount" => Self::Gemini,
            "inputTokens" | "outputTokens" => Self::Bedrock,
            "billed_units" => Self::Cohere,
            "seconds" | "images" | "characters" | "searches" | "pages_processed" | "video" => Self::Pieces,
            _ => Self::Other,
        }
    }
}

impl<'de> Deserialize<'de> for Counts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut counts = Self::default();
        deserializer.deserialize_any(CountPlace { counts: &mut counts, object: None, key: UsageKey::Other })?;
        Ok(counts)
    }
}

impl<'de> Deserialize<'de> for UsageKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl Visitor<'_> for KeyVisitor {
            type Value = UsageKey;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a name")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<UsageKey, E> {
                Ok(UsageKey::from_name(name))
            }
        }
        deserializer.deserialize_str(KeyVisitor)
    }
}

/// Where a value stands. The whole stands nowhere.
struct CountPlace<'c> {
    counts: &'c mut Counts,
    object: Option<UsageObject>,
    key: UsageKey,
}

impl<'de> DeserializeSeed<'de> for CountPlace<'_> {
    type Value = ();

    /// What stands at a name that means nothing is not read: a number or an escape in it that is out of range takes nothing
    /// from what the others say.
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.key {
            UsageKey::Other => IgnoredAny::deserialize(deserializer).map(drop),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for CountPlace<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<(), E> {
        if let Some(object) = self.object {
            self.counts.take(object, self.key, count);
        }
        Ok(())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<(), E> {
        self.visit_u64(u64::try_from(number).unwrap_or(0))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if self.key == UsageKey::SearchContext && self.object == Some(UsageObject::Whole) {
            self.counts.search_context = match text {
                "low" => Some(SEARCH_CONTEXTS[0]),
                "medium" => Some(SEARCH_CONTEXTS[1]),
                "high" => Some(SEARCH_CONTEXTS[2]),
                _ => None,
            };
        }
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let object = self.object.map_or(UsageObject::Whole, |object| object.at(self.key));
        while let Some(key) = fields.next_key()? {
            self.counts.see(object, key);
            fields.next_value_seed(CountPlace { counts: self.counts, object: Some(object), key })?;
        }
        Ok(())
    }
}
