//! Usage as every provider reports it → one form, in which no token is in two places. Which wire format it is shows in
//! its keys, so nothing has to be configured.

mod anthropic;
mod cloud;
mod openai;
mod pieces;

use rust_decimal::Decimal;
use serde_json::Value;
use std::collections::BTreeMap;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Usage {
    /// Prompt tokens of text that were neither read from nor written to a cache.
    pub input: u64,
    pub cache_read: u64,
    pub cache_write: u64,
    /// Those of `cache_write` that are kept for an hour.
    pub cache_write_1h: u64,
    pub audio_input: u64,
    pub cache_read_audio: u64,
    pub image_input: u64,
    pub cache_read_image: u64,
    /// Completion tokens of text, with those of reasoning.
    pub output: u64,
    /// Those of `output` that are reasoning.
    pub reasoning: u64,
    pub audio_output: u64,
    pub image_output: u64,
    /// Images that are priced by piece.
    pub images: Option<Images>,
    /// Searches, seconds and the like, by the name the price list has for them.
    pub units: BTreeMap<String, Decimal>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Images {
    pub quality: String,
    pub size: String,
    pub count: u64,
}

impl Usage {
    /// Reads the `usage` (or `usageMetadata`) object of an answer; None when it is none that we know.
    pub fn read(usage: &Value) -> Option<Self> {
        let keys = Keys::of(usage);
        Some(match () {
            () if keys.is_gemini => cloud::gemini(usage),
            () if keys.is_bedrock => cloud::bedrock(usage),
            () if keys.is_cohere => cloud::cohere(usage),
            () if keys.has_input && !keys.has_prompt && keys.is_anthropic => anthropic::read(usage),
            () if keys.is_openai => openai::read(usage),
            () if keys.has_seconds => pieces::seconds(usage),
            () if keys.has_images => pieces::images(usage),
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
        ];
        kinds.into_iter().fold(0, u64::saturating_add)
    }

    pub fn completion_tokens(&self) -> u64 {
        self.output.saturating_add(self.audio_output).saturating_add(self.image_output)
    }

    fn count(mut self, name: &str, count: u64) -> Self {
        if count > 0 {
            self.units.insert(name.to_owned(), count.into());
        }
        self
    }
}

/// What the keys give away, seen in one pass: this is done for every call.
#[derive(Default)]
struct Keys {
    is_gemini: bool,
    is_bedrock: bool,
    is_cohere: bool,
    is_anthropic: bool,
    is_openai: bool,
    has_prompt: bool,
    has_input: bool,
    has_seconds: bool,
    has_images: bool,
}

impl Keys {
    fn of(usage: &Value) -> Self {
        let mut keys = Self::default();
        for key in usage.as_object().into_iter().flat_map(|usage| usage.keys()) {
            match key.as_str() {
                "promptTokenCount" | "candidatesTokenCount" | "totalTokenCount" => keys.is_gemini = true,
                "inputTokens" | "outputTokens" => keys.is_bedrock = true,
                "billed_units" => keys.is_cohere = true,
                "seconds" => keys.has_seconds = true,
                "images" => keys.has_images = true,
                "cache_creation_input_tokens" | "cache_read_input_tokens" | "cache_creation" | "server_tool_use" => {
                    keys.is_anthropic = true;
                }
                name @ ("prompt_tokens" | "input_tokens" | "total_tokens" | "completion_tokens" | "output_tokens") => {
                    keys.is_openai = true;
                    keys.has_prompt |= name == "prompt_tokens";
                    keys.has_input |= name == "input_tokens";
                }
                _ => {}
            }
        }
        keys
    }
}

/// A count at a path of keys; 0 when it is missing or no whole number.
fn at(usage: &Value, path: &[&str]) -> u64 {
    let found = path.iter().try_fold(usage, |value, key| value.get(key));
    found.and_then(Value::as_u64).unwrap_or(0)
}

/// The first of several places that has a count above 0.
fn either(usage: &Value, paths: &[&[&str]]) -> u64 {
    paths.iter().map(|path| at(usage, path)).find(|count| *count > 0).unwrap_or(0)
}

#[cfg(test)]
mod tests;
