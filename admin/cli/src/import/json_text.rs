//! JSON as text that the reader of YAML takes, which knows the lines. YAML is JSON and more, but for one thing: JSON writes
//! characters beyond the first 65,536 as two escapes, which YAML refuses.

use std::borrow::Cow;

/// The text with such characters themselves, where it is JSON; otherwise the text.
pub fn readable(text: &str) -> Cow<'_, str> {
    let is_json = text.trim_start().starts_with(['{', '[']) && text.contains("\\u");
    if !is_json || serde_json::from_str::<serde::de::IgnoredAny>(text).is_err() {
        return Cow::Borrowed(text);
    }
    let mut readable = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        readable.push_str(&rest[..at]);
        rest = &rest[at..];
        // JSON was read above, so that a backslash has one character of one byte behind it.
        let (written, length) = match surrogate_pair(rest) {
            Some(letter) => (letter.to_string(), 12),
            None => (rest[..2].to_owned(), 2),
        };
        readable.push_str(&written);
        rest = &rest[length..];
    }
    readable.push_str(rest);
    Cow::Owned(readable)
}

/// The character of `\ud83d\ude00`.
fn surrogate_pair(text: &str) -> Option<char> {
    let unit = |from: usize| u16::from_str_radix(text.get(from..from + 6)?.strip_prefix("\\u")?, 16).ok();
    char::decode_utf16([unit(0)?, unit(6)?]).next()?.ok().filter(|letter| letter.len_utf16() == 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_of_escapes_are_characters_and_everything_else_stays() {
        for (text, expected) in [
            (r#"{"a": "\ud83d\ude00"}"#, "{\"a\": \"😀\"}"),
            (r#"{"a": "\\ud83d\\ude00 \u00e9\u00e8"}"#, r#"{"a": "\\ud83d\\ude00 \u00e9\u00e8"}"#),
            (r#"["\\", "\"", "\ud83d\ude00\n"]"#, r#"["\\", "\"", "😀\n"]"#),
            (r"a: \ud83d\ude00", r"a: \ud83d\ude00"),
            (r#"{"a": "\ud83d"}"#, r#"{"a": "\ud83d"}"#),
        ] {
            assert_eq!(readable(text), expected);
        }
    }
}
