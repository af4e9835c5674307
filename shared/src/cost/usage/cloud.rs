//! Usage as Google, AWS and Cohere report it.

use super::words::Words;
use super::{Usage, at};

/// The prompt contains what was cached, the candidates do not contain the thoughts, and prompts that tools made are
/// counted apart. Modalities are lists.
pub fn gemini(usage: &Words<'_>) -> Usage {
    let of = |list: &str, modality: &str| {
        let details = usage.get(list).map(Words::items).into_iter().flatten();
        let matching = details.filter(|detail| detail.get("modality").and_then(Words::text) == Some(modality));
        matching.map(|detail| at(detail, &["tokenCount"])).fold(0, u64::saturating_add)
    };
    let prompt = at(usage, &["promptTokenCount"]).saturating_add(at(usage, &["toolUsePromptTokenCount"]));
    let cached = at(usage, &["cachedContentTokenCount"]);
    let (cached_audio, cached_image) = (of("cacheTokensDetails", "AUDIO"), of("cacheTokensDetails", "IMAGE"));
    let audio = of("promptTokensDetails", "AUDIO").saturating_sub(cached_audio);
    let image = of("promptTokensDetails", "IMAGE").saturating_sub(cached_image);
    let cached_video = of("cacheTokensDetails", "VIDEO");
    let video = of("promptTokensDetails", "VIDEO").saturating_sub(cached_video);
    let thoughts = at(usage, &["thoughtsTokenCount"]);
    let (audio_output, image_output) = (of("candidatesTokensDetails", "AUDIO"), of("candidatesTokensDetails", "IMAGE"));
    let video_output = of("candidatesTokensDetails", "VIDEO");
    let elsewhere = [audio_output, image_output, video_output];
    let candidates = elsewhere.into_iter().fold(at(usage, &["candidatesTokenCount"]), u64::saturating_sub);
    let counted = Usage {
        input: [cached, audio, image, video].into_iter().fold(prompt, u64::saturating_sub),
        cache_read: cached.saturating_sub(cached_audio).saturating_sub(cached_image),
        audio_input: audio,
        cache_read_audio: cached_audio,
        image_input: image,
        cache_read_image: cached_image,
        output: candidates.saturating_add(thoughts),
        reasoning: thoughts,
        audio_output,
        image_output,
        video_input: video,
        video_output,
        ..Usage::default()
    };
    // What the gateway counted in the answer.
    let searches = at(usage, &["gateway_units", "web_search"]);
    let counted = counted.count("web_search", searches).count("maps", at(usage, &["gateway_units", "maps"]));
    counted.count("grounded_prompt", at(usage, &["gateway_units", "grounded_prompt"]))
}

/// Bedrock's own form counts the prompt without the cache.
pub fn bedrock(usage: &Words<'_>) -> Usage {
    let read = at(usage, &["cacheReadInputTokens"]).max(at(usage, &["cacheReadInputTokenCount"]));
    let written = at(usage, &["cacheWriteInputTokens"]).max(at(usage, &["cacheWriteInputTokenCount"]));
    let written_for = |lifetime: &str| {
        let details = usage.get("cacheDetails").map(Words::items).into_iter().flatten();
        let matching = details.filter(|detail| detail.get("ttl").and_then(Words::text) == Some(lifetime));
        matching.map(|detail| at(detail, &["inputTokens"])).fold(0, u64::saturating_add)
    };
    let twelve_hours = written_for("12h").min(written);
    Usage {
        input: at(usage, &["inputTokens"]),
        cache_read: read,
        cache_write: written,
        cache_write_1h: written_for("1h").min(written - twelve_hours),
        cache_write_12h: twelve_hours,
        output: at(usage, &["outputTokens"]),
        ..Usage::default()
    }
}

/// Cohere bills other counts than it reports as tokens; its rerankers are paid by the search, and images that are embedded by
/// their tokens or, by older models, each.
pub fn cohere(usage: &Words<'_>) -> Usage {
    let billed = |key: &str| {
        let value = usage.get("billed_units").and_then(|units| units.get(key));
        // They come as floats.
        value.and_then(Words::number).map_or(0, |count| count as u64)
    };
    let image_input = billed("image_tokens");
    let counted =
        Usage { input: billed("input_tokens"), output: billed("output_tokens"), image_input, ..Usage::default() };
    let images = if image_input == 0 { billed("images") } else { 0 };
    counted.count("search", billed("search_units")).count("input_image", images)
}
