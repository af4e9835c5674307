//! OpenAI's usage in its three spellings (chat, responses, realtime) and with what its imitators add: here the prompt
//! contains the cached and the audio tokens.

use super::{Usage, at, either};
use serde_json::Value;

pub fn read(usage: &Value) -> Usage {
    let prompt = either(usage, &[&["prompt_tokens"], &["input_tokens"]]);
    let completion = either(usage, &[&["completion_tokens"], &["output_tokens"]]);
    let inward = Details::of(usage, ["prompt_tokens_details", "input_tokens_details", "input_token_details"]);
    let outward = Details::of(usage, ["completion_tokens_details", "output_tokens_details", "output_token_details"]);
    let cached_of = |key: &str| inward.first(&["cached_tokens_details", key]);
    let inward = |key: &str| inward.first(&[key]);
    let outward = |key: &str| outward.first(&[key]);
    let (cached_audio, cached_image) = (cached_of("audio_tokens"), cached_of("image_tokens"));
    let cached = match inward("cached_tokens") {
        0 => either(usage, &[&["prompt_cache_hit_tokens"], &["cached_tokens"], &["cache_read_input_tokens"]]),
        cached => cached,
    };
    let written = match inward("cache_write_tokens") {
        0 => at(usage, &["cache_creation_input_tokens"]),
        written => written,
    };
    let audio = inward("audio_tokens").saturating_sub(cached_audio);
    let image = inward("image_tokens").saturating_sub(cached_image);
    let (audio_output, image_output) = (outward("audio_tokens"), outward("image_tokens"));
    let reasoning = match outward("reasoning_tokens") {
        0 => at(usage, &["reasoning_tokens"]),
        reasoning => reasoning,
    };
    let completion = completion.saturating_add(uncounted_reasoning(usage, prompt, completion, reasoning));
    let elsewhere = [cached, written, audio, image];
    let searches = either(usage, &[&["num_search_queries"], &["server_tool_use", "web_search_requests"]]);
    let counted = Usage {
        input: elsewhere.into_iter().fold(prompt, u64::saturating_sub),
        cache_read: cached.saturating_sub(cached_audio).saturating_sub(cached_image),
        cache_write: written,
        audio_input: audio,
        cache_read_audio: cached_audio,
        image_input: image,
        cache_read_image: cached_image,
        output: completion.saturating_sub(audio_output).saturating_sub(image_output),
        reasoning,
        audio_output,
        image_output,
        ..Usage::default()
    };
    counted.count("web_search", searches)
}

/// The objects that split a count, by the names they go by. Most answers have one of them.
struct Details<'v>([Option<&'v Value>; 3]);

impl<'v> Details<'v> {
    fn of(usage: &'v Value, names: [&str; 3]) -> Self {
        Self(names.map(|name| usage.get(name)))
    }

    /// The first that has a count above 0 at this path.
    fn first(&self, path: &[&str]) -> u64 {
        self.0.iter().flatten().map(|details| at(details, path)).find(|count| *count > 0).unwrap_or(0)
    }
}

/// Some count reasoning beside the completion instead of inside it; their total gives it away.
fn uncounted_reasoning(usage: &Value, prompt: u64, completion: u64, reasoning: u64) -> u64 {
    let total = at(usage, &["total_tokens"]);
    let is_beside = reasoning > 0 && total == prompt.saturating_add(completion).saturating_add(reasoning);
    if is_beside { reasoning } else { 0 }
}
