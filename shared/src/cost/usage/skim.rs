//! Usage read without a parser, where it is as plain as it mostly is: objects of whole numbers. Whatever else stands there
//! is left to the parser; what is read here is JSON, and means the same.

use super::counts::{Counts, UsageKey, UsageObject};

/// Deeper than any that we know.
const MAX_DEPTH: usize = 5;

/// Whether it is plain. What is not may have been counted in part.
pub fn skim(text: &str, counts: &mut Counts) -> bool {
    walk(text, counts).is_some_and(|end| text.as_bytes()[end..].iter().all(is_blank))
}

impl Counts {
    /// Counts the object that these bytes begin with, and says where it ends; none when it is not plain, or long.
    pub fn skim(&mut self, bytes: &[u8]) -> Option<usize> {
        const MAX_OBJECT: usize = 1024;
        let near = &bytes[..bytes.len().min(MAX_OBJECT)];
        let text = std::str::from_utf8(near).or_else(|cut| std::str::from_utf8(&near[..cut.valid_up_to()]));
        *self = Self::default();
        walk(text.ok()?, self)
    }
}

/// What may come next.
#[derive(Clone, Copy)]
enum Next {
    KeyOrEnd,
    Key,
    CommaOrEnd,
}

/// One loop with little to remember: this is read for every call. Answers where the object ends.
fn walk(text: &str, counts: &mut Counts) -> Option<usize> {
    let bytes = text.as_bytes();
    let (b'{', mut at) = byte(bytes, 0)? else { return None };
    let mut open = [UsageObject::Whole; MAX_DEPTH];
    let mut deep = 0;
    let mut next = Next::KeyOrEnd;
    loop {
        let (found, after) = byte(bytes, at)?;
        at = after;
        match (next, found) {
            (Next::KeyOrEnd | Next::Key, b'"') => {
                let key;
                (key, at) = key_at(text, at)?;
                let object = *open.get(deep)?;
                counts.see(object, key);
                let (b':', after) = byte(bytes, at)? else { return None };
                next = Next::CommaOrEnd;
                let (value, after) = byte(bytes, after)?;
                at = after;
                match value {
                    b'{' => {
                        deep += 1;
                        *open.get_mut(deep)? = object.at(key);
                        next = Next::KeyOrEnd;
                    }
                    b'0'..=b'9' => {
                        let count;
                        (count, at) = number(bytes, at - 1)?;
                        counts.take(object, key, count);
                    }
                    b'n' if bytes[at..].starts_with(b"ull") => at += 3,
                    _ => return None,
                }
            }
            (Next::CommaOrEnd, b',') => next = Next::Key,
            (Next::KeyOrEnd | Next::CommaOrEnd, b'}') if deep > 0 => {
                deep -= 1;
                next = Next::CommaOrEnd;
            }
            (Next::KeyOrEnd | Next::CommaOrEnd, b'}') => return Some(at),
            _ => return None,
        }
    }
}

/// The next byte that is no space, and where the one after it stands.
fn byte(bytes: &[u8], mut at: usize) -> Option<(u8, usize)> {
    while is_blank(bytes.get(at)?) {
        at += 1;
    }
    Some((bytes[at], at + 1))
}

fn is_blank(byte: &u8) -> bool {
    *byte <= b' ' && matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// What stands behind a quote.
fn key_at(text: &str, at: usize) -> Option<(UsageKey, usize)> {
    let end = quote(text.as_bytes(), at)?;
    let name = text.get(at..end)?;
    match UsageKey::from_name(name) {
        // It may be another one, escaped.
        UsageKey::Other if name.bytes().any(|byte| byte == b'\\' || byte < b' ') => None,
        key => Some((key, end + 1)),
    }
}

fn number(bytes: &[u8], start: usize) -> Option<(u64, usize)> {
    /// So many digits make a number that fits, whatever they are.
    const SURE: usize = 19;
    let (mut count, mut at) = (0_u64, start);
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        count = count.wrapping_mul(10).wrapping_add(u64::from(digit - b'0'));
        at += 1;
    }
    let has_zero_before = at > start + 1 && bytes.get(start) == Some(&b'0');
    let is_more = matches!(bytes.get(at), Some(b'.' | b'e' | b'E'));
    (!has_zero_before && !is_more && at - start <= SURE).then_some((count, at))
}

/// Where the next quote stands. Names are short: a word or two at a time is faster than what is made for long texts.
fn quote(text: &[u8], mut at: usize) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    while let Some(word) = text.get(at..)?.first_chunk::<8>() {
        let differs = u64::from_le_bytes(*word) ^ (ONES * b'"' as u64);
        // Exact for the lowest byte that is one, which is the one that counts.
        let quotes = differs.wrapping_sub(ONES) & !differs & (ONES << 7);
        if quotes != 0 {
            return Some(at + quotes.trailing_zeros() as usize / 8);
        }
        at += 8;
    }
    text[at..].iter().position(|byte| *byte == b'"').map(|position| at + position)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn skimmed(text: &str) -> Option<Counts> {
        let mut counts = Counts::default();
        skim(text, &mut counts).then_some(counts)
    }

    /// What is skimmed is what is parsed.
    fn agrees(text: &str) -> bool {
        let Some(skimmed) = skimmed(text) else { return true };
        let parsed: Option<Counts> = serde_json::from_str(text).ok();
        parsed.is_some_and(|parsed| format!("{parsed:?}") == format!("{skimmed:?}"))
    }

    #[test]
    fn plain_usage_is_skimmed_and_means_what_a_parser_says() {
        for text in [
            "{}",
            r#" { "prompt_tokens" : 12 , "completion_tokens":0 } "#,
            r#"{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":3,"x":{},"cached_tokens_details":{"audio_tokens":2}},"total_tokens":null}"#,
            r#"{"input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":4},"output_tokens":9999999999999999999}"#,
        ] {
            assert!(skimmed(text).is_some() && agrees(text), "{text}");
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_the_parser() {
        for text in [
            "",
            "{",
            "null",
            "[]",
            "{}x",
            "{,}",
            r#"{"a":1,}"#,
            r#"{"a" 1}"#,
            r#"{"a":01}"#,
            r#"{"a":1.5}"#,
            r#"{"a":1e3}"#,
            r#"{"a":-1}"#,
            r#"{"a":"1"}"#,
            r#"{"a":true}"#,
            r#"{"a":[1]}"#,
            r#"{"\u0061":1}"#,
            r#"{"a":18446744073709551615}"#,
            r#"{"a":18446744073709551616}"#,
            r#"{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":nul}"#,
            r#"{a:1}"#,
            "{\"a\tb\":1}",
        ] {
            assert!(skimmed(text).is_none(), "{text}");
        }
    }

    #[test]
    fn an_object_is_skimmed_whatever_follows_it() {
        let usage = r#"{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":3}}"#;
        let mut counts = Counts::default();
        for after in ["", "}", r#","model":"é"}"#, "\u{1F600}"] {
            let text = format!("{usage}{after}");
            assert_eq!((counts.skim(text.as_bytes()), counts.prompt), (Some(usage.len()), 7), "{text}");
        }
        let odd = [usage.as_bytes(), b"\xff"].concat();
        assert_eq!(counts.skim(&odd), Some(usage.len()));
        let long = format!(r#"{{"a":{}1}}"#, " ".repeat(2000));
        for other in ["", "[]", "7", r#"{"a":"b"}"#, &long] {
            assert_eq!(counts.skim(other.as_bytes()), None, "{other}");
        }
        assert_eq!(counts.skim(br#"{"total_tokens":1}"#).map(|_| counts.prompt), Some(0), "nothing is left of another");
    }

    proptest! {
        #[test]
        fn no_text_is_read_otherwise_than_by_the_parser(
            text in r#"(\{|\}|,|:| |"(prompt_tokens|input_tokens_details|cached_tokens|x)"|0|12|null|1\.5){0,16}"#,
        ) {
            prop_assert!(agrees(&text), "{text}");
        }

        #[test]
        fn no_cut_of_usage_is_read_otherwise_than_by_the_parser(cut in 0..120_usize, put in "[{},:\"0-9 ]?") {
            let text = r#"{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":3},"total_tokens":9}"#;
            let at = cut.min(text.len());
            let edited = format!("{}{put}{}", &text[..at], &text[at..]);
            prop_assert!(agrees(&edited) && agrees(&text[..at]), "{edited}");
        }
    }
}
