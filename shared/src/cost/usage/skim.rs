//! Usage read without a parser, where it is as plain as it mostly is: objects of whole numbers. Whatever else stands there
//! is left to the parser; what is read here is JSON, and means the same.

use super::counts::{Counts, Key, Object};

/// Deeper than any that we know.
const DEEPEST: usize = 4;

/// None when it is not plain, or no JSON.
pub fn skim(text: &str) -> Option<Counts> {
    let mut skim = Skim { text, at: 0, counts: Counts::default() };
    skim.object(Object::Whole, DEEPEST)?;
    skim.next().is_none().then_some(skim.counts)
}

struct Skim<'t> {
    text: &'t str,
    at: usize,
    counts: Counts,
}

impl Skim<'_> {
    fn object(&mut self, object: Object, deeper: usize) -> Option<()> {
        self.expect(b'{')?;
        if self.next()? == b'}' {
            return self.expect(b'}');
        }
        loop {
            let key = self.key()?;
            self.counts.see(object, key);
            self.expect(b':')?;
            match self.next()? {
                b'{' => self.object(object.at(key), deeper.checked_sub(1)?)?,
                b'0'..=b'9' => {
                    let count = self.number()?;
                    self.counts.take(object, key, count);
                }
                b'n' if self.text.as_bytes()[self.at..].starts_with(b"null") => self.at += 4,
                _ => return None,
            }
            match self.next()? {
                b',' => self.at += 1,
                _ => return self.expect(b'}'),
            }
        }
    }

    /// The next byte that is no space.
    fn next(&mut self) -> Option<u8> {
        loop {
            match *self.text.as_bytes().get(self.at)? {
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }

    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.next()? == wanted).then(|| self.at += 1)
    }

    fn key(&mut self) -> Option<Key> {
        self.expect(b'"')?;
        let length = memchr::memchr(b'"', &self.text.as_bytes()[self.at..])?;
        let name = self.text.get(self.at..self.at + length)?;
        self.at += length + 1;
        match Key::of(name) {
            // It may be another one, escaped.
            Key::Other if name.bytes().any(|byte| byte == b'\\' || byte < b' ') => None,
            key => Some(key),
        }
    }

    fn number(&mut self) -> Option<u64> {
        let rest = &self.text.as_bytes()[self.at..];
        let mut count = 0_u64;
        let mut length = 0;
        while let Some(digit @ b'0'..=b'9') = rest.get(length) {
            count = count.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?;
            length += 1;
        }
        let has_zero_before = length > 1 && rest.first() == Some(&b'0');
        let is_more = matches!(rest.get(length), Some(b'.' | b'e' | b'E'));
        self.at += length;
        (!has_zero_before && !is_more).then_some(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What is skimmed is what is parsed.
    fn agrees(text: &str) -> bool {
        let Some(skimmed) = skim(text) else { return true };
        let parsed: Option<Counts> = serde_json::from_str(text).ok();
        parsed.is_some_and(|parsed| format!("{parsed:?}") == format!("{skimmed:?}"))
    }

    #[test]
    fn plain_usage_is_skimmed_and_means_what_a_parser_says() {
        for text in [
            "{}",
            r#" { "prompt_tokens" : 12 , "completion_tokens":0 } "#,
            r#"{"prompt_tokens":7,"prompt_tokens_details":{"cached_tokens":3,"x":{},"cached_tokens_details":{"audio_tokens":2}},"total_tokens":null}"#,
            r#"{"input_tokens":10,"cache_creation":{"ephemeral_1h_input_tokens":4},"output_tokens":18446744073709551615}"#,
        ] {
            assert!(skim(text).is_some() && agrees(text), "{text}");
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
            r#"{"a":18446744073709551616}"#,
            r#"{"a":{"a":{"a":{"a":{"a":{"a":1}}}}}}"#,
            r#"{"a":1 "b":2}"#,
            r#"{"a":nul}"#,
            r#"{a:1}"#,
            "{\"a\tb\":1}",
        ] {
            assert!(skim(text).is_none(), "{text}");
        }
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
