//! Why answers end, in every format's words (contract 7.10, 6.3 and 7.12). Reading takes the row with the word; writing
//! takes the first row with the reason, or with the nearest of the four reasons that every format has.

use crate::wire::conversation::FinishReason;
use crate::wire::conversation::FinishReason::*;
use crate::wire::conversation::WireFormat;
use crate::wire::conversation::WireFormat::*;
use crate::wire::conversation::{Choice, Finish};

static ROWS: &[(WireFormat, &str, FinishReason)] = &[
    (Chat, "stop", Stop),
    (Chat, "length", Length),
    (Chat, "tool_calls", ToolUse),
    (Chat, "function_call", ToolUse),
    (Chat, "content_filter", ContentFilter),
    // Providers that speak chat with words of their own; a failure is a stop in OpenAI's.
    (Chat, "stop", Error),
    (Chat, "eos", Stop),
    (Chat, "model_length", Length),
    (Chat, "insufficient_system_resource", Error),
    (Chat, "error", Error),
    (Completions, "stop", Stop),
    (Completions, "length", Length),
    (Completions, "content_filter", ContentFilter),
    (Completions, "eos", Stop),
    (Messages, "end_turn", Stop),
    (Messages, "stop_sequence", StopSequence),
    (Messages, "pause_turn", Pause),
    (Messages, "max_tokens", Length),
    (Messages, "model_context_window_exceeded", ContextWindow),
    (Messages, "tool_use", ToolUse),
    (Messages, "refusal", Refusal),
    (Messages, "refusal", ContentFilter),
    // `incomplete_details.reason`; a completed response has none.
    (Responses, "max_output_tokens", Length),
    (Responses, "content_filter", ContentFilter),
    (Gemini, "STOP", Stop),
    (Gemini, "MAX_TOKENS", Length),
    (Gemini, "SAFETY", ContentFilter),
    (Gemini, "RECITATION", Recitation),
    (Gemini, "OTHER", Stop),
    (Gemini, "FINISH_REASON_UNSPECIFIED", Stop),
    (Gemini, "MALFORMED_FUNCTION_CALL", MalformedToolUse),
    (Gemini, "UNEXPECTED_TOOL_CALL", MalformedToolUse),
    (Gemini, "TOO_MANY_TOOL_CALLS", Stop),
    (Gemini, "PROHIBITED_CONTENT", ContentFilter),
    (Gemini, "BLOCKLIST", ContentFilter),
    (Gemini, "SPII", ContentFilter),
    (Gemini, "LANGUAGE", ContentFilter),
    (Gemini, "IMAGE_SAFETY", ContentFilter),
    (Gemini, "IMAGE_PROHIBITED_CONTENT", ContentFilter),
    (Gemini, "IMAGE_RECITATION", Recitation),
    (Gemini, "NO_IMAGE", Stop),
    // Gemini has no word for a call: it stops.
    (Gemini, "STOP", ToolUse),
    (Converse, "end_turn", Stop),
    (Converse, "stop_sequence", StopSequence),
    (Converse, "tool_use", ToolUse),
    (Converse, "max_tokens", Length),
    (Converse, "model_context_window_exceeded", ContextWindow),
    (Converse, "content_filtered", ContentFilter),
    (Converse, "guardrail_intervened", ContentFilter),
    (Converse, "end_turn", Error),
    (Converse, "malformed_tool_use", MalformedToolUse),
    (Converse, "malformed_model_output", Error),
    (Cohere, "COMPLETE", Stop),
    (Cohere, "STOP_SEQUENCE", StopSequence),
    (Cohere, "MAX_TOKENS", Length),
    (Cohere, "TOOL_CALL", ToolUse),
    (Cohere, "ERROR", Error),
    (Cohere, "TIMEOUT", Error),
    // Cohere has no word for an answer that was withheld.
    (Cohere, "ERROR", ContentFilter),
];

/// Unknown words mean `Stop`: vendors add them faster than we release.
pub fn read(format: WireFormat, word: String) -> Finish {
    let known = ROWS.iter().find(|(known, name, _)| *known == format && *name == word);
    let reason = known.map_or(Stop, |(_, _, reason)| *reason);
    Finish { reason, native: Some((format, word)), stop_sequence: None }
}

pub fn write(format: WireFormat, reason: FinishReason) -> Option<&'static str> {
    let row = |wanted| ROWS.iter().find(move |(known, _, reason)| *known == format && *reason == wanted);
    row(reason).or_else(|| row(reason.coarse())).map(|(_, word, _)| *word)
}

/// What OpenAI's own clients know; other words of providers that speak chat are mapped in strict mode.
static OPENAI_WORDS: &[&str] = &["stop", "length", "tool_calls", "function_call", "content_filter"];

/// The word of a whole choice: the vendor's own where the format is its own or the caller wants it.
pub fn word_for(format: WireFormat, finish: &Finish, is_strict: bool) -> Option<&str> {
    let is_openai = matches!(format, Chat | Completions);
    match &finish.native {
        Some((_, word)) if !is_strict => Some(word),
        Some((origin, word)) if *origin == format && (!is_openai || OPENAI_WORDS.contains(&word.as_str())) => {
            Some(word)
        }
        _ => write(format, finish.reason),
    }
}

/// Gemini and Responses say "done" of an answer that asks for a tool; other formats have a word for it.
pub fn note_tool_use(choice: &mut Choice) {
    let has_tool_use = choice.has_tool_use();
    if let Some(finish) = &mut choice.finish
        && has_tool_use
        && finish.reason == Stop
    {
        finish.reason = ToolUse;
        finish.native = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_has_a_word_for_every_reason() {
        for format in [Chat, Messages, Gemini, Converse, Cohere] {
            for reason in [
                Stop,
                StopSequence,
                Pause,
                Length,
                ContextWindow,
                ToolUse,
                ContentFilter,
                Refusal,
                Recitation,
                MalformedToolUse,
                Error,
            ] {
                assert!(write(format, reason).is_some(), "{format:?} {reason:?}");
            }
        }
    }

    #[test]
    fn a_word_of_one_provider_is_mapped_in_strict_mode_only() {
        let finish = read(Chat, "eos".into());
        assert_eq!(word_for(Chat, &finish, true), Some("stop"));
        assert_eq!(word_for(Chat, &finish, false), Some("eos"));
        let finish = read(Messages, "pause_turn".into());
        assert_eq!(word_for(Messages, &finish, true), Some("pause_turn"));
    }

    #[test]
    fn words_become_openais_as_the_contract_says() {
        for (format, word, expected) in [
            (Messages, "end_turn", "stop"),
            (Messages, "pause_turn", "stop"),
            (Messages, "refusal", "content_filter"),
            (Messages, "model_context_window_exceeded", "length"),
            (Converse, "guardrail_intervened", "content_filter"),
            (Gemini, "RECITATION", "stop"),
            (Gemini, "SPII", "content_filter"),
            (Gemini, "SOMETHING_NEW", "stop"),
            (Cohere, "TIMEOUT", "stop"),
            (Cohere, "TOOL_CALL", "tool_calls"),
            (Chat, "insufficient_system_resource", "stop"),
        ] {
            assert_eq!(write(Chat, read(format, word.into()).reason), Some(expected), "{word}");
        }
        assert_eq!(write(Messages, ContentFilter), Some("refusal"));
        assert_eq!(write(Messages, Stop), Some("end_turn"));
    }
}
