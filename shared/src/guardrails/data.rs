//! What a check found, as JSON for its result. Checks that many requests meet write it as text at once: a tree of it would only
//! be made to be written.

use super::lanes::least;
use serde_json::Value;
use std::borrow::Cow;
use std::cell::OnceCell;
use std::fmt::{self, Write as _};

/// As many characters of a text are shown in a result.
const EXCERPT: usize = 100;
/// Bytes of most excerpts, with their name.
const USUAL_EXCERPT: usize = 128;
/// Bytes of what most checks say.
pub const USUAL: usize = 512;

#[derive(Debug, Clone, PartialEq)]
pub enum Data {
    Tree(Value),
    /// One object, complete.
    Text(String),
}

impl Data {
    pub fn value(&self) -> Cow<'_, Value> {
        match self {
            Self::Tree(value) => Cow::Borrowed(value),
            // It was written by `DataWriter`, so it is read.
            Self::Text(text) => Cow::Owned(serde_json::from_str(text).unwrap_or_default()),
        }
    }

    pub fn into_value(self) -> Value {
        match self {
            Self::Tree(value) => value,
            Self::Text(_) => self.value().into_owned(),
        }
    }

    pub fn write(&self, out: &mut String) {
        match self {
            Self::Tree(value) => put_value(out, value),
            Self::Text(text) => out.push_str(text),
        }
    }
}

/// An object that is written field by field. Names are ours and need no escapes.
pub struct DataWriter {
    text: String,
}

impl Default for DataWriter {
    fn default() -> Self {
        let mut text = String::with_capacity(USUAL);
        text.push('{');
        Self { text }
    }
}

impl DataWriter {
    /// As far as it is written.
    pub fn begun(self) -> String {
        self.text
    }

    fn name(&mut self, name: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    #[must_use]
    pub fn text(mut self, name: &str, value: &str) -> Self {
        self.name(name);
        put_text(&mut self.text, value);
        self
    }

    #[must_use]
    pub fn texts<'t>(mut self, name: &str, values: impl Iterator<Item = &'t str>) -> Self {
        self.name(name);
        self.text.push('[');
        for (at, value) in values.enumerate() {
            if at > 0 {
                self.text.push(',');
            }
            put_text(&mut self.text, value);
        }
        self.text.push(']');
        self
    }

    #[must_use]
    pub fn flag(mut self, name: &str, value: bool) -> Self {
        self.name(name);
        self.text.push_str(if value { "true" } else { "false" });
        self
    }

    #[must_use]
    pub fn value(mut self, name: &str, value: &Value) -> Self {
        self.name(name);
        put_value(&mut self.text, value);
        self
    }

    /// In whole sentences.
    #[must_use]
    pub fn explanation(mut self, explanation: fmt::Arguments<'_>) -> Self {
        self.name("explanation");
        self.text.push('"');
        // A `String` takes whatever is written.
        let _ = Escaping(&mut self.text).write_fmt(explanation);
        self.text.push('"');
        self
    }

    /// The first hundred characters.
    #[must_use]
    pub fn excerpt(mut self, text: &str) -> Self {
        self.name("textExcerpt");
        put_excerpt(&mut self.text, text);
        self
    }

    pub fn finish(mut self) -> Data {
        self.text.push('}');
        Data::Text(self.text)
    }
}

struct Escaping<'t>(&'t mut String);

impl fmt::Write for Escaping<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        put_escaped(self.0, text);
        Ok(())
    }
}

/// A text that several checks judge, each of which shows how it begins.
pub struct JudgedText<'t> {
    pub text: &'t str,
    /// As JSON writes it, once one has asked.
    excerpt: OnceCell<String>,
}

impl<'t> JudgedText<'t> {
    pub fn new(text: &'t str) -> Self {
        Self { text, excerpt: OnceCell::new() }
    }

    /// The last field of an object that has others, and its end: the first hundred characters.
    pub fn end_with_excerpt(&self, out: &mut String) {
        out.push_str(self.excerpt.get_or_init(|| {
            let mut field = String::with_capacity(USUAL_EXCERPT);
            field.push_str(",\"textExcerpt\":");
            put_excerpt(&mut field, self.text);
            field.push('}');
            field
        }));
    }
}

fn put_excerpt(out: &mut String, text: &str) {
    match excerpt_end(text) {
        None => put_text(out, text),
        Some(end) => {
            out.push('"');
            put_escaped(out, &text[..end]);
            out.push_str("...\"");
        }
    }
}

/// The first hundred characters.
pub fn excerpt(text: &str) -> String {
    match excerpt_end(text) {
        Some(end) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Where an excerpt ends, of a text that has more.
fn excerpt_end(text: &str) -> Option<usize> {
    match text.as_bytes().get(..=EXCERPT) {
        None => None,
        Some(beginning) if beginning.is_ascii() => Some(EXCERPT),
        Some(_) => text.char_indices().nth(EXCERPT).map(|(end, _)| end),
    }
}

/// A text as JSON writes it, with its quotes.
pub fn put_text(out: &mut String, text: &str) {
    out.push('"');
    put_escaped(out, text);
    out.push('"');
}

pub fn put_value(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        // A `String` takes whatever is written, and a value can always be written.
        value => {
            let _ = write!(out, "{value}");
        }
    }
}

pub fn put_number(out: &mut String, number: u64) {
    let digit = |number: u64| char::from(b'0' + (number % 10) as u8);
    if number < 1000 {
        // As nearly all that are written.
        if number >= 100 {
            out.push(digit(number / 100));
        }
        if number >= 10 {
            out.push(digit(number / 10));
        }
        return out.push(digit(number));
    }
    // A `String` takes whatever is written.
    let _ = write!(out, "{number}");
}

/// Letters that JSON writes otherwise are few: what stands between them is copied at once.
fn put_escaped(out: &mut String, text: &str) {
    let mut rest = text;
    while let Some(at) = special(rest.as_bytes()) {
        let (plain, from) = rest.split_at(at);
        out.push_str(plain);
        let mut letters = from.chars();
        match letters.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\n') => out.push_str("\\n"),
            Some('\r') => out.push_str("\\r"),
            Some('\t') => out.push_str("\\t"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\u{c}') => out.push_str("\\f"),
            other => {
                let _ = write!(out, "\\u{:04x}", other.map_or(0, u32::from));
            }
        }
        rest = letters.as_str();
    }
    out.push_str(rest);
}

/// The first letter that JSON does not write as it is. It is looked for piece by piece: one behind the other would else cost the
/// square of a text.
fn special(text: &[u8]) -> Option<usize> {
    const PIECE: usize = 128;
    // Nought for those, and for no other.
    let distance = |byte: u8| (byte ^ b'"').min(byte ^ b'\\').min(byte.saturating_sub(0x1f));
    let has_one = |piece: &[u8]| least(piece, b' ', distance) == 0;
    let (at, piece) = text.chunks(PIECE).enumerate().find(|(_, piece)| has_one(piece))?;
    piece.iter().position(|byte| distance(*byte) == 0).map(|within| at * PIECE + within)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_written_field_by_field_is_what_a_tree_would_say() {
        let controls: String = (0..0x30).filter_map(char::from_u32).collect();
        for text in ["", "plain", "\"quoted\" \\ and\nlines", "é日本🙂", &controls, &"a long text, ".repeat(20)] {
            let written = DataWriter::default()
                .text("text", text)
                .texts("texts", ["a", text].into_iter())
                .flag("flag", true)
                .value("value", &json!({ "a": [null, 1.5] }))
                .explanation(format_args!("It says {text}, {} times.", 2))
                .finish();
            let tree = json!({ "text": text, "texts": ["a", text], "flag": true, "value": { "a": [null, 1.5] },
                               "explanation": format!("It says {text}, 2 times.") });
            let Data::Text(said) = &written else { panic!("it is a text") };
            assert_eq!(*said, tree.to_string());
            assert_eq!(*written.value(), tree);
        }
        assert_eq!(*DataWriter::default().finish().value(), json!({}));
        assert_eq!(DataWriter::default().flag("a", true).begun(), "{\"a\":true");
    }

    #[test]
    fn numbers_are_written_in_digits() {
        for number in [0, 7, 10, 99, 100, 194, 999, 1000, u64::from(u32::MAX), u64::MAX] {
            let mut out = String::from("n=");
            put_number(&mut out, number);
            assert_eq!(out, format!("n={number}"));
        }
    }

    #[test]
    fn an_excerpt_is_a_hundred_characters_whatever_their_size() {
        for (text, expected) in [
            ("short".to_owned(), "short".to_owned()),
            ("a".repeat(100), "a".repeat(100)),
            ("a".repeat(101), format!("{}...", "a".repeat(100))),
            ("é".repeat(100), "é".repeat(100)),
            ("é".repeat(101), format!("{}...", "é".repeat(100))),
            (format!("{}é", "a".repeat(100)), format!("{}...", "a".repeat(100))),
            (format!("{}é", "a".repeat(99)), format!("{}é", "a".repeat(99))),
        ] {
            assert_eq!(excerpt(&text), expected);
            let written = DataWriter::default().excerpt(&text).finish();
            assert_eq!(*written.value(), json!({ "textExcerpt": expected }));
            let mut written = String::from("{\"a\":1");
            JudgedText::new(&text).end_with_excerpt(&mut written);
            assert_eq!(written, json!({ "a": 1, "textExcerpt": expected }).to_string());
        }
    }
}
