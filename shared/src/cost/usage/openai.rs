//! OpenAI's usage in its three spellings (chat, responses, realtime) and with what its imitators add: here the prompt
//! contains the cached and the audio tokens.

use super::Usage;
use super::counts::Counts;

pub fn usage_of(counts: &Counts) -> Usage {
    let (inward, outward) = (&counts.inward, &counts.outward);
    let completion = first([counts.completion, counts.output]);
    // Those who embed and rank may tell the total alone.
    let is_total_alone = !counts.seen.prompt && !counts.seen.input;
    let rest = if is_total_alone { counts.total.saturating_sub(completion) } else { 0 };
    let prompt = first([counts.prompt, counts.input, rest]);
    let [cached_audio, cached_image] = inward.of_cached;
    let cached = first([inward.cached, counts.cached[0], counts.cached[1], counts.cache_read]);
    let by_lifetime = counts.five_minutes.saturating_add(counts.hour).saturating_add(counts.twelve_hours);
    let written = first([inward.cache_write, counts.cache_creation]).max(by_lifetime);
    let audio = inward.audio.saturating_sub(cached_audio);
    // Voyage's total holds the images that it embeds as tokens, beside what it bills of them.
    let embedded = if counts.pixels > 0 { rest.saturating_sub(counts.text) } else { 0 };
    let image = inward.image.saturating_sub(cached_image).saturating_add(embedded);
    let reasoning = first([outward.reasoning, counts.reasoning]);
    let completion = completion.saturating_add(uncounted_reasoning(counts.total, prompt, completion, reasoning));
    let elsewhere = [cached, written, audio, image, inward.video];
    let spoken_or_shown = [outward.audio, outward.image, outward.video];
    let counted = Usage {
        input: elsewhere.into_iter().fold(prompt, u64::saturating_sub),
        cache_read: cached.saturating_sub(cached_audio).saturating_sub(cached_image),
        cache_write: written,
        cache_write_1h: counts.hour,
        cache_write_12h: counts.twelve_hours,
        audio_input: audio,
        cache_read_audio: cached_audio,
        image_input: image,
        cache_read_image: cached_image,
        video_input: inward.video,
        output: spoken_or_shown.into_iter().fold(completion, u64::saturating_sub),
        reasoning,
        audio_output: outward.audio,
        image_output: outward.image,
        video_output: outward.video,
        ..Usage::default()
    };
    let counted = counted.count_tools(counts);
    let counted = match counts.search_queries {
        0 => counted,
        queries => counted.count("web_search", queries),
    };
    // Perplexity's: it takes a fee for each request, by how much its search brings in.
    let counted = counted.count("citation_token", counts.citations).count("image_pixels", counts.pixels);
    match counts.search_context {
        Some(unit) => counted.count(unit, 1),
        None => counted,
    }
}

/// The first of several places that has a count above 0.
fn first<const N: usize>(places: [u64; N]) -> u64 {
    places.into_iter().find(|count| *count > 0).unwrap_or(0)
}

/// Some count reasoning beside the completion instead of inside it; their total gives it away.
fn uncounted_reasoning(total: u64, prompt: u64, completion: u64, reasoning: u64) -> u64 {
    let is_apart = reasoning > 0 && total == prompt.saturating_add(completion).saturating_add(reasoning);
    if is_apart { reasoning } else { 0 }
}
