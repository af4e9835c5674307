//! Usage in every spelling, also in those that contradict themselves.

use super::*;
use serde_json::json;

#[test]
fn what_is_no_usage_is_not_read() {
    for value in [json!(null), json!({}), json!([]), json!("x"), json!({ "tokens": 3 })] {
        assert_eq!(Usage::parse(&value), None, "{value}");
    }
}

#[test]
fn a_part_larger_than_the_whole_leaves_nothing_and_never_underflows() {
    let usage = Usage::parse(&json!({
        "prompt_tokens": 10, "completion_tokens": 1,
        "prompt_tokens_details": { "cached_tokens": 50, "audio_tokens": 50 },
        "completion_tokens_details": { "reasoning_tokens": 9, "audio_tokens": 9 },
    }));
    let usage = usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.audio_input, usage.output), (0, 50, 50, 0));
}

#[test]
fn counts_that_are_no_whole_numbers_count_as_none() {
    let usage = Usage::parse(&json!({ "prompt_tokens": -5, "completion_tokens": "7", "total_tokens": null })).unwrap();
    assert_eq!(usage, Usage::default());
    let most = Usage::parse(
        &json!({ "promptTokenCount": u64::MAX, "toolUsePromptTokenCount": 5, "candidatesTokenCount": u64::MAX, "thoughtsTokenCount": 1 }),
    );
    assert_eq!(most.unwrap().completion_tokens(), u64::MAX);
}

#[test]
fn what_oracle_says_of_its_cache_and_its_thoughts_counts() {
    let usage = json!({ "promptTokens": 9, "completionTokens": 4, "totalTokens": 13,
        "promptTokensDetails": { "cachedTokens": 5 }, "completionTokensDetails": { "reasoningTokens": 2 } });
    let openai = json!({ "prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13,
        "prompt_tokens_details": { "cached_tokens": 5 }, "completion_tokens_details": { "reasoning_tokens": 2 } });
    assert_eq!(Usage::parse(&usage), Usage::parse(&openai));
    assert_ne!(Usage::parse(&usage), Usage::parse(&json!({ "promptTokens": 9, "completionTokens": 4 })));
}

#[test]
fn each_wire_format_is_known_by_its_keys() {
    for (usage, prompt, completion) in [
        (
            json!({ "prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": { "cached_tokens": 4 } }),
            10,
            5,
        ),
        (json!({ "input_tokens": 10, "output_tokens": 5, "input_tokens_details": { "cached_tokens": 4 } }), 10, 5),
        (json!({ "input_tokens": 10, "output_tokens": 5 }), 10, 5),
        (json!({ "input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 4 }), 14, 5),
        (json!({ "inputTokens": 10, "outputTokens": 5, "cacheReadInputTokens": 4 }), 14, 5),
        (
            json!({ "promptTokenCount": 10, "cachedContentTokenCount": 4, "candidatesTokenCount": 5, "thoughtsTokenCount": 2 }),
            10,
            7,
        ),
        (json!({ "billed_units": { "input_tokens": 10.0, "output_tokens": 5 } }), 10, 5),
        (json!({ "promptTokens": 10, "completionTokens": 5, "totalTokens": 15 }), 10, 5),
        (json!({ "input_tokens": 10, "generated_tokens": 5 }), 10, 5),
    ] {
        let read = Usage::parse(&usage).unwrap();
        assert_eq!((read.prompt_tokens(), read.completion_tokens()), (prompt, completion), "{usage}");
    }
}

#[test]
fn units_beside_tokens_are_counted_as_providers_report_them() {
    for (usage, tokens, units) in [
        (
            json!({ "pages_processed": 3, "pages_processed_annotation": 2, "doc_size_bytes": 4096 }),
            0,
            &[("annotated_pages", 2), ("pages", 3)][..],
        ),
        (json!({ "pages_processed": 3, "pages_processed_annotation": 0 }), 0, &[("pages", 3)]),
        (json!({ "billed_units": { "images": 4.0 } }), 0, &[("input_image", 4)]),
        (json!({ "billed_units": { "images": 4, "image_tokens": 700, "input_tokens": 3 } }), 703, &[]),
        (
            json!({ "text_tokens": 5, "image_pixels": 2_000_000, "total_tokens": 3576 }),
            3576,
            &[("image_pixels", 2_000_000)],
        ),
        (json!({ "total_tokens": 9 }), 9, &[]),
        (
            json!({ "promptTokenCount": 8, "gateway_units": { "maps": 1, "web_search": 2, "grounded_prompt": 1 } }),
            8,
            &[("grounded_prompt", 1), ("maps", 1), ("web_search", 2)],
        ),
        (
            json!({ "input_tokens": 8, "output_tokens": 0, "gateway_units": { "image_generation": 1 } }),
            8,
            &[("image_generation", 1)],
        ),
    ] {
        let read = Usage::parse(&usage).unwrap();
        let found: Vec<_> =
            read.units.iter().map(|(name, count)| (name.as_str(), u64::try_from(*count).unwrap())).collect();
        assert_eq!((read.prompt_tokens(), &found[..]), (tokens, units), "{usage}");
    }
}

#[test]
fn every_lifetime_of_a_cache_write_is_read_in_every_spelling() {
    for usage in [
        json!({ "input_tokens": 5, "cache_creation_input_tokens": 9, "cache_creation": {
            "ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 3, "ephemeral_12h_input_tokens": 2 } }),
        json!({ "prompt_tokens": 14, "cache_creation": {
            "ephemeral_5m_input_tokens": 4, "ephemeral_1h_input_tokens": 3, "ephemeral_12h_input_tokens": 2 } }),
        json!({ "inputTokens": 5, "cacheWriteInputTokens": 9, "cacheDetails": [
            { "ttl": "5m", "inputTokens": 4 }, { "ttl": "1h", "inputTokens": 3 }, { "ttl": "12h", "inputTokens": 2 }] }),
    ] {
        let read = Usage::parse(&usage).unwrap();
        let written = (read.input, read.cache_write, read.cache_write_1h, read.cache_write_12h);
        assert_eq!(written, (5, 9, 3, 2), "{usage}");
    }
}
