//! Tokens guessed from text, for when nobody says how many there were: a quarter of the characters of each text, which
//! is what the larger providers advise. Rows that rest on a guess say so.

use super::scan::{self, Value};

/// Where a request's texts stand, in the dialects of chat, completions, embeddings, messages and responses.
const TEXTS: &[&[u8]] =
    &[b"content", b"text", b"input", b"prompt", b"system", b"instructions", b"arguments", b"description"];

/// What the model would read of a request.
pub fn prompt_tokens(body: &[u8]) -> u64 {
    let mut tokens = 0;
    for (key, value) in scan::keys(body) {
        if TEXTS.contains(&key)
            && let Value::Text(text) = value
        {
            tokens += scan::characters(text).div_ceil(4);
        }
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_counted_and_names_are_not() {
        for (body, tokens) in [
            (r#"{"model":"a-long-model-name","messages":[{"role":"user","content":"12345678"}]}"#, 2),
            (
                r#"{"messages":[{"content":[{"type":"text","text":"1"},{"type":"image_url","image_url":{"url":"data:…"}}]}]}"#,
                1,
            ),
            (r#"{"input":"12345","instructions":"1"}"#, 3),
            (r#"{"system":"1234","messages":[{"content":"12345"}]}"#, 3),
            ("", 0),
            (r#"{"content":"cut"#, 0),
        ] {
            assert_eq!(prompt_tokens(body.as_bytes()), tokens, "{body}");
        }
    }
}
