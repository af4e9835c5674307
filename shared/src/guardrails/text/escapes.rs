//! JSON inside of a text: the arguments of a tool call are one. A reader of it sees `\n` as a line's end and `\u0034` as a 4; a
//! pattern that is run on the letters sees neither a border of words nor the digit. So such a text is also judged as it reads.

use std::borrow::Cow;

/// JSON may stand in JSON; deeper than this nobody reads it.
const MAX_ROUNDS: usize = 3;

/// The text, and behind it what it says when its escapes are read, once for each time that JSON may stand in JSON.
pub fn with_readings(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut all = text.to_owned();
    let mut reading = Cow::Borrowed(text);
    for _ in 0..MAX_ROUNDS {
        if !reading.contains('\\') {
            break;
        }
        let next = read_escapes(&reading);
        if next == reading {
            break;
        }
        all.push('\n');
        all.push_str(&next);
        reading = Cow::Owned(next);
    }
    Cow::Owned(all)
}

/// With each escape as what it stands for. What is no escape stays.
pub fn read_escapes(text: &str) -> String {
    let mut read = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        read.push_str(before);
        let (letter, length) = read_escape(escape);
        read.push_str(&letter);
        rest = &escape[length..];
    }
    read.push_str(rest);
    read
}

/// As long as the text, byte for byte, with blanks where escapes stand that separate words.
pub fn with_blanks(text: &str) -> Cow<'_, str> {
    if !text.contains('\\') {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        masked.push_str(before);
        let (letter, length) = read_escape(escape);
        match letter.chars().any(char::is_alphanumeric) {
            true => masked.push_str(&escape[..length]),
            false => (0..length).for_each(|_| masked.push(' ')),
        }
        rest = &escape[length..];
    }
    masked.push_str(rest);
    Cow::Owned(masked)
}

/// What the escape at the beginning of a text stands for, and how many bytes it has.
fn read_escape(escape: &str) -> (Cow<'_, str>, usize) {
    let bytes = escape.as_bytes();
    let plain = |text: &'static str| (Cow::Borrowed(text), 2);
    match bytes.get(1) {
        Some(b'n') => plain("\n"),
        Some(b'r') => plain("\r"),
        Some(b't') => plain("\t"),
        Some(b'b') => plain("\u{8}"),
        Some(b'f') => plain("\u{c}"),
        Some(b'"') => plain("\""),
        Some(b'\\') => plain("\\"),
        Some(b'/') => plain("/"),
        Some(b'u') => {
            let unit = |from: usize| u16::from_str_radix(escape.get(from..from + 4)?, 16).ok();
            let Some(first) = unit(2) else { return (Cow::Borrowed(&escape[..1]), 1) };
            let second = (escape.get(6..8) == Some("\\u")).then(|| unit(8)).flatten();
            let pair = second.and_then(|second| char::decode_utf16([first, second]).next()?.ok());
            match (char::from_u32(first.into()), pair) {
                (Some(letter), _) => (Cow::Owned(letter.to_string()), 6),
                (None, Some(letter)) => (Cow::Owned(letter.to_string()), 12),
                (None, None) => (Cow::Borrowed("\u{fffd}"), 6),
            }
        }
        _ => (Cow::Borrowed(&escape[..1]), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_as_readers_of_json_do_and_the_rest_stays() {
        for (text, expected) in [
            ("none", "none"),
            (r"a\nb", "a\nb"),
            (r#"\"\\\/"#, "\"\\/"),
            (r"\u0034\u00e9", "4é"),
            (r"\ud83d\ude00", "😀"),
            (r"\ud83d", "\u{fffd}"),
            (r"\u12", r"\u12"),
            (r"\x", r"\x"),
            ("\\", "\\"),
            ("\\é", "\\é"),
            ("\\ué234", "\\ué234"),
        ] {
            assert_eq!(read_escapes(text), expected, "{text}");
        }
    }

    #[test]
    fn blanks_take_as_many_bytes_as_what_they_stand_for() {
        for (text, expected) in [
            (r"a\n4", "a  4"),
            (r"a\u000a4", "a      4"),
            (r"a\u00344", r"a\u00344"),
            (r#"\"é\""#, "  é  "),
            ("a", "a"),
        ] {
            let masked = with_blanks(text);
            assert_eq!((masked.as_ref(), masked.len()), (expected, text.len()), "{text}");
        }
    }

    #[test]
    fn a_text_is_followed_by_what_it_reads_and_bounded() {
        assert_eq!(with_readings(r"a\\nb"), "a\\\\nb\na\\nb\na\nb");
        let deep = "\\".repeat(64);
        assert!(with_readings(&deep).len() <= 4 * (deep.len() + 1));
    }
}
