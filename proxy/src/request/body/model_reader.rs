//! The `model` of a JSON body, read while the body passes in pieces: only its own name and value are held. Other than a
//! parser it must be no more lenient than any provider's: a name in any case or escaped counts (some readers take
//! `Model` for `model`), and two of them are a fault, since readers differ in which one they keep.

use std::ops::Range;

/// Longest name of a model, and as many bytes as it can be written in.
const MAX_MODEL_NAME: usize = 255;
const MAX_WRITTEN: usize = 6 * MAX_MODEL_NAME;
/// `model` with every letter escaped.
const MAX_KEY: usize = 30;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedModel {
    pub name: String,
    /// Where it stands in the body, with its quotes.
    pub place: Range<u64>,
}

/// Why the model of an object cannot be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the body is not valid JSON")]
    NotJson,
    #[error("`model` is there twice")]
    Twice,
    #[error("`model` must be a string")]
    NotText,
    #[error("`model` is longer than {MAX_MODEL_NAME} bytes")]
    TooLong,
}

#[derive(Debug, Default)]
pub struct ModelReader {
    state: ReaderState,
    consumed: u64,
    /// The key or the value that is being read, as it is written.
    text: Vec<u8>,
    is_model: bool,
    has_model: bool,
    found: Option<NamedModel>,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ReaderState {
    #[default]
    Begin,
    /// Where a key may begin; the object may end only before its first.
    Key {
        is_first: bool,
    },
    InKey {
        is_escaped: bool,
    },
    Colon,
    Value,
    InText {
        is_escaped: bool,
        from: u64,
    },
    /// Inside of an array or an object.
    Nested {
        depth: u32,
    },
    InNestedText {
        depth: u32,
        is_escaped: bool,
    },
    /// A number, or a word.
    InScalar,
    AfterValue,
    End,
    /// The body is no object, and names nothing.
    NoObject,
    Broken(Fault),
}

impl ModelReader {
    pub fn push(&mut self, mut piece: &[u8]) {
        loop {
            let skipped = self.skippable(piece);
            self.consumed += skipped as u64;
            let Some((&byte, rest)) = piece[skipped..].split_first() else { return };
            self.state = self.step(byte);
            self.consumed += 1;
            if matches!(self.state, ReaderState::NoObject | ReaderState::Broken(_)) {
                return;
            }
            piece = rest;
        }
    }

    /// How many bytes change nothing: most of a body is text of other fields, which is not worth a step for each byte.
    fn skippable(&self, piece: &[u8]) -> usize {
        let next = match self.state {
            ReaderState::InText { is_escaped: false, .. } if !self.is_model => memchr::memchr2(b'"', b'\\', piece),
            ReaderState::InNestedText { is_escaped: false, .. } => memchr::memchr2(b'"', b'\\', piece),
            ReaderState::Nested { .. } => {
                piece.iter().position(|byte| matches!(byte, b'"' | b'{' | b'[' | b'}' | b']'))
            }
            _ => return 0,
        };
        next.unwrap_or(piece.len())
    }

    /// How much of the body it has seen, up to where it stopped looking.
    pub fn consumed(&self) -> u64 {
        self.consumed
    }

    pub fn found(&self) -> Option<&NamedModel> {
        self.found.as_ref()
    }

    pub fn fault(&self) -> Option<Fault> {
        match self.state {
            ReaderState::Broken(fault) => Some(fault),
            _ => None,
        }
    }

    /// Whether nothing that follows can say more.
    pub fn is_over(&self) -> bool {
        matches!(self.state, ReaderState::End | ReaderState::NoObject | ReaderState::Broken(_))
    }

    fn step(&mut self, byte: u8) -> ReaderState {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match (self.state, byte) {
            (
                ReaderState::Begin
                | ReaderState::Key { .. }
                | ReaderState::Colon
                | ReaderState::Value
                | ReaderState::AfterValue
                | ReaderState::End,
                _,
            ) if is_space => self.state,
            (ReaderState::Begin, b'{') => ReaderState::Key { is_first: true },
            (ReaderState::Begin, _) => ReaderState::NoObject,
            (ReaderState::Key { .. }, b'"') => {
                self.text.clear();
                ReaderState::InKey { is_escaped: false }
            }
            (ReaderState::Key { is_first: true }, b'}') | (ReaderState::AfterValue, b'}') => ReaderState::End,
            (ReaderState::InKey { is_escaped: false }, b'"') => {
                self.is_model = is_model(&self.text);
                ReaderState::Colon
            }
            (ReaderState::InKey { is_escaped }, _) => {
                // One byte more than the longest tells that it is longer.
                if self.text.len() <= MAX_KEY {
                    self.text.push(byte);
                }
                ReaderState::InKey { is_escaped: !is_escaped && byte == b'\\' }
            }
            (ReaderState::Colon, b':') if self.is_model && self.has_model => ReaderState::Broken(Fault::Twice),
            (ReaderState::Colon, b':') => {
                self.has_model |= self.is_model;
                self.text.clear();
                ReaderState::Value
            }
            (ReaderState::Value, b'"') => ReaderState::InText { is_escaped: false, from: self.consumed },
            (ReaderState::Value, b'{' | b'[') if self.is_model => ReaderState::Broken(Fault::NotText),
            (ReaderState::Value, b'{' | b'[') => ReaderState::Nested { depth: 1 },
            (ReaderState::Value, b'a'..=b'z' | b'0'..=b'9' | b'-') => self.scalar(byte),
            (ReaderState::InText { is_escaped: false, from }, b'"') => self.ends_text(from),
            (ReaderState::InText { is_escaped, from }, _) => {
                if self.is_model {
                    self.text.push(byte);
                    if self.text.len() > MAX_WRITTEN {
                        return ReaderState::Broken(Fault::TooLong);
                    }
                }
                ReaderState::InText { is_escaped: !is_escaped && byte == b'\\', from }
            }
            (ReaderState::Nested { depth }, b'"') => ReaderState::InNestedText { depth, is_escaped: false },
            (ReaderState::Nested { depth }, b'{' | b'[') => ReaderState::Nested { depth: depth.saturating_add(1) },
            (ReaderState::Nested { depth: 1 }, b'}' | b']') => ReaderState::AfterValue,
            (ReaderState::Nested { depth }, b'}' | b']') => ReaderState::Nested { depth: depth - 1 },
            (ReaderState::Nested { .. }, _) => self.state,
            (ReaderState::InNestedText { depth, is_escaped: false }, b'"') => ReaderState::Nested { depth },
            (ReaderState::InNestedText { depth, is_escaped }, _) => {
                ReaderState::InNestedText { depth, is_escaped: !is_escaped && byte == b'\\' }
            }
            (ReaderState::InScalar, b',') => self.ends_scalar(ReaderState::Key { is_first: false }),
            (ReaderState::InScalar, b'}') => self.ends_scalar(ReaderState::End),
            (ReaderState::InScalar, _) if is_space => self.ends_scalar(ReaderState::AfterValue),
            (ReaderState::InScalar, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'+' | b'.' | b'E') => self.scalar(byte),
            (ReaderState::AfterValue, b',') => ReaderState::Key { is_first: false },
            (ReaderState::NoObject | ReaderState::Broken(_), _) => self.state,
            _ => ReaderState::Broken(Fault::NotJson),
        }
    }

    fn scalar(&mut self, byte: u8) -> ReaderState {
        // Enough to tell `null` from the rest.
        if self.text.len() < 8 {
            self.text.push(byte);
        }
        ReaderState::InScalar
    }

    fn ends_scalar(&self, next: ReaderState) -> ReaderState {
        match self.is_model && self.text != b"null" {
            true => ReaderState::Broken(Fault::NotText),
            false => next,
        }
    }

    fn ends_text(&mut self, from: u64) -> ReaderState {
        if self.is_model {
            let Some(name) = unescaped(&self.text) else { return ReaderState::Broken(Fault::NotJson) };
            if name.len() > MAX_MODEL_NAME {
                return ReaderState::Broken(Fault::TooLong);
            }
            self.found = Some(NamedModel { name, place: from..self.consumed + 1 });
        }
        ReaderState::AfterValue
    }
}

fn is_model(written: &[u8]) -> bool {
    let is_it = |name: &[u8]| name.eq_ignore_ascii_case(b"model");
    match written.contains(&b'\\') {
        false => is_it(written),
        true => unescaped(written).is_some_and(|name| is_it(name.as_bytes())),
    }
}

fn unescaped(written: &[u8]) -> Option<String> {
    serde_json::from_slice(&[b"\"", written, b"\""].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(body: &[u8], pieces: usize) -> ModelReader {
        let mut reader = ModelReader::default();
        body.chunks(pieces.max(1)).for_each(|piece| reader.push(piece));
        reader
    }

    #[test]
    fn the_model_is_found_wherever_it_stands_and_however_it_is_written() {
        for (body, name) in [
            (r#"{"model":"m"}"#, Some("m")),
            (r#" { "a" : [1,{"model":"x"},"}"] , "model" : "m" , "b":{"model":"y"}}"#, Some("m")),
            (r#"{"mod\u0065l":"a\"b\u00e9"}"#, Some("a\"bé")),
            (r#"{"Model":"m"}"#, Some("m")),
            (r#"{"model":null,"x":-1.5E+3}"#, None),
            (r#"{"x":"model","y":"\"model\":\"z\""}"#, None),
            (r#"{}"#, None),
            (r#"["model"]"#, None),
            ("", None),
        ] {
            for pieces in [1, 2, 3, 1000] {
                let reader = read(body.as_bytes(), pieces);
                assert_eq!(reader.found().map(|found| &*found.name), name, "{body} in {pieces}");
                assert_eq!(reader.fault(), None, "{body}");
            }
        }
    }

    #[test]
    fn the_place_of_a_model_is_that_of_its_value_with_its_quotes() {
        let body = r#"{"a":"é","model" : "@s/m", "z":1}"#;
        let place = read(body.as_bytes(), 3).found().unwrap().place.clone();
        assert_eq!(&body.as_bytes()[place.start as usize..place.end as usize], br#""@s/m""#);
    }

    #[test]
    fn what_two_readers_could_read_differently_is_a_fault() {
        let long = format!(r#"{{"model":"{}"}}"#, "x".repeat(256));
        for (body, fault) in [
            (r#"{"model":"a","model":"b"}"#, Fault::Twice),
            (r#"{"model":"a","x":[{}],"MODEL":"b"}"#, Fault::Twice),
            (r#"{"model":null,"m\u006fdel":"b"}"#, Fault::Twice),
            (r#"{"model":7}"#, Fault::NotText),
            (r#"{"model":["a"]}"#, Fault::NotText),
            (r#"{"model":{"a":1}}"#, Fault::NotText),
            (r#"{'model':"a"}"#, Fault::NotJson),
            (r#"{"a":1,}"#, Fault::NotJson),
            (r#"{"a":1}{"model":"a"}"#, Fault::NotJson),
            (r#"{/* */"model":"a"}"#, Fault::NotJson),
            ("{\0\"\0", Fault::NotJson),
            (&long, Fault::TooLong),
        ] {
            assert_eq!(read(body.as_bytes(), 5).fault(), Some(fault), "{body}");
        }
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_parser(
            before in prop::collection::vec(("[a-z\"\\\\]{0,6}", "\\PC{0,8}"), 0..4), name in "\\PC{0,20}", nest in 0..3_usize,
        ) {
            let mut value = serde_json::json!("x\"}]{");
            for _ in 0..nest {
                value = serde_json::json!([{ "model": value, "k": [1, null] }]);
            }
            let mut body: serde_json::Map<String, serde_json::Value> =
                before.into_iter().filter(|(key, _)| !key.eq_ignore_ascii_case("model")).map(|(key, text)| (key, text.into())).collect();
            body.insert("zz".into(), value);
            body.insert("model".into(), name.clone().into());
            let body = serde_json::to_vec(&body).unwrap();
            let reader = read(&body, 7);
            prop_assert_eq!(reader.found().map(|found| &*found.name), Some(&*name));
            prop_assert!(reader.is_over() && reader.fault().is_none());
        }

        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..64), text in "[{}\\[\\]\":,\\\\a-z0 ]{0,40}") {
            let _ = read(&bytes, 3);
            let _ = read(text.as_bytes(), 3);
        }
    }
}
