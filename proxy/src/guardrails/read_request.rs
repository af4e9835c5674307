//! A request as guardrails read it: strictly, so that what they judge is what a provider reads, and with texts where the client
//! wrote tokens.

use super::hook::CompiledHook;
use super::unique_keys::parse_unique;
use crate::request::refusal::Refusal;
use crate::wire::vocabulary;
use serde_json::Value;
use shared::guardrails::{Shape, other_letters, token_places};
use std::sync::Arc;

/// Whether what cannot be read must not pass.
pub fn must_read(hooks: &[Arc<CompiledHook>]) -> bool {
    hooks.iter().any(|hook| hook.must_read_bodies())
}

/// Where `is_strict`, what can be read in two ways, or by nobody here, is refused. A tokenizer is built when it is first used:
/// not for threads that carry requests, where a body `may_have_tokens`.
pub fn read_request(body: &[u8], shape: Shape, is_strict: bool) -> Result<Value, Refusal> {
    let request = parse_unique(body).map_err(Refusal::invalid_json)?;
    if let Some(name) = other_letters(&request).filter(|_| is_strict) {
        return Err(Refusal::invalid_json(format!("`{name}` is the name of a known field in other letters")));
    }
    let Some(places) = token_places(&request, shape) else { return Ok(request) };
    let model = request.get("model").and_then(Value::as_str).unwrap_or_default();
    let tokenizer = vocabulary::known_of_model(model);
    let read = tokenizer.and_then(|tokenizer| places.read(&request, |tokens| tokenizer.decode(tokens)));
    match read {
        Some(read) => Ok(read),
        None if is_strict => Err(Refusal::unreadable("it is written as tokens that cannot be read here: send a text")),
        None => Ok(request),
    }
}

/// Whether a prompt or an input, as it is written, may be a list of tokens.
pub fn may_have_tokens(written: &str) -> bool {
    let inside =
        written.trim_start().strip_prefix('[').map(|rest| rest.trim_start_matches(['[', ' ', '\n', '\r', '\t']));
    inside.is_some_and(|inside| inside.starts_with(|first: char| first.is_ascii_digit() || first == '-'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tokens_are_read_by_the_vocabulary_of_their_model_and_else_refused() {
        for (shape, body, expected) in [
            (
                Shape::Completions,
                json!({ "model": "gpt-3.5-turbo-instruct", "prompt": [15339, 1917] }),
                Some("/prompt"),
            ),
            (
                Shape::Embeddings,
                json!({ "model": "text-embedding-3-small", "input": [[15339, 1917]] }),
                Some("/input/0"),
            ),
            (Shape::Completions, json!({ "model": "gpt-3.5-turbo-instruct", "prompt": [4_000_000] }), None),
            (Shape::Completions, json!({ "model": "llama-3", "prompt": [15339, 1917] }), None),
            (Shape::Completions, json!({ "prompt": [15339, 1917] }), None),
        ] {
            let read = read_request(body.to_string().as_bytes(), shape, true);
            match expected {
                Some(place) => assert_eq!(read.unwrap().pointer(place), Some(&json!("hello world")), "{body}"),
                None => assert_eq!(read.unwrap_err().code.as_str(), "guardrail_unreadable", "{body}"),
            }
            assert!(read_request(body.to_string().as_bytes(), shape, false).is_ok());
        }
    }

    #[test]
    fn names_in_other_letters_are_refused_where_a_guardrail_must_read() {
        let body = br#"{"messages":[],"Messages":[{"role":"user","content":"x"}]}"#;
        assert_eq!(read_request(body, Shape::Chat, true).unwrap_err().code.as_str(), "invalid_json");
        assert!(read_request(body, Shape::Chat, false).is_ok());
    }

    #[test]
    fn lists_of_numbers_may_be_tokens() {
        for (written, expected) in [
            ("[1,2]", true),
            (" [ [ 1 ] ]", true),
            ("[-1]", true),
            ("[\"1\"]", false),
            ("\"[1]\"", false),
            ("[]", false),
        ] {
            assert_eq!(may_have_tokens(written), expected, "{written}");
        }
    }
}
