//! JSON looked at without being parsed: keys and where their values stand. Good for finding a field in text that is
//! passed on whatever it is; never for deciding anything.

use crate::request::text_bounds::cut;
use memchr::{memchr, memchr_iter, memchr2, memmem};

#[derive(Debug, PartialEq, Eq)]
pub enum ScannedValue<'b> {
    /// As it is written, without its quotes.
    Text(&'b [u8]),
    Object(ScannedObject<'b>),
    Other,
}

/// An object whose end is searched for only on demand: searching at every level of nested objects takes quadratic time.
#[derive(Debug, PartialEq, Eq)]
pub struct ScannedObject<'b> {
    /// From its opening brace to the end of the input.
    rest: &'b [u8],
}

impl<'b> ScannedObject<'b> {
    /// The object with its braces, unless it is longer than `max` bytes or does not end.
    pub fn whole(&self, max: usize) -> Option<&'b [u8]> {
        let within = &self.rest[..self.rest.len().min(max)];
        object_end(within).map(|end| &within[..end])
    }
}

/// Every key at any depth, with its value. Takes time linear in the input.
pub fn keys(bytes: &[u8]) -> impl Iterator<Item = (&[u8], ScannedValue<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + memchr(b'"', bytes.get(at..)?)? + 1;
            let end = start + text_end(&bytes[start..])?;
            at = end + 1;
            if let Some(after) = after_colon(bytes, at) {
                at = after;
                return Some((&bytes[start..end], value(&bytes[after..])));
            }
        }
    })
}

/// Every text that is no key, at any depth, as it is written.
pub fn texts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + memchr(b'"', bytes.get(at..)?)? + 1;
            let end = start + text_end(&bytes[start..])?;
            at = end + 1;
            if after_colon(bytes, at).is_none() {
                return Some(&bytes[start..end]);
            }
        }
    })
}

/// A key, written with its quotes. Making one costs as much as a search: they are made once.
pub struct ScannedKey {
    finder: memmem::Finder<'static>,
}

impl ScannedKey {
    pub fn new(written: &'static str) -> Self {
        Self { finder: memmem::Finder::new(written) }
    }

    fn len(&self) -> usize {
        self.finder.needle().len()
    }

    /// Where it stands last. Looked for forwards, near the end first: searching backwards goes byte by byte.
    fn last(&self, bytes: &[u8]) -> Option<usize> {
        const NEAR: usize = 512;
        let near = bytes.len().saturating_sub(NEAR);
        let found = self.finder.find_iter(&bytes[near..]).last().map(|at| near + at);
        found.or_else(|| self.finder.find_iter(&bytes[..bytes.len().min(near + self.len())]).last())
    }
}

/// Occurrences of a key that are looked at, from the end. Answers have two or three; each one costs a search.
const MAX_OCCURRENCES: usize = 64;

/// The last object of at most `max` bytes that follows this key. `quick` may know where an object ends.
pub fn last_object<'b>(
    bytes: &'b [u8],
    key: &ScannedKey,
    max: usize,
    mut quick: impl FnMut(&[u8]) -> Option<usize>,
) -> Option<&'b [u8]> {
    let mut end = bytes.len();
    for _ in 0..MAX_OCCURRENCES {
        let at = key.last(&bytes[..end])?;
        if let Some(after) = after_colon(bytes, at + key.len()).filter(|after| bytes.get(*after) == Some(&b'{')) {
            let rest = &bytes[after..];
            let quick = quick(rest).filter(|end| *end <= max).and_then(|end| rest.get(..end));
            if let Some(object) = quick.or_else(|| ScannedObject { rest }.whole(max)) {
                return Some(object);
            }
        }
        end = at;
    }
    None
}

/// The first text that stands after this key, as a name of so many characters at most.
pub fn name_after(bytes: &[u8], key: &ScannedKey, characters: usize) -> Option<String> {
    let at = key.finder.find(bytes)?;
    match value(&bytes[after_colon(bytes, at + key.len())?..]) {
        ScannedValue::Text(text) => name(text, characters),
        _ => None,
    }
}

/// A written text as a name: no more than so many characters of its beginning are kept. None of one that is out of all
/// proportion and has escapes, which cannot be cut anywhere.
pub fn name(text: &[u8], characters: usize) -> Option<String> {
    /// Bytes of the longest way to write a character: two escapes.
    const WRITTEN: usize = 12;
    let Some((beginning, _)) = text.split_at_checked(characters * WRITTEN) else {
        let mut name = unescaped(text)?;
        name.truncate(cut(&name, characters).len());
        return Some(name);
    };
    let valid = str::from_utf8(beginning).or_else(|error| str::from_utf8(&beginning[..error.valid_up_to()])).ok()?;
    memchr(b'\\', beginning).is_none().then(|| cut(valid, characters).to_owned())
}

/// How many characters a written text has.
pub fn characters(text: &[u8]) -> u64 {
    let mut count = 0;
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let unit = text.get(at + 2..at + 6);
        match (byte, text.get(at + 1)) {
            // The second half of a pair is part of the first one's character.
            (b'\\', Some(b'u')) => {
                let is_second = unit.is_some_and(|unit| matches!(unit, [b'd' | b'D', b'c'..=b'f' | b'C'..=b'F', ..]));
                count += u64::from(!is_second);
                at += 6;
            }
            (b'\\', _) => {
                count += 1;
                at += 2;
            }
            // Bytes that continue a character.
            (0x80..=0xbf, _) => at += 1,
            _ => {
                count += 1;
                at += 1;
            }
        }
    }
    count
}

pub fn unescaped(text: &[u8]) -> Option<String> {
    if memchr(b'\\', text).is_none() {
        return str::from_utf8(text).ok().map(str::to_owned);
    }
    serde_json::from_slice(&[b"\"", text, b"\""].concat()).ok()
}

fn after_colon(bytes: &[u8], at: usize) -> Option<usize> {
    let colon = at + spaces(bytes.get(at..)?);
    (bytes.get(colon) == Some(&b':')).then(|| colon + 1 + spaces(&bytes[colon + 1..]))
}

fn spaces(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn value(bytes: &[u8]) -> ScannedValue<'_> {
    match bytes.first() {
        Some(b'"') => text_end(&bytes[1..]).map_or(ScannedValue::Other, |end| ScannedValue::Text(&bytes[1..=end])),
        Some(b'{') => ScannedValue::Object(ScannedObject { rest: bytes }),
        _ => ScannedValue::Other,
    }
}

/// Where the text ends whose opening quote stood just before.
fn text_end(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let found = at + memchr2(b'"', b'\\', bytes.get(at..)?)?;
        match bytes[found] {
            b'"' => return Some(found),
            _ => at = found + 2,
        }
    }
}

fn object_end(bytes: &[u8]) -> Option<usize> {
    plain_object_end(bytes).or_else(|| any_object_end(bytes))
}

/// The same by braces alone, where none can stand in a text: in front of each the quotes are in pairs and none is escaped.
fn plain_object_end(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut at) = (0_usize, 0);
    loop {
        let brace = at + memchr2(b'{', b'}', bytes.get(at..)?)?;
        let before = &bytes[at..brace];
        if memchr(b'\\', before).is_some() || !memchr_iter(b'"', before).count().is_multiple_of(2) {
            return None;
        }
        match bytes[brace] {
            b'{' => depth += 1,
            _ if depth <= 1 => return Some(brace + 1),
            _ => depth -= 1,
        }
        at = brace + 1;
    }
}

fn any_object_end(bytes: &[u8]) -> Option<usize> {
    let mut depth = 0_usize;
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => at += 1 + text_end(&bytes[at + 1..])?,
            b'{' => depth += 1,
            b'}' if depth <= 1 => return Some(at + 1),
            b'}' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn keys_are_told_from_texts_that_look_like_them() {
        let text = br#"{"a" : "x\"b\":1", "c":{"d":"}"}, "e":["f", 2], "g":null}"#;
        let found: Vec<_> = keys(text).collect();
        assert_eq!(
            found,
            [
                (&b"a"[..], ScannedValue::Text(br#"x\"b\":1"#)),
                (b"c", ScannedValue::Object(ScannedObject { rest: br#"{"d":"}"}, "e":["f", 2], "g":null}"# })),
                (b"d", ScannedValue::Text(b"}")),
                (b"e", ScannedValue::Other),
                (b"g", ScannedValue::Other),
            ]
        );
    }

    #[test]
    fn an_object_ends_within_its_bound_or_not_at_all() {
        let object = ScannedObject { rest: br#"{"d":"}"}, "e":1}"# };
        assert_eq!(object.whole(9), Some(&br#"{"d":"}"}"#[..]));
        assert_eq!(object.whole(8), None);
        assert_eq!(ScannedObject { rest: b"{" }.whole(9), None);
    }

    #[test]
    fn the_last_key_is_found_near_the_end_far_from_it_and_across() {
        for before in [0, 10, 505, 506, 507, 508, 509, 510, 511, 512, 513, 600, 3000] {
            let text = format!(r#"{{"u":{{"n":1}},"u":{{"n":2}},"pad":"{}"}}"#, "x".repeat(before));
            assert_eq!(
                last_object(text.as_bytes(), &ScannedKey::new("\"u\""), 100, |_| None),
                Some(&br#"{"n":2}"#[..]),
                "{before}"
            );
        }
    }

    proptest! {
        #[test]
        fn an_object_ends_where_a_parser_says(
            keys in prop::collection::vec("[a-z{}\"\\\\]{0,6}", 1..5), depth in 0..4_usize, after in "[{}\"a]{0,8}",
        ) {
            let mut value = serde_json::json!({});
            for _ in 0..=depth {
                value = keys.iter().map(|key| (key.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into();
            }
            let text = value.to_string();
            prop_assert_eq!(object_end(format!("{text}{after}").as_bytes()), Some(text.len()));
        }

        #[test]
        fn characters_are_counted_as_a_parser_would(text in "(\\PC|\\n|\\\\|\"){0,12}") {
            let plain = serde_json::to_string(&text).unwrap();
            let escaped: String = text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            let expected = text.chars().count() as u64;
            prop_assert_eq!(characters(&plain.as_bytes()[1..plain.len() - 1]), expected);
            prop_assert_eq!(characters(escaped.as_bytes()), expected);
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = keys(&bytes).count();
            let _ = last_object(&bytes, &ScannedKey::new("\"u\""), 10, |_| None);
            let _ = name_after(&bytes, &ScannedKey::new("\"u\""), 3);
            let _ = characters(&bytes);
            let _ = unescaped(&bytes);
        }

        #[test]
        fn no_cut_of_good_text_is_too_strange(cut in 0..64_usize) {
            let text = br#"{"usage":{"a":"\"}","b":{"c":1}},"usage":null,"m":"\u00e9\ud83d\ude00"}"#;
            let bytes = &text[..cut.min(text.len())];
            let _ = keys(bytes).count();
            let _ = last_object(bytes, &ScannedKey::new("\"usage\""), 100, |_| None);
        }
    }

    #[test]
    fn a_name_is_cut_to_its_characters_and_an_absurd_one_is_none() {
        for (written, kept) in [
            ("ab", Some("ab")),
            ("abc\u{1F600}", Some("abc")),
            (r"\u00e9\ud83d\ude00xyz", Some("\u{e9}\u{1F600}x")),
            (r"\ud800", None),
            (&"x".repeat(36), Some("xxx")),
            (&"\u{e9}".repeat(37), Some("\u{e9}\u{e9}\u{e9}")),
            (&r"\u00e9".repeat(7), None),
        ] {
            assert_eq!(name(written.as_bytes(), 3).as_deref(), kept, "{written}");
        }
    }

    #[test]
    fn the_last_object_of_a_key_is_found_past_values_that_are_none() {
        let text = br#"{"usage":{"n":1},"x":"\"usage\":{}","usage":null}"#;
        assert_eq!(last_object(text, &ScannedKey::new("\"usage\""), 100, |_| None), Some(&br#"{"n":1}"#[..]));
        assert_eq!(last_object(text, &ScannedKey::new("\"usage\""), 3, |_| None), None);
    }
}
